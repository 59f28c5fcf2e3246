"""NumPy's parameter names, next to those of the Array API standard.

The standard takes most arguments by position only. NumPy's documentation gives each a name, and
programs use it: ``dp.allclose(a=x, b=y)``. Keywords that a function does not have are translated
before the call (:mod:`dparray._functions.error_boundary`), so other calls have no overhead. NumPy
arguments that are omitted on purpose raise an error with the reason.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dparray.exceptions import ArgumentError

_FIELDS = "arrays have no fields to order by"
_SUBCLASSES = "arrays have no subclasses"
_PICKLES = "files contain numbers only and are never unpickled"

#: Arguments of NumPy functions that dparray does not have, and the reasons. If the value is NumPy's
#: default, the argument is ignored.
REASONS = {
    "like": "choose the placement with device= or sycl_queue=",
    "subok": _SUBCLASSES,
    "order": _FIELDS,
    "casting": "convert the result: x.astype(dtype)",
    "interpolation": "it is called method= now",
    "newshape": "it is called shape= now",
    "encoding": _PICKLES,
    "fix_imports": _PICKLES,
    "max_header_size": _PICKLES,
    "einsum_call": "it is for NumPy's own use",
    "style": "NumPy no longer uses it",
    "ndmax": "lists become arrays of numbers at every depth",
    "max_work": "comparing allocations is exact and fast",
    "legacy": "NumPy's other generators are not reproduced",
}

#: Arguments that the newest NumPy removed.
_FORMER = frozenset({"interpolation", "newshape"})

#: Positional parameters of NumPy functions without a signature.
_UNDOCUMENTED = {
    "arange": ("start", "stop", "step", "dtype"),
    "bincount": ("x", "weights", "minlength"),
    "can_cast": ("from_", "to", "casting"),
    "copyto": ("dst", "src", "casting", "where"),
    "dot": ("a", "b", "out"),
    "lexsort": ("keys", "axis"),
    "may_share_memory": ("a", "b", "max_work"),
    "packbits": ("a", "axis", "bitorder"),
    "putmask": ("a", "mask", "values"),
    "ravel_multi_index": ("multi_index", "dims", "mode", "order"),
    "shares_memory": ("a", "b", "max_work"),
    "unpackbits": ("a", "axis", "count", "bitorder"),
    "unravel_index": ("indices", "shape", "order"),
}
#: NumPy modules that NumPy imports lazily.
_NAMESPACES = {
    "dparray.fft": "fft",
    "dparray.linalg": "linalg",
    "dparray.random": "random",
    "dparray.testing": "testing",
}
_BY_KEYWORD = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def numpy_function(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the NumPy function with the name of a dparray function, or ``None``."""
    if "." in function.__qualname__:
        return None
    module = _NAMESPACES.get(".".join(function.__module__.split(".")[:2]))
    namespace = np if module is None else getattr(np, module)
    theirs = getattr(namespace, function.__name__, None)
    return theirs if callable(theirs) else None


@functools.cache
def _numpy_parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Return the positional parameter names of a NumPy function, and the defaults of all."""
    theirs = numpy_function(function)
    if theirs is None:
        return (), {}
    try:
        parameters = inspect.signature(theirs).parameters.values()
    except ValueError:
        names = _UNDOCUMENTED.get(function.__name__, ())
        return names, dict.fromkeys(names, inspect.Parameter.empty) | {"like": None, "subok": False}
    return (
        tuple(p.name for p in parameters if p.kind in _BY_POSITION),
        {p.name: p.default for p in parameters},
    )


@functools.cache
def names(function: Callable[..., Any]) -> Mapping[str, str]:
    """Return dparray's parameter names by NumPy's, where they differ."""
    by_position, theirs = _numpy_parameters(function)
    parameters = inspect.signature(function).parameters
    ours = [p.name for p in parameters.values() if p.kind in _BY_POSITION]
    return {
        numpy_name: own
        for numpy_name, own in zip(by_position, ours, strict=False)
        if numpy_name not in parameters and own not in theirs
    }


@functools.cache
def own_keywords(function: Callable[..., Any]) -> frozenset[str]:
    """Return the keywords that a function has itself."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind in _BY_KEYWORD)


def translate(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with NumPy's keywords replaced by dparray's.

    Raises:
        ArgumentError: an argument is omitted on purpose.
    """
    parameters = inspect.signature(function).parameters
    theirs, renamed = _numpy_parameters(function)[1], names(function)
    own: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name in parameters:
            own[name] = value
        elif name in renamed:
            own[renamed[name]] = value
        elif name in theirs and _is_default(value, theirs[name]):
            continue
        elif name in REASONS and (name in theirs or (theirs and name in _FORMER)):
            raise ArgumentError(f"{function.__name__}: {name}= is not supported: {REASONS[name]}")
        else:
            own[name] = value
    positional = list(args)
    for parameter in list(parameters.values())[len(args) :]:
        if parameter.kind is not parameter.POSITIONAL_ONLY or parameter.name not in own:
            break
        positional.append(own.pop(parameter.name))
    return tuple(positional), own


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, str | int | float) and type(value) is type(default) and value == default
    )
