"""The special functions as device functions, and the public functions that stand for them.

A kernel may name a public function, ``dp.special.erf(x[i])``: on the device it is the device
function for the precision of its operands. Which one is said here, by the public function; that
lives further up, and registers itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dparray._language.device_function import DeviceFunction
from dparray.kernels import special as kernels

_FAMILIES: Mapping[str, Callable[[type, kernels.Device], kernels.Functions]] = {
    "error": kernels.make_error_functions,
    "gamma": kernels.make_gamma_functions,
    "zeta": kernels.make_zeta_functions,
    "bessel": kernels.make_bessel_functions,
    "elementary": kernels.make_elementary_functions,
    "incomplete gamma": kernels.make_incomplete_gamma_functions,
    "beta": kernels.make_beta_functions,
    "distribution": kernels.make_distribution_functions,
}


def _device(function: Callable[..., Any]) -> DeviceFunction:
    return DeviceFunction(function, {})


class SpecialFunction:
    """A function of numbers in single and in double precision.

    Attributes:
        name: what the family calls it.
        arity: how many numbers it takes.
        source: where its algorithms are from.
    """

    def __init__(self, name: str, family: str, arity: int) -> None:
        self.name = name
        self.arity = arity
        self._make = _FAMILIES[family]
        self.source = self._make.__doc__ or ""

    def of(self, dtype: type) -> DeviceFunction:
        """Return the device function for ``float32`` or ``float64`` operands."""
        found: DeviceFunction = _functions(self._make, dtype)[self.name]
        return found

    def all(self) -> tuple[DeviceFunction, ...]:
        """Return all device functions that may replace the public function in a kernel."""
        return self.of(np.float32), self.of(np.float64)


@functools.cache
def _functions(
    make: Callable[[type, kernels.Device], kernels.Functions], dtype: type
) -> kernels.Functions:
    return make(dtype, _device)


def precision(dtypes: Sequence[np.dtype[Any]]) -> type:
    """Return the dtype in which a kernel computes the function: float64 for integers."""
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    is_single = bool(floats) and all(dtype.itemsize <= 4 for dtype in floats)
    return np.float32 if is_single else np.float64


#: The public functions that kernels may call.
PUBLIC: dict[Callable[..., Any], SpecialFunction] = {}


def register(function: Callable[..., Any], meaning: SpecialFunction) -> None:
    """Let kernels call a public function, which they replace by a device function."""
    PUBLIC[function] = meaning
    function.device_meaning = meaning  # type: ignore[attr-defined]
