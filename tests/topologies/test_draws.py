"""The losses of many links drawn together are those drawn link by link."""

import pytest

from topologies.draws import BULK, draw_windows, listed, lost_offsets, member_keys, threshold_of

WINDOW_NUMBER = 1 << 55


@pytest.mark.parametrize(("links", "windows"), [(1, 1), (1, 7), (3, 8), (10, 1), (17, 8), (300, 1), (600, 8), (BULK + 3, 1)])
@pytest.mark.parametrize("p", [1e-9, 0.001, 0.01, 0.3, 1.0])
def test_losses_of_windows_are_those_of_each_link(p: float, links: int, windows: int) -> None:
    keys, threshold = member_keys(links, links), threshold_of(p)
    for place, (starts, losers) in enumerate(draw_windows(keys, WINDOW_NUMBER, windows, threshold)):
        found: dict[int, list[int]] = {}
        for offset in range(256):
            for member in listed(losers[starts[offset] : starts[offset + 1]]):
                found.setdefault(member, []).append(offset)
        # Some of the links of a large group, and the last.
        for member in {*range(0, links, max(1, links // 50)), links - 1}:
            assert found.get(member, []) == lost_offsets(int(keys[member]), WINDOW_NUMBER + place, threshold)
