"""mcastlab, a laboratory for reliable multicast: the public interface for programs and protocols.

>>> import mcastlab
>>> result = mcastlab.run("lan-file")
>>> result.completion_time

On a real network, in an asyncio program:

>>> async with mcastlab.session("239.7.7.7:6003", "eth0") as session:
...     await session.sent(await session.send_file("photo.bin"))

Each name is imported at its first use, so `import mcastlab` itself is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emu.udp_options import UdpOptions
    from experiments.analysis.formulas import FORMULAS
    from experiments.compare.comparison import Comparison
    from experiments.compare.twin.verdict import TwinVerdict
    from experiments.contract.fake_host import FakeHost
    from experiments.running.content import Accounted, Extent, Generated, MemorySink
    from experiments.running.result import Row
    from experiments.session.connection import DistributorConnection
    from experiments.session.deliveries import Update, Updates, UpdateStream
    from experiments.session.events import ContentReceived, Delivery, ObjectRefused, StreamOpened
    from experiments.session.incoming_stream import IncomingStream
    from experiments.session.outgoing_stream import OutgoingStream
    from experiments.session.session import Session
    from experiments.session.subscription_stream import CallbackFailed, DeliveryOverflowed
    from experiments.session.transmission import Transmission
    from experiments.sweep.run.driver import SweepSummary
    from mcastlab._connections import distributor
    from mcastlab._result import Result
    from mcastlab._runs import compare, run, twin
    from mcastlab._scenarios import Scenario, cases, load, scenarios, topology
    from mcastlab._sessions import session
    from mcastlab._sweeps import analyse, open_sweep, sweep
    from protocols.acknowledgement import AckRequest
    from protocols.arq.config import AConfig, N1Config, N2Config
    from protocols.delivery import deliver
    from protocols.distributor.config import DistributorConfig
    from protocols.distributor.events import ConnectionNagging, PublisherGone, PublisherHeard, QueueOverflowed, SegmentsLost
    from protocols.errors import (
        ConfigError,
        LivelockError,
        McastlabError,
        TransferError,
        UnsupportedError,
        UsageError,
        WireError,
    )
    from protocols.events import (
        AcksCompleted,
        CommandReceived,
        CommandSent,
        Event,
        FlushCompleted,
        InfoReceived,
        NodeAcknowledged,
        NodeClash,
        NodeUnacknowledged,
        ObjectAborted,
        ObjectOpened,
        ObjectPurged,
        ObjectReceived,
        ObjectsAborted,
        ObjectSent,
        SenderActive,
        SenderHeard,
        SenderReset,
        SenderSilent,
    )
    from protocols.hosting import Host
    from protocols.machine import (
        Address,
        Codec,
        Content,
        Group,
        Machine,
        Message,
        Offer,
        Packet,
        Ports,
        Sender,
        Sink,
        Source,
    )
    from protocols.messaging import Guarantees, MessageReceived, Publication, Publisher, Subscriber, Subscription
    from protocols.norm import NormCodec, NormConfig, NormReceiver, NormSender
    from protocols.registry import protocol
    from protocols.rng import Rng
    from protocols.roles import Role, RoleContext
    from protocols.settings import Setting, check, setting
    from protocols.snapshot import Measure, Rates, Snapshot
    from protocols.spec import ProtocolSpec
    from protocols.srm.config import SrmConfig
    from protocols.tcp.options import TcpOptions
    from sim.faults import Faults
    from sim.host import SimHost
    from sim.network import Network
    from topologies.spec import Topology

    __version__: str

__all__ = [
    "AConfig",
    "Accounted",
    "AckRequest",
    "Address",
    "CallbackFailed",
    "Codec",
    "Comparison",
    "ConfigError",
    "ConnectionNagging",
    "Content",
    "ContentReceived",
    "Delivery",
    "DeliveryOverflowed",
    "DistributorConfig",
    "DistributorConnection",
    "Event",
    "Extent",
    "FORMULAS",
    "FakeHost",
    "Faults",
    "FlushCompleted",
    "Generated",
    "Group",
    "Guarantees",
    "Host",
    "IncomingStream",
    "InfoReceived",
    "LivelockError",
    "Machine",
    "McastlabError",
    "Measure",
    "MemorySink",
    "Message",
    "MessageReceived",
    "N1Config",
    "N2Config",
    "Network",
    "NormCodec",
    "NormConfig",
    "NormReceiver",
    "NormSender",
    "ObjectAborted",
    "ObjectOpened",
    "ObjectPurged",
    "ObjectReceived",
    "ObjectRefused",
    "ObjectSent",
    "ObjectsAborted",
    "Offer",
    "OutgoingStream",
    "Packet",
    "Ports",
    "ProtocolSpec",
    "Publication",
    "Publisher",
    "PublisherGone",
    "PublisherHeard",
    "QueueOverflowed",
    "Rates",
    "Result",
    "Rng",
    "Role",
    "RoleContext",
    "Row",
    "Scenario",
    "SegmentsLost",
    "Sender",
    "SenderHeard",
    "SenderReset",
    "SenderSilent",
    "Session",
    "Setting",
    "SimHost",
    "Sink",
    "Snapshot",
    "Source",
    "SrmConfig",
    "StreamOpened",
    "Subscriber",
    "Subscription",
    "SweepSummary",
    "TcpOptions",
    "Topology",
    "TransferError",
    "Transmission",
    "TwinVerdict",
    "UdpOptions",
    "UnsupportedError",
    "Update",
    "UpdateStream",
    "Updates",
    "UsageError",
    "WireError",
    "__version__",
    "analyse",
    "cases",
    "check",
    "compare",
    "deliver",
    "distributor",
    "load",
    "open_sweep",
    "protocol",
    "run",
    "scenarios",
    "session",
    "setting",
    "sweep",
    "topology",
    "twin",
    "AcksCompleted",
    "CommandReceived",
    "CommandSent",
    "NodeAcknowledged",
    "NodeClash",
    "NodeUnacknowledged",
    "SenderActive",
]

_HOMES = {
    "emu.udp_options": ("UdpOptions",),
    "experiments.analysis.formulas": ("FORMULAS",),
    "experiments.compare.comparison": ("Comparison",),
    "experiments.compare.twin.verdict": ("TwinVerdict",),
    "experiments.contract.fake_host": ("FakeHost",),
    "experiments.running.content": ("Accounted", "Extent", "Generated", "MemorySink"),
    "experiments.running.result": ("Row",),
    "experiments.session.events": ("ContentReceived", "Delivery", "ObjectRefused", "StreamOpened"),
    "experiments.session.incoming_stream": ("IncomingStream",),
    "experiments.session.outgoing_stream": ("OutgoingStream",),
    "experiments.session.session": ("Session",),
    "experiments.session.transmission": ("Transmission",),
    "experiments.sweep.run.driver": ("SweepSummary",),
    "mcastlab._result": ("Result",),
    "mcastlab._runs": ("compare", "run", "twin"),
    "mcastlab._scenarios": ("Scenario", "cases", "load", "scenarios", "topology"),
    "mcastlab._sessions": ("session",),
    "mcastlab._sweeps": ("analyse", "open_sweep", "sweep"),
    "protocols.acknowledgement": ("AckRequest",),
    "protocols.arq.config": ("AConfig", "N1Config", "N2Config"),
    "protocols.delivery": ("deliver",),
    "protocols.errors": (
        "ConfigError",
        "LivelockError",
        "McastlabError",
        "TransferError",
        "UnsupportedError",
        "UsageError",
        "WireError",
    ),
    "experiments.session.connection": ("DistributorConnection",),
    "experiments.session.deliveries": ("UpdateStream", "Update", "Updates"),
    "experiments.session.subscription_stream": ("CallbackFailed", "DeliveryOverflowed"),
    "mcastlab._connections": ("distributor",),
    "protocols.distributor.config": ("DistributorConfig",),
    "protocols.distributor.events": ("ConnectionNagging", "PublisherGone", "PublisherHeard", "QueueOverflowed", "SegmentsLost"),
    "protocols.events": (
        "AcksCompleted",
        "CommandReceived",
        "CommandSent",
        "Event",
        "FlushCompleted",
        "InfoReceived",
        "NodeAcknowledged",
        "NodeClash",
        "NodeUnacknowledged",
        "ObjectAborted",
        "ObjectOpened",
        "ObjectPurged",
        "ObjectReceived",
        "ObjectSent",
        "ObjectsAborted",
        "SenderActive",
        "SenderHeard",
        "SenderReset",
        "SenderSilent",
    ),
    "protocols.hosting": ("Host",),
    "protocols.machine": (
        "Address",
        "Codec",
        "Content",
        "Group",
        "Machine",
        "Message",
        "Offer",
        "Packet",
        "Ports",
        "Sender",
        "Sink",
        "Source",
    ),
    "protocols.messaging": ("Guarantees", "MessageReceived", "Publication", "Publisher", "Subscriber", "Subscription"),
    "protocols.norm": ("NormCodec", "NormConfig", "NormReceiver", "NormSender"),
    "protocols.registry": ("protocol",),
    "protocols.rng": ("Rng",),
    "protocols.roles": ("Role", "RoleContext"),
    "protocols.settings": ("Setting", "check", "setting"),
    "protocols.snapshot": ("Measure", "Rates", "Snapshot"),
    "protocols.spec": ("ProtocolSpec",),
    "protocols.srm.config": ("SrmConfig",),
    "protocols.tcp.options": ("TcpOptions",),
    "sim.faults": ("Faults",),
    "sim.host": ("SimHost",),
    "sim.network": ("Network",),
    "topologies.spec": ("Topology",),
}
"""Public names by the module that defines them."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:
    # Hidden from type checkers, which would accept any attribute.
    def __getattr__(name: str) -> Any:
        """Import and return a public name at its first use."""
        if name == "__version__":
            found = import_module("importlib.metadata").version("mcastlab")
        elif name in _MODULES:
            found = getattr(import_module(_MODULES[name]), name)
        else:
            raise AttributeError(f"module 'mcastlab' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Return every public name, imported or not."""
    return sorted(__all__)
