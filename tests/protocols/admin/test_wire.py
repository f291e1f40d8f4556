"""Messages of a registry on the wire, and a library of others (h11) as a second reader and writer."""

import os

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement
from protocols.admin.registration import LARGEST_STAMP, registration_of
from protocols.admin.wire import ADVERTISEMENT_SIZE, BODY_LIMIT, HEAD_LIMIT, AdminCodec, HttpFraming, is_ours, size_of
from protocols.errors import UsageError, WireError
from protocols.machine import Message

EXAMPLES = int(os.environ.get("MCASTLAB_ADMIN_EXAMPLES", "300"))
CODEC = AdminCodec()

names = st.from_regex(r"[a-z0-9.:\[\]-]{1,20}", fullmatch=True)
bodies = st.binary(max_size=50)
requests = st.builds(
    Request,
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    st.from_regex(r"/[!-~]{0,20}", fullmatch=True),
    bodies,
    names,
    st.just("") | st.from_regex(r"[!-~]{16,20}", fullmatch=True),
)
tags = st.from_regex(r"[0-9]{0,16}", fullmatch=True)
responses = st.builds(Response, st.sampled_from([200, 201, 401, 404, 422, 503]), bodies, tags)
advertisements = st.builds(Advertisement, st.integers(0, LARGEST_STAMP), st.integers(0, LARGEST_STAMP))
messages = requests | responses | advertisements | st.sampled_from([Response(304, b"", "7"), Response(204)])


@given(message=messages)
def test_what_is_encoded_is_decoded(message: Message) -> None:
    data = CODEC.encode(message)
    assert CODEC.decode(data) == message
    assert size_of(message) == len(data)
    assert is_ours(data)


@settings(max_examples=EXAMPLES)
@given(data=st.binary(max_size=200) | messages.map(CODEC.encode).flatmap(lambda data: st.just(data[: len(data) // 2])))
@example(b"GET /nodes HTTP/1.1\r\n\xff: x\r\n\r\n")
@example(b"HTTP/1.1 999 x\r\n\r\n")
@example(b"GET /nodes HTTP/1.1\r\nno colon\r\n\r\n")
@example(b"\xadMC\x01" + bytes(15))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    try:
        message = CODEC.decode(data)
    except WireError:
        return
    assert CODEC.decode(CODEC.encode(message)) == message


@given(several=st.lists(requests | responses, min_size=1, max_size=5), cuts=st.lists(st.integers(1, 60), min_size=1))
def test_a_stream_is_cut_into_the_same_messages_however_it_is_split(several: list[Message], cuts: list[int]) -> None:
    framing, found = HttpFraming(), list[bytes]()
    encoded = [framing.wrap(CODEC.encode(message)) for message in several]
    stream, at = b"".join(encoded), 0
    while at < len(stream):
        cut = cuts[at % len(cuts)]
        framing.unwrap(stream[at : at + cut], found)
        at += cut
    assert found == encoded
    assert framing.waiting == 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: 4294967296\r\n\r\n",
        f"GET / HTTP/1.1\r\ncontent-length: {BODY_LIMIT + 1}\r\n\r\n".encode(),
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"x" * HEAD_LIMIT,
    ],
)
def test_lengths_that_lie_end_a_connection_before_anything_is_kept(data: bytes) -> None:
    framing = HttpFraming()
    with pytest.raises(WireError):
        framing.unwrap(data, [])


def test_a_message_that_does_not_fit_is_refused_when_it_is_sent() -> None:
    for message in (Advertisement(1 << 64, 1), Response(999), Request("GET", "/\u20ac")):
        with pytest.raises(UsageError):
            CODEC.encode(message)
    with pytest.raises(UsageError):
        HttpFraming().wrap(bytes(HEAD_LIMIT + BODY_LIMIT + 1))


def test_an_advertisement_carries_id_and_stamp_only() -> None:
    assert ADVERTISEMENT_SIZE == 20
    assert CODEC.encode(Advertisement(2, 3)) == b"\xadMC\x01" + bytes(7) + b"\x02" + bytes(7) + b"\x03"


@given(request=requests)
def test_h11_reads_our_requests(request: Request) -> None:
    server = h11.Connection(h11.SERVER)
    server.receive_data(CODEC.encode(request))
    head = server.next_event()
    assert isinstance(head, h11.Request)
    assert (head.method.decode(), head.target.decode()) == (request.method, request.target)
    body = server.next_event()
    assert bytes(body.data if isinstance(body, h11.Data) else b"") == request.body


@given(response=responses)
def test_h11_reads_our_responses_and_we_read_its(response: Response) -> None:
    client, server = h11.Connection(h11.CLIENT), h11.Connection(h11.SERVER)
    asked = client.send(h11.Request(method="GET", target="/nodes", headers=[("Host", "a")])) or b""
    asked += client.send(h11.EndOfMessage()) or b""
    assert CODEC.decode(asked) == Request("GET", "/nodes", b"", "a")
    client.receive_data(CODEC.encode(response))
    head = client.next_event()
    assert isinstance(head, h11.Response)
    assert head.status_code == response.status
    server.receive_data(asked)
    assert [type(server.next_event()) for _ in range(2)] == [h11.Request, h11.EndOfMessage]
    headers = [("content-length", str(len(response.body))), ("etag", f'"{response.tag}"')]
    said = server.send(h11.Response(status_code=response.status, headers=headers)) or b""
    said += (server.send(h11.Data(data=response.body)) or b"") + (server.send(h11.EndOfMessage()) or b"")
    found: list[bytes] = []
    HttpFraming().unwrap(said, found)
    assert [CODEC.decode(data) for data in found] == [response]


def test_an_address_with_a_nul_is_refused() -> None:
    plain = {"name": "a", "site": 1, "port": 7000, "group": "239.1.2.3:6003"}
    assert registration_of({**plain, "address": "host"}).address == "host"
    with pytest.raises(WireError, match="address"):
        registration_of({**plain, "address": "ho\0st"})
