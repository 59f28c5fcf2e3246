"""Define kernels: decorated Python functions, compiled at launch."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import c_int64
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from dparray import config
from dparray._array.allocation import from_host
from dparray._array.ndarray import materialize, ndarray
from dparray._array.operands import dispatch_override, layout_of
from dparray._compiler import compile
from dparray._compiler.compile import lock
from dparray._compiler.kernel import Kernel
from dparray._driver import driver_of, order_of, traits_of
from dparray._driver.interface import Target
from dparray._evaluate.writes import settle_blocks
from dparray._ir.checks import RECORD_SIZE
from dparray._kernel.arguments import (
    Binder,
    Bound,
    explain_arguments,
    is_array,
    is_native,
    make_binder,
)
from dparray._kernel.index_space import as_index_space, best_divisor
from dparray._kernel.writes import read_only_parameters
from dparray._language.advice import Advice
from dparray._language.device_function import DeviceFunction, may_loop
from dparray._language.references import UNASSIGNED, Reference
from dparray._language.source import remember, source_of
from dparray._layout import Block, Layout
from dparray._placement import common_placement
from dparray._runtime import deferred_launch, fault_report, host_maps, rounding
from dparray._runtime.durations import note_launch
from dparray._runtime.event import Event, events_before
from dparray._runtime.launch import check_launch, launch
from dparray._runtime.packing import pack_scalars
from dparray._type_keys import Signature, labels_of, parse
from dparray.device import queue_of
from dparray.exceptions import (
    KernelArgumentError,
    KernelError,
    KernelExecutionError,
    KernelRangeError,
    KernelRangeWarning,
)
from dparray.kernel_api import NdRange, Range
from dparray.kernel_api.constants import checked, constant_parameters
from dparray.memory.libraries.cuda_arrays import give_now

__all__ = [
    "DeviceFunction",
    "KernelFunction",
]

#: The references of a kernel that has not been compiled.
_UNWATCHED: list[Reference] = []
_MAX_PIECES_AHEAD = 64
_ITEMS = ("", "item:1", "item:2", "item:3")
_ND_ITEMS = ("", "nditem:1", "nditem:2", "nditem:3")


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
        return kernel._launch(self.index_space, arguments, depends_on)

    def __repr__(self) -> str:
        return f"<dparray kernel {self.kernel.__qualname__} over {self.index_space!r}>"


class KernelFunction:
    """A kernel: a Python function compiled for the argument types of its launches.

    Made by :func:`kernel`. Launch it with ``kernel[range](*arguments)``, with :func:`call_kernel`,
    or, if it has a default range, with ``kernel(*arguments)``.

    State: one compiled kernel for each combination of argument types and driver's target. A
    compiled kernel contains the values of the globals and captured names that the function and its
    device functions refer to. When one of these is assigned a new value, the next launch compiles
    again.

    Attributes:
        py_func: the Python function.
        options: ``debug``, ``fastmath`` and ``inline_threshold``, if given.

    Example:
        >>> @dp.kernel
        ... def double(item, x):
        ...     i = item.get_id(0)
        ...     x[i] = 2 * x[i]
        >>> isinstance(double, dp.KernelFunction)
        True
        >>> x = dp.arange(3)
        >>> event = double[dp.Range(3)](x)
        >>> x.tolist()
        [0, 2, 4]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        default_range: Callable[..., Any] | None = None,
        *,
        has_item: bool = True,
    ) -> None:
        if not callable(function):
            raise KernelArgumentError(
                f"KernelFunction: function must be a Python function, got a "
                f"{type(function).__name__}; write @dp.kernel above its definition"
            )
        self.py_func = function
        remember(function)
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
                    "a kernel's parameters must be plain names, one for each argument"
                )
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise KernelArgumentError(
                f"kernel {self.__name__}: a kernel must be a plain function, without yield and "
                "async"
            )
        if has_item and not parameters:
            raise KernelArgumentError(
                f"kernel {self.__name__}: the first parameter of a kernel must be its work-item: "
                f"def {self.__name__}(item, ...)"
            )
        self._has_item = has_item
        self._made_by = partial(type(self), has_item=has_item), function, options, default_range
        self._parameters = parameters[1:] if has_item else parameters
        self._default_range = default_range
        self._constants = constant_parameters(function)
        self._binders: dict[tuple[type, ...], Binder] = {}
        self._kernels: dict[tuple[str, Signature, Target], Kernel] = {}
        self._seconds: dict[Any, float] = {}
        self._orders: dict[tuple[str, Signature], tuple[tuple[int, ...] | None, int] | None] = {}
        self._checked: KernelFunction | None = None
        self._closed = False  # True after explicit signatures, which allow no other types.
        self._references = _UNWATCHED  # The values that the compiled kernels contain.

    def __repr__(self) -> str:
        return f"<dparray kernel {self.__qualname__}>"

    @cached_property
    def _may_loop(self) -> bool:
        return may_loop(self.py_func)

    def __reduce__(self) -> str:
        return self.__qualname__  # Pickled by name, like functions.

    # -- launching ------------------------------------------------------------------------------

    def __getitem__(self, index_space: Any) -> _Configured:
        """Return the kernel over a range: a ``Range``, an ``NdRange``, an integer or a tuple of
        them.

        ``kernel[global_size, local_size]`` with two tuples is an ``NdRange``.
        """
        return _Configured(self, as_index_space(index_space))

    def __call__(self, *arguments: Any, depends_on: Any = (), **named: Any) -> Event:
        """Launch over the kernel's default range.

        Args:
            arguments: the kernel's arguments, also by name; arguments with a default may be
                omitted.
            depends_on: one or more events, of any queues, that must complete first.
            named: arguments by name.

        Raises:
            KernelRangeError: the kernel has no default range.
        """
        if self._default_range is None:
            raise KernelRangeError(
                f"kernel {self.__name__}: no range was given, and it has no default; write "
                f"{self.__name__}[dp.Range(n)]({', '.join(self._parameters)}), or make it with "
                "@dp.kernel(range=lambda ...: ...)"
            )
        arguments = self._completed(arguments, named)
        index_space = as_index_space(self._default_range(*arguments))
        return self._launch(index_space, arguments, depends_on)

    def _launch(self, index_space: Any, arguments: tuple[Any, ...], depends_on: Any = ()) -> Event:
        references = self._references
        for read, name, value in references:
            if read(name, UNASSIGNED) is not value:
                self._forget(references)
                break
        if config.debug and self._checked is not self and not hasattr(index_space, "launch_over"):
            return self._launch_checked(index_space, arguments, depends_on)
        if host_maps.holds:
            self._wait_for_maps(arguments)
        try:
            types, packed, queue, borrowed, blocks = self._bind(arguments)
        except KernelArgumentError:
            if hasattr(index_space, "launch_over"):  # a sharded array
                return index_space.launch_over(self, arguments, depends_on)
            taken = dispatch_override("call_kernel", (self, index_space, *arguments))
            if taken is NotImplemented:
                raise
            return taken
        traits = traits_of(queue)
        if type(index_space) is Range:
            size, local = index_space, None
            item = _ITEMS[len(size)]
            if not rounding.is_whole(size, traits.groups):
                item += "+"
        elif type(index_space) is NdRange:
            size, local = index_space._global_range, index_space._local_range
            item = _ND_ITEMS[len(size)]
        else:
            index_space = as_index_space(index_space)
            if hasattr(index_space, "launch_over"):
                return index_space.launch_over(self, arguments, depends_on)
            return self._launch(index_space, arguments, depends_on)
        others: Sequence[Event] = ()
        if type(depends_on) is not tuple or depends_on:
            depends_on, others = events_before(depends_on, queue)
        key = (item, types)
        known = self._kernels.get((item, types, traits.target))
        compiled = known or self._compile(item, types, queue, size)
        if 0 in size:
            return Event((), self, queue)
        reads = 0
        if not borrowed:  # From here on, all arrays are dparray's.
            order, reads = self._orders.get(key) or self._order(key, compiled, arguments)
            if order is not None:
                blocks = tuple([blocks[position] for position in order])
        memory: list[Any] = []
        is_read = False
        for block in blocks:
            memory.append(block.segment)
            if block.readers:
                is_read = True
        if is_read:
            self._settle(blocks[reads:])
        if borrowed:
            memory.append(None)
        if others or item[-1] == "+":
            rest = queue, depends_on, borrowed, memory, reads
            return self._launch_otherwise(compiled, size, local, packed, rest, others, arguments)
        event = launch(compiled, size, local, packed, queue, depends_on, borrowed, memory, reads)
        note_launch(queue, self._seconds, (key, size, local), event)
        if borrowed:
            give_now(borrowed, queue)
        if self._may_loop:
            order_of(queue).note_long()
        return Event(event, self, queue)

    def _launch_otherwise(
        self,
        compiled: Any,
        size: Any,
        local: Any,
        packed: list[Any],
        rest: tuple[Any, ...],
        others: Sequence[Event],
        arguments: tuple[Any, ...],
    ) -> Event:
        """Launch a range in pieces, or after events that the device cannot wait for."""
        queue = rest[0]
        groups = traits_of(queue).groups
        in_pieces = local is None and not rounding.is_whole(size, groups)

        def pieces() -> Iterator[tuple[Any, Any]]:
            if not in_pieces:
                return iter([(None, size)])
            return rounding.pieces_of(size, rounding.INDEX_LIMIT, groups)

        def submit() -> Any:
            event = None
            # The driver keeps memory for each waiting piece, and a range may have a billion
            # work-items.
            running: deque[Any] = deque()
            for offset, piece in pieces():
                if len(running) == _MAX_PIECES_AHEAD:
                    driver_of(queue).wait([running.popleft()], is_long=True)
                given = packed
                if offset is not None:
                    given = [pack_scalars(map(c_int64, (*size, *offset))), *packed]
                event = launch(compiled, piece, local, given, *rest)
                running.append(event)
            give_now(rest[2], queue)
            order_of(queue).note_long()
            note_launch(queue, self._seconds, (compiled.name, size, local), event)
            return event

        if others:
            check_launch(compiled, next(pieces())[1], local, packed, queue)
            return deferred_launch.launch_after(
                others, submit, self._accesses(arguments), self, queue
            )
        return Event(submit(), self, queue)

    def _settle(self, blocks: tuple[Block, ...]) -> None:
        """Evaluate pending expressions that depend on memory that the kernel may write."""
        settle_blocks(blocks)

    def _order(
        self, key: tuple[str, Signature], compiled: Kernel, arguments: tuple[Any, ...]
    ) -> tuple[tuple[int, ...] | None, int]:
        """Return the order in which read-only arrays come first, and their number. The order is
        ``None`` if no array must move.

        The result is stored with the compiled kernel. Reading the source takes as long as launching
        a kernel from disk, so the first launch does not do it and treats all arrays as written.
        """
        orders = self._orders
        if key not in orders and compiled.origin == "disk":
            orders[key] = None
            return None, 0
        only_read = self._only_read(arguments)
        are_written = [
            name not in only_read
            for name, value in zip(self._parameters, arguments, strict=True)
            if is_array(type(value))
        ]
        order = tuple(sorted(range(len(are_written)), key=are_written.__getitem__))
        is_so = order == tuple(range(len(order)))
        found = orders[key] = None if is_so else order, are_written.count(False)
        return found

    def _only_read(self, arguments: tuple[Any, ...]) -> frozenset[str]:
        """Return the parameters that the kernel only reads, for arrays like these."""
        dimensions = [getattr(value, "ndim", None) for value in arguments]
        head = [None] if self._has_item else []
        return read_only_parameters(self.py_func, (*head, *dimensions))

    def _launch_checked(
        self, index_space: Any, arguments: tuple[Any, ...], depends_on: Any
    ) -> Event:
        """Launch the version that checks indices, wait for it, and raise the errors found."""
        checked = self._checked
        if checked is None:
            self._watch()
            options = {**self.options, "checked": True}
            checked = KernelFunction(self.py_func, options, has_item=self._has_item)
            checked._parameters = (*self._parameters, "the record of faults")
            checked._checked = checked
            self._checked = checked
        self._check_count(arguments)
        types, _, queue, _, _ = self._bind(arguments)
        record = from_host(np.zeros(RECORD_SIZE, np.int64), queue, "device")
        event = checked._launch(index_space, (*arguments, record), depends_on)
        event.wait()
        with config.override(fallback="allow"):  # It reads no data of the program.
            found = record.asnumpy()
        if found[0]:
            space = as_index_space(index_space)
            is_range = type(space) is Range
            kind = f"item:{len(space)}" if is_range else f"nditem:{len(space.global_range)}"
            item = [kind] if self._has_item else []
            types = (*item, *types)
            raise KernelExecutionError(
                compile.describe_fault(self.py_func, types, self.options, found)
            )
        return event

    def _wait_for_maps(self, arguments: tuple[Any, ...]) -> None:
        """Wait until no open map overlaps memory that the kernel reads or may write."""
        for layout, mode in self._accesses(arguments):
            (host_maps.before_read if mode == "r" else host_maps.before_write)(layout)

    def _accesses(self, arguments: tuple[Any, ...]) -> list[tuple[Layout, str]]:
        """Return the arrays among the arguments, each with ``"w"`` if the kernel may write it."""
        found = []
        only_read = self._only_read(arguments)
        for name, value in zip(self._parameters, arguments, strict=False):
            if is_array(type(value)):
                layout = materialize(value) if is_native(type(value)) else layout_of(value)
                found.append((layout, "r" if name in only_read else "w"))
        return found

    def _bind(self, arguments: tuple[Any, ...]) -> Bound:
        if self._constants:
            arguments = self._with_constants(arguments)
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

    def _with_constants(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        self._check_count(arguments)
        return tuple(
            checked(self.__name__, name, value) if name in self._constants else value
            for name, value in zip(self._parameters, arguments, strict=True)
        )

    def _completed(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return all arguments in the order of the parameters, with defaults filled in."""
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
            # By its name, the first parameter is probably a work-item.
            if given not in ("item", "nd_item", "nditem"):
                hint = (
                    f". Its first parameter {given!r} is the work-item, which the launch provides; "
                    f"if it is meant to be an argument, write def {self.__name__}(item, {given}, "
                    "...)"
                )
        raise KernelArgumentError(
            f"kernel {self.__name__}: takes {len(self._parameters)} "
            f"argument{'s' * (len(self._parameters) != 1)} after the item "
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
            (name, value if isinstance(value, ndarray) else layout_of(value).block)
            for name, value in zip(self._parameters, arguments, strict=True)
            if is_array(type(value))
        ]
        if arrays:
            common_placement(f"kernel {self.__name__}", arrays)
        raise KernelArgumentError(
            f"kernel {self.__name__}: at least one argument must be an array, whose queue runs "
            "the kernel runs"
        )

    # -- compiling ------------------------------------------------------------------------------

    def _forget(self, references: list[Reference]) -> None:
        """Drop the compiled kernels, which contain outdated values of names.

        The dictionaries are replaced: another thread may be compiling with the old values.
        """
        with lock:
            if self._references is not references:  # Another thread has done it.
                return
            known = list(self._kernels)
            self._kernels, self._orders = {}, {}
            self._checked = None
            self._references = _UNWATCHED
        if self._closed:
            self._closed = False
            self.specialize([(item, *types) for item, types, _ in known])

    def _compile(
        self, item: str, types: Signature, queue: Any = None, size: Sequence[int] = ()
    ) -> Kernel:
        if item.startswith("item"):
            for name, key in zip(self._parameters, types, strict=True):
                if parse(key).kind == "local":
                    raise KernelArgumentError(
                        f"kernel {self.__name__}: argument {name!r} is a LocalAccessor, and work-"
                        "items of a Range share no local memory; launch over an NdRange"
                    )
        target = traits_of(queue or queue_of()).target
        if self._closed and not any((item, types) == known[:2] for known in self._kernels):
            # A signature has Numba's names of types, float64 for a Python float.
            strong = tuple(str(parse(key).as_strong) for key in types)
            if strong != types:
                self._kernels[item, types, target] = self._compiled(item, strong, queue)
                return self._kernels[item, types, target]
            known = "\n  ".join(", ".join(signature) for signature in self.signatures)
            raise KernelArgumentError(
                f"kernel {self.__name__}: it was compiled for given signatures only, and "
                f"({', '.join(labels_of((item, *types)))}) is not one of them:\n  {known}"
            )
        kernels = self._kernels
        self._watch()
        all_types, options = (item, *types), self.options
        if not self._has_item:  # Its types do not contain the number of dimensions.
            all_types, options = types, {**options, "dimensions": int(item[-1])}
        labels, derived = self._parameter_labels(types), self._derived(all_types)
        compiled = compile.obtain_kernel(
            self.py_func, all_types, options, target, labels, queue, derived
        )
        kernels[item, types, target] = compiled
        if size and compiled.advice.unread:
            self._warn_of_dimensions(compiled.advice, size)
        return compiled

    def _derived(self, types: Sequence[str]) -> compile.Derived | None:
        """Return the program to compile for some types, if it is not that of the function."""
        return None

    def _warn_of_dimensions(self, advice: Advice, size: Sequence[int]) -> None:
        """Warn if several work-items look the same to a kernel, a common mistake of CUDA users."""
        unread = [each for each in advice.unread if size[each] > 1]
        if not unread:
            return
        name = self.__name__
        same = prod(size[each] for each in unread)
        shown = " and ".join(map(str, unread))
        text = (
            f"the range has {len(size)} dimensions, and the kernel does not read the id of "
            f"dimension {shown}: {same} work-items each do the same and may write the same "
            f"elements together. Read it, as in item.get_id({unread[0]}), or launch over fewer "
            f"dimensions. For CUDA's {name}[blocks, threads] write "
            f"{name}[dp.NdRange(blocks * threads, threads)]"
        )
        compile.warn_at(self.py_func, advice.line, text, KernelRangeWarning)

    def make_ready(self, dimensions: int, *arguments: Any) -> None:
        """Compile for these arguments in an ``NdRange``, and build the kernel for their device."""
        types, _, queue, _, _ = self._bind(arguments)
        self._compiled(_ND_ITEMS[dimensions], types, queue).built_for(queue)

    def _compiled(self, item: str, types: Signature, queue: Any) -> Kernel:
        found = self._kernels.get((item, types, traits_of(queue).target))
        return found or self._compile(item, types, queue)

    def _watch(self) -> None:
        """Record the values that the function refers to, which compiled kernels contain."""
        if self._references is not _UNWATCHED:
            return
        with lock:
            if self._references is _UNWATCHED:
                fault_report.enable()
                _, references = DeviceFunction(self.py_func, {}).frozen()
                self._references = list(references)

    def _parameter_labels(self, types: Signature) -> list[str]:
        pairs = zip(self._parameters, labels_of(types), strict=True)
        return [f"{name}: {label}" for name, label in pairs]

    def specialize(self, signatures: Iterable[Signature]) -> None:
        """Compile for these type keys (the item first) now, and for no others later."""
        for item, *types in signatures:
            self._compile(item, tuple(types))
        self._closed = True

    # -- inspection -----------------------------------------------------------------------------

    @property
    def location(self) -> str:
        """``file:line`` of the function."""
        code = self.py_func.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    @property
    def source(self) -> str:
        """The Python source of the kernel.

        Raises:
            KernelError: the source is unavailable, for example for a kernel typed at a prompt.
        """
        try:
            text = inspect.getsource(self.py_func)
            if source_of(self.py_func) is None:  # Since Python 3.13, `python -c` has source.
                raise OSError("its file name now belongs to other source code")
            return text
        except OSError as error:
            raise KernelError(
                f"kernel {self.__name__}: its source is not at hand ({self.location}); Python "
                "keeps it of files and of notebook cells only"
            ) from error

    @property
    def signatures(self) -> list[Signature]:
        """The argument types of each compiled kernel, as readable text, the item first."""
        return list(self.compile_seconds)

    @property
    def compile_seconds(self) -> dict[Signature, float]:
        """Compile times in seconds by signature; for kernels from disk, the original time."""
        return self._inspect(None, lambda kernel: kernel.seconds)

    def inspect_llvm(self, signature: Signature | None = None) -> Any:
        """Return the LLVM module of one signature as text, or a dictionary of all."""
        return self._inspect(signature, lambda kernel: kernel.llvm)

    def inspect_spirv(self, signature: Signature | None = None) -> Any:
        """Return the disassembled SPIR-V module of one signature, or a dictionary of all."""
        return self._inspect(signature, compile.module_text)

    def _inspect(self, signature: Signature | None, look: Callable[[Kernel], Any]) -> Any:
        found = {labels_of((i, *t)): kernel for (i, t, _), kernel in self._kernels.items()}
        if signature is None:
            return {labels: look(kernel) for labels, kernel in found.items()}
        if tuple(signature) not in found:
            raise KernelArgumentError(
                f"kernel {self.__name__}: it is not compiled for {signature}; see .signatures"
            )
        return look(found[tuple(signature)])

    def device_info(self, device: Any = None) -> dict[Signature, dict[str, int]]:
        """Return the driver's properties of the compiled kernels, for each signature.

        Args:
            device: any device argument of :class:`dparray.Device`; the default device if ``None``.

        Returns:
            ``work_group_size`` (the largest), ``preferred_work_group_size_multiple``,
            ``private_mem_size`` (bytes of registers spilled by one work-item),
            ``max_sub_group_size``, ``max_num_sub_groups``, ``compile_sub_group_size`` and
            ``num_args``.
        """
        queue = queue_of(device)
        names = (
            *("work_group_size", "preferred_work_group_size_multiple", "private_mem_size"),
            *("max_sub_group_size", "max_num_sub_groups", "compile_sub_group_size", "num_args"),
        )
        return {
            labels_of((item, *types)): {
                name: getattr(self._compiled(item, types, queue).built_for(queue).loaded.raw, name)
                for name in names
            }
            for item, types, _ in list(self._kernels)
        }

    def suggest_local(
        self, global_size: Any, *arguments: Any, device: Any = None
    ) -> tuple[int, ...]:
        """Return a local size for an ``NdRange`` of this kernel over ``global_size``.

        It divides the global size, fits the device and the built kernel, and leaves enough groups
        for all compute units. Where it can, it is a multiple of the preferred size.

        Args:
            global_size: a range, an integer or a tuple of integers.
            arguments: the arguments of the launch; with them, the limits of the built kernel apply
                too.
            device: the device to run on; defaults to the queue of the arguments, or the default
                device.

        Example:
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
        asked = as_index_space(global_size)
        if isinstance(asked, NdRange):
            raise KernelRangeError(
                f"kernel {self.__name__}: suggest_local takes the global size alone; got {asked}"
            )
        size = tuple(asked)
        queue: Any
        if arguments:
            types, _, queue, *_ = self._bind(arguments)
            compiled = self._compiled(_ND_ITEMS[len(size)], types, queue)
            loaded = compiled.built_for(queue).loaded
            limit = min(loaded.group, traits_of(queue).group)
            multiple = loaded.multiple
        else:
            queue = queue_of(device)
            limit = traits_of(queue).group
            multiple = traits_of(queue).sub_group
        dimension_limits = traits_of(queue).sizes
        groups_wanted = 4 * traits_of(queue).units
        budget = max(1, min(limit, max(multiple, prod(size) // groups_wanted)))
        local = [1] * len(size)
        # The last dimension is the contiguous one: fill it first.
        for dimension in reversed(range(len(size))):
            allowed = min(budget, dimension_limits[len(size) - 1 - dimension])
            local[dimension] = best_divisor(size[dimension], allowed, multiple)
            budget //= local[dimension]
            multiple = 1
        return tuple(local)
