"""Routers with one adapter: all networks share one cable and one MAC address, whatever the kernel has to tell them apart."""

import json
from dataclasses import astuple
from typing import Any, get_args

import pytest

from emu import requirements
from emu.launch import Emulation, emulate
from emu.namespaces import run_isolated
from emu.network import EmulatedNetwork
from emu.plan import plan_emulation
from emu.requirements import TRUNKS, KernelFeature, check_kernel
from emu.trunk import FEATURES, TrunkKind, choose_trunk
from experiments.cli import invoke
from protocols.errors import UnsupportedError
from tests.emu.number_protocol import GROUP, NumberCodec, ReceivingProgram, SendingProgram
from tests.emu.number_protocol import PORT as SESSION
from tests.emu.trunks import MAC, Seen, adapters, counted, deliver, hush, routed, watch
from topologies.ethernet import wire_bytes

pytestmark = pytest.mark.emu

RATE = 4e6
HALF, FULL = ({"mac": "single", "duplex": duplex, "rate": "4Mbit"} for duplex in ("half", "full"))
SIZES = (4, 10, 500, 1472)


def present(way: TrunkKind) -> bool:
    """Has this kernel what the way takes?"""
    try:
        run_isolated(lambda: check_kernel(FEATURES[way]))
    except UnsupportedError:
        return False
    return True


def there(request: pytest.FixtureRequest) -> TrunkKind:
    """The way that a fixture was asked for, if this kernel has it."""
    chosen: TrunkKind = request.param
    if not present(chosen):
        pytest.skip(f"this kernel has no {' '.join(FEATURES[chosen])}")
    return chosen


@pytest.fixture(params=get_args(TrunkKind))
def way(request: pytest.FixtureRequest) -> TrunkKind:
    """Each way that this kernel has."""
    return there(request)


@pytest.fixture(params=["vlan", "vxlan"])
def cable(request: pytest.FixtureRequest) -> TrunkKind:
    """Each way with a cable that this kernel has."""
    return there(request)


def lacking(monkeypatch: pytest.MonkeyPatch, *features: str) -> None:
    """Let this kernel have none of these."""
    for name in features:
        feature = TRUNKS[name]
        monkeypatch.setitem(
            requirements.TRUNKS,
            name,
            KernelFeature(feature.name, feature.module, ("ip link add px0 type tardis",)),
        )


def looked_at(cable: TrunkKind) -> tuple[list[Seen], dict[str, str]]:
    """What passes the cable when two hosts talk through a router, and the adapters of that."""

    def work() -> list[Any]:
        network = EmulatedNetwork(plan_emulation(routed(FULL), trunk=cable))

        def talk() -> None:
            assert deliver(network, "sender", "r", [bytes(size) for size in SIZES]) == len(SIZES)
            assert deliver(network, "r", "sender", [bytes(20)]) == 1

        return [[astuple(one) for one in watch(network, "g1", talk)], adapters(network, "g1")]

    seen, found = run_isolated(work)
    return [Seen(*one) for one in seen], found


def test_every_frame_on_the_cable_names_its_network_and_the_router_speaks_with_one_address(cable: TrunkKind) -> None:
    seen, found = looked_at(cable)
    assert found == {"g1-eth0": MAC}
    assert {one.kind for one in seen} == {cable}
    # Tags are 10 on the sender's side and 20 on the receiver's; VXLAN's numbers have the router's number above them.
    ways = [(one.outgoing, one.tag & 0xFFF, one.payload) for one in seen]
    expected = [step for size in SIZES for step in ((False, 10, size), (True, 20, size))]
    assert ways == [*expected, (False, 20, 20), (True, 10, 20)]
    assert {one.source for one in seen if one.outgoing} == {one.inner_source for one in seen if one.outgoing} == {MAC}
    assert {one.inner_source for one in seen if not one.outgoing} == {"02:00:0a:00:00:01", "02:00:0a:00:00:02"}
    around = {"vlan": 14 + 4, "vxlan": 14 + 50}[cable]
    assert all(one.length == around + 28 + one.payload for one in seen)


def test_without_a_cable_in_common_the_ports_have_one_address_all_the_same() -> None:
    found = run_isolated(lambda: adapters(EmulatedNetwork(plan_emulation(routed(FULL))), "g1"))
    assert found == {"g1-eth0": MAC, "g1-eth1": MAC}


@pytest.mark.parametrize("model", [HALF, FULL], ids=["half", "full"])
def test_a_frame_costs_the_adapter_what_it_costs_with_a_tag(way: TrunkKind, model: dict[str, Any]) -> None:
    def work() -> dict[str, tuple[int, int]]:
        hush()
        network = EmulatedNetwork(plan_emulation(routed(model), trunk=way))
        assert deliver(network, "sender", "r", [bytes(size) for size in SIZES]) == len(SIZES)
        return counted(network, "g1")

    cost = sum(wire_bytes(size, "ethernet-802.1q") for size in SIZES)
    assert run_isolated(work) == {"in": [len(SIZES), cost], "out": [len(SIZES), cost]}


def test_what_comes_in_from_another_router_takes_turns_with_what_comes_in(way: TrunkKind) -> None:
    def work() -> list[dict[str, tuple[int, int]]]:
        hush()
        network = EmulatedNetwork(plan_emulation(routed(HALF, routers=3), trunk=way))
        assert deliver(network, "sender", "r", [bytes(100)] * 3) == 3
        return [counted(network, name) for name in ("g1", "g2", "g3")]

    passed = 3 * wire_bytes(100, "ethernet-802.1q")
    assert run_isolated(work) == [{"in": [3, passed], "out": [3, passed]}] * 3


@pytest.mark.parametrize("line", [{"down": {"loss": "50%"}}, {"delay": "2ms", "down": {"loss": "50%"}}], ids=["kernel", "user"])
def test_what_the_link_to_a_router_loses_never_reaches_its_adapter(way: TrunkKind, line: dict[str, Any]) -> None:
    def work() -> list[Any]:
        hush()
        network = EmulatedNetwork(plan_emulation(routed(FULL, **line), trunk=way))
        return [deliver(network, "sender", "r", [bytes(100)] * 20), counted(network, "g1")]

    heard, passed = run_isolated(work)
    # 20 packets at 50 %: all or none of them come once in half a million runs.
    assert 0 < heard < 20
    assert passed["in"][0] == passed["out"][0] == heard


def test_half_of_the_rate_comes_through_and_the_result_says_how_the_networks_were_joined(way: TrunkKind) -> None:
    size, best = 1400, 0.5 * size_share(1400)
    found: list[float] = []
    # A busy machine is late and carries less, so the best of some tries counts; none may carry more.
    while len(found) < 3 and (not found or max(found) < 0.9 * best):
        run = flooded(way, size)
        (router,) = [row for row in run.impairments if row.get("node") == "g1"]
        assert (router["trunk"], router["rate_by"]) == (way, "ifb + htb")
        result = run.nodes["r"].result
        assert result is not None
        found.append((len(result["numbers"]) - 1) * size * 8 / result["seconds"] / RATE)
        assert found[-1] < 1.05 * best
    assert max(found) > 0.9 * best


def size_share(size: int) -> float:
    """Payload out of all that a tagged frame takes."""
    return size / wire_bytes(size, "ethernet-802.1q")


def flooded(way: TrunkKind, size: int) -> Emulation:
    """A sender offers more than the router's adapter carries."""
    return emulate(
        routed(HALF | {"queue": 60}),
        {"sender": SendingProgram(100_000, 0.7 * RATE / 8 / size, size=size), "r": ReceivingProgram()},
        codec=NumberCodec,
        port=SESSION,
        duration=1.5,
        over=lambda finished: False,
        seed=1,
        groups={GROUP.name.partition(":")[0]: ["sender", "r"]},
        trunk=way,
    )


def test_the_first_way_that_the_kernel_has_is_taken_vlan_before_vxlan(monkeypatch: pytest.MonkeyPatch) -> None:
    has = [way for way in get_args(TrunkKind) if present(way)]
    assert choose_trunk(routed(HALF)) == has[0]
    lacking(monkeypatch, "802.1Q")
    assert choose_trunk(routed(HALF)) == next(way for way in has if way != "vlan")
    lacking(monkeypatch, "vxlan")
    assert choose_trunk(routed(HALF)) == "ifb"
    # Where there is nothing to join nothing is asked of the kernel.
    assert choose_trunk(routed({"mac": "dual"}), "vlan") == "ifb"


@pytest.mark.parametrize(("wanted", "feature"), [("vlan", "802.1Q"), ("vxlan", "vxlan")])
def test_a_way_that_is_asked_for_and_not_there_is_refused(
    wanted: str, feature: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking(monkeypatch, feature)
    scenario = "experiments/scenarios/router-single-mac.yaml"
    assert invoke(["run", scenario, "--on", "emu", "--set", f"emu.trunk={wanted}"]) == 3
    said = capsys.readouterr().err
    assert f"emu.trunk: {wanted} is not possible here" in said
    assert f"sudo modprobe -a {TRUNKS[feature].module}" in said


def test_a_way_that_nobody_knows_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "experiments/scenarios/router-single-mac.yaml", "--set", "emu.trunk=rope"]) == 2
    assert "emu.trunk" in capsys.readouterr().err


def test_a_scenario_that_leaves_the_choice_means_what_it_meant(capsys: pytest.CaptureFixture[str]) -> None:
    digests = []
    for sets in ([], ["--set", "emu.trunk=any"], ["--set", "emu.trunk=ifb"]):
        assert (
            invoke(["run", "experiments/scenarios/router-single-mac.yaml", "--json", "--set", "workload.size=10kB", *sets]) == 0
        )
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1] != digests[2]
