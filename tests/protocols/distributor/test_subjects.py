"""Subjects and patterns against the recorded answers of the Java program, the README and the reference values."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.distributor.subjects import SubjectTrie, check_subject, levels_of, matches
from protocols.errors import UsageError
from tests.support.distributor import vectors

RECORDED = vectors("subject_match")


def needs_a_level(pattern: str, subject: str) -> bool:
    """Whether README and Java program differ: in the README "..." is at least one level, in the program it may be none."""
    return pattern.endswith("/...") and len(levels_of(subject)) < len(levels_of(pattern))


@pytest.mark.parametrize("case", RECORDED["single"], ids=lambda case: f"{case['pattern']} {case['subject']}")
def test_a_pattern_matches_as_recorded_and_as_the_readme_says(case: dict[str, Any]) -> None:
    pattern, subject = case["pattern"], case["subject"]
    if case["add_error"]:
        with pytest.raises(UsageError, match="subscription"):
            matches(pattern, subject)
    elif case["match_error"]:
        assert not matches(pattern, subject)
    else:
        assert matches(pattern, subject) == (case["match"] and not needs_a_level(pattern, subject))


@pytest.mark.parametrize("case", RECORDED["multiple"], ids=lambda case: f"{case['patterns']} {case['subject']}")
def test_several_subscriptions_match_independently(case: dict[str, Any]) -> None:
    trie: SubjectTrie[str] = SubjectTrie()
    for pattern in case["patterns"]:
        trie.add(pattern, pattern)
    assert sorted(trie.match(case["subject"])) == sorted(case["expected_independent"])


names = st.sampled_from(["a", "b", "", "*", "..."])
patterns = st.lists(names, min_size=1, max_size=4).map(lambda levels: "/" + "/".join(levels))


def plainly(pattern: list[str], subject: list[str]) -> bool:
    if not pattern or not subject:
        return not pattern and not subject
    if pattern[0] == "...":
        return True
    return pattern[0] in ("*", subject[0]) and plainly(pattern[1:], subject[1:])


@given(st.lists(patterns, max_size=8), st.lists(st.integers(0, 7), max_size=6), st.lists(patterns, min_size=1, max_size=4))
def test_a_trie_matches_what_each_pattern_matches_alone(added: list[str], removed: list[int], subjects: list[str]) -> None:
    trie: SubjectTrie[int] = SubjectTrie()
    left = {}
    for number, pattern in enumerate(added):
        if "..." not in levels_of(pattern)[:-1]:
            trie.add(pattern, number)
            left[number] = pattern
    for number in removed:
        if number in left:
            trie.match(subjects[0])
            trie.remove(left.pop(number), number)
    assert len(trie) == len(left)
    for subject in subjects:
        wanted = [number for number, pattern in left.items() if plainly(levels_of(pattern), levels_of(subject))]
        assert sorted(trie.match(subject)) == wanted


@pytest.mark.parametrize("subject", ["foo", "", "foo/bar", "/foo/*", "/foo/...", "/foo/ba*", "/...", "/\udcff"])
def test_a_subject_that_is_not_absolute_is_refused_with_its_name(subject: str) -> None:
    with pytest.raises(UsageError, match="subject"):
        check_subject(subject)


def test_removing_what_was_not_added_is_a_usage_error() -> None:
    trie: SubjectTrie[int] = SubjectTrie()
    trie.add("/a/*", 1)
    for pattern, value in (("/a/*", 2), ("/a", 1), ("/a/*/b", 1), ("/a/...", 1)):
        with pytest.raises(UsageError, match="no subscription"):
            trie.remove(pattern, value)


def test_a_match_does_not_cost_more_with_more_subscriptions() -> None:
    # Two equal loops of new subjects, one of few and one of many subscriptions; the limit is the issue's.
    subjects = [f"/market/m{n % 97}/share/s{n}" for n in range(20_000)]
    cost = {}
    for count in (100, 100_000):
        trie: SubjectTrie[int] = SubjectTrie()
        for number in range(count):
            trie.add(f"/market/{'*' if number % 10 == 0 else f'm{number % 97}'}/share/s{number}", number)
        trie.add("/market/...", -1)
        least = float("inf")
        for part in range(5):
            began = time.process_time()
            for subject in subjects[part * 4000 : part * 4000 + 4000]:
                trie.match(subject)
            least = min(least, (time.process_time() - began) / 4000)
        cost[count] = least
    assert cost[100_000] < 3 * cost[100]
    assert cost[100_000] < 9e-6, "three times the 3 us that a match takes at most on a machine that does nothing else"
