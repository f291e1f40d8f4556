"""Counters of a NORM receiver, and its handling of inconsistent messages."""

import pytest

from experiments.contract.content import pattern
from protocols.machine import Offer
from protocols.norm.messages import FLAG_FILE, FLAG_INFO, FLAG_REPAIR, Eot, Flush
from tests.protocols.norm.scenes import Listener, Voice

LONG = 2400
"""Bytes of three blocks."""


# -- inconsistent messages ---------------------------------------------------------------------------------------------


def crooked(voice: Voice, **changes: object) -> object:
    message = voice.data(1, 2)
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
        {"fti": Voice(pattern(5000)).fti},
        {"fti": Voice(pattern(LONG), segment=50).fti},
    ],
    ids=str,
)
def test_symbols_that_do_not_fit_their_object_are_ignored_and_counted(changes: dict[str, object]) -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0))
    listener.hear(crooked(voice, **changes))  # type: ignore[arg-type]
    assert listener.machine.counts()["ignored"] == 1
    listener.hear(*voice.block(1), *voice.block(2), voice.flush())
    listener.until(5.0)
    assert listener.received() == [0]
    assert listener.content() == voice.content


def test_content_with_unknown_coding_is_ignored() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    listener.hear(crooked(voice, fti=None, block=0))  # type: ignore[arg-type]
    assert listener.machine.counts()["ignored"] == 1
    assert not listener.host.offers


def test_an_fti_in_norm_info_is_sufficient() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), info=b"name")
    listener.hear(voice.info())
    for message in voice.whole():
        message.fti = None
        listener.hear(message)
    assert listener.received() == [0]


@pytest.mark.parametrize(("block", "symbol"), [(99, 3), (0xFFFFFF, 0xFF), (0, 200)])
def test_a_flush_beyond_the_end_of_the_object_is_harmless(block: int, symbol: int) -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    listener.hear(*voice.block(0))
    listener.hear(Flush(voice.origin, voice.sequence, 5, 0, block, symbol))
    voice.sequence += 1
    listener.hear(*voice.block(1), *voice.block(2))
    listener.until(5.0)
    listener.hear(*(voice.data(b, s, 0, FLAG_REPAIR) for b in (1, 2) for s in range(8)))
    assert listener.received() == [0]
    assert listener.content() == voice.content


def test_streams_and_unknown_commands_are_ignored() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    stream = voice.data(0, 0)
    stream.flags = 32
    listener.hear(stream, Eot(voice.origin, 1))
    listener.until(5.0)
    assert not listener.host.offers
    assert not listener.nacks


def test_an_object_is_a_file_only_if_its_flag_is_set() -> None:
    listener, voice = Listener(), Voice(pattern(800))
    message = voice.data(0, 0)
    message.flags &= ~(FLAG_FILE | FLAG_INFO)
    listener.hear(message)
    assert listener.host.offers == [Offer(1, 0, 800, False)]


# -- counters ----------------------------------------------------------------------------------------------------------


def test_losses_are_counted_by_sequence_numbers_from_the_first_message() -> None:
    listener, voice = Listener(), Voice(pattern(LONG), sequence=0xFFFA)
    messages = voice.whole()
    listener.hear(*messages[:4], *messages[7:])
    counts = listener.machine.counts()
    assert (counts["data_received"], counts["data_lost"]) == (21, 3)


def test_a_reordered_message_is_not_counted_as_lost() -> None:
    listener, voice = Listener(), Voice(pattern(LONG))
    messages = voice.whole()
    listener.hear(*messages[:4], *messages[5:], messages[4])
    counts = listener.machine.counts()
    assert (counts["data_received"], counts["data_lost"]) == (24, 0)
