"""The messages that a publisher can't take, whatever else it keeps."""

from dataclasses import dataclass

from protocols.errors import UsageError
from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.pool import Pool
from protocols.jms import message_of, write_head
from protocols.machine import Content
from protocols.messaging import Publication
from protocols.norm.tx_object import check_content

__all__ = ["check_message", "check_size"]


@dataclass(frozen=True, slots=True)
class _Sized:
    """A source of a size only, to ask whether it can be carried."""

    size: int

    def read(self, offset: int, n: int) -> None:
        """Return None."""


def check_size(size: int, config: Fjm2Config) -> None:
    """Raise UsageError for a message whose head and body have more bytes than the pool, or than NORM carries."""
    needed = Pool.octets_for(size)
    if needed > config.pool:
        raise UsageError(f"pool: {config.pool} bytes are too few for a message of {size}; at least {needed}")
    check_content(Content(_Sized(size), is_file=False), config)


def check_message(config: Fjm2Config, message: Publication) -> None:
    """Raise UsageError for a message that JMS does not allow, or that is too large."""
    jms = message_of(message, 0)
    check_size(len(write_head(jms)) + jms.size, config)
