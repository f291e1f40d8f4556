"""Any pattern of loss, reordering, duplication and link failure ends with equal streams or with a reason.

MCASTLAB_TCP_EXAMPLES=100000 python -m pytest -q tests/sim/tcp/test_any_pattern.py
"""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocols.tcp.congestion import CONTROLS
from sim.faults import Faults
from tests.sim.tcp.chaos import EXAMPLES, Chaos
from tests.sim.tcp.scenes import ENGINES, Scene, star
from tests.support.talkers import Talker

SIZES = st.lists(st.sampled_from([8, 100, 996, 1000, 1004, 5000]), max_size=25)
PATTERN = st.lists(st.integers(0, 9), max_size=60)
FAILURE = st.none() | st.tuples(st.floats(0.0, 2.0), st.floats(0.1, 45.0))


def heard(talker: Talker) -> list[int]:
    """Return the numbers that arrived on the talker's only connection."""
    return [number for numbers in talker.heard.values() for number in numbers]


# A copy of the SYN came after the listener had closed, and began the connection again.
LATE_SYN: dict[str, Any] = {
    "there": [8, 8, 1004, 996, 8],
    "back": [8, 8, 8, 8, 8],
    "pattern": [0, 1, 4, 4, 6, 3, 9],
    "failure": (1.0147844181943821, 1.0147844181943821),
    "engine": "bytes",
    "control": "reno",
    "buffer": 12_000,
    "nagle": True,
    "queue": None,
    "hangs_up": True,
}


@settings(max_examples=EXAMPLES, deadline=None)
@example(**LATE_SYN)
@given(
    there=SIZES,
    back=SIZES,
    pattern=PATTERN,
    failure=FAILURE,
    engine=st.sampled_from(ENGINES),
    control=st.sampled_from(sorted(CONTROLS)),
    buffer=st.sampled_from([2000, 12_000, 256_000]),
    nagle=st.booleans(),
    queue=st.sampled_from([1, 5, None]),
    hangs_up=st.booleans(),
)
def test_streams_are_equal_or_the_connection_is_closed_with_a_reason(
    there: list[int],
    back: list[int],
    pattern: list[int],
    failure: tuple[float, float] | None,
    engine: str,
    control: str,
    buffer: int,
    nagle: bool,
    queue: int | None,
    hangs_up: bool,
) -> None:
    topology = star(rate="2Mbit", delay="3ms", queue=queue)
    scene = Scene(topology, engine, control=control, mss=1000, buffer=buffer, nagle=nagle)
    Chaos(scene.network, pattern)
    if failure is not None:
        faults = Faults(scene.network)
        begin, length = failure
        scene.during(begin, begin + length, lambda: faults.cut("r1", topology.switches[0]))
    listener = scene.listener("r1", back)
    caller = scene.caller("sender", "r1", there, hangs_up=hangs_up)
    scene.network.run(until=240)
    assert heard(listener) == list(range(len(heard(listener))))
    assert heard(caller) == list(range(len(heard(caller))))
    if caller.reasons == ["ended"]:
        # Whoever hung up has said everything; the other end may have been interrupted.
        assert len(heard(listener)) == len(there)
    elif not caller.reasons:
        assert not hangs_up
        assert (len(heard(listener)), len(heard(caller))) == (len(there), len(back))
    else:
        assert failure is not None or pattern.count(0) < len(pattern)
    ends = [caller, listener] if listener.openings else [caller]
    assert not hangs_up or all(end.reasons for end in ends)
