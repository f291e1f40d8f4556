"""Estimation of channel models from records of losses."""
