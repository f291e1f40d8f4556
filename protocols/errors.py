"""The errors of the whole project: whose fault something is decides the class."""

__all__ = ["ConfigError", "ContractError", "LivelockError", "McastlabError", "UnsupportedError", "UsageError", "WireError"]


class McastlabError(Exception):
    """Base of every error the project raises on purpose."""


class UsageError(McastlabError):
    """The caller is wrong: a bad argument, or a call at the wrong time."""


class ConfigError(UsageError):
    """A configuration is wrong. The message names the key, the value and what is allowed."""


class UnsupportedError(McastlabError):
    """This machine can't do what was asked. The message says what is missing and how to get it (exit code 3)."""


class WireError(McastlabError):
    """Bytes from the network are wrong. Raised only by `decode`; hosts count and drop."""


class ContractError(McastlabError):
    """A machine breaks a rule of the contract (`protocols.machine`). The message names the host and the rule."""


class LivelockError(ContractError):
    """A machine asks to be woken at a time that is already past after it was woken."""
