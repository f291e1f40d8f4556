"""The HTTP interface of a registry: routes, stamps, tokens, bad input, and its OpenAPI document."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel, ValidationError

from emu.admin.models import RegistrationBody, RenewalBody
from emu.web.guard import BODY_LIMIT
from experiments.cli import invoke
from protocols.admin.messages import Response
from protocols.admin.node import Node
from protocols.admin.registration import registration_of, renewal_of
from protocols.admin.wire import AdminCodec, size_of
from protocols.errors import WireError
from tests.emu.admin.served import GROUP, admin, start

PLAIN = {"name": "t1", "site": 1, "port": 7000, "group": GROUP}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Start a registry for the tests of this module."""
    with admin() as address:
        yield address


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    """Return a client of an empty registry."""
    with httpx.Client(base_url=url, trust_env=False) as client:
        for node in client.get("/nodes").json()["nodes"]:
            client.delete(f"/nodes/{node['id']}")
        yield client


def register(http: httpx.Client, **values: Any) -> dict[str, Any]:
    """Register a tunnel and return the answer."""
    answer = http.post("/nodes", json=PLAIN | values)
    assert answer.status_code == 201
    told: dict[str, Any] = answer.json()
    return told


def test_a_tunnel_registers_renews_and_leaves(http: httpx.Client) -> None:
    told = register(http)
    expected = Node(told["id"], "t1", 1, "127.0.0.1", 7000, GROUP)
    assert told["lease"] == 10.0
    assert [Node(**node) for node in told["nodes"]] == [expected]
    renewed = http.put(f"/nodes/{told['id']}", json={"counters": {"carried": 5}, "cpu": 1.5, "memory": 1000})
    assert (renewed.status_code, renewed.json()) == (200, {"stamp": told["stamp"], "lease": 10.0})
    assert register(http, port=7001)["stamp"] > told["stamp"]
    assert http.delete(f"/nodes/{told['id']}").status_code == 204
    assert [node["port"] for node in http.get("/nodes").json()["nodes"]] == [7001]
    for answer in (http.delete(f"/nodes/{told['id']}"), http.put(f"/nodes/{told['id']}", json={})):
        assert (answer.status_code, answer.json()) == (404, {"detail": f"no node {told['id']}; register first"})


def test_a_response_does_not_wait_for_a_delayed_ack(http: httpx.Client) -> None:
    register(http)
    times = []
    for _ in range(10):
        begin = time.monotonic()
        http.get("/nodes")
        times.append(time.monotonic() - begin)
    assert min(times) < 0.03


def test_a_list_that_is_current_is_not_sent_again(http: httpx.Client) -> None:
    stamp = register(http)["stamp"]
    answer = http.get("/nodes")
    assert (answer.status_code, answer.json()["stamp"], answer.headers["etag"]) == (200, stamp, f'"{stamp}"')
    for current in (
        http.get("/nodes", params={"stamp": stamp}),
        http.get("/nodes", headers={"If-None-Match": f'"{stamp}"'}),
        http.get("/nodes", headers={"If-None-Match": f'W/"{stamp}"'}),
    ):
        assert (current.status_code, current.content) == (304, b"")
    for other in (stamp - 1, stamp + 1):
        assert http.get("/nodes", params={"stamp": other}).status_code == 200
    assert http.get("/nodes", headers={"If-None-Match": "nonsense"}).status_code == 200


def test_a_tunnel_is_paused_and_resumed(http: httpx.Client) -> None:
    told = register(http)
    paused = http.put(f"/nodes/{told['id']}/paused", json={"paused": True})
    assert (paused.status_code, paused.json()["paused"]) == (200, True)
    found = http.get("/nodes", params={"stamp": told["stamp"]}).json()
    assert found["nodes"][0]["paused"] is True
    assert http.put(f"/nodes/{told['id']}/paused", json={"paused": True}).status_code == 200
    assert http.get("/nodes", params={"stamp": found["stamp"]}).status_code == 304
    assert http.put(f"/nodes/{told['id']}/paused", json={"paused": False}).json()["paused"] is False


def test_events_tell_of_changes_as_they_happen(http: httpx.Client) -> None:
    with http.stream("GET", "/events") as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        lines = (json.loads(line[6:]) for line in events.iter_lines() if line)
        assert next(lines)["whole"] is True
        begin = time.monotonic()
        with httpx.Client(base_url=http.base_url, trust_env=False) as other:
            told = register(other, name="newcomer")
            found = next(line for line in lines if line["nodes"])
            assert time.monotonic() - begin < 0.5
            assert found["nodes"][0]["name"] == "newcomer"
            assert found["events"][0][1:] == ["newcomer", "is in the list"]
            other.delete(f"/nodes/{told['id']}")
        assert next(line for line in lines if line["removed"])["removed"] == [told["id"]]


def test_metrics_are_those_of_prometheus(http: httpx.Client) -> None:
    number = register(http, name='a"b\n<script>')["id"]
    http.put(f"/nodes/{number}", json={"counters": {"ring_used": 7, "bytes_out": 100, "weird name{}": 1}, "memory": 1000})
    text = http.get("/metrics").text
    samples = {row.name: row for family in text_string_to_metric_families(text) for row in family.samples}
    assert samples["mcastlab_session_nodes"].value == 1
    assert samples["mcastlab_tunnel_ring_used"].value == 7
    assert samples["mcastlab_tunnel_out_bytes_total"].value == 100
    assert samples["mcastlab_tunnel_memory_bytes"].labels["tunnel"].endswith(f"<script> ({number})")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ""}, "name: "),
        ({"name": "x" * 201}, "name: "),
        ({"name": "\ud800"}, "name: "),
        ({"site": -1}, "site: "),
        ({"site": "1"}, "site: "),
        ({"site": True}, "site: "),
        ({"port": 0}, "port: "),
        ({"port": 65536}, "port: "),
        ({"udp": 0}, "udp: "),
        ({"address": "somewhere"}, "address: "),
        ({"what": 1}, "what: "),
    ],
)
def test_a_value_that_is_not_allowed_is_answered_by_one_line(http: httpx.Client, changes: dict[str, Any], words: str) -> None:
    answer = http.post("/nodes", content=json.dumps(PLAIN | changes), headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert words in answer.json()["detail"]
    assert http.get("/nodes").json()["nodes"] == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("::1", "address: value '::1' is not allowed; an IPv4 address, as the registry has"),
        ("239.1.1.1", "address: value '239.1.1.1' is not allowed; the address of one host"),
        ("0.0.0.0", "address: value '0.0.0.0' is not allowed; the address of one host"),
    ],
)
def test_an_address_that_takes_no_advertisement_is_refused(http: httpx.Client, address: str, words: str) -> None:
    answer = http.post("/nodes", json=PLAIN | {"address": address})
    assert (answer.status_code, answer.json()["detail"]) == (409, words)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"\xff\xfe\xfd", 400),
        (b"[" * 30_000, 400),
        (b'{"cpu": NaN}', 422),
        (b'{"cpu": 1e999}', 422),
        (b'{"memory": ' + b"9" * 5000 + b"}", 400),
        (b'{"counters": {"a": -1}}', 422),
        (b'{"counters": {' + b",".join(b'"c%d": 1' % number for number in range(513)) + b"}}", 422),
        (b" " * (BODY_LIMIT + 1), 413),
    ],
)
def test_a_body_that_lies_is_refused(http: httpx.Client, body: bytes, status: int) -> None:
    number = register(http)["id"]
    answer = http.put(f"/nodes/{number}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    chunks = http.put(f"/nodes/{number}", content=iter([body, b""]), headers={"content-type": "application/json"})
    assert chunks.status_code == status


def test_a_page_of_another_server_changes_nothing(http: httpx.Client) -> None:
    number = register(http)["id"]
    for method, path in (("POST", "/nodes"), ("PUT", f"/nodes/{number}/paused"), ("DELETE", f"/nodes/{number}")):
        assert http.request(method, path, json=PLAIN, headers={"Origin": "http://evil.example"}).status_code == 403
    assert http.get("/nodes", headers={"Host": "evil.example"}).status_code == 421
    own = str(http.base_url).rstrip("/")
    assert http.delete(f"/nodes/{number}", headers={"Origin": own}).status_code == 204


def test_off_loopback_every_address_wants_the_token(tmp_path: Path) -> None:
    secret, file = "correct-horse-battery", tmp_path / "token"
    file.write_text(f"{secret}\n")
    with admin("--listen", "0.0.0.0:0", "--token-file", str(file)) as url, httpx.Client(trust_env=False) as http:
        url = url.replace("0.0.0.0", "127.0.0.1")
        document = http.get(f"{url}openapi.json", headers={"Authorization": f"Bearer {secret}"}).json()
        paths = [(method, path) for path, methods in document["paths"].items() for method in methods]
        assert len(paths) == 7
        for method, path in [*paths, *(("get", path) for path in ("/", "/admin.js", "/admin.css", "/openapi.json", "/none"))]:
            asked = f"{url[:-1]}{path.replace('{number}', '1')}"
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "mcastlab-admin-token=wrong"}):
                assert http.request(method, asked, headers=headers).status_code == 401, (method, path)
        assert http.get(f"{url}nodes?token={secret}").status_code == 401
        answer = http.get(f"{url}?token={secret}")
        assert answer.status_code == 303
        assert {"httponly", "samesite=strict"} <= set(answer.headers["set-cookie"].lower().replace(";", "").split())
        assert http.get(url).status_code == 200


def test_responses_have_the_size_that_a_simulated_registry_gives_them(http: httpx.Client) -> None:
    register(http)
    for answer in (http.get("/nodes"), http.post("/nodes", json=PLAIN), http.get("/nodes", params={"stamp": 1})):
        lines = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}", *(f"{k}: {v}" for k, v in answer.headers.items())]
        real = len("\r\n".join(lines)) + 4 + len(answer.content)
        tag = answer.headers.get("etag", "").strip('"')
        assert size_of(Response(answer.status_code, answer.content, tag)) == real
        assert AdminCodec().decode(("\r\n".join(lines) + "\r\n\r\n").encode() + answer.content) == Response(
            answer.status_code, answer.content, tag
        )


texts = st.text(max_size=5) | st.text(min_size=198, max_size=202)
numbers = st.integers(-2, 3) | st.sampled_from([65_535, 65_536, (1 << 32) - 1, 1 << 32, (1 << 53) - 1, 1 << 53])
amounts = numbers | st.integers(0, 9).map(float) | st.floats() | st.booleans() | st.none() | texts
registrations = st.fixed_dictionaries(
    {},
    optional={
        "name": texts | amounts,
        "site": amounts,
        "port": amounts,
        "group": texts | amounts,
        "address": texts | amounts,
        "udp": amounts,
        "other": amounts,
    },
)
renewals = st.fixed_dictionaries(
    {}, optional={"counters": st.dictionaries(texts, amounts, max_size=3) | amounts, "cpu": amounts, "memory": amounts}
)


def _is_taken(read: Any, plain: object) -> bool:
    try:
        read(plain)
    except (WireError, ValidationError):
        return False
    return True


@given(plain=registrations.map(lambda found: PLAIN | found) | registrations)
def test_a_real_and_a_simulated_registry_take_the_same_registrations(plain: dict[str, Any]) -> None:
    """Addresses of simulated hosts are names, and their ports begin at 0."""
    assume(not plain.get("address") and 0 not in (plain.get("port"), plain.get("udp")))
    _agree(RegistrationBody, registration_of, plain)


@given(plain=renewals)
def test_a_real_and_a_simulated_registry_take_the_same_renewals(plain: dict[str, Any]) -> None:
    _agree(RenewalBody, renewal_of, plain)


def _agree(model: type[BaseModel], read: Any, plain: dict[str, Any]) -> None:
    assert _is_taken(read, plain) == _is_taken(model.model_validate, plain)
    if _is_taken(read, plain):
        assert model.model_validate(plain).plain() == read(plain)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "0.0.0.0:0"], "without --token-file; others can reach this address"),
        (["--listen", "host:80"], "an IP address and a port"),
        (["--token-file", "no-such-file"], "--token-file: no-such-file: No such file or directory"),
        (["--token-file", "/dev/zero"], "--token-file: /dev/zero: not a regular file"),
        (["--udp", "0"], "--udp: value 0 is not allowed; a port from 1 to 65535"),
        (["--period", "never"], "--period: value 'never' is not allowed; a duration from 50ms to 1h, like 50ms"),
        (["--lease", "0.1s"], "--lease: value '0.1s' is not allowed; a duration from 200ms to 24h"),
        (["--listen", "127.0.0.1:0", "--state", "/proc/none/state"], "--state: /proc/none"),
        (["--listen", "127.0.0.1:0", "--state", __file__], "--state: "),
    ],
)
def test_other_options_are_one_line_and_exit_code_2(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["admin", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_port_in_use_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", 0))
        assert invoke(["admin", "--listen", f"127.0.0.1:{tcp.getsockname()[1]}"]) == 3
        assert "can't be used (Address already in use)" in capsys.readouterr().err
        assert invoke(["admin", "--listen", "127.0.0.1:0", "--udp", str(udp.getsockname()[1])]) == 3
        assert "--udp: " in capsys.readouterr().err


def test_ctrl_c_ends_it_with_pages_open_and_a_summary() -> None:
    served = start()
    with httpx.stream("GET", f"{served.url}events", trust_env=False) as events:
        assert next(events.iter_lines()).startswith("data: {")
        begin = time.monotonic()
        served.process.send_signal(2)
        _, err = served.process.communicate(timeout=20)
        assert time.monotonic() - begin < 3.0
    assert (served.process.returncode, err) == (130, "")
    summary = json.loads(served.printed()[-1])
    assert (summary["event"], summary["ok"], summary["registrations"]) == ("summary", True, 0)


def test_many_connections_that_say_nothing_leave_room_for_others(url: str) -> None:
    async def main() -> None:
        host, port = url.removeprefix("http://").strip("/").split(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(300)]
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            assert (await http.get("/nodes")).status_code == 200
        for _, writer in idle:
            writer.close()

    asyncio.run(main())
