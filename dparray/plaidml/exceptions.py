"""PlaidML's errors, under its names."""

from __future__ import annotations

from dparray.exceptions import PlaidMLError

__all__ = ["Cancelled", "FailedPrecondition", "InvalidArgument", "PlaidMLError"]


class Cancelled(PlaidMLError):
    """Work in a context that was cancelled or shut down."""


class FailedPrecondition(PlaidMLError):
    """A buffer, device or view that was closed."""


class InvalidArgument(PlaidMLError, ValueError):
    """An argument, a configuration or a binding that is not valid."""
