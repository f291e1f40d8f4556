"""Discriminator for keys that take a plain value or a model by name, like `queue: 50` or `queue: {model: red, ...}`."""

from typing import Any

from pydantic import BaseModel, Discriminator

__all__ = ["PLAIN_OR_MODEL"]


def _form(value: Any) -> str:
    return "model" if isinstance(value, (dict, BaseModel)) else "plain"


PLAIN_OR_MODEL = Discriminator(_form)
"""Selects the union member tagged `plain` or `model`, so that a validation error mentions only the form that was used."""
