"""The machines of FJM2 on the fast machines of NORM, with equal results."""

from typing import Final

from protocols.fjm2.roles import makers_on, roles_on
from protocols.norm import fast as norm

__all__ = ["ROLES", "make_receiver", "make_sender"]

ROLES: Final = roles_on(norm.make_sender, norm.make_receiver)
make_sender, make_receiver = makers_on(norm.make_sender, norm.make_receiver)
