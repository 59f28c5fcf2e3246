"""Find the host driver, which every installation has."""

from __future__ import annotations

PACKAGE = "llvmlite"
INSTALL = "pip install llvmlite"


def absence() -> None:
    """Return nothing: each host has a processor, and dparray needs llvmlite anyway."""
    return
