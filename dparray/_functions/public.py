"""The decorator for public functions, which states the handling of operands once.

``@public(small=np.sum, takes=("axis", "keepdims"))`` adds these steps before the body of a
function:

1. the fast path: if the parameters that NumPy does not accept have their defaults, ``small``
computes small arrays immediately;
2. the override: an operand of another class with ``__dparray_function__`` handles the call;
3. the operands are converted to arrays, on one queue if there are several;
4. ``out`` is checked to be an array on that queue.

The steps are generated as the code of one function with the same signature, since a wrapper with
``*args`` and ``**kwargs`` costs more than the fast path itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import check_array, check_arrays, check_out, dispatch_override

P = ParamSpec("P")
R = TypeVar("R")


def public(
    *,
    operands: Sequence[str] = (),
    small: Callable[..., Any] | None = None,
    takes: Sequence[str] = (),
    when: Callable[..., bool] | None = None,
    joins: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function public: add the fast path, the override, and checks of its arguments.

    Args:
        operands: the names of the array parameters; the first parameter by default.
        small: the NumPy function for small arrays; without it there is no fast path.
        takes: the names of the parameters that are passed to ``small`` after the operands.
        when: returns whether ``small`` may have these arguments; called with them.
        joins: whether the first parameter is a sequence of arrays, which the function itself
            checks.
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
            "general": function,
            "ndarray": ndarray,
            "small": small,
            "dispatch_override": dispatch_override,
            "when": when,
            **{f"default_{name}": p.default for name, p in parameters.items()},
        }
        source = _source(function.__name__, parameters, arrays, names, tuple(takes), joins)
        code = getattr(function, "__code__")  # noqa: B009
        # Tracebacks then show the function's own file, where users and tools look.
        exec(compile("\n" * (code.co_firstlineno - 1) + source, code.co_filename, "exec"), names)
        made = names[function.__name__]
        made.__defaults__ = getattr(function, "__defaults__")  # noqa: B009
        made.__kwdefaults__ = getattr(function, "__kwdefaults__")  # noqa: B009
        return functools.update_wrapper(made, function)

    return decorate


def _source(
    name: str,
    parameters: Any,
    arrays: Sequence[str],
    names: Mapping[str, Any],
    takes: Sequence[str],
    joins: bool,
) -> str:
    """Return the source code of a public function."""
    lines = [f"def {name}({_declared(parameters)}):"]
    if names["small"] is not None:
        given = ", ".join((*arrays, *takes))
        tests = [f"{p} is default_{p}" for p in parameters if p not in (*arrays, *takes)]
        tests += [f"when({given})"] * (names["when"] is not None)
        call = f"compute_small(small, {given}{', joins=True' * joins})"
        lines.append(f"    found = {call}" + f" if {' and '.join(tests)} else None" * bool(tests))
        lines.append("    if found is not None: return found")
    if not joins:
        lines += _checks(name, parameters, arrays)
    by_name = inspect.Parameter.KEYWORD_ONLY
    passed = [f"{p.name}={p.name}" if p.kind is by_name else p.name for p in parameters.values()]
    lines.append(f"    return general({', '.join(passed)})")
    return "\n".join(lines)


def _checks(name: str, parameters: Any, arrays: Sequence[str]) -> list[str]:
    """Return the lines that hand over to another class, convert operands, and check ``out``."""
    options = "".join(f", {p}={p}" for p in parameters if p not in arrays)
    foreign = " or ".join(f"type({each}) is not ndarray" for each in arrays)
    operands = "".join(f"{each}, " for each in arrays)
    others = " or ".join(f"hasattr({each}, '__dparray_function__')" for each in arrays)
    lines = [f"    if {foreign}:"]
    lines.append(f"        if {others}:")
    lines.append(f"            return dispatch_override({name!r}, ({operands}){options})")
    if len(arrays) == 1:
        lines.append(f"        {arrays[0]} = check_array({name!r}, {arrays[0]!r}, {arrays[0]})")
    else:
        pairs = ", ".join(f"({each!r}, {each})" for each in arrays)
        lines.append(f"    {', '.join(arrays)} = check_arrays({name!r}, {pairs})")
    if "out" in parameters:
        pairs = "".join(f"({each!r}, {each}), " for each in arrays)
        lines.append(f"    if out is not None: check_out({name!r}, ({pairs}), out)")
    return lines


def _declared(parameters: Any) -> str:
    """Return parameters as in a definition; defaults refer to those of the original function."""
    bare = [
        p.replace(
            annotation=inspect.Parameter.empty,
            default=p.default if p.default is inspect.Parameter.empty else None,
        )
        for p in parameters.values()
    ]
    return str(inspect.Signature(bare))[1:-1]
