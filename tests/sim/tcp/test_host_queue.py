"""Segments that wait to leave their own host: a kernel sends no second copy of them."""

from typing import Any

import pytest

from tests.sim.tcp.scenes import ENGINES, Scene, star

SAID_AT = 5.0


def served(engine: str, **link: Any) -> Scene:
    """Let a server say 1000 bytes to each of 20 clients at once, which takes its link 1.8 s."""
    link = {"rate": "100kbit", "delay": "1ms", **link}
    scene = Scene(star(21, **link), engine)
    server = scene.listener("r1")
    for number in range(20):
        # One after the other, so that no segment waits before.
        scene.at(0.1 * number, lambda name=f"r{number + 2}": scene.caller(name, "r1"))  # type: ignore[misc]
    scene.at(SAID_AT, lambda: scene.network.host("r1").call(server.say, 1000))
    scene.network.run(until=SAID_AT + 1.5)
    assert len(server.openings) == 20
    return scene


@pytest.mark.parametrize("engine", ENGINES)
def test_a_segment_that_waits_to_leave_its_host_for_longer_than_its_time_out_is_not_sent_again(engine: str) -> None:
    scene = served(engine)
    # Those of three clients have just left when their time-outs come; as they waited, each had one time-out or more.
    assert scene.tcp.retransmissions <= 3
    scene.network.run(until=30)
    assert all(talker.heard[talker.connections[0]] == [0] for name, talker in scene.talkers.items() if name != "r1")


def test_a_segment_that_left_its_host_and_was_lost_is_sent_again_although_others_wait() -> None:
    scene = served("fast", down={"loss": "10%"})
    scene.network.run(until=60)
    assert scene.tcp.retransmissions > 3
    assert all(talker.heard[talker.connections[0]] == [0] for name, talker in scene.talkers.items() if name != "r1")


def test_both_engines_have_equal_fingerprints_where_segments_wait_at_their_host() -> None:
    found = {served(engine, down={"loss": "10%"}).network.fingerprint() for engine in ENGINES}
    assert len(found) == 1
