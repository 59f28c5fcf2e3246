"""The edge of the public namespace: errors that leave it are ours.

What a function expects of its arguments it checks itself, where that needs a sentence of its own.
The rest, a text for an axis or a float for a count, fails somewhere inside with an error of Python
or NumPy; it leaves the namespace as an :class:`~dparray.exceptions.ArgumentError` that names the
function and what was given, with the first error as its cause. Keywords may be NumPy's names of the
arguments: :mod:`dparray._functions.numpy_keywords` translates them before the call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType, TracebackType
from typing import Any

from dparray import exceptions
from dparray._array.operands import dispatch_override
from dparray._functions import numpy_keywords, single_precision
from dparray._hooks import note_call, recent
from dparray.exceptions import (
    ArgumentError,
    DparrayError,
    ExecutionPlacementError,
    HostConversionError,
)

_STRAY = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, LookupError),
    *(NotImplementedError, RecursionError, TypeError, ValueError),
)
#: These say what they mean: positions outside an array, numbers outside a dtype, singular matrices.
_MEANT = (DparrayError, IndexError, OverflowError)
_INSIDE = ("dparray", "numpy", "dpnp", "dpctl", "contextlib", "functools")


#: Functions that are called often and check all their arguments.
_CHECKED = frozenset(
    {"all", "any", "argmax", "argmin", "matmul", "mean", "prod", "ptp", "std", "sum", "var"}
    | {"amax", "amin", "eval", "max", "min"}
)
_CHECKED_MODULES = ("dparray._functions.elementwise", "dparray._kernel", "dparray.kernel_api")

#: Who may call a function whose operands are on several queues, or give ``NotImplemented``; they
#: add themselves, since this module is there before the stack.
when_apart: list[Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]] = []


def called_apart(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the result of a function whose operands are on several queues, where a policy brings
    them together; else ``NotImplemented``.
    """
    for call_together in when_apart:
        result = call_together(function, args, kwargs)
        if result is not NotImplemented:
            return result
    return NotImplemented


def guard(owner: Any, names: Iterable[str] | None = None) -> None:
    """Replace the functions of a module or a class by ones that let only our errors out.

    Args:
        owner: a module or a class; the functions in it that this package defines.
        names: which of them; all public ones if not given.
    """
    guarded: dict[FunctionType, Any] = {}
    for name in list(vars(owner)) if names is None else names:
        value = vars(owner).get(name)
        if not name.startswith("_") and name not in _CHECKED and _lets_errors_out(value):
            setattr(owner, name, guarded.get(value) or guarded.setdefault(value, _guarded(value)))


def published(value: Any) -> Any:
    """Return a member of the namespace that is imported late: guarded, and of the namespace by
    name.
    """
    if _lets_errors_out(value):
        value = _guarded(value)
    if callable(value) and getattr(value, "__module__", "").startswith("dparray._"):
        value.__module__ = "dparray"
    return value


def _lets_errors_out(value: Any) -> bool:
    return (
        isinstance(value, FunctionType)
        and value.__module__.startswith("dparray")
        and not value.__module__.startswith(_CHECKED_MODULES)
    )


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    is_single = function.__name__ in single_precision.NAMES

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        mark = recent[-1] if recent else None
        if kwargs and not kwargs.keys() <= numpy_keywords.own_keywords(function):
            args, kwargs = numpy_keywords.translate(function, args, kwargs)
        try:
            if is_single and single_precision.is_met(args, kwargs):
                return single_precision.in_single(function, args, kwargs)
            result = function(*args, **kwargs)
            if recent and recent[-1] is not mark:
                note_call(function.__name__, mark, args[:1] if result is None else result)
            return result
        except HostConversionError:
            taken = dispatch_override(function.__name__, args, **kwargs)
            if taken is NotImplemented:
                raise
            return taken
        except ExecutionPlacementError:
            result = called_apart(function, args, kwargs)
            if result is NotImplemented:
                raise
            return result
        except _MEANT:
            raise
        except _STRAY as error:
            if not _came_from_inside(error):
                raise
            raise ArgumentError(_message(function, error, args, kwargs)) from error
        except MemoryError as error:
            if isinstance(error, DparrayError):
                raise
            text = _message(function, error, args, kwargs)
            raise exceptions.MemoryError(text.replace("does not fit", "is too large", 1)) from error

    return call


def _came_from_inside(error: BaseException) -> bool:
    """Whether an error is neither about the call itself nor from a function that the user gave."""
    if type(error).__name__ == "LinAlgError":
        return False
    step: TracebackType | None = error.__traceback__
    step = None if step is None else step.tb_next
    if step is None:  # the arguments do not fit the parameters; Python's message says which
        return False
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _INSIDE:
            return False
        step = step.tb_next
    return True


def _message(
    function: Callable[..., Any], error: BaseException, args: Any, kwargs: dict[str, Any]
) -> str:
    name = function.__name__
    text = str(error) or type(error).__name__
    if text.startswith(f"{name}: "):
        return text
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        given = kwargs
    shown = ", ".join(f"{key}={_shown(value)}" for key, value in given.items() if key != "self")
    return f"{name}: an argument does not fit ({text}); given: {shown}"


def _shown(value: Any) -> str:
    """An argument in a few words; nothing is computed or copied for it."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{type(value).__name__} of shape {shape} and dtype {dtype}"
    if isinstance(value, str | int | float | complex | type(None)):
        return f"{value!r:.60}"
    if isinstance(value, list | tuple) and len(value) < 5:
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return f"a {type(value).__name__}"
