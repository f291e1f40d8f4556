"""Exceptions of the project. The class says who has to act: the caller, the user, the installation or the remote peer."""

from typing import ClassVar

__all__ = [
    "ConfigError",
    "ContractError",
    "FailureError",
    "LivelockError",
    "McastlabError",
    "ReplayedError",
    "StaleError",
    "StorageError",
    "TransferError",
    "UnauthenticatedError",
    "UnsupportedError",
    "UsageError",
    "WireError",
    "shown",
]

LONGEST_VALUE = 80
"""Characters of a value in an error message."""


class McastlabError(Exception):
    """Base of all exceptions the project raises deliberately."""


class UsageError(McastlabError):
    """Wrong usage by the caller: a bad argument, or a call at the wrong time."""


class ConfigError(UsageError):
    """Invalid configuration. The message names the key, the value and the allowed values."""


class UnsupportedError(McastlabError):
    """A feature is not available on this computer. The message says what is missing and how to install it (exit code 3)."""


class StorageError(McastlabError):
    """Stable storage failed: it is full, in use, damaged or of another version. The message says which and where."""


class TransferError(McastlabError):
    """A real network session, object or stream ended before it was complete. The message says which and why."""


class WireError(McastlabError):
    """Malformed bytes from the network. Raised only by `Codec.decode`; hosts count and drop such packets."""

    reason: ClassVar[str] = "malformed"
    """The name under which hosts count it."""


class UnauthenticatedError(WireError):
    """Bytes from the network that nobody with a key of the group sent, or that were changed on the way."""

    reason = "unauthenticated"


class ReplayedError(WireError):
    """An authentic message that was accepted before."""

    reason = "replayed"


class StaleError(WireError):
    """An authentic message whose time is too far from the receiver's clock: it was recorded long ago, or a clock is wrong."""

    reason = "stale"


class ContractError(McastlabError):
    """A machine breaks a rule of the contract (`protocols.machine`). The message names the host and the rule."""


class FailureError(McastlabError):
    """A machine ended its host by a fault that is a part of its model (`Ports.fail`)."""


class LivelockError(ContractError):
    """A machine's deadline is not later than now after `wake`, so that it would be woken endlessly."""


def shown(value: object) -> str:
    """Return a value as Python writes it, in one line and shortened, for an error message; if that fails, its type."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - of any class; also of a value nested too deep, or a number of too many digits
        return f"<{type(value).__name__}>"
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
