"""Special functions, by the names of ``scipy.special``.

They follow data as every other function: one kernel computes them together with what their
operands are made of and what is made of them. Kernels may call them, too. float16, float32 and
integers of up to 16 bits are computed in single precision, all others in double. SciPy's functions
whose first loop is the single one do so (`entr`, `ndtri`); its others widen all but float32.

Errors, in units in the last place, over the arguments in ``tests/reference`` (random ones over the
domain, values by mpmath; those of Bessel functions of the first two kinds are in units of the
amplitude). The table is checked by a test. Next to the negative roots of `gammaln` and `digamma`,
the error is small compared with 1, not with the value. Next to the roots of `gammaln` at 1 and 2,
and in the lower tail of `ndtr`, float64 results have more correct digits than SciPy's.

============= ======== ========
function       float64  float32
============= ======== ========
bdtr              13.0       6.0
bdtrc              9.0       7.8
beta               9.0      4.0
betainc           28.0     21.2
betaincc          32.0     15.3
betaincinv        20.0     76.1
betaln             4.0      3.5
binom              9.0      10.1
boxcox             2.0      1.8
boxcox1p           2.0      1.5
chdtr              7.0      2.6
chdtrc            16.0      6.4
digamma            1.0      1.2
entr               1.0      1.0
erf                1.0       2.1
erfc               1.0       1.0
erfcinv            2.0      2.1
erfcx              2.0      2.5
erfinv             2.0      2.2
exp10              1.0      0.5
expit              1.0      1.0
exprel             1.0      1.1
fdtr              11.0      7.2
fdtrc             14.0      7.3
gamma              6.0      3.7
gammainc           4.0      2.9
gammaincc          8.0     11.1
gammainccinv       7.0     16.1
gammaincinv        7.0     16.1
gammaln            2.0      2.3
gdtr              14.0      18.2
gdtrc             22.0      11.2
huber              1.0      1.0
i0                 3.0      2.4
i0e                2.0      2.0
i1                 3.0      2.7
i1e                2.0      2.1
inv_boxcox         3.0      2.0
inv_boxcox1p       2.0      1.5
j0                 2.0      4.1
j1                 4.0      2.5
k0                 5.0      2.6
k0e                3.0      2.0
k1                 3.0      3.9
k1e                3.0      2.6
kl_div             1.0      1.3
log_expit          1.0      0.8
log_ndtr           2.0       1.9
logit              1.0      1.1
nbdtr              8.0       6.3
nbdtrc            14.0       9.8
ndtr               2.0       2.1
ndtri              2.0      2.6
pdtr               6.0       4.6
pdtrc              4.0       5.1
polygamma          4.0      7.0
pseudo_huber       3.0      2.4
rel_entr           1.0      1.5
rgamma             5.0       4.9
riemann_zeta       6.0      4.9
sinc               3.0      1.8
softplus           1.0       1.0
stdtr             15.0      9.5
xlog1py            1.0      1.0
xlogy              1.0      1.1
y0                 3.0      4.4
y1                 3.0      2.9
zeta              17.0      2.2
============= ======== ========
"""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dparray import _dtypes
from dparray._array.allocation import full_scalar
from dparray._array.apply import astype_array, operate, operate_into, ops
from dparray._array.host_fastpath import compute_small
from dparray._array.ndarray import ndarray
from dparray._array.operands import (
    check_array,
    check_arrays,
    check_out,
    checked_scalar,
    coerce_operands,
    dispatch_override,
    foreign_operand,
    scalar_value,
)
from dparray._driver import traits_of
from dparray._evaluate import limits
from dparray._functions.elementwise import cbrt, exp2, expm1, log1p, where
from dparray._functions.public import guard, ufunc
from dparray._functions.reductions import max as _max
from dparray._functions.reductions import sum as _sum
from dparray._graph.ops import Op
from dparray._graph.reductions import REDUCTION_COST
from dparray._language.special import SpecialFunction, register
from dparray._layout import broadcast_shapes
from dparray._placement import common_placement
from dparray.device import default_device
from dparray.exceptions import ArgumentError, DTypeError


class _Row(NamedTuple):
    """A function: its family and parameters, what it is, the example's arguments and output."""

    family: str
    parameters: str
    summary: str
    sample: str
    result: str = ""


#: The functions of each family: name, parameters, summary, arguments of the example, its output.
_TABLE = """\
error
  erf | x | the error function | [0.0, 0.5] | [0.         0.52049988]
  erfc | x | `1 - erf(x)` | [0.0, 5.0] | [1.00000000e+00 1.53745979e-12]
  erfcx | x | `exp(x**2) * erfc(x)` | [0.0, 50.0] | [1.         0.01128154]
  erfinv | x | the inverse of `erf` | [0.0, 0.5] | [0.         0.47693628]
  erfcinv | x | the inverse of `erfc` | [1.0, 1e-9] | [0.         4.32000538]
  ndtr | x | the normal cumulative distribution function \
| [0.0, -8.0] | [5.00000000e-01 6.22096057e-16]
  ndtri | p | the inverse of `ndtr` | [0.5, 1e-9] | [ 0.         -5.99780702]
  log_ndtr | x | `log(ndtr(x))` | [0.0, -50.0] | [-6.93147181e-01 -1.25483136e+03]
gamma
  gamma | x | the gamma function | [4.0, 0.5] | [6.         1.77245385]
  gammaln | x | `log(abs(gamma(x)))` | [4.0, 0.5] | [1.79175947 0.57236494]
  loggamma | x | `log(gamma(x))`; NaN below 0 | [4.0, 0.5] | [1.79175947 0.57236494]
  rgamma | x | `1 / gamma(x)`; 0 at the poles | [4.0, -1.0] | [0.16666667 0.        ]
  gammasgn | x | the sign of the gamma function | [4.0, -0.5] | [ 1. -1.]
  digamma | x | the derivative of `gammaln` | [1.0, 4.0] | [-0.57721566  1.25611767]
zeta
  polygamma | n x | the n-th derivative of `digamma` | [1.0], 2.0 | [0.64493407]
beta
  beta | a b | `gamma(a) * gamma(b) / gamma(a + b)` | [2.0, 0.5], 3.0 | [0.08333333 1.06666667]
  betaln | a b | `log(abs(beta(a, b)))` | [2.0, 0.5], 3.0 | [-2.48490665  0.06453852]
  betainc | a b x | the regularised incomplete beta function \
| [2.0, 0.5], 3.0, 0.25 | [0.26171875 0.79296875]
  betaincc | a b x | `1 - betainc(a, b, x)` | [2.0, 0.5], 3.0, 0.25 | [0.73828125 0.20703125]
  betaincinv | a b y | the inverse of `betainc` in x \
| [2.0, 0.5], 3.0, 0.25 | [0.24302208 0.01821509]
  betainccinv | a b y | the inverse of `betaincc` in x \
| [2.0, 0.5], 3.0, 0.25 | [0.54367829 0.21274497]
  stdtr | df t | Student's distribution function | [2.0, 9.0], -3.0 | [0.04773298 0.00747818]
  fdtr | dfn dfd x | the F distribution function | [2.0, 9.0], 5.0, 3.0 | [0.86070251 0.88047077]
  fdtrc | dfn dfd x | `1 - fdtr(dfn, dfd, x)` | [2.0, 9.0], 5.0, 3.0 | [0.13929749 0.11952923]
incomplete gamma
  gammainc | a x | the regularised lower incomplete gamma function \
| [2.0, 9.0], 3.0 | [0.80085173 0.00380299]
  gammaincc | a x | `1 - gammainc(a, x)` | [2.0, 9.0], 3.0 | [0.19914827 0.99619701]
  gammaincinv | a y | the inverse of `gammainc` in x | [2.0, 9.0], 0.25 | [0.96127876 6.83764518]
  gammainccinv | a y | the inverse of `gammaincc` in x \
| [2.0, 9.0], 0.25 | [ 2.69263453 10.8024449 ]
  chdtr | v x | the chi-square distribution function | [2.0, 9.0], 3.0 | [0.77686984 0.03570503]
  chdtrc | v x | `1 - chdtr(v, x)` | [2.0, 9.0], 3.0 | [0.22313016 0.96429497]
  chdtri | v p | the inverse of `chdtrc` in x | [2.0, 9.0], 0.25 | [ 2.77258872 11.38875144]
distribution
  stdtrit | df p | the inverse of `stdtr` in t | [2.0, 9.0], 0.25 | [-0.81649658 -0.70272215]
  fdtri | dfn dfd p | the inverse of `fdtr` in x | [2.0, 9.0], 5.0, 0.25 | [0.30488786 0.61842493]
  pdtr | k m | Poisson's distribution function of mean m | [2.0, 9.0], 3.0 | [0.42319008 0.99889751]
  pdtrc | k m | `1 - pdtr(k, m)` | [2.0, 9.0], 3.0 | [0.57680992 0.00110249]
  pdtri | k p | the inverse of `pdtr` in m | [2.0, 9.0], 0.25 | [ 3.92040206 11.91384602]
  bdtr | k n p | the binomial distribution function of n trials of chance p \
| [2.0, 4.0], 9.0, 0.25 | [0.60067749 0.95107269]
  bdtrc | k n p | `1 - bdtr(k, n, p)` | [2.0, 4.0], 9.0, 0.25 | [0.39932251 0.04892731]
  bdtri | k n y | the inverse of `bdtr` in p | [2.0, 4.0], 9.0, 0.25 | [0.39054124 0.60803616]
  nbdtr | k n p | the negative binomial distribution function of n successes of chance p \
| [2.0, 4.0], 9.0, 0.75 | [0.45520091 0.7939619 ]
  nbdtrc | k n p | `1 - nbdtr(k, n, p)` | [2.0, 4.0], 9.0, 0.75 | [0.54479909 0.2060381 ]
  nbdtri | k n y | the inverse of `nbdtr` in p | [2.0, 4.0], 9.0, 0.25 | [0.6739133  0.55971571]
  gdtr | a b x | the gamma distribution function of rate a and shape b \
| [2.0, 0.5], 3.0, 1.5 | [0.57680992 0.04050544]
  gdtrc | a b x | `1 - gdtr(a, b, x)` | [2.0, 0.5], 3.0, 1.5 | [0.42319008 0.95949456]
  gdtrix | a b p | the inverse of `gdtr` in x | [2.0, 0.5], 3.0, 0.25 | [0.86364971 3.45459884]
  binom | n k | the binomial coefficient, of any real numbers | [9.0, 2.5], 3.0 | [84.      0.3125]
elementary
  expit | x | the logistic function `1 / (1 + exp(-x))` | [0.0, 2.0] | [0.5        0.88079708]
  log_expit | x | `log(expit(x))` | [0.0, -40.0] | [ -0.69314718 -40.        ]
  logit | p | the inverse of `expit` | [0.5, 0.75] | [0.         1.09861229]
  xlogy | x y | `x * log(y)`; 0 where x is 0 | [0.0, 2.0], 3.0 | [0.         2.19722458]
  xlog1py | x y | `x * log1p(y)`; 0 where x is 0 | [0.0, 2.0], 3.0 | [0.         2.77258872]
  entr | x | the entropy's term `-x * log(x)` | [0.0, 0.5] | [0.         0.34657359]
  rel_entr | x y | `x * log(x / y)` | [0.0, 0.5], 0.25 | [0.         0.34657359]
  kl_div | x y | `x * log(x / y) - x + y` | [0.0, 0.5], 0.25 | [0.25       0.09657359]
  sinc | x | `sin(pi * x) / (pi * x)`; 1 at 0 | [0.0, 0.5] | [1.         0.63661977]
  softplus | x | `log(1 + exp(x))` | [0.0, 40.0] | [ 0.69314718 40.        ]
  exprel | x | `(exp(x) - 1) / x`; 1 at 0 | [0.0, 1.0] | [1.         1.71828183]
  exp10 | x | `10**x` | [0.0, 2.5] | [  1.         316.22776602]
  boxcox | x lmbda | `(x**lmbda - 1) / lmbda`; `log(x)` where lmbda is 0 \
| [0.5, 4.0], 0.5 | [-0.58578644  2.        ]
  boxcox1p | x lmbda | `boxcox(1 + x, lmbda)` | [0.5, 4.0], 0.5 | [0.44948974 2.47213595]
  inv_boxcox | x lmbda | the inverse of `boxcox` in x | [0.5, 4.0], 0.5 | [1.5625 9.    ]
  inv_boxcox1p | x lmbda | the inverse of `boxcox1p` in x | [0.5, 4.0], 0.5 | [0.5625 8.    ]
  huber | delta r | Huber's loss | [1.0, 2.0], 1.5 | [1.    1.125]
  pseudo_huber | delta r | the smooth form of Huber's loss \
| [1.0, 2.0], 1.5 | [0.80277564 1.        ]
bessel
  i0 | x | the modified Bessel function I of order 0 | [0.0, 2.0] | [1.        2.2795853]
  i0e | x | `exp(-abs(x)) * i0(x)` | [0.0, 2.0] | [1.         0.30850832]
  i1 | x | the modified Bessel function I of order 1 | [0.0, 2.0] | [0.         1.59063685]
  i1e | x | `exp(-abs(x)) * i1(x)` | [0.0, 2.0] | [0.         0.21526929]
  j0 | x | the Bessel function J of order 0 | [0.0, 2.0] | [1.         0.22389078]
  j1 | x | the Bessel function J of order 1 | [0.0, 2.0] | [0.         0.57672481]
  k0 | x | the modified Bessel function K of order 0 | [1.0, 2.0] | [0.42102444 0.11389387]
  k0e | x | `exp(x) * k0(x)` | [1.0, 2.0] | [1.14446308 0.84156822]
  k1 | x | the modified Bessel function K of order 1 | [1.0, 2.0] | [0.60190723 0.13986588]
  k1e | x | `exp(x) * k1(x)` | [1.0, 2.0] | [1.63615349 1.03347685]
  y0 | x | the Bessel function Y of order 0 | [1.0, 2.0] | [0.08825696 0.51037567]
  y1 | x | the Bessel function Y of order 1 | [1.0, 2.0] | [-0.78121282 -0.10703243]
"""


def _rows() -> dict[str, _Row]:
    """Return the rows of the table by name."""
    rows, family = {}, ""
    for line in _TABLE.splitlines():
        name, *cells = line.strip().split(" | ")
        if cells:
            rows[name] = _Row(family, *cells)
        else:
            family = name
    return rows


_ROWS = _rows()

#: The two functions from which :func:`zeta` is composed.
_PARTS = {
    "zeta": _Row("zeta", "x q", "Hurwitz's zeta function", "[2.0], 1.0"),
    "riemann_zeta": _Row("zeta", "x", "Riemann's zeta function", "[2.0]"),
}

_TEMPLATE = """Return {summary}, element-wise.

    {source}

    Args:
        {parameters}: arrays or scalars.
        out: an array for the result; its shape must be the broadcast shape and the result's dtype
            must fit it.
        where, dtype, casting, order, subok: as of every elementwise function, see :func:`dp.exp`.

    Returns:
        An array of the broadcast shape on the queue of the arrays, with a USM type coerced from
        the arrays'. The dtype is float32 of float16, float32 and integers of up to 16 bits, else
        float64; on a device without fp64 always float32.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        HostConversionError: an operand is a NumPy array.
        DTypeError: an operand is complex.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> print(dp.special.{name}(dp.asarray({first}){rest}))
        {result}
    """


# The two parts of sqrt(1/2). The first has half of the digits, so its product with half of a
# number's digits is exact. The last constant splits numbers in two.
_ROOT_PARTS = {
    np.float32: "{t}g = {T}(0.70703125)\n{t}h = {T}(7.55311865475244e-05)\n{t}c = {T}(4097)\n",
    np.float64: (
        "{t}g = {T}(0.7071067839860916)\n"
        "{t}h = {T}(-2.799544089368687e-09)\n"
        "{t}c = {T}(134217729)\n"
    ),
}

# `r` is the tail of the normal distribution beyond abs(x). `erfc` magnifies the rounding error of
# the product by the root, which is corrected to first order.
_TAIL = (
    "{root}"
    "{t}x = {T}(40) if abs({0}) >= {T}(40) else abs({0})\n"
    "{t}p = {t}c * {t}x\n"
    "{t}a = {t}p - ({t}p - {t}x)\n"
    "{t}y = {t}x * {T}(0.7071067811865476)\n"
    "{t}d = ({t}a * {t}g - {t}y) + ({t}x - {t}a) * {t}g + {t}x * {t}h\n"
    "{t}r = {T}(0.5) * math.erfc({t}y) * ({T}(1) - {T}(2) * {t}y * {t}d)\n"
)

#: Functions whose text in a generated kernel calls no other function, by the rules of
#: :class:`dparray._graph.ops.Op`. They are written without branches, which compilers turn into
#: vectors.
_EXPRESSIONS = {
    "erf": "math.erf({0})",
    "erfc": "math.erfc({0})",
    "expit": "{t}e = math.exp(-abs({0}))\n({t}e if {0} < 0 else {T}(1)) / ({T}(1) + {t}e)",
    "log_expit": "({0} if {0} < 0 else {T}(0)) - math.log1p(math.exp(-abs({0})))",
    "softplus": "({0} if {0} > 0 else {T}(0)) + math.log1p(math.exp(-abs({0})))",
    "ndtr": _TAIL + "{t}r if {0} < 0 else {T}(1) - {t}r",
    # The tail is used while it is not 0, then the asymptotic series.
    "log_ndtr": (
        _TAIL + "{t}w = {T}(1) / ({0} * {0})\n"
        "{t}s = {T}(1) - {T}(7) * {t}w * ({T}(1) - {T}(9) * {t}w * ({T}(1) - {T}(11) * {t}w))\n"
        "{t}s = {T}(1) - {t}w * ({T}(1) - {T}(3) * {t}w * ({T}(1) - {T}(5) * {t}w * {t}s))\n"
        "{t}f = {T}(-0.5) * {0} * {0} - math.log(-{0}) - {T}(0.9189385332046727)\n"
        "{t}f = {t}f + math.log({t}s)\n"
        "{t}n = math.log({t}r) if {0} > {T}({limit}) else {t}f\n"
        "math.log1p(-{t}r) if {0} > 0 else {t}n"
    ),
    "xlogy": "{0} * {1} if {1} != {1} else {T}(0) if {0} == 0 else {0} * math.log({1})",
    "xlog1py": "{0} * {1} if {1} != {1} else {T}(0) if {0} == 0 else {0} * math.log1p({1})",
}
#: Functions that Python has, too. A call costs as much as this many additions of NumPy, which for a
#: few hundred elements is less than a launch.
_IN_PYTHON: dict[str, Callable[[float], float]] = {"erf": math.erf, "erfc": math.erfc}
_COST_IN_PYTHON = 300
_COST = 16
_COSTS = {"expit": 10, "ndtr": 32, "log_ndtr": 64}


@cache
def _operation(meaning: SpecialFunction, dtype: Any) -> Op:
    """Return the operation of a function in one precision."""
    name = f"special_{meaning.name}_{dtype.__name__}"
    function = meaning.of(dtype)
    count = meaning.arity
    if meaning.name in _EXPRESSIONS:
        return Op(
            meaning.name,
            np.frompyfunc(function.py_func, count, 1),
            meaning.name,
            expression=_EXPRESSIONS[meaning.name]
            .replace("{root}", _ROOT_PARTS[dtype])
            .replace("{limit}", "-12" if dtype is np.float32 else "-36"),
            cost=_COSTS.get(meaning.name, _COST),
            is_device_only=True,
        )
    operands = ", ".join(f"{{{position}}}" for position in range(count))
    return Op(
        meaning.name,
        np.frompyfunc(function.py_func, count, 1),
        meaning.name,
        expression=f"{name}({operands})",
        cost=REDUCTION_COST,
        functions={name: function},
    )


def _computed_in(name: str, values: Sequence[Any], arrays: Sequence[ndarray]) -> np.dtype[Any]:
    """Return the dtype of the result, the same as that of SciPy's loops."""
    own = [array.dtype for array in arrays]
    own += [value.dtype for value in values if isinstance(value, np.generic)]
    weak = [v for v in values if isinstance(v, bool | int | float | complex)]
    weak = [v for v in weak if not isinstance(v, np.generic)]
    dtype = np.result_type(*own, *(type(value)(0) for value in weak))
    if dtype.kind == "c":
        raise DTypeError(f"special.{name}: takes real numbers, not {dtype}; use its real parts")
    single = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.dtype(np.float32 if single and own else np.float64)


def _apply(
    name: str,
    meaning: SpecialFunction,
    parameters: Sequence[str],
    operands: Sequence[Any],
    out: ndarray | None,
) -> ndarray:
    values = list(operands)
    full_name = f"special.{name}"
    if not all(isinstance(value, ndarray | bool | int | float | complex) for value in values):
        if name in _ROWS and (taken := dispatch_override(full_name, values)) is not NotImplemented:
            return taken
        values = coerce_operands(full_name, parameters, values)
    for parameter, value in zip(parameters, values, strict=True):
        if not isinstance(value, ndarray | bool | int | float | complex | np.number | np.bool_):
            raise foreign_operand(full_name, parameter, value)
    arrays = [(p, v) for p, v in zip(parameters, values, strict=True) if isinstance(v, ndarray)]
    dtype = _computed_in(name, values, [array for _, array in arrays])
    if out is not None:
        check_out(full_name, arrays, out)
    if not arrays:
        queue = default_device().queue if out is None else out.queue
        fitting = _dtypes.fit_device(dtype, traits_of(queue))
        values[0] = full_scalar(fitting.type(values[0]).item(), queue)
        arrays = [(parameters[0], values[0])]
    placement = common_placement(full_name, arrays)
    dtype = _dtypes.fit_device(dtype, traits_of(placement.queue))
    shape = broadcast_shapes(full_name, [array.shape for _, array in arrays])
    for position, value in enumerate(values):
        if not isinstance(value, ndarray):
            values[position] = checked_scalar(full_name, scalar_value(value), dtype)
    kind: Any = dtype.type
    python = _IN_PYTHON.get(name) if out is None else None
    if python and math.prod(shape) * _COST_IN_PYTHON <= limits.host_elements:
        small = compute_small(lambda x: _of_each(python, x, dtype), values[0])
        if small is not None:
            return small
    op = _operation(meaning, kind)
    signature = (dtype,) * (len(values) + 1)
    if out is None:
        return operate(op, values, signature, shape, placement)
    return operate_into(out, op, values, signature, shape, placement)


def _of_each(function: Callable[[float], float], x: np.ndarray, dtype: Any) -> np.ndarray:
    """Return a function that applies a Python function to each element, faster than NumPy's."""
    made = np.empty_like(x, dtype)  # in the memory order of x
    made[...] = np.fromiter(map(function, x.ravel().tolist()), dtype, x.size).reshape(x.shape)
    return made


def _documentation(name: str, row: _Row, meaning: SpecialFunction) -> str:
    first, rest = row.sample.partition("]")[::2]
    return _TEMPLATE.format(
        summary=row.summary,
        # Indented as in the file: since Python 3.13, docstrings are stored without indentation.
        source=textwrap.indent(inspect.cleandoc(meaning.source), "    ").strip(),
        parameters=", ".join(row.parameters.split()),
        name=name,
        first=first + "]",
        rest=rest,
        result=row.result,
    )


def _make(name: str) -> Callable[..., ndarray]:
    """Return the public function of a row."""
    row = _ROWS.get(name) or _PARTS[name]
    parameters = tuple(row.parameters.split())
    meaning = SpecialFunction(name, row.family, len(parameters))

    def compute(*operands: Any, out: ndarray | None = None) -> ndarray:
        return _apply(name, meaning, parameters, operands, out)

    function: Callable[..., ndarray] = ufunc(
        *(f"special.{name}", parameters, compute), into=compute, takes_sequences=False
    )
    function.__module__ = __name__
    if name in _ROWS:
        function.__doc__ = _documentation(name, row, meaning)
        register(function, meaning)
    return function


_FUNCTIONS = {name: _make(name) for name in _ROWS}
globals().update(_FUNCTIONS)
psi = _FUNCTIONS["digamma"]
_hurwitz = _make("zeta")
_riemann = _make("riemann_zeta")


def zeta(x: Any, q: Any = None, /, out: ndarray | None = None) -> ndarray:
    """Elementwise zeta function: Riemann's of `x`, or Hurwitz's, the sum of `(q + k)**-x`.

    By the summation formula of Euler and Maclaurin, as in Cephes (S. L. Moshier).

    Args:
        x: an array or a scalar.
        q: an array or a scalar; Riemann's function, which is that of 1, if not given.
        out: an array to write the result to.

    Returns, raises: as :func:`gamma`.

    Example:
        >>> print(dp.special.zeta(dp.asarray([2.0, 4.0])))
        [1.64493407 1.08232323]
    """
    return _riemann(x, out=out) if q is None else _hurwitz(x, q, out=out)


register(zeta, SpecialFunction("zeta", "zeta", 2))


def multigammaln(a: Any, d: int) -> ndarray:
    """Return the logarithm of the multivariate gamma function of ``d`` dimensions.

    Raises:
        DTypeError: ``a`` is complex.
        ArgumentError: ``d`` is no positive integer.

    Example:
        >>> print(dp.special.multigammaln(dp.asarray([3.0, 4.5]), 2))
        [1.55019499 4.81786098]
    """
    if not isinstance(d, int | np.integer) or d < 1:
        raise ArgumentError(f"special.multigammaln: d is {d!r}; give an integer from 1 on")
    constant = d * (d - 1) / 4 * float(np.log(np.pi))
    total = _FUNCTIONS["gammaln"](a)
    for k in range(1, d):
        total = total + _FUNCTIONS["gammaln"](ops.subtract(a, k / 2))
    return total + constant


def factorial(n: Any) -> ndarray:
    """Return the factorial of numbers, `gamma(n + 1)`; 0 of negative ones.

    Raises:
        DTypeError: ``n`` is complex.

    Example:
        >>> print(dp.special.factorial(dp.asarray([0, 5, -1])))
        [  1. 120.   0.]
    """
    n = check_array("special.factorial", "n", n)
    return where(n < 0, 0, _FUNCTIONS["gamma"](n + 1))


def comb(n: Any, k: Any) -> ndarray:
    """Return how many ways there are to choose k of n objects; 0 where there is none.

    Raises:
        DTypeError: an operand is complex.
        ExecutionPlacementError: the arrays are on different queues.

    Example:
        >>> print(dp.special.comb(dp.asarray([5, 3]), 4))
        [5. 0.]
    """
    n, k = check_arrays("special.comb", ("n", n), ("k", k))
    is_one = ops.logical_and(k >= 0, k <= n)
    return where(is_one, _FUNCTIONS["binom"](n, k), 0)


def perm(n: Any, k: Any) -> ndarray:
    """Return how many ways there are to arrange k of n objects; arguments and errors as of
    :func:`comb`.

    Example:
        >>> print(dp.special.perm(dp.asarray([5, 3]), 2))
        [20.  6.]
    """
    return comb(n, k) * factorial(k)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """Return the logarithm of the sum of exponentials, without overflow.

    Args:
        a: an array.
        axis: one or more axes; all if not given.
        b: factors of the exponentials.
        keepdims: keep the axes, with one element.
        return_sign: give the sign of the sum, too; else the logarithm of a negative sum is NaN.

    Returns:
        An array on the queue of ``a``; with ``return_sign``, the logarithm and the sign.

    Example:
        >>> print(dp.special.logsumexp(dp.asarray([1000.0, 1000.0])))
        1000.6931471805599
    """
    a = _as_float("logsumexp", a)
    kept = _max(a, axis=axis, keepdims=True)
    kept = where(ops.isfinite(kept), kept, 0)
    terms = ops.exp(a - kept)
    if b is not None:
        terms = terms * b
    total = _sum(terms, axis=axis, keepdims=True)
    sign = ops.sign(total)
    size = ops.abs(total) if return_sign else total
    found = ops.log(size) + kept
    if not keepdims:
        found, sign = (_sum(value, axis=axis) for value in (found, sign))  # with one element each
    return (found, sign) if return_sign else found


def softmax(x: Any, axis: Any = None) -> ndarray:
    """Divide exponentials by their sum along an axis, or of all elements.

    Example:
        >>> print(dp.special.softmax(dp.asarray([1.0, 1.0, 1000.0])))
        [0. 0. 1.]
    """
    x = _as_float("softmax", x)
    terms = ops.exp(x - _max(x, axis=axis, keepdims=True))
    return terms / _sum(terms, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> ndarray:
    """Return the logarithm of :func:`softmax`.

    Example:
        >>> print(dp.special.log_softmax(dp.asarray([0.0, 1000.0])))
        [-1000.     0.]
    """
    x = _as_float("log_softmax", x)
    largest = _max(x, axis=axis, keepdims=True)
    largest = where(ops.isfinite(largest), largest, 0)
    less = x - largest
    total = _sum(ops.exp(less), axis=axis, keepdims=True)
    return less - ops.log(total)


def _as_float(name: str, x: Any) -> ndarray:
    x = check_array(f"special.{name}", "x", x)
    if x.dtype.kind == "c":
        raise DTypeError(f"special.{name}: takes real numbers, not {x.dtype}")
    if x.dtype.kind == "f":
        return x
    return astype_array(x, _dtypes.fit_device(np.dtype(np.float64), traits_of(x.queue)))


__all__ = [
    *_FUNCTIONS,
    "cbrt",
    "comb",
    "exp2",
    "expm1",
    "factorial",
    "log1p",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "perm",
    "psi",
    "softmax",
    "zeta",
]

guard(
    sys.modules[__name__],
    ["comb", "factorial", "log_softmax", "logsumexp", "multigammaln", "perm", "softmax", "zeta"],
)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"dparray.special has no function {name!r}, and nothing is copied to the host implicitly; "
        f"copy it yourself: dp.asarray(scipy.special.{name}(dp.asnumpy(x)))"
    )
