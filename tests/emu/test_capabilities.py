"""`mcastlab doctor` finds capabilities by trying them, and names the command that installs what is missing."""

import json
import resource

import pytest

from emu import capabilities, requirements
from emu.capabilities import Capability, list_capabilities
from emu.namespaces import run_isolated
from emu.requirements import KernelFeature, run
from emu.udp import BUFFERS
from experiments.cli import invoke
from protocols.errors import UnsupportedError


def by_name(found: list[Capability]) -> dict[str, Capability]:
    return {item.name: item for item in found}


@pytest.mark.emu
def test_doctor_reports_that_emulation_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["emulation"] is True
    names = {item["name"] for item in report["findings"]}
    assert {"root", "mnexec", "bridge", "netem", "802.1Q", "openvswitch", "mroute", "tap", "ifb", "cgroups"} <= names
    assert {"libnorm1", "tshark", "java", "mosquitto", "activemq", "iperf"} <= names


@pytest.mark.emu
def test_every_missing_capability_has_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    missing = [item for item in list_capabilities() if not item.present]
    assert all(item.remedy for item in missing)
    invoke(["doctor"])
    out = " ".join(capsys.readouterr().out.replace("\\\n", "").split())
    for item in missing:
        assert f"{item.name} ({item.reason}): {item.remedy}" in out


@pytest.mark.emu
def test_netem_is_present_if_the_kernel_supports_it() -> None:
    def takes_it() -> bool:
        return "netem" in run("tc qdisc add dev lo root netem delay 1ms 2>/dev/null; tc qdisc show dev lo")

    assert by_name(list_capabilities())["netem"].present == run_isolated(takes_it)


@pytest.mark.emu
def test_doctor_exits_3_if_a_needed_kernel_feature_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = KernelFeature("time travel", "sch_tardis", ("tc qdisc add dev lo root tardis",))
    monkeypatch.setattr(capabilities, "KERNEL", {"time": lacking})
    assert invoke(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "sudo modprobe -a sch_tardis" in out
    assert "does not work" in out


def test_limits_that_are_too_low_are_named_with_what_raises_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "_namespaces", list)
    monkeypatch.setattr(capabilities, "granted_buffers", lambda wanted: 212_992)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        found = by_name(list_capabilities())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    lacking = {name: (found[name].present, found[name].reason) for name in ("descriptors", "buffers", "processors")}
    assert lacking == {
        "descriptors": (False, "limit 256"),
        "buffers": (False, f"212992 of {BUFFERS} bytes"),
        "processors": (False, "1"),
    }
    assert found["descriptors"].remedy == "ulimit -n 1024"
    assert f"net.core.rmem_max={BUFFERS}" in found["buffers"].remedy


def test_missing_namespaces_have_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(work: object) -> None:
        raise UnsupportedError("namespaces refused")

    monkeypatch.setattr(capabilities, "run_isolated", refuse)
    found = by_name(list_capabilities())["namespaces"]
    assert (found.present, found.needed, found.remedy) == (False, True, "run as root")


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "run_isolated", lambda work: [])
    monkeypatch.setattr(requirements, "SYSTEM", ())
    monkeypatch.setenv("PATH", "/nowhere")
    found = by_name(list_capabilities())
    assert not found["brctl"].present
    assert found["brctl"].remedy.endswith("bridge-utils")
    assert not found["tshark"].present
