"""Bugs found by calling every function with generated arguments: results are NumPy's."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import numpy as np
import pytest

import dparray as dp
from tests.functions.comparison import same_as_numpy
from tests.functions.test_every_function import tier
from tests.support import force, same

#: Expressions that had another value, dtype or error than NumPy's, by topic.
EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "scalars are weak in a union": (
        "union1d(asarray([3, 1], dtype='int16'), 9)",
        "union1d(2, asarray([3, 1], dtype='float32'))",
        "union1d(asarray([3, 1], dtype='int16'), 2.5)",
    ),
    "Booleans have no decimals": (
        "round(asarray([True, False]), 2)",
        "round(asarray([True, False]), -1)",
        "round(asarray([True, False]))",
    ),
    "choices are integers": ("select([asarray([True, False])], [7], 2)",),
    "edges of the arguments": (
        "diff(asarray([True, False]), n=0, axis=1)",
        "multiply.accumulate(asarray(3))",
        "compress(asarray([0j, 1j, 2]), asarray([4, 5, 6]))",
    ),
    "polynomials of float16 and without roots": (
        "poly(asarray([1.0, 2.0], dtype='float16'))",
        "roots(asarray([2.0], dtype='float32'))",
        "polydiv(asarray([1.0, -1.0, -14.0, 24.0]), asarray([-3.0, -6.0], dtype='float32'))[0]",
        "polydiv(asarray([1.0, -1.0, -14.0, 24.0]), asarray([-3.0, -6.0], dtype='float32'))[1]",
        "polydiv(asarray([1.0, nan]), asarray([1.0]))[0]",
        "polydiv(asarray([1.0, nan]), asarray([1.0]))[1]",
    ),
    "sums of integers into Booleans wrap in their own dtype": (
        "cumsum(asarray([255, 1, 1, 254, 1, 0, 2], dtype='uint8'), out=zeros(7, dtype='bool'))",
        "cumprod(asarray([255, 1, 1, 254, 1, 0, 2], dtype='uint8'), out=zeros(7, dtype='bool'))",
        "nancumsum(asarray([255, 1, 1, 254, 1, 0, 2], dtype='uint8'), out=zeros(7, dtype='bool'))",
        "sum(asarray([255, 1], dtype='uint8'), out=zeros((), dtype='bool'))",
    ),
}


@pytest.mark.parametrize("topic", EXPRESSIONS)
def test_expressions(topic: str) -> None:
    same_as_numpy(*EXPRESSIONS[topic])


def test_choices_and_default_promote_together() -> None:
    conditions = [np.array([True, False, False]), np.array([False, True, False])]
    for dtype in ("int8", "float16", "float32"):
        choices = [np.array([1, 2, 3], dtype), np.array([True, True, False])]
        for default in (0, 1.5 if dtype[0] == "f" else 3):
            same_as_numpy("select(c, x, default)", c=conditions, x=choices, default=default)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_spacing_of_negative_numbers_and_zeros(dtype: str) -> None:
    values = np.asarray([-4, -1.5, -1, -0.0, 0, 1, 3, 7], dtype)
    same_as_numpy("spacing(x)", "spacing(resize(x, 9001))", x=values)


@pytest.mark.parametrize("d", [1.0, 0.3, np.float32(0.19), np.float32(-1.05)])
def test_a_frequency_is_divided_in_the_dtype_of_the_distance(d: Any) -> None:
    for n in (1, 12, 13):
        same_as_numpy("fft.fftfreq(n, d)", "fft.rfftfreq(n, d)", n=n, d=d, tolerance=1)


def test_booleans_have_no_decimals() -> None:
    with pytest.raises(dp.DTypeError, match=r"Booleans have no decimals.*astype\(float\)"):
        dp.round(dp.asarray([True]), 2)


def test_the_number_of_decimals_is_no_operand() -> None:
    same_as_numpy("round(x, n)", x=np.array([1.26 + 2.71j], "complex64"), n=np.int64(1))


@pytest.mark.parametrize("low", [-2.0, np.float64(-2), np.int64(-2)])
def test_a_clipped_result_fits_out_by_its_dtype(low: Any) -> None:
    x, out = np.array([-7, 3], "int32"), np.array([0, 0], "int16")
    same_as_numpy("clip(x, low, 8, out=out)", x=x, low=low, out=out)
    same_as_numpy("clip(x, low, 2, out=out)", x=x.astype(int), low=low, out=np.zeros(2))


def test_a_list_is_copied_by_the_dtype_it_has() -> None:
    for values in ([1, -2], [1.5, 2.5], [True, False]):
        for dtype in ("uint8", "int64", "float32"):
            for casting in ("same_kind", "unsafe")[: 1 + (dtype != "uint8")]:
                given: dict[str, Any] = {"x": np.zeros(2, dtype), "v": values, "casting": casting}
                same_as_numpy("[copyto(x, v, casting=casting), x]", **given)


@pytest.mark.parametrize("function", ["mean", "var", "std"])
def test_half_precision_is_rounded_once_at_the_end(function: str) -> None:
    values = np.asarray([0.9688, -0.977, -0.03168, 1.29], "float16")
    found = getattr(dp, function)(dp.asarray(values), out=dp.zeros(()))
    same(found, getattr(np, function)(values.astype("float64")), 1e-6)


@pytest.mark.parametrize("host_tier", [True, False])
def test_one_position_that_is_taken_is_a_copy(host_tier: bool) -> None:
    with dp.config.override(host_tier=host_tier):
        x = dp.arange(12).reshape(3, 4)
        row = dp.take(x, 1, axis=0)
        assert not dp.shares_memory(x, row)
        row[0] = 99
        assert x[1, 0] == 4


@pytest.mark.parametrize("first", [0, -3, 0.5, True])
def test_weak_integers_take_the_smallest_float_that_an_exponent_allows(first: Any) -> None:
    for dtype in ("int8", "int16", "int64"):
        same_as_numpy("ldexp(first, x)", first=first, x=np.array([2, -1], dtype))


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "greater_equal", "logical_and"])
def test_dtype_of_predicates_is_that_of_their_results(name: str) -> None:
    x, y = np.asarray([1170719212, 5]), np.asarray([-8, 5])
    same_as_numpy(f"{name}(x, y, dtype='bool', casting='unsafe')", x=x, y=y)


def test_transforms_of_broadcast_operands(executor: str) -> None:
    for name in ("rfftn", "fftn", "rfft"):
        same_as_numpy(f"fft.{name}(broadcast_to(x, (1, 1, 5)))", x=np.array([[[-0.4166]]]))


def test_interpolation_between_points_that_are_not_contiguous(executor: str) -> None:
    points: dict[str, Any] = {"p": np.array([2.0, 1.0, 0.0]), "f": np.array([3.0, 5.0, 1.0])}
    same_as_numpy("interp(x, p[::-1], f[::-1])", x=np.array([1.5, 0.25]), **points)


@pytest.mark.parametrize(
    ("expression", "x", "y"),
    [
        (
            "float_power(broadcast_to(x, (2, 3)), y)",
            np.array([[3]], "int16"),
            np.array([[1, 2, 3], [4, 5, 6]], "int8", order="F"),
        ),
        ("hypot(broadcast_to(x, (4, 3)), y, dtype='float64')", np.array([[86, 14, 127]]), False),
        ("concat((broadcast_to(x, (4, 5)), y))", np.array([[1, 2, 3, 4, 5]]), np.ones((1, 5))),
    ],
)
def test_broadcast_operands_do_not_affect_the_memory_order(expression: str, x: Any, y: Any) -> None:
    flags = (f"({expression}).flags.{order}_contiguous" for order in "fc")
    same_as_numpy(expression, *flags, x=x, y=y)


def test_the_step_of_a_linspace_is_an_array() -> None:
    for num in (0, 1, 2, 5):
        for ends in ((0, 1), ([0.0, 1.0], 3.0)):
            values, step = dp.linspace(*ends, num, retstep=True)
            wanted = np.linspace(*ends, num, retstep=True)
            assert step.queue == values.queue
            np.testing.assert_allclose(values.asnumpy(), wanted[0])
            np.testing.assert_allclose(step.asnumpy(), wanted[1])


def test_edges_by_a_function_of_the_user() -> None:
    def fill(line: Any, widths: Any, axis: int, options: dict[str, Any]) -> None:
        line[: widths[0]] = options.get("padder", 10) + axis
        line[line.shape[0] - widths[1] :] = -1

    for options in ("", ", padder=7"):
        same_as_numpy(f"pad(x, ((1, 2), (0, 1)), fill{options})", x=np.eye(2, 3), fill=fill)
    with pytest.raises(dp.ArgumentError, match="mode 'edge' does not accept padder"):
        dp.pad(dp.ones(2), 1, "edge", padder=3)


def test_quantiles_next_to_infinities_are_infinite(executor: str) -> None:
    inf = np.inf
    x = dp.asarray([[1, inf], [-inf, 1], [-inf, inf], [inf, inf], [2, 4]])
    wanted = {
        0.0: [1, -inf, -inf, inf, 2],
        0.25: [inf, -inf, np.nan, inf, 2.5],
        0.5: [inf, -inf, np.nan, inf, 3],
        0.75: [inf, -inf, np.nan, inf, 3.5],
        1.0: [inf, 1, inf, inf, 4],
    }
    for q, row in wanted.items():
        np.testing.assert_array_equal(dp.quantile(x, q, axis=1).asnumpy(), row)
        np.testing.assert_array_equal(dp.nanquantile(x, q, axis=1).asnumpy(), row)
    np.testing.assert_array_equal(dp.median(x, axis=1).asnumpy(), wanted[0.5])
    assert dp.quantile(dp.asarray([-1.7e308, 1.7e308]), 0.5) == 0


def test_order_a_is_the_order_of_copies_alone() -> None:
    x = np.arange(40).reshape(4, 5, 2)
    for axes in ((0, 1, 2), (2, 1, 0), (2, 0, 1)):
        ours = dp.permute_dims(dp.asarray(x)[::-1], axes)
        assert dp.asarray(ours, order="A") is ours
        for dtype, copy in ((None, True), ("float32", None), ("float32", True)):
            wanted = np.array(x[::-1].transpose(axes), dtype, order="A", copy=copy).strides
            assert dp.asarray(ours, dtype, "A", copy=copy).strides == wanted


#: Operations of dpnp and oneMKL on matrices, by memory layout.
LAYOUTS = {
    "rows": lambda xp, x: xp.asarray(x),
    "columns": lambda xp, x: xp.asarray(x, order="F"),
    "reversed": lambda xp, x: xp.asarray(x[::-1])[::-1],
    "steps": lambda xp, x: xp.asarray(np.repeat(x, 2, 1))[:, ::2],
    "spread": lambda xp, x: xp.broadcast_to(xp.asarray(x[0] * 0 + 2.5), (3, 3)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_the_library_takes_matrices_of_any_layout_unchanged(layout: str, dtype: str) -> None:
    host = (np.arange(9).reshape(3, 3) % 4 + np.eye(3) * 9).astype(dtype)
    host = host + host.T
    symmetric = ("eigvalsh", "eigh", "cholesky") if layout != "spread" else ("eigvalsh",)
    with dp.config.override(lazy=False, host_tier=False):
        x, theirs = LAYOUTS[layout](dp, host), LAYOUTS[layout](np, host)
        before = x.asnumpy()
        for name in (*symmetric, "svdvals", "det"):
            found, wanted = getattr(dp.linalg, name)(x), getattr(np.linalg, name)(theirs)
            first, other = (found[0], wanted[0]) if isinstance(wanted, tuple) else (found, wanted)
            np.testing.assert_allclose(first.asnumpy(), other, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(x.asnumpy(), before, name)
        spread = dp.broadcast_to(dp.ones(1, dtype), (3,))
        np.testing.assert_allclose(dp.matvec(x, spread).asnumpy(), theirs.sum(1), rtol=1e-5)
        np.testing.assert_allclose((x @ x).asnumpy(), theirs @ theirs, rtol=1e-5)
        np.testing.assert_allclose((spread @ x).asnumpy(), theirs.sum(0), rtol=1e-5)


@pytest.mark.parametrize("way", ["host", "library", "fused"])
def test_a_variance_without_degrees_of_freedom_is_a_quotient_by_zero(
    way: Literal["host", "library", "fused"],
) -> None:
    with force(way):
        for name, ddof in itertools.product(("var", "std"), (1, 2, 3)):
            x = np.asarray([[1.0, 2.0], [3.0, 3.0]])
            same_as_numpy(f"{name}(x, axis=1, ddof={ddof})", x=x)


@pytest.mark.slow
def test_results_that_the_library_and_the_host_had_differently(executor: str) -> None:
    same_as_numpy(
        "unique(x, True, True, True)",
        "unique(x, return_counts=True)",
        "setdiff1d(x, asarray([3.0, 7.0]))",
        x=np.asarray([1.5, np.nan, -2.5, np.nan, 3.0, np.nan, 3.0]),
    )
    for shape, axis in (((6, 1), 1), ((1, 6), 0)):
        for name in ("bitwise_or", "fmax", "gcd", "add"):
            x = dp.ones(shape, dtype="int16")
            result = getattr(dp, name).reduce(x, axis=axis)
            assert not dp.shares_memory(x, result), name
    for dtype in ("bool", "int8", "int16", "int64"):
        x = np.ones(3, dtype)
        same_as_numpy("logaddexp.reduce(x)", "logaddexp.accumulate(x)", x=x, tolerance=64)
    assert dp.i0(dp.asarray([-dp.inf, dp.inf])).tolist() == [dp.inf, dp.inf]
    x = dp.asarray([1.5, 2.5], dtype="float32")
    assert dp.linalg.vector_norm(x, ord=np.int64(3)).dtype == "float32"


def test_empty_arrays_have_every_memory_order() -> None:
    for x in (dp.zeros((0, 4)), dp.asarray(np.zeros((3, 0, 2))), dp.ones((4, 3))[:, :0]):
        assert x.flags.c_contiguous
        assert x.flags.f_contiguous
        assert not dp.isfortran(x)
    assert dp.pad(dp.zeros((0, 4)), 2).strides == (64, 8)


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "cumsum", "cumprod"])
def test_sums_are_computed_in_the_dtype_of_a_wider_out(name: str, executor: str) -> None:
    large = np.full(5, 2**63, "uint64")
    shape = (5,) if name[:3] == "cum" else ()
    for x, dtype in (
        (large, "float32"),
        (large, "float64"),
        (np.full(5, 3e38, "float32"), "float64"),
        (np.ones(5, "float64"), "float32"),
    ):
        same_as_numpy(f"{name}(x, out=out)", x=x, out=np.zeros(shape, dtype))
    same_as_numpy("trace(x, out=zeros((), 'float32'))", x=np.tile(large, (5, 1)))


@pytest.mark.parametrize("turned", ["x", "x.T"])
def test_order_a_is_by_columns_where_all_operands_are(turned: str) -> None:
    for other in (2.0, np.asarray(2.0), np.ones(4 if turned == "x" else 3)):
        same_as_numpy(f"hypot({turned}, y, order='A').strides", x=np.ones((3, 2, 4)), y=other)


@pytest.mark.parametrize("ddof", [np.int64(1), np.float64(1), np.int8(0)])
@pytest.mark.parametrize("name", ["var", "std"])
def test_numbers_of_degrees_of_freedom_decide_no_dtype(name: str, ddof: Any) -> None:
    same_as_numpy(f"{name}(x, ddof=ddof)", x=np.array([1, 2, 5], "float32"), ddof=ddof)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["", "host", "fused", "library", "no host tier"])
def test_complex_functions_have_their_digits_on_every_backend(executor: str) -> None:
    """dpnp's inverse functions had an error of 4 % at 800j, and infinity at 32767j."""
    sizes = [0.0, -0.0, 1e-30, -1e-3, 0.5, -1.0, 1.0, 2.5, -30.0, 100.0, -800.0, 32767.0, -1e5]
    numbers = np.asarray([complex(x, y) for x in sizes for y in sizes])
    names = ("asin", "acos", "atan", "asinh", "acosh", "atanh", "sin", "cos", "sinh", "cosh")
    with np.errstate(all="ignore"), tier(executor):
        for dtype in ("complex64", "complex128"):
            x = numbers.astype(dtype)
            for name in (*names, "log", "log2", "log10", "reciprocal", "sign"):
                found, wanted = getattr(dp, name)(dp.asarray(x)).asnumpy(), getattr(np, name)(x)
                sizes_of_all = np.abs(np.where(np.isfinite(wanted), wanted, 0))
                for ours, theirs in ((found.real, wanted.real), (found.imag, wanted.imag)):
                    is_finite = np.isfinite(theirs)
                    np.testing.assert_array_equal(ours[~is_finite], theirs[~is_finite], name)
                    bound = 64 * np.finfo(dtype).eps * np.maximum(sizes_of_all, np.abs(theirs))
                    is_near = np.abs(ours - theirs)[is_finite] <= bound[is_finite]
                    assert is_near.all(), (name, dtype, x[is_finite][~is_near])


@pytest.mark.parametrize("executor", ["", "host", "fused", "library", "no host tier", "busy"])
def test_results_that_differed_on_one_backend(executor: str) -> None:
    exponents = [complex(x, y) for x in (-2.5, 0.0, 2.5, np.nan) for y in (-1.0, 0.0, 2.0, np.inf)]
    holes = np.asarray([[0.5, np.nan, -2.5], [np.nan, -1.0, np.nan]])
    large = np.asarray([2**64 - 1, 3584034391366875160, 7], "uint64")
    with tier(executor):
        same_as_numpy("asarray([0j]) ** y", y=np.asarray(exponents))
        same_as_numpy(*(f"arg{name}(x, axis={a})" for name in ("min", "max") for a in (None, 0, 1)),
                      x=holes)  # fmt: skip
        put = "[putmask(x, asarray([True, False, True]), nine), x]"
        same_as_numpy(put, x=large, nine=np.int64(9))
        same_as_numpy("bincount(asarray([], dtype='uint8'), minlength=2)")
        same_as_numpy("ldexp(-6, asarray([True]))")
        same_as_numpy(*(f"nanvar(asarray([[3, 5], [7, 7]]), axis=1, ddof={d})" for d in range(3)))
        same_as_numpy("broadcast_to(asarray([0, 1, 2]), (2, 3)).ravel('K')")


def test_transforms_to_real_numbers_in_single_precision_of_any_number_of_points() -> None:
    """In single precision, oneMKL is wrong by 3 % for some lengths that are not powers of 2."""
    for points in (11428, 16382, 10900, 16380, 8820, 15000):
        x = np.random.default_rng(0).normal(size=points // 2 + 1).astype("complex64")
        wanted = np.fft.irfft(x.astype("complex128"), points)
        with dp.config.override(host_tier=False):
            found = dp.fft.irfft(dp.asarray(x), points)
            half = dp.fft.irfft(dp.asarray(x.real.astype("float16")), points)
        assert found.dtype == half.dtype == "float32"
        assert np.abs(found.asnumpy() - wanted).max() < 1e-4 * np.abs(wanted).max()


def test_booleans_in_a_list_are_a_mask_for_the_operands() -> None:
    x = dp.ones(3, device=dp.Device("cpu").new_queue())
    assert dp.add(x, 1, where=[1, 0.0, 2], out=x).tolist() == [2, 1, 2]
    assert float(dp.sum(x, where=[0, 1, 1])) == 3
    with pytest.raises(dp.DTypeError, match="must be a Boolean mask"):
        dp.add(x, 1, where=dp.ones_like(x))


@pytest.mark.parametrize("x", [[1j, 0], [1.5, 0], [2, 0], [True, False]])
@pytest.mark.parametrize("number", [True, False, 2, 1.5, 0.25j, 0.0])
def test_predicates_of_a_python_number_take_a_boolean_dtype(x: list[Any], number: Any) -> None:
    for name in ("logical_xor", "logical_and", "logical_or"):
        same_as_numpy(f"{name}(x, number, dtype='bool')", x=np.array(x), number=number)
    for name in ("less", "greater_equal", "equal", "not_equal"):
        same_as_numpy(f"{name}(number, x, dtype='bool')", x=np.array(x), number=number)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("initial", ["", ", initial=nan", ", initial=3.0"])
def test_a_first_value_that_is_no_number_is_passed_over(dtype: str, initial: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    x[1] = x[0, 1] = np.nan
    mask = np.asarray([[False, True, True], [False, True, False]])
    for name, axis in itertools.product(("min", "max"), (None, 0, 1)):
        same_as_numpy(f"nan{name}(x, {axis}{initial})", f"f{name}.reduce(x, {axis}{initial})", x=x)
        if initial:
            same_as_numpy(f"nan{name}(x, {axis}, where=mask{initial})", x=x, mask=mask)


@pytest.mark.parametrize("exponent", [True, False, 1, 2, np.int8(1)])
def test_powers_of_booleans_are_written_where_a_mask_is_true(exponent: Any) -> None:
    x, mask = np.asarray([[True], [False], [True]]), np.asarray([[False], [False], [True]])
    out = np.asarray([[4], [-2], [2]], "int8")
    same_as_numpy("pow(x, y, where=mask, out=out)", x=x, y=exponent, mask=mask, out=out)


def test_einsum_takes_broadcast_operands() -> None:
    one, y = np.asarray([[-0.5]], "float16"), np.arange(12).reshape(3, 4) % 5 > 2
    with force("library"), dp.config.override(host_tier=False):
        same_as_numpy("einsum('ij,jk->ik', broadcast_to(x, (2, 3)), y)", x=one, y=y)


def test_an_array_is_sorted_in_place_along_an_axis_only() -> None:
    with pytest.raises(dp.ArgumentError, match=r"dp.sort\(x, axis=None\)"):
        dp.ones(3).sort(axis=None)


def test_arguments_that_dpnp_writes_into_stay() -> None:
    values = (np.arange(15) + 1j).astype("complex64")
    x = dp.asarray(values)
    with dp.config.override(host_tier=False):
        dp.fft.irfft(x[::3], 4)
        dp.fft.hfft(x)
        dp.fft.irfftn(x.reshape(3, 5))
    assert x.tolist() == values.tolist()


def test_numbers_of_numpys_are_diagonals_and_bounds() -> None:
    with dp.config.override(host_tier=False):
        assert dp.eye(3, np.int64(3), k=np.int64(-1)).tolist() == np.eye(3, 3, -1).tolist()
    x = dp.asarray([8, 0], dtype="uint16")
    assert dp.clip(x, -2.5, np.float32(0.3)).dtype == "float32"


@pytest.mark.parametrize("host_tier", [True, False])
def test_differences_of_integers_do_not_wrap_in_quantiles(host_tier: bool) -> None:
    x = dp.asarray([[-128, 119], [127, 85]], dtype="int8")
    with dp.config.override(host_tier=host_tier):
        assert dp.quantile(x, 0.5, axis=1).tolist() == [-4.5, 106.0]


@pytest.mark.parametrize("executor", ["", "fused", "library", "no host tier"])
def test_negative_floats_wrap_in_unsigned_integers(executor: str) -> None:
    values = np.resize([-2.5, 1.5, -2.0, -3.0, 0.0, 200.7, -0.9], 20_000)
    with tier(executor):
        for dtype in ("uint8", "uint16", "uint32", "uint64"):
            for source in ("float16", "float32", "float64"):
                same_as_numpy(f"x.astype('{dtype}')", x=values.astype(source))


def test_a_division_in_the_loop_of_a_sum_compiles() -> None:
    """Intel's CPU compiler ended the process."""
    x = np.arange(36, dtype="float32").reshape(3, 4, 3)
    with tier("fused"):
        found = dp.linalg.vector_norm(dp.permute_dims(dp.asarray(x), (2, 0, 1)))
        assert float(found) == pytest.approx(np.linalg.norm(x))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16"])
def test_narrow_integers_are_sorted_and_looked_up_without_the_host(dtype: str) -> None:
    """Intel's CPU compiler ends the process in dpnp's kernels that sort them."""
    with dp.config.override(host_tier=False):
        x = (np.arange(9001) * 7 % 11).astype(dtype)
        same_as_numpy("sort(x[::-1])", "isin(x, x[:5])", x=x)


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like"])
def test_like_functions_use_the_given_dtype(name: str) -> None:
    x = dp.asarray([True, False])
    for dtype in (np.dtype("float64"), "float64", float, np.dtype("int8"), x.dtype):
        assert getattr(dp, name)(x, dtype=dtype).dtype == np.dtype(dtype)
    assert dp.full_like(x, 2.5, dtype=np.dtype("float64")).tolist() == [2.5, 2.5]


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64", "complex128"])
@pytest.mark.parametrize("part", ["x[:, 2::-1]", "x[::-1, :3]", "x[::-1, 3:0:-1]", "x[:, 1:4]"])
def test_the_diagonal_of_a_part_of_an_array(dtype: str, part: str) -> None:
    with dp.config.override(host_tier=False):
        same_as_numpy(
            *(f"einsum('{subscripts}', {part})" for subscripts in ("ii->i", "ii", "...jj->j")),
            f"einsum('ii,ij->j', {part}, {part})",
            x=np.arange(15).reshape(3, 5).astype(dtype),
        )


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "full_like"])
def test_like_with_another_shape_keeps_the_memory_order(name: str) -> None:
    value = "1, " if name == "full_like" else ""
    for axes in ((2, 0, 1, 3), (3, 2, 1, 0), (0, 3, 1, 2), (0, 1, 2, 3)):
        for shape in ((5, 5, 4, 1), (2, 3, 4, 5), (3, 2)):
            strides = f"{name}(x.transpose({axes}), {value}shape={shape}).strides"
            same_as_numpy(strides, x=np.zeros((4, 2, 1, 5), "int8"))


@pytest.mark.parametrize("dtype", ["complex128", "float64"])
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_order_a_of_a_conversion_is_by_columns_where_the_array_is(dtype: str, axes: Any) -> None:
    converted = f"x.transpose({axes}).astype('int32', order='A', casting='unsafe')"
    x = np.arange(24.0).reshape(2, 3, 4).astype(dtype)
    same_as_numpy(converted, f"{converted}.strides", x=x)


@pytest.mark.parametrize("dtype", ["int16", "float32", "bool"])
def test_a_complex_number_is_copied_where_it_was_asked_for(dtype: str) -> None:
    copied = "[copyto(x, number, casting='unsafe', where=where), x]"
    for number in (-2.5 - 2j, np.complex64(3 + 1j), 2j):
        for where in (True, [True, False, True]):
            same_as_numpy(copied, x=np.zeros(3, dtype), number=number, where=where)
    with pytest.raises(dp.DTypeError, match="casting='unsafe'"):
        dp.copyto(dp.zeros(3, dtype=dtype), 1j)


@pytest.mark.parametrize("call", ["reciprocal(y", "negative(y", "add(y, 3"])
def test_truncated_complex_numbers_do_not_affect_the_memory_order(call: str) -> None:
    call = call.replace("y", "broadcast_to(x, (5, 3))") + ", dtype='int16', casting='unsafe')"
    same_as_numpy(call, f"{call}.strides", x=np.asarray([[1 + 2j, 3, 4]], "complex64"))


@pytest.mark.parametrize(
    "arguments",
    [
        (np.float32(0.24), 2.18),
        (np.float32(0.24), 2.18, np.float32(0.1)),
        (np.float16(0.24), 2.18, 0.1),
        (0.1, np.float32(7.18), np.float16(0.3)),
        (np.int8(2), np.float32(7.18)),
    ],
)
def test_numbers_of_numpys_round_the_second_value_of_a_range(arguments: Any, executor: str) -> None:
    same_as_numpy("arange(*arguments)", arguments=arguments, tolerance=4)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_the_median_of_nothing_is_nan(dtype: str) -> None:
    for axis in (0, 1, None, (0, 1)):
        x = np.zeros((0, 3), dtype)
        same_as_numpy(f"median(x, axis={axis})", f"nanmedian(x, axis={axis})", x=x)
    with pytest.raises(dp.ShapeError, match="must not be empty along 0"):
        dp.quantile(dp.zeros((0, 3)), 0.5, axis=0)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int16", "bool", "complex64"])
def test_complex_numbers_are_truncated_to_the_dtype_to_compute_in(
    dtype: str, executor: str
) -> None:
    for number in (0.75 - 1j, 2j, np.complex64(2 + 1j), 2.5):
        for name in ("maximum", "add", "equal")[: 2 + (dtype == "bool")]:
            call = f"{name}(number, x, dtype='{dtype}', casting='unsafe')"
            same_as_numpy(call, number=number, x=np.array([0.5, -2, 0], "float32"))


@pytest.mark.parametrize("number", [-1.5, 70000.0, float("nan"), float("inf"), -1.5 + 2j])
def test_floats_of_pythons_wrap_where_their_conversion_is_unsafe(number: complex) -> None:
    for dtype in ("uint16", "int16", "uint64"):
        call = f"fmin(x, number, dtype='{dtype}', casting='unsafe')"
        same_as_numpy(call, x=np.asarray([0.5, -2, 3], "float16"), number=number)


def test_nan_next_to_a_single_point_has_its_value(executor: str) -> None:
    every = np.asarray([np.nan, -2, 3, np.inf], "float32")
    for value in (np.float32(-2.5), np.int32(4), np.complex128(1 + 2j)):
        for x, ends in ((every[0], ""), (every, ", left=7.0"), (every, ", left=1.0, right=9.0")):
            same_as_numpy(f"interp(x, asarray([1.5]), v{ends})", x=np.array(x), v=value[None])


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_axes_of_length_one_do_not_affect_the_order(order: str) -> None:
    for axes in ((0, 2, 1), (1, 2, 0), (2, 1, 0), (2, 0, 1)):
        for shape in ((2, 3, 5), (1, 3, 2)):
            like = f"zeros_like(x.transpose({axes}), shape={shape}, order='{order}').strides"
            same_as_numpy(like, x=np.ones((1, 4, 2), "float16"))


@pytest.mark.parametrize("number", [-2, 2.5, 1j])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32"])
def test_numbers_that_do_not_fit_by_kind_are_refused_in_a_dtype(number: Any, dtype: str) -> None:
    for casting in ("same_kind", "unsafe"):
        call = f"add(x, number, dtype='{dtype}', casting='{casting}')"
        same_as_numpy(call, x=np.ones(2, dtype), number=number)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int16", None])
@pytest.mark.parametrize("out", ["bool", "uint8", "int8"])
def test_out_holds_what_a_sum_starts_with(dtype: str | None, out: str) -> None:
    for x in ([1.0], [0.25, 0.5], [-2.5, 5.5]):
        for name, start in itertools.product(("sum", "prod"), (-1, 2)):
            call = f"{name}(x, dtype=dtype, initial={start}, out=out)"
            same_as_numpy(call, x=np.array(x), dtype=dtype, out=np.zeros((), out))


def test_orders_of_comparisons_beyond_a_dtype() -> None:
    with force("library"):
        same_as_numpy("(x.T <= 2**60).strides", x=np.ones((4, 2, 4), "int32"))


@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_out_holds_what_an_extreme_starts_with(name: str) -> None:
    for dtype, start in itertools.product(("int32", "int8", "float32"), (-7.5, 1e6)):
        call = f"{name}(x, initial={start}, out=zeros((), dtype='float32'))"
        same_as_numpy(call, x=np.array([2, -3], dtype))


@pytest.mark.parametrize("tier_name", ["library", "fused", "host"])
def test_complex_quotients_of_zeros_and_infinities(tier_name: str) -> None:
    parts = np.asarray([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
    numbers = np.empty((7, 7), "complex128")
    numbers.real, numbers.imag = parts, parts[:, None]
    with tier(tier_name):
        for dtype in ("complex64", "complex128"):
            x = numbers.ravel().astype(dtype)
            same_as_numpy("x[:, None] / x", "divide(x, -0.0)", "1.5 / x", x=x)
        same_as_numpy("divide(x[:, None], x, order='F', dtype='complex128')", x=parts)


@pytest.mark.parametrize("old", [(2, 3), (3, 2, 2), (4,), (0, 3)])
@pytest.mark.parametrize("new", [(1, 3, 2), (6,), (5, 3), (2, 2), (0,)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_that_is_resized_keeps_the_order_of_its_memory(
    old: Any, new: Any, order: Any
) -> None:
    x = np.array(np.arange(np.prod(old)).reshape(old), order=order)
    same_as_numpy(f"[x.resize({new}, refcheck=False), x, x.flags.f_contiguous]", x=x)


@pytest.mark.parametrize("name", ["concat", "stack", "hstack"])
@pytest.mark.parametrize("dtype", ["uint32", "int64", "uint64", "float32", "uint8"])
def test_arrays_joined_into_out_are_converted_directly(name: str, dtype: str) -> None:
    """It is not converted to the common dtype first: a float64 cannot hold a uint64."""
    large = np.asarray([2**64 - 1, 2**63 + 2**32 + 7, 5], dtype="uint64")
    arrays = [large, np.asarray([2.5, 7.0, 1.5], dtype="float16")]
    into = f"dtype='{dtype}'" if name == "hstack" else "out=out"
    out = np.zeros((2, 3) if name == "stack" else 6, dtype)
    same_as_numpy(f"{name}(arrays, {into}, casting='unsafe')", arrays=arrays, out=out)


@pytest.mark.parametrize("obj", ["1", "slice(1, 2)"])
def test_slices_of_transposed_arrays_are_deleted(obj: str) -> None:
    values = np.arange(32.0).reshape(4, 1, 2, 4)
    for axes in ((2, 3, 0, 1), (1, 0, 3, 2), (3, 2, 1, 0)):
        for axis in range(4):
            if values.transpose(axes).shape[axis] > 1:
                same_as_numpy(f"delete(x.transpose({axes}), {obj}, {axis})", x=values)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean", "median", "linear_ramp"])
def test_boundaries_of_statistics(mode: Any, dtype: str, executor: str) -> None:
    largest = np.iinfo(dtype).max if np.dtype(dtype).kind in "iu" else 100
    values = (np.linspace(0, 1, 24).reshape(2, 3, 4)[..., ::-1] * largest * 0.9).astype(dtype)
    options: list[dict[str, Any]] = [
        {},
        {"stat_length": 1},
        {"stat_length": [(1, 2), (9, 1), (3, 3)]},
    ]
    if mode == "linear_ramp":
        options = [{}, {"end_values": 3}, {"end_values": (1, 7)}]
    for widths in (2, (0, 3), [(1, 2), (0, 0), (2, 1)]):
        for given in options:
            wanted = np.pad(values, widths, mode=mode, **given)
            found = dp.pad(dp.asarray(values), widths, mode=mode, **given)
            assert found.dtype == wanted.dtype
            is_exact = wanted.dtype.kind == "b"
            np.testing.assert_allclose(
                found.asnumpy().astype("float64"),
                wanted.astype("float64"),
                rtol=0 if is_exact else 2e-3 if dtype == "float16" else 1e-6,
                atol=1 if wanted.dtype.kind in "iu" else 0,  # float16 may be rounded either way
            )


def test_boundaries_without_statistics_raise(executor: str) -> None:
    for length in (-1, (1, -1)):
        with pytest.raises(dp.exceptions.ShapeError, match="must not be negative"):
            dp.pad(dp.ones(3), 1, mode="mean", stat_length=length)
    with pytest.raises(dp.exceptions.ShapeError, match="for mode 'maximum'"):
        dp.pad(dp.ones(3), 1, mode="maximum", stat_length=0)
    with pytest.raises(dp.exceptions.ShapeError, match="empty"):
        dp.pad(dp.ones((0, 3)), 1, mode="median")


#: Ways to write `x` into `target`, which has another dtype; each returns the result.
WAYS_TO_UNSIGNED = (
    *(
        "[target.__setitem__(..., x), target]",
        "[target.__setitem__(slice(1, None), x[1:]), target]",
    ),
    *("[target.__setitem__(..., x[:1]), target]", "[target.__setitem__(positions, x), target]"),
    *("[target.__setitem__(is_even, x[is_even]), target]", "x.astype(target.dtype)"),
    *("add(x, 0, out=target, casting='unsafe')", "[copyto(target, x, casting='unsafe'), target]"),
    *("pad(x.astype(target.dtype), 2, mode='mean')", "sum(x, dtype=target.dtype)"),
    *("prod(x, dtype=target.dtype)", "cumsum(x, dtype=target.dtype)"),
    "cumprod(x, dtype=target.dtype)",
)


@pytest.mark.parametrize("way", WAYS_TO_UNSIGNED)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int32", "int64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_beyond_the_signed_integers_become_unsigned_ones(
    source: str, dtype: str, executor: str, way: str
) -> None:
    x = np.full(7, np.iinfo(dtype).max * 0.75 if dtype[0] == "u" else 7).astype(source)
    x[3] = 2.5
    given: dict[str, Any] = {"positions": np.arange(7)[::-1], "is_even": np.arange(7) % 2 == 0}
    same_as_numpy(way, x=x, target=np.zeros(7, dtype), **given)


@pytest.mark.parametrize("dtype", ["uint64", "int64", "float64", "float32"])
def test_slopes_at_both_ends_are_rounded_as_those_of_numpy(dtype: str) -> None:
    values = np.full(5, 7459540624423486254, "uint64").astype(dtype)
    for spacing in (1.0, 0.1, 3):
        same_as_numpy(f"gradient(x, {spacing}, edge_order=2)", x=values, tolerance=0)


@pytest.mark.parametrize("axes", [(2, 0, 1), (2, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("extent", [3, 40])
def test_slices_at_positions_of_transposed_arrays(axes: tuple[int, int, int], extent: int) -> None:
    values = np.arange(extent * extent * 5.0).reshape(extent, 5, extent)
    for axis in range(3):
        count = values.transpose(axes).shape[axis]
        positions, is_wanted = np.arange(count)[::-2].repeat(3), np.arange(count) % 2 == 0
        same_as_numpy(
            f"compress(wanted, x.transpose({axes}), {axis})",
            f"take(x.transpose({axes}), positions, {axis})",
            f"take(x.transpose({axes}), positions.tolist(), {axis})",
            f"take(x.transpose({axes}), positions, {axis}, mode='wrap')",
            f"repeat(x.transpose({axes}), wanted * 2, {axis})",
            x=values,
            positions=positions,
            wanted=is_wanted,
        )


@pytest.mark.parametrize("mode", ["maximum", "mean", "linear_ramp", "constant", "reflect"])
def test_zero_dimensional_arrays_are_padded_to_themselves(mode: Any) -> None:
    same_as_numpy(f"pad(x, 2, mode='{mode}')", x=np.array(-7, "int16"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scalar", [False, 2])
def test_a_scalar_among_integers_has_the_requested_dtype(scalar: Any, dtype: str) -> None:
    for exponent in (np.array(4, "uint16"), np.array([1, 2, 3], "int32")):
        same_as_numpy(f"ldexp({scalar}, x, dtype='{dtype}')", x=exponent)


@pytest.mark.parametrize("name", ["cumsum", "sum", "cumprod"])
def test_sums_into_another_kind_are_in_the_common_dtype(name: str, executor: str) -> None:
    whole = np.array([1488732481, 1636968864, -1372717109, -2147483648], "int32")
    halves = np.array([-0.0017, 1475, 0.0136, -6.93, -145.25, 3.1], "float16")
    for x, dtype in ((whole, "float16"), (halves, "int32"), (halves, "float32")):
        out = np.zeros(x.shape if name.startswith("cum") else (), dtype)
        same_as_numpy(f"{name}(x, out=out)", x=x, out=out)


@pytest.mark.parametrize("call", ["nanmedian(x", "nanquantile(x, 0.5", "nanpercentile(x, 0.5"])
@pytest.mark.parametrize("count", [4, 30_000])
def test_numbers_among_nan_stay_where_they_are_along_no_axis(call: str, count: int) -> None:
    values = np.resize(np.array([1, np.nan, 3, 2], "float32"), count)
    for x in (values, values.reshape(2, -1)):
        for axis in ("()", "[]"):
            found = eval(f"dp.{call}, axis={axis})", {"dp": dp, "x": dp.asarray(x)})
            np.testing.assert_array_equal(found.asnumpy(), x)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("second", [-815618927, 1e30, math.inf, -math.inf, math.nan, 2, True, 1j])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "complex64"])
def test_close_to_a_number_that_the_dtype_does_not_hold(second: Any, dtype: str) -> None:
    for x in (np.arange(5).astype(dtype), np.arange(20_000).astype(dtype)):
        same_as_numpy("isclose(x, y, 2.62, 0.22)", "isclose(x, y, 1e-5, 1e-8)", x=x, y=second)


@pytest.mark.parametrize("method", ["linear", "lower", "nearest", "inverted_cdf"])
@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float32"])
def test_a_quantile_of_no_numbers_is_none(method: Any, dtype: str) -> None:
    for shape, axis in (((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1)):
        call = f"nanquantile(x, 0.5, axis={axis}, method='{method}')"
        same_as_numpy(call, x=np.zeros(shape, dtype))


def test_interp_with_a_period_leaves_its_arguments(executor: str) -> None:
    given: dict[str, Any] = {
        "x": np.array([-1.5, 7.0]),
        "p": np.array([-5.5, 2.0]),
        "f": np.array([1.0, 2.0]),
    }
    same_as_numpy("[interp(x, p, f, period=5), x, p]", **given)
    large = np.array([2**63 - 1, 5515018945614490059, 7])  # remainders of floats, as in NumPy
    same_as_numpy("interp(x, p, f, period=2)", **given | {"x": large})


@pytest.mark.parametrize("wrap", [True, False])
def test_a_diagonal_filled_with_nothing_stays(wrap: bool, executor: str) -> None:
    x = dp.ones((7, 3))
    dp.fill_diagonal(x, dp.ones(0), wrap=wrap)
    assert (x == 1).all()


REDUCED_IN_ORDER = ("subtract", "power", "lcm", "fmod")
REDUCED_IN_PAIRS = ("bitwise_xor", "gcd", "hypot", "logaddexp", "logaddexp2", "logical_and")


@pytest.mark.parametrize("name", [*REDUCED_IN_ORDER, *REDUCED_IN_PAIRS])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_ufuncs_start_somewhere_and_leave_out(
    name: str, axis: int, executor: str
) -> None:
    x, mask = np.array([[7, -2, 3], [1, 5, 2]]), np.array([[True, False, True], [False] * 3])
    x = x if name != "power" else abs(x)
    for options in (
        *("", ", initial=2", ", initial=3, where=mask", ", initial=-3, where=mask"),
        *(", where=mask[0], initial=1, keepdims=True", ", where=mask"),
    ):
        same_as_numpy(f"{name}.reduce(x, {axis}{options})", x=x, mask=mask, tolerance=64)
    same_as_numpy(f"{name}.reduce(asarray([-3]))")
    if name in REDUCED_IN_ORDER:
        with pytest.raises(dp.exceptions.ArgumentError, match="initial="):
            getattr(dp, name).reduce(dp.asarray(x), axis, where=dp.asarray(mask))


def test_integer_operands_of_at_have_the_dtype_of_the_array(executor: str) -> None:
    """NumPy's numbers are int64, so that those of uint64 are rounded to floats."""
    x = dp.asarray([2**63 + 1, 2**62 + 3], dtype="uint64")
    dp.multiply.at(x, [1, 1], 3)
    assert x.tolist() == [2**63 + 1, (2**62 + 3) * 9 % 2**64]
    with pytest.raises(OverflowError, match="300 does not fit into uint8"):
        dp.add.at(dp.zeros(2, dtype="uint8"), [0], 300)


@pytest.mark.parametrize("dtype", [None, "float16", "float64", "int32"])
@pytest.mark.parametrize("method", ["reduce", "accumulate"])
def test_ldexp_raises_because_it_cannot_combine_results(
    method: str, dtype: Any, executor: str
) -> None:
    with pytest.raises(dp.exceptions.DTypeError, match="not defined as a reduction"):
        getattr(dp.ldexp, method)(dp.arange(3), dtype=dtype)


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize("optimize", ["None", "False", "True", "'greedy'", "'optimal'"])
def test_sums_of_products_of_three_dtypes(optimize: str, count: int, executor: str) -> None:
    """The sum has the arrays' common dtype; with a given order, each product has its factors'."""
    option = "" if optimize == "None" else f", optimize={optimize}"
    for dtypes in (("float16", "int8", "uint8"), ("int8", "uint8", "float16"), ("u1", "i1", "f4")):
        x = [np.ones((2, 3), dtypes[0]), np.ones((3, 4), dtypes[1]), np.ones((4, count), dtypes[2])]
        same_as_numpy(f"einsum('ij,jk,kl->il', *x{option})", x=x)


@pytest.mark.parametrize("assume_unique", [False, True])
def test_a_nan_of_one_array_is_not_that_of_the_other(assume_unique: bool, executor: str) -> None:
    pairs = [([1.0, np.nan], [np.nan, 2.0]), ([1.0, 2.0], [2.0, np.nan]), ([], [np.nan]), ([], [])]
    if not assume_unique:
        pairs.append(([np.nan, np.nan, 1.0, 1.0], [np.nan, np.nan]))
    for x, y in pairs:
        same_as_numpy(f"setxor1d(x, y, {assume_unique})", x=np.array(x), y=np.array(y))


def test_operands_of_at_are_not_converted_first(executor: str) -> None:
    for name, value in (("less", 2.5), ("greater_equal", -math.inf), ("less", 2 + 1j)):
        same_as_numpy(f"[{name}.at(x, [0, 2], v), x]", x=np.array([2, 3, 4]), v=value)
    same_as_numpy("[power.at(x, [0, 1], True), x]", x=np.array([2.5, 3.0]))
    same_as_numpy("lcm.accumulate(x)", x=np.array([-128, 3, -128, 7], "int8"))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_singular_values_of_stacks_of_hermitian_matrices(dtype: str, executor: str) -> None:
    values = np.random.default_rng(1).normal(size=(3, 1, 4, 4)).astype(dtype)
    values = values + np.conj(np.swapaxes(values, -1, -2))
    u, s, vh = dp.linalg.svd(dp.asarray(values), hermitian=True)
    alone = dp.linalg.svd(dp.asarray(values), compute_uv=False, hermitian=True)
    same(s, np.linalg.svd(values)[1], 1e-4)
    same(alone, s.asnumpy(), 1e-4)
    same((u * s[..., None, :]) @ vh, values)


def test_dtypes_of_histograms_and_covariances() -> None:
    given: dict[str, Any] = {"x": np.array([1, 2, 2]), "y": np.array([0.5, 1.5, 1.0], "float32")}
    same_as_numpy("histogram2d(x, y, 2)", **given)
    x = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 0.5]])
    same_as_numpy(
        "cov(x, aweights=asarray([0.1, 0.2, 0.3]), dtype='float32')",
        "cov(x, fweights=asarray([1, 2, 3]), dtype='float32')",
        x=x,
    )
    with pytest.raises(dp.exceptions.ShapeError):  # NumPy accepts a y of one row
        dp.corrcoef(dp.ones((1, 4)), dp.ones((1, 4)), rowvar=False)


@pytest.mark.parametrize(
    "rule", ["auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"]
)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_rules_for_bins_where_the_host_may_not_compute(rule: str, dtype: str) -> None:
    values = (np.random.default_rng(3).normal(size=200) * 9).astype(dtype)
    with dp.config.override(host_tier=False):
        for limits_of in (None, (-4.0, 7.5)):
            given = f"(x, '{rule}', range={limits_of})"
            edges = f"histogram_bin_edges{given}"
            same_as_numpy(edges, f"histogram{given}[0]", x=values, tolerance=1e8)
    for host_tier in (True, False):
        with dp.config.override(host_tier=host_tier):
            with pytest.raises(dp.exceptions.ArgumentError, match="'auto'"):
                dp.histogram(dp.ones(3), "none of them")
            with pytest.raises(TypeError, match="weights"):
                dp.histogram(dp.ones(3), rule, weights=dp.ones(3))


@pytest.mark.parametrize("coordinates", [[0.0, 1.0, 3.0, 6.0, 7.0], [0, 2, 4, 6, 8]])
def test_slopes_next_to_infinities_and_of_float16(coordinates: list[Any], executor: str) -> None:
    for dtype in ("float16", "float32", "float64"):
        x = np.array([1.25, -np.inf, 0.41, 7.0, np.inf], dtype)
        same_as_numpy("gradient(x, at)", x=x, at=np.array(coordinates), tolerance=0)


def test_a_text_of_fewer_numbers_is_refused() -> None:
    with pytest.raises(dp.exceptions.ArgumentError, match="there are 1 numbers"):
        dp.fromstring("7", sep=",", count=3)
    assert dp.fromstring("7,8", sep=",", count=1).tolist() == [7.0]


def test_transforms_along_no_axis(executor: str) -> None:
    x = dp.asarray([[1, 2], [3, 4]], dtype="uint16")
    for name in ("fft2", "ifft2", "fftn", "ifftn"):
        found = getattr(dp.fft, name)(x, axes=())
        np.testing.assert_array_equal(found.asnumpy(), x.asnumpy(), strict=True)
    for name in ("rfft2", "irfft2", "rfftn", "irfftn"):
        with pytest.raises(dp.AxisError, match="no axis"):
            getattr(dp.fft, name)(x, axes=())


def test_linear_algebra_has_no_half_on_either_side(executor: str) -> None:
    half = dp.ones(2, dtype="float16")
    for call in (dp.linalg.solve, dp.linalg.lstsq, dp.linalg.tensorsolve):
        with pytest.raises(dp.exceptions.DTypeError, match="float16"):
            call(dp.eye(2), half)
    for weights in (None, dp.ones(2)):
        with pytest.raises(dp.exceptions.DTypeError, match="float16"):
            dp.polyfit(dp.arange(2.0), half, 1, w=weights)


#: Ways to convert `x` to the dtype of `y`, of the same shape.
STORES = {
    "astype": "x.astype(y.dtype)",
    "setitem": "[y.__setitem__(..., x), y]",
    "mask": "[y.__setitem__(x == x, x), y]",
    "out": "add(x, 0, out=y, casting='unsafe')",
    "sum": "sum(x[:, None], axis=1, dtype=y.dtype)",
    "cumsum": "cumsum(x[:, None], axis=1, dtype=y.dtype)[:, 0]",
    "concatenate": "concatenate([x], dtype=y.dtype, casting='unsafe')",
}


@pytest.mark.parametrize("how", list(STORES))
@pytest.mark.parametrize("count", [10, 20_000])
@pytest.mark.sample(3)
def test_floats_become_integers_of_eight_and_sixteen_bits(
    how: str, count: int, executor: str
) -> None:
    """Without AVX-512, 200.0 became 127 in dpnp's `uint8`, and in `int8` of kernels."""
    values = [-2.5, 1.5, 200.7, -0.9, 100.0, -100.0, 127.5, 255.0, 129.0, 300.0, -300.0, 4e4, -4e4]
    for source in ("float16", "float32", "float64"):
        x = np.resize(values, count).astype(source)
        for dtype in ("uint8", "int8", "uint16", "int16"):
            same_as_numpy(STORES[how], x=x, y=np.zeros(count, dtype))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_integers_round_beyond_their_dtype_where_out_holds_that(dtype: str, executor: str) -> None:
    x = np.array([-32768, 32767, 1234], "int16")
    same_as_numpy("round(x, -2, out=out)", x=x, out=np.zeros(3, dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_edges_between_limits_are_floats_of_python(dtype: str, executor: str) -> None:
    same_as_numpy("histogramdd(x, 2, range=[(0.0, 4.0)])", x=np.array([1, 2, 2, 3], dtype))


def test_integers_with_weights_are_in_numpys_bins(executor: str) -> None:
    x, weights = np.array([0, 0, 1, 2, 9], "uint8"), np.array([1.5, 2, 4, 8, 16], "float32")
    for limits_of in ((-0.2, 0.3), (-3, 7), None):
        edges = f"histogram_bin_edges(x, 5, {limits_of})"
        same_as_numpy(edges, f"histogram(x, 5, {limits_of}, weights=w)[0]", x=x, w=weights)


def test_clip_without_bounds_and_inserts_of_matrices(executor: str) -> None:
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert dp.clip(dp.asarray(columns, order="F")).flags.f_contiguous
    with pytest.raises(dp.exceptions.ShapeError, match="it has 2"):
        dp.insert(dp.arange(9.0), [[1], [2]], dp.zeros(2))


def test_equations_with_one_number_on_all_right_sides() -> None:
    matrix = np.array([[8.0, 0.7, -1.6, -3.8], [-4.5, 12.4, 2.5, -1.8]])
    with dp.config.override(host_tier=False):
        side = dp.broadcast_to(dp.asarray([-2.5]), (2,))
        found = dp.linalg.lstsq(dp.asarray(matrix), side)[0]
    same(found, np.linalg.lstsq(matrix, np.full(2, -2.5), rcond=None)[0], 1e-7)


def test_views_of_axes_of_one_element_and_near_multiples_of_their_size() -> None:
    view = "permute_dims(x, (0, 2, 1)).view('float32')"
    x = np.arange(12, dtype="uint16").reshape(3, 4, 1)
    same_as_numpy(view, f"({view} * 2 + {view}).shape", x=x)
    with pytest.raises(dp.exceptions.ShapeError, match="aligned to 8 bytes"):
        dp.ones((5, 4), dtype="float32")[:, 1:3].view("complex64")
