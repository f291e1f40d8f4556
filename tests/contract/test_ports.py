"""The ports of the world of UDP sockets."""

from experiments.contract.worlds import free_port, new_group


def test_hosts_and_groups_do_not_share_ports() -> None:
    # Of 500 numbers drawn from some 2,800, at least one pair is equal with a probability of 1 - 1e-20.
    ports = [free_port() for _ in range(400)] + [int(new_group().rpartition(":")[2]) for _ in range(100)]
    assert len(set(ports)) == 500
