"""A key that takes either a plain value or a model by its name, like `queue: 50` or `queue: {model: red, ...}`."""

from typing import Any

from pydantic import BaseModel, Discriminator

__all__ = ["PLAIN_OR_MODEL"]


def _form(value: Any) -> str:
    return "model" if isinstance(value, (dict, BaseModel)) else "plain"


PLAIN_OR_MODEL = Discriminator(_form)
"""Chooses between members tagged `plain` and `model`, so that an error speaks only of what was meant."""
