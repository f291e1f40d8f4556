"""Erasure coding: `encode` computes parity symbols of a block, `decode` its missing source symbols."""

from protocols.fec.reed_solomon import MAX_SYMBOLS, decode, encode

__all__ = ["MAX_SYMBOLS", "decode", "encode"]
