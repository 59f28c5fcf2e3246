"""Special functions compared with mpmath's values: at their edges, on every queue, in kernels."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import (
    ArgumentError,
    DTypeError,
    ExecutionPlacementError,
    HostConversionError,
)
from tests.support import launched

REFERENCE = np.load(Path(__file__).parents[1] / "reference" / "special.npz")
NAMES = sorted({key.split(".")[0] for key in REFERENCE.files})
DTYPES = ("float64", "float32")
# For these the error is small compared with the amplitude of the oscillation.
WAVES = ("j0", "j1", "y0", "y1")


def arguments(name: str, dtype: str) -> list[np.ndarray]:
    keys = [f"{name}.{dtype}.{place}" for place in range(3)]
    return [REFERENCE[key] for key in keys if key in REFERENCE.files]


def call(name: str, arrays: list[Any]) -> Any:
    return getattr(dp.special, {"riemann_zeta": "zeta"}.get(name, name))(*arrays)


def errors(name: str, dtype: str, found: np.ndarray) -> np.ndarray:
    """Return errors in units in the last place of the right values."""
    values = REFERENCE[f"{name}.{dtype}.value"]
    sizes = np.abs(values)
    if name in WAVES:
        sizes = np.maximum(sizes, np.sqrt(2 / (np.pi * np.abs(arguments(name, dtype)[0]) + 1)))
    units = np.spacing(sizes.astype(dtype)).astype("float64")
    return np.abs(found.astype("float64") - values) / units


def largest_errors(name: str) -> tuple[float, ...]:
    found = []
    for dtype in DTYPES:
        given = [dp.asarray(row) for row in arguments(name, dtype)]
        result = call(name, given)
        assert result.dtype == dtype
        found.append(float(errors(name, dtype, result.asnumpy()).max()))
    return tuple(found)


def table() -> dict[str, tuple[float, ...]]:
    """Return the errors in the module's documentation, in float64 and in float32."""
    rows = re.findall(r"^(\w+) +([\d.]+) +([\d.]+)$", dp.special.__doc__ or "", re.MULTILINE)
    return {name: (float(double), float(single)) for name, double, single in rows}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_those_in_the_table(name: str) -> None:
    for found, told in zip(largest_errors(name), table()[name], strict=True):
        # The precision of exponentials and logarithms depends on the device.
        assert found <= 2 * told + 2


#: Inverses in the last parameter; as functions of a probability they have parameters before it.
INVERSES = {
    "bdtri": ("bdtr", ([0.0, 3.0, 24.0], [4.0, 90.0, 973.0])),
    "chdtri": ("chdtrc", ([0.5, 3.0, 40.0],)),
    "fdtri": ("fdtr", ([1.0, 3.0, 40.0], [2.0, 7.0, 90.0])),
    "gdtrix": ("gdtr", ([0.5, 3.0, 40.0], [2.0, 0.3, 90.0])),
    "nbdtri": ("nbdtr", ([0.0, 3.0, 40.0], [2.0, 1.0, 90.0])),
    "pdtri": ("pdtr", ([0.0, 3.0, 40.0],)),
    "stdtrit": ("stdtr", ([1.0, 3.0, 1e20],)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INVERSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_inverses(name: str, dtype: str, queue: Any) -> None:
    forward, parameters = INVERSES[name]
    before = [dp.asarray(row, dtype=dtype, sycl_queue=queue)[:, None] for row in parameters]
    chances = np.asarray([1e-9, 1e-3, 0.25, 0.5, 0.75, 0.999], dtype)
    y = dp.asarray(chances, sycl_queue=queue)
    x = getattr(dp.special, name)(*before, y)
    assert (x.dtype, x.queue) == (dtype, queue)
    found = getattr(dp.special, forward)(*before, x).asnumpy()
    wanted = np.broadcast_to(chances, found.shape)
    # For probabilities near 1 the inverse itself is known to some digits only.
    np.testing.assert_allclose(found, wanted, rtol=4000 * np.finfo(dtype).eps)
    outside = getattr(dp.special, name)(*before, dp.asarray([-0.1, 1.1, nan], sycl_queue=queue))
    assert np.isnan(outside.asnumpy()).all()


@pytest.mark.slow
def test_the_inverse_of_the_complement_is_that_of_the_other_side() -> None:
    a, b, q = (
        dp.asarray([0.5, 3.0, 40.0]),
        dp.asarray([2.0, 0.3, 90.0]),
        dp.asarray([1e-9, 0.3, 0.9]),
    )
    found = dp.special.betainccinv(a, b, q).asnumpy()
    np.testing.assert_allclose(1 - found, dp.special.betaincinv(b, a, q).asnumpy(), rtol=1e-9)


def test_every_function_is_tried() -> None:
    made_of_others = {"loggamma", "gammasgn", "chdtri", "logsumexp", "softmax", "log_softmax"}
    made_of_others |= (set(INVERSES) | {"betainccinv"}) - set(NAMES)
    others = {"cbrt", "exp2", "expm1", "log1p", "multigammaln", "psi", "comb", "factorial", "perm"}
    assert set(dp.special.__all__) - made_of_others - others == set(NAMES) - {"riemann_zeta"}


@pytest.mark.parametrize("size", [7, 3000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_few_and_many_elements_are_alike(size: int, dtype: str) -> None:
    x = np.linspace(-3, 3, size).astype(dtype)
    exact = np.array([math.erf(value) for value in x])
    result = dp.special.erf(dp.asarray(x))
    assert result.dtype == dtype
    np.testing.assert_allclose(result.asnumpy(), exact, rtol=4 * np.finfo(dtype).eps)


inf, nan = math.inf, math.nan
EDGES = {
    "erf": ([0.0, -0.0, inf, -inf, nan], [0.0, -0.0, 1, -1, nan]),
    "erfc": ([inf, -inf, nan, 0], [0, 2, nan, 1]),
    "erfcx": ([inf, -inf, nan, 0], [0, inf, nan, 1]),
    "erfinv": ([1, -1, 2, nan, 0.0, -0.0], [inf, -inf, nan, nan, 0.0, -0.0]),
    "erfcinv": ([0, 2, 3, -1, 1, nan], [inf, -inf, nan, nan, 0, nan]),
    "ndtr": ([inf, -inf, nan, 0], [1, 0, nan, 0.5]),
    "ndtri": ([0, 1, -0.1, 1.1, 0.5, nan], [-inf, inf, nan, nan, 0, nan]),
    "log_ndtr": ([inf, -inf, nan], [0, -inf, nan]),
    "gamma": ([0.0, -0.0, -1, -inf, inf, nan, 200], [inf, -inf, nan, nan, inf, nan, inf]),
    "gammaln": ([0, -1, inf, nan, 1, 2], [inf, inf, inf, nan, 0, 0]),
    "loggamma": ([0, -1.5, inf, nan], [inf, nan, inf, nan]),
    "gammasgn": ([1, -0.5, -1.5, nan], [1, -1, 1, nan]),
    "rgamma": ([0.0, -1, -2, inf, nan, 200], [0, 0, 0, 0, nan, 0]),
    "softplus": ([inf, -inf, nan, -800], [inf, 0, nan, 0]),
    "digamma": ([0.0, -0.0, -1, inf, nan], [-inf, inf, nan, inf, nan]),
    "expit": ([inf, -inf, nan, -800], [1, 0, nan, 0]),
    "log_expit": ([inf, -inf, nan], [0, -inf, nan]),
    "logit": ([0, 1, -0.1, 1.1, nan], [-inf, inf, nan, nan, nan]),
    "entr": ([0, -1, inf, nan], [0, -inf, -inf, nan]),
    "sinc": ([0, 1, -2, inf, nan], [1, 0, 0, 0, nan]),
    "exprel": ([0, inf, -inf, nan], [1, inf, 0, nan]),
    "i0": ([0, inf, -inf, nan], [1, inf, inf, nan]),
    "i0e": ([0, inf, nan], [1, 0, nan]),
    "i1": ([0, inf, -inf, nan], [0, inf, -inf, nan]),
    "k0": ([0, -1, inf, nan], [inf, nan, 0, nan]),
    "k1": ([0, -1, inf, nan], [inf, nan, 0, nan]),
    "j0": ([0, inf, nan], [1, 0, nan]),
    "j1": ([0, inf, nan], [0, 0, nan]),
    "y0": ([0, -1, inf, nan], [-inf, nan, 0, nan]),
    "y1": ([0, -1, inf, nan], [-inf, nan, 0, nan]),
    "zeta": ([1, inf, 0, -2, nan], [inf, 1, -0.5, 0, nan]),
}


@pytest.mark.slow
def test_counts() -> None:
    n, k = dp.asarray([5, 5, 5, 3, -2, 60]), dp.asarray([2, 0, 6, 3, 1, 30])
    ways = [10, 1, 0, 1, 0, float(math.comb(60, 30))]
    np.testing.assert_allclose(dp.special.comb(n, k).asnumpy(), ways, rtol=1e-14)
    ways = [20, 1, 0, 6, 0, float(math.perm(60, 30))]
    np.testing.assert_allclose(dp.special.perm(n, k).asnumpy(), ways, rtol=1e-14)
    assert dp.special.factorial(dp.asarray([0, 1, 5, -1])).tolist() == [1, 1, 120, 0]
    # For any numbers: by the gamma function, also where the difference is negative.
    found = dp.special.binom(dp.asarray([5.5, 5.0, -2.5, -0.5]), dp.asarray([2.0, -0.5, 1.5, 0.3]))
    wanted = [12.375, 0.23517267204343553, 0.0, 0.43019182290076673]
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-13, atol=1e-300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("pdtr", ([-1, 0, 2, 2, nan], [1, 0, 0, inf, 1]), [nan, 1, 1, 0, nan]),
        ("pdtrc", ([-1, 0, 2, 2, nan], [1, 0, 0, inf, 1]), [nan, 0, 0, 1, nan]),
        ("bdtr", ([-1, 3, 4, 1], [3, 3, 3, 3], [0.5, 0.5, 0.5, 2]), [nan, 1, nan, nan]),
        ("bdtrc", ([-1, 3, 4, 1], [3, 3, 3, 3], [0.5, 0.5, 0.5, 2]), [1, 0, nan, nan]),
        ("nbdtr", ([-1, 3, 3], [3, 3, 3], [0.5, 0, 1]), [nan, 0, 1]),
        ("gdtr", ([1, 1, 1], [2, 2, 2], [-1, 0, inf]), [nan, 0, 1]),
        ("stdtrit", ([3, 3, 3, -1, inf], [0, 1, 0.5, 0.5, 0.5]), [-inf, inf, 0, nan, 0]),
        ("fdtri", ([3, 3, -1], [2, 2, 2], [0, 1, 0.5]), [0, inf, nan]),
    ],
)
def test_edges_of_distributions(name: str, given: Any, wanted: list[float]) -> None:
    found = getattr(dp.special, name)(*(dp.asarray(row, dtype="float64") for row in given))
    np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("name", ["gamma", "loggamma", "erf", "expit", "xlogy", "pdtr"])
def test_complex_numbers_are_refused_by_name(name: str) -> None:
    count = 1 if name in ("gamma", "loggamma", "erf", "expit") else 2
    with pytest.raises(DTypeError, match=rf"special\.{name}: takes real numbers, not complex128"):
        getattr(dp.special, name)(*[dp.asarray([1j])] * count)


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sample(6)
def test_edges(name: str, dtype: str) -> None:
    given, wanted = (np.array(part, dtype) for part in EDGES[name])
    found = call(name, [dp.asarray(given)]).asnumpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    if name in ("erf", "erfinv"):
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


PAIR_EDGES = {
    "gammainc": [(0, 0, nan), (0, 1, 1), (1, 0, 0), (1, inf, 1), (-1, 1, nan), (1, -1, nan)],
    "gammaincc": [(0, 0, nan), (0, 1, 0), (1, 0, 1), (1, inf, 0), (inf, 1, 1), (1e300, 1e300, 0.5)],
    "gammaincinv": [(1, 0, 0), (1, 1, inf), (1, 2, nan), (0, 0.5, nan), (nan, 0.5, nan)],
    "gammainccinv": [(1, 1, 0), (1, 0, inf), (1, -1, nan)],
    "xlogy": [(0, 0, 0), (0, nan, nan), (1, 0, -inf), (1, -1, nan), (0, -1, 0)],
    "xlog1py": [(0, -1, 0), (0, nan, nan), (1, -1, -inf), (1, -2, nan)],
    "rel_entr": [(0, 0, 0), (0, 1, 0), (1, 0, inf), (-1, 1, inf), (nan, 1, nan)],
    "kl_div": [(0, 0, 0), (0, 2, 2), (1, 0, inf), (-1, 1, inf), (1, 1, 0), (1e-300, 2, 2)],
    "beta": [(0, 1, inf), (1, nan, nan), (1, 1, 1), (inf, 1, 0)],
    "boxcox": [(0, 1, -1), (0, -1, -inf), (2, 0, math.log(2)), (-1, 1, nan)],
    "stdtr": [(3, 0, 0.5), (3, inf, 1), (3, -inf, 0), (-1, 0, nan), (inf, 0, 0.5)],
    "chdtrc": [(2, 0, 1), (2, inf, 0), (2, -1, nan)],
    "huber": [(-1, 1, inf), (1, 0, 0)],
    "polygamma": [(0, 1, -np.euler_gamma), (1, 0, inf), (-1, 1, nan)],
}


@pytest.mark.parametrize("name", PAIR_EDGES)
@pytest.mark.sample(3)
def test_edges_of_pairs(name: str) -> None:
    first, second, wanted = np.array(PAIR_EDGES[name], float).T
    found = call(name, [dp.asarray(first), dp.asarray(second)]).asnumpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_results_follow_data(queue: Any) -> None:
    for size in (5, 5000):
        x = dp.ones(size, sycl_queue=queue, usm_type="shared")
        y = dp.ones(size, sycl_queue=queue, usm_type="device")
        result = dp.special.gammainc(x, y)
        assert result.queue == queue
        assert result.usm_type == "device"
        np.testing.assert_allclose(result.asnumpy(), 1 - math.exp(-1), rtol=1e-15)


def test_arrays_of_two_queues_are_refused() -> None:
    x, y = (dp.ones(4, device=dp.Device("cpu").new_queue()) for _ in range(2))
    with pytest.raises(ExecutionPlacementError):
        dp.special.xlogy(x, y)


def test_dtypes() -> None:
    for given, wanted in (
        ("float16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("int8", "float32"),
        ("uint16", "float32"),
        ("int32", "float64"),
        ("int64", "float64"),
    ):
        assert dp.special.erf(dp.ones(3, dtype=given)).dtype == wanted
    single = dp.ones(3, dtype="float32")
    assert dp.special.gammainc(single, 2).dtype == "float32"
    assert dp.special.gammainc(2.0, single).dtype == "float32"
    assert dp.special.gammainc(single, dp.ones(3)).dtype == "float64"
    assert dp.special.gammainc(single, np.float64(2)).dtype == "float64"
    assert float(dp.special.erf(0.5)) == pytest.approx(math.erf(0.5), rel=1e-15)


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match=r"xlogy\(\) got an unexpected keyword argument 'axis'"):
        dp.special.xlogy(dp.ones(3), 2.0, axis=0)
    with pytest.raises(ArgumentError, match=r"multigammaln: d is 2\.5; give an integer"):
        dp.special.multigammaln(dp.ones(3), 2.5)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match=r"special\.erf: takes real numbers"):
        dp.special.erf(dp.ones(3, dtype="complex64"))
    with pytest.raises(HostConversionError):
        dp.special.erf(np.ones(3))
    with pytest.raises(AttributeError, match=r"scipy\.special\.lambertw\(dp\.asnumpy\(x\)\)"):
        dp.special.lambertw  # noqa: B018


def test_out_and_where() -> None:
    x = dp.asarray([0.0, 1.0, 2.0])
    out = dp.zeros(3)
    assert dp.special.erf(x, out=out) is out
    np.testing.assert_allclose(out.asnumpy(), [math.erf(value) for value in (0, 1, 2)])
    masked = dp.special.erfc(x, where=x > 0.5, out=dp.full(3, 7.0))
    np.testing.assert_allclose(masked.asnumpy(), [7, math.erfc(1), math.erfc(2)])
    np.testing.assert_allclose(dp.special.erf([0.0, 1.0]).asnumpy(), [0, math.erf(1)])


@pytest.mark.usefixtures("tests_options")  # it counts kernels
def test_one_kernel_computes_an_expression() -> None:
    x = dp.asarray(np.linspace(0, 1, 200_000))  # enough to compile a kernel for one call
    explained = dp.explain(dp.special.erf(x) * 2 + 1)
    assert len(explained.kernels) == 1
    np.testing.assert_allclose(
        (dp.special.erf(x) * 2 + 1).asnumpy()[-1], math.erf(1) * 2 + 1, rtol=1e-15
    )


@pytest.mark.slow
def test_a_long_function_is_a_small_module() -> None:
    # A GPU's compiler takes more than a minute for 280 KB.
    df, p = dp.asarray([3.0, 4.0], dtype="float32"), dp.asarray([0.1, 0.6], dtype="float32")
    with launched() as launches:
        dp.special.stdtrit(df, p).asnumpy()
    assert max(len(launch.kernel.module) for launch in launches) < 120_000


@dp.kernel
def _in_a_kernel(item, x, y, out):  # type: ignore[no-untyped-def]
    i = item.get_id(0)
    out[i] = dp.special.gammainc(x[i], y[i]) + dp.special.erf(x[i])


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfcx_of_numbers_whose_square_overflows_is_infinite(dtype: str) -> None:
    x = np.asarray([-9.5, -10, -13, -26.7, -27, -28, -29, -30, -31, -40], dtype)
    if dtype == "float64":
        x = x[x < -26.65]
    assert np.isposinf(dp.special.erfcx(dp.asarray(x)).asnumpy()).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeta_ends_where_its_first_terms_are_zero(dtype: str) -> None:
    s, q = (dp.asarray(x, dtype=dtype) for x in ([1e10, 1e30, 1e30], [30.0, 30.0, 2.0]))
    assert dp.special.zeta(s, q).asnumpy().tolist() == [0.0, 0.0, 0.0]
    odd = dp.asarray([2.0**23 + 1 if dtype == "float32" else 2.0**52 + 1], dtype=dtype)
    assert not np.isfinite(dp.special.zeta(odd, -0.5).asnumpy()).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_call_them(dtype: str) -> None:
    given = np.linspace(0.5, 4, 9).astype(dtype)
    x, y = dp.asarray(given), dp.asarray(given[::-1].copy())
    out = dp.empty_like(x)
    _in_a_kernel[dp.Range(9)](x, y, out)
    wanted = dp.special.gammainc(x, y) + dp.special.erf(x)
    # Python computes `erf` of a few elements; kernels round differently.
    np.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=2 * np.finfo(dtype).eps)


def test_kernels_of_integers_and_of_math() -> None:
    @dp.elementwise
    def f(n):  # type: ignore[no-untyped-def]
        return dp.special.gamma(n) + math.erf(0.5) + math.lgamma(3.0)

    found = f(dp.asarray([3, 4])).asnumpy()
    constant = math.erf(0.5) + math.lgamma(3)
    np.testing.assert_allclose(found, [2 + constant, 6 + constant], rtol=1e-14)


def test_numbers_computed_from_others() -> None:
    x = dp.asarray([[0.0, 1.0, 800.0], [3.0, -2.0, -inf]])
    host = x.asnumpy()
    kept = host.max(axis=1, keepdims=True)
    sums = np.exp(host - kept).sum(axis=1, keepdims=True)
    wanted = np.log(sums) + kept
    np.testing.assert_allclose(dp.special.logsumexp(x, axis=1).asnumpy(), wanted[:, 0])
    softmax = dp.special.softmax(x, axis=1).asnumpy()
    np.testing.assert_allclose(softmax, np.exp(host - kept) / sums)
    found = dp.special.log_softmax(x, axis=1).asnumpy()
    np.testing.assert_allclose(found, host - wanted)
    value, sign = dp.special.logsumexp(
        dp.asarray([1.0, 2.0]), b=dp.asarray([1.0, -1.0]), return_sign=True
    )
    assert float(sign) == -1
    assert float(value) == pytest.approx(math.log(math.e**2 - math.e))


@pytest.mark.slow
@pytest.mark.usefixtures("tests_options")
@pytest.mark.parametrize(
    "name", ["erf", "gamma", "j0", "boxcox", "gammainc", "betainc", "zeta", "binom"]
)
def test_single_precision_needs_no_double(name: str) -> None:
    with launched() as launches:
        dp.eval(call(name, [dp.asarray(row) for row in arguments(name, "float32")]))
    assert launches
    assert not any("fp64" in launch.kernel.needs for launch in launches)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_simulator_calls_them(dtype: str) -> None:
    x = np.linspace(0.5, 4, 9).astype(dtype)
    out = np.zeros_like(x)
    dp.simulate(_in_a_kernel, dp.Range(9), x, x[::-1].copy(), out)
    found = dp.asarray(x)
    wanted = dp.special.gammainc(found, dp.asarray(x[::-1].copy())) + dp.special.erf(found)
    np.testing.assert_allclose(out, wanted.asnumpy(), rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "expit", "log_expit", "log_ndtr", "ndtr", "softplus"]
)
def test_common_functions_fuse_as_exp_does(name: str) -> None:
    """Their text calls no function, so that it is translated without Numba, and NaN propagates."""
    from dparray.special import _EXPRESSIONS, _operation

    function = getattr(dp.special, name)
    op = _operation(function.device_meaning, np.float32)
    assert name in _EXPRESSIONS
    assert not op.functions
    x = dp.linspace(-3, 3, 5000, dtype="float32")
    dp.synchronize(function(x) * x + 1)
    with launched() as kernels:
        y = (function(x) * x + 1).asnumpy()
    assert len(kernels) == 1
    np.testing.assert_allclose(y, function(x).asnumpy() * x.asnumpy() + 1, rtol=1e-5)
    edges = function(dp.asarray([math.nan, math.inf, -math.inf])).asnumpy()
    assert np.isnan(edges[0])
    assert not np.isnan(edges[1:]).any()


@pytest.mark.parametrize(
    ("dtype", "arguments"), [("float32", [34, 36, 38.5]), ("float64", [170, 173, 176])]
)
def test_the_reciprocal_of_gamma_ends_in_subnormal_numbers(
    dtype: str, arguments: list[float]
) -> None:
    from decimal import Decimal, getcontext

    getcontext().prec = 40

    def exact(x: float) -> float:
        """Return 1 / gamma(x) of half integers, by recurrence from 1 or from 1/2."""
        product, step = Decimal(1), Decimal(x)
        while step > 1:
            step -= 1
            product *= step
        root = Decimal("3.1415926535897932384626433832795028842").sqrt()
        return float(1 / (product * (root if step % 1 else 1)))

    found = dp.special.rgamma(dp.asarray(arguments, dtype=dtype)).asnumpy()
    smallest = np.finfo(dtype).smallest_subnormal
    for x, value in zip(arguments, found, strict=True):
        assert abs(float(value) - exact(x)) <= max(2 * float(smallest), 8 * np.spacing(value))
        assert value > 0
