"""Special functions of one element: device functions that kernels call.

Each family has a factory that creates its functions for one precision, and names its sources. The
approximations were computed for these intervals (`coefficients`). Where a rounding error would be
multiplied, as in the exponent of a power, it is carried along as the sum of two floats (`pairs`; T.
J. Dekker, "A Floating-Point Technique for Extending the Available Precision", 1971). So each
operation must be rounded as it is written.

All computations are in the requested precision: float32 functions never use float64.
"""

from __future__ import annotations

from dparray.kernels.special.approximation import Device, Functions
from dparray.kernels.special.bessel import make_bessel_functions
from dparray.kernels.special.distribution import make_distribution_functions
from dparray.kernels.special.elementary import make_elementary_functions
from dparray.kernels.special.error import make_error_functions
from dparray.kernels.special.gamma import make_gamma_functions
from dparray.kernels.special.incomplete_beta import make_beta_functions
from dparray.kernels.special.incomplete_gamma import make_incomplete_gamma_functions
from dparray.kernels.special.zeta import make_zeta_functions

__all__ = [
    "Device",
    "Functions",
    "make_bessel_functions",
    "make_beta_functions",
    "make_distribution_functions",
    "make_elementary_functions",
    "make_error_functions",
    "make_gamma_functions",
    "make_incomplete_gamma_functions",
    "make_zeta_functions",
]
