"""Define the errors of dparray.

Every error derives from :class:`DparrayError` and from the matching Python class, so
``except ValueError`` keeps working::

    DparrayError
    |- DeviceError (ValueError)  no such device, or a device and a queue that disagree
    |  |- DeviceLostError  a kernel stopped the device
    |  `- UnsupportedDeviceError  the device lacks a required feature
    |- ExecutionPlacementError (ValueError)  inputs on different queues
    |  `- ShardingError  arrays that are sharded in different ways
    |- HostConversionError (TypeError)  a NumPy operand, or an implicit copy to the host
    |- DTypeError (TypeError)  a dtype that is unknown or invalid for the operation
    |- UsmTypeError (ValueError)  a USM type that does not exist
    |- ShapeError (ValueError)  incompatible shapes
    |- AxisError (numpy.exceptions.AxisError)  an axis out of range
    |- ArgumentError (ValueError, TypeError)  any other invalid argument
    |  `- EndOfFileError (EOFError)  a file without a further array
    |- FallbackError (RuntimeError)  a function would compute on the host, which is not allowed
    |- MapError (RuntimeError)  work would wait for a host map of its own thread, or a map is closed
    |- MemoryError (builtins.MemoryError)  an allocation failed
    |- KernelError
    |  |- KernelRangeError (ValueError)  a range that is empty, not divisible or too large
    |  |- KernelArgumentError (TypeError)  an invalid argument of a kernel
    |  |- KernelCompileError (TypeError)  a kernel that does not compile
    |  |- KernelExecutionError (RuntimeError)  the device failed while it ran a kernel
    |  `- SimulationError (RuntimeError)  the simulator found a fault
    |- TileError (ValueError)  an invalid Tile program, or invalid inputs
    |  |- TileSyntaxError  a syntax error
    |  |- TileNameError (NameError)  a name that is undefined or defined twice
    |  |- TileShapeError (ShapeError)  incompatible ranks, sizes or shapes
    |  |- TileTypeError (TypeError)  a value of the wrong kind or dtype
    |  `- TileIndexError (IndexError)  an index set that is empty, unbounded or ambiguous
    |- PlaidMLError (RuntimeError)  an error of dparray.plaidml
    |- OnnxError (ValueError)  an invalid ONNX model, or inputs that do not fit it
    `- UnsupportedFeatureError (NotImplementedError)  a feature that is not supported

A message contains the value given, the values allowed, and a one-line fix.
"""

from __future__ import annotations

import builtins
import importlib
from typing import Any

import numpy as np

from dparray._imports import when_imported

__all__ = [
    "ArgumentError",
    "AxisError",
    "DTypeError",
    "DeviceError",
    "DeviceLostError",
    "DparrayError",
    "EndOfFileError",
    "ExecutionPlacementError",
    "FallbackError",
    "ForkError",
    "GradientError",
    "HostConversionError",
    "HostCopyWarning",
    "KernelArgumentError",
    "KernelCompileError",
    "KernelCompileWarning",
    "KernelError",
    "KernelExecutionError",
    "KernelRangeError",
    "KernelRangeWarning",
    "KernelTypeWarning",
    "MapError",
    "MemoryError",
    "OnnxError",
    "PlaidMLError",
    "ShapeError",
    "ShardingError",
    "SimulationError",
    "TileError",
    "TileIndexError",
    "TileNameError",
    "TileShapeError",
    "TileSyntaxError",
    "TileTypeError",
    "UnsupportedDeviceError",
    "UnsupportedFeatureError",
    "UsmTypeError",
]


class DparrayError(Exception):
    """Base of every error that dparray raises on purpose."""


class DeviceError(DparrayError, ValueError):
    """A device that does not exist, or a device and a queue that disagree."""


class UnsupportedDeviceError(DeviceError):
    """A device that lacks a required feature (USM, fp64, ...)."""


class DeviceLostError(DeviceError):
    """A device that a kernel stopped: its memory is lost, and the process must be restarted."""


class ExecutionPlacementError(DparrayError, ValueError):
    """Inputs of one operation that are on different queues.

    If dpnp is imported, it also derives from dpnp's error of the same name.

    Attributes:
        function: name of the function that was called.
        operands: a tuple of ``(name, device, queue)`` strings, one for each array.
        remedy: the line of code that fixes the call.
    """

    def __init__(
        self,
        message: str,
        *,
        function: str = "",
        operands: tuple[tuple[str, str, str], ...] = (),
        remedy: str = "",
    ) -> None:
        super().__init__(message)
        self.function = function
        self.operands = operands
        self.remedy = remedy


def _derive_from_dpnp(dpnp: Any) -> None:
    """Let handlers written for dpnp catch dparray's placement error."""
    error = importlib.import_module(f"{dpnp.__name__}.exceptions").ExecutionPlacementError
    ExecutionPlacementError.__bases__ = (*ExecutionPlacementError.__bases__, error)


when_imported("dpnp", _derive_from_dpnp)


class ShardingError(ExecutionPlacementError):
    """Arrays that are sharded in different ways, so that copies would be needed.

    Attributes:
        nbytes: bytes that would be copied between devices.
    """

    def __init__(self, message: str, *, nbytes: int = 0, **details: Any) -> None:
        super().__init__(message, **details)
        self.nbytes = nbytes


class ForkError(DparrayError, RuntimeError):
    """Device work in a process that was forked after the runtime had started."""


class HostConversionError(DparrayError, TypeError):
    """A NumPy operand, or an implicit copy of an array to the host."""


class HostCopyWarning(UserWarning):
    """An implicit copy between host and device, which ``dp.config.host_operands`` allows."""


class KernelCompileWarning(UserWarning):
    """A kernel takes long to compile, and would not if it was written otherwise."""


class KernelTypeWarning(UserWarning):
    """A kernel that writes floats into an integer array. Issued once for each line."""


class KernelRangeWarning(UserWarning):
    """A kernel that reads fewer dimensions than its range has. Issued once for each kernel."""


class DTypeError(DparrayError, TypeError):
    """A dtype that is unknown or invalid for an operation."""


class UsmTypeError(DparrayError, ValueError):
    """A USM type other than ``"device"``, ``"shared"`` and ``"host"``."""


class ShapeError(DparrayError, ValueError):
    """Shapes that are incompatible or invalid."""


class AxisError(DparrayError, np.exceptions.AxisError):
    """An axis out of range."""


class ArgumentError(DparrayError, ValueError, TypeError):
    """An argument of an invalid value or type."""


class GradientError(DparrayError, TypeError):
    """An operation without a derivative, or a use of a differentiated array that would lose it."""


class EndOfFileError(ArgumentError, EOFError):
    """An open file without a further array for ``load``."""


class FallbackError(DparrayError, RuntimeError):
    """A function that would compute on the host for another device; see ``dp.config.fallback``."""


class MapError(DparrayError, RuntimeError):
    """Work that would wait for a host map of its own thread, or a map that cannot be opened."""


class MemoryError(DparrayError, builtins.MemoryError):
    """A failed allocation of USM memory.

    Attributes:
        requested: bytes requested.
        in_use: bytes held by live arrays on the device.
        cached: free bytes in the pools of the device.
        limit: the device's limit in bytes, or ``None``.
        device: the device or sub-device.
    """

    def __init__(
        self,
        message: str,
        *,
        requested: int = 0,
        in_use: int = 0,
        cached: int = 0,
        limit: int | None = None,
        device: str = "",
    ) -> None:
        super().__init__(message)
        self.device = device
        self.requested = requested
        self.in_use = in_use
        self.cached = cached
        self.limit = limit


class KernelError(DparrayError):
    """Base of the errors about kernels."""


class KernelRangeError(KernelError, ValueError):
    """A range that is empty, not divisible by the local size, or too large for the device."""


class KernelArgumentError(KernelError, TypeError):
    """An invalid argument of a kernel, or too many or too few arguments."""


class KernelCompileError(KernelError, TypeError):
    """A kernel that does not compile.

    Attributes:
        details: the compiler's full text.
    """

    def __init__(self, message: str, *, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class KernelExecutionError(KernelError, RuntimeError):
    """The device failed while it ran a kernel."""


class SimulationError(KernelError, RuntimeError):
    """A fault that the simulator found and a device would not report.

    Attributes:
        item: the global id of the work-item, or ``None``.
        line: ``file:line`` of the kernel.
    """

    def __init__(
        self, message: str, *, item: tuple[Any, ...] | None = None, line: str | None = None
    ) -> None:
        super().__init__(message)
        self.item = item
        self.line = line


class TileError(DparrayError, ValueError):
    """Base of the errors about programs of :mod:`dparray.tilelang`.

    Attributes:
        line, column: the position in the program, from 1; 0 if there is none.
    """

    def __init__(self, message: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class TileSyntaxError(TileError):
    """A syntax error in a Tile program."""


class TileNameError(TileError, NameError):
    """An undefined name or function, or a name that is assigned twice."""


class TileShapeError(TileError, ShapeError):
    """Incompatible ranks, sizes or shapes."""


class TileTypeError(TileError, TypeError):
    """A value of the wrong kind or dtype."""


class TileIndexError(TileError, IndexError):
    """An index set that is empty or unbounded, or gives one element two values."""


class PlaidMLError(DparrayError, RuntimeError):
    """An error of :mod:`dparray.plaidml`; ``dparray.plaidml.exceptions`` has its subclasses."""


class OnnxError(DparrayError, ValueError):
    """An invalid ONNX model, or inputs that it cannot be computed for.

    Attributes:
        is_located: whether the message names the node that raised it.
    """

    is_located = False


class UnsupportedFeatureError(DparrayError, NotImplementedError):
    """A feature of numba-dpex or NumPy that dparray does not support."""
