"""The decorator for public functions, which states the handling of operands once.

``@public(small=np.sum, takes=("axis", "keepdims"))`` adds these steps before the body of a
function:

1. the fast path: if the parameters that NumPy does not accept have their defaults, ``small``
computes small arrays immediately (``call_small`` in `_array/_fastpath_functions.c`);
2. the override: an operand or option of another class with ``__dparray_function__`` handles the
call, with the options that do not have their defaults;
3. the operands are converted to arrays, on one queue if there are several;
4. ``out`` is checked to be an array on that queue.

With ``converts=False`` the function itself does the last two steps.

The decorator adds the errors of these steps and of axes to the docstring, before its example.

The error boundary (:mod:`dparray._functions.error_boundary`) is not among them: functions call each
other without it. It takes the fast path itself, so that a call of a user passes one wrapper.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from dparray._array.host_fastpath import call_small, small_function
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    OVERRIDE,
    check_array,
    check_arrays,
    check_out,
    dispatch_override,
    on_queue_of,
    overriding,
)

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_MISSING = inspect.Parameter.empty
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def public(
    *,
    operands: Sequence[str] = (),
    index: str = "",
    small: Callable[..., Any] | None = None,
    takes: Sequence[str] = (),
    when: Callable[..., bool] | None = None,
    mode: str = "plain",
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
        mode: what ``small`` does, if it does not return few values of few elements:
            ``"broadcast"``: its arguments broadcast, so that its result may be large;
            ``"join"``: its first argument is a sequence of arrays, which the function itself
            checks;
            ``"view"``: it returns a view of the first argument;
            ``"fold biuf"``: it reduces over ``axis``, contiguous elements of these kinds fast;
            ``"convert"``: it converts the first argument to a ``dtype``;
            ``"create"``: it returns a new array, on the default device; its first argument is the
            shape, and no argument is an array.
        converts: whether operands become arrays and ``out`` is checked.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        arrays = tuple(operands) or (next(iter(parameters)),)
        function.__doc__ = _with_errors(function.__doc__, parameters, arrays)
        fast = None
        if small is not None and small_function is not None:
            named = {key: p for key, p in parameters.items() if p.kind not in _VARIADIC}
            passed = (*arrays, *takes)
            special = "dtype" if mode in ("create", "convert") else index
            fast = small_function(
                small,
                when,
                tuple(named),
                tuple(p.default for p in named.values()),
                _MISSING,
                tuple(passed.index(key) if key in passed else -1 for key in named),
                sum(p.kind in _BY_POSITION for p in named.values()),
                passed.index(special) if special in passed else -1,
                mode,
            )
        general = (
            function
            if mode in ("join", "create")
            else _with_operands(function, arrays, index, converts)
        )
        if fast is None and general is function:
            return function
        made = _calling(fast, general) if fast is not None else general
        steps[made] = Steps(fast, general)
        return functools.update_wrapper(named_after(function, made), function)

    return decorate


def _with_errors(text: str | None, names: Container[str], arrays: Sequence[str]) -> str | None:
    """Return a docstring with the errors that functions with such parameters have in common."""
    added = ["ExecutionPlacementError: the arrays are on different queues."] * (len(arrays) > 1)
    added += ["AxisError: an axis is out of range."] * ("axis" in names or "axes" in names)
    before, title, example = (text or "").rpartition("Example:\n")
    if not (title and added):
        return text
    indent = before[before.rfind("\n") + 1 :]
    before = before.rstrip() + "\n" if "Raises:\n" in before else f"{before}Raises:\n"
    lines = "".join(f"{indent}    {error}\n" for error in added)
    return f"{before}{lines}\n{indent}{title}{example}"


class Steps(NamedTuple):
    """The parts of a public function: its fast path, if it has one, and the general path."""

    fast: Any
    general: Callable[..., Any]


#: The parts of the functions made public.
steps: dict[Callable[..., Any], Steps] = {}


def named_after(function: Callable[..., Any], wrapper: Any) -> Any:
    """Return a wrapper whose frame has the name of a function, where profiles and events look."""
    wrapper.__code__ = wrapper.__code__.replace(co_name=function.__name__)
    return wrapper


def _calling(fast: Any, general: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        found = call_small(fast, args, kwargs)
        return general(*args, **kwargs) if found is None else found

    return call


def _with_operands(
    function: Callable[..., Any], arrays: tuple[str, ...], index: str, converts: bool
) -> Callable[..., Any]:
    """Return a function that hands over to the class of an operand, or converts its operands."""
    parameters = inspect.signature(function).parameters
    defaults = {key: p.default for key, p in parameters.items()}
    by_position = [key for key, p in parameters.items() if p.kind in _BY_POSITION]
    needed, has_out = len(arrays), "out" in parameters
    come_first = by_position[:needed] == list(arrays)
    first_option = by_position.index("out") if "out" in by_position else len(parameters) + 1
    index_at = by_position.index(index) if index else 0

    def call(*args: Any, **kwargs: Any) -> Any:
        # The usual call needs nothing: arrays of one queue by position, and no output.
        if (
            come_first
            and needed <= len(args) <= first_option
            and type(args[0]) is ndarray
            and not (kwargs and ((has_out and "out" in kwargs) or index in kwargs))
            and (not kwargs or overriding(kwargs.values()) is None)
            and not (index and isinstance(args[min(index_at, len(args) - 1)], np.ndarray))
        ):
            queue = args[0].queue
            for other in args[1:needed] if needed > 1 else ():
                if type(other) is not ndarray or other.queue is not queue:
                    break
            else:
                return function(*args, **kwargs)
        if come_first and len(args) == needed and not kwargs and hasattr(type(args[0]), OVERRIDE):
            return dispatch_override(function, args)
        return in_general(args, kwargs)

    def in_general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {**dict(zip(by_position, args, strict=False)), **kwargs}
        values = {key: given.get(key, defaults[key]) for key in arrays}
        is_twice = len(given) < min(len(args), len(by_position)) + len(kwargs)
        if is_twice or any(x is _MISSING for x in values.values()):
            return function(*args, **kwargs)  # which raises an error
        if index and isinstance(given.get(index), np.ndarray):
            indexed = next(each for each in arrays if each != index)
            given[index] = on_queue_of(values[indexed], given[index])
            values = {key: given.get(key, x) for key, x in values.items()}
        more = args[len(by_position) :]
        if overriding((*given.values(), *more)) is not None:
            options = {
                key: value
                for key, value in given.items()
                if key not in arrays and value is not defaults.get(key, _MISSING)
            }
            return dispatch_override(function, (*values.values(), *more), **options)
        if converts:
            values = _converted(function.__name__, values)
            if has_out and given.get("out") is not None:
                check_out(function.__name__, tuple(values.items()), given["out"])
        given |= {key: x for key, x in values.items() if key in given or x is not defaults[key]}
        in_order = [given.pop(key) for key in by_position[: len(args)]]
        return function(*in_order, *more, **given)

    return call


def _converted(name: str, values: Mapping[str, Any]) -> dict[str, ndarray]:
    """Return operands as arrays, on one queue if there are several."""
    if len(values) == 1:
        ((key, x),) = values.items()
        return {key: check_array(name, key, x)}
    return dict(zip(values, check_arrays(name, *values.items()), strict=True))


def array_method(name: str) -> Callable[[F], F]:
    """Make a function the array method of a name; the array is its first parameter."""

    def attach(function: F) -> F:
        method: Any = function
        method.__name__, method.__qualname__ = name, f"ndarray.{name}"
        setattr(ndarray, name, method)
        return function

    return attach
