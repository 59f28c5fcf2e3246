"""The steps of recurrent layers as native code: a step takes less time than one call of NumPy.

Each function writes the states of all steps, and leaves the last state, and for LSTM the last cell,
in its arrays. ``z`` is what a step adds to the products with the state; ``first`` and ``stride``
give the order of the steps. The sigmoid of x is (1 + tanh(x / 2)) / 2.
"""

from __future__ import annotations

import math
from typing import Any

from dparray._jit.function import jit


@jit
def lstm(
    z: Any, recurrence: Any, h: Any, c: Any, sums: Any, states: Any, first: int, stride: int
) -> None:
    """Compute the steps of an LSTM."""
    size = h.shape[1]
    for row in range(h.shape[0]):
        step = first
        for _ in range(z.shape[0]):
            for j in range(4 * size):
                sums[row, j] = z[step, row, j]
            for k in range(size):
                for j in range(4 * size):
                    sums[row, j] += h[row, k] * recurrence[k, j]
            for j in range(size):
                add = 0.5 + 0.5 * math.tanh(0.5 * sums[row, j])
                out = 0.5 + 0.5 * math.tanh(0.5 * sums[row, size + j])
                keep = 0.5 + 0.5 * math.tanh(0.5 * sums[row, 2 * size + j])
                c[row, j] = keep * c[row, j] + add * math.tanh(sums[row, 3 * size + j])
                h[row, j] = out * math.tanh(c[row, j])
                states[step, row, j] = h[row, j]
            step += stride


@jit
def gru(
    z: Any, recurrence: Any, inner: Any, h: Any, sums: Any, states: Any, first: int, stride: int
) -> None:
    """Compute the steps of a GRU whose reset gate multiplies the product."""
    size = h.shape[1]
    for row in range(h.shape[0]):
        step = first
        for _ in range(z.shape[0]):
            for j in range(2 * size):
                sums[row, j] = z[step, row, j]
            for j in range(size):
                sums[row, 2 * size + j] = inner[j]
            for k in range(size):
                for j in range(3 * size):
                    sums[row, j] += h[row, k] * recurrence[k, j]
            for j in range(size):
                update = 0.5 + 0.5 * math.tanh(0.5 * sums[row, j])
                reset = 0.5 + 0.5 * math.tanh(0.5 * sums[row, size + j])
                new = math.tanh(z[step, row, 2 * size + j] + reset * sums[row, 2 * size + j])
                h[row, j] = new + (h[row, j] - new) * update
                states[step, row, j] = h[row, j]
            step += stride


@jit
def gru_of_reset_states(
    z: Any, recurrence: Any, h: Any, sums: Any, states: Any, first: int, stride: int
) -> None:
    """Compute the steps of a GRU whose reset gate multiplies the state."""
    size = h.shape[1]
    for row in range(h.shape[0]):
        step = first
        for _ in range(z.shape[0]):
            for j in range(3 * size):
                sums[row, j] = z[step, row, j]
            for k in range(size):
                for j in range(2 * size):
                    sums[row, j] += h[row, k] * recurrence[k, j]
            for j in range(size):
                sums[row, size + j] = 0.5 + 0.5 * math.tanh(0.5 * sums[row, size + j])
            for k in range(size):
                held = sums[row, size + k] * h[row, k]
                for j in range(2 * size, 3 * size):
                    sums[row, j] += held * recurrence[k, j]
            for j in range(size):
                update = 0.5 + 0.5 * math.tanh(0.5 * sums[row, j])
                new = math.tanh(sums[row, 2 * size + j])
                h[row, j] = new + (h[row, j] - new) * update
                states[step, row, j] = h[row, j]
            step += stride
