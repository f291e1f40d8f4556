"""Counters of a NORM receiver, and its handling of inconsistent messages."""

import pytest

from experiments.contract.content import pattern
from protocols.machine import Offer
from protocols.norm.messages import FLAG_FILE, FLAG_INFO, FLAG_REPAIR, Eot, Flush
from tests.protocols.norm.scenes import MessageBuilder, ReceiverHarness

LONG = 2400
"""Bytes of three blocks."""


# -- inconsistent messages ---------------------------------------------------------------------------------------------


def inconsistent(builder: MessageBuilder, **changes: object) -> object:
    message = builder.data(1, 2)
    for name, value in changes.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize(
    "changes",
    [
        {"block": 3},
        {"block": 16_000_000},
        {"symbol": 12},
        {"symbol": 255},
        {"payload": b"short", "length": 5},
        {"payload": bytes(101), "length": 101},
        {"payload": b"", "length": 0},
        {"fti": MessageBuilder(pattern(5000)).fti},
        {"fti": MessageBuilder(pattern(LONG), segment=50).fti},
    ],
    ids=str,
)
def test_symbols_that_do_not_fit_their_object_are_ignored_and_counted(changes: dict[str, object]) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(*builder.block(0))
    receiver.receive(inconsistent(builder, **changes))  # type: ignore[arg-type]
    assert receiver.machine.counts()["ignored"] == 1
    receiver.receive(*builder.block(1), *builder.block(2), builder.flush())
    receiver.run_until(5.0)
    assert receiver.received() == [0]
    assert receiver.content() == builder.content


def test_content_with_unknown_coding_is_ignored() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    receiver.receive(inconsistent(builder, fti=None, block=0))  # type: ignore[arg-type]
    assert receiver.machine.counts()["ignored"] == 1
    assert not receiver.host.offers


def test_an_fti_in_norm_info_is_sufficient() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), info=b"name")
    receiver.receive(builder.info())
    for message in builder.whole():
        message.fti = None
        receiver.receive(message)
    assert receiver.received() == [0]


@pytest.mark.parametrize(("block", "symbol"), [(99, 3), (0xFFFFFF, 0xFF), (0, 200)])
def test_a_flush_beyond_the_end_of_the_object_is_harmless(block: int, symbol: int) -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    receiver.receive(*builder.block(0))
    receiver.receive(Flush(builder.origin, builder.sequence, 5, 0, block, symbol))
    builder.sequence += 1
    receiver.receive(*builder.block(1), *builder.block(2))
    receiver.run_until(5.0)
    receiver.receive(*(builder.data(b, s, 0, FLAG_REPAIR) for b in (1, 2) for s in range(8)))
    assert receiver.received() == [0]
    assert receiver.content() == builder.content


def test_streams_and_unknown_commands_are_ignored() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    stream = builder.data(0, 0)
    stream.flags = 32
    receiver.receive(stream, Eot(builder.origin, 1))
    receiver.run_until(5.0)
    assert not receiver.host.offers
    assert not receiver.nacks


def test_an_object_is_a_file_only_if_its_flag_is_set() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(800))
    message = builder.data(0, 0)
    message.flags &= ~(FLAG_FILE | FLAG_INFO)
    receiver.receive(message)
    assert receiver.host.offers == [Offer(1, 0, 800, False)]


# -- counters ----------------------------------------------------------------------------------------------------------


def test_losses_are_counted_by_sequence_numbers_from_the_first_message() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG), sequence=0xFFFA)
    messages = builder.whole()
    receiver.receive(*messages[:4], *messages[7:])
    counts = receiver.machine.counts()
    assert (counts["data_received"], counts["data_lost"]) == (21, 3)


def test_a_reordered_message_is_not_counted_as_lost() -> None:
    receiver, builder = ReceiverHarness(), MessageBuilder(pattern(LONG))
    messages = builder.whole()
    receiver.receive(*messages[:4], *messages[5:], messages[4])
    counts = receiver.machine.counts()
    assert (counts["data_received"], counts["data_lost"]) == (24, 0)
