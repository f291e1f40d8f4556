"""An object or a stream from its submission until nothing more is sent for it."""

from typing import Literal, TypeAlias

__all__ = ["State", "Transmission"]

State: TypeAlias = Literal["queued", "sent", "done", "failed"]


class Transmission:
    """An object or a stream that is sent; give it to `Session.sent`. `size` is in bytes, None of a stream.

    `state`: "queued"; "sent" once every segment was; "done" when all that receivers requested was repaired and the end was
    announced; "failed" with `reason`.
    """

    __slots__ = ("name", "object_id", "reason", "size", "state")

    def __init__(self, object_id: int, name: str, size: int | None) -> None:
        self.object_id = object_id
        self.name = name
        self.size = size
        self.state: State = "queued"
        self.reason = ""

    @property
    def is_over(self) -> bool:
        """Whether it is done or has failed."""
        return self.state in ("done", "failed")
