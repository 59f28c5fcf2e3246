"""The short way of small arrays, compiled: methods of arrays, from `dparray/_array/short.c`.

A call costs 0.1 us more than NumPy's then; in Python it costs 0.4. The Python functions stay: the
compiled ones call them for all that is not common, and they do it all where the module was not
built (for want of a C compiler, see :mod:`dparray._array.build_short`) or from another source,
where ``DPARRAY_COMPILED=0`` says so, and in a Python without the interpreter's lock, under which
the module works. ``DPARRAY_COMPILED`` may also name another file of it.
"""

from __future__ import annotations

import contextvars
import importlib.util
import os
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dparray import _hooks
from dparray._array import small
from dparray._array.apply import OPERATIONS
from dparray._array.ndarray import config_values, ndarray
from dparray._evaluate import host, limits
from dparray._functions import products, protocols
from dparray._graph.ops import COMPARISONS, OPERATORS, OPS
from dparray._runtime import queues

# As the module numbers them.
_OF_NUMBERS = (
    *("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne"),
    *("and", "or", "xor"),
)

is_installed = False


def load() -> ModuleType | None:
    """The compiled module; ``None`` where there is none for this Python."""
    named = os.environ.get("DPARRAY_COMPILED", "")
    file = Path(named) if named else Path(small.__file__).with_name("_short.abi3.so")
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    if named == "0" or not has_lock or not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location("_short", file)
    assert spec is not None and spec.loader is not None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:  # of another platform, or a NumPy before 2
        return None
    source = zlib.crc32(Path(small.__file__).with_name("short.c").read_bytes())
    return module if getattr(module, "made_from", None) == f"{source:08x}" else None


def install(module: Any) -> None:
    """Give arrays the module's methods, which call those that they have now."""
    global is_installed
    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    of_class = ndarray.__dict__
    named = {
        "ndarray": ndarray,
        "working": queues.working,
        "config_values": config_values,
        "at_once": limits.at_once,
        "scalar_types": set(small.SCALARS),
        "context": context,
        "array_ufunc": protocols.array_ufunc,
        "numpy_matmul": np.matmul,
        "heap_elements": small.HEAP_ELEMENTS,
        "one_core_products": products.ONE_CORE_PRODUCTS,
        "small_product": products._small_product,
    }
    for name in ("getitem", "iter", "setitem", "matmul", "float", "int", "index", "bool"):
        named[name] = of_class[f"__{name}__"]
    for name in ("shape", "ndim", "size", "dtype"):
        named[name] = of_class[name].fget
    operations, numbers = [], {}
    operators = [*OPERATORS.items(), *COMPARISONS.items()]
    for at, (name, operation) in enumerate(operators):
        op = OPS[operation]
        compute = host.eager_function(op)
        number = _OF_NUMBERS.index(name) + 1 if name in _OF_NUMBERS else 0
        slow_in_place = of_class[f"__i{name}__"] if name in OPERATORS else None
        given = (compute, OPERATIONS[op], host.in_place(op), slow_in_place, op.weight, number)
        operations.append(given)
        if protocols.OPERATIONS_OF_UFUNCS.get(op.ufunc) is OPERATIONS[op]:
            numbers[op.ufunc] = at
    methods = module.setup(named, operations, numbers)
    made: dict[str, Any] = {}
    for name in (
        *("getitem", "iter", "setitem", "matmul", "array_ufunc"),
        *("float", "int", "index", "bool"),
    ):
        made[f"__{name}__"] = methods[f"__{name}__"]
    for at, (name, _) in enumerate(operators):
        made[f"__{name}__"] = methods[f"left_{at}"]
        if name in OPERATORS:
            made[f"__r{name}__"] = methods[f"right_{at}"]
            made[f"__i{name}__"] = methods[f"in_place_{at}"]
    for name in ("shape", "ndim", "size", "dtype"):
        known = of_class[name]
        setattr(ndarray, name, property(getattr(module, name), known.fset, None, known.__doc__))
    before = {name: of_class[name] for name in made}
    in_python = products._small_product

    def listen(is_on: bool) -> None:
        """Use the Python functions while somebody listens, since the module tells nobody."""
        for name, method in (before if is_on else made).items():
            setattr(ndarray, name, method)
        products._small_product = in_python if is_on else module.small_product

    listen(False)
    _hooks.add_switch(listen)
    is_installed = True


def install_if_built() -> None:
    """Install the module of the package, if there is one."""
    module = load()
    if module is not None:
        install(module)
