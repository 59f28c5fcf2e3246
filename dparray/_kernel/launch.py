"""Launch kernels: ``call_kernel`` and ``call_kernel_async``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dparray._kernel.decorators import kernel_of
from dparray._kernel.raw import RawKernel
from dparray._runtime.event import Event
from dparray.exceptions import KernelArgumentError

__all__ = [
    "call_kernel",
    "call_kernel_async",
]


def call_kernel(
    kernel: Any, index_space: Any, *arguments: Any, depends_on: Iterable[Any] = (), **named: Any
) -> Event:
    """Launch a kernel on the queue of its array arguments; return without waiting.

    The launch comes after all earlier work on that queue, and every read of a result waits for it.

    Args:
        kernel: an object made by :func:`kernel` or :func:`raw_kernel`.
        index_space: a :class:`Range` (or an integer or tuple), or an :class:`NdRange` for
            work-groups, barriers and local memory.
        arguments: arrays of dparray, anything with ``__sycl_usm_array_interface__`` (dpnp), or with
            ``__cuda_array_interface__`` on a GPU (CuPy, PyTorch), local accessors, Python and NumPy
            scalars. Arguments with a default may be omitted.
        depends_on: one or more events, of any queues, that must complete first. A thread waits for
            events of another context, and then submits the launch.
        named: arguments by name.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        KernelArgumentError: an argument is invalid, or there are too many or too few.
        HostConversionError: an argument is a NumPy array.
        KernelRangeError: the device cannot run this range.
        KernelCompileError: the kernel does not compile for these types.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def add(item, a, b, c):
        ...     i = item.get_id(0)
        ...     c[i] = a[i] + b[i]
        >>> a = dp.arange(4)
        >>> c = dp.empty_like(a)
        >>> event = dp.call_kernel(add, dp.Range(4), a, a, c)
        >>> c.tolist()
        [0, 2, 4, 6]
    """
    if isinstance(kernel, RawKernel):
        if named:
            raise KernelArgumentError(
                f"call_kernel: the arguments of {kernel!r} have no names; pass them by position"
            )
        return kernel[index_space](*arguments, depends_on=depends_on)
    launched = kernel_of(kernel)
    if named or len(arguments) != len(launched._parameters):
        arguments = launched._completed(arguments, named)
    return launched._launch(index_space, arguments, depends_on)


def call_kernel_async(
    kernel: Any, index_space: Any, depends_on: Iterable[Any], *arguments: Any, **named: Any
) -> Event:
    """Launch a kernel after the events in ``depends_on``; otherwise like :func:`call_kernel`.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def double(item, x):
        ...     i = item.get_id(0)
        ...     x[i] = 2 * x[i]
        >>> x = dp.arange(3)
        >>> first = dp.call_kernel_async(double, dp.Range(3), [], x)
        >>> second = dp.call_kernel_async(double, dp.Range(3), [first], x)
        >>> x.asnumpy()
        array([0, 4, 8])
    """
    return call_kernel(kernel, index_space, *arguments, depends_on=depends_on, **named)
