"""What moves through a network: a packet under way, its arrival at a time, and the way it takes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from protocols.machine import Address, Codec, Message
from sim.engine import Occurrence

if TYPE_CHECKING:
    from sim.endpoint import Endpoint
    from sim.fast.lookahead import Lookahead
    from sim.host import SimHost
    from sim.link import Hop, Places

__all__ = ["Flight", "Arrival", "Route", "through_wire"]


class Flight:
    """One packet on its way: what all its copies share."""

    __slots__ = ("host", "identity", "message", "order", "route", "size", "source")

    def __init__(self, message: Message, identity: int | None, size: int, host: "SimHost", route: "Route", order: int) -> None:
        self.message = message
        self.identity = identity
        self.size = size
        self.host = host
        """Who sent it."""
        self.source = host.name
        self.route = route
        self.order = order
        """Orders arrivals of one instant; counts up with each that is posted."""


class Arrival(Occurrence):
    """Copies of a packet that arrive at one time: `content` is the flight."""

    __slots__ = ("places",)

    def __init__(self, callbacks: "tuple[Callable[[Arrival], None], ...]", flight: Flight, places: "Places") -> None:
        self.callbacks = callbacks
        self.content = flight
        self.places = places


class Route:
    """The way from one leaf to one address; `links` are the next links at each switch, found when first needed."""

    __slots__ = ("explored", "first", "home", "links", "lookahead", "root", "target", "to")

    def __init__(self, home: "Endpoint", to: Address, target: "SimHost | None", root: str, first: "Sequence[Hop]") -> None:
        self.home = home
        self.to = to
        self.target = target
        self.root = root
        """Graph node the tree begins at."""
        self.first = first
        """The links a plain host sends on."""
        self.links: dict[str, Sequence[Any]] = {}
        self.lookahead: Lookahead | None = None
        """Carries what a sender foresees, if this is a way for it; known when `explored`."""
        self.explored = False


def through_wire(codec: Codec, message: Message, size: int) -> Message:
    """The message encoded and decoded; its size is checked."""
    data = codec.encode(message)
    assert len(data) == size, f"{message.kind} says it has {size} bytes, and has {len(data)}"
    return codec.decode(data)
