"""Refusals: what a function has that the kernel language does not, where, and the fix."""

from __future__ import annotations

import ast
import difflib
import math
import random
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray import kernel_api
from dparray._language.source import quote, source_of

#: The name of `ShapeError` in the exceptions of functions of the host.
SHAPE_ERROR = "__ShapeError__"
#: The name of the NumPy arrays that they capture, and the beginning of the parameters for them.
CAPTURED = "__captured__"
#: The parameter for the values of variables in an exception.
RAISED_VALUES = "__raised__"
#: The most of them.
MAX_RAISED_VALUES = 16
NO_CONTAINERS = (
    "device code has no memory to grow in; use dp.PrivateArray(size, dtype) for one work-item, "
    "dp.LocalAccessor for a work-group, or an array argument"
)
_NO_CONTAINERS_OF_HOST = "use an array of the largest size, np.empty(size), and a count"
ON_ARRAYS = (
    "works on whole arrays and is not available in a kernel, which works on elements: write a "
    "loop, use the math module, or call dparray's function on the host"
)
NOT_AN_ELEMENT = (
    "a whole array or a row of one, and a kernel computes with elements: write an index for each "
    "dimension, as in x[i] or x[i, j]"
)
NO_MEMORY = (
    "this is a new array, for which a work-item has no memory: write into an array made outside of "
    "the loop, as in out[i, :] = ..."
)
CHANGED = (
    "an array is changed while a name holds an expression of its elements, and a work-item has no "
    "memory for their values: write them into an array made outside of the loop: out[i, :] = ..."
)
OVERLAPS = (
    "both sides are slices of one array that may overlap, and a work-item has no memory for a "
    "copy: write the result into another array, or write a loop over the elements"
)
NO_STRINGS = "a string is not available in device code; only print takes one, beside a number"
RECURSION = "recursion is not available in device code: write a loop"
NOT_A_VALUE = (
    "the value of '{}' cannot be used in a kernel, which may refer to numbers, tuples of numbers, "
    "device functions and modules: assign what it needs to a name of its own"
)
#: Parts of Python that device code does not have.
UNAVAILABLE: dict[type, str] = {
    ast.Try: "an exception handler",
    ast.Raise: "raising an exception",
    ast.With: "a with block",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.Global: "assigning to a global",
    ast.Nonlocal: "assigning to a captured variable",
    ast.ClassDef: "a class",
    ast.Yield: "a generator",
    ast.YieldFrom: "a generator",
    ast.GeneratorExp: "a generator",
    ast.Await: "await",
    ast.Match: "match",
    ast.AsyncFor: "an asynchronous loop",
    ast.AsyncWith: "a with block",
    ast.AsyncFunctionDef: "an asynchronous function",
}
CONTAINERS: dict[type, str] = {
    ast.List: "a list",
    ast.ListComp: "a list",
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.Set: "a set",
    ast.SetComp: "a set",
}
_HOST_CONTAINERS = (bytearray, bytes, dict, frozenset, list, set, str)


class Refusal(Exception):
    """The function has something that the language does not have; the text is for its author.

    Attributes:
        node: the part of the function's syntax tree.
        function: the Python function that ``node`` belongs to.
    """

    def __init__(self, text: str, node: ast.AST | None = None) -> None:
        super().__init__(text)
        self.node = node
        self.function: Callable[..., Any] | None = None


def described_refusal(
    refusal: Refusal, function: Callable[..., Any], parameters: Sequence[str], kind: str = "kernel"
) -> str:
    """Return the few lines that say why a function does not compile.

    Args:
        refusal: the refusal.
        function: the kernel, or the function that an array function applies.
        parameters: its parameters with their types.
        kind: what it is.
    """
    head = f"{kind} {function.__name__} does not compile for ({', '.join(parameters)})\n"
    blamed = refusal.function or function
    if blamed.__code__ is not function.__code__:
        head += f"in the device function {blamed.__name__}:\n"
    return head + excerpt(refusal, blamed) + str(refusal)


def refusal_of_host_code(refusal: Refusal, name: str, function: Callable[..., Any]) -> str:
    """Return the lines that say why a function of the host does not compile.

    Args:
        refusal: the refusal.
        name: what the user calls the function.
        function: the function.
    """
    reason = str(refusal).replace(NO_CONTAINERS, _NO_CONTAINERS_OF_HOST)
    reason = reason.replace("device code", "compiled code")
    place = excerpt(refusal, refusal.function or function)
    return f"{name}: native code cannot have this\n{place}{reason}"


def excerpt(refusal: Refusal, function: Callable[..., Any]) -> str:
    """Return the line of a refusal, with carets below the part."""
    node, source = refusal.node, source_of(function)
    if source is None or not isinstance(node, ast.expr | ast.stmt):
        code = function.__code__
        return f"  {code.co_filename}:{code.co_firstlineno}\n"
    is_one_line = node.end_lineno == node.lineno and isinstance(node, ast.expr | ast.stmt)
    end = node.end_col_offset if is_one_line else None
    end = node.col_offset + 1 if end is None else end
    return quote(
        source,
        node.lineno + source.first - 1,
        node.col_offset + source.indent,
        end + source.indent,
    )


def unavailable(node: ast.AST) -> str:
    """Return why a statement or an expression is refused."""
    if type(node) in UNAVAILABLE:
        return f"{UNAVAILABLE[type(node)]} is not available in device code"
    if type(node) in CONTAINERS:
        return f"{CONTAINERS[type(node)]} is not available in device code: {NO_CONTAINERS}"
    if isinstance(node, ast.Delete):
        return "del is not available in device code: leave the del out"
    return f"{type(node).__name__.lower()} is not available in device code"


def value_problem(name: str, value: Any) -> str | None:
    """Return why a global or captured value is refused; ``None`` if kernels may name it."""
    if isinstance(value, np.ndarray):
        return (
            f"{name} is a NumPy array of the host: pass dp.asarray({name}) as an argument; a few "
            "constants can be a tuple"
        )
    if hasattr(value, "usm_type") or hasattr(value, "__sycl_usm_array_interface__"):
        return f"{name} is an array from outside of the kernel: pass it as an argument"
    if isinstance(value, tuple) and any(value_problem(name, each) for each in value):
        return NOT_A_VALUE.format(name)
    if isinstance(value, _HOST_CONTAINERS) and not isinstance(value, str):
        return (
            f"{name} is a {type(value).__name__} of the host: a few constants can be a tuple, many "
            "numbers are passed as an array"
        )
    return None


def call_problem(name: str, called: Any) -> str:
    """Return why a call is refused."""
    if isinstance(called, types.BuiltinFunctionType | type) and (
        getattr(called, "__module__", "") == "builtins"
    ):
        needs_memory = called is sorted or called in _HOST_CONTAINERS
        remedy = NO_CONTAINERS if needs_memory else "write it with loops and operators"
        return f"{name} is not available in device code: {remedy}"
    if isinstance(called, np.ufunc):
        return f"{name} is not available in a kernel; write it with operators and the math module"
    package = (getattr(called, "__module__", None) or "").partition(".")[0]
    owner = getattr(called, "__self__", None)
    if isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random"):
        return (
            f"{name} is not available in a kernel: pass an array of random numbers, as of "
            "dp.random.default_rng()"
        )
    if package == "numpy":
        return f"{name} {ON_ARRAYS}"
    if hasattr(called, "device_function"):
        return (
            f"{name} is a function of arrays; assign {name}.device_function to a name and call that"
        )
    if hasattr(called, "py_func"):
        return f"{name} is a kernel, and only the host launches kernels: make it a dp.device_func"
    if package == "dparray":
        return f"{name} is a host function: call it before or after the kernel"
    if isinstance(called, types.FunctionType):
        return f"{name} is a Python function: decorate it with @dp.device_func"
    return f"{name} is not available in a kernel"


def attribute_problem(owner: Any, name: str) -> str:
    """Return why a module has no attribute."""
    module = owner.__name__
    known: Sequence[str] = ()
    if module == "math":
        known = dir(math)
    elif module in ("dparray", "dparray.kernel_api"):
        known = kernel_api.__all__
    return f"module '{module}' has no attribute '{name}'{suggestion(name, known)}"


def method_problem(owner: str, name: str) -> str:
    """Return why an item, a group or an ``AtomicRef`` has no such method."""
    if owner == "Item" and re.fullmatch(r"get_(?:sub_)?group|get_local\w+", name):
        return (
            "an Item of a Range has no group and no local id: launch over an NdRange, which gives "
            "an NdItem"
        )
    known = [each for each in dir(getattr(kernel_api, owner)) if not each.startswith("_")]
    # The same number in the other kind of item; the global range is the whole of a Range.
    renamed = name.replace("_global", "") if "_global" in name else name.replace("_", "_global_", 1)
    meant = suggestion(name, known, renamed if renamed in known else "")
    if owner in ("Item", "NdItem", "Group"):
        meant = re.sub(r"\b(get_(?:(?:global|local|group)_)?(?:id|range))\b", r"\1(0)", meant)
    if owner == "Item" and re.fullmatch(r"get_global\w+", name):
        return (
            "the Item of a Range has get_id and get_range; for get_global_id, launch over an "
            f"NdRange{meant}"
        )
    if owner == "NdItem" and name in ("get_id", "get_range", "get_linear_id"):
        return (
            "an NdItem has get_global_id and get_local_id; get_id belongs to the Item of a "
            f"Range{meant}"
        )
    return f"there is no attribute '{name}' on {owner}{meant}"


def suggestion(name: str, known: Sequence[str], renamed: str = "") -> str:
    """Return the names that are probably meant, as the end of a sentence; or nothing."""
    meant = [renamed] if renamed else difflib.get_close_matches(name, known, 2, 0.8)
    meant = meant or difflib.get_close_matches(name, known, 1)
    return f"; did you mean {' or '.join(meant)}?" if meant else ""
