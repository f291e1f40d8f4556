"""What a subscriber does with packets: order, requests, suppression, what is given up, and forged numbers."""

from time import process_time

from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.message_wire import write_head
from protocols.messaging import Publication
from protocols.nacked.config import NackedConfig
from protocols.nacked.messages import Data, Nack, Status
from protocols.nacked.packet_receiver import PacketReceiver
from protocols.nacked.packet_sender import PacketSender
from protocols.rng import Rng

ORIGIN = (7, 1)


def packets(*sizes: int, segment: int = 100, bodies: bool = True) -> tuple[PacketSender, list[Data]]:
    """Return what a publisher sends for messages with bodies of these sizes."""
    sender = PacketSender(ORIGIN, segment, 10.0)
    for number, size in enumerate(sizes):
        body = bytes([number]) * size if bodies else None
        sender.push(Publication(7, number, "topic:t", size, body))
    found = []
    while sender:
        found.append(sender.take(0.0)[0])
    return sender, found


def packet_receiver(**values: float) -> PacketReceiver:
    return PacketReceiver(ORIGIN, NackedConfig(**{"backoff": 0.0, **values}), Rng(1), 0)  # type: ignore[arg-type]


def test_messages_of_several_packets_are_joined_in_order() -> None:
    _, sent = packets(0, 250, 90)
    receiver = packet_receiver()
    found = [message for packet in sent for message in receiver.take(packet, 0.0)]
    assert [(message.number, message.body) for message in found] == [(0, b""), (1, b"\1" * 250), (2, b"\2" * 90)]
    assert receiver.nack_at == float("inf")


def test_bytes_that_were_cut_are_those_of_the_message() -> None:
    message = Publication(7, 0, "topic:t", 333, bytes(range(256)) + bytes(77))
    sender = PacketSender(ORIGIN, 100, 1.0)
    sender.push(message)
    parts = []
    while sender:
        parts.append(sender.take(0.0)[0].content or b"")
    assert b"".join(parts) == write_head(message) + (message.body or b"")


@given(st.lists(st.integers(0, 300), min_size=1, max_size=8), st.data())
@settings(max_examples=150)
def test_whatever_is_lost_is_requested_and_repaired(sizes: list[int], chosen: st.DataObject) -> None:
    sender, sent = packets(*sizes)
    receiver = packet_receiver()
    lost = chosen.draw(st.sets(st.sampled_from(range(len(sent)))))
    order = chosen.draw(st.permutations([packet for number, packet in enumerate(sent) if number not in lost]))
    found = [message for packet in order for message in receiver.take(packet, 0.0)]
    found += receiver.note(sender.status(), 0.0)
    now = 0.0
    while receiver.nack_at < float("inf"):
        now = receiver.nack_at
        nack = receiver.due(now, found)
        if nack is not None:
            assert {number for first, last in nack.missing for number in range(first, last + 1)} <= lost
            sender.request(nack)
        while sender:
            packet, _ = sender.take(now)
            assert packet.repair
            found += receiver.take(packet, now)
    assert [message.number for message in found] == list(range(len(sizes)))


def test_an_overheard_nack_for_the_same_packets_suppresses_the_own_one() -> None:
    _, sent = packets(10, 10, 10)
    receiver = packet_receiver(holdoff=0.5)
    receiver.take(sent[2], 1.0)
    assert receiver.nack_at == 1.0
    receiver.overhear(Nack(ORIGIN, ((0, 0),)), 1.0)
    assert receiver.nack_at == 1.0
    receiver.overhear(Nack(ORIGIN, ((0, 1),)), 1.0)
    assert receiver.nack_at == 1.5


def test_what_is_not_repaired_is_given_up_and_the_rest_is_delivered() -> None:
    _, sent = packets(10, 250, 10)
    receiver = packet_receiver(tries=3, holdoff=0.1)
    found = [message for packet in (sent[0], *sent[2:]) for message in receiver.take(packet, 0.0)]
    assert [message.number for message in found] == [0]
    while receiver.nack_at < 10.0:
        receiver.due(receiver.nack_at, found)
    assert [message.number for message in found] == [0, 2]
    assert (receiver.lost, receiver.skipped, receiver.kept) == (1, 1, 0)


def test_what_the_publisher_has_forgotten_is_given_up_at_once() -> None:
    sender, sent = packets(10, 10, 10)
    sender.forget(11.0)
    assert sender.octets == 0
    receiver = packet_receiver()
    receiver.take(sent[0], 0.0)
    assert receiver.note(Status(ORIGIN, 3, 2), 0.0) == []
    assert (receiver.lost, receiver.nack_at) == (2, float("inf"))


def test_forged_numbers_cost_neither_memory_nor_time() -> None:
    receiver = packet_receiver(ahead=10)
    begin = process_time()
    for sequence in (1 << 40, 1 << 63, (1 << 64) - 1):
        receiver.take(Data(ORIGIN, sequence, 0, 0, 1, 1, b"x"), 0.0)
        receiver.note(Status(ORIGIN, sequence - 1, sequence), 0.0)
        found: list[Publication] = []
        for _ in range(100):
            receiver.due(receiver.nack_at, found)
    assert receiver.kept <= 11
    assert process_time() - begin < 0.5


def test_a_message_too_long_to_be_kept_is_given_up() -> None:
    receiver = packet_receiver()
    part = b"x" * 60_000
    for number in range(1200):
        receiver.take(Data(ORIGIN, number, 0, number, 2000, len(part), part), 0.0)
    assert receiver.skipped == 1
    assert receiver._octets == 0
