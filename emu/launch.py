"""Run one emulation: isolated namespaces, the network in them, one process for each node, the results."""

import gc
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emu.attachment import Attendant, NamespaceServer
from emu.cpu_quota import CpuQuotas
from emu.disk import disk_opener
from emu.fault_injection import FaultInjector, HostCrash, InjectedFault
from emu.foreign_program import ForeignProgram
from emu.health import assess, kernel_drops
from emu.hold import HeldSession, Hold, NotStartedError, make_hold
from emu.namespaces import bind_file, run_isolated
from emu.netem_qdisc import examine_netem
from emu.network import EmulatedNetwork
from emu.node import NodeConfig, raise_priority
from emu.node_processes import NodeProcesses, NodeReport, ProgressCallback
from emu.packet_capture import CapturePoint, PacketCapture
from emu.plan import EmulationPlan, plan_emulation
from emu.requirements import check_kernel, check_tools, run
from emu.tap import check_tap
from emu.tcp_sockets import check_options
from emu.trunk import TrunkChoice, choose_trunk
from emu.udp import SEGMENTS
from protocols.errors import UnsupportedError, UsageError
from protocols.framing import Framing, LengthPrefixed
from protocols.hosting import Program
from protocols.machine import Codec
from protocols.tcp.options import TcpOptions
from topologies.disk_model import DiskModel
from topologies.keys import stream_key
from topologies.names import file_name
from topologies.node_models import HostModel
from topologies.spec import Topology

__all__ = ["Emulation", "NodeReport", "emulate"]

_HOSTS, _OWN_HOSTS = "/etc/hosts", "/run/hosts"
_DISKS = "/run/disks"


@dataclass(frozen=True, slots=True)
class Emulation:
    """Results of an emulation.

    `nodes` are the reports of the nodes, `impairments` what impaired each link and router, `node_counts` the packets
    offered to routers and hubs with a queue in the kernel, and those dropped, `setup` the seconds to build the network and
    `elapsed` those from time 0 to the end, `over` whether the end was that of `over`, not of `duration`.

    `health` says whether the emulation kept up with real time (`emu.health.assess`). `dropped_first` are the identities of
    first transmissions that user-space links lost or damaged, by link (`near-far`) in ascending order, `queued_first` those
    that queues dropped. `injected` counts faults by verb, `fault_log` has their times. `captures` counts packets by capture
    point: written, and `unseen`, dropped by full socket buffers.
    """

    nodes: dict[str, NodeReport]
    impairments: list[dict[str, Any]]
    node_counts: list[dict[str, Any]]
    setup: float
    elapsed: float
    over: bool
    health: dict[str, Any]
    dropped_first: dict[str, list[int]]
    queued_first: dict[str, list[int]]
    injected: dict[str, int]
    fault_log: list[dict[str, Any]]
    captures: dict[str, dict[str, int]]


def emulate(
    topology: Topology,
    programs: Mapping[str, Program | ForeignProgram],
    *,
    codec: Callable[[], Codec],
    port: int,
    duration: float,
    over: Callable[[set[str]], bool],
    seed: int,
    groups: Mapping[str, Sequence[str]] | None = None,
    ttls: Mapping[str, int] | None = None,
    keyed: bool = False,
    exact: bool = False,
    faults: Sequence[InjectedFault] = (),
    respawn: Callable[[str, int], Program | ForeignProgram] | None = None,
    captures: Sequence[CapturePoint] = (),
    progress: ProgressCallback | None = None,
    trunk: TrunkChoice = "any",
    title: str = "emulation",
    hold: Hold | None = None,
    node_codec: Callable[[], Codec] | None = None,
    disk: Path | None = None,
    framing: Callable[[], Framing] = LengthPrefixed,
    tcp: TcpOptions | None = None,
    ecn: bool = False,
    statistics: float | None = None,
    attendants: Sequence[Attendant] = (),
) -> Emulation:
    """Run a program on each named host until `over(names of finished hosts)` is true, or for `duration` seconds.

    `groups` are IPv4 group addresses with the hosts that send or receive: routers forward only these, and each is checked
    before the run. `ttls` are the multicast TTLs of hosts below 255. `respawn(host, crashes)` makes the program of a host that
    restarts. `progress` is called every second with the counters of all nodes, in the process that runs the emulation. `trunk`
    is the encapsulation on the cable of routers with `mac: single`. With `keyed` all losses are the simulator's for this
    `seed`, packet by packet; with `exact` links with a rate delay each packet by its transmission time, unlike token buckets.
    Links decode packets by `codec`, and so do nodes, unless they have a `node_codec`. `title` is shown to those who attach to
    the emulation. `hold` holds the network before and after the run. `disk` is the folder of the hosts' stores, a folder for
    each; None: a folder in memory, which vanishes with the run. `framing` makes the framing of a connection's stream, `tcp` has
    the options of connections; None leaves them to the kernel. With `ecn` what nodes send is ECN-capable, and they read marks.
    Nodes record their statistics every `statistics` seconds; None: never. `attendants` serve other processes while the network
    is up.

    NotStartedError if `hold` ends it before the run. UnsupportedError, before anything starts, if this machine can't run it.
    A node that dies does not end the run; its report says how it died.
    """
    _check(topology, programs, tcp)
    server = NamespaceServer(title)
    held, talk = make_hold(hold, server.name) if hold is not None else (None, None)
    of_nodes = disk or Path(_DISKS), framing, tcp, ecn, statistics, attendants
    with server.socket:
        return _IsolatedEmulation(
            topology,
            _choose_plan(topology, groups, ttls, seed, keyed, exact, trunk),
            programs,
            codec,
            node_codec or codec,
            port,
            duration,
            over,
            seed,
            faults,
            respawn,
            captures,
            progress,
            server,
            held,
            *of_nodes,
        ).run(talk)


@dataclass(frozen=True, slots=True)
class _IsolatedEmulation:
    """An emulation with its parameters, run in isolated namespaces."""

    topology: Topology
    plan: EmulationPlan
    programs: Mapping[str, Program | ForeignProgram]
    codec: Callable[[], Codec]
    node_codec: Callable[[], Codec]
    port: int
    duration: float
    over: Callable[[set[str]], bool]
    seed: int
    faults: Sequence[InjectedFault]
    respawn: Callable[[str, int], Program | ForeignProgram] | None
    captures: Sequence[CapturePoint]
    progress: ProgressCallback | None
    server: NamespaceServer
    held: HeldSession | None
    disk: Path
    framing: Callable[[], Framing]
    tcp: TcpOptions | None
    ecn: bool
    statistics: float | None
    attendants: Sequence[Attendant]

    def run(self, meanwhile: Callable[[], None] | None) -> Emulation:
        """Run it in isolated namespaces, and `meanwhile()` in this process."""
        answer = run_isolated(self.run_inside, meanwhile)
        if answer is None:
            raise NotStartedError("the session was not started, so there is no result")
        answer["nodes"] = {name: NodeReport(**report) for name, report in answer["nodes"].items()}
        return Emulation(**answer)

    def run_inside(self) -> dict[str, Any] | None:
        """Build the network, run the nodes, and return the fields of an Emulation; None if the session was not started."""
        began = time.monotonic()
        self._check_kernel()
        _name_hosts(self.plan.addresses)
        network = EmulatedNetwork(self.plan, self.codec)
        if self.tcp is not None:
            network.set_congestion_control(self.programs, self.tcp.kernel_control)
        processes = NodeProcesses(self.programs, self.respawn)
        capture = _open_capture(self.captures, network, self.programs)
        quotas = CpuQuotas(self._quotas())
        try:
            return self._run_nodes(processes, network, capture, quotas, began)
        finally:
            quotas.close()

    def _run_nodes(
        self,
        processes: NodeProcesses,
        network: EmulatedNetwork,
        capture: PacketCapture | None,
        quotas: CpuQuotas,
        began: float,
    ) -> dict[str, Any] | None:
        """Fork the nodes, run them, and return the fields of an Emulation; None if the session was not started."""
        processes.on_start = quotas.admit
        self._fork(processes, network)
        # Faults must begin on time, too.
        raise_priority()
        injector = FaultInjector(self.faults, network, processes)
        if self.progress is not None:
            processes.report_progress(self.progress)
        setup = time.monotonic() - began
        if not self._open(processes, network):
            return None
        before = kernel_drops()
        elapsed, ended = processes.run(self.duration, self._is_over, None if capture is None else capture.begin)
        dropped_between = kernel_drops() - before
        self._keep(processes)
        captured = {} if capture is None else capture.end()
        statistics = network.collect()
        impairments = [{**row, **statistics.counts.get(row.get("link", ""), {})} for row in self.plan.report()]
        sent = {router: sum(processes.reports[host].packets.values()) for host, router in self.plan.machines.items()}
        receive_drops = sum(report.faults.get("receive_drops", 0) for report in processes.reports.values())
        outcome = (assess(statistics, receive_drops, dropped_between), statistics.dropped, statistics.queued)
        network_counts = impairments, network.node_counts(sent)
        faults = dict(injector.counts), injector.log
        return asdict(Emulation(processes.reports, *network_counts, setup, elapsed, ended, *outcome, *faults, captured))

    def _quotas(self) -> dict[str, float]:
        """Return the CPU quotas of hosts that have one, in cores."""
        models = {name: self.topology.node(self.topology.member(name).node).model for name in self.programs}
        return {name: model.quota for name, model in models.items() if isinstance(model, HostModel) and model.quota is not None}

    def _open(self, processes: NodeProcesses, network: EmulatedNetwork) -> bool:
        """Accept clients, and wait until the session is started; returns whether it is."""
        pids = {name: network.pid(name) for name in network.nodes}
        self.server.listen(pids, self.plan.addresses)
        for attendant in (self.server, *self.attendants):
            processes.attend(attendant.socket, attendant.answer)
        if self.held is None:
            return True
        held = self.held
        processes.attend(held.connection, held.read)
        processes.get_ready()
        held.report("up")
        processes.serve_until(lambda: held.started or held.ended)
        if held.started:
            held.report("running")
        return held.started

    def _is_over(self, finished: set[str]) -> bool:
        return self.over(finished) or (self.held is not None and self.held.ended)

    def _keep(self, processes: NodeProcesses) -> None:
        """Keep the network until it may end."""
        if self.held is not None:
            held = self.held
            held.report("over")
            processes.serve_until(lambda: held.ended)

    def _check_kernel(self) -> None:
        check_kernel([*self.plan.features, *(feature for fault in self.faults for feature in fault.features)])
        if self.plan.unsupported_by_kernel:
            check_tap(self.plan.unsupported_by_kernel)

    def _fork(self, processes: NodeProcesses, network: EmulatedNetwork) -> None:
        plan, joining = self.plan, self.topology.multicast.join
        single_packets = (
            bool(self.captures)
            or bool(self.faults)
            or any(isinstance(program, ForeignProgram) for program in self.programs.values())
        )
        crashes = [fault for fault in self.faults if isinstance(fault, HostCrash)]
        decisions = {fault.names[0]: fault.decision for fault in crashes}
        # Node processes share this process's memory as long as nothing writes to it, the garbage collector included.
        gc.freeze()
        for name in self.programs:
            # Captures, the meters of foreign programs and fault filters must see single packets, not batches.
            burst = 1 if single_packets or plan.shaped(name) else SEGMENTS
            address, ttl, key = plan.addresses[name], plan.ttl(name), stream_key(self.topology, self.seed, name)
            spec = self.topology.node(self.topology.member(name).node)
            model = spec.disk or DiskModel()
            processes.fork(
                NodeConfig(
                    name,
                    network.pid(name),
                    address,
                    self.node_codec,
                    self.port,
                    ttl,
                    burst,
                    key,
                    self.framing,
                    self.tcp,
                    joining=joining,
                    ecn=self.ecn,
                    devices=network.group_devices(name),
                    networks=network.networks(name),
                    names=plan.addresses,
                    open_disk=disk_opener(self.disk / file_name(name) / "store.sqlite", name, model),
                    disk=self.disk / file_name(name),
                    statistics=self.statistics,
                    decision=decisions.get(name),
                    memory=spec.memory,
                )
            )


def _name_hosts(addresses: Mapping[str, str]) -> None:
    """Make the names of hosts resolvable for all programs, by an /etc/hosts of this mount namespace (hosts(5)).

    Names with spaces or a number sign are left out: their words would be names of their own.
    """
    if not os.path.exists(_HOSTS):
        return
    lines = "".join(f"{address} {name}\n" for name, address in addresses.items() if not set(name) & set(" #"))
    with open(_HOSTS, "rb") as outside, open(_OWN_HOSTS, "wb") as own:
        own.write(outside.read() + f"\n{lines}".encode())
    bind_file(_OWN_HOSTS, _HOSTS)


def _choose_plan(
    topology: Topology,
    groups: Mapping[str, Sequence[str]] | None,
    ttls: Mapping[str, int] | None,
    seed: int,
    keyed: bool,
    exact: bool,
    trunk: TrunkChoice,
) -> EmulationPlan:
    """Return the plan of an emulation: with netem, where a link needs it and the kernel has it."""
    kind = choose_trunk(topology, trunk)
    plan = plan_emulation(topology, groups, ttls, seed=seed, keyed=keyed, exact=exact, trunk=kind)
    if plan.unsupported_by_kernel and not keyed and (netem := examine_netem()) != "none":
        return plan_emulation(topology, groups, ttls, seed=seed, exact=exact, netem=netem, trunk=kind)
    return plan


def _check(topology: Topology, programs: Mapping[str, Program | ForeignProgram], tcp: TcpOptions | None) -> None:
    """Refuse what can't be emulated here, before anything starts."""
    _check_programs(topology, programs)
    check_tools()
    if tcp is not None:
        check_options(tcp)


def _check_programs(topology: Topology, programs: Mapping[str, Program | ForeignProgram]) -> None:
    for name in programs:
        topology.member(name)
    if not programs:
        raise UsageError("an emulation needs a program on at least one host")
    if topology.multicast.join and any(isinstance(program, ForeignProgram) for program in programs.values()):
        raise UnsupportedError("multicast.join: the join delay can't be emulated for a foreign program; leave it out")


def _open_capture(points: Sequence[CapturePoint], network: EmulatedNetwork, hosts: Iterable[str]) -> PacketCapture | None:
    """Start capturing if there are capture points; hosts then compute checksums in software, so that captures have them."""
    if not points:
        return None
    for host in hosts:
        device, pid = network.port(host)
        run(f"ethtool -K {device} tx off", pid=pid)
    return PacketCapture(points, network)
