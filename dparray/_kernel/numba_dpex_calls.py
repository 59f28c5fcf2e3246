"""``numba_dpex.call_kernel`` and ``numba_dpex.call_kernel_async`` on this stack.

They keep numba-dpex's contract: ``call_kernel`` waits, ``call_kernel_async`` gives a pair of
events, kernels without a work-item parameter run with a warning, and errors are caught by
handlers written for numba-dpex.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from dparray._kernel.decorators import kernel_of, make_kernel
from dparray._kernel.function import KernelFunction
from dparray._kernel.launch import call_kernel_async as launch
from dparray._runtime.event import Event
from dparray.exceptions import (
    ExecutionPlacementError,
    HostConversionError,
    KernelArgumentError,
)

if TYPE_CHECKING:
    import dpctl


def call_kernel(kernel_fn: Any, index_space: Any, *kernel_args: Any) -> None:
    """Launch a kernel and wait for it."""
    _launch(kernel_fn, index_space, (), kernel_args).wait()


def call_kernel_async(
    kernel_fn: Any, index_space: Any, dependent_events: Any, *kernel_args: Any
) -> tuple[dpctl.SyclEvent, dpctl.SyclEvent]:
    """Launch a kernel after ``dependent_events``; gives the event twice.

    numba-dpex's first event is that of the task that releases the arguments; here they are
    released by the queue's own order.
    """
    event = _launch(kernel_fn, index_space, dependent_events, kernel_args).sycl_event
    return event, event


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
    """A kernel made by ``numba_dpex.kernel``, whose work-item parameter may be missing."""

    _without_item: KernelFunction | None = None

    @property
    def overloads(self) -> dict[tuple[str, ...], Any]:
        """The signature it is compiled for."""
        return dict(zip(self.signatures, self._kernels.values(), strict=True))


def kernel(function: Any = None, **options: Any) -> Any:
    """Make a kernel as ``numba_dpex.kernel`` does; it is launched as all of dparray's, too."""
    made = make_kernel(function, kind=_Kernel, **options)
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
    """``error`` as an instance of numba-dpex's class and Numba's ``TypingError`` too."""
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
