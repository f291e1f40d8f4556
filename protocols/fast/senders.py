"""Machines that hear several senders: each sender's messages advance a lockstep group of its own.

What a receiver lacks of one sender makes no difference to the messages of another. So a receiver of several senders has a view
of each of them, which is the machine in the `SenderGroup` of that sender. A receiver of one sender, the usual case, is its own
view. What concerns the receiver as a whole (its deadline, its end, its counters) concerns all its views.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from mypy_extensions import mypyc_attr, trait

from protocols.fast.contract import FastMachine, Other
from protocols.fast.group import MachineGroup, SenderGroup
from protocols.machine import Address, Message

if TYPE_CHECKING:
    from protocols.fast.lookahead import Burst

__all__ = ["FollowingMachine", "SenderGroups"]


@trait
@mypyc_attr(allow_interpreted_subclasses=True)
class FollowingMachine(FastMachine):
    """A machine that follows each of its senders by itself."""

    __slots__ = ()

    @staticmethod
    @abstractmethod
    def sender_of(message: Message) -> Hashable:
        """Return what names the sender that a message comes from, or that feedback is for.

        None: the message has no effect on machines of this class.
        """

    @property
    def follows_several(self) -> bool:
        """Whether the machine is not its own view."""
        return False

    @abstractmethod
    def view_of(self, sender: Hashable) -> FastMachine:
        """Return the view of a sender, always the same object; the machine follows several from now on."""

    @staticmethod
    @abstractmethod
    def make_sender_group(views: list[Any]) -> SenderGroup:
        """Return a group of machines as receivers of one sender; None in the list stands for a member that is none."""


class SenderGroups(MachineGroup):
    """See the module. `followers` are of one class, or None; the list is not copied and must not change.

    `others` receive every message singly, or feedback only, if nothing else has an effect on them.
    """

    __slots__ = ("_followers", "_groups", "_kind", "_others", "_others_for_content", "_single")

    def __init__(self, followers: list[Any], others: list[Other]) -> None:
        super().__init__()
        self._followers = followers
        self._kind: type[FollowingMachine] = next(type(each) for each in followers if each is not None)
        self._others = others
        self._others_for_content = [each for each in others if not each[2]]
        self._groups: dict[Hashable, SenderGroup] = {}
        # Whether the machines are their own views, those of the only sender.
        self._single = True

    def tell(self, message: Message, source: Address, to: Address, now: float, lost_by: Sequence[int]) -> None:
        """Deliver a message to all machines but those at the indices `lost_by`."""
        for index, machine, _ in self._others if message.is_feedback else self._others_for_content:
            if index not in lost_by:
                machine.receive(message, source, to, now)
        sender = self._kind.sender_of(message)
        if sender in self._groups:
            self._groups[sender].tell(message, source, to, now, lost_by)
        elif sender is not None and not message.is_feedback:
            self._make_group(sender).tell(message, source, to, now, lost_by)
        elif sender is not None:
            # Some may have received a message of this sender on their own.
            for index, follower in enumerate(self._followers):
                if follower is not None and index not in lost_by:
                    follower.receive(message, source, to, now)

    def follow(self, burst: "Burst") -> SenderGroup:
        """Return the group that is advanced over the messages of this burst and others of its sender."""
        sender = self._kind.sender_of(burst.message(0))
        return self._groups.get(sender) or self._make_group(sender)

    def dissolve(self) -> None:
        """Make every machine independent; the group is not used any more."""
        for group in self._groups.values():
            group.dissolve()

    def _make_group(self, sender: Hashable) -> SenderGroup:
        """Return a new group for a sender; with the second one the machines get views."""
        if self._single and (self._groups or any(each is not None and each.follows_several for each in self._followers)):
            self._single = False
            for known, group in self._groups.items():
                group.dissolve()
                self._groups[known] = self._group_of_views(known)
        made = self._kind.make_sender_group(self._followers) if self._single else self._group_of_views(sender)
        self._groups[sender] = made
        return made

    def _group_of_views(self, sender: Hashable) -> SenderGroup:
        views = [None if machine is None else machine.view_of(sender) for machine in self._followers]
        return self._kind.make_sender_group(views)
