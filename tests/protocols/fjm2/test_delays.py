"""Subscribers that answer late for a while, as on a loaded machine: the estimate of the round-trip time, and the end."""

from typing import Any

import pytest

from protocols.messaging import PublisherIdle
from tests.protocols.fjm2.scene import Scene, message


def delayed(seconds: float, delay: float = 3.0, **settings: Any) -> Scene:
    """Return a scene that publishes while packets take `delay` seconds for so many seconds, and then no time."""
    scene = Scene(robust=20, **settings)
    scene.publish(message(0))
    scene.run(2.0)
    scene.bench.delay = delay
    scene.publish(*(message(number) for number in range(1, 50)))
    scene.run(seconds)
    scene.bench.delay = 0.002
    return scene


def grtt_of(scene: Scene) -> float:
    """Return the round-trip time that the publisher advertises."""
    return float(scene.publisher.snapshot(scene.bench.now).values["grtt"])


def test_the_end_is_announced_within_half_a_minute_whatever_the_delay_was() -> None:
    scene = delayed(20.0)
    scene.publish(message(50))
    scene.events.clear()
    began = scene.bench.now
    scene.run(400.0, over=lambda: PublisherIdle() in scene.events)
    assert PublisherIdle() in scene.events
    assert scene.bench.now - began < 30.0
    assert scene.numbers() == list(range(51))


def test_a_delay_that_has_passed_is_forgotten_step_by_step_without_waiting_for_a_rare_probe() -> None:
    scene = delayed(10.0, 0.3, probe_min=0.5, grtt_max=10.0)
    assert grtt_of(scene) == pytest.approx(0.45, rel=0.4)
    number = 50
    for _ in range(30):
        scene.publish(message(number))
        number += 1
        scene.run(1.0)
    assert grtt_of(scene) < 0.3
