"""Discriminator for keys that take a plain value or a model by name, like `queue: 50` or `queue: {model: red, ...}`."""

from typing import Any

from pydantic import BaseModel, Discriminator

__all__ = ["MODEL", "PLAIN", "PLAIN_OR_MODEL"]

PLAIN, MODEL = "<plain>", "<model>"
"""Tags of the members of a union. They are no keys that a value may have, from which locations of errors tell them."""


def _form(value: Any) -> str:
    return MODEL if isinstance(value, (dict, BaseModel)) else PLAIN


PLAIN_OR_MODEL = Discriminator(_form)
"""Selects the union member tagged `PLAIN` or `MODEL`, so that a validation error mentions only the form that was used."""
