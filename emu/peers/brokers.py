"""Foreign brokers: mosquitto (MQTT) and ActiveMQ (STOMP), each at an address and port, with a folder of its own."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from emu.addresses import SocketAddress

__all__ = ["BROKERS", "ForeignBroker", "mosquitto_pub", "mosquitto_sub"]

JAVA_ARCHIVES = Path("/usr/share/java")
_ARCHIVES: Final = (
    *("activemq-broker", "activemq-client", "activemq-console", "activemq-stomp", "activemq-openwire-legacy", "hawtbuf"),
    *("slf4j-api", "slf4j-nop", "geronimo-jms_1.1_spec", "geronimo-j2ee-management-1.1-spec"),
)
_CONFIGURATION: Final = """listener {port} {address}
allow_anonymous true
persistence false
# Keep what subscribers have no room for, as long as this host has memory.
max_queued_messages 0
max_inflight_messages 100
set_tcp_nodelay true
log_dest stderr
log_type error
# It would become another user, who may not read this file.
user root
"""
"""Brokers of MQTT have no way to slow a publisher down."""
_MOSQUITTO_PATH = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"


@dataclass(frozen=True, slots=True)
class ForeignBroker:
    """A foreign broker. `command(folder, where)` prepares a folder and returns the command that runs it at an address."""

    name: str
    packages: str
    """Debian packages that it needs."""
    protocol: str
    """The protocol of its clients."""
    command: Callable[[Path, SocketAddress], list[str]]
    programs: tuple[str, ...]
    """Programs that must be there."""
    files: tuple[Path, ...] = ()
    """Files that must be there."""
    patience: float = 20.0
    """Seconds that it may take until it listens."""

    @property
    def lacks(self) -> str | None:
        """Which program or file is missing on this machine; None for none."""
        for program in self.programs:
            if shutil.which(program) is None and shutil.which(program, path=_MOSQUITTO_PATH) is None:
                return program
        return next((str(path) for path in self.files if not path.exists()), None)


def _mosquitto(folder: Path, where: SocketAddress) -> list[str]:
    configuration = folder / "mosquitto.conf"
    configuration.write_text(_CONFIGURATION.format(address=where[0], port=where[1]))
    return [_path("mosquitto"), "-c", str(configuration)]


def _activemq(folder: Path, where: SocketAddress) -> list[str]:
    url = f"broker:(stomp://{where[0]}:{where[1]})?persistent=false&useJmx=false"
    path = ":".join(str(JAVA_ARCHIVES / f"{name}.jar") for name in _ARCHIVES)
    folders = [f"-Dactivemq.{name}={folder}" for name in ("home", "base", "data", "conf")]
    return [_path("java"), "-Xmx256m", *folders, "-cp", path, "org.apache.activemq.console.Main", "start", url]


def _path(program: str) -> str:
    return shutil.which(program) or shutil.which(program, path=_MOSQUITTO_PATH) or program


def mosquitto_pub(where: SocketAddress, topic: str, own: str) -> list[str]:
    """Return the command that publishes each line of its input, and prints a line when the broker has it.

    `own` is the address it connects from. Output to a pipe would come in blocks.
    """
    options = [
        "-h",
        where[0],
        "-p",
        str(where[1]),
        "-A",
        own,
        "-t",
        topic,
        "-q",
        "1",
        "-V",
        "mqttv311",
        "--nodelay",
        "-d",
        "-l",
    ]
    return [_path("stdbuf"), "-oL", _path("mosquitto_pub"), *options]


def mosquitto_sub(where: SocketAddress, topic: str, own: str) -> list[str]:
    """Return the command that prints each message of a topic, with the time in seconds since 1970 before it."""
    options = ["-h", where[0], "-p", str(where[1]), "-A", own, "-t", topic, "-q", "1", "-V", "mqttv311", "-F", "%U %p"]
    return [_path("mosquitto_sub"), *options]


BROKERS: Final[Mapping[str, ForeignBroker]] = {
    "mosquitto": ForeignBroker(
        "mosquitto",
        "mosquitto mosquitto-clients",
        "MQTT",
        _mosquitto,
        ("mosquitto", "mosquitto_pub", "mosquitto_sub", "stdbuf", "setpriv"),
    ),
    "activemq": ForeignBroker(
        "activemq",
        "libactivemq-java openjdk-17-jre-headless",
        "STOMP",
        _activemq,
        ("java", "setpriv"),
        tuple(JAVA_ARCHIVES / f"{name}.jar" for name in _ARCHIVES),
        patience=25.0,
    ),
}
"""By the name in `nodes: {b: {run: NAME}}`."""
