"""``dp.simulate``: run a kernel in plain Python, and find what a device cannot report.

Work-groups run one after another, and the items of a group in the order of their linear ids.
One item runs at a time; an item that reaches a barrier is suspended in its thread until all
items of its group have come to it, so the order is always the same. A kernel that meets no
barrier runs in the calling thread alone.

The kernel's function is not run itself but a copy with the same lines, in which the names of the
kernel language, ``math``, NumPy's integer types and a few builtins stand for their simulated
counterparts, literals are typed, and the functions it calls are copied likewise.
"""

from __future__ import annotations

import bdb
import builtins
import enum
import functools
import inspect
import itertools
import linecache
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dparray._compiler.special import SpecialFunction, precision
from dparray._simulator.memory import (
    Access,
    AtomicRef,
    Clock,
    Memory,
    PrivateArray,
    SimulatedArray,
    WorkItem,
)
from dparray._simulator.numbers import (
    BUILTINS,
    CONSTRUCTORS,
    MATH,
    literal,
    plain_dtype,
    typed,
)
from dparray.exceptions import (
    KernelArgumentError,
    KernelError,
    KernelRangeError,
    SimulationError,
)

__all__ = ["simulate"]

_RACES = ("error", "same-value", "ignore")
_GROUP_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "max": max,
    "min": min,
}
_LANGUAGE_MODULES = ("numba_dpex.kernel_api", "dparray.kernel_api")


def simulate(
    kernel: Any,
    index_range: Any,
    /,
    *args: Any,
    races: str = "error",
    item: Any = None,
    **named: Any,
) -> None:
    """Run ``kernel`` over ``index_range`` in plain Python, checking every access it makes.

    The results are those of the device, up to the last bits of mathematical functions and of
    fused multiply-adds, and up to the order of atomic additions of floats.

    Args:
        kernel: a function written in the kernel language, or what ``dp.kernel`` or
            ``numba_dpex.kernel`` made of one.
        index_range: a ``Range`` (or an integer, or a tuple of integers), or an ``NdRange`` (or a
            tuple of two tuples, the global and the local size).
        args: the kernel's arguments after the item: NumPy arrays (changed in place), dparray
            arrays (copied to the host, and those written back afterwards), scalars, and
            ``LocalAccessor`` objects where the range has work-groups. What has a default may be
            left out.
        races: ``"error"`` reports every pair of conflicting accesses; ``"same-value"`` lets two
            items write the same value to one element (works on today's devices, but SYCL does
            not promise it); ``"ignore"`` checks none and runs faster.
        item: the global id of one work-item, to look at it in a debugger: only its work-group
            runs (only the item itself, over a plain range), and this item runs in the calling
            thread while the others of its group run in threads of their own. Breakpoints of
            ``pdb`` in the kernel then stop in this item only. ``breakpoint()`` in the kernel stops
            in every item that reaches it, with or without ``item``.
        named: arguments of the kernel by name.

    Raises:
        SimulationError: naming the kernel, its line, the item and the index, for an access out
            of bounds; a barrier that not all items of a group reach, or not the same one; a read
            of local or private memory nobody wrote; two items that access one element, one of
            them writing, with neither an atomic nor a barrier to order them; an item that waits
            for another one in a loop; and any exception that the kernel's code raises.
        KernelArgumentError: an argument a kernel cannot take, or too many or too few.
        KernelRangeError: a range that is empty or whose local size does not divide.

    After an error, NumPy arrays hold what was written until then, and dparray arrays are unchanged.

    Placement: runs on the host; dparray arrays may be on any queues.

    Example:
        >>> import numpy as np
        >>> from dparray import simulate
        >>> def double(item, x, out):
        ...     i = item.get_id(0)
        ...     out[i] = x[i] * 2
        >>> x, out = np.arange(4), np.zeros(4, dtype=np.int64)
        >>> simulate(double, 4, x, out)
        >>> out
        array([0, 2, 4, 6])
    """
    if races not in _RACES:
        raise ValueError(f"simulate: races must be one of {', '.join(_RACES)}; got {races!r}")
    function = _python_function(kernel)
    global_size, local_size = _sizes(index_range)
    simulation = _Simulation(function, races)
    values = _all_arguments(function, args, named)
    arguments = _Arguments(simulation, function, values, grouped=local_size is not None)
    chosen = None if item is None else _chosen_item(item, global_size)
    with _Workers() as workers:
        for group in _work_groups(simulation, global_size, local_size, chosen):
            _GroupRun(simulation, group, arguments.for_group(), workers).run()
    arguments.write_back()


def _all_arguments(
    function: FunctionType, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments after the item, with those given by name and those that have defaults."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(None, *args, **named)
    except TypeError as error:
        if named:
            raise KernelArgumentError(f"simulate({function.__name__}): {error}") from None
        return args  # too few or too many, which is reported with their names
    bound.apply_defaults()
    return tuple(bound.arguments.values())[1:]


def _python_function(kernel: Any) -> FunctionType:
    function = getattr(kernel, "py_func", kernel)
    if not isinstance(function, FunctionType):
        raise KernelArgumentError(
            f"simulate: needs a kernel or the Python function of one; got {kernel!r} of type "
            f"{type(kernel).__name__}"
        )
    return function


# ranges -----------------------------------------------------------------------------------


def _sizes(index_range: Any) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The global size, and the local size where there are work-groups."""
    if hasattr(index_range, "global_range") and hasattr(index_range, "local_range"):
        global_size, local_size = index_range.global_range, index_range.local_range
    elif (
        isinstance(index_range, tuple)
        and len(index_range) == 2
        and all(isinstance(one, (tuple, list)) for one in index_range)
    ):
        global_size, local_size = index_range
    else:
        return _extents(index_range), None
    wide, narrow = _extents(global_size), _extents(local_size)
    if len(wide) != len(narrow) or any(map(operator.mod, wide, narrow)):
        raise KernelRangeError(
            f"simulate: the local size {narrow} does not divide the global size {wide}"
        )
    return wide, narrow


def _extents(size: Any) -> tuple[int, ...]:
    try:
        extents = tuple(map(operator.index, size if isinstance(size, (tuple, list)) else (size,)))
    except TypeError:
        raise KernelRangeError(
            f"simulate: a range is 1 to 3 integers, a Range or an NdRange; got {size!r}"
        ) from None
    if not 1 <= len(extents) <= 3 or min(extents) <= 0:
        raise KernelRangeError(f"simulate: a range is 1 to 3 positive integers; got {size!r}")
    return extents


def _chosen_item(item: Any, global_size: tuple[int, ...]) -> tuple[int, ...]:
    chosen = tuple(map(int, item if isinstance(item, (tuple, list)) else (item,)))
    if len(chosen) != len(global_size) or not all(
        0 <= one < extent for one, extent in zip(chosen, global_size, strict=False)
    ):
        raise KernelRangeError(
            f"simulate: item {chosen} is not in the global range {tuple(global_size)}"
        )
    return chosen


def _linear(index: Sequence[Any], extents: Sequence[Any]) -> int:
    result = 0
    for one, extent in zip(index, extents, strict=True):
        result = result * extent + one
    return result


# the kernel language ----------------------------------------------------------------------


def _of_dimension(numbers: tuple[Any, ...], dim: Any) -> Any:
    if not 0 <= dim < len(numbers):
        raise IndexError(f"dimension {dim} is asked for, and the range has {len(numbers)}")
    return numbers[dim]


class _Item:
    """``Item``: the id of a work-item in a plain range."""

    def __init__(self, work_item: WorkItem, global_size: tuple[int, ...]) -> None:
        self.work_item = work_item
        self._global_id = tuple(map(typed, work_item.global_id))
        self._global_size = tuple(map(typed, global_size))

    @property
    def dimensions(self) -> int:
        return len(self._global_size)

    def get_id(self, dim: Any) -> Any:
        return _of_dimension(self._global_id, dim)

    def get_linear_id(self) -> Any:
        return typed(_linear(self._global_id, self._global_size))

    def get_range(self, dim: Any) -> Any:
        return _of_dimension(self._global_size, dim)

    def get_linear_range(self) -> Any:
        return typed(math.prod(map(int, self._global_size)))


class _Group:
    """``Group``: the work-group of an item."""

    def __init__(
        self,
        work_item: WorkItem,
        group_id: tuple[int, ...],
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
    ) -> None:
        self._leader = work_item.local_linear == 0
        self._group_id = tuple(map(typed, group_id))
        self._local_size = tuple(map(typed, local_size))
        self._group_range = tuple(map(typed, map(operator.floordiv, global_size, local_size)))

    @property
    def dimensions(self) -> int:
        return len(self._local_size)

    @property
    def leader(self) -> bool:
        return self._leader

    def get_group_id(self, dim: Any) -> Any:
        return _of_dimension(self._group_id, dim)

    def get_group_linear_id(self) -> Any:
        return typed(_linear(self._group_id, self._group_range))

    def get_group_range(self, dim: Any) -> Any:
        return _of_dimension(self._group_range, dim)

    def get_group_linear_range(self) -> Any:
        return typed(math.prod(map(int, self._group_range)))

    def get_local_range(self, dim: Any) -> Any:
        return _of_dimension(self._local_size, dim)

    def get_local_linear_range(self) -> Any:
        return typed(math.prod(map(int, self._local_size)))


class _NdItem:
    """``NdItem``: the ids of a work-item in a range of work-groups."""

    def __init__(
        self,
        work_item: WorkItem,
        local_id: tuple[int, ...],
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
    ) -> None:
        self.work_item = work_item
        self._global = _Item(work_item, global_size)
        self._local_id = tuple(map(typed, local_id))
        self._local_size = tuple(map(typed, local_size))
        group_id = tuple(map(operator.floordiv, work_item.global_id, local_size))
        self._group = _Group(work_item, group_id, global_size, local_size)

    @property
    def dimensions(self) -> int:
        return len(self._local_size)

    def get_global_id(self, dim: Any) -> Any:
        return self._global.get_id(dim)

    def get_global_linear_id(self) -> Any:
        return self._global.get_linear_id()

    def get_global_range(self, dim: Any) -> Any:
        return self._global.get_range(dim)

    def get_global_linear_range(self) -> Any:
        return self._global.get_linear_range()

    def get_local_id(self, dim: Any) -> Any:
        return _of_dimension(self._local_id, dim)

    def get_local_linear_id(self) -> Any:
        return typed(self.work_item.local_linear)

    def get_local_range(self, dim: Any) -> Any:
        return _of_dimension(self._local_size, dim)

    def get_local_linear_range(self) -> Any:
        return typed(math.prod(map(int, self._local_size)))

    def get_group(self) -> _Group:
        return self._group


def _work_groups(
    simulation: _Simulation,
    global_size: tuple[int, ...],
    local_size: tuple[int, ...] | None,
    chosen: tuple[int, ...] | None,
) -> Iterator[_WorkGroup]:
    if local_size is None:
        ids = itertools.product(*map(range, global_size)) if chosen is None else (chosen,)
        for global_id in ids:
            serial = _linear(global_id, global_size)
            alone = WorkItem(global_id, serial, serial, 0)
            yield _WorkGroup([_Item(alone, global_size)], None)
        return
    group_range = tuple(map(operator.floordiv, global_size, local_size))
    for group_id in itertools.product(*map(range, group_range)):
        if chosen is not None and group_id != tuple(map(operator.floordiv, chosen, local_size)):
            continue
        items = []
        for local, local_id in enumerate(itertools.product(*map(range, local_size))):
            global_id = tuple(
                group * extent + one
                for group, extent, one in zip(group_id, local_size, local_id, strict=True)
            )
            work_item = WorkItem(
                global_id, _linear(global_id, global_size), _linear(group_id, group_range), local
            )
            items.append(_NdItem(work_item, local_id, global_size, local_size))
        yield _WorkGroup(items, chosen)


class _WorkGroup:
    """The items of one work-group, and which of them must run in the calling thread."""

    def __init__(self, items: Sequence[Any], chosen: tuple[int, ...] | None) -> None:
        self.items = items
        self.reserved = next(
            (place for place, one in enumerate(items) if one.work_item.global_id == chosen), None
        )


# arguments --------------------------------------------------------------------------------


class _Arguments:
    """The kernel's arguments as the simulation sees them."""

    def __init__(
        self, simulation: _Simulation, function: FunctionType, args: Sequence[Any], *, grouped: bool
    ) -> None:
        names = list(inspect.signature(function).parameters)
        where = f"simulate({simulation.name})"
        if not names:
            raise KernelArgumentError(
                f"{where}: the kernel has no parameters; its first one is the item"
            )
        if len(names) - 1 != len(args):
            raise KernelArgumentError(
                f"{where}: the kernel takes {len(names) - 1} arguments after the item "
                f"({', '.join(names[1:]) or 'none'}); got {len(args)}"
            )
        self._simulation = simulation
        self._memory = Memory("global", initialised=True)
        self._device: list[tuple[Any, SimulatedArray, np.ndarray[Any, Any]]] = []
        mirrors = _host_mirrors([one for one in args if _is_device_array(one)])
        self._values: list[Any] = []
        for name, value in zip(names[1:], args, strict=True):
            self._values.append(self._convert(where, name, value, mirrors, grouped))

    def _convert(
        self, where: str, name: str, value: Any, mirrors: dict[int, Any], grouped: bool
    ) -> Any:
        if type(value).__name__ == "LocalAccessor":
            if not grouped:
                raise KernelArgumentError(
                    f"{where}: {name} is a LocalAccessor, which needs work-groups; launch over an "
                    "NdRange"
                )
            return _LocalArgument(name, value)
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biufc":
                raise KernelArgumentError(f"{where}: {name} has dtype {value.dtype}")
            return SimulatedArray(value, name, self._simulation, self._memory)
        if id(value) in mirrors:
            host = mirrors[id(value)]
            array = SimulatedArray(host, name, self._simulation, self._memory)
            self._device.append((value, array, host))
            return array
        if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
            return typed(value)
        raise KernelArgumentError(
            f"{where}: {name} is of type {type(value).__name__}; a kernel takes NumPy or dparray "
            "arrays, scalars and local accessors"
        )

    def for_group(self) -> list[Any]:
        """The arguments for one work-group, with local memory of its own."""
        return [
            value.allocate(self._simulation) if isinstance(value, _LocalArgument) else value
            for value in self._values
        ]

    def write_back(self) -> None:
        for array, simulated, host in self._device:
            if simulated.touched:
                _copy_to_device(host, array)


class _LocalArgument:
    def __init__(self, name: str, accessor: Any) -> None:
        shape = getattr(accessor, "shape", None)
        self._name = name
        self._shape = tuple(map(int, accessor._shape if shape is None else shape))
        self._dtype = plain_dtype(getattr(accessor, "dtype", None) or accessor._dtype)

    def allocate(self, simulation: _Simulation) -> SimulatedArray:
        memory = Memory("local", initialised=False)
        return SimulatedArray(np.zeros(self._shape, self._dtype), self._name, simulation, memory)


def _is_device_array(value: Any) -> bool:
    return hasattr(value, "asnumpy") and hasattr(value, "__sycl_usm_array_interface__")


def _host_mirrors(arrays: Sequence[Any]) -> dict[int, np.ndarray[Any, Any]]:
    """A host copy of each array, such that arrays sharing device memory share host memory."""
    spans = []
    for array in arrays:
        interface = array.__sycl_usm_array_interface__
        dtype = np.dtype(array.dtype)
        start = interface["data"][0] + interface.get("offset", 0) * dtype.itemsize
        strides = interface.get("strides")
        steps = (
            np.zeros(array.shape, dtype).strides
            if strides is None
            else tuple(step * dtype.itemsize for step in strides)
        )
        reach = [(extent - 1) * step for extent, step in zip(array.shape, steps, strict=True)]
        low = start + sum(one for one in reach if one < 0)
        high = start + sum(one for one in reach if one > 0) + dtype.itemsize
        spans.append((low, high, start, steps, dtype, array))
    spans.sort(key=lambda span: span[:2])
    mirrors: dict[int, np.ndarray[Any, Any]] = {}
    while spans:
        low, high = spans[0][:2]
        count = 0
        while count < len(spans) and spans[count][0] < high:
            high = max(high, spans[count][1])
            count += 1
        buffer = np.zeros(high - low, np.uint8)
        for _, _, start, steps, dtype, array in spans[:count]:
            host: np.ndarray[Any, Any] = np.ndarray(array.shape, dtype, buffer, start - low, steps)
            host[...] = array.asnumpy()
            mirrors[id(array)] = host
        del spans[:count]
    return mirrors


def _copy_to_device(host: np.ndarray[Any, Any], array: Any) -> None:
    from dparray._functions.conversion import asarray

    array[...] = asarray(
        np.ascontiguousarray(host), sycl_queue=array.sycl_queue, usm_type=array.usm_type
    )


# the run ----------------------------------------------------------------------------------


class _Simulation:
    """One call of :func:`simulate`: the copied kernel, the running item, and the faults."""

    def __init__(self, function: FunctionType, races: str) -> None:
        self.name = function.__name__
        self.races = races
        self.item: WorkItem = WorkItem((), 0, 0, 0)
        self.group_run: _GroupRun | None = None
        self._codes: set[int] = set()
        self._copies: dict[int, Any] = {}
        self._language: dict[str, Any] = {
            "AtomicRef": functools.partial(AtomicRef, self),
            "PrivateArray": functools.partial(PrivateArray, self),
            "atomic_fence": lambda memory_order, memory_scope=None: self.item.fence(memory_order),
            "group_barrier": lambda group, fence_scope=None: self._barrier(),
            "group_broadcast": self._group_broadcast,
            "group_inclusive_scan": self._group_inclusive_scan,
            "group_reduce": self._group_reduce,
        }
        self.kernel = self._copy(function)

    # faults

    def where(self) -> tuple[CodeType, int]:
        return self._line(sys._getframe(2))

    def _line(self, frame: FrameType | None) -> tuple[CodeType, int]:
        """The innermost line of the kernel, or of a function it calls, from ``frame`` outwards."""
        while frame is not None:
            if id(frame.f_code) in self._codes:
                return frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno
            frame = frame.f_back
        return self.kernel.__code__, self.kernel.__code__.co_firstlineno

    def line_of(self, access: Access) -> str:
        return f"{access[3].co_filename}:{access[4]}"

    def fault(self, problem: str, remedy: str) -> SimulationError:
        return self.fault_at(*self.where(), problem, remedy)

    def fault_at(self, code: CodeType, line: int, problem: str, remedy: str) -> SimulationError:
        place = f"{code.co_filename}:{line}"
        source = linecache.getline(code.co_filename, line).strip()
        inside = "" if code is self.kernel.__code__ else f", in {code.co_name}"
        return SimulationError(
            f"simulate({self.name}): work-item {self.item.global_id} {problem}; {remedy}\n"
            f"  at {place}{inside}" + (f": {source}" if source else ""),
            item=self.item.global_id,
            line=place,
        )

    def explain(self, error: Exception) -> SimulationError:
        """What the kernel's own code raised, with the item and the line."""
        code, line = self.kernel.__code__, self.kernel.__code__.co_firstlineno
        trace = error.__traceback__
        while trace is not None:
            if id(trace.tb_frame.f_code) in self._codes:
                code, line = trace.tb_frame.f_code, trace.tb_lineno
            trace = trace.tb_next
        return self.fault_at(
            code,
            line,
            f"raised {type(error).__name__}: {error}",
            "the kernel's own code failed; a device would compute something else or not compile",
        )

    # barriers

    def _barrier(self) -> None:
        if self.group_run is None or len(self.group_run.group.items) == 1:
            return
        self.group_run.barrier(self._call_sites(sys._getframe(2)))

    # group algorithms: every item brings a value, and a barrier makes all of them known

    def _group_reduce(self, group: Any, value: Any, operation: str = "add") -> Any:
        values = self._brought(value)
        return functools.reduce(self._group_operation(operation, value), values)

    def _group_inclusive_scan(self, group: Any, value: Any, operation: str = "add") -> Any:
        values = self._brought(value)[: self.item.local_linear + 1]
        return functools.reduce(self._group_operation(operation, value), values)

    def _group_broadcast(self, group: Any, value: Any, local_id: Any = 0) -> Any:
        brought = self._brought((value, int(local_id)))
        asked = {one[1] for one in brought}
        if len(asked) > 1 or not 0 <= int(local_id) < len(brought):
            raise self.fault(
                f"calls group_broadcast with local_id {int(local_id)}; the items of its group ask "
                f"for {sorted(asked)}",
                f"give all of them the same number below {len(brought)}",
            )
        return brought[int(local_id)][0]

    def _group_operation(self, operation: str, value: Any) -> Callable[[Any, Any], Any]:
        if operation not in _GROUP_OPERATIONS:
            raise self.fault(
                f"asks for the group operation {operation!r}",
                f"use one of {', '.join(_GROUP_OPERATIONS)}",
            )
        # The result has the type of the values, so integers wrap around in it.
        combine, scalar = _GROUP_OPERATIONS[operation], type(value)
        return lambda a, b: scalar(combine(a, b))

    def _brought(self, value: Any) -> list[Any]:
        """The values of all items of the group, in the order of their linear ids."""
        if self.group_run is None:
            raise RuntimeError("a group algorithm ran outside of a simulation")
        values = self.group_run.brought.setdefault(self.item.phase, {})
        values[self.item.local_linear] = value
        if len(self.group_run.group.items) > 1:
            self.group_run.barrier(self._call_sites(sys._getframe(2)))
        return [values[place] for place in range(len(values))]

    def _call_sites(self, frame: FrameType | None) -> tuple[tuple[CodeType, int], ...]:
        """Where in the kernel the call is, innermost first: equal for items at one barrier."""
        sites = []
        while frame is not None:
            if id(frame.f_code) in self._codes:
                sites.append((frame.f_code, frame.f_lineno or 0))
                if frame.f_code is self.kernel.__code__:
                    break
            frame = frame.f_back
        return tuple(sites)

    # the copy

    def _copy(self, function: FunctionType) -> Any:
        """``function`` with the same lines, whose names stand for their simulated counterparts."""
        if id(function) in self._copies:
            return self._copies[id(function)]
        code = _typed_literals(function.__code__)
        namespace: dict[str, Any] = {"__builtins__": {**vars(builtins), **BUILTINS}}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copy = FunctionType(code, namespace, function.__name__, None, cells or None)
        # Known before its names are looked up, since functions may call each other.
        self._copies[id(function)] = copy
        self._codes.update(id(one) for one in _nested(code))
        for name in {name for one in _nested(code) for name in one.co_names}:
            if name in function.__globals__:
                namespace[name] = self._stand_in(function.__globals__[name])
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self._stand_in(original.cell_contents)
            except ValueError:  # a name that is not bound yet
                continue
        copy.__defaults__ = function.__defaults__ and tuple(map(typed, function.__defaults__))
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    def _stand_in(self, value: Any) -> Any:
        """What a name of the kernel stands for in its copy."""
        if isinstance(value, ModuleType):
            return _View(value, self._stand_in)
        if getattr(value, "__module__", "").startswith(_LANGUAGE_MODULES):
            return self._language.get(getattr(value, "__name__", ""), value)
        is_enumeration = isinstance(value, type) and issubclass(value, enum.Enum)
        if is_enumeration or isinstance(value, enum.Enum):
            # One for each, as they are compared; a member's value is a number of the kernel.
            return self._copies.setdefault(id(value), _View(value, self._stand_in))
        if isinstance(value, type):
            return (
                CONSTRUCTORS.get(value, BUILTINS.get(value.__name__, value))
                if (value in CONSTRUCTORS or value.__module__ == "builtins")
                else value
            )
        if isinstance(value, BuiltinFunctionType):
            if value in MATH:
                return MATH[value]
            return BUILTINS.get(value.__name__, value) if value.__module__ == "builtins" else value
        if isinstance(getattr(value, "py_func", None), FunctionType):
            return self._copy(value.py_func)
        if isinstance(value, FunctionType) and hasattr(value, "device_meaning"):
            return self._special(value.device_meaning)
        if isinstance(value, FunctionType) and not value.__module__.startswith("numpy"):
            return self._copy(value)
        if isinstance(value, (int, float, complex, np.generic, tuple)):
            return literal(value)
        return value

    def _special(self, meaning: SpecialFunction) -> Callable[..., Any]:
        """A public special function: the device function for the operands' precision."""

        def call(*numbers: Any) -> Any:
            kind = precision([np.asarray(number).dtype for number in numbers])
            function = meaning.of(kind).py_func
            assert isinstance(function, FunctionType)
            return self._copy(function)(*map(CONSTRUCTORS[kind], numbers))

        return call


class _View:
    """A module or an enumeration as the kernel sees it: members stand for their counterparts."""

    def __init__(self, owner: Any, stand_in: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._stand_in = stand_in

    def __getattr__(self, name: str) -> Any:
        value = self._stand_in(getattr(self._owner, name))
        setattr(self, name, value)
        return value


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _typed_literals(code: CodeType) -> CodeType:
    """``code`` with literals of the types the compiler gives them."""
    constants: list[Any] = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            constants.append(_typed_literals(constant))
        elif type(constant) in (int, float, complex, tuple):
            constants.append(literal(constant))
        else:
            constants.append(constant)
    return code.replace(co_consts=tuple(constants))


# scheduling -------------------------------------------------------------------------------

_NEW, _RUNNING, _WAITING, _READY, _DONE = range(5)


class _Abandoned(BaseException):
    """Unwinds the items that are suspended when another one has failed."""


class _Baton:
    """A thread that takes part; it runs only while it holds the baton."""

    def __init__(self) -> None:
        self._turn = threading.Semaphore(0)

    def give(self) -> None:
        self._turn.release()

    def await_turn(self) -> None:
        self._turn.acquire()


class _Workers:
    """Threads for suspended items, reused from group to group and ended with the simulation."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._idle:
            worker.start_on(None)

    def take(self) -> _Worker:
        return self._idle.pop() if self._idle else _Worker()

    def put_back(self, worker: _Worker) -> None:
        self._idle.append(worker)


class _Worker(_Baton):
    def __init__(self) -> None:
        super().__init__()
        self._job: _GroupRun | None = None
        threading.Thread(target=self._serve, name="dparray simulate", daemon=True).start()

    def start_on(self, job: _GroupRun | None) -> None:
        self._job = job
        self.give()

    def _serve(self) -> None:
        while True:
            self.await_turn()
            if self._job is None:
                return
            self._job.work(self)


class _GroupRun:
    """Runs the items of one work-group, one at a time, handing over at barriers.

    Exactly one thread is at work at any moment. It hands the baton on when its item is
    suspended at a barrier, or when the next item to go on is suspended in another thread.
    """

    def __init__(
        self, simulation: _Simulation, group: _WorkGroup, arguments: list[Any], workers: _Workers
    ) -> None:
        self.group = group
        self.brought: dict[int, dict[int, Any]] = {}
        self._simulation = simulation
        self._arguments = arguments
        self._workers = workers
        count = len(group.items)
        self._states = [_NEW] * count
        self._threads: list[_Baton | None] = [None] * count
        self._sites: list[tuple[tuple[CodeType, int], ...]] = [()] * count
        self._error: BaseException | None = None
        self._caller = _Baton()
        self._first = 0  # no item before this one can go on in this phase

    def run(self) -> None:
        self._simulation.group_run = self
        self.work(self._caller)
        self._simulation.group_run = None
        if self._error is not None:
            raise self._error

    def work(self, thread: _Baton) -> None:
        """Run items in ``thread`` until another thread must go on or the group is finished."""
        is_caller = thread is self._caller
        while (place := self._next()) is not None:
            if self._states[place] == _NEW and self._may_run(place, is_caller):
                self._run_item(place, thread)
                continue
            if is_caller:
                self._give(place)
                self._await_turn(thread)
                continue
            assert isinstance(thread, _Worker)
            self._workers.put_back(thread)
            self._give(place)
            return
        if isinstance(thread, _Worker):
            self._workers.put_back(thread)
            self._caller.give()

    def _may_run(self, place: int, is_caller: bool) -> bool:
        reserved = self.group.reserved
        return reserved is None or is_caller == (place == reserved)

    def _give(self, place: int) -> None:
        """Let the item at ``place`` go on: in its thread, in the caller's, or in a new one."""
        thread = self._threads[place]
        if thread is not None:
            thread.give()
        elif place == self.group.reserved:
            self._caller.give()
        else:
            self._workers.take().start_on(self)

    def _run_item(self, place: int, thread: _Baton) -> None:
        item = self.group.items[place]
        self._states[place] = _RUNNING
        self._threads[place] = thread
        self._simulation.item = item.work_item
        try:
            with np.errstate(all="ignore"):
                self._simulation.kernel(item, *self._arguments)
        except _Abandoned:
            pass
        except BaseException as error:
            self._fail(error)
        self._states[place] = _DONE

    def _fail(self, error: BaseException) -> None:
        if self._error is not None:
            return
        if isinstance(error, Exception) and not isinstance(error, (KernelError, bdb.BdbQuit)):
            explained = self._simulation.explain(error)
            explained.__cause__ = error
            error = explained
        self._error = error

    def _await_turn(self, thread: _Baton) -> None:
        try:
            thread.await_turn()
        except BaseException as interrupt:  # Ctrl-C in the caller: stop at the next barrier
            self._fail(interrupt)
            thread.await_turn()

    def barrier(self, sites: tuple[tuple[CodeType, int], ...]) -> None:
        """Suspend the running item until all items of the group are here."""
        work_item = self._simulation.item
        place = work_item.local_linear
        thread = self._threads[place]
        assert thread is not None
        self._sites[place] = sites
        self._states[place] = _WAITING
        following = self._next()
        if following != place:
            assert following is not None
            self._give(following)
            self._await_turn(thread)
        if self._error is not None:
            raise _Abandoned
        self._states[place] = _RUNNING
        self._simulation.item = work_item

    def _next(self) -> int | None:
        """The item to go on; ``None`` when the group is finished."""
        states = self._states
        if self._error is None:
            for place in range(self._first, len(states)):
                if states[place] in (_NEW, _READY):
                    self._first = place
                    return place
            waiting = [place for place, state in enumerate(states) if state == _WAITING]
            if not waiting:
                return None
            if self._all_at_one_barrier(waiting):
                self._pass_barrier(waiting)
                return waiting[0]
        suspended = (_WAITING, _READY)
        return next((place for place, state in enumerate(states) if state in suspended), None)

    def _pass_barrier(self, waiting: list[int]) -> None:
        items = [self.group.items[place].work_item for place in waiting]
        clock: Clock | None = None
        for one in items:
            if one.clock is not None:
                clock = one.clock.joined(clock)
        for one in items:
            one.clock = clock
            one.phase += 1
        self.brought = {phase: it for phase, it in self.brought.items() if phase >= one.phase - 1}
        for place in waiting:
            self._states[place] = _READY
        self._first = 0

    def _all_at_one_barrier(self, waiting: list[int]) -> bool:
        missing = [place for place in range(len(self._states)) if place not in set(waiting)]
        sites: dict[tuple[tuple[CodeType, int], ...], list[int]] = {}
        for place in waiting:
            sites.setdefault(self._sites[place], []).append(place)
        if not missing and len(sites) == 1:
            return True
        found = [
            f"{self._names(places)} at {site[0][0].co_filename}:{site[0][1]}"
            for site, places in sites.items()
        ]
        if missing:
            found.append(f"{self._names(missing)} ended without coming to it")
        (code, line), *_ = self._sites[waiting[0]]
        self._simulation.item = self.group.items[waiting[0]].work_item
        self._error = self._simulation.fault_at(
            code,
            line,
            "waits at a barrier that not all work-items of its group reach: " + "; ".join(found),
            "call group_barrier where all items of the group come by, outside of branches and "
            "loops that depend on the item, and before any return",
        )
        return False

    def _names(self, places: list[int]) -> str:
        shown = ", ".join(str(self.group.items[place].work_item.global_id) for place in places[:3])
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        return f"{'items' if len(places) > 1 else 'item'} {shown}{more}"
