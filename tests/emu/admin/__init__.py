"""Tests of `emu.admin`."""
