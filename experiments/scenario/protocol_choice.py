"""The protocol of a scenario: its name and parameters, checked against the settings of its config."""

from dataclasses import asdict, dataclass, field, fields
from math import inf
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from experiments.scenario.protocol_modules import ProtocolModule, find_protocol, protocol_names
from experiments.scenario.suggestion import one_of
from experiments.scenario.user_settings import EXAMPLES, read_settings
from protocols.errors import ConfigError, shown
from protocols.settings import Setting, setting_of
from protocols.spec import ProtocolSpec

__all__ = ["ProtocolChoice"]


@dataclass(frozen=True, slots=True)
class ProtocolChoice:
    """A protocol by its name, and its frozen config.

    `module` is the file or dotted name of an external protocol, empty for others; `mutant` names one of the protocol's mutants,
    empty for the protocol itself.
    """

    name: str
    config: Any
    module: str = ""
    mutant: str = ""
    found: ProtocolModule = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", find_protocol(self.name, self.module))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle name, module and parameters: the process that reads them imports the protocol, if need be from its file."""
        parameters = {item.name: getattr(self.config, item.name) for item in fields(self.config)}
        return _restored, (self.name, parameters, self.module, self.mutant)

    @property
    def spec(self) -> ProtocolSpec:
        """The `ProtocolSpec` of the protocol."""
        return self.found.spec.mutated(self.mutant)

    @property
    def digest(self) -> str:
        """SHA-256 of the source of an external protocol; empty for mcastlab's own."""
        return self.found.digest

    @classmethod
    def parse(cls, value: object) -> "ProtocolChoice":
        """Read the value that a user wrote: `{name: norm, rate: 20Mbit, ...}` or `{module: mine.py, ...}`.

        ConfigError names key, value and what is allowed.
        """
        if isinstance(value, ProtocolChoice):
            return value
        named = isinstance(value, dict) and any(isinstance(value.get(key), str) and value[key] for key in ("name", "module"))
        if not isinstance(value, dict) or not named:
            allowed = ", ".join(protocol_names())
            if not isinstance(value, dict):
                which = f"{{name: NAME}} with one of {allowed}; or {{module: FILE.py}}"
                raise ConfigError(f"protocol: value {shown(value)} is not allowed; it should be a mapping, {which}")
            if value.get("module") is not None and value.get("name") is None:
                return cls._of_module(value["module"], None, {}, "")
            wrong = f"value {shown(value['name'])} is not allowed" if "name" in value else "is missing"
            raise ConfigError(f"protocol.name: {wrong}; it names a protocol: {allowed}; or {{module: FILE.py}} a file")
        given = {key: item for key, item in value.items() if key not in ("name", "module", "mutant")}
        mutant = value.get("mutant") or ""
        if value.get("module"):
            return cls._of_module(value["module"], value.get("name"), given, mutant)
        names = protocol_names()
        if value["name"] not in names:
            raise ConfigError(f"protocol.name: value {shown(value['name'])} is not allowed; {one_of(value['name'], names)}")
        return cls.of(value["name"], given, mutant=mutant)

    @classmethod
    def _of_module(cls, module: object, name: object, given: dict[str, object], mutant: object) -> "ProtocolChoice":
        if not isinstance(module, str) or not module:
            raise ConfigError(f"protocol.module: value {shown(module)} is not allowed; a file.py or an importable module")
        own = find_protocol("", module).spec.name
        if name not in (None, own):
            raise ConfigError(f"protocol.name: value {name!r} is not allowed; beside this module {own!r}, or nothing")
        return cls.of(own, given, module, mutant)

    @classmethod
    def of(cls, name: str, given: dict[str, object], module: str = "", mutant: object = "") -> "ProtocolChoice":
        """Make the choice from a name, parameters as a user writes them, a module and a mutant. ConfigError as from `parse`."""
        spec = find_protocol(name, module).spec
        known = spec.mutant_table if mutant else {}
        if not isinstance(mutant, str) or (mutant and mutant not in known):
            allowed = f"one of {', '.join(known)}" if known else f"protocol {name} has none"
            raise ConfigError(f"protocol.mutant: value {shown(mutant)} is not allowed; {allowed}")
        return cls(name, read_settings(spec.config, given, "protocol", ("name",)), module, mutant)

    def plain(self) -> dict[str, object]:
        """Return name, module and all parameters, in seconds, bytes and bytes per second."""
        special = {"module": self.module, "mutant": self.mutant}
        return {"name": self.name, **{key: value for key, value in special.items() if value}, **asdict(self.config)}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(cls.plain)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"oneOf": [*(_schema(name) for name in protocol_names()), _MODULE_SCHEMA]}


def _restored(name: str, parameters: dict[str, Any], module: str, mutant: str) -> ProtocolChoice:
    """Return the choice that was pickled; ConfigError if its module is not to be found here."""
    return ProtocolChoice(name, find_protocol(name, module).spec.config(**parameters), module, mutant)


_MODULE_SCHEMA = {
    "type": "object",
    "title": "module",
    "description": "an external protocol; further keys are the settings of its config",
    "properties": {
        "module": {
            "type": "string",
            "description": "file.py (relative to the folder of the scenario) or importable module that defines PROTOCOL",
        },
        "name": {"type": "string", "description": "name of the protocol in the module; may be left out"},
    },
    "required": ["module"],
}


def _schema(name: str) -> dict[str, Any]:
    properties: dict[str, Any] = {"name": {"const": name, "description": f"the protocol {name}, with these parameters"}}
    try:
        spec = find_protocol(name).spec
    except ConfigError as error:
        # An installed package that can't be imported; other protocols have their schema all the same.
        properties["name"]["description"] = f"can't be used: {error}"
        return {"type": "object", "title": name, "properties": properties, "required": ["name"]}
    if mutants := list(spec.mutant_table):
        properties["mutant"] = {"enum": mutants, "description": "a variant with one deliberate defect; see mcastlab zoo"}
    for item in fields(spec.config):
        properties[item.name] = _property(setting_of(item), item.default)
    return {"type": "object", "title": name, "properties": properties, "required": ["name"], "additionalProperties": False}


def _property(known: Setting, default: Any) -> dict[str, Any]:
    described = {"description": f"{known.help} ({known.source})" if known.source else known.help, "default": default}
    if known.choices:
        return {**described, "enum": list(known.choices)}
    if known.unit in ("file", "network"):
        return {**described, "type": "string"}
    number: dict[str, Any] = {"type": "integer" if known.unit in ("count", "bytes") else "number"}
    if known.unit != "rate":
        # The limits of the config are in bytes per second, and a number written by a user is in bits per second.
        number |= {"minimum": known.low} if known.low > -inf else {}
        number |= {"maximum": known.high} if known.high < inf else {}
    if known.unit in EXAMPLES:
        return {**described, "anyOf": [number, {"type": "string"}], "examples": [EXAMPLES[known.unit].split()[-1]]}
    return {**described, **number}
