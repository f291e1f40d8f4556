"""Protocols of a test among mcastlab's own."""

from collections.abc import Mapping

import pytest

from protocols import registry
from protocols.spec import ProtocolSpec

__all__ = ["register"]


def register(monkeypatch: pytest.MonkeyPatch, specs: Mapping[str, ProtocolSpec]) -> None:
    """Let scenarios find these protocols by their names, also instead of mcastlab's own."""
    names, protocol = registry.names, registry.protocol
    monkeypatch.setattr(registry, "names", lambda: sorted({*names(), *specs}))
    monkeypatch.setattr(registry, "protocol", lambda name: specs[name] if name in specs else protocol(name))
