"""What a relay and a broker have in common: their clients get every message, connect again and report what was lost."""

import pytest

from protocols.messaging import (
    MessageAccepted,
    MessageDropped,
    MessageExpired,
    PublisherIdle,
    Subscribed,
    SubscriptionEnded,
)
from tests.protocols.central.scene import BROKER, RELAY, Central, Scene

BOTH = pytest.mark.parametrize("central", [RELAY, BROKER], ids=lambda central: central.role)


@BOTH
def test_every_subscriber_gets_every_message_in_order(central: Central) -> None:
    scene = Scene(central, ("r1", "r2", "r3"))
    scene.publish(*range(20))
    scene.bench.run(1.0)
    assert [scene.received(name) for name in ("r1", "r2", "r3")] == [list(range(20))] * 3
    assert scene.kinds("p", MessageAccepted) == [MessageAccepted(number) for number in range(20)]
    assert scene.events["p"][-1] == PublisherIdle()
    assert scene.server.counts()["copies_sent"] == 60


@BOTH
def test_clients_connect_again_after_a_crash_of_the_server_and_report_what_they_lost(central: Central) -> None:
    scene = Scene(central, ("r1",), retry=0.1)
    scene.publish(1)
    scene.bench.run(0.2)
    scene.publish(2)
    scene.bench.crash("m")
    scene.bench.run(0.4)
    assert scene.kinds("r1", SubscriptionEnded) == [SubscriptionEnded(0, "reset")]
    assert scene.kinds("p", MessageDropped) == [MessageDropped(2, "reset")]
    scene.publish(3)
    scene.start_server()
    scene.bench.run(3.0)
    assert scene.kinds("r1", Subscribed) == [Subscribed(0), Subscribed(0)]
    scene.publish(4)
    scene.bench.run(4.0)
    # Message 3 waited for the connection, and the publisher may have been back before the subscriber.
    assert scene.received("r1") in ([1, 3, 4], [1, 4])
    assert scene.kinds("p", MessageAccepted)[-1] == MessageAccepted(4)


@BOTH
def test_expired_messages_are_not_delivered(central: Central) -> None:
    scene = Scene(central, ("r1",))
    scene.publish(1, expires_at=0.105)
    scene.publish(2, expires_at=10.0)
    scene.bench.run(1.0)
    assert scene.received("r1") == [2]
    scene.publish(3, expires_at=0.01)
    assert scene.kinds("p", MessageExpired) == [MessageExpired(2, 3)]
