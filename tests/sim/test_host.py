"""The host follows the contract: order of events, timers, livelock."""

from math import inf, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocols.errors import ContractError, LivelockError, UsageError
from protocols.events import Event, ObjectSent
from protocols.rng import key_of
from sim.network import Network
from tests.sim.probes import GROUP, Probe, probe_on
from topologies.generators import Star
from topologies.keys import stream_key


def star(receivers: int = 3) -> Network:
    """A star of perfect links."""
    return Network(Star(receivers=receivers).build(), seed=1)


def test_events_come_before_the_next_input_even_from_within_an_event() -> None:
    network = star()
    order: list[str] = []
    host = network.host("sender")

    def on_event(event: Event) -> None:
        assert isinstance(event, ObjectSent)
        order.append(f"told {event.object_id}")
        if event.object_id == 1:
            order.append("call")
            host.call(probe.shout, 3)
            order.append("called")

    probe = probe_on(network, "sender", on_event=on_event)

    def both(now: float) -> None:
        probe.shout(1, now)
        probe.shout(2, now)

    host.call(both)
    assert order == ["told 1", "call", "told 2", "told 3", "called"]


def test_applications_receive_events_in_order_of_place() -> None:
    network = star(5)
    told: list[int] = []
    for place, name in enumerate(network.topology.hosts):
        probe = probe_on(network, name, on_event=lambda event, place=place: told.append(place))  # type: ignore[misc]
        probe.on_receive = lambda message, now, probe=probe: probe.ports.notify(ObjectSent(0))
    network.host("r3").call(lambda now: network.host("r3").machine.say(1))  # type: ignore[attr-defined]
    network.run()
    assert told == [0, 1, 2, 4, 5]


def test_a_call_answers_what_the_verb_answers() -> None:
    network = star()
    probe_on(network, "r1")
    assert network.host("r1").call(lambda a, b, now: (a, b, now), 1, 2) == (1, 2, 0.0)


def test_a_verb_that_raises_leaves_the_host_usable() -> None:
    network = star()
    probe = probe_on(network, "sender")
    with pytest.raises(ZeroDivisionError):
        network.host("sender").call(lambda now: 1 // 0)
    network.host("sender").call(probe.expect, 2.0)
    network.run()
    assert probe.woken == [2.0]


def test_a_host_runs_one_machine() -> None:
    network = star()
    probe = probe_on(network, "r1")
    with pytest.raises(UsageError, match="r1 runs a machine already"):
        network.host("r1").run(probe, lambda event: None)


def test_each_host_has_random_numbers_of_its_own_equal_in_simulation_and_emulation() -> None:
    network = star()
    for name in network.topology.hosts:
        assert network.host(name).rng.key == stream_key(network.topology, 1, name)
        assert network.host(name).rng is network.host(name).rng
    assert network.host("sender").rng.key == key_of(1, "node", "sender")
    assert len({network.host(name).rng.key for name in network.topology.hosts}) == 4


def test_objects_are_refused_by_default() -> None:
    network = star()
    assert network.host("r1").accept(None) is None  # type: ignore[arg-type]


def test_a_machine_is_woken_at_its_deadline_moved_back_and_forth() -> None:
    network = star()
    probe = probe_on(network, "r1")
    host = network.host("r1")
    for when in (5.0, 3.0, 9.0, 4.0, inf, 7.0, 6.0, 8.0):
        host.call(probe.expect, when)
    network.run(7.5)
    assert probe.woken == []
    assert probe.deadline == 8.0
    network.run()
    assert probe.woken == [8.0]


class Planner(Probe):
    """Wakes at the times of its plan."""

    __slots__ = ("times",)

    def plan(self, times: list[float], now: float) -> None:
        """For `Host.call`: wake at these times and no others."""
        self.times = times
        self._due(times[0] if times else inf)

    def wake(self, now: float) -> None:
        """Set the deadline to the next time."""
        self.woken.append(now)
        self.plan(self.times[1:], now)


TIMES = st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0]), max_size=3, unique=True).map(sorted)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), TIMES), max_size=12))
@example([(0, 0, [8.0]), (0, 0, [1.0]), (3, 0, [2.0, 5.0])])  # the entry for 8.0 goes at 1.0, and is wanted again
def test_each_of_several_machines_is_woken_when_its_last_plan_says(moves: list[tuple[int, int, list[float]]]) -> None:
    network = star()
    hosts = [network.host(f"r{number}") for number in (1, 2, 3)]
    planners = [Planner(host) for host in hosts]
    for host, planner in zip(hosts, planners, strict=True):
        host.run(planner, lambda event: None)
    plans: list[list[float]] = [[], [], []]
    expected: list[list[float]] = [[], [], []]
    for now, place, waits in [*sorted(moves, key=lambda move: move[0]), (99, 0, [])]:
        network.run(float(now))
        for plan, woken in zip(plans, expected, strict=True):
            woken += [when for when in plan if when < now]
            plan[:] = [when for when in plan if when >= now]
        plans[place] = [now + wait for wait in waits]
        hosts[place].call(planners[place].plan, plans[place].copy())
    assert [planner.woken for planner in planners] == expected


def test_a_deadline_that_is_past_is_now() -> None:
    network = star()
    probe = probe_on(network, "r1")
    network.run(5.0)
    network.host("r1").call(probe.expect, 2.0)
    network.run()
    assert probe.woken == [5.0]


def test_timers_of_one_instant_go_in_order_of_place_after_arrivals() -> None:
    network = star(3)
    order: list[str] = []
    probes = {name: probe_on(network, name) for name in network.topology.hosts}
    for name in ("r3", "r1", "r2"):
        probes[name].script = [(1.0, 1, 10, "sender", None)]
        network.host(name).call(probes[name].expect, 1.0)
    probes["r1"].on_receive = lambda message, now: order.append("arrival")
    probes["sender"].on_receive = lambda message, now: order.append(str(probes["sender"].heard[-1][2]))
    sender = network.host("sender")
    sender.later(1.0, lambda: sender.call(lambda now: probes["sender"].say(0, to="r1")))
    network.run()
    assert order == ["arrival", "r1", "r2", "r3"]


class Stuck(Probe):
    """Leaves its deadline in the past, so that it would be woken for ever."""

    __slots__ = ()

    def wake(self, now: float) -> None:
        """Leave the deadline where it is."""


def test_a_machine_that_hangs_is_named_instead_of_hanging_the_run() -> None:
    network = star()
    stuck = Stuck(network.host("r2"), [(1.0, 1, 10, GROUP, None)])
    network.host("r2").run(stuck, lambda event: None)
    with pytest.raises(LivelockError, match=r"r2 is due at 1\.0 after its wake-up at 1\.0; it must be due later"):
        network.run()


class Timeless(Probe):
    """Sets its deadline to NaN at the first wake-up."""

    __slots__ = ()

    def wake(self, now: float) -> None:
        """Compute a deadline from a mean of nothing."""
        self.deadline = nan


def test_a_machine_with_a_deadline_that_never_comes_is_named() -> None:
    network = star()
    network.host("r2").run(Timeless(network.host("r2"), [(1.0, 1, 10, GROUP, None)]), lambda event: None)
    with pytest.raises(ContractError, match=r"r2 is due at nan after its wake-up at 1\.0"):
        network.run()
    network = star()
    network.host("r1").run(probe := Probe(network.host("r1")), lambda event: None)
    with pytest.raises(ContractError, match=r"Probe sets its deadline to nan; seconds are allowed, inf for never"):
        network.host("r1").call(lambda now: probe._due(nan))


def test_a_packet_of_negative_size_is_refused_with_the_names_of_its_host_and_kind() -> None:
    network = star()
    host = network.host("r2")
    host.run(Probe(host, [(1.0, 1, -10, GROUP, None)]), lambda event: None)
    with pytest.raises(ContractError, match="r2 sends 'note' with a size of -10 bytes"):
        network.run()


def test_a_deadline_set_while_the_machine_is_made_counts() -> None:
    class Early(Probe):
        __slots__ = ()

        def start(self, now: float) -> None:
            """Nothing: the deadline is set already."""

    network = star()
    host = network.host("r1")
    early = Early(host)
    early.deadline = 2.0
    host.run(early, lambda event: None)
    network.run()
    assert early.woken == [2.0]


@pytest.mark.parametrize("count", [20, 20_000])
def test_a_storm_of_timers_that_is_called_off_costs_a_few_events(count: int) -> None:
    network = star(count)
    probes = [probe_on(network, name) for name in network.topology.hosts[1:]]
    for probe in probes:
        probe.on_receive = lambda message, now, probe=probe: probe._due(
            now + 1 + probe.ports.rng.uniform() if message.number == 0 else inf
        )
    sender = probe_on(network, "sender")
    host = network.host("sender")
    for when, number in ((0.0, 0), (1.0, 1), (5.0, 2)):
        host.later(when, lambda number=number: host.call(lambda now: sender.say(number)))  # type: ignore[misc]
    network.run()
    assert all(probe.woken == [] for probe in probes)
    # Three actions, three packets of two events each, and the timers' own.
    assert network.events <= 12
