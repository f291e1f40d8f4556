"""Names of nodes in messages, and as file names."""

import pytest

from topologies.names import file_name, first_names


def test_the_first_names_are_listed() -> None:
    assert first_names("abc", 2) == "a, b, ..."
    assert first_names("abc") == "a, b, c"
    assert first_names(()) == "none"


@pytest.mark.parametrize(
    ("name", "file"),
    [("r1", "r1"), ("s1-r.2", "s1-r.2"), ("10.0.0.0/8", "10.0.0.0%2F8"), ("..", "%2E."), ("/etc", "%2Fetc"), ("50%", "50%25")],
)
def test_a_name_is_that_of_one_file_in_its_folder(name: str, file: str) -> None:
    assert file_name(name) == file
