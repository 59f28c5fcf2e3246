"""The arguments of simulated kernels: host copies of arrays, and local memory for each group."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from dparray._simulator.memory import Memory, SimulatedArray
from dparray._simulator.numbers import plain_dtype, typed
from dparray._simulator.simulation import Simulation
from dparray.exceptions import KernelArgumentError
from dparray.kernel_api.constants import checked, constant_parameters


class Arguments:
    """The arguments of a kernel in a simulation."""

    def __init__(
        self, simulation: Simulation, function: FunctionType, args: Sequence[Any], *, grouped: bool
    ) -> None:
        names = list(inspect.signature(function).parameters)
        where = f"simulate({simulation.name})"
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
        self._simulation = simulation
        self._memory = Memory("global", initialised=True)
        self._device: list[tuple[Any, SimulatedArray, np.ndarray[Any, Any]]] = []
        named = [
            (name, one) for name, one in zip(names[1:], args, strict=True) if _is_device_array(one)
        ]
        if named:
            from dparray._array.ndarray import ndarray
            from dparray._placement import common_placement
            from dparray.memory.libraries.usm import layout_of_interface

            placed = [
                (name, one if isinstance(one, ndarray) else layout_of_interface(one).block)
                for name, one in named
                if isinstance(one, ndarray) or hasattr(one, "sycl_queue")
            ]
            if placed:
                common_placement(where, placed)
        mirrors = _host_mirrors([one for _, one in named])
        self._values: list[Any] = []
        constants = constant_parameters(function)
        for name, value in zip(names[1:], args, strict=True):
            if name in constants:
                self._values.append(
                    simulation.constant(checked(simulation.name, name, value).value)
                )
            else:
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
        """Return the arguments for one work-group, with local memory of its own."""
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

    def allocate(self, simulation: Simulation) -> SimulatedArray:
        memory = Memory("local", initialised=False)
        return SimulatedArray(np.zeros(self._shape, self._dtype), self._name, simulation, memory)


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
