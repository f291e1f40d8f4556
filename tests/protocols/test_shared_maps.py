"""Dictionaries that machines share while they have at most one entry."""

from protocols.shared_maps import shared_map, with_entry, without_entry


def test_equal_maps_of_one_entry_are_one_object() -> None:
    first = with_entry(shared_map(), "a", 1)
    assert first == {"a": 1}
    assert with_entry(with_entry(shared_map(), "a", 2), "a", 1) is first
    assert without_entry(with_entry(with_entry(shared_map(), "a", 1), "b", 2), "b") is first
    assert without_entry(first, "a") is shared_map()


def test_a_shared_map_is_not_modified() -> None:
    first: dict[str, int] = with_entry(shared_map(), "a", 1)
    several = with_entry(first, "b", 2)
    assert with_entry(several, "c", 3) == {"a": 1, "b": 2, "c": 3}
    assert without_entry(several, "a") == {"b": 2, "c": 3}
    assert (first, shared_map()) == ({"a": 1}, {})
