"""The error that ended the program of an emulated host is one line; result.json has its traceback."""

import traceback

from experiments.output.node_errors import last_call


def fail() -> None:
    """Raise an exception whose text has two lines."""
    raise ZeroDivisionError("two\nlines")


def test_a_traceback_becomes_its_last_call_and_the_exception() -> None:
    try:
        fail()
    except ZeroDivisionError as error:
        text = "".join(traceback.format_exception(error)).rstrip()
    line = fail.__code__.co_firstlineno + 2
    assert last_call(text) == f"{__file__}: line {line}, in fail: ZeroDivisionError: two lines"


def test_another_error_stays_as_it_is() -> None:
    assert last_call("crashed at 0.05 s") == "crashed at 0.05 s"
