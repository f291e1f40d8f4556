"""Missing programs, packages and kernel features are named with the command that installs them."""

import pytest

from emu import requirements
from emu.namespaces import run_isolated
from emu.requirements import KernelFeature, check_kernel, check_tools
from protocols.errors import UnsupportedError


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "SYSTEM", ())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnsupportedError, match="mnexec, brctl") as caught:
        check_tools()
    assert str(caught.value).endswith("bridge-utils ethtool iproute2 mininet net-tools")


def test_a_missing_python_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "TOOLS", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"pip install 'mcastlab\[emu\]'"):
        check_tools()


@pytest.mark.emu
def test_feature_probes_leave_the_network_configuration_unchanged() -> None:
    def work() -> list[str]:
        before = requirements.run("ip link; tc qdisc show")
        check_kernel(requirements.KERNEL)
        return [before, requirements.run("ip link; tc qdisc show")]

    before, after = run_isolated(work)
    assert before == after


@pytest.mark.emu
def test_a_missing_kernel_feature_is_named_with_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = KernelFeature("time travel", "sch_tardis", ("tc qdisc add dev lo root tardis",))
    monkeypatch.setitem(requirements.KERNEL, "time", lacking)
    with pytest.raises(UnsupportedError, match=r"time travel.*unknown.*sudo modprobe -a sch_tardis"):
        run_isolated(lambda: check_kernel(["time"]))
