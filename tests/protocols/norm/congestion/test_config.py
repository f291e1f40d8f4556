"""The settings of congestion control."""

from typing import Any

import pytest

from protocols.errors import ConfigError
from protocols.norm.config import NormConfig


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"congestion": "tcp"}, "congestion: 'tcp' is not allowed; one of none, norm, loss-tolerant, ecn"),
        ({"fair_to": "bbr"}, "fair_to: 'bbr' is not allowed; one of reno, cubic"),
        ({"rate_min": 2e6, "rate_max": 1e6}, r"rate_min: 2000000.0 is not allowed; at most rate_max \(1e\+06\)"),
        ({"congestion": "norm", "probing": "passive"}, "probing: 'passive' is not allowed; active with congestion 'norm'"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        NormConfig(**settings)
