"""schemathesis sends a registry requests that its OpenAPI document allows, and requests that it does not."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.emu.admin.served import GROUP, admin

schemathesis: Any = pytest.importorskip("schemathesis", reason="schemathesis is missing: pip install 'mcastlab[dev]'")

EXAMPLES = 40
RULES = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start a registry with a tunnel in it."""
    with admin("--lease", "1h") as address:
        httpx.post(f"{address}nodes", json={"name": "t", "site": 1, "port": 7000, "group": GROUP}, trust_env=False)
        yield address


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/nodes", {"positive": {201, 409}, "negative": {400, 422}}),
        ("GET", "/nodes", {"positive": {200, 304}, "negative": {200, 304, 422}}),
        ("PUT", "/nodes/{number}", {"positive": {200, 404}, "negative": {400, 422}}),
        ("DELETE", "/nodes/{number}", {"positive": {204, 404}, "negative": {422}}),
        ("PUT", "/nodes/{number}/paused", {"positive": {200, 404}, "negative": {400, 422}}),
        ("GET", "/metrics", {"positive": {200}}),
    ],
)
def test_no_answer_contradicts_the_document(url: str, method: str, path: str, expected: dict[str, set[int]]) -> None:
    """All but /events, which does not end; see test_web."""
    operation = schemathesis.openapi.from_url(f"{url}openapi.json")[path][method]
    for mode, statuses in expected.items():
        assert ask(operation, mode) <= statuses


def ask(operation: Any, mode: str) -> set[int]:
    """Send requests that the document allows ("positive") or does not, check the answers, and return their statuses."""
    found: Counter[int] = Counter()

    @RULES
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode.upper()]))
    def check(case: Any) -> None:
        answer = case.call(timeout=10)
        found[answer.status_code] += 1
        case.validate_response(answer)

    check()
    return set(found)
