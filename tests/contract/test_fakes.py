"""The fake hosts themselves: scripted losses drop the given packets, and only a fake host detects a missed `alarm` call."""

import pytest

from experiments.contract.checks import bench_session
from experiments.contract.fake_host import FakeHost
from experiments.contract.losses import numbered
from experiments.contract.recorder import Recorder
from experiments.contract.session import contents_of
from protocols.machine import Group
from tests.contract.cases import TOY_CASE
from tests.contract.test_mutants import MissesAlarm
from tests.support.toy import TOY, ToyConfig, ToyData, ToyEnd, ToyNack

GROUP = Group("239.1.1.1:5001")
END = ToyEnd(1, 0, 1000, 500, b"name")


def test_a_scripted_loss_is_requested_and_repaired() -> None:
    session, world = bench_session(TOY_CASE, numbered("data", {3, 5}, receiver="n1"))
    session.submit(*contents_of((20_000,)))
    session.run()
    session.expect_everything()
    nacks = [packet.message for packet in world.bench["n1"].packets if isinstance(packet.message, ToyNack)]
    assert nacks[0].missing == (2, 4)
    assert {index for nack in nacks for index in nack.missing} == {2, 4}
    assert not world.bench["n2"].packets
    assert len(world.bench.dropped) == 2


def test_only_the_fake_host_detects_a_missing_alarm_call() -> None:
    host = FakeHost("n1")
    host.run(MissesAlarm(host, ToyConfig(), 1, GROUP))
    with pytest.raises(AssertionError, match="forgot an alarm"):
        host.deliver(END, "n0", GROUP, 1.0)


def test_a_recorder_keeps_what_a_machine_sends() -> None:
    ports = Recorder()
    machine = TOY.make_receiver(ports, ToyConfig(wait=0.02), 2, GROUP)
    machine.start(0.0)
    machine.receive(ToyData(1, 0, 0, b"x" * 500, 500), "n0", GROUP, 1.0)
    machine.receive(END, "n0", GROUP, 1.0)
    assert ports.groups == [GROUP]
    assert ports.alarms == [machine.deadline]
    machine.wake(machine.deadline)
    assert [packet.message for packet in ports.packets] == [ToyNack(1, 0, (1,))]
