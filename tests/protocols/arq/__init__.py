"""Tests of the ARQ protocols."""
