"""`mcastlab run --on emu --live` beside `mcastlab monitor`: the hosts of the emulation are on the page."""

import json
import subprocess
import time
from urllib.request import urlopen

import pytest

from tests.experiments.monitor.test_page import monitor
from tests.support.transfers import COMMAND

SIZE = ("--set", "workload.size=6MB", "--set", "protocol.rate=10Mbit", "--set", "topology.link.rate=20Mbit")


@pytest.mark.emu
@pytest.mark.slow
def test_the_hosts_of_an_emulation_are_shown_while_it_runs_with_their_rates() -> None:
    with monitor("--management", "off") as url:
        command = [*COMMAND, "run", "lan-file", *SIZE, "--on", "emu", "--live", "--brief"]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        best: dict[str, float] = {}
        try:
            end = time.monotonic() + 60
            while run.poll() is None and time.monotonic() < end:
                with urlopen(f"{url}api/domain", timeout=10) as answer:
                    rows = json.load(answer)["rows"]
                for row in rows:
                    if row["domain"] == "emulation lan-file" and "bytes_received" in row["flows"]:
                        rate = row["flows"]["bytes_received"][1][0]
                        best[row["process"]] = max(best.get(row["process"], 0.0), rate)
                time.sleep(0.5)
        finally:
            run.kill()
            out, err = run.communicate()
        assert run.returncode == 0, out + err
    assert len(best) >= 3
    # 10 Mbit/s of UDP payload, of which nearly all is content.
    assert all(0.8e6 < rate < 1.5e6 for rate in best.values()), best
