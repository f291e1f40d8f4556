"""Tunnels at a registry by HTTP, as programs."""

import asyncio
import time
from pathlib import Path

import pytest

from emu.admin.client import check_url
from protocols.admin.node import Advertisement
from protocols.admin.wire import AdminCodec
from protocols.errors import UsageError
from tests.emu.admin.served import Tunnel, admin, start, until

PERIOD = 1.0


def test_a_new_peer_is_known_within_a_period() -> None:
    """The period is 1 s; 0.3 s are for requests on a busy machine."""

    async def main(url: str) -> None:
        tunnels = [Tunnel(url, f"t{number}", number, 7000 + number) for number in (1, 2, 3)]
        tasks = [asyncio.create_task(tunnel.serve()) for tunnel in tunnels[:2]]
        await until(lambda: tunnels[0].peers() == {"t2"} and tunnels[1].peers() == {"t1"}, 5.0)
        for wait in (0.3, 0.8):
            await asyncio.sleep(wait)
            came = time.monotonic()
            task = asyncio.create_task(tunnels[2].serve())
            await until(lambda: all("t3" in tunnel.peers() for tunnel in tunnels[:2]), 3.0)
            assert max(tunnel.told[-1][0] for tunnel in tunnels[:2]) - came <= PERIOD + 0.3
            task.cancel()
            await asyncio.wait({task})
            await until(lambda: not any("t3" in tunnel.peers() for tunnel in tunnels[:2]), 3.0)
            tunnels[2] = Tunnel(url, "t3", 3, 7003)
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)

    with admin() as url:
        asyncio.run(main(url))


@pytest.mark.serial
def test_two_hundred_tunnels_register_and_know_each_other() -> None:
    async def main(url: str) -> None:
        tunnels = [Tunnel(url, f"t{number}", number, 7000 + number) for number in range(200)]
        tasks = [asyncio.create_task(tunnel.serve()) for tunnel in tunnels]
        await until(lambda: all(len(tunnel.peers()) == 199 for tunnel in tunnels), 30.0)
        assert not sum(tunnel.client.enrolment.counts["registry_failures"] for tunnel in tunnels)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    with admin("--lease", "60s") as url:
        asyncio.run(main(url))


def test_a_registry_that_is_killed_stops_nobody_and_is_found_again(tmp_path: Path) -> None:
    async def main() -> None:
        served = start("--state", str(tmp_path / "state"), "--lease", "4s")
        url, listen = served.url, served.url.removeprefix("http://").strip("/")
        tunnels = [Tunnel(url, f"t{number}", number, 7000 + number) for number in (1, 2, 3)]
        tasks = [asyncio.create_task(tunnel.serve()) for tunnel in tunnels[:2]]
        await until(lambda: tunnels[0].peers() == {"t2"}, 5.0)
        served.process.kill()
        served.process.communicate()
        tasks.append(asyncio.create_task(tunnels[2].serve()))
        await asyncio.sleep(1.5)
        assert tunnels[0].peers() == {"t2"}
        number = tunnels[0].client.enrolment.registry
        served = start("--state", str(tmp_path / "state"), "--lease", "4s", "--listen", listen)
        await until(lambda: tunnels[0].peers() == {"t2", "t3"} and tunnels[2].peers() == {"t1", "t2"}, 4.0)
        assert tunnels[0].client.enrolment.registry == number
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        served.process.terminate()
        assert served.process.communicate()[1] == ""

    asyncio.run(main())


def test_a_refused_token_is_told_with_the_file_it_is_in(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("correct-horse-battery")
    wrong.write_text("incorrect-horse-battery")

    async def main(url: str) -> None:
        refused = Tunnel(url, "t1", 1, 7001, secret=wrong.read_text(), token_file=wrong)
        with pytest.raises(
            UsageError, match=rf"--token-file: {wrong}: the registry at {url[:-1]} refuses the token in it .401"
        ):
            await refused.serve()
        with pytest.raises(UsageError, match=r"wants a token .401.; name a file"):
            await Tunnel(url, "t1", 1, 7001).serve()
        tunnel = Tunnel(url, "t1", 1, 7001, secret=right.read_text(), token_file=right)
        task = asyncio.create_task(tunnel.serve())
        await until(lambda: tunnel.client.enrolment.id is not None, 5.0)
        task.cancel()
        await asyncio.wait({task})

    with admin("--token-file", str(right)) as url:
        asyncio.run(main(url))


def test_datagrams_of_others_are_counted_and_cause_one_question_a_second_at_most() -> None:
    async def main(url: str) -> None:
        tunnel = Tunnel(url, "t1", 1, 7001)
        task = asyncio.create_task(tunnel.serve())
        await until(lambda: tunnel.told, 5.0)
        enrolment, codec = tunnel.client.enrolment, AdminCodec()
        for data in (b"", b"x" * 1400, codec.encode(Advertisement(1, 2))[:-1]):
            tunnel.client.received(data)
        for number in range(2000):
            tunnel.client.received(codec.encode(Advertisement(enrolment.registry, enrolment.stamp + 1 + number)))
            tunnel.client.received(codec.encode(Advertisement(7, enrolment.stamp + 1)))
        before = enrolment.counts["lists_received"]
        await asyncio.sleep(1.5)
        assert tunnel.client.malformed == 3
        assert enrolment.counts["advertisements_ignored"] >= 2000
        assert enrolment.counts["lists_received"] == before
        task.cancel()
        await asyncio.wait({task})

    with admin() as url:
        asyncio.run(main(url))


@pytest.mark.parametrize(
    "url", ["", "10.0.0.1:8080", "ftp://10.0.0.1", "http://", "http://a:b", "http://a/x", "http://a:99999", "x"]
)
def test_a_url_that_is_none_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(UsageError, match=r"--admin: value .* is not allowed; the URL of a registry, like http://") as caught:
        check_url(url)
    assert "\n" not in str(caught.value)
