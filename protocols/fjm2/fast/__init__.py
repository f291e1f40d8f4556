"""The roles of FJM2 on the fast machines of NORM, with equal results."""

from typing import Final

from protocols.fjm2.roles import roles_on
from protocols.norm.fast import make_receiver, make_sender

__all__ = ["ROLES"]

ROLES: Final = roles_on(make_sender, make_receiver)
