"""The part of ``hardware.py`` that compares forms of dparray's kernels, each with its alternative.

A row has the microseconds of both forms, in all and on the device. The first one is the default.
Options of the package that select the others: ``algorithms.tiles.LOOKS_BACK = False`` for scans and
selections in three launches; ``algorithms.quantiles.SELECTS = False`` for medians by a sort;
``algorithms.tiled_transpose._SIDE`` for the size of tiles; ``bytes_in_flight`` of
``dp.config.tuning`` for element-wise kernels, rows in registers and sums of columns.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy import uint32, uint64

import dparray as dp
from dparray.algorithms import quantiles, tiled_transpose, tiles
from dparray.kernel_api import MemoryScope, group_barrier
from tests.cuda.hardware_times import Candidate, device_time, measured

_ROUNDS = 5


class Row(NamedTuple):
    """Forms of a computation, its result, and the allowed relative error."""

    name: str
    forms: dict[str, Callable[[], Any]]
    expected: np.ndarray
    tolerance: float = 0


def _with(module: Any, name: str, value: Any, function: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that is called with another value of a module's option."""

    def call() -> Any:
        before = getattr(module, name)
        setattr(module, name, value)
        try:
            return function()
        finally:
            setattr(module, name, before)

    return call


@dp.kernel
def _transpose_by_division(nd_item: Any, x: Any, out: Any, tile: Any) -> None:
    """Transpose by tiles of 64 x 64, whose place follows from the number of a group."""
    local, side = uint64(nd_item.get_local_id(0)), uint64(64)
    column, begin = local % side, local // side
    m, n = uint64(x.shape[0]), uint64(x.shape[1])
    across = (n + side - uint64(1)) // side
    number = uint64(nd_item.get_group().get_group_id(0))
    line = uint64(uint32(number)) // uint64(uint32(across))
    top, left = line * side, (number - line * across) * side
    for turn in range(16):
        r = begin + uint64(turn * 4)
        if top + r < m and left + column < n:
            tile[r, column] = x[top + r, left + column]
    group_barrier(nd_item.get_group(), MemoryScope.WORK_GROUP)
    for turn in range(16):
        r = begin + uint64(turn * 4)
        if left + r < n and top + column < m:
            out[left + r, top + column] = tile[column, r]


def _transposed_by_division(x: Any) -> Any:
    out = dp.empty(x.shape[::-1], dtype=x.dtype, device=x.device)
    groups = -(-x.shape[0] // 64) * -(-x.shape[1] // 64)
    tile = dp.LocalAccessor((64, 65), x.dtype)
    dp.call_kernel(_transpose_by_division, dp.NdRange(groups * 256, 256), x, out, tile)
    return out


def _sorted_with_passes(x: Any) -> Any:
    """Sort by CuPy, with the passes around it that dparray has left out."""
    import cupy

    with cupy.cuda.Stream.from_external(x.queue):
        own, out = cupy.asarray(x), cupy.empty(x.shape, x.dtype)
        out[...] = cupy.sort(cupy.where(cupy.isnan(own), x.dtype.type(np.nan), own))
    return out


#: The bytes that a work-item loads before it stores, in the forms of a kernel; 1 is one element.
_BYTES_IN_FLIGHT = (16, 32, 1)


def _loading(compute: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
    """Return the forms of an expression with other numbers of bytes in flight."""

    def form(nbytes: int) -> Callable[[], Any]:
        def call() -> Any:
            with dp.config.override(tuning={"gpu": {"bytes_in_flight": nbytes}}):
                found = compute()
                dp.eval(found)
                return found

        return call

    return {f"{nbytes} bytes": form(nbytes) for nbytes in _BYTES_IN_FLIGHT}


def rows_of_expressions(size: int, side: int) -> list[Row]:
    """Return the rows for expressions on vectors, squares and cubes of these sizes."""
    device, generator = dp.Device("cuda:0"), np.random.default_rng(2)
    single = generator.integers(1, 9, size).astype("f4")  # sums are exact in any order
    edge = round((side * side) ** (1 / 3))
    square, cube = single[: side * side].reshape(side, side), single[: edge**3].reshape((edge,) * 3)

    def cross(v: Any) -> Any:
        return v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1]

    def star(v: Any) -> Any:
        inner = v[1:-1, 1:-1, 1:-1]
        total = v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1]
        return total + v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:] - 6 * inner

    cases: dict[str, tuple[np.ndarray, Callable[[Any], Any]]] = {
        "x * 2 of uint8": (single.astype("u1"), lambda v: v * 2),
        "x * 2 of float16": (single.astype("f2"), lambda v: v * 2),
        "x * 2 of float32": (single, lambda v: v * 2),
        "x * x + x of float32": (single, lambda v: v[:-4] * v[4:] + v[:-4]),
        "x * 2 of float64": (single[::2].astype("f8"), lambda v: v * 2),
        "x * 2 of complex64": (single[::2].astype("c8"), lambda v: v * 2),
        "strided x * 2": (square, lambda v: v[:, 1:-1] * 2),
        "x.T + x": (square, lambda v: v.T + v),
        "5-point stencil": (square, cross),
        "5-point stencil of float16": (square.astype("f2"), cross),
        "7-point stencil": (cube, star),
        "sums of columns": (square, lambda v: v.sum(axis=0)),
        "span of columns": (square, lambda v: v.max(axis=0) - v.min(axis=0)),
    }
    found = []
    for name, (values, compute) in cases.items():
        x = dp.asarray(values, device=device)
        forms = _loading(lambda x=x, compute=compute: compute(x))
        found.append(Row(name, forms, compute(values)))

    def softmax(xp: Any, v: Any) -> Any:
        e = xp.exp(v - v.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    values = single[: size // 1024 * 1024].reshape(-1, 1024)
    x = dp.asarray(values, device=device)
    forms = _loading(lambda: softmax(dp, x))
    return [Row("softmax of rows", forms, softmax(np, values), 1e-4), *found]


def rows(size: int, side: int, has_cupy: bool) -> list[Row]:
    """Return the rows for vectors and squares of these sizes."""
    device, generator = dp.Device("cuda:0"), np.random.default_rng(1)
    values = (generator.random(size, np.float32) + 0.5).astype("f4")
    numbers = generator.integers(0, 9, size)
    square = values[: side * side].reshape(side, side)
    x, whole, a = (dp.asarray(each, device=device) for each in (values, numbers, square))
    narrow, mask = whole.astype("i4"), x > 1
    dp.eval(narrow, mask)

    def looking_back(function: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        three = _with(tiles, "LOOKS_BACK", False, function)
        return {"look-back": function, "three launches": three}

    def transposed() -> Any:
        return tiled_transpose.transposed(a.T)

    edges = np.linspace(0.5, 1.5, 101, dtype="f4")
    between: Any = [0.5, 1.5]  # a list is not kept
    ordered = {"in place": lambda: dp.sort(x)}
    medians = {"by digits": lambda: dp.median(x)}
    if has_cupy:
        medians["sorted"] = _with(quantiles, "SELECTS", False, lambda: dp.median(x))
        ordered["with passes"] = lambda: _sorted_with_passes(x)
    return [
        Row("sum of int64", looking_back(lambda: dp.cumsum(whole)), numbers.cumsum()),
        Row(
            "sum of int32",
            looking_back(lambda: dp.cumsum(narrow, dtype="i4")),
            numbers.astype("i4").cumsum(dtype="i4"),
        ),
        Row("selection", looking_back(lambda: x[mask]), values[values > 1]),
        Row("indices", looking_back(lambda: dp.nonzero(mask)[0]), np.flatnonzero(values > 1)),
        Row(
            "histogram",
            {
                "kept edges": lambda: dp.histogram(x, 100, (0.5, 1.5))[0],
                "sent edges": lambda: dp.histogram(x, 100, between)[0],
            },
            np.histogram(values, edges)[0],
        ),
        Row(
            "transposition",
            {
                "64 x 64": transposed,
                "32 x 32": _with(tiled_transpose, "_SIDE", 32, transposed),
                "by division": lambda: _transposed_by_division(a),
            },
            square.T,
        ),
        Row("sort", ordered, np.sort(values)),
        Row("median", medians, np.median(values), 1e-6),
    ]


def forms(results: Any, options: Any) -> None:
    """Measure the forms of each row, after comparing their results."""
    device = dp.Device("cuda:0")
    stream = int(device.queue.handle)
    has_cupy = not options.standin and importlib.util.find_spec("cupy") is not None
    for row in rows(*((1 << 16, 128) if options.tiny else (1 << 25, 5760)), has_cupy):
        results.attempt(row.name, _measured, row, device, stream, 2 if options.tiny else _ROUNDS)


def expressions(results: Any, options: Any) -> None:
    """Measure expressions with other numbers of bytes in flight; a few of them if it is tiny."""
    device = dp.Device("cuda:0")
    size, side = (516 * 516, 516) if options.tiny else (1 << 25, 5760)
    for row in rows_of_expressions(size, side)[:: 5 if options.tiny else 1]:
        rounds = 2 if options.tiny else _ROUNDS
        results.attempt(row.name, _measured, row, device, int(device.queue.handle), rounds)


def _measured(row: Row, device: dp.Device, stream: int, rounds: int) -> dict[str, Any]:
    candidates = {}
    found: dict[str, Any] = {}
    for name, call in row.forms.items():
        result = call()
        device.wait()
        read = result.asnumpy() if isinstance(result, dp.ndarray) else result.get()
        np.testing.assert_allclose(read, row.expected, row.tolerance, err_msg=name)
        candidates[name] = Candidate(call, device.wait, lambda each: each, stream)
    for name, time in measured(candidates, rounds).items():
        found[name] = {"us": time, "device us": device_time(candidates[name], 2 * rounds)}
    return found
