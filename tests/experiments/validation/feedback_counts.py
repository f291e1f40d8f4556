"""Expected feedback messages per round of congestion control, by numerical integration. It shares no code with the project.

    python -m tests.experiments.validation.feedback_counts

prints the entries of the family `cc_feedback_count` of tests/vectors/reference.json. All n receivers begin a back-off at the
same time, with equal rates, and one is silent if it hears another before its own is over, which takes `d`. The random part of
the back-off is 3/4 of an exponential one, truncated at T = 8 GRTT (RFC 5401 3.2.2, RFC 4654 2.5); the part that depends on the
rate is the same for all.
"""

import json
from typing import Any

import numpy as np

__all__ = ["entries", "expected_feedback"]

SPREAD = 0.75 * 8.0
STEPS = 400_000
SOURCE = "RFC 4654 2.5 with the timer of RFC 5401 3.2.2; tests/experiments/validation/feedback_counts.py"
FORMULA = "n int_0^T f(z) (1-F(z-d))^(n-1) dz, F(z)=(e^(lam z/T)-1)/(e^lam-1), lam=ln(n)+1, T=6 GRTT"


def expected_feedback(receivers: int, delay: float) -> float:
    """Return the mean number of messages; `delay` is in GRTT, as the times here."""
    rate = np.log(receivers) + 1.0
    z = (np.arange(STEPS) + 0.5) * (SPREAD / STEPS)
    density = rate / SPREAD * np.exp(rate * z / SPREAD) / np.expm1(rate)
    earlier = np.expm1(rate * np.clip(z - delay, 0.0, None) / SPREAD) / np.expm1(rate)
    return float(receivers * np.sum(density * (1.0 - earlier) ** (receivers - 1)) * (SPREAD / STEPS))


def entries() -> list[dict[str, Any]]:
    """Return the entries of the family."""
    cases = [(receivers, delay, 0.1) for receivers in (10, 100, 1000) for delay in (0.5, 1.0)]
    cases += [(100, 0.5, 0.005), (100, 0.5, 0.5)]
    return [
        {
            "id": f"cc.feedback.G{receivers}.d{delay:g}.rtt{rtt:g}",
            "family": "cc_feedback_count",
            "quantity": "mean feedback messages of n receivers with equal rates after one probe",
            "source": SOURCE,
            "formula": FORMULA,
            "params": {"G": receivers, "d_over_GRTT": delay, "rtt": rtt},
            "value": float(f"{expected_feedback(receivers, delay):.8g}"),
            "unit": "messages",
            "tolerance": {"type": "stat", "rel": 0.04, "note": "accept if |sim-ref| < max(rel*ref, 4 standard errors)"},
            "kind": "exact",
        }
        for receivers, delay, rtt in cases
    ]


if __name__ == "__main__":
    print(",\n".join(json.dumps(entry) for entry in entries()))
