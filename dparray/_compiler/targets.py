"""The back ends of targets, which make modules for drivers.

The front end writes LLVM IR with OpenCL's and SPIR-V's functions for all targets. A back end is a
module with six functions:

- ``start()``: begin to load it;
- ``prepare(function)``: change a user's program as its processors need it;
- ``optimised(text, target, contracts)``: the optimized text of a module, and its bytes, in which
  products and sums may be contracted;
- ``needs(module)``: the aspects that a device must have, ``"fp64"`` and ``"atomic64"``;
- ``without_float64(module)``: the module without double precision, ``None`` if it computes in it;
- ``readable(llvm, module)``: the module as text.
"""

from __future__ import annotations

import importlib
from typing import Any

from dparray._driver.interface import Target

#: The line of a module that states the range of a kernel.
DIMENSIONS = "\n; dimensions of the range: {}\n"
#: The line of a module whose divisions and square roots of float32 may be approximate.
APPROXIMATE = "\n; approximate divisions and square roots\n"
#: The folder of each back end, below `back_ends`.
FOLDERS = {"spirv64": "spirv", "ptx": "ptx", "host": "host"}


class EmissionError(Exception):
    """A back end rejects a module; the text is its error message."""


def back_end(target: Target) -> Any:
    """Return the back end of a target."""
    return back_end_named(target.name)


def back_end_named(name: str) -> Any:
    """Return a back end by the name of its targets."""
    return importlib.import_module(f"dparray._compiler.back_ends.{FOLDERS[name]}.client")
