"""Routers with one adapter: all networks share one cable and one MAC address, with any encapsulation of this kernel."""

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
from tests.emu.trunks import MAC, CapturedDatagram, adapter_counters, adapters, capture_cable, deliver, routed, silence_devices
from topologies.ethernet import wire_bytes

pytestmark = pytest.mark.emu

RATE = 4e6
HALF, FULL = ({"mac": "single", "duplex": duplex, "rate": "4Mbit"} for duplex in ("half", "full"))
SIZES = (4, 10, 500, 1472)


def is_supported(kind: TrunkKind) -> bool:
    """Whether this kernel supports the kind of trunk."""
    try:
        run_isolated(lambda: check_kernel(FEATURES[kind]))
    except UnsupportedError:
        return False
    return True


def supported(request: pytest.FixtureRequest) -> TrunkKind:
    """Return the kind that a fixture requests, if this kernel supports it."""
    chosen: TrunkKind = request.param
    if not is_supported(chosen):
        pytest.skip(f"this kernel has no {' '.join(FEATURES[chosen])}")
    return chosen


@pytest.fixture(params=get_args(TrunkKind))
def kind(request: pytest.FixtureRequest) -> TrunkKind:
    """Each kind of trunk that this kernel supports."""
    return supported(request)


@pytest.fixture(params=["vlan", "vxlan"])
def cable(request: pytest.FixtureRequest) -> TrunkKind:
    """Each kind with a common cable that this kernel supports."""
    return supported(request)


def lacking(monkeypatch: pytest.MonkeyPatch, *features: str) -> None:
    """Make these features unsupported."""
    for name in features:
        feature = TRUNKS[name]
        monkeypatch.setitem(
            requirements.TRUNKS,
            name,
            KernelFeature(feature.name, feature.module, ("ip link add px0 type tardis",)),
        )


def capture_exchange(cable: TrunkKind) -> tuple[list[CapturedDatagram], dict[str, str]]:
    """Capture on the trunk while two hosts exchange packets; return the datagrams and the router's adapters."""

    def work() -> list[Any]:
        network = EmulatedNetwork(plan_emulation(routed(FULL), trunk=cable))

        def talk() -> None:
            assert deliver(network, "sender", "r", [bytes(size) for size in SIZES]) == len(SIZES)
            assert deliver(network, "r", "sender", [bytes(20)]) == 1

        return [[astuple(frame) for frame in capture_cable(network, "g1", talk)], adapters(network, "g1")]

    seen, found = run_isolated(work)
    return [CapturedDatagram(*frame) for frame in seen], found


def test_every_frame_on_the_trunk_is_tagged_and_the_router_has_one_mac_address(cable: TrunkKind) -> None:
    seen, found = capture_exchange(cable)
    assert found == {"g1-eth0": MAC}
    assert {frame.kind for frame in seen} == {cable}
    # Tags are 10 on the sender's side and 20 on the receiver's; VXLAN identifiers have the router's number in higher bits.
    steps = [(frame.outgoing, frame.tag & 0xFFF, frame.payload) for frame in seen]
    expected = [step for size in SIZES for step in ((False, 10, size), (True, 20, size))]
    assert steps == [*expected, (False, 20, 20), (True, 10, 20)]
    assert (
        {frame.source for frame in seen if frame.outgoing} == {frame.inner_source for frame in seen if frame.outgoing} == {MAC}
    )
    assert {frame.inner_source for frame in seen if not frame.outgoing} == {"02:00:0a:00:00:01", "02:00:0a:00:00:02"}
    around = {"vlan": 14 + 4, "vxlan": 14 + 50}[cable]
    assert all(frame.length == around + 28 + frame.payload for frame in seen)


def test_without_a_trunk_all_ports_share_one_mac_address() -> None:
    found = run_isolated(lambda: adapters(EmulatedNetwork(plan_emulation(routed(FULL))), "g1"))
    assert found == {"g1-eth0": MAC, "g1-eth1": MAC}


@pytest.mark.parametrize("model", [HALF, FULL], ids=["half", "full"])
def test_the_adapter_counts_every_frame_as_tagged(kind: TrunkKind, model: dict[str, Any]) -> None:
    def work() -> dict[str, tuple[int, int]]:
        silence_devices()
        network = EmulatedNetwork(plan_emulation(routed(model), trunk=kind))
        assert deliver(network, "sender", "r", [bytes(size) for size in SIZES]) == len(SIZES)
        return adapter_counters(network, "g1")

    cost = sum(wire_bytes(size, "ethernet-802.1q") for size in SIZES)
    assert run_isolated(work) == {"in": [len(SIZES), cost], "out": [len(SIZES), cost]}


def test_frames_between_routers_pass_every_adapter_in_both_directions(kind: TrunkKind) -> None:
    def work() -> list[dict[str, tuple[int, int]]]:
        silence_devices()
        network = EmulatedNetwork(plan_emulation(routed(HALF, routers=3), trunk=kind))
        assert deliver(network, "sender", "r", [bytes(100)] * 3) == 3
        return [adapter_counters(network, name) for name in ("g1", "g2", "g3")]

    passed = 3 * wire_bytes(100, "ethernet-802.1q")
    assert run_isolated(work) == [{"in": [3, passed], "out": [3, passed]}] * 3


@pytest.mark.parametrize("line", [{"down": {"loss": "50%"}}, {"delay": "2ms", "down": {"loss": "50%"}}], ids=["kernel", "user"])
def test_packets_lost_on_the_link_to_a_router_never_reach_its_adapter(kind: TrunkKind, line: dict[str, Any]) -> None:
    def work() -> list[Any]:
        silence_devices()
        network = EmulatedNetwork(plan_emulation(routed(FULL, **line), trunk=kind))
        return [deliver(network, "sender", "r", [bytes(100)] * 20), adapter_counters(network, "g1")]

    received, passed = run_isolated(work)
    # 20 packets at 50 %: all or none arrive with a probability of 2e-6.
    assert 0 < received < 20
    assert passed["in"][0] == passed["out"][0] == received


def test_a_half_duplex_router_forwards_half_of_its_rate_and_the_result_names_the_trunk(kind: TrunkKind) -> None:
    size, best = 1400, 0.5 * size_share(1400)
    found: list[float] = []
    # A busy machine forwards less, so the best of some runs counts; none may exceed the rate.
    while len(found) < 3 and (not found or max(found) < 0.9 * best):
        run = flooded(kind, size)
        (router,) = [row for row in run.impairments if row.get("node") == "g1"]
        assert (router["trunk"], router["rate_by"]) == (kind, "ifb + htb")
        result = run.nodes["r"].result
        assert result is not None
        found.append((len(result["numbers"]) - 1) * size * 8 / result["seconds"] / RATE)
        assert found[-1] < 1.05 * best
    assert max(found) > 0.9 * best


def size_share(size: int) -> float:
    """Return the share of payload in a tagged frame on the link."""
    return size / wire_bytes(size, "ethernet-802.1q")


def flooded(kind: TrunkKind, size: int) -> Emulation:
    """Run a sender that exceeds the rate of the router's adapter."""
    return emulate(
        routed(HALF | {"queue": 60}),
        {"sender": SendingProgram(100_000, 0.7 * RATE / 8 / size, size=size), "r": ReceivingProgram()},
        codec=NumberCodec,
        port=SESSION,
        duration=1.5,
        over=lambda finished: False,
        seed=1,
        groups={GROUP.name.partition(":")[0]: ["sender", "r"]},
        trunk=kind,
    )


def test_the_first_supported_trunk_is_chosen_vlan_before_vxlan(monkeypatch: pytest.MonkeyPatch) -> None:
    has = [kind for kind in get_args(TrunkKind) if is_supported(kind)]
    assert choose_trunk(routed(HALF)) == has[0]
    lacking(monkeypatch, "802.1Q")
    assert choose_trunk(routed(HALF)) == next(kind for kind in has if kind != "vlan")
    lacking(monkeypatch, "vxlan")
    assert choose_trunk(routed(HALF)) == "ifb"
    # Without a router with one adapter nothing is tried.
    assert choose_trunk(routed({"mac": "dual"}), "vlan") == "ifb"


@pytest.mark.parametrize(("wanted", "feature"), [("vlan", "802.1Q"), ("vxlan", "vxlan")])
def test_a_requested_trunk_that_is_not_supported_is_refused(
    wanted: str, feature: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking(monkeypatch, feature)
    scenario = "experiments/scenarios/router-single-mac.yaml"
    assert invoke(["run", scenario, "--on", "emu", "--set", f"emu.trunk={wanted}"]) == 3
    said = capsys.readouterr().err
    assert f"emu.trunk: {wanted} is not supported here" in said
    assert f"sudo modprobe -a {TRUNKS[feature].module}" in said


def test_an_unknown_trunk_is_refused_with_its_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["run", "experiments/scenarios/router-single-mac.yaml", "--set", "emu.trunk=rope"]) == 2
    assert "emu.trunk" in capsys.readouterr().err


def test_the_default_trunk_does_not_change_the_digest(capsys: pytest.CaptureFixture[str]) -> None:
    digests = []
    for sets in ([], ["--set", "emu.trunk=any"], ["--set", "emu.trunk=ifb"]):
        assert (
            invoke(["run", "experiments/scenarios/router-single-mac.yaml", "--json", "--set", "workload.size=10kB", *sets]) == 0
        )
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1] != digests[2]
