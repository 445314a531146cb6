"""Debian's masakari does not fit its oslo.messaging, which gives back None for what was left out: each write would be a 500."""

from masakari import context

_known = context.RequestContext.read_deleted
context.RequestContext.read_deleted = property(
    _known.fget, lambda self, value: _known.fset(self, value or "no"), _known.fdel)
