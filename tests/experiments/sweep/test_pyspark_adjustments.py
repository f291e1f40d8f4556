"""Adjustments of PySpark: what is raised is not printed, too."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from py4j.java_gateway import GatewayClient

from experiments.sweep.run.pyspark_adjustments import adjust_pyspark


def test_an_interrupt_of_a_call_to_java_is_raised_and_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt(command: str) -> Any:
        raise KeyboardInterrupt

    client = GatewayClient()
    monkeypatch.setattr(client, "_get_connection", lambda: SimpleNamespace(socket=None, send_command=interrupt))
    adjust_pyspark()
    adjust_pyspark()
    with pytest.raises(KeyboardInterrupt):
        client.send_command("c")
    logging.getLogger("py4j.clientserver").error("Exception occurred while shutting down connection")
    assert caplog.text == ""
