"""Each function of the Array API standard: its backend, and its speed vs. NumPy and dpnp.

``python -m tests.benchmarks standard --page PAGE`` writes the table of
``notebooks/project/benchmarks-functions.md``. The event hook reports the backend of each function
while it runs, so the table shows the real behavior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dpnp
import dpnp.tensor
import numpy as np

import dparray as dp
from dparray import _hooks
from dparray._driver import driver_of
from dparray._graph.ops import OPS, Op
from dparray.exceptions import ArgumentError
from tests.benchmarks._registry import Benchmark, Row, Settings, finish, row
from tests.benchmarks._timer import Candidate

#: Number of elements of the arrays, and number of rows of matrices that are decomposed.
_MAX_ELEMENTS = 1_000_000
_MAX_ROWS = 256

BEGIN, END = "<!-- bench standard: begin -->", "<!-- bench standard: end -->"

#: A function of the standard with its arguments, on a module and the arrays of :func:`_arrays`.
Call = Callable[[Any, Any], Any]


def _names(text: str) -> list[str]:
    return text.split()


def _elementwise(name: str) -> Call:
    return lambda xp, a: getattr(xp, name)(*getattr(a, name))


def _of_real(name: str) -> Call:
    return lambda xp, a: getattr(xp, name)(a.x)


def _of_matrix(name: str) -> Call:
    return lambda xp, a: getattr(xp.linalg, name)(a.hermitian)


def _transform(name: str) -> Call:
    return lambda xp, a: getattr(xp.fft, name)(a.z)


def _transform_of_grid(name: str) -> Call:
    return lambda xp, a: getattr(xp.fft, name)(a.grid)


def _real_transform(name: str) -> Call:
    return lambda xp, a: getattr(xp.fft, name)(a.x)


_ELEMENTWISE = _names(
    """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift
    bitwise_or bitwise_right_shift bitwise_xor ceil conj copysign cos cosh divide equal exp expm1
    floor floor_divide greater greater_equal hypot isfinite isinf isnan less less_equal log log10
    log1p log2 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
    negative nextafter not_equal positive pow reciprocal remainder round sign signbit sin sinh
    sqrt square subtract tan tanh trunc
    """
)
_STATISTICS = _names("max mean min prod std sum var cumulative_prod cumulative_sum")
_DECOMPOSITIONS = _names(
    """
    cholesky det diagonal eigh eigvalsh inv matrix_norm matrix_rank matrix_transpose pinv qr
    slogdet svd svdvals trace
    """
)

#: By chapter of the standard.
CASES: dict[str, dict[str, Call]] = {
    "elementwise": {
        **{name: _elementwise(name) for name in _ELEMENTWISE},
        "clip": lambda xp, a: xp.clip(a.x, 0.2, 0.8),
        "real": lambda xp, a: xp.real(a.z),
        "imag": lambda xp, a: xp.imag(a.z),
    },
    "statistics and truth": {
        **{name: _of_real(name) for name in _STATISTICS},
        "all": lambda xp, a: xp.all(a.mask),
        "any": lambda xp, a: xp.any(a.none),
        "diff": lambda xp, a: xp.diff(a.x),
    },
    "searching, sorting, sets": {
        "argmax": lambda xp, a: xp.argmax(a.x),
        "argmin": lambda xp, a: xp.argmin(a.x),
        "count_nonzero": lambda xp, a: xp.count_nonzero(a.x),
        "nonzero": lambda xp, a: xp.nonzero(a.mask),
        "searchsorted": lambda xp, a: xp.searchsorted(a.ordered, a.x),
        "where": lambda xp, a: xp.where(a.mask, a.x, a.y),
        "argsort": lambda xp, a: xp.argsort(a.x),
        "sort": lambda xp, a: xp.sort(a.x),
        **{
            name: _of_real(name)
            for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")
        },
    },
    "creation": {
        "arange": lambda xp, a: xp.arange(a.size, **a.place),
        "asarray": lambda xp, a: xp.asarray(a.x),
        "empty": lambda xp, a: xp.empty(a.size, **a.place),
        "empty_like": lambda xp, a: xp.empty_like(a.x),
        "eye": lambda xp, a: xp.eye(a.side, **a.place),
        "from_dlpack": lambda xp, a: xp.from_dlpack(a.x),
        "full": lambda xp, a: xp.full(a.size, 1.5, **a.place),
        "full_like": lambda xp, a: xp.full_like(a.x, 1.5),
        "linspace": lambda xp, a: xp.linspace(0, 1, a.size, **a.place),
        "meshgrid": lambda xp, a: xp.meshgrid(a.line, a.line),
        "ones": lambda xp, a: xp.ones(a.size, **a.place),
        "ones_like": lambda xp, a: xp.ones_like(a.x),
        "tril": lambda xp, a: xp.tril(a.matrix),
        "triu": lambda xp, a: xp.triu(a.matrix),
        "zeros": lambda xp, a: xp.zeros(a.size, **a.place),
        "zeros_like": lambda xp, a: xp.zeros_like(a.x),
    },
    "manipulation and indexing": {
        "broadcast_arrays": lambda xp, a: xp.broadcast_arrays(a.line, a.matrix),
        "broadcast_to": lambda xp, a: xp.broadcast_to(a.line, a.matrix.shape),
        "concat": lambda xp, a: xp.concat([a.x, a.y]),
        "expand_dims": lambda xp, a: xp.expand_dims(a.x, axis=0),
        "flip": lambda xp, a: xp.flip(a.x),
        "moveaxis": lambda xp, a: xp.moveaxis(a.matrix, 0, 1),
        "permute_dims": lambda xp, a: xp.permute_dims(a.matrix, (1, 0)),
        "repeat": lambda xp, a: xp.repeat(a.x, 2),
        "reshape": lambda xp, a: xp.reshape(a.matrix, (-1,)),
        "roll": lambda xp, a: xp.roll(a.x, 3),
        "squeeze": lambda xp, a: xp.squeeze(a.row, axis=0),
        "stack": lambda xp, a: xp.stack([a.x, a.y]),
        "take": lambda xp, a: xp.take(a.x, a.positions, axis=0),
        "take_along_axis": lambda xp, a: xp.take_along_axis(a.x, a.positions, axis=0),
        "tile": lambda xp, a: xp.tile(a.x, (2,)),
        "unstack": lambda xp, a: xp.unstack(a.pair, axis=0),
    },
    "data types and inspection": {
        "__array_namespace_info__": lambda xp, a: xp.__array_namespace_info__(),
        "astype": lambda xp, a: xp.astype(a.x, xp.float64),
        "can_cast": lambda xp, a: xp.can_cast(xp.int8, xp.int16),
        "finfo": lambda xp, a: xp.finfo(xp.float32),
        "iinfo": lambda xp, a: xp.iinfo(xp.int32),
        "isdtype": lambda xp, a: xp.isdtype(a.x.dtype, "real floating"),
        "result_type": lambda xp, a: xp.result_type(a.x, a.positions),
    },
    "linear algebra": {
        "matmul": lambda xp, a: xp.matmul(a.matrix, a.matrix),
        "matrix_transpose": lambda xp, a: xp.matrix_transpose(a.matrix),
        "tensordot": lambda xp, a: xp.tensordot(a.matrix, a.matrix, axes=1),
        "vecdot": lambda xp, a: xp.vecdot(a.matrix, a.matrix),
    },
    "linalg": {
        **{name: _of_matrix(name) for name in _DECOMPOSITIONS},
        "cross": lambda xp, a: xp.linalg.cross(a.points, a.points[::-1]),
        "matmul": lambda xp, a: xp.linalg.matmul(a.matrix, a.matrix),
        "matrix_power": lambda xp, a: xp.linalg.matrix_power(a.hermitian, 5),
        "outer": lambda xp, a: xp.linalg.outer(a.line, a.line),
        "solve": lambda xp, a: xp.linalg.solve(a.hermitian, a.hermitian),
        "tensordot": lambda xp, a: xp.linalg.tensordot(a.matrix, a.matrix, axes=1),
        "vecdot": lambda xp, a: xp.linalg.vecdot(a.matrix, a.matrix),
        "vector_norm": lambda xp, a: xp.linalg.vector_norm(a.x),
    },
    "fft": {
        **{name: _transform(name) for name in ("fft", "ifft", "irfft", "hfft")},
        **{name: _real_transform(name) for name in ("rfft", "ihfft")},
        **{name: _transform_of_grid(name) for name in ("fftn", "ifftn", "irfftn")},
        "rfftn": lambda xp, a: xp.fft.rfftn(a.matrix),
        "fftshift": lambda xp, a: xp.fft.fftshift(a.z),
        "ifftshift": lambda xp, a: xp.fft.ifftshift(a.z),
        "fftfreq": lambda xp, a: xp.fft.fftfreq(a.size, **a.place),
        "rfftfreq": lambda xp, a: xp.fft.rfftfreq(a.size, **a.place),
    },
}


def full_name(chapter: str, name: str) -> str:
    """Return the name as users write it after ``dp.``."""
    return f"{chapter}.{name}" if chapter in ("linalg", "fft") else name


class _Neighbor:
    """dpnp, and dpnp.tensor for functions that only it has."""

    def __getattr__(self, name: str) -> Any:
        return getattr(dpnp, name) if hasattr(dpnp, name) else getattr(dpnp.tensor, name)


# -- measuring ----------------------------------------------------------------------------------


def operands_of(op: Op, size: int) -> list[np.ndarray]:
    """Return host arrays in an operation's domain: float32, or int32 for integer operations."""
    random = np.random.default_rng(1)
    if not any(set(loop.partition("->")[0]) == {"f"} for loop in op.ufunc.types):
        return [random.integers(0, 30, size, dtype=np.int32) for _ in range(op.arity)]
    shift = np.float32(op.name == "acosh")
    return [random.uniform(0.1, 0.9, size).astype(np.float32) + shift for _ in range(op.arity)]


def _host_arrays(size: int) -> dict[str, Any]:
    """Return NumPy arrays of about ``size`` elements, by the names that the calls use."""
    random = np.random.default_rng(1)
    side = isqrt(size)
    rows = min(side, _MAX_ROWS)
    uniform = random.uniform(0.1, 0.9, (2, size)).astype(np.float32)
    square = random.uniform(0.1, 0.9, (rows, rows)).astype(np.float32)
    matrix = np.ascontiguousarray(uniform[0, : side * side].reshape(side, side))
    arrays: dict[str, Any] = {name: operands_of(OPS[name], size) for name in _ELEMENTWISE}
    return arrays | {
        "conj": [(uniform[0] + 1j * uniform[1]).astype(np.complex64)],
        "x": uniform[0].copy(),
        "y": uniform[1].copy(),
        "z": (uniform[0] + 1j * uniform[1]).astype(np.complex64),
        "mask": uniform[0] > 0,
        "none": uniform[0] > 1,
        "ordered": np.sort(uniform[1]),
        "line": matrix[0].copy(),
        "matrix": matrix,
        "grid": (matrix + 1j * matrix).astype(np.complex64),
        "row": uniform[:1].copy(),
        "pair": uniform,
        "points": np.ascontiguousarray(uniform[0, : size // 3 * 3].reshape(-1, 3)),
        "positions": random.permutation(size),
        "hermitian": square @ square.T + np.eye(rows, dtype=np.float32),
    }


def _arrays(host: dict[str, Any], size: int, make: Callable[[Any], Any], **place: Any) -> Any:
    moved = {
        name: [make(each) for each in value] if isinstance(value, list) else make(value)
        for name, value in host.items()
    }
    return SimpleNamespace(**moved, size=size, side=isqrt(size), place=place)


def _parts(result: Any) -> Iterator[Any]:
    for part in result if isinstance(result, tuple | list) else (result,):
        if isinstance(part, dp.ndarray):
            yield part


def _where(call: Callable[[], Any]) -> str:
    """Return the backend of a call's arrays from the events; the call has been made before."""
    seen: list[str] = []

    def note(event: str, **values: Any) -> None:
        if event == "launch":
            is_generated = values["kernel"].name.startswith("fused")
            seen.append("fused kernel" if is_generated else "dparray kernel")
        elif event in ("library", "host"):
            seen.append({"library": "dpnp", "host": "NumPy"}[event])

    unsubscribe = _hooks.subscribe(note)
    try:
        parts = list(_parts(call()))
        if any(part.is_only_on_host for part in parts):
            seen.append("NumPy")
        dp.eval(*parts)
    finally:
        unsubscribe()
    return " + ".join(dict.fromkeys(seen)) or "no work"


def rows(settings: Settings) -> Iterator[Row]:
    """Yield a row for each function; the size is the largest requested one up to a million."""
    size = min(max(settings.sizes), _MAX_ELEMENTS)
    queue = settings.device.sycl_queue
    host = _host_arrays(size)
    ours = _arrays(host, size, lambda x: dp.asarray(x, sycl_queue=queue), sycl_queue=queue)
    numpys = _arrays(host, size, lambda x: x)
    theirs = _arrays(host, size, lambda x: dpnp.asarray(x, sycl_queue=queue), sycl_queue=queue)
    neighbor = _Neighbor()
    for chapter, cases in CASES.items():
        for name, case in cases.items():
            yield _row(
                settings,
                full_name(chapter, name),
                size,
                lambda case=case: case(dp, ours),  # type: ignore[misc]
                lambda case=case: case(np, numpys),  # type: ignore[misc]
                lambda case=case: case(neighbor, theirs),  # type: ignore[misc]
            )


def _row(
    settings: Settings,
    name: str,
    size: int,
    ours: Callable[[], Any],
    numpys: Callable[[], Any],
    theirs: Callable[[], Any],
) -> Row:
    def computed() -> None:
        parts = list(_parts(ours()))
        if parts:
            dp.eval(*parts)
        finish(settings)

    def by_dpnp() -> None:
        theirs()
        finish(settings)

    def let_go() -> None:
        queue = settings.device.sycl_queue
        driver_of(queue).wait_for_kept(queue)

    candidates = {"dparray": Candidate(computed, after=let_go)}
    for other, call in (("numpy", numpys), ("dpnp", by_dpnp)):
        if _has(call):
            candidates[other] = Candidate(call, before=let_go, after=let_go)
    measured = row(settings, name, size, candidates)
    return replace(measured, where=_where(ours))


def _has(call: Callable[[], Any]) -> bool:
    """Return whether a module has the function with these arguments."""
    try:
        call()
    except (AttributeError, TypeError, ValueError, NotImplementedError):
        return False
    return True


# -- the page's table ---------------------------------------------------------------------------


def markdown(found: Sequence[Row], machine: dict[str, Any]) -> str:
    """Return the table of a page, in a block that opens when it is clicked."""
    by_name = {each.case: each for each in found}
    faster = [each for each in found if "numpy" in each.timings and _is_work(each)]
    won = sum(_ratio(each, "numpy") > 1 for each in faster)
    lines = [
        "<details>",
        f"<summary>Each function of the standard: its backend, and its speed compared with NumPy "
        f"and dpnp ({len(found)} functions)</summary>",
        "",
        f"`dparray bench standard`, {machine['date'][:10]}, medians of one run on "
        f"{found[0].size:_} elements (matrices that are decomposed: {_MAX_ROWS} rows), float32 "
        f"where the function takes floats, on {machine['usable_cores']} cores of an "
        f"{machine['cpu']} (load {machine['load']:.1f}). A ratio above 1: dparray is faster; of "
        f"{len(faster)} functions that compute and that NumPy has, {won} are. *Fused kernel*: "
        "generated; it fuses with neighboring operations; *dparray kernel*: "
        "hand-written; *NumPy*: in the array's own memory, only on CPU devices (dpnp on others); "
        "*dpnp*: oneMKL or its ready kernels; *no work*: a view, or nothing but metadata.",
        "",
    ]
    for chapter, cases in CASES.items():
        lines += [
            f"| {chapter} | runs in | µs | NumPy | dpnp |",
            "|---|---|--:|--:|--:|",
            *(_line(full_name(chapter, name), by_name[full_name(chapter, name)]) for name in cases),
            "",
        ]
    return "\n".join([*lines, "</details>"])


def _is_work(found: Row) -> bool:
    return found.where != "no work"


def _ratio(found: Row, name: str) -> float:
    return found.timings[name].median / found.timings["dparray"].median


def _line(name: str, found: Row) -> str:
    microseconds = found.timings["dparray"].median * 1e6
    cells = [f"`{name}`", found.where, _short(microseconds)]
    for other in ("numpy", "dpnp"):
        is_compared = other in found.timings and _is_work(found)
        cells.append(_short(_ratio(found, other)) if is_compared else "")
    return f"| {' | '.join(cells)} |"


def _short(number: float) -> str:
    """Format with two significant digits, or all digits before the point."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def write_section(path: Path, text: str) -> None:
    """Write the table between its two markers in a file.

    Raises:
        ArgumentError: the markers are missing.
    """
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ArgumentError(f"{path}: there is no line {BEGIN!r} followed by {END!r}")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


BENCHMARK = Benchmark("standard", "every function of the Array API standard", rows)
