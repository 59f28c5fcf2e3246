"""The arguments of simulated kernels: host copies of arrays, and local memory for each group."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from dparray._simulator.memory import Memory, SimulatedArray
from dparray._simulator.simulated_numbers import loaded, plain_dtype
from dparray._simulator.simulation import Simulation
from dparray._type_keys import TypeKey, code_of, text_of
from dparray.exceptions import KernelArgumentError
from dparray.kernel_api.constants import checked, constant_parameters


class LocalArgument:
    """A ``LocalAccessor``: each work-group has an array of its own."""

    def __init__(self, name: str, accessor: Any) -> None:
        shape = getattr(accessor, "shape", None)
        self.name = name
        self.shape = tuple(map(int, accessor._shape if shape is None else shape))
        self.dtype = plain_dtype(getattr(accessor, "dtype", None) or accessor._dtype)


class HostArguments:
    """The arguments of a kernel on the host.

    Attributes:
        values: by name: NumPy arrays, scalars, and local arguments.
        constants: the values of parameters that are compiled in.
        names: of the parameters after the item.
    """

    def __init__(self, function: FunctionType, args: Sequence[Any], *, grouped: bool) -> None:
        names = list(inspect.signature(function).parameters)
        where = f"simulate({function.__name__})"
        if not names:
            raise KernelArgumentError(
                f"{where}: the kernel has no parameters; its first one is the item"
            )
        if len(names) - 1 != len(args):
            raise KernelArgumentError(
                f"{where}: the kernel takes {len(names) - 1} "
                f"argument{'s' * (len(names) != 2)} after the item "
                f"({', '.join(names[1:]) or 'none'}); got {len(args)}"
            )
        self.names = names[1:]
        pairs = list(zip(self.names, args, strict=True))
        on_devices = [(name, value) for name, value in pairs if _is_device_array(value)]
        _check_placement(where, on_devices)
        self._mirrors = _host_mirrors([value for _, value in on_devices])
        self._on_devices = on_devices
        constants = constant_parameters(function)
        self.constants = {
            name: checked(function.__name__, name, value).value
            for name, value in pairs
            if name in constants
        }
        self.values = {
            name: self._on_host(where, name, value, grouped)
            for name, value in pairs
            if name not in constants
        }

    def _on_host(self, where: str, name: str, value: Any, grouped: bool) -> Any:
        if type(value).__name__ == "LocalAccessor":
            if not grouped:
                raise KernelArgumentError(
                    f"{where}: {name} is a LocalAccessor, which needs work-groups; launch over an "
                    "NdRange"
                )
            return LocalArgument(name, value)
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biufc":
                raise KernelArgumentError(f"{where}: {name} has dtype {value.dtype}")
            return value
        if id(value) in self._mirrors:
            return self._mirrors[id(value)]
        if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
            return value
        raise KernelArgumentError(
            f"{where}: {name} is of type {type(value).__name__}; a kernel takes NumPy or dparray "
            "arrays, scalars and local accessors"
        )

    @property
    def keys(self) -> list[str]:
        """The type keys of the parameters after the item."""
        return [
            str(TypeKey("constant", text_of(self.constants[name])))
            if name in self.constants
            else _type_key(self.values[name])
            for name in self.names
        ]

    def write_back(self, written: Collection[str]) -> None:
        """Copy the arrays of devices that a kernel has written, by name, to their devices."""
        for name, array in self._on_devices:
            if name in written:
                _copy_to_device(self._mirrors[id(array)], array)


def _type_key(value: Any) -> str:
    if isinstance(value, LocalArgument):
        return str(TypeKey("local", code_of(value.dtype), len(value.shape)))
    if isinstance(value, np.ndarray):
        order = "C" if value.flags.c_contiguous else "A"
        return str(TypeKey("array", code_of(value.dtype), value.ndim, order))
    if isinstance(value, int) and not isinstance(value, bool):
        return "python i8" if -(2**63) <= value < 2**63 else "python u8"
    code = code_of(np.asarray(value).dtype)
    return code if isinstance(value, np.generic) else f"python {code}"


def _check_placement(where: str, on_devices: Sequence[tuple[str, Any]]) -> None:
    """Raise if arrays are on different queues."""
    if not on_devices:
        return
    from dparray._array.ndarray import ndarray
    from dparray._placement import common_placement
    from dparray.memory.libraries.usm import layout_of_interface

    placed = [
        (name, one if isinstance(one, ndarray) else layout_of_interface(one).block)
        for name, one in on_devices
        if isinstance(one, ndarray) or hasattr(one, "sycl_queue")
    ]
    if placed:
        common_placement(where, placed)


class Arguments:
    """The arguments of a kernel's Python function in a simulation."""

    def __init__(self, simulation: Simulation, host: HostArguments) -> None:
        memory = Memory("global", initialised=True)
        self._simulation = simulation
        self._host = host
        self._values: dict[str, Any] = {}
        for name in host.names:
            if name in host.constants:
                self._values[name] = simulation.constant(host.constants[name])
                continue
            value = host.values[name]
            if isinstance(value, np.ndarray):
                value = SimulatedArray(value, name, simulation, memory)
            elif not isinstance(value, LocalArgument):
                value = loaded(value)
            self._values[name] = value

    def for_group(self) -> list[Any]:
        """Return the arguments for one work-group, with local memory of its own."""
        return [
            self._allocated(value) if isinstance(value, LocalArgument) else value
            for value in self._values.values()
        ]

    def _allocated(self, value: LocalArgument) -> SimulatedArray:
        memory = Memory("local", initialised=False)
        data = np.zeros(value.shape, value.dtype)
        return SimulatedArray(data, value.name, self._simulation, memory)

    def write_back(self) -> None:
        arrays = self._values.items()
        self._host.write_back({name for name, one in arrays if getattr(one, "touched", False)})


def _is_device_array(value: Any) -> bool:
    names = ("block", "__sycl_usm_array_interface__")
    return hasattr(value, "asnumpy") and any(hasattr(value, name) for name in names)


def _place(array: Any) -> tuple[int, tuple[int, ...]]:
    """Return the address of the first element and the strides in bytes."""
    if hasattr(array, "block"):  # a dparray array
        return array.block.pointer + array.offset, array.strides
    interface, itemsize = array.__sycl_usm_array_interface__, np.dtype(array.dtype).itemsize
    start = interface["data"][0] + interface.get("offset", 0) * itemsize
    if interface.get("strides") is None:
        return start, np.zeros(array.shape, array.dtype).strides
    return start, tuple(step * itemsize for step in interface["strides"])


def _host_mirrors(arrays: Sequence[Any]) -> dict[int, np.ndarray[Any, Any]]:
    """Return host copies of the arrays; arrays that share device memory share host memory."""
    spans = []
    for array in arrays:
        dtype = np.dtype(array.dtype)
        start, steps = _place(array)
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

    queue = array.queue if hasattr(array, "block") else array.sycl_queue
    array[...] = asarray(np.ascontiguousarray(host), sycl_queue=queue, usm_type=array.usm_type)
