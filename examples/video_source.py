"""A SimPy process beside the simulator: a video source that hands a sender one picture every 40 ms.

    python -m examples.video_source

The source is a SimPy process in the same `simpy.Environment` as the network; it submits objects by `host.call`, as every
application does. Each picture is an object, and every twelfth is larger. At the end the delays of the pictures are printed.
"""

from collections.abc import Generator
from statistics import mean
from typing import Any

import simpy

from mcastlab import (
    Accounted,
    Content,
    Event,
    Extent,
    Group,
    Network,
    NormConfig,
    NormReceiver,
    NormSender,
    ObjectReceived,
    SimHost,
    topology,
)

PICTURES, INTERVAL = 100, 0.04
LARGE, SMALL = 40_000, 8_000
GROUP = Group("239.0.0.1:6003")


class Viewer:
    """Record the time at which each picture was received."""

    def __init__(self, host: SimHost) -> None:
        self.host = host
        self.arrived: dict[int, float] = {}

    def on_event(self, event: Event) -> None:
        """Record complete pictures."""
        if isinstance(event, ObjectReceived):
            self.arrived[event.object_id] = self.host.now


def video(
    env: simpy.Environment, host: SimHost, sender: NormSender, shown: dict[int, float]
) -> Generator[simpy.Event, Any, None]:
    """Submit a picture every `INTERVAL` seconds and record the time of each in `shown`, by object id."""
    for number in range(PICTURES):
        size = SMALL if number % 12 else LARGE
        picture = host.call(sender.submit, Content(Extent(size), b"", is_file=False))
        shown[picture] = env.now
        yield env.timeout(INTERVAL)


def play(receivers: int = 20, loss: str = "2%") -> list[list[float]]:
    """Run the session and return the delays of all pictures at each viewer, in seconds."""
    env = simpy.Environment()
    link = {"rate": "20Mbit", "delay": "10ms", "down": {"loss": loss}}
    graph = topology("star", receivers=receivers, link=link)
    network = Network(graph, seed=1, environment=env)
    config = NormConfig(rate=1.25e6, grtt=0.05, gsize=receivers, block=16, parity=8)
    viewers = []
    for node, name in enumerate(graph.hosts[1:], 2):
        viewer = Viewer(network.host(name))
        viewers.append(viewer)
        viewer.host.run(NormReceiver(viewer.host, config, node, GROUP), viewer.on_event, lambda offer: Accounted())
    host = network.host("sender")
    sender = NormSender(host, config, 1, GROUP)
    host.run(sender, lambda event: None)
    shown: dict[int, float] = {}
    env.process(video(env, host, sender, shown))
    network.run(until=PICTURES * INTERVAL + 10.0)
    return [[viewer.arrived[picture] - shown[picture] for picture in sorted(viewer.arrived)] for viewer in viewers]


def main() -> None:
    """Run the session at three loss probabilities and print the delays."""
    for loss in ("0%", "2%", "10%"):
        delays = sorted(delay for viewer in play(loss=loss) for delay in viewer)
        late = delays[int(0.99 * (len(delays) - 1))]
        print(
            f"loss {loss:>3}: {len(delays)} pictures, mean delay {mean(delays) * 1e3:.0f} ms, 99 % within {late * 1e3:.0f} ms"
        )


if __name__ == "__main__":
    main()
