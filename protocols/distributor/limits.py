"""What the Distributor can't carry: patterns that nothing matches, subjects with wildcards, and updates that are too long."""

from protocols.distributor.messages import Carried
from protocols.distributor.subjects import check_pattern, check_subject
from protocols.distributor.wire import LARGEST_UPDATE
from protocols.errors import UsageError
from protocols.messaging import Publication, Subscription

__all__ = ["check_message", "check_size", "check_subscription"]


def check_size(size: int) -> None:
    """Raise UsageError for an update of `size` bytes, the properties of its message included, that is too long."""
    if size > LARGEST_UPDATE:
        raise UsageError(f"size: value {size} with properties is not allowed; an update has at most {LARGEST_UPDATE} bytes")


def check_message(config: object, message: Publication) -> None:
    """Raise UsageError for a message that publishers refuse."""
    del config
    try:
        check_subject(message.destination)
    except UsageError as error:
        raise UsageError(f"to: {error}") from error
    check_size(len(Carried(message)))


def check_subscription(subscription: Subscription) -> None:
    """Raise UsageError for a pattern that no subject can match."""
    try:
        check_pattern(subscription.destination)
    except UsageError as error:
        raise UsageError(f"to: {error}") from error
