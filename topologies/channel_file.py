"""Channel files: the YAML form of a loss channel, as `mcastlab channel fit` writes it."""

from pathlib import Path
from typing import Any

import yaml

from protocols.errors import ConfigError
from topologies.input_file import read_text
from topologies.strict_yaml import parse_yaml

__all__ = ["read_channel", "write_channel"]


def read_channel(file: object) -> dict[str, Any]:
    """Read the keys of the channel in a YAML file. Paths are relative to the working directory. ConfigError names the file."""
    if not isinstance(file, str):
        raise ConfigError(f"file {file!r} is not the name of a channel file")
    try:
        data = parse_yaml(read_text(Path(file)))
    except OSError as error:
        raise ConfigError(f"file {file} can't be read ({error.strerror})") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"file {file} is not YAML ({' '.join(str(error).split())})") from error
    if not isinstance(data, dict) or "model" not in data:
        raise ConfigError(f"file {file} holds no channel: a mapping with the key model")
    return data


def write_channel(path: Path, channel: dict[str, Any], comment: str) -> None:
    """Write a channel's keys below a comment of one or more lines. OSError if the file can't be written."""
    text = "".join(f"# {line}\n" for line in comment.splitlines())
    path.write_text(text + yaml.safe_dump(channel, sort_keys=False, default_flow_style=None, width=120), encoding="utf-8")
