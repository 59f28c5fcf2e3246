"""The functions of the language, and how their calls become ops.

:func:`handler` finds the translation of a call of a Python object, :func:`method` translates a
method of a value that is known at run time only. In: a call. Out: ops, and a value. Imports: rows
up to ``language``.
"""

from __future__ import annotations

import ast
import functools
from functools import partial
from typing import Any

import numpy as np

from dparray import kernel_api as api
from dparray._ir.types import BY_NAME, F32, F64, NUMBERS, Type, of_dtype
from dparray._language import special
from dparray._language.builtins import (
    generated,  # noqa: F401 - registers its handlers, like those below
    groups,  # noqa: F401
    mathematics,  # noqa: F401
    memory,
    printing,  # noqa: F401
    python_functions,
    runs,  # noqa: F401
    vectors,
    work_items,
)
from dparray._language.builtins.registry import HANDLERS, Handler, Native
from dparray._language.errors import ON_ARRAYS, Refusal, method_problem
from dparray._language.scalar_functions import scalar_function
from dparray._language.values import (
    Array,
    Complex,
    Constant,
    Item,
    Method,
    Number,
    Reference,
    array_name,
    described,
    is_number,
)

_NUMBER_TYPES: dict[Any, Type] = {kind.dtype.type: kind for kind in NUMBERS}


def handler(value: Any) -> Handler | None:
    """Return what translates the calls of an object; ``None`` if it is not of the language."""
    if isinstance(value, Native):
        return value.handler
    try:
        found = HANDLERS.get(value)
    except TypeError:  # not hashable
        return None
    if found is not None:
        return found
    if value in special.PUBLIC:
        return partial(_special, special.PUBLIC[value])
    if isinstance(value, np.dtype) and value.name in BY_NAME:
        return partial(python_functions.converted, of_dtype(value))
    if isinstance(value, type):
        if value in _NUMBER_TYPES:
            return partial(python_functions.converted, _NUMBER_TYPES[value])
        if value in (np.complex64, np.complex128):
            part = F32 if value is np.complex64 else F64
            return partial(python_functions.converted_to_complex, part)
        return None
    other = scalar_function(value)
    if other is None or other is value:
        return None
    return partial(_instead, value, other)


def _instead(function: Any, other: Any, front: Any, node: Any, *values: Any, **named: Any) -> Any:
    """Translate the call of a function of arrays as that of a function of numbers."""
    if any(isinstance(value, Array) for value in (*values, *named.values())):
        raise Refusal(f"{_written(function, node)} {ON_ARRAYS}", node)
    caller = front.frame
    try:
        operands = _of_one_type(front, other, list(values))
        return front.call(Constant(other), operands, named, node)
    except Refusal:
        # What the function of numbers lacks says nothing to the author of this call.
        front.frame = caller
        kinds = ", ".join(map(described, (*values, *named.values())))
        name = _written(function, node)
        raise Refusal(f"{name}({kinds}) is not available in a kernel", node) from None


#: Functions that return one of their operands.
_CHOICES = ("maximum", "minimum", "fmax", "fmin", "where", "clip")


def _of_one_type(front: Any, function: Any, values: list[Any]) -> list[Any]:
    """Return operands, as float64 where no integer type of NumPy holds all that may be chosen."""
    name = getattr(getattr(function, "py_func", None), "__name__", "")
    if name not in _CHOICES or not front.rules.is_numpy:
        return values
    first = 1 if name == "where" else 0
    strong = [each for each in values[first:] if is_number(each) and not front.is_weak(each)]
    kinds = [front.type_of(each) for each in strong]
    integers = [kind for kind in kinds if not kind.is_float]
    if not integers or functools.reduce(front.rules.arithmetic, integers) != F64:
        return values
    return values[:first] + [
        front.to(each, F64) if is_number(each) else each for each in values[first:]
    ]


def _written(function: Any, node: Any) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else str(function.__name__)


def _special(meaning: special.SpecialFunction, front: Any, node: Any, *operands: Any) -> Any:
    """Translate a public special function as the device function of the operands' precision."""
    if len(operands) != meaning.arity:
        raise Refusal(
            f"dp.special.{meaning.name} takes {meaning.arity} arguments; got {len(operands)}", node
        )
    for operand in operands:
        if not is_number(operand) or front.type_of(operand).lanes > 1:
            raise Refusal(
                f"dp.special.{meaning.name}: takes real numbers in a kernel; got "
                f"{described(operand)}",
                node,
            )
    strong = [operand for operand in operands if not front.is_weak(operand)]
    dtype = special.precision([front.type_of(operand).dtype for operand in strong])
    numbers = [front.to(operand, of_dtype(dtype)) for operand in operands]
    return front.call(Constant(meaning.of(dtype)), numbers, {}, node)


def method(
    front: Any, called: Method, arguments: list[Any], named: dict[str, Any], node: Any
) -> Any:
    """Translate the call of a method."""
    owner, name = called.owner, called.name
    if isinstance(owner, Item):
        return work_items.method(front, owner, name, node, arguments, named)
    if isinstance(owner, Reference):
        return memory.atomic_method(front, owner, name, node, arguments, named)
    if isinstance(owner, Complex) and name in ("conjugate", "conj"):
        return Complex(owner.real, front.unary(ast.USub, owner.imag, node))
    if isinstance(owner, Number) and owner.type.lanes > 1:
        return vectors.method(front, owner, name, node, *arguments, **named)
    if isinstance(owner, Number):
        if name == "item" and not arguments and not named:
            return python_functions.to_python(front, owner)
        if name in ("conjugate", "conj"):
            return owner
    problem = no_method(owner, name, node)
    raise Refusal(problem or f"the method {name} takes no arguments", node)


_OF_NUMBERS = ("item", "conj", "conjugate")
_OF_VECTORS = ("astype", "sum", "min", "max", "any", "all")


def no_method(owner: Any, name: str, node: ast.AST) -> str:
    """Return why a value has no such attribute; empty if it has a method of this name."""
    if isinstance(owner, Array):
        called = node.func if isinstance(node, ast.Call) else node
        is_name = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
        written = f"'.{name}' of {array_name(owner)}"
        return f"{ast.unparse(called) if is_name else written} {ON_ARRAYS}"
    if isinstance(owner, Item):
        return "" if hasattr(getattr(api, owner.kind), name) else method_problem(owner.kind, name)
    if isinstance(owner, Reference):
        return "" if hasattr(api.AtomicRef, name) else method_problem("AtomicRef", name)
    methods: tuple[str, ...] = ()
    if isinstance(owner, Number) and owner.type.lanes > 1:
        methods = _OF_VECTORS
    elif isinstance(owner, Number | Complex):
        methods = _OF_NUMBERS
    if name in methods:
        return ""
    if name == "astype":
        return (
            "a number has no astype in a kernel: convert it by the name of the type, as in "
            "np.float32(value)"
        )
    return f"there is no attribute '{name}' on {described(owner)}"


def wrong_call(called: Any, node: ast.AST, error: TypeError) -> str:
    """Return why the arguments of a call do not fit a function of the language."""
    if called is api.AtomicRef:
        return "AtomicRef requires the index of an element: dp.AtomicRef(x, index=i)"
    if called in (api.LocalArray, api.PrivateArray):
        return memory.constant_shape(called.__name__)
    if called in (api.group_barrier, api.atomic_fence):
        return work_items.WRONG_FENCE
    name = ast.unparse(node.func) if isinstance(node, ast.Call) else getattr(called, "__name__", "")
    if called is print:
        keyword = str(error).rpartition(" ")[2].strip("'")
        return (
            f"print takes no {keyword}= in device code: it puts a space between values and ends "
            "the line"
        )
    return f"the call does not fit {name}: {error}"
