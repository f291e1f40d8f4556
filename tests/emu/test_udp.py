"""Batches are sent completely, in order and once, whatever the kernel answers."""

import errno
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.addresses import SocketAddress
from emu.udp import (
    SEGMENTS,
    SendQueue,
    open_receiver,
    open_transmitter,
    receive_coalesced,
)
from emu.udp_options import UdpOptions

HERE = ("127.0.0.1", 9)
THERE = ("127.0.0.1", 10)


class Kernel:
    """A fake socket: records every call, and raises the given errors (None: success) in order until there are no more."""

    def __init__(self, *answers: OSError | None) -> None:
        self.answers = iter(answers)
        self.calls: list[tuple[str, list[bytes], SocketAddress]] = []

    def _answer(self, call: str, packets: list[bytes], to: SocketAddress) -> None:
        answer = next(self.answers, None)
        if answer is not None:
            raise answer
        self.calls.append((call, packets, to))

    def sendmsg(self, packets: list[bytes], ancillary: object, flags: int, to: SocketAddress) -> None:
        """Send a batch."""
        self._answer("sendmsg", list(packets), to)

    def sendto(self, packet: bytes, to: SocketAddress) -> None:
        """Send one packet."""
        self._answer("sendto", [packet], to)

    @property
    def packets(self) -> list[tuple[bytes, SocketAddress]]:
        """Everything that was sent, in order."""
        return [(packet, to) for _, packets, to in self.calls for packet in packets]


def queue_on(kernel: Kernel, burst: int = SEGMENTS) -> SendQueue:
    """Return a queue on the fake socket."""
    return SendQueue(kernel, burst)  # type: ignore[arg-type]


def test_equal_packets_to_one_address_are_sent_in_one_call_and_the_last_may_be_shorter() -> None:
    kernel = Kernel()
    queue = queue_on(kernel)
    for size in (100, 100, 60, 100):
        queue.push(bytes(size), HERE)
    queue.push(bytes(100), THERE)
    queue.flush()
    assert [(call, [len(packet) for packet in packets], to) for call, packets, to in kernel.calls] == [
        ("sendmsg", [100, 100, 60], HERE),
        ("sendto", [100], HERE),
        ("sendto", [100], THERE),
    ]


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 60), st.integers(0, 60), st.sampled_from([HERE, THERE])),
        min_size=1,
        max_size=6,
    ),
    st.lists(st.integers(1, 3), max_size=8),
    st.integers(1, SEGMENTS),
)
@settings(max_examples=300, deadline=None)
def test_packets_added_together_are_sent_like_packets_added_one_by_one(
    runs: list[tuple[int, int, int, SocketAddress]], odd: list[int], burst: int
) -> None:
    together, single = Kernel(), Kernel()
    queues = queue_on(together, burst), queue_on(single, burst)
    batches = [([bytes([n]) * size] * n + ([b"x" * last] if last else []), to) for n, size, last, to in runs]
    batches.append(([b"y" * size for size in odd], HERE))
    for packets, to in batches:
        if packets:
            assert queues[0].push_all(packets, to) == sum(map(len, packets))
        for packet in packets:
            queues[1].push(packet, to)
    for queue in queues:
        queue.flush()
    assert together.calls == single.calls


def test_a_batch_never_exceeds_the_burst_nor_the_largest_datagram() -> None:
    kernel = Kernel()
    queue = queue_on(kernel, burst=10)
    for _ in range(25):
        queue.push(bytes(1400), HERE)
    queue.push(bytes(9000), HERE)
    for _ in range(20):
        queue.push(bytes(9000), HERE)
    queue.flush()
    assert [len(packets) for _, packets, _ in kernel.calls] == [10, 10, 5, 7, 7, 7]


def test_segmentation_is_tried_once_if_the_kernel_does_not_support_it() -> None:
    kernel = Kernel(OSError(errno.EINVAL, "no"))
    queue = queue_on(kernel)
    for number in range(4):
        queue.push(bytes([number]) * 100, HERE)
    queue.flush()
    queue.push(b"x" * 100, HERE)
    queue.push(b"y" * 100, HERE)
    queue.flush()
    assert [call for call, _, _ in kernel.calls] == ["sendto"] * 6
    assert [packet[:1] for packet, _ in kernel.packets] == [b"\0", b"\1", b"\2", b"\3", b"x", b"y"]
    assert queue.errors == 0


def test_refused_packets_are_counted_and_the_others_are_sent() -> None:
    kernel = Kernel(OSError(errno.ENETUNREACH, "no way"))
    queue = queue_on(kernel, burst=1)
    queue.push(b"lost", HERE)
    queue.push(b"kept", HERE)
    queue.flush()
    assert kernel.packets == [(b"kept", HERE)]
    assert queue.errors == 1


@pytest.mark.parametrize("burst", [1, SEGMENTS])
def test_packets_refused_since_the_last_one_taken_are_known_with_the_reason(burst: int) -> None:
    kernel = Kernel(OSError(errno.ENODEV, "No such device"), OSError(errno.ENODEV, "No such device"))
    queue = queue_on(kernel, burst)
    for _ in range(2):
        for _ in range(burst):
            queue.push(b"lost", HERE)
        queue.flush()
    assert (queue.errors, queue.refused, queue.reason) == (2 * burst, 2 * burst, "No such device")
    queue.push(b"kept", HERE)
    queue.flush()
    assert (queue.errors, queue.refused) == (2 * burst, 0)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([HERE, THERE])), max_size=40),
    st.lists(st.sampled_from(["fine", "full", "no segments"]), max_size=60),
    st.integers(1, 5),
)
def test_no_packet_is_lost_duplicated_or_reordered(
    pushes: list[tuple[int, SocketAddress]], answers: list[str], burst: int
) -> None:
    errors = {"fine": None, "full": BlockingIOError(errno.EAGAIN, "full"), "no segments": OSError(errno.EINVAL, "no")}
    # EINVAL means unsupported segmentation only for a batch; for a single packet it would be counted as an error.
    kernel = Kernel(*(errors[answer] for answer in answers if answer != "no segments" or burst > 1))
    kernel.sendto = lambda packet, to: single(kernel, packet, to)  # type: ignore[method-assign]
    queue = queue_on(kernel, burst)
    sent = []
    for number, (size, to) in enumerate(pushes):
        packet = bytes([number]) * size * 10
        sent.append((packet, to))
        queue.push(packet, to)
    queue.flush()
    while queue.blocked:
        queue.retry()
    assert kernel.packets == sent
    assert queue.errors == 0


def single(kernel: Kernel, packet: bytes, to: SocketAddress) -> None:
    """Send one packet, without errors about segmentation."""
    answer = next(kernel.answers, None)
    if isinstance(answer, BlockingIOError):
        raise answer
    kernel.calls.append(("sendto", [packet], to))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return a transmitter and a receiver on the loopback device."""
    out = open_transmitter("127.0.0.1", UdpOptions(ttl=0), 1 << 20)
    into = open_receiver(("127.0.0.1", 0), "127.0.0.1", 1 << 20)
    yield out, into
    out.close()
    into.close()


@pytest.mark.parametrize("burst", [1, SEGMENTS])
def test_real_sockets_carry_batches_unchanged(pair: tuple[socket.socket, socket.socket], burst: int) -> None:
    out, into = pair
    packets = [bytes([number]) * 1200 for number in range(45)] + [b"last"]
    queue = SendQueue(out, burst)
    for packet in packets:
        queue.push(packet, into.getsockname())
    queue.flush()
    got: list[bytes] = []
    while len(got) < len(packets):
        data, segment, source, *_ = receive_coalesced(into)
        assert source == out.getsockname()
        got += [data[start : start + segment] for start in range(0, len(data), segment)]
    assert got == packets


def test_kernel_drops_are_reported(pair: tuple[socket.socket, socket.socket]) -> None:
    out, into = pair
    into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
    for _ in range(200):
        out.sendto(bytes(1000), into.getsockname())
    with suppress(BlockingIOError):
        while True:
            receive_coalesced(into)
    # The count comes with the first packet received after the drops.
    out.sendto(b"after", into.getsockname())
    assert receive_coalesced(into)[3] > 100
