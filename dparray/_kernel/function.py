"""Kernels in Python: the decorators that make them and the functions that launch them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import dpctl
import numpy as np

from dparray import config
from dparray._compiler import compile
from dparray._compiler.checks import RECORD_SIZE, CheckedKernel, checked_copy, describe_fault
from dparray._compiler.compile import DeviceFunction, Kernel
from dparray._compiler.key import Reference
from dparray._evaluate.evaluate import settle_arguments
from dparray._kernel.arguments import (
    Binder,
    Bound,
    explain_arguments,
    is_array,
    launch,
    make_binder,
)
from dparray._kernel.writes import read_only_parameters
from dparray._placement import common_placement
from dparray._runtime import access
from dparray._runtime.in_order import wait_for
from dparray.device import queue_of
from dparray.exceptions import (
    KernelArgumentError,
    KernelError,
    KernelExecutionError,
    KernelRangeError,
)
from dparray.kernel_api import NdRange, Range, _language
from dparray.memory.copies import layout_of_interface, library

__all__ = [
    "DeviceFunction",
    "Event",
    "KernelFunction",
    "call_kernel",
    "call_kernel_async",
    "device_func",
    "kernel",
]

_ITEMS = ("", "item:1", "item:2", "item:3")
_ND_ITEMS = ("", "nditem:1", "nditem:2", "nditem:3")
OPTIONS = ("debug", "inline_threshold")
_INLINE_THRESHOLDS = (0, 1, 2, 3)
# Options of numba-dpex that say nothing here: they are always so.
_IGNORED_OPTIONS = ("release_gil", "no_compile", "no_cpython_wrapper", "no_cfunc_wrapper")

# Packages whose objects are signatures.
_SIGNERS = ("numba", "numba_dpex")

Signature = tuple[str, ...]


class ProfilingTimes(NamedTuple):
    """When a launch was submitted, started and ended, in nanoseconds of the device's clock."""

    submit: int
    start: int
    end: int

    @property
    def seconds(self) -> float:
        """How long the kernel ran."""
        return (self.end - self.start) * 1e-9


class Event:
    """The end of one launch.

    Attributes:
        sycl_event: the ``dpctl.SyclEvent``.
        kernel: the kernel function that was launched.
        queue: where it runs.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel
        ... def fill(item, x, value):
        ...     x[item.get_id(0)] = value
        >>> x = dp.zeros(4)
        >>> event = dp.call_kernel(fill, dp.Range.like(x), x, 7)
        >>> event.wait()
        >>> event.done
        True
    """

    __slots__ = ("kernel", "queue", "sycl_event")

    def __init__(
        self, sycl_event: dpctl.SyclEvent, kernel: KernelFunction, queue: dpctl.SyclQueue
    ) -> None:
        self.sycl_event = sycl_event
        self.kernel = kernel
        self.queue = queue

    def wait(self) -> None:
        """Wait on the host until the kernel has run.

        Raises:
            KernelExecutionError: the device failed; the message names the kernel and its line.
        """
        try:
            wait_for([self.sycl_event])
        except Exception as error:
            raise KernelExecutionError(
                f"kernel {self.kernel.__name__} ({self.kernel.location}) failed on "
                f"{self.queue.sycl_device.name}: {error}"
            ) from error

    @property
    def done(self) -> bool:
        """Whether the kernel has run."""
        return bool(self.sycl_event.execution_status == dpctl.event_status_type.complete)

    @property
    def profile(self) -> ProfilingTimes:
        """The times of the launch; waits for it.

        Raises:
            KernelExecutionError: the queue does not collect times.
        """
        if not self.queue.has_enable_profiling:
            raise KernelExecutionError(
                f"kernel {self.kernel.__name__}: its queue collects no times; make one with "
                'dpctl.SyclQueue(device, property="enable_profiling") and put the arrays on it'
            )
        self.wait()
        event = self.sycl_event
        return ProfilingTimes(
            event.profiling_info_submit, event.profiling_info_start, event.profiling_info_end
        )

    def __repr__(self) -> str:
        state = "done" if self.done else "running"
        return f"<dparray event of kernel {self.kernel.__name__}, {state}>"


class _Configured:
    """A kernel with its range: ``kernel[range]``, which takes the arguments."""

    __slots__ = ("index_space", "kernel")

    def __init__(self, kernel: KernelFunction, index_space: Range | NdRange) -> None:
        self.kernel = kernel
        self.index_space = index_space

    def __call__(self, *arguments: Any, depends_on: Any = (), **named: Any) -> Event:
        kernel = self.kernel
        if named or len(arguments) != len(kernel._parameters):
            arguments = kernel._completed(arguments, named)
        return kernel._launch(self.index_space, arguments, _events(depends_on))

    def __repr__(self) -> str:
        return f"<dparray kernel {self.kernel.__qualname__} over {self.index_space!r}>"


class KernelFunction:
    """A kernel: a Python function compiled for the argument types it is launched with.

    Made by :func:`kernel`. Launch it with ``kernel[range](*arguments)``, with
    :func:`call_kernel`, or, when it has a default range, with ``kernel(*arguments)``.

    State: one compiled kernel for each combination of argument types; queues share them. They
    hold the values of the globals and captured names that the function and its device functions
    refer to; when one of these is assigned anew, the next launch compiles again.

    Attributes:
        py_func: the Python function.
        options: ``debug`` and ``inline_threshold``, where given.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        default_range: Callable[..., Any] | None = None,
        *,
        has_item: bool = True,
    ) -> None:
        self.py_func = function
        self.options = options
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        signature = inspect.signature(function)
        parameters = tuple(signature.parameters)
        for name, parameter in signature.parameters.items():
            if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
                raise KernelArgumentError(
                    f"kernel {self.__name__}: parameter {name!r} is {parameter.kind.description}; "
                    "a kernel's parameters are plain names, one for each argument"
                )
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise KernelArgumentError(
                f"kernel {self.__name__}: a kernel is a plain function: no yield and no async"
            )
        if has_item and not parameters:
            raise KernelArgumentError(
                f"kernel {self.__name__}: the first parameter of a kernel is its work-item: "
                f"def {self.__name__}(item, ...)"
            )
        self._has_item = has_item
        self._parameters = parameters[1:] if has_item else parameters
        self._default_range = default_range
        self._binders: dict[tuple[type, ...], Binder] = {}
        self._kernels: dict[tuple[str, Signature], Kernel] = {}
        self._checked: KernelFunction | None = None
        self._checks: CheckedKernel | None = None
        self._closed = False  # made with explicit signatures: no others are compiled
        self._references: list[Reference] = []  # what the compiled kernels hold the values of

    def __repr__(self) -> str:
        return f"<dparray kernel {self.__qualname__}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # as functions are pickled: by name

    # -- launching ------------------------------------------------------------------------------

    def __getitem__(self, index_space: Any) -> _Configured:
        """The kernel over a range: a ``Range``, an ``NdRange``, an integer or a tuple of them.

        ``kernel[global_size, local_size]`` with two tuples is an ``NdRange``.
        """
        return _Configured(self, _as_index_space(index_space))

    def __call__(self, *arguments: Any, depends_on: Any = (), **named: Any) -> Event:
        """Launch over the kernel's default range.

        Args:
            arguments: those of the kernel, also by name; what has a default may be left out.
            depends_on: an event or events that must be complete first, of whatever queues.
            named: arguments by name.

        Raises:
            KernelRangeError: the kernel was made without one.
        """
        if self._default_range is None:
            raise KernelRangeError(
                f"kernel {self.__name__}: no range was given, and it has no default; write "
                f"{self.__name__}[dp.Range(n)]({', '.join(self._parameters)}), or make it with "
                "@dp.kernel(range=lambda ...: ...)"
            )
        arguments = self._completed(arguments, named)
        index_space = _as_index_space(self._default_range(*arguments))
        return self._launch(index_space, arguments, _events(depends_on))

    def _launch(self, index_space: Any, arguments: tuple[Any, ...], depends_on: Any = ()) -> Event:
        for reference in self._references:
            if not reference.is_current:
                self._forget()
                break
        if config.debug and self._checked is not self:
            return self._launch_checked(index_space, arguments, depends_on)
        if access.holds:
            self._wait_for_maps(arguments)
        types, packed, queue, borrowed = self._bind(arguments)
        if type(index_space) is Range:
            size, local = index_space, None
            item = _ITEMS[len(size)]
        elif type(index_space) is NdRange:
            size, local = index_space.global_range, index_space.local_range
            item = _ND_ITEMS[len(size)]
        else:
            index_space = _as_index_space(index_space)
            return self._launch(index_space, arguments, depends_on)
        compiled = self._kernels.get((item, types)) or self._compile(item, types)
        settle_arguments(arguments)
        event = launch(compiled, size, local, packed, queue, depends_on, borrowed)
        return Event(event, self, queue)

    def _launch_checked(
        self, index_space: Any, arguments: tuple[Any, ...], depends_on: Any
    ) -> Event:
        """Launch the copy that checks indices, wait for it, and raise what it found."""
        if self._checked is None:
            self._watch()
            copy = checked_copy(self.py_func)
            self._checked = self  # no source, nothing to check
            if copy is not None:
                self._checked = KernelFunction(copy.function, self.options, has_item=self._has_item)
                self._checked._checked = self._checked
                self._checks = copy
            unchecked = [self.__name__] if copy is None else copy.unchecked
            if unchecked:
                warnings.warn(
                    f"kernel {self.__name__}: dp.config.debug checks no indices in "
                    f"{', '.join(unchecked)}, whose source is not at hand (typed at a prompt, or "
                    "changed since); put it into a file, or use dp.simulate, which needs none",
                    RuntimeWarning,
                    stacklevel=4,
                )
        if self._checks is None:
            return self._launch(index_space, arguments, depends_on)
        self._check_count(arguments)
        queue = self._bind(arguments)[2]
        record = library.zeros(RECORD_SIZE, dtype="int64", sycl_queue=queue)
        event = self._checked._launch(index_space, (*arguments, record), depends_on)
        event.wait()
        found = library.asnumpy(record)
        if found[0]:
            raise KernelExecutionError(describe_fault(self.__name__, self._checks, found))
        return event

    def _wait_for_maps(self, arguments: tuple[Any, ...]) -> None:
        """Wait until no open map crosses what the kernel reads or may write."""
        dimensions = [getattr(value, "ndim", None) for value in arguments]
        head = [None] if self._has_item else []
        only_read = read_only_parameters(self.py_func, (*head, *dimensions))
        for name, value in zip(self._parameters, arguments, strict=False):
            if is_array(type(value)):
                layout = value if hasattr(value, "block") else layout_of_interface(value)
                (access.before_read if name in only_read else access.before_write)(layout)

    def _bind(self, arguments: tuple[Any, ...]) -> Bound:
        binder = self._binders.get(tuple(map(type, arguments))) or self._binder(arguments)
        try:
            bound = binder(*arguments)
        except (TypeError, ValueError) as error:
            if isinstance(error, KernelError):
                raise
            explain_arguments(self.__name__, self._parameters, arguments)
            raise
        if bound[2] is None:
            self._refuse_placement(arguments)
        return bound

    def _completed(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters, with those that have defaults."""
        rest = self._parameters[len(arguments) :]
        for name in named:
            if name not in rest:
                known = name in self._parameters
                raise KernelArgumentError(
                    f"kernel {self.__name__}: "
                    f"{f'argument {name!r} is given twice' if known else f'no parameter {name!r}'}"
                    f"; its parameters are {', '.join(self._parameters)}"
                )
        defaults: tuple[Any, ...] = getattr(self.py_func, "__defaults__", None) or ()
        found = dict(zip(self._parameters[::-1], defaults[::-1], strict=False))
        found.update(named)
        if len(arguments) > len(self._parameters) or any(name not in found for name in rest):
            self._check_count((*arguments, *named.values()))
        return (*arguments, *(found[name] for name in rest))

    def _check_count(self, arguments: Sequence[Any]) -> None:
        if len(arguments) == len(self._parameters):
            return
        hint = ""
        if self._has_item and len(arguments) == len(self._parameters) + 1:
            given = next(iter(inspect.signature(self.py_func).parameters))
            hint = (
                f". Its first parameter {given!r} is the work-item, which the launch provides; "
                f"if it is meant to be an argument, write def {self.__name__}(item, {given}, ...)"
            )
        raise KernelArgumentError(
            f"kernel {self.__name__}: takes {len(self._parameters)} arguments after the item "
            f"({', '.join(self._parameters)}); got {len(arguments)}{hint}"
        )

    def _binder(self, arguments: Sequence[Any]) -> Binder:
        self._check_count(arguments)
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

    # -- compiling ------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop the compiled kernels, which hold values that are no longer those of their names."""
        known = list(self._kernels)
        self._kernels.clear()
        self._references = []
        self._checked = self._checks = None
        if self._closed:
            self._closed = False
            self.specialize([(item, *types) for item, types in known])

    def _compile(self, item: str, types: Signature) -> Kernel:
        if item.startswith("item"):
            for name, key in zip(self._parameters, types, strict=True):
                if key.startswith("local"):
                    raise KernelArgumentError(
                        f"kernel {self.__name__}: argument {name!r} is a LocalAccessor, and work-"
                        "items of a Range share no local memory; launch over an NdRange"
                    )
        if self._closed:
            known = "\n  ".join(", ".join(signature) for signature in self.signatures)
            raise KernelArgumentError(
                f"kernel {self.__name__}: it was made for given signatures only, and "
                f"({', '.join(_labels((item, *types)))}) is none of them:\n  {known}"
            )
        if not self._kernels:
            self._watch()
        all_types = (item, *types) if self._has_item else types
        compiled = compile.obtain_kernel(
            self.py_func, all_types, self.options, self._parameter_labels(types)
        )
        self._kernels[item, types] = compiled
        return compiled

    def _watch(self) -> None:
        """Remember the values that the function refers to, which what is made of it holds."""
        _, references = DeviceFunction(self.py_func, {}).frozen()
        self._references = [each for each in references if not _is_fixed(each.value)]

    def _parameter_labels(self, types: Signature) -> list[str]:
        pairs = zip(self._parameters, _labels(types), strict=True)
        return [f"{name}: {label}" for name, label in pairs]

    def specialize(self, signatures: Iterable[Signature]) -> None:
        """Compile for these type keys (item first) now, and for no others later."""
        for item, *types in signatures:
            self._compile(item, tuple(types))
        self._closed = True

    # -- looking into it ------------------------------------------------------------------------

    @property
    def location(self) -> str:
        """``file:line`` of the function."""
        code = self.py_func.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def source(self) -> str:
        """The Python source of the kernel.

        Raises:
            KernelError: it is not at hand, as of a kernel that was typed at a prompt.
        """
        try:
            return inspect.getsource(self.py_func)
        except OSError as error:
            raise KernelError(
                f"kernel {self.__name__}: its source is not at hand ({self.location}); Python "
                "keeps it of files and of notebook cells only"
            ) from error

    @property
    def signatures(self) -> list[Signature]:
        """The argument types it is compiled for, in words, the item first."""
        return [_labels((item, *types)) for item, types in self._kernels]

    @property
    def compile_seconds(self) -> dict[Signature, float]:
        """What compiling took, for each signature; kernels from disk say what it once took."""
        return {_labels((i, *t)): kernel.seconds for (i, t), kernel in self._kernels.items()}

    def inspect_llvm(self, signature: Signature | None = None) -> Any:
        """The LLVM module as text, of one signature, or of all in a dictionary."""
        return self._inspect(signature, lambda kernel: kernel.llvm)

    def inspect_spirv(self, signature: Signature | None = None) -> Any:
        """The SPIR-V module disassembled, of one signature, or of all in a dictionary."""
        return self._inspect(signature, lambda kernel: compile.spirv_text(kernel.spirv))

    def _inspect(self, signature: Signature | None, look: Callable[[Kernel], str]) -> Any:
        found = {_labels((i, *t)): kernel for (i, t), kernel in self._kernels.items()}
        if signature is None:
            return {labels: look(kernel) for labels, kernel in found.items()}
        if tuple(signature) not in found:
            raise KernelArgumentError(
                f"kernel {self.__name__}: it is not compiled for {signature}; see .signatures"
            )
        return look(found[tuple(signature)])

    def device_info(self, device: Any = None) -> dict[Signature, dict[str, int]]:
        """What a device says of the compiled kernels, for each signature.

        Args:
            device: anything :class:`dparray.Device` takes; the default device if ``None``.

        Returns:
            ``work_group_size`` (the largest), ``preferred_work_group_size_multiple``,
            ``private_mem_size`` (bytes of registers spilt by one work-item),
            ``max_sub_group_size``, ``max_num_sub_groups``, ``compile_sub_group_size`` and
            ``num_args``.
        """
        queue = queue_of(device)
        names = (
            "work_group_size",
            "preferred_work_group_size_multiple",
            "private_mem_size",
            "max_sub_group_size",
            "max_num_sub_groups",
            "compile_sub_group_size",
            "num_args",
        )
        return {
            _labels((item, *types)): {
                name: getattr(compiled.sycl_kernel(queue), name) for name in names
            }
            for (item, types), compiled in self._kernels.items()
        }

    def suggest_local(
        self, global_size: Any, *arguments: Any, device: Any = None
    ) -> tuple[int, ...]:
        """A local size for an ``NdRange`` of this kernel over ``global_size``.

        It divides the global size, fits the device and the kernel as the driver built it, is a
        multiple of the preferred one where the extents allow, and leaves enough groups for all
        compute units.

        Args:
            global_size: a range, an integer or a tuple of integers.
            arguments: those of the launch; with them the built kernel is asked, too.
            device: where it will run; the queue of the arguments, or the default device.

        Example:
            >>> import dparray as dp
            >>> @dp.kernel
            ... def copy(item, x, y):
            ...     i = item.get_global_id(0)
            ...     y[i] = x[i]
            >>> x = dp.ones(1024)
            >>> y = dp.empty_like(x)
            >>> (local,) = copy.suggest_local(1024, x, y)
            >>> 1024 % local
            0
        """
        asked = _as_index_space(global_size)
        if isinstance(asked, NdRange):
            raise KernelRangeError(
                f"kernel {self.__name__}: suggest_local takes the global size alone; got {asked}"
            )
        size = tuple(asked)
        queue: Any
        if arguments:
            types, _, queue, _ = self._bind(arguments)
            item = _ND_ITEMS[len(size)]
            compiled = self._kernels.get((item, types)) or self._compile(item, types)
            built = compiled.sycl_kernel(queue)
            limit = min(built.work_group_size, queue.sycl_device.max_work_group_size)
            multiple = built.preferred_work_group_size_multiple
        else:
            queue = queue_of(device)
            limit = queue.sycl_device.max_work_group_size
            multiple = max(queue.sycl_device.sub_group_sizes, default=1)
        dimension_limits = tuple(queue.sycl_device.max_work_item_sizes3d)
        groups_wanted = 4 * queue.sycl_device.max_compute_units
        budget = max(1, min(limit, max(multiple, prod(size) // groups_wanted)))
        local = [1] * len(size)
        # The last dimension is the contiguous one: fill it first.
        for dimension in reversed(range(len(size))):
            allowed = min(budget, dimension_limits[len(size) - 1 - dimension])
            local[dimension] = _best_divisor(size[dimension], allowed, multiple)
            budget //= local[dimension]
            multiple = 1
        return tuple(local)


def _is_fixed(value: Any) -> bool:
    """Whether a name with this value is not worth watching: a module, or a part of one."""
    return isinstance(value, ModuleType | BuiltinFunctionType | type)


def _best_divisor(extent: int, limit: int, multiple: int) -> int:
    """The largest divisor up to ``limit``, if possible one that ``multiple`` divides."""
    divisors = [d for d in range(1, min(extent, limit) + 1) if extent % d == 0]
    preferred = [d for d in divisors if d % multiple == 0]
    return (preferred or divisors)[-1]


def _as_index_space(index_space: Any) -> Any:
    """A ``Range`` or ``NdRange`` of what the user wrote."""
    if isinstance(index_space, _language.NdRange):
        if type(index_space) is NdRange:
            return index_space
        return NdRange(index_space.global_range, index_space.local_range)
    if isinstance(index_space, tuple | list):
        if len(index_space) == 2 and all(isinstance(part, tuple | list) for part in index_space):
            return NdRange(*index_space)
        return Range(*index_space)
    if isinstance(index_space, int | np.integer):
        return Range(index_space)
    raise KernelRangeError(
        f"the range of a kernel must be a Range, an NdRange, an integer or a tuple of integers; "
        f"got {index_space!r} of type {type(index_space).__name__}"
    )


def _labels(types: Iterable[str]) -> Signature:
    """Type keys in words: ``float32[2-D, C]``, ``local float32[1-D]``, ``int64``, ``Item(1)``."""
    return tuple(map(_label, types))


def _label(key: str) -> str:
    kind, _, rest = key.partition(":")
    if kind in ("item", "nditem"):
        return f"{'Item' if kind == 'item' else 'NdItem'}({rest})"
    local = "local " if kind.startswith("local ") else ""
    name = np.dtype(kind.removeprefix("local ")).name
    if not rest:
        return name
    if local:
        return f"local {name}[{rest}-D]"
    return f"{name}[{rest[:-1]}-D, {rest[-1]}]"


def kernel(function: Any = None, *, range: Any = None, **options: Any) -> Any:
    """Make a kernel of a Python function written in the kernel language.

    The first parameter is the work-item (:class:`Item` or :class:`NdItem`); the others are
    arrays, scalars and local accessors. The function is compiled when it is first launched, for
    the argument types of that launch, and kept on disk for later processes.

    A work-item raises no exception. Quotients by zero and mathematical functions outside of their
    domain have NumPy's values. A range or a slice whose step is 0 only at run time is empty, and an
    index outside of a tuple is that of its first item; an index outside of an array, a dimension
    that the range has not and an array unpacked to another number of names have no defined result.
    ``dp.config.debug`` and :func:`simulate` report all of these but the quotients and functions.
    What else may raise, a constant step of 0 and a constant dimension that the range has not do not
    compile.

    Args:
        function: the function; a signature or a list of signatures in Numba's types, to compile
            at once and for these only; or nothing, for a decorator with options.
        range: the default range, or a function of the kernel's arguments that gives it, so that
            ``kernel(*arguments)`` launches.
        options: ``debug`` and ``inline_threshold``, as in numba-dpex.

    Raises:
        KernelArgumentError: no work-item parameter, or an unknown option.

    Example:
        >>> import dparray as dp
        >>> @dp.kernel(range=lambda x: dp.Range.like(x))
        ... def double(item, x):
        ...     i = item.get_id(0)
        ...     x[i] = 2 * x[i]
        >>> x = dp.arange(4, dtype="int32")
        >>> event = double(x)
        >>> event = dp.call_kernel(double, dp.Range(2), x)
        >>> dp.asnumpy(x)
        array([0, 4, 4, 6], dtype=int32)
    """
    options = _checked_options("kernel", options)
    default = range if callable(range) or range is None else (lambda *arguments: range)

    def make(function: Callable[..., Any]) -> KernelFunction:
        return KernelFunction(function, options, default)

    if function is None:
        return make
    if isinstance(function, FunctionType):
        return make(function)
    _check_signature("kernel", function)

    def make_specialized(python_function: Callable[..., Any]) -> KernelFunction:
        made = make(python_function)
        made.specialize(compile.keys_of_signatures(function))
        return made

    return make_specialized


def device_func(function: Any = None, **options: Any) -> Any:
    """Make a function that kernels and other device functions may call; it may return a value.

    Args:
        function: the function; a signature in Numba's types is accepted and not needed.
        options: ``debug`` and ``inline_threshold``, as in numba-dpex.

    Example:
        >>> import dparray as dp
        >>> @dp.device_func
        ... def square(value):
        ...     return value * value
        >>> @dp.kernel
        ... def squares(item, x):
        ...     i = item.get_id(0)
        ...     x[i] = square(x[i])
        >>> x = dp.arange(4, dtype="int32")
        >>> event = squares[4](x)
        >>> dp.asnumpy(x)
        array([0, 1, 4, 9], dtype=int32)
    """
    options = _checked_options("device_func", options)
    if isinstance(function, FunctionType):
        return DeviceFunction(function, options)
    if function is not None:
        _check_signature("device_func", function)
    return lambda function: DeviceFunction(function, options)


def _check_signature(maker: str, signature: Any) -> None:
    """Raise unless ``signature`` can be one: a text, an object of Numba's, or several of them."""
    several = signature if isinstance(signature, list | tuple) else (signature,)
    for each in several:
        if not isinstance(each, str) and type(each).__module__.partition(".")[0] not in _SIGNERS:
            raise KernelArgumentError(
                f"{maker}: {each!r} of type {type(each).__name__} is neither a Python function nor "
                f"a signature in Numba's types; write @dp.{maker} above a def"
            )


def _checked_options(maker: str, options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in OPTIONS + _IGNORED_OPTIONS:
            raise KernelArgumentError(
                f"{maker}: there is no option {name!r}; options: {', '.join(OPTIONS)}"
            )
    threshold = options.get("inline_threshold", 0)
    if type(threshold) is not int or threshold not in _INLINE_THRESHOLDS:
        raise KernelArgumentError(f"{maker}: inline_threshold is 0, 1, 2 or 3; got {threshold!r}")
    if not isinstance(options.get("debug", False), bool):
        raise KernelArgumentError(f"{maker}: debug is True or False; got {options['debug']!r}")
    return {name: value for name, value in options.items() if name in OPTIONS}


def kernel_of(candidate: Any) -> KernelFunction:
    """The kernel function of ours, or one that wraps an object of ``numba_dpex.kernel``.

    Raises:
        KernelArgumentError: it is neither.
    """
    if isinstance(candidate, KernelFunction):
        return candidate
    wrapped = getattr(candidate, "_dparray_kernel", None)
    if wrapped is None:
        wrapped = _wrap_dispatcher(candidate)
    return wrapped


def _wrap_dispatcher(candidate: Any) -> KernelFunction:
    if not (hasattr(candidate, "py_func") and hasattr(candidate, "targetoptions")):
        raise KernelArgumentError(
            f"call_kernel: {candidate!r} is not a kernel; decorate the function with @dp.kernel"
        )
    options = {k: v for k, v in candidate.targetoptions.items() if k in OPTIONS}
    signatures = compile.keys_of_signatures([tuple(sig) for sig in candidate.overloads])
    wrapped = KernelFunction(candidate.py_func, options)
    if not candidate._can_compile:
        wrapped.specialize(signatures)
    candidate._dparray_kernel = wrapped
    return wrapped


def call_kernel(
    kernel: Any, index_space: Any, *arguments: Any, depends_on: Iterable[Any] = (), **named: Any
) -> Event:
    """Launch a kernel on the queue of its array arguments; returns without waiting.

    The launch comes after all earlier work on that queue, and whatever reads a result waits for
    it.

    Args:
        kernel: an object made by :func:`kernel` or ``numba_dpex.kernel``.
        index_space: a :class:`Range` (or an integer or tuple), or an :class:`NdRange` for
            work-groups, barriers and local memory.
        arguments: dparray, dpnp and dpnp.tensor arrays, anything with
            ``__sycl_usm_array_interface__``, local accessors, Python and NumPy scalars. What has a
            default may be left out.
        depends_on: an event or events that must be complete first, of whatever queues.
        named: arguments by name.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        KernelArgumentError: an argument a kernel cannot take, or too many or too few.
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
    launched = kernel_of(kernel)
    if named or len(arguments) != len(launched._parameters):
        arguments = launched._completed(arguments, named)
    return launched._launch(index_space, arguments, _events(depends_on))


def call_kernel_async(
    kernel: Any, index_space: Any, depends_on: Iterable[Any], *arguments: Any, **named: Any
) -> Event:
    """Launch a kernel after the events in ``depends_on``; otherwise as :func:`call_kernel`.

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


def _events(depends_on: Any) -> Any:
    """``depends_on`` as a sequence of ``dpctl.SyclEvent``."""
    if type(depends_on) is tuple and not depends_on:
        return depends_on
    if isinstance(depends_on, Event | dpctl.SyclEvent):
        depends_on = (depends_on,)
    elif not isinstance(depends_on, Iterable):
        raise _no_event(depends_on)
    events = [event.sycl_event if isinstance(event, Event) else event for event in depends_on]
    for event in events:
        if not isinstance(event, dpctl.SyclEvent):
            raise _no_event(event)
    return events


def _no_event(value: Any) -> KernelArgumentError:
    return KernelArgumentError(
        f"depends_on: {value!r} of type {type(value).__name__} is no event; give what call_kernel "
        "returned, a dpctl.SyclEvent, or a list of them"
    )
