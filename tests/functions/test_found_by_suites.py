"""Bugs found by the test suites of dpnp and SciPy that no other file covers."""

from __future__ import annotations

import copy
from typing import Any, Literal

import numpy as np
import pytest

import dparray as dp
from tests.functions.comparison import compare, same_as_numpy
from tests.support import force


@pytest.mark.parametrize("function", ["convolve", "correlate"])
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "complex128"])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 3), (3, 5), (4, 8), (8, 4), (700, 600)])
def test_convolutions_by_transforms(function: str, dtype: str, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, size).astype(dtype) for size in sizes)
    if dtype == "complex128":
        b = b + 2j * rng.integers(-3, 4, b.size)
    for mode in ("full", "same", "valid"):
        wanted = getattr(np, function)(a, b, mode)
        for method in ("direct", "fft", "auto"):
            found = getattr(dp, function)(dp.asarray(a), dp.asarray(b), mode, method=method)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5, atol=1e-3)


def test_convolutions_by_an_unknown_method() -> None:
    with pytest.raises(ValueError, match="method must be one of direct, fft, auto; got 'slow'"):
        dp.convolve(dp.ones(3), dp.ones(2), method="slow")


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 4), (0, 0)])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
def test_lu(queue: Any, shape: tuple[int, ...], dtype: str) -> None:
    values = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    x = dp.asarray(values, sycl_queue=queue)
    p, low, up = dp.linalg.lu(x)
    assert p.queue == queue
    np.testing.assert_allclose((p @ low @ up).asnumpy(), values, atol=1e-5)
    np.testing.assert_array_equal(low.asnumpy(), np.tril(low.asnumpy()))
    np.testing.assert_array_equal(up.asnumpy(), np.triu(up.asnumpy()))
    assert len(dp.linalg.lu(x, permute_l=True)) == 2
    assert dp.linalg.lu(x, p_indices=True)[0].shape == shape[:-1]
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve(queue: Any, trans: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.random((4, 4)) + 1j * rng.random((4, 4))
    b = rng.random((4, 2))
    factors = dp.linalg.lu_factor(dp.asarray(a, sycl_queue=queue))
    found = dp.linalg.lu_solve(factors, dp.asarray(b, sycl_queue=queue), trans)
    wanted = np.linalg.solve((a, a.T, a.conj().T)[trans], b)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-10)


def test_lu_raises_for_wrong_shapes() -> None:
    factors = dp.linalg.lu_factor(dp.eye(3))
    with pytest.raises(dp.ShapeError, match=r"b of shape \(2,\) does not fit"):
        dp.linalg.lu_solve(factors, dp.ones(2))
    with pytest.raises(dp.ArgumentError, match="trans is 3; it is 0, 1 or 2"):
        dp.linalg.lu_solve(factors, dp.ones(3), 3)
    with pytest.raises(dp.ArgumentError, match="must be a pair"):
        dp.linalg.lu_solve(factors[0], dp.ones(3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="inf"):
        dp.linalg.lu_factor(dp.asarray([[dp.inf]]))
    with pytest.raises(dp.DTypeError, match="float16"):
        dp.linalg.lu(dp.ones((2, 2), dtype="float16"))
    with pytest.raises(dp.ShapeError):
        dp.linalg.lu(dp.ones(2))


@pytest.mark.parametrize("as_list", [True, False])
def test_booleans_as_positions_are_numbers(queue: Any, as_list: bool) -> None:
    x = dp.asarray([5, 6, 7], sycl_queue=queue)
    positions: Any = [True, False]
    if not as_list:
        positions = dp.asarray(positions, sycl_queue=queue)
    assert dp.take(x, positions).tolist() == [6, 5]
    assert dp.take(x, positions, mode="clip").tolist() == [6, 5]
    dp.put(x, positions, [1, 2])
    assert x.tolist() == [2, 1, 7]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_positions_are_integers(dtype: str) -> None:
    positions = dp.asarray([0, 1], dtype=dtype)
    for mode in ("raise", "clip", "wrap"):
        with pytest.raises(TypeError, match=f"take: indices of dtype {dtype} must be integers"):
            dp.take(dp.arange(3), positions, mode=mode)
        with pytest.raises(TypeError, match=f"put: ind of dtype {dtype} must be integers"):
            dp.put(dp.arange(3), positions, 1, mode=mode)
    with pytest.raises(TypeError, match="must be integers"):
        dp.take(dp.arange(3), [0.0, 1.0])


@pytest.mark.parametrize("function", ["place", "putmask"])
def test_values_that_lose_something_are_not_written(function: str) -> None:
    x = dp.asarray([1, 2, 3], dtype="int32")
    with pytest.raises(TypeError, match="values of dtype float64 cannot be cast safely"):
        getattr(dp, function)(x, x > 1, dp.asarray([1.5]))
    getattr(dp, function)(x, x > 1, dp.asarray([8, 9], dtype="int16"))
    assert x.tolist() in ([1, 8, 9], [1, 9, 8])


@pytest.mark.parametrize("function", ["isposinf", "isneginf"])
def test_complex_infinities_have_no_sign(function: str) -> None:
    with pytest.raises(TypeError, match=f"{function}: complex infinities have no sign"):
        getattr(dp, function)(dp.ones(2, dtype="complex64"))


@pytest.mark.parametrize("function", ["fftfreq", "rfftfreq"])
def test_frequencies_of_a_whole_number_of_samples(function: str) -> None:
    with pytest.raises(ValueError, match=f"{function}: n is 10.0; it must be an integer"):
        getattr(dp.fft, function)(10.0)
    assert getattr(dp.fft, function)(np.int64(4)).shape == getattr(np.fft, function)(4).shape


@pytest.mark.parametrize("function", ["ascontiguousarray", "asfortranarray"])
def test_contiguous_arrays_have_a_dimension(function: str) -> None:
    assert getattr(dp, function)(5.0).shape == getattr(np, function)(5.0).shape == (1,)


def test_copies_by_the_copy_module_keep_the_order() -> None:
    turned = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    for x in (np.asfortranarray(np.ones((2, 3))), turned):
        ours = dp.asarray(x)
        for function in (copy.copy, copy.deepcopy):
            assert function(ours).strides == function(x).strides


def test_indices_of_no_dtype_are_floats() -> None:
    same_as_numpy("indices((2, 3), dtype=None)", "indices((2, 3), dtype=None, sparse=True)")
    same_as_numpy("fromfunction(lambda i, j: i * j, (2, 3), dtype=None)")


def test_a_number_of_columns_is_an_integer() -> None:
    for count in (2.0, -1):
        with pytest.raises(dp.ShapeError, match="shape"):
            dp.vander(dp.ones(3), count)
    same_as_numpy("vander(ones(3), count)", count=np.int64(2))


def test_products_fill_an_out_of_more_dimensions(executor: str) -> None:
    same_as_numpy(
        "matmul(arange(3.0), arange(3.0), out=zeros(4))",
        "matmul(ones((2, 3)), ones((3, 2)), out=zeros((4, 2, 2)))",
        "vecdot(ones((2, 3)), ones((2, 3)), out=zeros((4, 2)))",
        "matmul(ones((2, 3)), ones((3, 1)), out=zeros((2, 2)))",
        "matmul(ones((2, 3)), ones((3, 1)), out=zeros((1, 2, 2)))",
        "matmul(ones((2, 3)), ones((3, 1)), out=zeros(3))",
        "dot(ones((2, 3)), ones((3, 2)), out=zeros((4, 2, 2)))",
    )


def test_one_position_in_a_list_takes_many_slices(executor: str) -> None:
    for obj in ([1], [-1], 1):
        for inserted in ([1, 2, 3], [[1], [2], [3]], 7):
            x = np.array([[1, 1], [2, 2], [3, 3]])
            same_as_numpy("insert(x, obj, v, axis=1)", x=x, obj=obj, v=inserted)
            same_as_numpy("insert(x, obj, v, axis=1)", x=x, obj=np.array(obj), v=np.array(inserted))


def test_order_a_of_another_shape_is_by_columns_where_the_array_is() -> None:
    for order in "CF":
        theirs, ours = np.ones((2, 3, 4), order=order), dp.ones((2, 3, 4), order=order)
        for shape in ((4, 2), (5, 4, 2, 3), 7, (2, 3, 4)):
            wanted = np.zeros_like(theirs, order="A", shape=shape).strides
            assert dp.zeros_like(ours, order="A", shape=shape).strides == wanted
            assert dp.empty_like(ours, order="A", shape=shape).strides == wanted


def test_the_order_of_an_einsum() -> None:
    for first, second in ("FF", "FC", "CC"):
        theirs = np.ones((2, 3, 5), order=first), np.ones((4, 3), order=second)
        ours = dp.ones((2, 3, 5), order=first), dp.ones((4, 3), order=second)
        for order in "AFC":
            wanted = np.einsum("...ft,mf->...mt", *theirs, order=order).strides
            assert dp.einsum("...ft,mf->...mt", *ours, order=order).strides == wanted


def test_numbers_in_arrays_are_indices_of_an_einsum() -> None:
    for zero, one in ((np.int64(0), np.int64(1)), (np.asarray(0), np.asarray(1))):
        compare(lambda xp, a=zero, b=one: xp.einsum(xp.ones((2, 3)), [a, b], [b]))
    assert dp.einsum(dp.ones((2, 3)), [dp.asarray(0), dp.asarray(1)], [dp.asarray(0)]).sum() == 6


def test_grids_between_arrays() -> None:
    ends: dict[str, Any] = {"a": np.zeros((10, 1)), "b": np.ones((10, 1))}
    for grid in ("mgrid", "ogrid"):
        same_as_numpy(f"{grid}[a:b:10j]", f"[*{grid}[a:b:10j, a:b:10j]]", **ends)
    with pytest.raises(dp.ShapeError, match="number of points"):
        dp.mgrid[dp.zeros((2, 1)) : 3]


def test_the_size_along_several_axes() -> None:
    x = dp.ones((2, 3, 4))
    assert [dp.size(x, axis) for axis in (None, 0, -1, (0, 2), ())] == [24, 2, 4, 8, 1]


def test_an_einsum_is_converted_to_its_out_on_request() -> None:
    def product(xp: Any, **options: Any) -> Any:
        x = xp.asarray([[1, 2], [3, 4]], dtype="int32")
        return xp.einsum("ij,j", x, x[0], out=xp.zeros(2, dtype="int32"), dtype="f4", **options)

    compare(lambda xp: product(xp, casting="unsafe"))
    with pytest.raises(dp.DTypeError, match=r"does not (convert|fit out)"):
        product(dp, casting="same_kind")


def test_numbers_are_operands_of_an_einsum_in_both_forms() -> None:
    for first in (3, 2.5, np.int64(3)):
        same_as_numpy(
            "einsum(v, [], arange(3.0), [0], [0])", "einsum(',i->', v, arange(3.0))", v=first
        )


def test_a_histogram_of_one_number_and_of_a_list_of_numbers() -> None:
    same_as_numpy("histogramdd(asarray(1.5))[0]", "histogramdd(asarray([0.0, 1.0, 1.0, 3.0]))[0]")
    same_as_numpy("histogramdd([0.0, 1.0, 1.0, 3.0])")


@pytest.mark.parametrize("way", ["library", "fused", "host"])
@pytest.mark.parametrize("dtype", ["uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_round_by_quotients(dtype: str, way: Literal["library", "fused", "host"]) -> None:
    largest = int(np.iinfo(dtype).max)
    x = np.asarray([0, 15, 25, largest // 2 + 5, largest // 3 * 2 + 1, 34463], dtype)
    for decimals in (-1, -2, -5):
        with force(way):
            found = dp.round(dp.asarray(x), decimals).asnumpy()
        wanted = np.round(x, decimals)
        assert found.dtype == wanted.dtype
        near = np.abs(found.astype("longdouble") - wanted.astype("longdouble"))
        assert np.all(near <= 1e-15 * wanted.astype("float64")), (found, wanted)


@pytest.mark.parametrize("way", ["library", "fused", "host"])
def test_large_floats_become_uint64(way: Literal["library", "fused", "host"]) -> None:
    for dtype in ("float32", "float64"):
        x = np.asarray([2.0**63, 1.5 * 2.0**63, 2.0**62, 7.5, 2.0**64 - 2.0**41], dtype)
        with force(way):
            found = (dp.asarray(x) * 1).astype("uint64").asnumpy()
        assert np.array_equal(found, x.astype("uint64"))


def test_bounds_of_clip_promote_together(executor: str) -> None:
    for one, other, third in (("uint16", "int16", "float32"), ("uint8", "int8", "float16")):
        x, low = np.ones(3, one), np.ones(3, other)
        high = np.dtype(third).type(2)
        same_as_numpy("clip(x, low, high)", x=x, low=low, high=high)
        same_as_numpy("clip(x, [True, False, True], 0.5)", x=x)
