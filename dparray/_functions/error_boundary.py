"""The boundary of the public namespace: errors that leave it are dparray's.

A function checks the arguments that need their own message. Any other invalid argument, such as a
string for an axis or a float for a count, fails inside with a Python or NumPy error. That error
leaves the namespace as an :class:`~dparray.exceptions.ArgumentError` that names the function and
its arguments, with the original error as its cause. NumPy's names of keywords are accepted:
:mod:`dparray._functions.numpy_keywords` translates them before the call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType, TracebackType
from typing import Any

from dparray import _dtypes, _placement, _satellites, exceptions
from dparray._array.host_fastpath import call_small
from dparray._array.operands import dispatch_override
from dparray._functions import numpy_keywords, single_precision
from dparray._functions.public import named_after, steps
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
#: Clear as they are: indices out of range, overflowing numbers, singular matrices.
_MEANT = (DparrayError, IndexError, OverflowError)
_WRAPPERS = "dparray._functions.public"
_INSIDE = ("dparray", "numpy", "dpnp", "dpctl", "contextlib", "functools")


#: Functions that are called often and check all of their arguments.
_CHECKED = frozenset(
    {"all", "any", "argmax", "argmin", "matmul", "mean", "prod", "ptp", "std", "sum", "var"}
    | {"amax", "amin", "eval", "max", "min"}
)
_CHECKED_MODULES = ("dparray._functions.elementwise", "dparray._kernel", "dparray.kernel_api")


def called_apart(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function with operands on several queues if a policy combines them.

    Otherwise return ``NotImplemented``.
    """
    if not _placement.in_force:
        return NotImplemented
    return _satellites.provider("placement").called_together(function, args, kwargs)


def guard(owner: Any, names: Iterable[str] | None = None) -> None:
    """Wrap the functions of a module or class so that only dparray errors leave them.

    Args:
        owner: a module or a class; only functions that dparray defines are wrapped.
        names: the names of the functions; all public ones by default.
    """
    guarded: dict[FunctionType, Any] = {}
    for name in list(vars(owner)) if names is None else names:
        value = vars(owner).get(name)
        if not name.startswith("_") and name not in _CHECKED and _lets_errors_out(value):
            setattr(owner, name, guarded.get(value) or guarded.setdefault(value, _guarded(value)))


def published(value: Any) -> Any:
    """Return a lazily imported member of the namespace, wrapped and with its public name."""
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
    fast, general = steps.get(function, (None, function))

    def call(*args: Any, **kwargs: Any) -> Any:
        if fast is not None:
            found = call_small(fast, args, kwargs)
            if found is not None:
                return found
        mark = recent[-1] if recent else None
        if kwargs and not kwargs.keys() <= numpy_keywords.own_keywords(function):
            args, kwargs = numpy_keywords.translate(function, args, kwargs)
        try:
            # Without this flag, each call on small arrays would cost a twentieth more.
            may_be_bfloat16 = is_single and _dtypes.is_bfloat16_used
            if may_be_bfloat16 and single_precision.takes_bfloat16(args, kwargs):
                return single_precision.in_single(function, args, kwargs)
            result = general(*args, **kwargs)
            if recent and recent[-1] is not mark:
                note_call(function.__name__, mark, args[:1] if result is None else result)
            return result
        except HostConversionError:
            taken = dispatch_override(function, args, **kwargs)
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
            text = text.replace("invalid argument", "an argument is too large", 1)
            raise exceptions.MemoryError(text) from error

    return functools.update_wrapper(named_after(function, call), function)


def _came_from_inside(error: BaseException) -> bool:
    """Return whether an error is neither about the call itself nor raised by a user function."""
    if type(error).__name__ == "LinAlgError":
        return False
    step: TracebackType | None = error.__traceback__
    step = None if step is None else step.tb_next
    while step is not None and step.tb_frame.f_globals.get("__name__") == _WRAPPERS:
        step = step.tb_next
    if step is None:  # the arguments do not match the signature; Python's message is specific
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
    return f"{name}: invalid argument ({text}); called with: {shown}"


def _shown(value: Any) -> str:
    """Describe an argument briefly, without computing or copying anything."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{type(value).__name__} of shape {shape} and dtype {dtype}"
    if isinstance(value, str | int | float | complex | type(None)):
        return f"{value!r:.60}"
    if isinstance(value, list | tuple) and len(value) < 5:
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return f"a {type(value).__name__}"
