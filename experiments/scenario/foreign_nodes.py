"""Choose what nodes do: a role of the protocol, or another program than mcastlab's: NRL's NORM library, a broker, a command."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_serializer

from experiments.scenario.suggestion import one_of
from experiments.scenario.user_settings import read_settings
from protocols.errors import ConfigError, shown
from protocols.fec import MOST_SYMBOLS
from protocols.roles import Role
from protocols.settings import setting_of
from topologies.spec import Topology

__all__ = ["BY_WORKLOAD", "FOREIGN", "OURS", "NodeChoice", "check_networks", "check_nodes", "check_roles", "options_of"]

OURS, FOREIGN = "mcastlab", "nrl-norm"
BROKERS = ("mosquitto", "activemq")
"""Foreign brokers, which take the role `broker` of the protocol of this name."""
BROKER = "broker"
BY_WORKLOAD = ("sender", "receiver", "publisher", "subscriber")
"""Roles that hosts take by the workload."""

Command: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]


class NodeChoice(BaseModel):
    """The program of a host, for which the workload says whether it sends or receives; or the role of a node.

    Further keys beside `role` are the options of the role.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    run: Literal["mcastlab", "nrl-norm", "mosquitto", "activemq"] | Command = Field(
        default="mcastlab",
        description=(
            "mcastlab: the protocol of the scenario; nrl-norm: NRL's NORM library; mosquitto, activemq: the broker of protocol "
            "broker; or a command as a list of strings"
        ),
    )
    role: str | None = Field(default=None, description="role of the protocol that the node takes, such as relay")

    @model_serializer
    def _written(self) -> dict[str, Any]:
        """Serialize the program, or the role with its options."""
        return {"run": self.run} if self.role is None else {"role": self.role, **self.options}

    @property
    def options(self) -> dict[str, Any]:
        """The keys beside `role`."""
        return dict(self.model_extra or {})

    @property
    def foreign(self) -> bool:
        """Whether it is a program other than mcastlab's."""
        return self.run != OURS

    @property
    def taken_role(self) -> str | None:
        """The role that the node takes, by a machine or a foreign broker."""
        return BROKER if self.run in BROKERS else self.role

    @property
    def command(self) -> tuple[str, ...]:
        """The words of a command; empty for a program known by name."""
        return self.run if isinstance(self.run, tuple) else ()


def check_nodes(chosen: dict[str, NodeChoice], protocol: str, config: Any) -> None:
    """ConfigError if a program is chosen that does not implement the protocol, or NRL's library and not its FEC scheme."""
    for name, choice in chosen.items():
        if choice.run in BROKERS and protocol != BROKER:
            raise ConfigError(
                f"nodes.{name}.run: value {choice.run!r} is not allowed; it is a broker, and the protocol is {protocol}"
            )
        if choice.run != FOREIGN:
            continue
        refused = f"nodes.{name}.run: value {FOREIGN!r} is not allowed"
        if protocol != "norm":
            raise ConfigError(f"{refused}; it speaks norm, and the protocol is {protocol}")
        if config.fec == 0:
            raise ConfigError(f"{refused}; it needs fec 2, 5 or 129, and here is {config.fec}")
        if config.fec_m == 16 and config.block + config.parity <= MOST_SYMBOLS[8]:
            raise ConfigError(f"{refused}; it has fec_m 16 only where block + parity is more than {MOST_SYMBOLS[8]}")


def check_roles(chosen: Mapping[str, NodeChoice], roles: Mapping[str, Role], protocol: str, needed: Mapping[str, str]) -> None:
    """ConfigError for keys that are unknown, a role the protocol does not have, and a role that is needed and nobody takes.

    `needed` maps each role that needs others to why it is there, e.g. "workload.0: publish".
    """
    for name, choice in chosen.items():
        _check_keys(name, choice)
        if choice.role is not None:
            _check_role(f"nodes.{name}", choice, roles, protocol)
    taken = {choice.taken_role for choice in chosen.values()}
    for role in taken & roles.keys():
        nodes = [name for name, choice in chosen.items() if choice.taken_role == role]
        if roles[str(role)].single and len(nodes) > 1:
            raise ConfigError(f"nodes.{nodes[1]}.role: value {role!r} is not allowed; {nodes[0]} takes it, and one is enough")
    for role, why in needed.items():
        for need in roles[role].needs:
            if need not in taken and need not in BY_WORKLOAD:
                raise ConfigError(
                    f"nodes: nobody takes the role {need!r}, which protocol {protocol} needs for {why}; "
                    f"like nodes: {{HOST: {{role: {need}}}}}"
                )


def _check_keys(name: str, choice: NodeChoice) -> None:
    if choice.role is None:
        for key, value in choice.options.items():
            raise ConfigError(f"nodes.{name}.{key}: value {shown(value)} is not allowed; unknown key, known here: run, role")
    elif choice.foreign:
        raise ConfigError(f"nodes.{name}.run: value {choice.run!r} is not allowed; beside a role only {OURS!r}")


def _check_role(where: str, choice: NodeChoice, roles: Mapping[str, Role], protocol: str) -> None:
    assert choice.role is not None
    allowed = [role for role in roles if role not in BY_WORKLOAD]
    if choice.role in BY_WORKLOAD:
        raise ConfigError(f"{where}.role: value {choice.role!r} is not allowed; hosts take this role by the workload")
    if not allowed:
        raise ConfigError(f"{where}.role: value {choice.role!r} is not allowed; protocol {protocol} has no further roles")
    if choice.role not in allowed:
        raise ConfigError(f"{where}.role: value {choice.role!r} is not allowed; {one_of(choice.role, allowed)}")
    options_of(where, choice, roles[choice.role])


def check_networks(chosen: Mapping[str, NodeChoice], roles: Mapping[str, Role], topology: Topology, config: Any) -> None:
    """ConfigError for an option that names a network which the node does not have, and for what its role refuses."""
    for name, choice in chosen.items():
        if choice.role is None:
            continue
        role = roles[choice.role]
        options = options_of(f"nodes.{name}", choice, role)
        known = topology.networks_of(name) if name in topology.router_machines else []
        for item in fields(role.options) if role.options is not None else ():
            value = getattr(options, item.name)
            if setting_of(item).unit == "network" and value and value not in known:
                allowed = one_of(value, known) if known else "only a router has several networks"
                raise ConfigError(f"nodes.{name}.{item.name}: value {value!r} is not allowed; {allowed}")
        try:
            role.check(options, config, known)
        except ConfigError as error:
            raise ConfigError(f"nodes.{name}.{error}") from error


def options_of(where: str, choice: NodeChoice, role: Role) -> Any:
    """Return the options of a role; None if it has none. ConfigError for a key or value that is not allowed."""
    if role.options is None:
        for key, value in choice.options.items():
            raise ConfigError(f"{where}.{key}: value {shown(value)} is not allowed; role {choice.role} has no options")
        return None
    return read_settings(role.options, choice.options, where, ("role",))
