"""A chat on a real network: what one types, all others in the group read.

    python -m examples.chat --group 239.7.7.11:6003 --iface lo --name Ada

Each node sends its lines as one stream and prints the streams of the others. Lines of one node stay in order, and none is lost
that the stream's buffer still holds; who comes later reads from the next whole line on. Ctrl-D ends it.
"""

import argparse
import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable

import mcastlab

__all__ = ["chat"]


async def chat(session: mcastlab.Session, name: str, lines: AsyncIterator[str], show: Callable[[str], None]) -> None:
    """Send `lines` under a name until they end, and show the lines of others meanwhile."""
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen(session, show))
        async with await session.open_stream() as out:
            await out.write(f"* {name} is here\n".encode())
            async for line in lines:
                await out.write(f"{name}: {line.rstrip()}\n".encode())
            await out.write(f"* {name} has left\n".encode())
        await session.sent(out)
        listening.cancel()


async def listen(session: mcastlab.Session, show: Callable[[str], None]) -> None:
    """Show the lines of all others, each node's in a task of its own."""
    async with asyncio.TaskGroup() as tasks:
        async for event in session:
            if isinstance(event, mcastlab.StreamOpened):
                tasks.create_task(show_lines(event.stream, show))


async def show_lines(stream: mcastlab.IncomingStream, show: Callable[[str], None]) -> None:
    """Show the lines of one node until it leaves, or its stream ends without an end."""
    try:
        async for line in stream:
            show(line.decode(errors="replace").rstrip())
    except mcastlab.TransferError:
        show(f"* node {stream.sender} is gone")


async def typed() -> AsyncIterator[str]:
    """Yield the lines of standard input."""
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (sys.stdin.isatty() or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        # The event loop can't wait for a file, which always has its next line.
        for text in sys.stdin.buffer:
            yield text.decode(errors="replace")
        return
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode(errors="replace")


async def main() -> None:
    """Read the options and chat."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", default="239.7.7.11:6003", help="multicast address and port")
    parser.add_argument("--iface", help="device or IPv4 address")
    parser.add_argument("--name", required=True, help="who you are")
    options = parser.parse_args()
    try:
        async with mcastlab.session(options.group, options.iface, boundary="line", rate="1Mbit", grtt="20ms") as session:
            await chat(session, options.name, typed(), lambda line: print(line, flush=True))
    except mcastlab.McastlabError as error:
        parser.error(str(error))


if __name__ == "__main__":
    asyncio.run(main())
