"""The closed forms agree with independently computed values."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import comb, expm1, log
from typing import Any

import numpy as np
import pytest

from experiments.theory import links as theory_links
from experiments.theory import multicast as theory
from experiments.validation.references import Reference, read_references

Form = Callable[[Mapping[str, Any]], Mapping[str, float]]


def _nacks(params: Mapping[str, Any]) -> Mapping[str, float]:
    group = params["G"]
    return {"value": theory.nacks(group, params["K"], params["d_over_GRTT"], params.get("losers", group))}


def _first(params: Mapping[str, Any]) -> Mapping[str, float]:
    return {"value": theory.first_nack(params["G"], params["K"], params.get("losers", params["G"]))}


def _loss(params: Mapping[str, Any]) -> float:
    return float(params["p"] if "p" in params else params["p_tail"])


def _repetition(params: Mapping[str, Any]) -> Mapping[str, float]:
    return {"value": theory.repetition(params["R"], _loss(params), params.get("p_shared", 0.0))}


def _integrated(params: Mapping[str, Any]) -> Mapping[str, float]:
    shared = params.get("p_shared", 0.0)
    return {"value": theory.integrated(params["R"], _loss(params), params["k"], params.get("a", 0), shared)}


def _first_pass(params: Mapping[str, Any]) -> Mapping[str, float]:
    cost, fails = theory.first_pass(params["R"], params["p"], params["k"], params["n"])
    return {"first_pass_cost": cost, "p_any_fail": fails}


def _residual(params: Mapping[str, Any]) -> Mapping[str, float]:
    k, n, p = params["k"], params["n"], params["p"]
    return {"q": theory.residual_loss(k, n, p), "p_block_fail": theory.block_failure(k, n, p)}


def _times(params: Mapping[str, Any]) -> Mapping[str, float]:
    times = theory.tkp_times(params["R"], params["p"], params["costs"])
    found: dict[str, float] = {}
    for name, (sender, receiver) in times.items():
        found |= {f"{name}.sender_time": sender, f"{name}.receiver_time": receiver}
        found[f"{name}.throughput"] = 1 / max(sender, receiver)
    return found


def _srm(params: Mapping[str, Any]) -> Mapping[str, float]:
    members, c2 = params["G"], params["C2"]
    return {
        "requests": theory.srm_requests(members, c2),
        "first_request_delay": theory.srm_first_request(members, c2),
    }


def _ethernet(params: Mapping[str, Any]) -> Mapping[str, float]:
    payload, rate, mtu = params["payload"], params["C_bps"], params["mtu"]
    return {
        "frames": len(theory_links.fragments(payload, mtu)),
        "wire_bytes": theory_links.ethernet_wire_bytes(payload, mtu=mtu),
        "goodput_bps": theory_links.ethernet_goodput(payload, rate, mtu=mtu),
        "single_mac_vlan_bps": theory_links.ethernet_goodput(payload, rate, tagged=True, mtu=mtu) / 2,
    }


def _implosion(params: Mapping[str, Any]) -> Mapping[str, float]:
    service = 8 * params["frame_wire_bytes"] / params["link_bps"]
    drops, last = theory_links.implosion(params["G"], params["queue_limit"], service)
    return {"drops": drops, "last_delay_s": last}


FORMS: dict[str, Form] = {
    "nack_count": _nacks,
    "nack_count_delay": _nacks,
    "nack_count_subset": _nacks,
    "nack_count_unicast": _nacks,
    "nack_latency": _first,
    "nack_latency_subset": _first,
    "arq_nofec": _repetition,
    "arq_shared_loss": _repetition,
    "goodput_arq": lambda params: {"value": 1 / theory.repetition(params["R"], params["p"])},
    "arq_rounds": lambda params: {"value": theory.arq_rounds(params["R"], params["p"], params["k"])},
    "fec_integrated_inf": _integrated,
    "fec_integrated_proactive": _integrated,
    "fec_shared_loss": _integrated,
    "fec_layered": lambda params: {"value": theory.layered(params["R"], params["p"], params["k"], params["n"])},
    "fec_finite_first_block": _first_pass,
    "fec_residual": _residual,
    "tkp_counts": lambda params: dict(
        zip(("ACK_A", "NAK_N1", "NAK_N2"), theory.tkp_counts(params["R"], params["p"]), strict=True)
    ),
    "tkp_throughput": _times,
    "srm_star": _srm,
    "eth_limit": _ethernet,
    "implosion_drop": _implosion,
    "mm1": lambda params: {"value": theory_links.mm1_wait(params["rho"])},
    "md1": lambda params: {"value": theory_links.md1_wait(params["rho"])},
    "mm1k": lambda params: dict(zip(("p_drop", "mean_number"), theory_links.mm1k(params["rho"], params["K"]), strict=True)),
    "md1k": lambda params: dict(
        zip(("p_drop", "mean_number", "mean_wait"), theory_links.md1k(params["rho"], params["K"]), strict=True)
    ),
    "gilbert_elliott": lambda params: dict(
        zip(
            ("loss", "mean_burst", "mean_gap"),
            theory_links.gilbert_elliott(params["p"], params["r"], params["loss_bad"], params["loss_good"]),
            strict=True,
        )
    ),
}


@pytest.mark.parametrize("family", FORMS)
def test_closed_forms_agree_with_independent_values(family: str) -> None:
    references = [reference for reference in read_references() if reference.family == family]
    assert references
    for reference in references:
        for name, value in FORMS[family](reference.params).items():
            assert value == pytest.approx(reference.values[name], rel=2e-6, abs=1e-12), f"{reference.id} {name}"


def _approximations() -> list[Reference]:
    return [reference for reference in read_references() if reference.family == "nack_rfc_approx"]


def test_approximations_agree_with_the_printed_values_of_the_standards() -> None:
    for reference in _approximations():
        unicast = "unicast" in reference.id
        value = theory.nacks_approximate(reference.params["G"], reference.params["K"], unicast=unicast)
        assert value == pytest.approx(reference.values["value"], rel=1e-6), reference.id


def test_quantiles_and_distribution_of_the_back_off_are_inverse_functions() -> None:
    for reference in read_references():
        if reference.family == "nack_backoff_fn" and "u" in reference.params:
            spread, group, u = reference.params["T"], reference.params["G"], reference.params["u"]
            z = theory.backoff_quantile(u, spread, group)
            assert z == pytest.approx(reference.values["value"], rel=1e-6, abs=1e-9)
            assert theory.backoff_cdf(z, spread, group) == pytest.approx(u, abs=1e-9)


@pytest.mark.parametrize("p", [1.0, 1.5, -0.1, float("nan")])
def test_sums_without_an_end_are_refused(p: float) -> None:
    for form in (
        lambda: theory.repetition(3, p),
        lambda: theory.integrated(3, p, 64),
        lambda: theory.nacks_independent(100, 4, 0.5, 100, p),
        lambda: theory.tkp_counts(3, p),
    ):
        with pytest.raises(ValueError, match="have no expected number of transmissions"):
            form()


def test_coding_of_single_packets_is_repetition_up_to_losses_close_to_1() -> None:
    # More than 30,000 terms, each from the one before: computed one by one they would take minutes.
    assert theory.integrated(3, 0.999, 1) == pytest.approx(theory.repetition(3, 0.999), rel=1e-9)
    assert theory.integrated(1, 0.999, 64) == pytest.approx(1000.0, rel=1e-6)


@pytest.mark.parametrize(("group", "losers"), [(1, 1), (1e7, 7), (5e8, 1), (5e8, 1e6), (5e8, 5e8)])
def test_the_time_to_the_first_nack_is_exact_in_very_large_groups(group: float, losers: float) -> None:
    z = (np.arange(1_000_000) + 0.5) / 1_000_000
    mean = float(np.mean(np.exp(losers * np.log1p(-np.expm1((log(group) + 1) * z) / expm1(log(group) + 1)))))
    for steps in (2000, 20_000):
        assert theory.first_nack(group, 4, int(losers), steps) == pytest.approx(4 * mean, rel=1e-6)


@pytest.mark.parametrize(("k", "n"), [(990, 999), (990, 1000), (2500, 2520)])
def test_failures_of_blocks_of_any_length_are_sums_of_binomial_probabilities(k: int, n: int) -> None:
    p = Fraction(1, 100)
    decoded = float(sum(comb(n, i) * (1 - p) ** i * p ** (n - i) for i in range(k, n + 1)))
    assert theory.block_failure(k, n, 0.01) == pytest.approx(1 - decoded, rel=1e-8)
    assert theory.block_failure(k, n, 0.0) == 0.0
    assert theory.block_failure(k, n, 1.0) == 1.0


def test_large_blocks_need_at_least_what_the_channel_loses() -> None:
    assert theory.integrated(10, 0.0, 5000) == 1.0
    assert 1 / 0.99 < theory.integrated(10, 0.01, 5000) < 1.02
