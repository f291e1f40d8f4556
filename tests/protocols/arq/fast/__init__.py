"""Tests of the fast machines of the ARQ protocols."""
