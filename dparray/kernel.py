"""Kernels in Python: the decorators that make them and the functions that launch them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dpctl

from dparray import _compiler
from dparray._compiler import DeviceFunction, Kernel
from dparray._evaluate import launch_kernel
from dparray._launcher import Binder, explain_arguments, is_array, make_binder
from dparray._placement import common_placement
from dparray._usm import layout_of_interface
from dparray.exceptions import KernelArgumentError, KernelRangeError
from dparray.kernel_api import NdRange, Range, _language

__all__ = [
    "DeviceFunction",
    "Event",
    "KernelFunction",
    "call_kernel",
    "call_kernel_async",
    "device_func",
    "kernel",
]

_ITEMS = (None, "item:1", "item:2", "item:3")
_ND_ITEMS = (None, "nditem:1", "nditem:2", "nditem:3")


class Event:
    """The end of one launch.

    Attributes:
        sycl_event: the ``dpctl.SyclEvent``.
        kernel: the kernel function that was launched.
    """

    __slots__ = ("kernel", "sycl_event")

    def __init__(self, sycl_event: dpctl.SyclEvent, kernel: KernelFunction) -> None:
        self.sycl_event = sycl_event
        self.kernel = kernel

    def wait(self) -> None:
        """Wait on the host until the kernel has run."""
        self.sycl_event.wait()

    @property
    def done(self) -> bool:
        """Whether the kernel has run."""
        return bool(self.sycl_event.execution_status == dpctl.event_status_type.complete)


class KernelFunction:
    """A kernel: a Python function compiled for the argument types it is launched with."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self.options = options
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self._parameters = tuple(inspect.signature(function).parameters)[1:]
        self._binders: dict[tuple[type, ...], Binder] = {}
        self._kernels: dict[tuple[str, tuple[str, ...]], Kernel] = {}

    def __repr__(self) -> str:
        return f"<dparray kernel {self.__qualname__}>"

    def _launch(self, index_space: Any, arguments: tuple[Any, ...], depends_on: Any = ()) -> Event:
        binder = self._binders.get(tuple(map(type, arguments))) or self._binder(arguments)
        try:
            bound = binder(*arguments)
        except (TypeError, ValueError):
            explain_arguments(self.__name__, self._parameters, arguments)
            raise
        queue = bound.queue
        if queue is None:
            self._refuse_placement(arguments)
        if isinstance(index_space, tuple):
            size, local = index_space, None
            item = _ITEMS[len(size)]
        elif isinstance(index_space, _language.NdRange):
            size, local = index_space.global_range, index_space.local_range
            item = _ND_ITEMS[len(size)]
        else:
            raise KernelRangeError(
                f"kernel {self.__name__}: the range must be a Range or an NdRange; got "
                f"{index_space!r} of type {type(index_space).__name__}"
            )
        compiled = self._kernels.get((item, bound.types)) or self._compile(item, bound.types)
        return Event(launch_kernel(compiled, size, local, bound, queue, depends_on), self)

    def _binder(self, arguments: Sequence[Any]) -> Binder:
        if len(arguments) != len(self._parameters):
            raise KernelArgumentError(
                f"kernel {self.__name__}: takes {len(self._parameters)} arguments after the item "
                f"({', '.join(self._parameters)}); got {len(arguments)}"
            )
        classes = tuple(map(type, arguments))
        try:
            binder = make_binder(classes)
        except KernelArgumentError:
            explain_arguments(self.__name__, self._parameters, arguments)
            raise
        self._binders[classes] = binder
        return binder

    def _refuse_placement(self, arguments: Sequence[Any]) -> None:
        arrays = [
            (name, value if hasattr(value, "sycl_queue") else layout_of_interface(value).block)
            for name, value in zip(self._parameters, arguments, strict=True)
            if is_array(type(value))
        ]
        if arrays:
            common_placement(f"kernel {self.__name__}", arrays)
        raise KernelArgumentError(
            f"kernel {self.__name__}: at least one argument must be an array; its queue is where "
            "the kernel runs"
        )

    def _compile(self, item: str, types: tuple[str, ...]) -> Kernel:
        if item.startswith("item"):
            for name, key in zip(self._parameters, types, strict=True):
                if key.startswith("local"):
                    raise KernelArgumentError(
                        f"kernel {self.__name__}: argument {name!r} is a LocalAccessor, and work-"
                        "items of a Range share no local memory; launch over an NdRange"
                    )
        compiled = _compiler.compile_kernel(self.py_func, (item, *types), self.options)
        self._kernels[item, types] = compiled
        return compiled


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a kernel of a Python function written in the kernel language.

    The first parameter is the work-item (:class:`Item` or :class:`NdItem`); the others are
    arrays, scalars and local accessors. The function is compiled when it is first launched, for
    the argument types of that launch.

    Args:
        function: the function; without it, the decorator with options is returned.
        options: ``debug`` and ``inline_threshold``, as in numba-dpex.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def double(item, x):
        ...     i = item.get_id(0)
        ...     x[i] = 2 * x[i]
        >>> x = dp.arange(4, dtype="int32")
        >>> event = dp.call_kernel(double, dp.Range(4), x)
        >>> dp.asnumpy(x)
        array([0, 2, 4, 6], dtype=int32)
    """
    if function is None:
        return lambda function: kernel(function, **options)
    return KernelFunction(function, options)


def device_func(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a function that kernels may call; it may return a value."""
    if function is None:
        return lambda function: device_func(function, **options)
    return DeviceFunction(function, options)


def _kernel_of(candidate: Any) -> KernelFunction:
    """The kernel function of ours, or one that wraps an object of ``numba_dpex.kernel``."""
    if isinstance(candidate, KernelFunction):
        return candidate
    wrapped = getattr(candidate, "_dparray_kernel", None)
    if wrapped is None:
        if not (hasattr(candidate, "py_func") and hasattr(candidate, "targetoptions")):
            raise KernelArgumentError(
                f"call_kernel: {candidate!r} is not a kernel; decorate the function with @dp.kernel"
            )
        options = {
            name: value
            for name, value in candidate.targetoptions.items()
            if name in ("debug", "inline_threshold")
        }
        wrapped = candidate._dparray_kernel = KernelFunction(candidate.py_func, options)
    return wrapped


def call_kernel(
    kernel: Any, index_space: Range | NdRange, *arguments: Any, depends_on: Iterable[Any] = ()
) -> Event:
    """Launch a kernel on the queue of its array arguments; returns without waiting.

    The launch comes after all earlier work on that queue, and whatever reads a result waits for
    it.

    Args:
        kernel: an object made by :func:`kernel` or ``numba_dpex.kernel``.
        index_space: a :class:`Range`, or an :class:`NdRange` for work-groups, barriers and local
            memory.
        arguments: dparray, dpnp and dpnp.tensor arrays, anything with
            ``__sycl_usm_array_interface__``, local accessors, Python and NumPy scalars.
        depends_on: events of other queues that must be complete first.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        KernelArgumentError: an argument a kernel cannot take, or too many or too few.
        HostConversionError: an argument is a NumPy array.
        KernelRangeError: the device cannot run this range.
        KernelCompileError: the kernel does not compile for these types.

    Example: see :func:`kernel`.
    """
    return _kernel_of(kernel)._launch(index_space, arguments, _events(depends_on))


def call_kernel_async(
    kernel: Any, index_space: Range | NdRange, depends_on: Iterable[Any], *arguments: Any
) -> Event:
    """Launch a kernel after the events in ``depends_on``; otherwise as :func:`call_kernel`."""
    return _kernel_of(kernel)._launch(index_space, arguments, _events(depends_on))


def _events(depends_on: Any) -> list[dpctl.SyclEvent]:
    if not depends_on:
        return depends_on
    if isinstance(depends_on, Event | dpctl.SyclEvent):
        depends_on = (depends_on,)
    return [event.sycl_event if isinstance(event, Event) else event for event in depends_on]
