"""The other tunnels as a tunnel gets them."""

import pytest

from protocols.admin.node import Node, peers_of, place_of
from sim.addresses import HostPort

A, B, C = (Node(number, f"t{number}", number, f"10.0.0.{number}", 7000, "239.1.1.1:6000") for number in (1, 2, 3))


def test_a_tunnel_gets_all_nodes_but_itself() -> None:
    assert peers_of([A, B, C], 2) == (A, C)
    assert peers_of([A, B, C], 9) == (A, B, C)


def test_a_paused_node_is_paused_for_others_and_all_others_are_paused_for_it() -> None:
    paused = Node(2, "t2", 2, "10.0.0.2", 7000, "239.1.1.1:6000", paused=True)
    assert [node.paused for node in peers_of([A, paused, C], 1)] == [True, False]
    assert [node.paused for node in peers_of([A, paused, C], 2)] == [True, True]


@pytest.mark.parametrize("address", ["g1", HostPort("g1", 2), ("10.0.0.1", 7000)])
def test_an_address_of_a_host_is_written_into_a_node_and_read_from_it(address: object) -> None:
    name, port = place_of(address)
    assert Node(1, "t", 1, name, port, "all").endpoint == address
