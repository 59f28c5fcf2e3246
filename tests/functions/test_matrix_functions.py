"""Exponentials of matrices, and equations with triangular matrices and Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

RNG = np.random.default_rng(0)

pytestmark = pytest.mark.usefixtures("executor")

SHAPES = [
    ((4, 4), (4,)),
    ((4, 4), (4, 2)),
    ((3, 4, 4), (4,)),
    ((3, 4, 4), (4, 2)),
    ((4, 4), (3, 4, 2)),
    ((2, 1, 4, 4), (3, 4, 2)),
    ((0, 4, 4), (4, 2)),
    ((0, 0), (0,)),
    ((4, 4), (4, 0)),
]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * RNG.standard_normal(shape)
    return values.astype(dtype)


def solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(a, b[..., None])[..., 0] if b.ndim == 1 else np.linalg.solve(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("scale", [1e-3, 1, 20])
def test_expm(dtype: str, scale: float, queue: Any) -> None:
    a = (numbers((3, 4, 4), dtype) * scale).astype(dtype)
    a[0] = 0  # the other matrices are scaled by powers of 2; this one need not be
    values, vectors = np.linalg.eig(a[1:].astype("complex128"))
    wanted = vectors @ (np.exp(values)[..., None] * np.linalg.inv(vectors))
    found = dp.linalg.expm(dp.asarray(a, sycl_queue=queue))
    assert found.dtype == dtype
    assert found.queue == queue
    np.testing.assert_array_equal(found[0].asnumpy(), np.eye(4))
    largest = np.abs(wanted).max(axis=(-1, -2), keepdims=True)
    bound = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    assert (np.abs(found[1:].asnumpy() - wanted) <= bound * largest).all()


def test_expm_of_exact_cases() -> None:
    nilpotent = dp.asarray([[0.0, 1e6, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    wanted = [[1, 1e6, 1e6], [0, 1, 2], [0, 0, 1]]
    np.testing.assert_allclose(dp.linalg.expm(nilpotent).asnumpy(), wanted, rtol=1e-12, atol=1e-9)
    integers = dp.linalg.expm(dp.asarray([[0, 0], [0, 1]]))
    np.testing.assert_allclose(integers.asnumpy(), [[1, 0], [0, np.e]], rtol=1e-14)
    for shape in [(0, 0), (0, 3, 3)]:
        assert dp.linalg.expm(dp.ones(shape)).shape == shape
    assert dp.isnan(dp.linalg.expm(dp.asarray([[np.nan, 0.0], [0.0, np.inf]]))).all()


def test_expm_on_a_device_without_the_host() -> None:
    a = numbers((100, 100), "float64") / 3  # dpnp computes it on a sub-device
    wanted = dp.linalg.expm(dp.asarray(a)).asnumpy()
    try:
        device = dp.asarray(a).sycl_device.create_sub_devices(partition=1)[0]
    except Exception:
        pytest.skip("the device has no sub-devices")
    found = dp.linalg.expm(dp.asarray(a, device=device))
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_solve_triangular(
    shapes: Any, dtype: str, lower: bool, trans: Any, unit_diagonal: bool, queue: Any
) -> None:
    a, b = numbers(shapes[0], dtype), numbers(shapes[1], dtype)
    a += 3 * np.eye(a.shape[-1], dtype=dtype)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        triangle = triangle - triangle * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    if trans in (1, 2, "T", "C"):
        triangle = triangle.swapaxes(-1, -2)
    if trans in (2, "C"):
        triangle = triangle.conj()
    found = dp.linalg.solve_triangular(
        dp.asarray(a, sycl_queue=queue),
        dp.asarray(b, sycl_queue=queue),
        trans,
        lower=lower,
        unit_diagonal=unit_diagonal,
    )
    assert found.dtype == dtype
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(
        found.asnumpy(), solved(triangle, b), rtol=tolerance, atol=tolerance, strict=False
    )


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shapes", SHAPES)
def test_cho_solve(shapes: Any, lower: bool, queue: Any) -> None:
    a, b = numbers(shapes[0], "complex128"), numbers(shapes[1], "float64")
    a = a @ a.swapaxes(-1, -2).conj() + np.eye(a.shape[-1])
    factor, side = dp.linalg.cho_factor(dp.asarray(a, sycl_queue=queue), lower=lower)
    assert side is lower
    ones = np.triu(np.ones(a.shape), 1)
    other = dp.asarray(ones if lower else ones.swapaxes(-1, -2), sycl_queue=queue)
    found = dp.linalg.cho_solve((factor + other, lower), dp.asarray(b, sycl_queue=queue))
    np.testing.assert_allclose(found.asnumpy(), solved(a, b), rtol=1e-8, atol=1e-8)


def test_right_sides_may_be_sequences() -> None:
    factor = dp.linalg.cho_factor(dp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    np.testing.assert_allclose(dp.linalg.cho_solve(factor, [6.0, 7.0]).asnumpy(), [1.0, 1.0])
    found = dp.linalg.solve_triangular(dp.asarray([[2.0, 1.0], [0.0, 4.0]]), (4.0, 8.0))
    np.testing.assert_allclose(found.asnumpy(), [1.0, 2.0])


@pytest.mark.parametrize("view", ["broadcast", "reversed", "every second"])
def test_lu_solve_takes_row_exchanges_that_are_not_contiguous(view: str, queue: Any) -> None:
    a, b = np.triu(numbers((3, 4, 4), "float64")) + 3 * np.eye(4), numbers((4, 2), "float64")
    rows = dp.arange(4, sycl_queue=queue)
    if view == "broadcast":
        rows = dp.broadcast_to(rows, (3, 4))
    elif view == "reversed":
        rows = dp.asarray([[3, 2, 1, 0]] * 3, sycl_queue=queue)[:, ::-1]
    else:
        rows = dp.repeat(dp.broadcast_to(rows, (3, 4)), 2, axis=1)[:, ::2]
    factors = dp.asarray(a, sycl_queue=queue)
    found = dp.linalg.lu_solve((factors, rows), dp.asarray(b, sycl_queue=queue))
    np.testing.assert_allclose(found.asnumpy(), solved(a, b), rtol=1e-10)


WRONG: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (
        dp.linalg.LinAlgError,
        "an element on its diagonal is 0",
        lambda: dp.linalg.solve_triangular(dp.asarray([[1.0, 1.0], [1.0, 0.0]]), dp.ones(2)),
    ),
    (
        dp.ShapeError,
        r"x2 of shape \(3,\) does not fit x1 of shape \(2, 2\); its length must be 2",
        lambda: dp.linalg.solve_triangular(dp.ones((2, 2)), dp.ones(3)),
    ),
    (
        dp.ShapeError,
        "must be square",
        lambda: dp.linalg.solve_triangular(dp.ones((2, 3)), dp.ones(3)),
    ),
    (
        dp.ShapeError,
        "do not broadcast",
        lambda: dp.linalg.solve_triangular(dp.ones((3, 2, 2)), dp.ones((2, 2, 2))),
    ),
    (
        dp.ArgumentError,
        "trans must be 0, 1 or 2 .* not 5; write trans=0",
        lambda: dp.linalg.solve_triangular(dp.ones((2, 2)), dp.ones(2), 5),
    ),
    (
        ValueError,
        "x2 must not contain infs or NaNs; write check_finite=False",
        lambda: dp.linalg.solve_triangular(dp.eye(2), dp.asarray([1.0, np.inf])),
    ),
    (
        dp.DTypeError,
        "float16",
        lambda: dp.linalg.solve_triangular(dp.eye(2), dp.ones(2, dtype="float16")),
    ),
    (
        dp.ArgumentError,
        r"write dp.linalg.cho_solve\(dp.linalg.cho_factor\(a\), b\)",
        lambda: dp.linalg.cho_solve(dp.eye(3), dp.ones(3)),  # type: ignore[arg-type]
    ),
    (
        dp.HostConversionError,
        "cho_solve: c is a NumPy array",
        lambda: dp.linalg.cho_solve((np.eye(3), True), dp.ones(3)),  # type: ignore[arg-type]
    ),
    (
        dp.linalg.LinAlgError,
        "positive definite",
        lambda: dp.linalg.cho_factor(-dp.eye(2)),
    ),
    (dp.DTypeError, "float16", lambda: dp.linalg.expm(dp.eye(2, dtype="float16"))),
    (dp.ShapeError, "must be square", lambda: dp.linalg.expm(dp.ones((2, 3)))),
]


@pytest.mark.parametrize(("kind", "message", "call"), WRONG)
def test_wrong_arguments_raise(
    kind: type[Exception], message: str, call: Callable[[], Any]
) -> None:
    with pytest.raises(kind, match=message):
        call()
