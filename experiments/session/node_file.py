"""The configuration of a node on a real network as a file: `node.yaml`."""

from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from experiments.scenario.files import read_yaml
from experiments.scenario.protocol_choice import ProtocolChoice
from experiments.scenario.validation_errors import validated
from experiments.session.message_bus import MOST_WAITING

__all__ = ["NodeFile", "node_schema", "read_node"]


class NodeFile(BaseModel):
    """Group, interface, and parameters of the protocol: rate, queues, pool, cache, expiry and others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    group: str | None = Field(default=None, min_length=1, description="multicast address and port, as 239.7.7.61:6010")
    iface: str | None = Field(default=None, min_length=1, description="device or its address; none: the system's route")
    hops: int = Field(default=1, ge=0, le=255, strict=True, description="IP time to live of multicast packets")
    waiting: int = Field(
        default=MOST_WAITING, ge=1, strict=True, description="messages of a subscription that wait for the program at the most"
    )
    protocol: ProtocolChoice = Field(
        description="name and parameters of the protocol", default={"name": "fjm2"}, validate_default=True
    )


@cache
def node_schema() -> dict[str, Any]:
    """Return the JSON Schema of node files."""
    return NodeFile.model_json_schema(by_alias=True)


def read_node(path: Path) -> NodeFile:
    """Read a node file. ConfigError names file, key, value and what is allowed, in one line."""
    return validated(NodeFile, read_yaml(path), path, node_schema)
