"""What a subscriber requests, and when it gives up."""

from protocols.distributor import DistributorConfig
from protocols.distributor.requests import Requests
from protocols.rng import Rng


def test_numbers_that_are_given_up_make_room_for_lower_ones() -> None:
    requests = Requests(DistributorConfig(requested=1, retries=1), Rng(1))
    requests.miss(1, 1, 0.0)
    requests.miss(2, 2, 0.0)
    # Another subscriber requests the second number, which takes the room for one.
    requests.heard(2, 2, 0.0)
    assert requests.requests(10.0) == ([(2, 2)], [])
    assert requests.requests(30.0) == ([(1, 1)], [(2, 2)])
    assert 30.0 < requests.due_at < 60.0
