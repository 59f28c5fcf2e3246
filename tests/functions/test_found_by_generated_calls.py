"""Bugs found by calling every function with generated arguments: results are NumPy's."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any, Literal

import numpy as np
import pytest

import dparray as dp
from tests.functions.comparison import compare
from tests.functions.test_every_function import tier
from tests.support import force


def test_choices_and_default_promote_together() -> None:
    for dtype in ("int8", "float16", "float32"):
        for default in (0, 1.5 if dtype[0] == "f" else 3):
            compare(
                lambda xp, t=dtype, d=default: xp.select(
                    [xp.asarray([True, False, False]), xp.asarray([False, True, False])],
                    [xp.asarray([1, 2, 3], dtype=t), xp.asarray([True, True, False])],
                    d,
                )
            )
    compare(lambda xp: xp.select([xp.asarray([True, False])], [7], 2))


def test_a_python_scalar_is_weak_in_a_union() -> None:
    compare(lambda xp: xp.union1d(xp.asarray([3, 1], dtype="int16"), 9))
    compare(lambda xp: xp.union1d(2, xp.asarray([3, 1], dtype="float32")))
    compare(lambda xp: xp.union1d(xp.asarray([3, 1], dtype="int16"), 2.5))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_spacing_of_negative_numbers_and_zeros(dtype: str) -> None:
    values = np.asarray([-4, -1.5, -1, -0.0, 0, 1, 3, 7], dtype)
    compare(lambda xp: xp.spacing(xp.asarray(values)))
    many = np.resize(values, 9001)
    compare(lambda xp: xp.spacing(xp.asarray(many)))


def test_a_frequency_is_divided_in_the_dtype_of_the_distance() -> None:
    for d in (1.0, 0.3, np.float32(0.19), np.float32(-1.05)):
        for n in (1, 12, 13):
            compare(lambda xp, n=n, d=d: xp.fft.fftfreq(n, d), tolerance=1)
            compare(lambda xp, n=n, d=d: xp.fft.rfftfreq(n, d), tolerance=1)


def test_booleans_have_no_decimals() -> None:
    compare(lambda xp: xp.round(xp.asarray([True, False]), 2))
    compare(lambda xp: xp.round(xp.asarray([True, False]), -1))
    compare(lambda xp: xp.round(xp.asarray([True, False])))
    with pytest.raises(dp.DTypeError, match=r"Booleans have no decimals.*astype\(float\)"):
        dp.round(dp.asarray([True]), 2)


def test_the_number_of_decimals_is_no_operand() -> None:
    compare(lambda xp: xp.round(xp.asarray([1.26 + 2.71j], dtype="complex64"), np.int64(1)))


@pytest.mark.parametrize("low", [-2.0, np.float64(-2), np.int64(-2)])
def test_a_clipped_result_fits_out_by_its_dtype(low: Any) -> None:
    compare(
        lambda xp: xp.clip(
            xp.asarray([-7, 3], dtype="int32"), low, 8, out=xp.asarray([0, 0], dtype="int16")
        )
    )
    compare(lambda xp: xp.clip(xp.asarray([-7, 3]), low, 2, out=xp.asarray([0.0, 0.0])))


def test_a_list_is_copied_by_the_dtype_it_has() -> None:
    for values in ([1, -2], [1.5, 2.5], [True, False]):
        for dtype in ("uint8", "int64", "float32"):
            for casting in ("same_kind", "unsafe"):
                if casting == "unsafe" and dtype == "uint8":
                    continue

                def copied(xp: Any, v: Any = values, t: str = dtype, c: Any = casting) -> Any:
                    x = xp.zeros(2, dtype=t)
                    xp.copyto(x, v, casting=c)
                    return x

                compare(copied)


@pytest.mark.parametrize("function", ["mean", "var", "std"])
def test_half_precision_is_rounded_once_at_the_end(function: str) -> None:
    values = np.asarray([0.9688, -0.977, -0.03168, 1.29], "float16")
    found = dp.zeros(())
    getattr(dp, function)(dp.asarray(values), out=found)
    wanted = getattr(np, function)(values.astype("float64"))
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6)


def test_one_position_that_is_taken_is_a_copy() -> None:
    for limit in (True, False):
        with dp.config.override(host_tier=limit):
            x = dp.arange(12).reshape(3, 4)
            row = dp.take(x, 1, axis=0)
            assert not dp.shares_memory(x, row)
            row[0] = 99
            assert x[1, 0] == 4


def test_weak_integers_take_the_smallest_float_that_an_exponent_allows() -> None:
    for first in (0, -3, 0.5, True):
        for dtype in ("int8", "int16", "int64"):
            compare(lambda xp, x=first, t=dtype: xp.ldexp(x, xp.asarray([2, -1], dtype=t)))


def test_dtype_of_predicates_is_that_of_their_results() -> None:
    x, y = np.asarray([1170719212, 5]), np.asarray([-8, 5])
    for name in ("equal", "not_equal", "less", "greater_equal", "logical_and"):
        compare(
            lambda xp, f=name: getattr(xp, f)(
                xp.asarray(x), xp.asarray(y), dtype="bool", casting="unsafe"
            )
        )


def test_transforms_of_broadcast_operands(executor: str) -> None:
    for name in ("rfftn", "fftn", "rfft"):
        compare(
            lambda xp, f=name: getattr(xp.fft, f)(
                xp.broadcast_to(xp.asarray([[[-0.4166]]]), (1, 1, 5))
            )
        )


def test_interpolation_between_points_that_are_not_contiguous(executor: str) -> None:
    compare(
        lambda xp: xp.interp(
            xp.asarray([1.5, 0.25]),
            xp.asarray([2.0, 1.0, 0.0])[::-1],
            xp.asarray([3.0, 5.0, 1.0])[::-1],
        )
    )


def test_edges_of_the_arguments() -> None:
    compare(lambda xp: xp.diff(xp.asarray([True, False]), n=0, axis=1))
    compare(lambda xp: xp.multiply.accumulate(xp.asarray(3)))
    compare(lambda xp: xp.compress(xp.asarray([0j, 1j, 2]), xp.asarray([4, 5, 6])))


def test_broadcast_operands_do_not_affect_the_memory_order() -> None:
    for call in (
        lambda xp: xp.float_power(
            xp.broadcast_to(xp.asarray([[3]], dtype="int16"), (2, 3)),
            xp.asarray([[1, 2, 3], [4, 5, 6]], dtype="int8", order="F"),
        ),
        lambda xp: xp.hypot(
            xp.broadcast_to(xp.asarray([[86, 14, 127]]), (4, 3)), False, dtype="float64"
        ),
        lambda xp: xp.concat(
            (
                xp.broadcast_to(xp.asarray([[1, 2, 3, 4, 5]]), (4, 5)),
                xp.asarray([[1.5, 2, 3, 4, 5]]),
            )
        ),
    ):
        ours, theirs = call(dp), call(np)
        np.testing.assert_array_equal(ours.asnumpy(), theirs)
        assert ours.flags.f_contiguous == theirs.flags.f_contiguous
        assert ours.flags.c_contiguous == theirs.flags.c_contiguous


def test_the_step_of_a_linspace_is_an_array() -> None:
    for num in (0, 1, 2, 5):
        for ends in ((0, 1), ([0.0, 1.0], 3.0)):
            values, step = dp.linspace(*ends, num, retstep=True)
            wanted = np.linspace(*ends, num, retstep=True)
            assert isinstance(step, dp.ndarray)
            assert step.queue == values.queue
            np.testing.assert_allclose(values.asnumpy(), wanted[0])
            np.testing.assert_allclose(step.asnumpy(), wanted[1])


def test_edges_by_a_function_of_the_user() -> None:
    def fill(line: Any, widths: Any, axis: int, options: dict[str, Any]) -> None:
        line[: widths[0]] = options.get("padder", 10) + axis
        line[line.shape[0] - widths[1] :] = -1

    for options in ({}, {"padder": 7}):
        compare(
            lambda xp, o=options: xp.pad(xp.arange(6).reshape(2, 3), ((1, 2), (0, 1)), fill, **o)
        )
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
    widest = dp.asarray([-1.7e308, 1.7e308])
    for q, row in wanted.items():
        np.testing.assert_array_equal(dp.quantile(x, q, axis=1).asnumpy(), row)
        np.testing.assert_array_equal(dp.nanquantile(x, q, axis=1).asnumpy(), row)
    np.testing.assert_array_equal(dp.median(x, axis=1).asnumpy(), wanted[0.5])
    assert dp.quantile(widest, 0.5) == 0


def test_order_a_is_the_order_of_copies_alone() -> None:
    x = np.arange(40).reshape(4, 5, 2)[::-1]
    ours = dp.asarray(np.arange(40).reshape(4, 5, 2))[::-1]
    for axes in ((0, 1, 2), (2, 1, 0), (2, 0, 1)):
        theirs, mine = x.transpose(axes), dp.permute_dims(ours, axes)
        assert dp.asarray(mine, order="A") is mine
        for dtype in (None, "float32"):
            for copy in (None, True):
                if copy is dtype is None:
                    continue
                wanted = np.array(theirs, dtype, order="A", copy=copy).strides
                assert dp.asarray(mine, dtype, "A", copy=copy).strides == wanted


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
    vector = np.ones(1, dtype)
    with dp.config.override(lazy=False, host_tier=False):
        for name in (*symmetric, "svdvals", "det"):
            x = LAYOUTS[layout](dp, host)
            before = x.asnumpy()
            found = getattr(dp.linalg, name)(x)
            wanted = getattr(np.linalg, name)(LAYOUTS[layout](np, host))
            first, other = (found[0], wanted[0]) if isinstance(wanted, tuple) else (found, wanted)
            np.testing.assert_allclose(first.asnumpy(), other, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(x.asnumpy(), before, name)
        x, theirs = LAYOUTS[layout](dp, host), LAYOUTS[layout](np, host)
        spread = dp.broadcast_to(dp.asarray(vector), (3,))
        np.testing.assert_allclose(dp.matvec(x, spread).asnumpy(), theirs.sum(1), rtol=1e-5)
        np.testing.assert_allclose((x @ x).asnumpy(), theirs @ theirs, rtol=1e-5)
        np.testing.assert_allclose((spread @ x).asnumpy(), theirs.sum(0), rtol=1e-5)


@pytest.mark.parametrize("way", ["host", "library", "fused"])
def test_a_variance_without_degrees_of_freedom_is_a_quotient_by_zero(
    way: Literal["host", "library", "fused"],
) -> None:
    x = np.asarray([[1.0, 2.0], [3.0, 3.0]])
    with force(way):
        for name in ("var", "std"):
            for ddof in (1, 2, 3):
                compare(lambda xp, n=name, d=ddof: getattr(xp, n)(xp.asarray(x), axis=1, ddof=d))


@pytest.mark.slow
def test_results_that_the_library_and_the_host_had_differently(executor: str) -> None:
    holes = np.asarray([1.5, np.nan, -2.5, np.nan, 3.0, np.nan, 3.0])
    compare(lambda xp: xp.unique(xp.asarray(holes), True, True, True))
    compare(lambda xp: xp.unique(xp.asarray(holes), return_counts=True))
    compare(lambda xp: xp.setdiff1d(xp.asarray(holes), xp.asarray([3.0, 7.0])))
    for shape, axis in (((6, 1), 1), ((1, 6), 0)):
        for name in ("bitwise_or", "fmax", "gcd", "add"):
            x = dp.ones(shape, dtype="int16")
            result = getattr(dp, name).reduce(x, axis=axis)
            assert not dp.shares_memory(x, result), name
    for dtype in ("bool", "int8", "int16", "int64"):
        for method in ("reduce", "accumulate"):
            compare(
                lambda xp, m=method, t=dtype: getattr(xp.logaddexp, m)(xp.ones(3, dtype=t)),
                tolerance=64,
            )
    assert dp.i0(dp.asarray([-dp.inf, dp.inf])).tolist() == [dp.inf, dp.inf]
    x = dp.asarray([1.5, 2.5], dtype="float32")
    assert dp.linalg.vector_norm(x, ord=np.int64(3)).dtype == "float32"


def test_empty_arrays_have_every_memory_order() -> None:
    for x in (dp.zeros((0, 4)), dp.asarray(np.zeros((3, 0, 2))), dp.ones((4, 3))[:, :0]):
        assert x.flags.c_contiguous
        assert x.flags.f_contiguous
        assert not dp.isfortran(x)
    assert dp.pad(dp.zeros((0, 4)), 2).strides == (64, 8)


def test_sums_are_computed_in_the_dtype_of_a_wider_out(executor: str) -> None:
    large = np.full(5, 2**63, "uint64")
    for name in ("sum", "prod", "nansum", "cumsum", "cumprod"):
        for values, dtype in (
            (large, "float32"),
            (large, "float64"),
            (np.full(5, 3e38, "float32"), "float64"),
            (np.ones(5, "float64"), "float32"),
        ):
            shape = (5,) if name[:3] == "cum" else ()

            def call(xp: Any, n: str = name, v: Any = values, t: str = dtype) -> Any:
                out = xp.zeros(shape, dtype=t)  # noqa: B023
                getattr(xp, n)(xp.asarray(v), out=out)
                return out

            compare(call, f"{name} {dtype}")
    compare(lambda xp: xp.trace(xp.asarray(np.tile(large, (5, 1))), out=xp.zeros((), "float32")))


def test_order_a_is_by_columns_where_all_operands_are() -> None:
    x = np.ones((3, 2, 4))
    for turned in (True, False):
        for other in (2.0, np.asarray(2.0), np.ones(4 if not turned else 3)):
            a, b = (x.T, dp.asarray(x).T) if turned else (x, dp.asarray(x))
            ours = dp.asarray(other) if isinstance(other, np.ndarray) else other
            wanted = np.hypot(a, other, order="A").strides
            assert dp.hypot(b, ours, order="A").strides == wanted


@pytest.mark.parametrize("ddof", [np.int64(1), np.float64(1), np.int8(0)])
@pytest.mark.parametrize("name", ["var", "std"])
def test_numbers_of_degrees_of_freedom_decide_no_dtype(name: str, ddof: Any) -> None:
    compare(lambda xp: getattr(xp, name)(xp.asarray([1, 2, 5], dtype="float32"), ddof=ddof))


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

    def put(xp: Any) -> Any:
        x = xp.asarray(large)
        xp.putmask(x, xp.asarray([True, False, True]), np.int64(9))
        return x

    with tier(executor):
        compare(lambda xp: xp.asarray([0j]) ** xp.asarray(exponents))
        for axis in (None, 0, 1):
            for name in ("argmin", "argmax"):
                compare(lambda xp, n=name, a=axis: getattr(xp, n)(xp.asarray(holes), axis=a))
        compare(put)
        compare(lambda xp: xp.bincount(xp.asarray([], dtype="uint8"), minlength=2))
        compare(lambda xp: xp.ldexp(-6, xp.asarray([True])))
        for ddof in (0, 1, 2):
            compare(lambda xp, d=ddof: xp.nanvar(xp.asarray([[3, 5], [7, 7]]), axis=1, ddof=d))
        x = np.broadcast_to(np.arange(3), (2, 3))
        assert dp.broadcast_to(dp.asarray(np.arange(3)), (2, 3)).ravel("K").tolist() == [
            *x.ravel("K").tolist()
        ]


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


def test_logical_operations_of_complex_numbers_take_a_boolean_dtype() -> None:
    for x in ([1j, 0], [1.5, 0], [2, 0], [True, False]):
        for number in (True, 2, 1.5, 0.25j, 0.0):
            for name in ("logical_xor", "logical_and", "logical_or"):
                compare(
                    lambda xp, x=x, v=number, f=name: getattr(xp, f)(xp.asarray(x), v, dtype="bool")
                )


def test_comparisons_with_a_python_number_take_a_boolean_dtype() -> None:
    for x in ([1j, 0], [1.5, 0], [2, 0], [True, False]):
        for number in (False, 2, 1.5, 0.25j):
            for name in ("less", "greater_equal", "equal", "not_equal"):
                compare(
                    lambda xp, x=x, v=number, f=name: getattr(xp, f)(v, xp.asarray(x), dtype="bool")
                )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("initial", [np.nan, 3.0, None])
def test_a_first_value_that_is_no_number_is_passed_over(dtype: str, initial: float | None) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    x[1] = x[0, 1] = np.nan
    mask = np.asarray([[False, True, True], [False, True, False]])
    first = {} if initial is None else {"initial": initial}
    for name in ("min", "max"):
        for axis in (None, 0, 1):
            compare(lambda xp, f=f"nan{name}", a=axis: getattr(xp, f)(xp.asarray(x), a, **first))
            compare(
                lambda xp, f=f"f{name}", a=axis: getattr(xp, f).reduce(xp.asarray(x), a, **first)
            )
            if first:
                compare(
                    lambda xp, f=f"nan{name}", a=axis: getattr(xp, f)(
                        xp.asarray(x), a, where=xp.asarray(mask), **first
                    )
                )


@pytest.mark.parametrize("exponent", [True, False, 1, 2, np.int8(1)])
def test_powers_of_booleans_are_written_where_a_mask_is_true(exponent: Any) -> None:
    x, mask = np.asarray([[True], [False], [True]]), np.asarray([[False], [False], [True]])
    out = np.asarray([[4], [-2], [2]], "int8")
    compare(
        lambda xp: xp.pow(
            xp.asarray(x), exponent, where=xp.asarray(mask), out=xp.asarray(out, copy=True)
        )
    )


def test_einsum_takes_broadcast_operands() -> None:
    one, y = np.asarray([[-0.5]], "float16"), np.arange(12).reshape(3, 4) % 5 > 2
    with force("library"), dp.config.override(host_tier=False):
        compare(
            lambda xp: xp.einsum(
                "ij,jk->ik", xp.broadcast_to(xp.asarray(one), (2, 3)), xp.asarray(y)
            )
        )


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


def test_differences_of_integers_do_not_wrap_in_quantiles() -> None:
    x = dp.asarray([[-128, 119], [127, 85]], dtype="int8")
    for host_tier in (True, False):
        with dp.config.override(host_tier=host_tier):
            found = dp.quantile(x, 0.5, axis=1).tolist()
        assert found == [-4.5, 106.0]


@pytest.mark.parametrize("executor", ["", "fused", "library", "no host tier"])
def test_negative_floats_wrap_in_unsigned_integers(executor: str) -> None:
    values = np.resize([-2.5, 1.5, -2.0, -3.0, 0.0, 200.7, -0.9], 20_000)
    with tier(executor), np.errstate(invalid="ignore"):
        for dtype in ("uint8", "uint16", "uint32", "uint64"):
            for source in ("float16", "float32", "float64"):
                x = values.astype(source)
                found = dp.asarray(x).astype(dtype).asnumpy()
                np.testing.assert_array_equal(found, x.astype(dtype), f"{source} {dtype}")


def test_a_division_in_the_loop_of_a_sum_compiles() -> None:
    """Intel's CPU compiler ended the process."""
    x = np.arange(36, dtype="float32").reshape(3, 4, 3)
    with tier("fused"):
        found = dp.linalg.vector_norm(dp.permute_dims(dp.asarray(x), (2, 0, 1)))
        assert float(found) == pytest.approx(np.linalg.norm(x))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16"])
def test_narrow_integers_are_sorted_and_looked_up_without_the_host(dtype: str) -> None:
    """Intel's CPU compiler ends the process in dpnp's kernels that sort them."""
    values = (np.arange(9001) * 7 % 11).astype(dtype)
    with dp.config.override(host_tier=False):
        x = dp.asarray(values)
        found = dp.sort(x[::-1])
        among = dp.isin(x, x[:5])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.asnumpy(), np.sort(values))
    np.testing.assert_array_equal(among.asnumpy(), np.isin(values, values[:5]))


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like"])
def test_like_functions_use_the_given_dtype(name: str) -> None:
    x = dp.asarray([True, False])
    for dtype in (np.dtype("float64"), "float64", float, np.dtype("int8"), x.dtype):
        assert getattr(dp, name)(x, dtype=dtype).dtype == np.dtype(dtype)
    assert dp.full_like(x, 2.5, dtype=np.dtype("float64")).tolist() == [2.5, 2.5]


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64", "complex128"])
def test_the_diagonal_of_a_part_of_an_array(dtype: str) -> None:
    values = np.arange(15).reshape(3, 5).astype(dtype)
    with dp.config.override(host_tier=False):
        for index in (np.s_[:, 2::-1], np.s_[::-1, :3], np.s_[::-1, 3:0:-1], np.s_[:, 1:4]):
            for subscripts in ("ii->i", "ii", "...jj->j", "ii,ij->j"):
                count = subscripts.partition("->")[0].count(",") + 1
                compare(
                    lambda xp, i=index, s=subscripts, n=count: xp.einsum(
                        s, *[xp.asarray(values)[i]] * n
                    )
                )


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "full_like"])
def test_like_with_another_shape_keeps_the_memory_order(name: str) -> None:
    more = (1,) if name == "full_like" else ()
    x = np.zeros((4, 2, 1, 5), "int8")
    for axes in ((2, 0, 1, 3), (3, 2, 1, 0), (0, 3, 1, 2), (0, 1, 2, 3)):
        ours = dp.permute_dims(dp.asarray(x), axes)
        for shape in ((5, 5, 4, 1), (2, 3, 4, 5), (3, 2)):
            wanted = getattr(np, name)(x.transpose(axes), *more, shape=shape).strides
            assert getattr(dp, name)(ours, *more, shape=shape).strides == wanted


def test_order_a_of_a_conversion_is_by_columns_where_the_array_is() -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        for dtype in ("complex128", "float64"):
            theirs = values.astype(dtype).transpose(axes)
            ours = dp.permute_dims(dp.asarray(values.astype(dtype)), axes)
            with pytest.warns() if dtype[0] == "c" else contextlib.nullcontext():
                wanted = theirs.astype("int32", order="A")
            found = ours.astype("int32", order="A", casting="unsafe")
            assert found.strides == wanted.strides
            np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("dtype", ["int16", "float32", "bool"])
def test_a_complex_number_is_copied_where_it_was_asked_for(dtype: str) -> None:
    for number in (-2.5 - 2j, np.complex64(3 + 1j), 2j):
        for where in (True, [True, False, True]):

            def copied(xp: Any, number: Any = number, where: Any = where) -> Any:
                x = xp.zeros(3, dtype=dtype)
                xp.copyto(x, number, casting="unsafe", where=where)
                return x

            compare(copied)
    with pytest.raises(dp.DTypeError, match="casting='unsafe'"):
        dp.copyto(dp.zeros(3, dtype=dtype), 1j)


def test_truncated_complex_numbers_do_not_affect_the_memory_order() -> None:
    host = np.asarray([[1 + 2j, 3, 4]], "complex64")
    x, y = np.broadcast_to(host, (5, 3)), dp.broadcast_to(dp.asarray(host), (5, 3))
    for name, more in (("reciprocal", ()), ("negative", ()), ("add", (3,))):
        with pytest.warns(np.exceptions.ComplexWarning):
            wanted = getattr(np, name)(x, *more, dtype="int16", casting="unsafe")
        found = getattr(dp, name)(y, *more, dtype="int16", casting="unsafe")
        assert found.strides == wanted.strides
        np.testing.assert_array_equal(found.asnumpy(), wanted)


def test_numbers_of_numpys_round_the_second_value_of_a_range(executor: str) -> None:
    for arguments in (
        (np.float32(0.24), 2.18),
        (np.float32(0.24), 2.18, np.float32(0.1)),
        (np.float16(0.24), 2.18, 0.1),
        (0.1, np.float32(7.18), np.float16(0.3)),
        (np.int8(2), np.float32(7.18)),
    ):
        compare(lambda xp, a=arguments: xp.arange(*a), tolerance=4)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_the_median_of_nothing_is_nan(dtype: str) -> None:
    for axis in (0, 1, None, (0, 1)):
        for name in ("median", "nanmedian"):
            compare(
                lambda xp, n=name, a=axis: getattr(xp, n)(xp.zeros((0, 3), dtype=dtype), axis=a)
            )
    with pytest.raises(dp.ShapeError, match="must not be empty along 0"):
        dp.quantile(dp.zeros((0, 3)), 0.5, axis=0)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int16", "bool", "complex64"])
def test_complex_numbers_are_truncated_to_the_dtype_to_compute_in(
    dtype: str, executor: str
) -> None:
    for number in (0.75 - 1j, 2j, np.complex64(2 + 1j), 2.5):
        for name in ("maximum", "add", "equal"):
            if name == "equal" and dtype != "bool":
                continue
            compare(
                lambda xp, n=name, v=number: getattr(xp, n)(
                    v, xp.asarray([0.5, -2, 0], dtype="float32"), dtype=dtype, casting="unsafe"
                )
            )


@pytest.mark.parametrize("number", [-1.5, 70000.0, float("nan"), float("inf"), -1.5 + 2j])
def test_floats_of_pythons_wrap_where_their_conversion_is_unsafe(number: complex) -> None:
    x = np.asarray([0.5, -2, 3], "float16")
    for dtype in ("uint16", "int16", "uint64"):
        compare(
            lambda xp, t=dtype: xp.fmin(xp.asarray(x), number, dtype=t, casting="unsafe"),
        )


def test_nan_next_to_a_single_point_has_its_value(executor: str) -> None:
    every = np.asarray([np.nan, -2, 3, np.inf], "float32")
    for value in (np.float32(-2.5), np.int32(4), np.complex128(1 + 2j)):
        for ends in ({}, {"left": 7.0}, {"left": 1.0, "right": 9.0}):
            x = every if ends else every[0]
            compare(
                lambda xp, x=x, v=value, e=ends: xp.interp(
                    xp.asarray(x), xp.asarray([1.5]), xp.asarray(v[None]), **e
                )
            )


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_axes_of_length_one_do_not_affect_the_order(order: Literal["C", "F", "A", "K"]) -> None:
    for axes in ((0, 2, 1), (1, 2, 0), (2, 1, 0), (2, 0, 1)):
        for shape in ((2, 3, 5), (1, 3, 2)):
            x = np.ones((1, 4, 2), "float16")
            wanted = np.zeros_like(x.transpose(axes), shape=shape, order=order)
            found = dp.zeros_like(dp.asarray(x).transpose(axes), shape=shape, order=order)
            assert found.strides == wanted.strides, axes


@pytest.mark.parametrize("number", [-2, 2.5, 1j])
def test_numbers_that_do_not_fit_by_kind_are_refused_in_a_dtype(number: complex) -> None:
    for dtype in ("bool", "int16", "float32"):
        x = np.ones(2, dtype)
        for casting in ("same_kind", "unsafe"):
            options: dict[str, Any] = {"dtype": dtype, "casting": casting}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = np.add(x, number, **options)  # type: ignore[call-overload]
            except TypeError:
                with pytest.raises(dp.DTypeError):
                    dp.add(dp.asarray(x), number, **options)
            else:
                found = dp.add(dp.asarray(x), number, **options)
                assert found.dtype == wanted.dtype
                assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int16", None])
def test_out_holds_what_a_sum_starts_with(dtype: str | None) -> None:
    for values in ([1.0], [0.25, 0.5], [-2.5, 5.5]):
        for start in (-1, 2):
            for kind in ("bool", "uint8", "int8"):
                for name in ("sum", "prod"):
                    compare(
                        lambda xp, v=values, s=start, k=kind, n=name: getattr(xp, n)(
                            xp.asarray(v), dtype=dtype, initial=s, out=xp.zeros((), dtype=k)
                        )
                    )


def test_orders_of_comparisons_beyond_a_dtype() -> None:
    x = np.ones((4, 2, 4), "int32")
    with force("library"):
        assert (dp.asarray(x).T <= 2**60).strides == (x.T <= 2**60).strides


def test_sums_of_integers_into_booleans_wrap_in_their_own_dtype() -> None:
    x = np.asarray([255, 1, 1, 254, 1, 0, 2], "uint8")
    for name in ("cumsum", "cumprod", "nancumsum"):
        compare(lambda xp, n=name: getattr(xp, n)(xp.asarray(x), out=xp.zeros(7, dtype="bool")))
    compare(lambda xp: xp.sum(xp.asarray(x[:2]), out=xp.zeros((), dtype="bool")))


@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_out_holds_what_an_extreme_starts_with(name: str) -> None:
    for dtype in ("int32", "int8", "float32"):
        for start in (-7.5, 1e6):
            compare(
                lambda xp, d=dtype, s=start: getattr(xp, name)(
                    xp.asarray([2, -3], dtype=d), initial=s, out=xp.zeros((), dtype="float32")
                )
            )


@pytest.mark.parametrize("tier_name", ["library", "fused", "host"])
def test_complex_quotients_of_zeros_and_infinities(tier_name: str) -> None:
    parts = np.asarray([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
    numbers = np.empty((7, 7), "complex128")
    numbers.real, numbers.imag = parts, parts[:, None]
    numbers = numbers.ravel()
    with tier(tier_name):
        for dtype in ("complex64", "complex128"):
            x = numbers.astype(dtype)
            compare(lambda xp, x=x: xp.asarray(x)[:, None] / xp.asarray(x))
            compare(lambda xp, x=x: xp.divide(xp.asarray(x), -0.0))
            compare(lambda xp, x=x: 1.5 / xp.asarray(x))
        compare(
            lambda xp: xp.divide(
                xp.asarray(parts)[:, None], xp.asarray(parts), order="F", dtype="complex128"
            )
        )


@pytest.mark.parametrize("old", [(2, 3), (3, 2, 2), (4,), (0, 3)])
@pytest.mark.parametrize("new", [(1, 3, 2), (6,), (5, 3), (2, 2), (0,)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_that_is_resized_keeps_the_order_of_its_memory(
    old: Any, new: Any, order: Any
) -> None:
    def resized(xp: Any) -> Any:
        x = xp.asarray(np.array(np.arange(np.prod(old)).reshape(old), order=order), copy=True)
        x.resize(new, refcheck=False)
        return x

    compare(resized)
    assert resized(dp).flags.f_contiguous == resized(np).flags.f_contiguous


@pytest.mark.parametrize("name", ["concat", "stack", "hstack"])
def test_arrays_joined_into_out_are_converted_directly(name: str) -> None:
    """It is not converted to the common dtype first: a float64 cannot hold a uint64."""
    large = np.asarray([2**64 - 1, 2**63 + 2**32 + 7, 5], dtype="uint64")
    halves = np.asarray([2.5, 7.0, 1.5], dtype="float16")

    def joined(xp: Any, dtype: str) -> Any:
        out = xp.zeros((2, 3) if name == "stack" else 6, dtype=dtype)
        arrays = [xp.asarray(large), xp.asarray(halves)]
        if name == "hstack":
            return xp.hstack(arrays, dtype=dtype, casting="unsafe")
        return getattr(xp, name)(arrays, out=out, casting="unsafe")

    for dtype in ("uint32", "int64", "uint64", "float32", "uint8"):
        compare(lambda xp, d=dtype: joined(xp, d))


@pytest.mark.parametrize("obj", [1, slice(1, 2)])
def test_slices_of_transposed_arrays_are_deleted(obj: Any) -> None:
    values = np.arange(32.0).reshape(4, 1, 2, 4)
    for axes in ((2, 3, 0, 1), (1, 0, 3, 2), (3, 2, 1, 0)):
        for axis in range(4):
            if values.transpose(axes).shape[axis] < 2:
                continue
            found = dp.delete(dp.asarray(values).transpose(axes), obj, axis)
            wanted = np.delete(values.transpose(axes), obj, axis)
            np.testing.assert_array_equal(found.asnumpy(), wanted)


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


_WAYS_TO_UNSIGNED = (
    *("all", "slice", "one", "positions", "mask", "out", "copyto", "astype"),
    *("pad", "sum", "prod", "cumsum", "cumprod"),
)


def _written(xp: Any, way: str, values: np.ndarray, dtype: str) -> Any:
    x, target = xp.asarray(values), xp.zeros(values.shape, dtype=dtype)
    positions = xp.asarray(np.arange(values.size)[::-1].copy())
    is_even = xp.asarray(np.arange(values.size) % 2 == 0)
    match way:
        case "all":
            target[...] = x
        case "slice":
            target[1:] = x[1:]
        case "one":
            target[...] = x[:1]
        case "positions":
            target[positions] = x
        case "mask":
            target[is_even] = x[is_even]
        case "out":
            xp.add(x, 0, out=target, casting="unsafe")
        case "copyto":
            xp.copyto(target, x, casting="unsafe")
        case "astype":
            return x.astype(dtype)
        case "pad":
            return xp.pad(xp.asarray(values.astype(dtype)), 2, mode="mean")
        case "sum" | "prod" | "cumsum" | "cumprod":
            return getattr(xp, way)(x, dtype=dtype)
    return target


@pytest.mark.parametrize("way", _WAYS_TO_UNSIGNED)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int32", "int64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_beyond_the_signed_integers_become_unsigned_ones(
    source: str, dtype: str, executor: str, way: str
) -> None:
    values = np.full(7, np.iinfo(dtype).max * 0.75 if dtype[0] == "u" else 7).astype(source)
    values[3] = 2.5
    wanted = _written(np, way, values, dtype)
    found = _written(dp, way, values, dtype)
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", ["uint64", "int64", "float64", "float32"])
def test_slopes_at_both_ends_are_rounded_as_those_of_numpy(dtype: str) -> None:
    values = np.full(5, 7459540624423486254, "uint64").astype(dtype)
    for spacing in (1.0, 0.1, 3):
        found = dp.gradient(dp.asarray(values), spacing, edge_order=2).asnumpy()
        np.testing.assert_array_equal(found, np.gradient(values, spacing, edge_order=2))


@pytest.mark.parametrize("axes", [(2, 0, 1), (2, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("extent", [3, 40])
def test_slices_at_positions_of_transposed_arrays(axes: tuple[int, int, int], extent: int) -> None:
    values = np.arange(extent * extent * 5.0).reshape(extent, 5, extent)
    given, x = values.transpose(axes), dp.asarray(values).transpose(axes)
    for axis in range(3):
        positions = np.arange(given.shape[axis])[::-2].repeat(3)
        is_wanted = np.arange(given.shape[axis]) % 2 == 0
        for found, wanted in (
            (dp.take(x, dp.asarray(positions), axis), given.take(positions, axis)),
            (dp.take(x, positions.tolist(), axis), given.take(positions, axis)),
            (dp.take(x, dp.asarray(positions), axis, mode="wrap"), given.take(positions, axis)),
            (dp.compress(dp.asarray(is_wanted), x, axis), np.compress(is_wanted, given, axis)),
            (dp.repeat(x, dp.asarray(is_wanted * 2), axis), np.repeat(given, is_wanted * 2, axis)),
        ):
            np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("mode", ["maximum", "mean", "linear_ramp", "constant", "reflect"])
def test_zero_dimensional_arrays_are_padded_to_themselves(mode: Any) -> None:
    given = np.array(-7, "int16")
    padded = dp.pad(dp.asarray(given), 2, mode=mode)
    assert (padded.dtype, padded.tolist()) == (given.dtype, np.pad(given, 2, mode=mode).tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scalar", [False, 2])
def test_a_scalar_among_integers_has_the_requested_dtype(scalar: Any, dtype: str) -> None:
    for exponent in (np.array(4, "uint16"), np.array([1, 2, 3], "int32")):
        wanted = np.ldexp(scalar, exponent, dtype=dtype)
        found = dp.ldexp(scalar, dp.asarray(exponent), dtype=dtype)
        assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())


@pytest.mark.parametrize("name", ["cumsum", "sum", "cumprod"])
def test_sums_into_another_kind_are_in_the_common_dtype(name: str, executor: str) -> None:
    whole = np.array([1488732481, 1636968864, -1372717109, -2147483648], "int32")
    halves = np.array([-0.0017, 1475, 0.0136, -6.93, -145.25, 3.1], "float16")
    for given, dtype in ((whole, "float16"), (halves, "int32"), (halves, "float32")):
        shape = given.shape if name.startswith("cum") else ()
        wanted, out = np.zeros(shape, dtype), dp.zeros(shape, dtype=dtype)
        with np.errstate(all="ignore"):
            getattr(np, name)(given, out=wanted)
        getattr(dp, name)(dp.asarray(given), out=out)
        np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["nanmedian", "nanquantile", "nanpercentile"])
@pytest.mark.parametrize("count", [4, 30_000])
def test_numbers_among_nan_stay_where_they_are_along_no_axis(name: str, count: int) -> None:
    values = np.resize(np.array([1, np.nan, 3, 2], "float32"), count)
    fractions = () if name == "nanmedian" else (0.5,)
    for given in (values, values.reshape(2, -1)):
        for axis in ((), []):
            found = getattr(dp, name)(dp.asarray(given), *fractions, axis=axis)
            np.testing.assert_array_equal(found.asnumpy(), given)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("second", [-815618927, 1e30, math.inf, -math.inf, math.nan, 2, True, 1j])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "complex64"])
def test_close_to_a_number_that_the_dtype_does_not_hold(second: Any, dtype: str) -> None:
    for given in (np.arange(5).astype(dtype), np.arange(20_000).astype(dtype)):
        for tolerances in ((2.62, 0.22), (1e-5, 1e-8)):
            wanted = np.isclose(given, second, *tolerances)
            found = dp.isclose(dp.asarray(given), second, *tolerances)
            np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:All-NaN slice")
@pytest.mark.parametrize("method", ["linear", "lower", "nearest", "inverted_cdf"])
@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float32"])
def test_a_quantile_of_no_numbers_is_none(method: Any, dtype: str) -> None:
    for shape, axis in (((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1)):
        given = np.zeros(shape, dtype)
        wanted = np.nanquantile(given, 0.5, axis=axis, method=method)
        found = dp.nanquantile(dp.asarray(given), 0.5, axis=axis, method=method)
        np.testing.assert_array_equal(found.asnumpy(), wanted)
        assert found.dtype == wanted.dtype


def test_interp_with_a_period_leaves_its_arguments(executor: str) -> None:
    x, xp, fp = dp.asarray([-1.5, 7.0]), dp.asarray([-5.5, 2.0]), dp.asarray([1.0, 2.0])
    found = dp.interp(x, xp, fp, period=5)
    assert [*x.tolist(), *xp.tolist()] == [-1.5, 7.0, -5.5, 2.0]
    wanted = np.interp([-1.5, 7.0], [-5.5, 2.0], [1.0, 2.0], period=5)
    np.testing.assert_allclose(found.asnumpy(), wanted)
    large = np.array([2**63 - 1, 5515018945614490059, 7])  # remainders of floats, as in NumPy
    found = dp.interp(dp.asarray(large), xp, fp, period=2)
    wanted = np.interp(large, [-5.5, 2.0], [1.0, 2.0], period=2)
    np.testing.assert_allclose(found.asnumpy(), wanted)


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
    given, mask = np.array([[7, -2, 3], [1, 5, 2]]), np.array([[True, False, True], [False] * 3])
    options: tuple[dict[str, Any], ...] = (
        {},
        {"initial": 2},
        {"initial": 3, "where": mask},
        {"initial": -3, "where": mask},
        {"where": mask[0], "initial": 1, "keepdims": True},
        {"where": mask},
    )
    for each in options:
        ours = each | ({"where": dp.asarray(each["where"])} if "where" in each else {})
        x = given if name != "power" else abs(given)
        try:
            with np.errstate(all="ignore"):
                wanted = getattr(np, name).reduce(x, axis, **each)
        except ValueError:
            with pytest.raises(dp.exceptions.ArgumentError, match="initial="):
                getattr(dp, name).reduce(dp.asarray(x), axis, **ours)
            continue
        found = getattr(dp, name).reduce(dp.asarray(x), axis, **ours)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.asnumpy(), wanted)
    one = np.array([-3])
    found = getattr(dp, name).reduce(dp.asarray(one))
    assert found.item() == pytest.approx(getattr(np, name).reduce(one).item())


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
@pytest.mark.parametrize("optimize", [None, False, True, "greedy", "optimal"])
def test_sums_of_products_of_three_dtypes(optimize: Any, count: int, executor: str) -> None:
    """The sum has the arrays' common dtype; with a given order, each product has its factors'."""
    for dtypes in (("float16", "int8", "uint8"), ("int8", "uint8", "float16"), ("u1", "i1", "f4")):
        x = [np.ones((2, 3), dtypes[0]), np.ones((3, 4), dtypes[1]), np.ones((4, count), dtypes[2])]
        option = {} if optimize is None else {"optimize": optimize}
        found = dp.einsum("ij,jk,kl->il", *map(dp.asarray, x), **option)
        wanted = np.einsum("ij,jk,kl->il", *x, **option)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("assume_unique", [False, True])
def test_a_nan_of_one_array_is_not_that_of_the_other(assume_unique: bool, executor: str) -> None:
    pairs = [([1.0, np.nan], [np.nan, 2.0]), ([1.0, 2.0], [2.0, np.nan]), ([], [np.nan]), ([], [])]
    if not assume_unique:
        pairs.append(([np.nan, np.nan, 1.0, 1.0], [np.nan, np.nan]))
    for first, second in pairs:
        wanted = np.setxor1d(first, second, assume_unique)
        found = dp.setxor1d(*map(dp.asarray, (first, second)), assume_unique)
        np.testing.assert_array_equal(found.asnumpy(), wanted)


def test_operands_of_at_are_not_converted_first(executor: str) -> None:
    for name, value in (("less", 2.5), ("greater_equal", -math.inf), ("less", 2 + 1j)):
        wanted, found = np.array([2, 3, 4]), dp.asarray([2, 3, 4])
        getattr(np, name).at(wanted, [0, 2], value)
        getattr(dp, name).at(found, [0, 2], value)
        assert found.tolist() == wanted.tolist()
    wanted, found = np.array([2.5, 3.0]), dp.asarray([2.5, 3.0])
    np.power.at(wanted, [0, 1], True)
    dp.power.at(found, [0, 1], True)
    assert found.tolist() == wanted.tolist()
    least = np.array([-128, 3, -128, 7], "int8")
    np.testing.assert_array_equal(
        dp.lcm.accumulate(dp.asarray(least)).asnumpy(), np.lcm.accumulate(least)
    )


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_singular_values_of_stacks_of_hermitian_matrices(dtype: str, executor: str) -> None:
    values = np.random.default_rng(1).normal(size=(3, 1, 4, 4)).astype(dtype)
    values = values + np.conj(np.swapaxes(values, -1, -2))
    u, s, vh = dp.linalg.svd(dp.asarray(values), hermitian=True)
    alone = dp.linalg.svd(dp.asarray(values), compute_uv=False, hermitian=True)
    np.testing.assert_allclose(s.asnumpy(), np.linalg.svd(values)[1], rtol=1e-4)
    np.testing.assert_allclose(alone.asnumpy(), s.asnumpy(), rtol=1e-4)
    again = (u * s[..., None, :]) @ vh
    np.testing.assert_allclose(again.asnumpy(), values, atol=1e-5)


def test_polynomials_of_float16_and_without_roots() -> None:
    compare(lambda xp: xp.poly(xp.asarray([1.0, 2.0], dtype="float16")))
    compare(lambda xp: xp.roots(xp.asarray([2.0], dtype="float32")))
    u = [1.0, -1.0, -14.0, 24.0]
    for part in (0, 1):
        compare(
            lambda xp, p=part: xp.polydiv(xp.asarray(u), xp.asarray([-3.0, -6.0], dtype="float32"))[
                p
            ]
        )
        compare(lambda xp, p=part: xp.polydiv(xp.asarray([1.0, np.nan]), xp.asarray([1.0]))[p])


def test_dtypes_of_histograms_and_covariances() -> None:
    for part in (0, 1, 2):
        compare(
            lambda xp, p=part: xp.histogram2d(
                xp.asarray([1, 2, 2]), xp.asarray([0.5, 1.5, 1.0], dtype="float32"), 2
            )[p]
        )
    x = [[1.0, 2.0, 4.0], [3.0, 1.0, 0.5]]
    compare(lambda xp: xp.cov(xp.asarray(x), aweights=xp.asarray([0.1, 0.2, 0.3]), dtype="float32"))
    compare(lambda xp: xp.cov(xp.asarray(x), fweights=xp.asarray([1, 2, 3]), dtype="float32"))
    with pytest.raises(dp.exceptions.ShapeError):  # NumPy accepts a y of one row
        dp.corrcoef(dp.ones((1, 4)), dp.ones((1, 4)), rowvar=False)


@pytest.mark.parametrize(
    "rule", ["auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"]
)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_rules_for_bins_where_the_host_may_not_compute(rule: str, dtype: str) -> None:
    values = (np.random.default_rng(3).normal(size=200) * 9).astype(dtype)
    for limits_of in (None, (-4.0, 7.5)):
        with dp.config.override(host_tier=False):
            edges = dp.histogram_bin_edges(dp.asarray(values), rule, range=limits_of)
            counts, _ = dp.histogram(dp.asarray(values), rule, range=limits_of)
        wanted, edges_wanted = np.histogram(values, rule, range=limits_of)
        np.testing.assert_allclose(edges.asnumpy(), edges_wanted)
        assert counts.tolist() == wanted.tolist()
    for host_tier in (True, False):
        with dp.config.override(host_tier=host_tier):
            with pytest.raises(dp.exceptions.ArgumentError, match="'auto'"):
                dp.histogram(dp.ones(3), "none of them")
            with pytest.raises(TypeError, match="weights"):
                dp.histogram(dp.ones(3), rule, weights=dp.ones(3))


@pytest.mark.parametrize("coordinates", [[0.0, 1.0, 3.0, 6.0, 7.0], [0, 2, 4, 6, 8]])
def test_slopes_next_to_infinities_and_of_float16(coordinates: list[Any], executor: str) -> None:
    with np.errstate(all="ignore"):
        for dtype in ("float16", "float32", "float64"):
            x = np.array([1.25, -np.inf, 0.41, 7.0, np.inf], dtype)
            found = dp.gradient(dp.asarray(x), dp.asarray(coordinates))
            np.testing.assert_array_equal(found.asnumpy(), np.gradient(x, coordinates))


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


STORES: dict[str, Any] = {
    "astype": lambda x, dtype: x.astype(dtype),
    "setitem": lambda x, dtype: _with(dp.zeros(x.shape, dtype=dtype), lambda y: _set(y, ..., x)),
    "mask": lambda x, dtype: _with(dp.zeros(x.shape, dtype=dtype), lambda y: _set(y, x == x, x)),
    "out": lambda x, dtype: dp.add(x, 0, out=dp.zeros(x.shape, dtype=dtype), casting="unsafe"),
    "sum": lambda x, dtype: dp.sum(x[:, None], axis=1, dtype=dtype),
    "cumsum": lambda x, dtype: dp.cumsum(x[:, None], axis=1, dtype=dtype)[:, 0],
    "concatenate": lambda x, dtype: dp.concatenate([x], dtype=dtype, casting="unsafe"),
}


def _with(y: Any, write: Any) -> Any:
    write(y)
    return y


def _set(y: Any, index: Any, value: Any) -> None:
    y[index] = value


@pytest.mark.parametrize("how", list(STORES))
@pytest.mark.parametrize("count", [10, 20_000])
@pytest.mark.sample(3)
def test_floats_become_integers_of_eight_and_sixteen_bits(
    how: str, count: int, executor: str
) -> None:
    """Without AVX-512, 200.0 became 127 in dpnp's `uint8`, and in `int8` of kernels."""
    values = [-2.5, 1.5, 200.7, -0.9, 100.0, -100.0, 127.5, 255.0, 129.0, 300.0, -300.0, 4e4, -4e4]
    values = np.resize(values, count)
    for source in ("float16", "float32", "float64"):
        for dtype in ("uint8", "int8", "uint16", "int16"):
            x = values.astype(source)
            with np.errstate(invalid="ignore"):
                found = STORES[how](dp.asarray(x), dtype)
                np.testing.assert_array_equal(found.asnumpy(), x.astype(dtype))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_integers_round_beyond_their_dtype_where_out_holds_that(dtype: str, executor: str) -> None:
    given = np.array([-32768, 32767, 1234], "int16")
    wanted = np.round(given, -2, out=np.zeros(3, dtype))
    found = dp.round(dp.asarray(given), -2, out=dp.zeros(3, dtype=dtype))
    np.testing.assert_array_equal(found.asnumpy(), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_edges_between_limits_are_floats_of_python(dtype: str, executor: str) -> None:
    given = np.array([1, 2, 2, 3], dtype)
    found = dp.histogramdd(dp.asarray(given), 2, range=[(0.0, 4.0)])
    wanted = np.histogramdd(given, 2, range=[(0.0, 4.0)])
    np.testing.assert_array_equal(found[0].asnumpy(), wanted[0])
    np.testing.assert_array_equal(found[1][0].asnumpy(), wanted[1][0], strict=True)


def test_integers_with_weights_are_in_numpys_bins(executor: str) -> None:
    given, weights = np.array([0, 0, 1, 2, 9], "uint8"), np.array([1.5, 2, 4, 8, 16], "float32")
    for limits_of in ((-0.2, 0.3), (-3, 7), None):
        wanted = np.histogram(given, 5, limits_of, weights=weights)
        found = dp.histogram(dp.asarray(given), 5, limits_of, weights=dp.asarray(weights))
        edges = dp.histogram_bin_edges(dp.asarray(given), 5, limits_of)
        np.testing.assert_array_equal(found[0].asnumpy(), wanted[0], strict=True)
        np.testing.assert_array_equal(edges.asnumpy(), wanted[1], strict=True)


def test_clip_without_bounds_and_inserts_of_matrices(executor: str) -> None:
    columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = dp.clip(dp.asarray(columns, order="F"))
    assert found.flags.f_contiguous
    with pytest.raises(dp.exceptions.ShapeError, match="it has 2"):
        dp.insert(dp.arange(9.0), [[1], [2]], dp.zeros(2))


def test_equations_with_one_number_on_all_right_sides() -> None:
    matrix = np.array([[8.0, 0.7, -1.6, -3.8], [-4.5, 12.4, 2.5, -1.8]])
    with dp.config.override(host_tier=False):
        side = dp.broadcast_to(dp.asarray([-2.5]), (2,))
        found = dp.linalg.lstsq(dp.asarray(matrix), side)[0]
    wanted = np.linalg.lstsq(matrix, np.full(2, -2.5), rcond=None)[0]
    np.testing.assert_allclose(found.asnumpy(), wanted)


def test_views_of_axes_of_one_element_and_near_multiples_of_their_size() -> None:
    x = np.arange(12, dtype="uint16").reshape(3, 4, 1)
    found = dp.permute_dims(dp.asarray(x), (0, 2, 1)).view("float32")
    wanted = np.transpose(x, (0, 2, 1)).view("float32")
    np.testing.assert_array_equal(found.asnumpy(), wanted)
    assert (found * 2 + found).shape == wanted.shape
    with pytest.raises(dp.exceptions.ShapeError, match="aligned to 8 bytes"):
        dp.ones((5, 4), dtype="float32")[:, 1:3].view("complex64")
