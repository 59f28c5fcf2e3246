"""The decorator for public functions, which states the handling of operands once.

``@public(small=np.sum, takes=("axis", "keepdims"))`` adds these steps before the body of a
function:

1. the fast path: if the parameters that NumPy does not accept have their defaults, ``small``
computes small arrays immediately;
2. the override: an operand of another class with ``__dparray_function__`` handles the call, with
the options that do not have their defaults;
3. the operands are converted to arrays, on one queue if there are several;
4. ``out`` is checked to be an array on that queue.

With ``converts=False`` the function itself does the last two steps.

The steps are generated as the code of one function with the same signature, since a wrapper with
``*args`` and ``**kwargs`` costs more than the fast path itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    check_array,
    check_arrays,
    check_out,
    dispatch_override,
    on_queue_of,
)

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
Parameters = Mapping[str, inspect.Parameter]

_METHOD = "__dparray_function__"
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def public(
    *,
    operands: Sequence[str] = (),
    index: str = "",
    small: Callable[..., Any] | None = None,
    takes: Sequence[str] = (),
    when: Callable[..., bool] | None = None,
    joins: bool = False,
    broadcasts: bool = False,
    converts: bool = True,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function public: add the fast path, the override, and checks of its arguments.

    Args:
        operands: the names of the array parameters; the first parameter by default.
        index: the parameter whose values are indices, a mask or counts, which may be a NumPy array.
        small: the NumPy function for small arrays; without it there is no fast path.
        takes: the names of the parameters that are passed to ``small`` after the operands.
        when: returns whether ``small`` may have these arguments; called with them, of which the
            first is an array.
        joins: whether the first parameter is a sequence of arrays, which the function itself
            checks.
        broadcasts: whether the arguments of ``small`` broadcast, so that its result may be large.
        converts: whether operands become arrays and ``out`` is checked.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        arrays = tuple(operands) or (next(iter(parameters)),)
        names: dict[str, Any] = {
            "__name__": function.__module__,
            "check_array": check_array,
            "check_arrays": check_arrays,
            "check_out": check_out,
            "compute_small": compute_small,
            "on_queue_of": on_queue_of,
            "host_array": np.ndarray,
            "general": function,
            "ndarray": ndarray,
            "small": small,
            "dispatch_override": dispatch_override,
            "when": when,
            **{f"default_{name}": p.default for name, p in parameters.items()},
        }
        options = [("joins", joins), ("broadcasts", broadcasts)]
        flags = "".join(f", {flag}=True" for flag, is_set in options if is_set)
        lines = [f"def {function.__name__}({_declared(parameters)}):"]
        if index:
            indexed = next(each for each in arrays if each != index)
            lines += [
                f"    if isinstance({index}, host_array):",
                f"        {index} = on_queue_of({indexed}, {index})",
            ]
        if small is not None:
            lines += _fast_path(parameters, arrays, tuple(takes), when is not None, flags)
        if not joins:
            lines += _override(function.__name__, parameters, arrays)
            if converts:
                lines += _checks(function.__name__, parameters, arrays)
        lines.append(f"    return general({_passed(parameters)})")
        source = "\n".join(lines)
        code = getattr(function, "__code__")  # noqa: B009
        # Tracebacks then show the function's own file, where users and tools look.
        exec(compile("\n" * (code.co_firstlineno - 1) + source, code.co_filename, "exec"), names)
        made = names[function.__name__]
        made.__defaults__ = getattr(function, "__defaults__")  # noqa: B009
        made.__kwdefaults__ = getattr(function, "__kwdefaults__")  # noqa: B009
        return functools.update_wrapper(made, function)

    return decorate


def array_method(name: str) -> Callable[[F], F]:
    """Make a function the array method of a name; the array is its first parameter."""

    def attach(function: F) -> F:
        method: Any = function
        method.__name__, method.__qualname__ = name, f"ndarray.{name}"
        setattr(ndarray, name, method)
        return function

    return attach


def _fast_path(
    parameters: Parameters, arrays: Sequence[str], takes: Sequence[str], has_test: bool, flags: str
) -> list[str]:
    """Return the lines that compute small arrays immediately."""
    given = ", ".join((*arrays, *takes))
    tests = [
        f"not {name}" if p.kind in _VARIADIC else f"{name} is default_{name}"
        for name, p in parameters.items()
        if name not in (*arrays, *takes)
    ]
    if has_test:
        tests += [f"type({arrays[0]}) is ndarray", f"when({given})"]
    return [
        f"    if {' and '.join(tests) or True}:",
        f"        found = compute_small(small, {given}{flags})",
        "        if found is not None: return found",
    ]


def _override(name: str, parameters: Parameters, arrays: Sequence[str]) -> list[str]:
    """Return the lines that hand over to another class of arrays."""
    others = [p for key, p in parameters.items() if key not in arrays]
    more = "".join(f"*{p.name}" for p in others if p.kind is inspect.Parameter.VAR_POSITIONAL)
    rest = "".join(f", **{p.name}" for p in others if p.kind is inspect.Parameter.VAR_KEYWORD)
    options = "".join(
        f"({p.name!r}, {p.name}, default_{p.name}), " for p in others if p.kind not in _VARIADIC
    )
    operands = f"({', '.join(arrays)}, {more})"
    changed = f"{{key: value for key, value, default in ({options}) if value is not default}}"
    return [
        f"    if {' or '.join(f'type({each}) is not ndarray' for each in arrays)}:",
        f"        if {' or '.join(f'hasattr({each}, {_METHOD!r})' for each in arrays)}:",
        f"            return dispatch_override({name!r}, {operands}, **{changed}{rest})",
    ]


def _checks(name: str, parameters: Parameters, arrays: Sequence[str]) -> list[str]:
    """Return the lines that convert operands and check ``out``."""
    pairs = "".join(f"({each!r}, {each}), " for each in arrays)
    if len(arrays) == 1:
        (x,) = arrays
        lines = [f"    if type({x}) is not ndarray: {x} = check_array({name!r}, {x!r}, {x})"]
    else:
        first, *others = arrays
        tests = [f"type({each}) is not ndarray" for each in arrays]
        tests += [f"{each}.queue is not {first}.queue" for each in others]
        lines = [f"    if {' or '.join(tests)}:"]
        lines.append(f"        {', '.join(arrays)} = check_arrays({name!r}, {pairs})")
    if "out" in parameters:
        lines.append(f"    if out is not None: check_out({name!r}, ({pairs}), out)")
    return lines


def _passed(parameters: Parameters) -> str:
    """Return the arguments of the call of the function itself."""
    before: dict[Any, str] = {
        inspect.Parameter.KEYWORD_ONLY: "{0}=",
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    return ", ".join(before.get(p.kind, "").format(p.name) + p.name for p in parameters.values())


def _declared(parameters: Parameters) -> str:
    """Return parameters as in a definition; defaults refer to those of the original function."""
    bare = [
        p.replace(
            annotation=inspect.Parameter.empty,
            default=p.default if p.default is inspect.Parameter.empty else None,
        )
        for p in parameters.values()
    ]
    return str(inspect.Signature(bare))[1:-1]
