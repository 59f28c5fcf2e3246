"""Implement ``numba_dpex.call_kernel`` and ``numba_dpex.call_kernel_async`` with dparray.

They keep numba-dpex's contract: ``call_kernel`` waits, ``call_kernel_async`` returns a pair of
events, kernels without a work-item parameter run with a warning, and handlers written for
numba-dpex catch the errors.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from dparray._kernel.decorators import kernel_of, make_kernel
from dparray._kernel.function import KernelFunction
from dparray._kernel.index_space import as_index_space
from dparray._kernel.launch import call_kernel_async as launch
from dparray._language.references import referred_values
from dparray._runtime.event import Event
from dparray.exceptions import (
    ExecutionPlacementError,
    HostConversionError,
    KernelArgumentError,
    KernelRangeError,
)
from dparray.kernel_api import LocalArray, NdRange, Range, work_items

if TYPE_CHECKING:
    import dpctl


def call_kernel(kernel_fn: Any, index_space: Any, *kernel_args: Any) -> None:
    """Launch a kernel and wait for it."""
    _launch(kernel_fn, index_space, (), kernel_args).wait()


def call_kernel_async(
    kernel_fn: Any, index_space: Any, dependent_events: Any, *kernel_args: Any
) -> tuple[dpctl.SyclEvent | Event, dpctl.SyclEvent | Event]:
    """Launch a kernel after ``dependent_events``; return its event twice.

    numba-dpex's first event belongs to the task that releases the arguments; here the queue's order
    releases them. On a device without SYCL, the events are dparray's.
    """
    event = _launch(kernel_fn, index_space, dependent_events, kernel_args)
    shown = getattr(event, "sycl_event", event)
    return shown, shown


def _launch(
    kernel_fn: Any, index_space: Any, dependent_events: Any, kernel_args: tuple[Any, ...]
) -> Event:
    try:
        return launch(_kernel(kernel_fn, kernel_args), index_space, dependent_events, *kernel_args)
    except ExecutionPlacementError as error:
        raise _translated(error, "ExecutionQueueInferenceError") from error
    except (KernelArgumentError, HostConversionError) as error:
        if "at least one argument must be an array" in str(error):
            raise _translated(error, "ExecutionQueueInferenceError") from error
        raise _translated(error, "UnsupportedKernelArgumentError") from error


class _Kernel(KernelFunction):
    """A kernel made by ``numba_dpex.kernel``, which may lack the work-item parameter."""

    _without_item: KernelFunction | None = None

    @property
    def overloads(self) -> dict[tuple[str, ...], Any]:
        """The signature that it is compiled for."""
        return dict(self._inspect(None, lambda kernel: kernel))


_OF_GROUPS = (LocalArray, work_items.barrier, work_items.sub_group_barrier)


class _WithoutItem(KernelFunction):
    """A kernel in the language up to 0.21: no work-item parameter, and a call waits.

    ``kernel[global_size]`` and ``kernel[global_size, local_size]`` take integers and tuples. Two
    integers are a global and a local size here, and a two-dimensional range for other kernels.
    """

    def __init__(self, function: Any, options: dict[str, Any], default: Any = None) -> None:
        super().__init__(function, options, default, has_item=False)
        self._in_groups = {
            value.__name__
            for value in _language_of(function)
            if any(value is one for one in _OF_GROUPS)
        }

    def _launch(self, index_space: Any, arguments: tuple[Any, ...], depends_on: Any = ()) -> Event:
        if self._in_groups and isinstance(index_space, Range):
            size = ", ".join(map(str, index_space))
            raise KernelRangeError(
                f"kernel {self.__name__}: {' and '.join(sorted(self._in_groups))} need work-"
                f"groups; write {self.__name__}[({size}), local_size], or an NdRange"
            )
        return super()._launch(index_space, arguments, depends_on)

    def __getitem__(self, index_space: Any) -> Any:
        if isinstance(index_space, tuple | list) and not isinstance(index_space, Range):
            if not 1 <= len(index_space) <= 2:
                raise KernelArgumentError(
                    f"kernel {self.__name__}: [global_size, local_size] takes one or two sizes; "
                    f"got {len(index_space)}. A range of three dimensions is "
                    f"numba_dpex.Range{tuple(index_space)}"
                )
            size, *local = index_space
            if local and (isinstance(local[0], int) or len(local[0])):
                return _Waiting(self, NdRange(size, local[0]))
            index_space = Range(*size) if isinstance(size, tuple | list) else size
        return _Waiting(self, as_index_space(index_space))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._default_range is None:
            raise KernelArgumentError(
                f"kernel {self.__name__}: no range was given; write "
                f"{self.__name__}[numba_dpex.Range(n)]({', '.join(self._parameters)})"
            )
        return super().__call__(*arguments, **named)


class _Waiting:
    """A kernel with its range, whose call waits."""

    def __init__(self, kernel: _WithoutItem, index_space: Any) -> None:
        self._kernel = kernel
        self._index_space = index_space

    def __call__(self, *arguments: Any) -> None:
        _launch(self._kernel, self._index_space, (), arguments).wait()


def _language_of(function: Any) -> Iterator[Any]:
    """Yield the values that a kernel and the device functions that it calls refer to."""
    reached = [function]
    for each in reached:  # This list grows during the loop.
        for value in referred_values(each).values():
            called = getattr(value, "py_func", None)
            if isinstance(called, FunctionType) and called not in reached:
                reached.append(called)
            yield value


def _has_no_item(function: Any) -> bool:
    """Return whether a kernel, or a device function that it calls, uses ids without an item."""
    return any(
        getattr(value, "__module__", None) == work_items.__name__
        for value in _language_of(function)
    )


def _make(function: Any, options: dict[str, Any], default: Any = None) -> KernelFunction:
    is_old = isinstance(function, FunctionType) and _has_no_item(function)
    options = {**options, "widens": True}  # Its types are Numba's.
    return (_WithoutItem if is_old else _Kernel)(function, options, default)


def kernel(function: Any = None, **options: Any) -> Any:
    """Create a kernel like ``numba_dpex.kernel``; dparray can launch it like any other."""
    made = make_kernel(function, kind=_make, **options)
    if isinstance(made, KernelFunction):
        return made

    def decorate(python_function: Any) -> Any:
        try:
            return made(python_function)
        except KernelArgumentError as error:
            raise _translated(error, "InvalidKernelSpecializationError") from error

    return decorate


def _kernel(kernel_fn: Any, kernel_args: tuple[Any, ...]) -> KernelFunction:
    if not isinstance(kernel_fn, _Kernel) or len(kernel_fn._parameters) + 1 != len(kernel_args):
        return kernel_of(kernel_fn)
    warnings.warn(
        "numba-dpex announced that kernels without a work-item parameter will not be supported; "
        f"write def {kernel_fn.py_func.__name__}(item, ...)",
        DeprecationWarning,
        stacklevel=4,
    )
    if kernel_fn._without_item is None:
        kernel_fn._without_item = KernelFunction(
            kernel_fn.py_func, kernel_fn.options, has_item=False
        )
    return kernel_fn._without_item


def _translated(error: Exception, name: str) -> Exception:
    """Return ``error`` as an instance of numba-dpex's class and of Numba's ``TypingError``."""
    theirs = getattr(importlib.import_module("numba_dpex.core.exceptions"), name)
    typing_error = importlib.import_module("numba.core.errors").TypingError
    ours = type(error)

    def __init__(self: Any, message: str) -> None:
        Exception.__init__(self, message)

    members = {
        "__init__": __init__,
        "__str__": lambda self: str(self.args[0]),
        "__module__": ours.__module__,
    }
    both = type(ours.__name__, (ours, theirs, typing_error), members)
    translated = both(str(error))
    translated.__dict__.update(error.__dict__)
    return translated
