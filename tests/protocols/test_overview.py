"""What a console shows of any protocol, found in its statistics."""

import pytest

from protocols.overview import bytes_of_content, counters_of, overviews
from protocols.snapshot import Snapshot


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"data_sent": 5, "repairs_sent": 2, "objects_sent": 1}, {"packets_sent": 7, "messages_sent": 1}),
        ({"messages_published": 9, "objects_sent": 1}, {"messages_sent": 9}),
        ({"messages_received": 4, "messages_unmatched": 3}, {"messages_received": 7}),
        ({"bytes_received": 0}, {"bytes_received": 0}),
        ({"grtt": 0.1}, {}),
    ],
)
def test_counters_that_mean_the_same_have_one_name(values: dict[str, float], found: dict[str, float]) -> None:
    assert counters_of(values) == found


def test_each_session_of_a_host_is_a_connection_and_a_layer_is_one() -> None:
    sender = Snapshot("sender", "7", {"silence": 1.0})
    receiver = Snapshot("session", "g1", {"nacks_sent": 3, "bytes_received": 10}, {"role": "receiver"}, (sender,))
    queue = Snapshot("queue", "messages", {"held": 4})
    publisher = Snapshot("session", "g2", {"messages_published": 2, "segments_queued": 5}, {"role": "publisher"}, (queue,))
    subscriber = Snapshot("session", "g2", {"subscriptions": 3, "messages_received": 8}, {"role": "subscriber"})
    layer = Snapshot("session", "", parts=(publisher, subscriber))
    first, second = overviews(Snapshot("host", "h", {}, {}, (receiver, layer)))
    assert (first.name, first.role, first.counters) == ("g1", "receiver", {"bytes_received": 10, "requests_out": 3})
    assert [member.name for member in first.members] == ["7"]
    assert (second.name, second.role, second.queue, second.subscriptions) == ("g2", "publisher and subscriber", 9, 3)
    assert second.counters == {"messages_sent": 2, "messages_received": 8}


def test_bytes_of_all_sessions_add_up() -> None:
    sessions = [Snapshot("session", str(number), {"bytes_sent": 5, "data_sent": 1}) for number in range(3)]
    assert bytes_of_content(Snapshot("host", "h", {"bytes_sent": 99}, {}, sessions)) == {"bytes_sent": 15}
    assert bytes_of_content(Snapshot("session", "g", {"bytes_received": 4})) == {"bytes_received": 4}
