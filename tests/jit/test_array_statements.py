"""Array statements inside ``prange`` loops: on devices other than CPUs, loops of a work-item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.jit.forms import function_of

RNG = np.random.default_rng(36)


def rows(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(a.shape[0]):
        out[i, :] = a[i, :] * 2 + b[i]


def shifted(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(a.shape[0]):
        out[i, 1:-1] = (a[i, 2:] - b[i, :-2]) / 2
        out[i, 0] = a[i, -1]


def reversed_rows(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(1, a.shape[0], 2):
        out[i] = a[i, ::-1]
        out[i, ::2] += b[i, 0]


def sums(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(a.shape[0]):
        out[i, 0] = a[i].sum() + np.sum(a[i, :] * b[i, :])
        out[i, 1] = a[i].max() - np.min(b[i, 1:])
        out[i, 2] = a[i].mean()
        out[i, 3] = a[i] @ b[i] + np.dot(a[i], a[i])


def normalized(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(a.shape[0]):
        row = a[i]
        peak = row.max()
        out[i, :] = np.exp(row - peak)
        out[i, :] = out[i, :] / out[i, 0] / out[i].sum()


def in_place(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(out.shape[0]):
        out[i, :] = np.minimum(a[i, :], b[i, 0] + a[0, :])
        out[i, 1:] -= np.where(b[i, 1:] > 0.5, b[i, 1:], 1)
        out[i] *= 2


def blocks(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(a.shape[0] - 1):
        out[i, 0] = np.sqrt(np.sum(np.square(a[i : i + 2, 1:])))
        out[i, 1:] = (a[i : i + 2, 1:].T)[0, 0] + np.maximum(a[i, 1:], b[i + 1, :-1])


def differences(a: Any, b: Any, out: Any) -> None:
    for i in dp.prange(a.shape[0]):
        total = 0.0
        for j in range(b.shape[0]):
            if j % 2:
                continue
            d = b[j, :] - a[i, :]
            total += np.sqrt((d * d).sum() + 1) + d[0]
        out[i, 0] = total


def reduced(a: Any, b: Any, out: Any) -> Any:
    total = 0.0
    for i in dp.prange(a.shape[0]):
        total += (a[i, :] * b[i, :]).sum()
    return total


def outer(a: Any, b: Any, out: Any) -> None:
    for _ in dp.prange(1):
        out[:, :] = a[:, 0][:, None] * b[0, : out.shape[1]][None, :]


CASES = [
    *(rows, shifted, reversed_rows, sums, normalized, in_place, blocks, differences, reduced),
    outer,
]


@pytest.fixture
def no_cpu(pretend: Any) -> None:
    pretend(shares_memory=False)


@pytest.mark.usefixtures("no_cpu")
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.sample(4)
def test_a_work_item_computes_with_slices(function: Callable[..., Any], dtype: str) -> None:
    hosts = [RNG.random((5, 6)).astype(dtype) for _ in range(2)] + [np.zeros((5, 6), dtype)]
    arrays = [dp.asarray(each) for each in hosts]
    compiled = dp.jit(function)
    found = compiled(*arrays)
    wanted = function(*hosts)
    tolerance = 1e-12 if dtype == "float64" else 2e-6
    for one, other in zip(arrays, hosts, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, tolerance, tolerance)
    if wanted is not None:
        np.testing.assert_allclose(float(found), float(wanted), tolerance)
    assert "kernel over 1 dimension" in str(dp.explain(compiled, *arrays))


def test_the_simulator_runs_slices_in_prange_by_elements() -> None:
    def overlapping(a: Any) -> None:
        for i in dp.prange(a.shape[0] - 1):
            a[i + 1, :] = a[i, :]

    with pytest.raises(dp.exceptions.SimulationError, match=r"a\[i \+ 1, :\] = a\[i, :\]"):
        dp.simulate(dp.jit(overlapping), dp.ones((4, 3)))


@pytest.mark.usefixtures("no_cpu")
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_slices_of_integers_wrap_as_in_numpy(dtype: str) -> None:
    hosts = [RNG.integers(0, 255, (4, 5)).astype(dtype) for _ in range(3)]
    arrays = [dp.asarray(each) for each in hosts]

    def wrapped(a: Any, b: Any, out: Any) -> None:
        for i in dp.prange(a.shape[0]):
            out[i, :] = (a[i, :] * b[i, :] + 7) // 3
            out[i, 0] = a[i].max() - b[i].min()
            out[i, 1] = (a[i] > 100).any()
            out[i, 2:] = (a[i, 2:] > 9) & ~(b[i, 2:] < 99)
            out[i, :1] += np.invert(b[i, :1]) * np.positive(np.negative(np.square(a[i, :1])))
            out[i, 3] = np.sum(~(a[i] > 100)) + (~~(b[i] > 9)).all()

    dp.jit(wrapped)(*arrays)
    wrapped(*hosts)
    np.testing.assert_array_equal(arrays[2].asnumpy(), hosts[2])


_WORK = [
    "out[i, :] = x[i, :] * 2 + y",
    "t = x[i] * y; out[i] = t / t.sum(); out[i, 1] = t[2] + t[-1]",
    "out[i, 0] = x[i].max() + np.dot(x[i], y) + x[i].mean() + (x[i] * y).std() + x[i].argmin()",
    "out[i, 1:] += np.where(x[i, 1:] > 0.5, 1, y[1:])",
    "out[i, :] = out[i, :] * 2; out[i] -= ~(x[i, 0] < 0.5)",
    "t = x[i] + 1; x[i] = t * t; out[i] = np.maximum(x[i], y) + x[:, None, 1][i]",
    "row = out[i]; row += y; row[1:3] = x[i, 2:4] ** 2",
    "m = np.sign(x[i] - 0.5); out[i] = np.reciprocal(m * 2.0 + 3) + np.abs(m)",
    "out[i, x.shape[1] - 1] = (x[i] > 0.5).any() + (y * y > 0).all()",
]
_REFUSED = {
    "x[i, 1:] = x[i, :-1]": "may overlap",
    "out[i] = (out if y[0] > 9 else out[::-1])[i, ::-1]": "may overlap",
    "t = x[i] * 2; t += 1; out[i] = t": "is a new array",
    "t = np.zeros(6); out[i] = t": "is a new array",
    "out[i] = np.cumsum(x[i])": "np.cumsum works on whole arrays",
    "out[i] = x.sum(axis=0)": "is a new array",
    "t = x[i] * 2; x[i, 0] = 1; out[i] = t": "an array is changed",
    "t = x[i]; t = t * 2 if y[0] > 9 else t; out[i] = t": "is a new array",
}


def _work(body: str) -> Any:
    loop = "".join(f"        {line.strip()}\n" for line in body.split(";"))
    return function_of(f"def f(x, y, out):\n    for i in dp.prange(x.shape[0]):\n{loop}")


@pytest.mark.usefixtures("no_cpu")
@pytest.mark.parametrize("body", _WORK)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("run", [lambda f, *x: f(*x), dp.simulate])
def test_array_statements_of_work_items(body: str, dtype: str, run: Any) -> None:
    function = _work(body)
    hosts = [RNG.random(shape).astype(dtype) for shape in ((5, 6), 6, (5, 6))]
    arrays = list(map(dp.asarray, hosts))
    run(dp.jit(function), *arrays)
    function(*hosts)
    for found, wanted in zip(arrays, hosts, strict=True):
        np.testing.assert_allclose(found.asnumpy(), wanted, 1e-5)


@pytest.mark.usefixtures("no_cpu")
@pytest.mark.parametrize("body", _REFUSED)
def test_array_statements_that_need_memory_are_refused(body: str) -> None:
    arrays = dp.ones((5, 6)), dp.ones(6), dp.zeros((5, 6))
    with pytest.raises(dp.KernelCompileError, match=_REFUSED[body]):
        dp.jit(_work(body))(*arrays)
    assert not arrays[2].any()


@pytest.mark.usefixtures("no_cpu")
def test_an_expression_from_before_a_loop_that_changes_its_array() -> None:
    def f(x: Any, out: Any) -> None:
        for i in dp.prange(x.shape[0]):
            t = x[i] * 2
            for _ in range(2):
                out[i] += t
                x[i, 0] = 5

    with pytest.raises(dp.KernelCompileError, match="an array is changed"):
        dp.jit(f)(dp.ones((5, 6)), dp.zeros((5, 6)))


@pytest.mark.usefixtures("no_cpu")
def test_sizes_of_work_items_are_compared_in_debug_mode() -> None:
    function = dp.jit(_work(_WORK[0]))
    arrays = dp.ones((5, 6)), dp.ones(7), dp.zeros((5, 6))
    with dp.config.override(debug=True), pytest.raises(dp.KernelExecutionError, match="broadcast"):
        function(*arrays)
    with pytest.raises(dp.SimulationError, match="broadcast"):
        dp.simulate(function, *arrays)


def test_numpy_functions_of_numbers_in_prange_are_kernels() -> None:
    def roots(x: Any, out: Any) -> None:
        for i in dp.prange(x.shape[0]):
            out[i] = np.sqrt(x[i]) + np.maximum(x[i], 0.5) * np.arctan2(x[i], 2)

    host = RNG.random(9).astype("float32")
    x, out = dp.asarray(host), dp.empty(9, dtype="float32")
    compiled = dp.jit(roots)
    compiled(x, out)
    wanted = np.zeros(9, "float32")
    roots(host, wanted)
    np.testing.assert_allclose(out.asnumpy(), wanted, 2e-6)
    assert "kernel over 1 dimension" in str(dp.explain(compiled, x, out))
