"""The messages that a publisher can't take, whatever else it keeps."""

from protocols.content import SizeOnly
from protocols.errors import ConfigError
from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.pool import Pool
from protocols.jms import message_of, write_head
from protocols.machine import Content
from protocols.messaging import Publication
from protocols.norm.tx_object import check_content

__all__ = ["check_message", "check_size"]


def check_size(size: int, config: Fjm2Config) -> None:
    """Check a message of `size` bytes in all: ConfigError if the pool has no room for it, UsageError if NORM can't carry it."""
    needed = Pool.octets_for(size)
    if needed > config.pool:
        raise ConfigError(f"pool: value {config.pool} is not allowed; at least {needed} for a message of {size} bytes")
    check_content(config, Content(SizeOnly(size), is_file=False))


def check_message(config: Fjm2Config, message: Publication) -> None:
    """Check a message: UsageError if JMS does not allow it; see `check_size`."""
    jms = message_of(message, 0)
    check_size(len(write_head(jms)) + jms.size, config)
