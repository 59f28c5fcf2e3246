"""The errors of dparray.

Every error derives from :class:`DparrayError` and from the Python class a caller would
catch anyway, so ``except ValueError`` keeps working::

    DparrayError
    |- DeviceError (ValueError)  no such device, or a device and a queue that disagree
    |  `- UnsupportedDeviceError  the device cannot hold or compute what was asked
    |- ExecutionPlacementError (ValueError)  inputs on different queues
    |  `- ShardingError  arrays over several devices that are cut in different ways
    |- HostConversionError (TypeError)  NumPy data mixed in, or an implicit copy to the host
    |- DTypeError (TypeError)  a dtype that is unknown or does not fit the operation
    |- UsmTypeError (ValueError)  a USM type that does not exist
    |- ShapeError (ValueError)  shapes that do not fit together
    |- AxisError (numpy.exceptions.AxisError)  an axis outside the array's dimensions
    |- ArgumentError (ValueError, TypeError)  any other argument that a function does not take
    |  `- EndOfFileError (EOFError)  a file from which the last array was read
    |- FallbackError (RuntimeError)  values would leave a device for host code, and must not
    |- MapError (RuntimeError)  work would wait for a host map of its own thread, or a map is closed
    |- MemoryError (builtins.MemoryError)  the pool could not get what was asked
    |- KernelError
    |  |- KernelRangeError (ValueError)  a range that is empty, does not divide or is too large
    |  |- KernelArgumentError (TypeError)  an argument a kernel cannot take
    |  |- KernelCompileError (TypeError)  a kernel that does not compile
    |  |- KernelExecutionError (RuntimeError)  the device failed while it ran a kernel
    |  `- SimulationError (RuntimeError)  the simulator found what a device could not report
    |- TileError (ValueError)  an ill-formed Tile program, or one that does not fit its inputs
    |  |- TileSyntaxError  the text is not in the language
    |  |- TileNameError (NameError)  a name that is not defined, or defined twice
    |  |- TileShapeError (ShapeError)  ranks, sizes or shapes that do not fit together
    |  |- TileTypeError (TypeError)  a value of a kind or dtype that does not belong there
    |  `- TileIndexError (IndexError)  an index set that is empty, unbounded or ambiguous
    |- PlaidMLError (RuntimeError)  of the interface of dparray.plaidml
    `- UnsupportedFeatureError (NotImplementedError)  of numba-dpex or NumPy, that is not here

A message says what was given, what is allowed and the line that mends it.
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
    "DparrayError",
    "EndOfFileError",
    "ExecutionPlacementError",
    "FallbackError",
    "ForkError",
    "HostConversionError",
    "HostCopyWarning",
    "KernelArgumentError",
    "KernelCompileError",
    "KernelError",
    "KernelExecutionError",
    "KernelRangeError",
    "KernelRangeWarning",
    "KernelTypeWarning",
    "MapError",
    "MemoryError",
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
    """A device that is not there, or a device and a queue that disagree."""


class UnsupportedDeviceError(DeviceError):
    """A device that cannot hold or compute what was asked of it (no USM, no fp64, ...)."""


class ExecutionPlacementError(DparrayError, ValueError):
    """Inputs of one operation live on different queues.

    Where dpnp is imported, it is one of dpnp's errors of that name, too.

    Attributes:
        function: name of the function that was called.
        operands: a tuple of ``(name, device, queue)`` strings, one for each array.
        remedy: the line of code that mends it.
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


def _join_neighbour(dpnp: Any) -> None:
    """Let handlers that are written for dpnp catch our placement error."""
    theirs = importlib.import_module(f"{dpnp.__name__}.exceptions").ExecutionPlacementError
    ExecutionPlacementError.__bases__ = (*ExecutionPlacementError.__bases__, theirs)


when_imported("dpnp", _join_neighbour)


class ShardingError(ExecutionPlacementError):
    """Arrays over several devices do not fit together as they are cut; copies would be needed.

    Attributes:
        nbytes: bytes that would be copied between devices.
    """

    def __init__(self, message: str, *, nbytes: int = 0, **details: Any) -> None:
        super().__init__(message, **details)
        self.nbytes = nbytes


class ForkError(DparrayError, RuntimeError):
    """Work for a device in a process forked from one that had used devices."""


class HostConversionError(DparrayError, TypeError):
    """NumPy data where a dparray array is needed, or an implicit copy to the host."""


class HostCopyWarning(UserWarning):
    """Data were copied between host and device unasked, as ``dp.config.host_operands`` allows."""


class KernelTypeWarning(UserWarning):
    """A kernel writes floats into an array of integers. Issued once for each line."""


class KernelRangeWarning(UserWarning):
    """A kernel reads fewer dimensions than its range has. Issued once for each kernel."""


class DTypeError(DparrayError, TypeError):
    """A dtype that is unknown, or that an operation does not take."""


class UsmTypeError(DparrayError, ValueError):
    """A USM type other than ``"device"``, ``"shared"`` and ``"host"``."""


class ShapeError(DparrayError, ValueError):
    """Shapes that do not fit together, or that are no shapes."""


class AxisError(DparrayError, np.exceptions.AxisError):
    """An axis outside the dimensions of an array."""


class ArgumentError(DparrayError, ValueError, TypeError):
    """An argument of a value or type that a function does not take."""


class EndOfFileError(ArgumentError, EOFError):
    """An open file has no array left: ``load`` has read the last one."""


class FallbackError(DparrayError, RuntimeError):
    """Values would leave a device to be computed with on the host; ``dp.config.fallback``."""


class MapError(DparrayError, RuntimeError):
    """Work that would wait for a host map of its own thread, or a map that cannot be opened."""


class MemoryError(DparrayError, builtins.MemoryError):
    """USM memory could not be had.

    Attributes:
        requested: bytes asked for.
        in_use: bytes held by live arrays on the device.
        cached: bytes that the device's pools hold free.
        limit: the device's limit in bytes, or ``None``.
        device: the device, and which sub-device.
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
    """A range that is empty, does not divide, or is larger than the device allows."""


class KernelArgumentError(KernelError, TypeError):
    """An argument of a type that a kernel cannot take, or too many or too few."""


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
    """The simulator found a fault that a device would not have reported.

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
        line, column: where in the program, from 1; 0 where it is about no line.
    """

    def __init__(self, message: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class TileSyntaxError(TileError):
    """Text that is not in the Tile language."""


class TileNameError(TileError, NameError):
    """A name or function that is not defined, or a name that is assigned twice."""


class TileShapeError(TileError, ShapeError):
    """Ranks, sizes or shapes that do not fit together."""


class TileTypeError(TileError, TypeError):
    """A value of a kind or dtype that does not belong where it is."""


class TileIndexError(TileError, IndexError):
    """An index set that is empty or unbounded, or gives one element two values."""


class PlaidMLError(DparrayError, RuntimeError):
    """An error of :mod:`dparray.plaidml`; its kinds are in ``dparray.plaidml.exceptions``."""


class UnsupportedFeatureError(DparrayError, NotImplementedError):
    """Something of numba-dpex or NumPy that dparray does not have."""
