"""The event loop of hosts: how it ends where it was never whole."""

import socket
import sys

import pytest

from emu.loop import new_loop


def test_an_interrupt_while_a_loop_is_made_leaves_nothing_that_complains(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    monkeypatch.setattr(socket, "socketpair", interrupt)
    with pytest.raises(KeyboardInterrupt):
        new_loop()
    assert complaints == []
