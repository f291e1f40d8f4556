"""From records of losses to channels."""
