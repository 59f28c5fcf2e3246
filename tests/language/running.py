"""Run kernels by the front end and the interpreter, or in plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import _type_keys
from dparray._ir import interpreter
from dparray._ir.interpreter import Machine, Memory
from dparray._language.frontend import translated

FLOATS = {np.dtype("complex64"): np.float32, np.dtype("complex128"): np.float64}


class PlainItem:
    """A work-item of a plain Python run."""

    def __init__(self, index: Sequence[int], size: Sequence[int]) -> None:
        self.index = index
        self.size = size

    def get_id(self, dimension: int) -> int:
        return self.index[dimension]

    def get_range(self, dimension: int) -> int:
        return self.size[dimension]


def in_python(function: Callable[..., Any], size: Any, *arguments: Any) -> None:
    """Run a kernel in plain Python; arrays are changed in place."""
    sizes = size if isinstance(size, tuple) else (size,)
    with np.errstate(all="ignore"):
        for index in itertools.product(*map(range, sizes)):
            function(PlainItem(index, sizes), *arguments)


def key_of(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        order = "C" if argument.flags.c_contiguous else "A"
        return f"{_type_keys.code_of(argument.dtype)}:{argument.ndim}{order}"
    return _type_keys.code_of(np.asarray(argument).dtype)


def packed(argument: Any) -> list[Any]:
    """Return an argument as a launch packs it."""
    if not isinstance(argument, np.ndarray):
        return [argument.item() if isinstance(argument, np.generic) else argument]
    whole = argument if argument.base is None else argument.base
    assert isinstance(whole, np.ndarray)
    numbers = whole.reshape(-1).view(FLOATS.get(whole.dtype, whole.dtype))
    start = argument.ctypes.data - whole.ctypes.data
    memory = Memory(numbers)
    return [argument.size, argument.itemsize, (memory, start), *argument.shape, *argument.strides]


def run(
    function: Callable[..., Any],
    size: Any,
    *arguments: Any,
    local: Any = None,
    checked: bool = False,
    machine: Machine | None = None,
) -> None:
    """Run a kernel by the front end and the interpreter; arrays are changed in place.

    Args:
        function: the kernel.
        size: the range.
        arguments: NumPy arrays and numbers.
        local: the size of a group.
        checked: whether it checks its indices.
        machine: reports faults.
    """
    sizes = size if isinstance(size, tuple) else (size,)
    groups = local if isinstance(local, tuple) or local is None else (local,)
    kind = "item" if local is None else "nditem"
    keys = [f"{kind}:{len(sizes)}", *map(key_of, arguments)]
    program = translated(function, keys, checked)
    values = list(sizes) if local is None else []
    for argument in arguments:
        values += packed(argument)
    interpreter.run(program, values, sizes, groups, machine)
