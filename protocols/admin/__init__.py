"""The registry by which the tunnels of all sites find each other (FJM2-Admin)."""

from protocols.admin.config import AdminOptions
from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement
from protocols.admin.registry import MEASURES, make_registry
from protocols.admin.wire import AdminCodec, HttpFraming
from protocols.roles import Role

__all__ = ["MEASURES", "PERIODIC", "ROLE", "AdminCodec", "AdminOptions", "HttpFraming"]

PERIODIC = (Advertisement.kind, Request.kind, Response.kind)
"""Kinds of the messages that a registry and its clients send as long as they run."""

ROLE = Role(make_registry, options=AdminOptions, single=True, codec=lambda inner, keys, clock: AdminCodec())
