"""Common operations on 60 elements, compared with NumPy, whose speed is the goal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dparray as dp
from tests.benchmarks._registry import Row, Settings, row
from tests.benchmarks._timer import Candidate

#: How many seconds a call may take longer than NumPy's.
ABOVE = 1e-6


class Operands:
    """A vector of 60 numbers, a matrix of 20 x 3, a large one, positions, columns and a mask."""

    def __init__(self, move: Callable[[np.ndarray], Any]) -> None:
        values = np.linspace(0.1, 1.0, 60)
        self.vector = move(values)
        self.other = move(values[::-1].copy())
        self.matrix = move(values.reshape(20, 3))
        self.large = move(np.ones((1000, 1000)))
        self.positions = move(np.asarray([1, 3, 5]))
        self.columns = move(np.asarray([2, 0]))
        self.mask = move(values > 0.5)
        self.number = np.float64(0.5)


def _add_to_slice(x: Any) -> None:
    x[:30] += x[30:]


def _scale(x: Any, factor: float) -> None:
    x *= factor


#: By name; each is called with the module and the operands.
SMALL_CALLS: dict[str, Callable[[Any, Operands], Any]] = {
    "x + y": lambda np, o: o.vector + o.other,
    "x * 0.5": lambda np, o: o.vector * 0.5,
    "np.float64 * x": lambda np, o: o.number * o.vector,
    "x * np.float64": lambda np, o: o.vector * o.number,
    "x * x[3]": lambda np, o: o.vector * o.vector[3],
    "x > 0.5": lambda np, o: o.vector > 0.5,
    "x[3]": lambda np, o: o.vector[3],
    "x[:30]": lambda np, o: o.vector[:30],
    "large[5, 5]": lambda np, o: o.large[5, 5],
    "large[1:, 1:]": lambda np, o: o.large[1:, 1:],
    "large.T": lambda np, o: o.large.T,
    "x[3] = 1.0": lambda np, o: o.other.__setitem__(3, 1.0),
    "large[5, :30] = y[:30]": lambda np, o: o.large.__setitem__((5, slice(30)), o.other[:30]),
    "x[:30] += x[30:]": lambda np, o: _add_to_slice(o.other),
    "x *= 0.5": lambda np, o: _scale(o.other, 1.0),
    "x[positions]": lambda np, o: o.vector[o.positions],
    "x[[1, 3, 5]]": lambda np, o: o.vector[[1, 3, 5]],
    "matrix[:, positions]": lambda np, o: o.matrix[:, o.columns],
    "mask[3] = True": lambda np, o: o.mask.__setitem__(3, True),
    "x[mask]": lambda np, o: o.vector[o.mask],
    "x[mask] = 0.5": lambda np, o: o.other.__setitem__(o.mask, 0.5),
    "where": lambda np, o: np.where(o.mask, o.vector, 0),
    "clip": lambda np, o: np.clip(o.vector, 0.2, 0.8),
    "maximum": lambda np, o: np.maximum(o.vector, 0.5),
    "exp": lambda np, o: np.exp(o.vector),
    "add, out=": lambda np, o: np.add(o.vector, o.vector, out=o.other),
    "sum": lambda np, o: np.sum(o.vector),
    "sum, axis=0": lambda np, o: np.sum(o.matrix, axis=0),
    "mean, axis=1": lambda np, o: np.mean(o.matrix, axis=1),
    "max, axis=1": lambda np, o: np.max(o.matrix, axis=1, keepdims=True),
    "x @ y": lambda np, o: o.vector @ o.other,
    "matrix.T @ matrix": lambda np, o: o.matrix.T @ o.matrix,
    "dot": lambda np, o: np.dot(o.vector, o.other),
    "outer": lambda np, o: np.outer(o.vector, o.other),
    "inner": lambda np, o: np.inner(o.vector, o.other),
    "einsum": lambda np, o: np.einsum("i,i->", o.vector, o.other),
    "sort": lambda np, o: np.sort(o.vector),
    "argsort": lambda np, o: np.argsort(o.vector),
    "copy": lambda np, o: o.vector.copy(),
    "zeros": lambda np, o: np.zeros(60),
    "empty": lambda np, o: np.empty(60),
    "reshape": lambda np, o: o.vector.reshape(6, 10),
    "float(x[3])": lambda np, o: float(o.vector[3]),
}


def small_call(settings: Settings, case: str) -> Row:
    """Return the candidates for one operation: dparray and NumPy."""
    call = SMALL_CALLS[case]
    ours = Operands(lambda values: dp.asarray(values, device=settings.device))
    theirs = Operands(np.copy)
    candidates = {
        "dparray": Candidate(lambda: call(dp, ours)),
        "numpy": Candidate(lambda: call(np, theirs)),
    }
    return row(settings, case, 60, candidates)
