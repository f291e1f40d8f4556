"""The ports of the world of UDP sockets."""

from experiments.contract.worlds import free_port, new_group


def test_hosts_and_groups_do_not_share_ports() -> None:
    # Of 200 numbers drawn from some 350 without regard to each other, two are equal with a probability of 1 - 1e-20.
    ports = [free_port() for _ in range(150)] + [int(new_group().rpartition(":")[2]) for _ in range(50)]
    assert len(set(ports)) == 200
