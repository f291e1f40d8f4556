"""Numbers of things in words."""

__all__ = ["counted"]


def counted(number: int, noun: str, total: int | None = None, *, more: str = "", spec: str = "") -> str:
    """Return a number with its noun, which gets an s unless there is one: 1 file, 2 files, 1 of 2 files, 1 more file.

    `total` is how many there are in all, `more` words between number and noun, and `spec` the format of the numbers.
    """
    number_of = f"{number:{spec}}" if total is None else f"{number:{spec}} of {total:{spec}}"
    last = number if total is None else total
    return f"{number_of} {f'{more} ' if more else ''}{noun}{'' if last == 1 else 's'}"
