"""Talk to a user while an emulation is held: a prompt to its hosts (`--shell`), or a wait after the session (`--keep`)."""

import cmd
import os
import select
import sys
from contextlib import suppress

from emu.entering import run_in_namespaces, shell_command, shell_environment
from emu.hold import GONE, Controls, Hold

__all__ = ["KEEP", "SHELL"]

_HELP = """HOST            a shell on a host, router or switch, up to exit
HOST COMMAND    one command there, such as: r1 ping -c1 sender
hosts           the names and addresses
start           start the session of the scenario, in the background
wait            wait for its end
exit            end the session and the network, and show the results (also Ctrl-D)
"""


class _Prompt(cmd.Cmd):
    """The prompt of `--shell`. Hosts resolve each other's names, as in `ping sender`."""

    prompt = "mcastlab> " if sys.stdin.isatty() else ""
    use_rawinput = sys.stdin.isatty()

    def __init__(self, controls: Controls) -> None:
        super().__init__(stdout=sys.stderr)
        self._controls = controls
        self._nodes = controls.emulation().nodes

    def onecmd(self, line: str) -> bool:
        """Run one command; returns whether the prompt ends."""
        self._controls.update()
        return self._controls.state == GONE or bool(super().onecmd(line))

    def emptyline(self) -> bool:
        """Do nothing."""
        return False

    def default(self, line: str) -> None:
        """Run a command on a host, or a shell."""
        node, _, command = line.strip().partition(" ")
        if node not in self._nodes:
            self._say(f"{node}: no command and no host; help lists the commands, hosts the hosts")
            return
        with suppress(OSError):
            namespaces = self._controls.emulation().namespaces(node)
            run_in_namespaces(namespaces, shell_command(command.strip()), shell_environment(node))

    def completenames(self, text: str, *ignored: object) -> list[str]:
        """Complete commands and names of hosts."""
        return [name for name in ("hosts", "start", "wait", "exit", "help", *self._nodes) if name.startswith(text)]

    def do_help(self, arg: str) -> None:
        """Print the commands."""
        del arg
        self.stdout.write(_HELP)

    def do_hosts(self, arg: str) -> None:
        """Print the names and addresses of all nodes."""
        del arg
        width = max(map(len, self._nodes))
        for name, address in self._nodes.items():
            self._say(f"{name:{width}}  {address}".rstrip())

    def do_start(self, arg: str) -> None:
        """Start the session."""
        del arg
        if self._controls.state != "up":
            self._say(f"the session is {self._controls.state} already")
            return
        self._controls.start()
        self._controls.wait({"running", "over"})
        self._say("the session runs; wait waits for its end")

    def do_wait(self, arg: str) -> None:
        """Wait for the end of the session."""
        del arg
        if self._controls.state == "up":
            self._say("the session is not started; start starts it")
            return
        try:
            self._controls.wait({"over"})
        except KeyboardInterrupt:
            self._say("")
        else:
            self._say("the session is over")

    def do_exit(self, arg: str) -> bool:
        """End everything."""
        del arg
        return True

    do_EOF = do_quit = do_exit

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")
        self.stdout.flush()


def _talk(controls: Controls) -> None:
    """Show a prompt while the network is up."""
    if controls.wait({"up"}) == GONE:
        return
    prompt = _Prompt(controls)
    intro: str | None = f"{controls.emulation().title} is up, its session is not started; help lists the commands"
    while True:
        try:
            prompt.cmdloop(intro)
            break
        except KeyboardInterrupt:
            # Like in a shell, Ctrl-C gives up the line.
            intro = ""
    controls.end()


def _wait(controls: Controls) -> None:
    """Let the session run, then keep the network until the end of the input or Ctrl-C."""
    if controls.wait({"over"}) == GONE:
        return
    text = f"{controls.emulation().title} is over and its network is up: mcastlab attach HOST; Ctrl-C or Ctrl-D ends it\n"
    os.write(2, text.encode())
    with suppress(KeyboardInterrupt):
        while controls.state != GONE:
            readable = select.select([controls, sys.stdin], [], [])[0]
            if sys.stdin in readable and not os.read(sys.stdin.fileno(), 4096):
                break
            controls.update()
    controls.end()


SHELL = Hold(_talk, waits=True)
"""A prompt to the hosts, from before the session to the end of the network."""
KEEP = Hold(_wait, waits=False)
"""The network stays after the session."""
