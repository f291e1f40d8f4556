"""The congestion control of programs that set none."""

import subprocess
import sys

import pytest

from emu.namespaces import run_isolated
from emu.network import EmulatedNetwork
from emu.plan import plan_emulation
from topologies.generators import Lan

pytestmark = pytest.mark.emu

PORT = 7100
ASKING = """
import socket, sys, time
if sys.argv[1] == "listen":
    sock = socket.create_server(("", int(sys.argv[2]))).accept()[0]
else:
    until = time.monotonic() + 10
    while True:
        try:
            sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.05)
print(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode())
"""


def controls(control: str) -> list[str]:
    """Return the congestion control of both ends of a connection between two hosts."""
    network = EmulatedNetwork(plan_emulation(Lan.model_validate({"receivers": 1}).build()))
    network.set_congestion_control(["sender", "r1"], control)
    ends = []
    for host, where in (("sender", "listen"), ("r1", network.address("sender"))):
        command = ["mnexec", "-a", str(network.pid(host)), sys.executable, "-c", ASKING, where, str(PORT)]
        ends.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    return [end.communicate(timeout=30)[0].strip() for end in ends]


@pytest.mark.parametrize("control", ["reno", "cubic"])
def test_both_ends_of_a_connection_of_other_programs_have_that_of_the_run(control: str) -> None:
    assert run_isolated(lambda: controls(control)) == [control, control]
