"""The Prometheus endpoint: names, labels, bounds, and errors of the address."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from experiments.output import extras
from experiments.output.prometheus import LONGEST_NAME, MOST_PARTS, endpoint_of, serving
from protocols.errors import UnsupportedError, UsageError
from protocols.registry import protocol
from protocols.snapshot import Snapshot, buffers, measures_by_name

Sample = tuple[str, frozenset[tuple[str, str]], float]


@contextmanager
def served(snapshot: Snapshot) -> Iterator[str]:
    """Serve a snapshot on loopback."""
    with serving(("127.0.0.1", 0), lambda: snapshot, measures_by_name(protocol("norm").measures)) as port:
        yield f"http://127.0.0.1:{port}/metrics"


def scraped(snapshot: Snapshot) -> list[Sample]:
    """Return what Prometheus reads."""
    with served(snapshot) as url, urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    families = text_string_to_metric_families(text)
    return [(row.name, frozenset(row.labels.items()), row.value) for family in families for row in family.samples]


def labels(**given: str) -> frozenset[tuple[str, str]]:
    """Return labels as a set."""
    return frozenset(given.items())


def test_each_measure_has_its_unit_and_the_labels_of_the_parts_above_it() -> None:
    sender = Snapshot("sender", "17", {"data_lost": 2, "grtt": 0.02}, {"activity": "active"}, buffers({"b": (1, 2)}))
    session = Snapshot("session", "g", {"bytes_sent": 5}, {}, (sender, *buffers({"window": (3, 4)})))
    found = scraped(Snapshot("host", "h", parts=(session,)))
    assert set(found) == {
        ("mcastlab_session_sent_bytes_total", labels(host="h", session="g"), 5.0),
        ("mcastlab_sender_data_lost_total", labels(host="h", session="g", sender="17"), 2.0),
        ("mcastlab_sender_grtt_seconds", labels(host="h", session="g", sender="17"), 0.02),
        ("mcastlab_sender_activity", labels(host="h", session="g", sender="17", state="active"), 1.0),
        ("mcastlab_buffer_held", labels(host="h", session="g", sender="17", buffer="b"), 1.0),
        ("mcastlab_buffer_limit", labels(host="h", session="g", sender="17", buffer="b"), 2.0),
        ("mcastlab_buffer_held", labels(host="h", session="g", sender="", buffer="window"), 3.0),
        ("mcastlab_buffer_limit", labels(host="h", session="g", sender="", buffer="window"), 4.0),
    }


def test_names_from_the_network_are_values_of_labels_and_short() -> None:
    evil = 'a"} 1\nmcastlab_forged{x="\x1b[2J'
    parts = (Snapshot("publisher", evil, {"loss": 0.5}), Snapshot("publisher", "x" * 10_000, {"loss": 0.25}))
    found = scraped(Snapshot("session", "g", parts=parts))
    assert {name for name, _, _ in found} == {"mcastlab_publisher_loss_ratio"}
    names = [dict(row)["publisher"] for _, row, _ in found]
    assert names[0].startswith('a"} 1\\n') and "\x1b" not in names[0]  # noqa: PT018
    assert len(names[1]) == LONGEST_NAME


def test_too_many_parts_are_counted_and_not_shown() -> None:
    parts = [Snapshot("object", str(n), {"size": n}) for n in range(MOST_PARTS + 7)]
    found = scraped(Snapshot("session", "g", {}, {}, parts))
    assert len([name for name, _, _ in found if name == "mcastlab_object_size_bytes"]) == MOST_PARTS
    assert ("mcastlab_session_left_out", labels(session="g", of="object"), 7.0) in found


def test_the_endpoint_is_free_again_afterwards_and_an_address_in_use_is_refused() -> None:
    with served(Snapshot("session")) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with (
            pytest.raises(UsageError, match=f"--metrics: 127.0.0.1:{port} can't be used"),
            serving(("127.0.0.1", port), lambda: None, {}),
        ):
            pass
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))


def test_without_an_answer_there_is_an_empty_page() -> None:
    with serving(("127.0.0.1", 0), lambda: None, {}) as port, urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.read() == b""


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [("9100", ("127.0.0.1", 9100)), (":9100", ("127.0.0.1", 9100)), ("0.0.0.0:1", ("0.0.0.0", 1)), ("[::1]:80", ("::1", 80))],
)
def test_the_address_is_that_of_loopback_unless_it_is_given(text: str, endpoint: tuple[str, int]) -> None:
    assert endpoint_of(text) == endpoint


@pytest.mark.parametrize("text", ["", "host:", "0", "127.0.0.1:0", "1.2.3.4:65536", "127.0.0.1:-1", "x:y"])
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--metrics: value .* is not allowed"):
        endpoint_of(text)


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_installed", lambda name: name != "prometheus_client")
    with pytest.raises(UnsupportedError, match=r"--metrics needs prometheus_client; get it: pip install 'mcastlab\[metrics\]'"):
        endpoint_of("9100")
