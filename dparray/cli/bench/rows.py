"""The rows of ``dparray bench``, and the process that times them for one tree with ``--ab``.

That process runs this file by its path, with the tree to measure first on the import path, so the
same rows are timed in both trees. The file therefore imports only public names of dparray that
every release has.

A statement is a function of its module, dparray or NumPy, and of its operands.

The protocol is a line of JSON each way: ``["prepare", row]`` and ``["time", row, calls]`` return
the seconds of a call.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dparray as dp

Call = Callable[[], Any]
#: Seconds for which a row is called before it is timed, so that its kernels are compiled.
_WARM_SECONDS = 0.4
_WARM_CALLS = 40


class Row(NamedTuple):
    """A timed statement.

    Attributes:
        group, name: together its label.
        make: called with the module, dparray or NumPy, and a device; returns the timed function.
        has_numpy: whether NumPy can run it too.
    """

    group: str
    name: str
    make: Callable[[Any, Any], Call]
    has_numpy: bool = True

    @property
    def label(self) -> str:
        """The name of the row on the command line and in the table."""
        return f"{self.group}: {self.name}"


@dp.kernel
def add(item, x, y, out):  # type: ignore[no-untyped-def]
    """Write ``x + y`` to ``out``."""
    i = item.get_id(0)
    out[i] = x[i] + y[i]


@dp.kernel
def scale(item, x, factor, out):  # type: ignore[no-untyped-def]
    """Write ``factor * x`` to ``out``."""
    i = item.get_id(0)
    out[i] = factor * x[i]


class Operands:
    """Arrays of ``size`` elements: two vectors, a mask, a matrix, positions."""

    def __init__(self, xp: Any, device: Any, size: int, dtype: str) -> None:
        high = 0.9 if dtype[0] == "f" else 1000  # No integer is 0.
        values = np.random.default_rng(1).uniform(high / 9, high, size).astype(dtype)
        side = int(size**0.5)

        def move(host: np.ndarray) -> Any:
            return dp.asarray(host, device=device) if xp is dp else host.copy()

        self.move, self.host = move, values
        self.x, self.y, self.z = move(values), move(values[::-1]), move(values)
        self.mask = move(values > 0.5)
        self.positions = move(np.arange(0, size, max(size // 8, 1)))
        self.matrix = move(values[: side * side].reshape(side, side))
        self.grid = move(values[: side * side].reshape(side, side))


Statement = Callable[[Any, Operands], Any]


def _small(name: str, statement: Statement, group: str = "elementwise small") -> Row:
    """Return a row with 60 elements, whose result is complete when the call returns."""

    def make(xp: Any, device: Any) -> Call:
        operands = Operands(xp, device, 60, "f8")
        return lambda: statement(xp, operands)

    return Row(group, name, make)


def _large(group: str, name: str, size: int, statement: Statement, dtype: str = "f4") -> Row:
    """Return a row that evaluates its result and waits for it."""

    def make(xp: Any, device: Any) -> Call:
        operands = Operands(xp, device, size, dtype)

        def call() -> None:
            result = statement(xp, operands)
            if xp is dp:
                dp.synchronize(device if result is None else result)

        return call

    return Row(group, f"{name}, {size:_}", make)


def _add_slices(xp: Any, o: Operands) -> None:
    o.x[1:-1] += o.y[1:-1]


def _scale_every_second(xp: Any, o: Operands) -> None:
    o.x[::2] *= 1.0


def _time_step(xp: Any, o: Operands) -> None:
    u, v = o.matrix, o.grid
    v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
    u[1:-1, 1:-1] = v[1:-1, 1:-1]
    u[0] = u[1]


def _scale_in_place(xp: Any, o: Operands) -> None:
    o.z *= 1.0


def _to_host(xp: Any, o: Operands) -> None:
    if xp is dp:
        dp.asnumpy(o.x)
    else:
        o.x.copy()


def _softmax(xp: Any, o: Operands) -> Any:
    e = xp.exp(o.matrix - xp.max(o.matrix, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def _chain(xp: Any, o: Operands) -> Any:
    return o.x * 2 + o.x - o.y / 3


def _launch(size: int, is_waited_for: bool) -> Row:
    def make(xp: Any, device: Any) -> Call:
        o = Operands(xp, device, size, "f4")
        range_ = dp.Range(size)

        def submit() -> None:
            dp.call_kernel(add, range_, o.x, o.y, o.z)

        def submit_and_wait() -> None:
            dp.call_kernel(add, range_, o.x, o.y, o.z)
            dp.synchronize(device)

        return submit_and_wait if is_waited_for else submit

    name = "submit and wait" if is_waited_for else "submit"
    return Row("launch", f"{name}, {size:_}", make, has_numpy=False)


def _two_kernels(xp: Any, device: Any) -> Call:
    o = Operands(xp, device, 100_000, "f4")

    def call() -> None:
        dp.call_kernel(add, dp.Range(100_000), o.x, o.y, o.z)
        dp.call_kernel(scale, dp.Range(100_000), o.z, 0.5, o.x)
        dp.synchronize(device)

    return call


def _control(size: int) -> Callable[[Any, Any], Call]:
    """Return a control row in NumPy: the same work in both processes."""

    def make(xp: Any, device: Any) -> Call:
        x, out = np.linspace(0.1, 1.0, size), np.empty(size)

        def call() -> None:
            np.add(x, x, out=out)
            np.sqrt(out, out=out)

        return call

    return make


#: The control, timed between all other rows: in caches, and in memory.
CONTROLS = tuple(Row("control", f"NumPy, {size:_}", _control(size)) for size in (1_000, 1_000_000))

ROWS: tuple[Row, ...] = (
    _small("x + y", lambda xp, o: o.x + o.y),
    _small("x * 0.5", lambda xp, o: o.x * 0.5),
    _small("x > 0.5", lambda xp, o: o.x > 0.5),
    _small("x * 2 + x", lambda xp, o: o.x * 2 + o.x),
    _small("exp", lambda xp, o: xp.exp(o.x)),
    _small("maximum", lambda xp, o: xp.maximum(o.x, 0.5)),
    _small("where", lambda xp, o: xp.where(o.mask, o.x, 0)),
    _small("clip", lambda xp, o: xp.clip(o.x, 0.2, 0.8)),
    _small("add, out=", lambda xp, o: xp.add(o.x, o.y, out=o.z)),
    _small("x[3]", lambda xp, o: o.x[3]),
    _small("x[3] + x[4]", lambda xp, o: o.x[3] + o.x[4]),
    _small("float(x[3])", lambda xp, o: float(o.x[3])),
    _small("x[:30]", lambda xp, o: o.x[:30]),
    _small("x[mask]", lambda xp, o: o.x[o.mask]),
    _small("x[positions]", lambda xp, o: o.x[o.positions]),
    _small("reshape", lambda xp, o: o.x.reshape(6, 10)),
    _small("zeros", lambda xp, o: xp.zeros(60)),
    _small("x @ y", lambda xp, o: o.x @ o.y),
    *(
        _large("elementwise large", "x + y", size, lambda xp, o: o.x + o.y)
        for size in (10_000, 100_000, 300_000, 1_000_000, 4_000_000)
    ),
    _large("elementwise large", "x + y, float64", 1_000_000, lambda xp, o: o.x + o.y, "f8"),
    _large("elementwise large", "exp", 1_000_000, lambda xp, o: xp.exp(o.x)),
    _large("elementwise large", "where", 1_000_000, lambda xp, o: xp.where(o.mask, o.x, o.y)),
    _large("elementwise large", "x < y", 1_000_000, lambda xp, o: o.x < o.y),
    *(
        _large("expression", "x * 2 + x - y / 3", size, _chain)
        for size in (2_000, 10_000, 50_000, 200_000, 1_000_000)
    ),
    *(
        _large("expression", "sum((x - y) ** 2)", size, lambda xp, o: xp.sum((o.x - o.y) ** 2))
        for size in (10_000, 100_000, 300_000, 1_000_000)
    ),
    _large("expression", "x ** 2 + sin(y)", 1_000_000, lambda xp, o: o.x**2 + xp.sin(o.y)),
    _large("expression", "softmax of rows", 250_000, _softmax),
    _small("sum", lambda xp, o: xp.sum(o.x), "reduction"),
    _small("sum, axis=0", lambda xp, o: xp.sum(o.matrix, axis=0), "reduction"),
    _small("mean, axis=1", lambda xp, o: xp.mean(o.matrix, axis=1), "reduction"),
    _small("max", lambda xp, o: xp.max(o.x), "reduction"),
    _large("reduction", "sum", 100_000, lambda xp, o: xp.sum(o.x)),
    _large("reduction", "sum", 1_000_000, lambda xp, o: xp.sum(o.x)),
    _large("reduction", "sum, axis=0", 1_000_000, lambda xp, o: xp.sum(o.matrix, axis=0)),
    _large("reduction", "sum, axis=1", 1_000_000, lambda xp, o: xp.sum(o.matrix, axis=1)),
    _large("reduction", "mean", 1_000_000, lambda xp, o: xp.mean(o.x)),
    _large("reduction", "var", 1_000_000, lambda xp, o: xp.var(o.x)),
    _large("reduction", "max", 1_000_000, lambda xp, o: xp.max(o.x)),
    _large("reduction", "argmax", 1_000_000, lambda xp, o: xp.argmax(o.x)),
    _large("reduction", "cumsum", 1_000_000, lambda xp, o: xp.cumsum(o.x)),
    _small("x[1:-1] += y[1:-1]", _add_slices, "slice statement"),
    _small("x *= 1.0", _scale_in_place, "slice statement"),
    _small("x[3] = 1.0", lambda xp, o: o.z.__setitem__(3, 1.0), "slice statement"),
    _small("x[mask] = 0.5", lambda xp, o: o.z.__setitem__(o.mask, 0.5), "slice statement"),
    *(
        _large("slice statement", "x[1:-1] += y[1:-1]", size, _add_slices)
        for size in (10_000, 100_000, 2_000_000)
    ),
    _large("slice statement", "x[::2] *= 1.0", 1_000_000, _scale_every_second),
    *(
        _large("slice statement", "time step of a grid", size, _time_step, "f8")
        for size in (64 * 64, 256 * 256, 512 * 512, 1_000_000)
    ),
    _launch(64, False),
    _launch(64, True),
    _launch(1_000_000, True),
    Row("launch", "two kernels, 100_000", _two_kernels, has_numpy=False),
    _small("copy", lambda xp, o: o.x.copy(), "copy"),
    _small("asarray(host)", lambda xp, o: o.move(o.host), "copy"),
    _small("asnumpy", _to_host, "copy"),
    _large("copy", "copy", 1_000_000, lambda xp, o: o.x.copy()),
    _large("copy", "transposed", 1_000_000, lambda xp, o: o.matrix.T.copy()),
    _large("copy", "asarray(host)", 1_000_000, lambda xp, o: o.move(o.host)),
    _large("copy", "asnumpy", 1_000_000, _to_host),
    _large("copy", "astype", 1_000_000, lambda xp, o: o.x.astype("f8")),
    _large("copy", "concatenate", 200_000, lambda xp, o: xp.concatenate((o.x, o.y))),
    _small("sort", lambda xp, o: xp.sort(o.x), "sort"),
    _small("argsort", lambda xp, o: xp.argsort(o.x), "sort"),
    _large("sort", "sort", 100_000, lambda xp, o: xp.sort(o.x)),
    _large("sort", "sort", 1_000_000, lambda xp, o: xp.sort(o.x)),
    _large("sort", "argsort", 100_000, lambda xp, o: xp.argsort(o.x)),
    _large("sort", "unique", 100_000, lambda xp, o: xp.unique(o.x)),
)


def seconds_of(call: Call, calls: int) -> float:
    """Return the mean seconds of a call over some calls."""
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - started) / calls


def warm(call: Call, device: Any) -> float:
    """Call often enough that kernels are compiled, and return the seconds of a call."""
    deadline = time.perf_counter() + _WARM_SECONDS
    # Without this option, warm calls would also pay for the background compile.
    options = {"background_compile": False} if hasattr(dp.config, "background_compile") else {}
    with dp.config.override(**options):
        for _ in range(_WARM_CALLS):
            call()
            if time.perf_counter() > deadline:
                break
    while time.perf_counter() < deadline:
        call()
    dp.synchronize(device)
    seconds = min(seconds_of(call, 1) for _ in range(3))
    dp.synchronize(device)
    return seconds


def main(device: str | None) -> None:
    """Answer the requests on the standard input until it ends."""
    rows = {row.label: row for row in (*CONTROLS, *ROWS)}
    calls: dict[str, Call] = {}
    print(json.dumps([dp.__file__, str(dp.Device(device))]), flush=True)
    gc.disable()
    for line in sys.stdin:
        verb, label, *numbers = json.loads(line)
        if verb == "prepare":
            for other in [call for call in calls if not call.startswith("control")]:
                del calls[other]
            gc.collect()
            calls[label] = rows[label].make(dp, device)
            answer = warm(calls[label], device)
        else:
            (count,) = numbers
            # Warm up caches and threads again after the other side ran.
            seconds_of(calls[label], count // 4 + 1)
            answer = seconds_of(calls[label], count)
            dp.synchronize(device)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
