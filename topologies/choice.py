"""Discriminator for keys that take a plain value or a model by name, like `queue: 50` or `queue: {model: red, ...}`."""

from typing import Any

from pydantic import BaseModel, Discriminator

__all__ = ["MODEL", "PLAIN", "PLAIN_OR_MODEL"]

PLAIN, MODEL = "<plain>", "<model>"
"""Tags of the members of a union. No value has such a key, so the location of an error shows which parts of it are tags."""


def _form(value: Any) -> str:
    return MODEL if isinstance(value, (dict, BaseModel)) else PLAIN


PLAIN_OR_MODEL = Discriminator(_form)
"""Selects the union member tagged `PLAIN` or `MODEL`, so that a validation error mentions only the form that was used."""
