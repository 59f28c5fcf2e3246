"""Recurrent layers."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from typing import Any

import numpy as np

from dparray._array.dispatch import compute
from dparray._placement import policy_in_force
from dparray.exceptions import OnnxError
from dparray.memory.libraries.numpy import products_on_calling_threads
from dparray.onnx import functions as dp
from dparray.onnx import recurrent_steps
from dparray.onnx.call_recorder import is_differentiated
from dparray.onnx.operator_table import ROWS, Call, row
from dparray.onnx.rows.elementwise import scalar

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
#: Activations, which are operators, with the default values of their attributes.
_ACTIVATIONS = (
    "Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "LeakyRelu", "HardSigmoid", "Elu",
    "ThresholdedRelu",
)  # fmt: skip

#: The largest matrix whose product with a state takes less time than the start of BLAS's threads.
_MAX_PRODUCT_ALONE = 1 << 18
#: The largest batch whose products with a state are faster in native code than by BLAS.
_MAX_ROWS_ALONE = 4


def _activation(call: Call, name: str) -> Any:
    if name not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise OnnxError(f"the activation {name!r} is not supported; expected {known}")
    return functools.partial(ROWS["", name].function, call)


@row("LSTM", "GRU", "RNN", is_on_device=True)
def _recurrent(
    call: Call, x: Any, weights: Any, recurrence: Any, bias: Any = None, lengths: Any = None,
    state: Any = None, cell: Any = None, peephole: Any = None,
) -> Any:  # fmt: skip
    kind, xp, size = call.node.operator, call.xp, call["hidden_size"]
    directions = weights.shape[0]
    if recurrence.shape[-1] != size:
        raise OnnxError(f"hidden_size={size} does not match R of shape {list(recurrence.shape)}")
    if call.get("layout", 0):
        x = xp.transpose(x, (1, 0, 2))
        state, cell = (None if v is None else xp.transpose(v, (1, 0, 2)) for v in (state, cell))
    steps, batch = x.shape[:2]
    names = list(call.get("activations", _DEFAULTS[kind] * directions))
    if call.get("activation_alpha") or call.get("activation_beta"):
        raise OnnxError("activations have default parameters only, not activation_alpha or _beta")
    direction = call.get("direction", "forward")
    ends = None if lengths is None else call.host(lengths)
    if ends is not None and (ends == steps).all():
        ends = None
    zero = xp.call_each_time(_zeros, x, batch, size)
    results = []
    for number in range(directions):
        each = len(names) // directions
        layer = _Layer(
            call, kind, size,
            [_activation(call, name) for name in names[number * each : (number + 1) * each]],
            xp.transpose(recurrence[number], (1, 0)),
            None if bias is None else bias[number],
            None if peephole is None else peephole[number],
        )  # fmt: skip
        results.append(
            layer.run(
                x,
                xp.transpose(weights[number], (1, 0)),
                zero if state is None else state[number],
                zero if cell is None else cell[number],
                direction == "reverse" or number == 1,
                ends,
            )
        )
    y = xp.stack([result[0] for result in results], axis=1)
    last, memory = (xp.stack([result[at] for result in results], axis=0) for at in (1, 2))
    if call.get("layout", 0):
        y = xp.transpose(y, (2, 0, 1, 3))
        last, memory = (xp.transpose(each, (1, 0, 2)) for each in (last, memory))
    return (y, last, memory)


def _zeros(x: Any, batch: int, size: int) -> Any:
    return dp.zeros((batch, size), dtype=x.dtype, device=x.queue)


def _by_host(
    kind: str, size: int, is_backward: bool, is_linear: bool, *arrays: Any
) -> tuple[Any, Any, Any]:
    """Return the states of all steps, the last state, and the last cell."""
    if policy_in_force() is None:
        named = [(f"argument {position}", array) for position, array in enumerate(arrays)]
        options = kind, size, is_backward, is_linear
        is_small = arrays[2].size <= _MAX_PRODUCT_ALONE
        with products_on_calling_threads() if is_small else nullcontext():
            if arrays[0].shape[1] <= _MAX_ROWS_ALONE and kind != "RNN":
                return _by_native_code(*options, *arrays)
            result = compute(kind, named, host=functools.partial(_steps_in_place, *options))
        if result is not None:
            return result
    return _steps(kind, size, is_backward, is_linear, *arrays)


def _inputs(
    kind: str, size: int, is_linear: bool, xp: Any, x: Any, weights: Any, bias: Any
) -> tuple[Any, Any]:
    """Return what steps add to the products with states, and to those of GRU's linear gate."""
    steps, batch, width = x.shape
    z, inner = xp.matmul(xp.reshape(x, (steps * batch, width)), weights), 0
    if bias is not None:
        gates = _GATES[kind] * size
        first = 2 * size if is_linear and kind == "GRU" else gates
        inner = bias[gates + first :]
        z = z + bias[:gates] + xp.concat([bias[gates : gates + first], xp.zeros_like(inner)])
    return xp.reshape(z, (steps, batch, z.shape[-1])), inner


def _by_native_code(
    kind: str, size: int, is_backward: bool, is_linear: bool, x: Any, weights: Any,
    recurrence: Any, h: Any, c: Any, bias: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return the same for few rows, whose steps take less time than calls of NumPy."""
    z, inner = _inputs(kind, size, is_linear, dp, x, weights, bias)
    h, recurrence = h.copy(), dp.ascontiguousarray(recurrence)
    sums, states = dp.empty_like(z[0]), dp.empty_like(z[..., :size])
    given = h, sums, states, *((z.shape[0] - 1, -1) if is_backward else (0, 1))
    if kind == "LSTM":
        c = c.copy()
        recurrent_steps.lstm(z, recurrence, h, c, *given[1:])
    elif is_linear:
        inner = dp.zeros_like(h[0]) if bias is None else inner
        recurrent_steps.gru(z, recurrence, inner, *given)
    else:
        recurrent_steps.gru_of_reset_states(z, recurrence, *given)
    return states, h, c


def _steps_in_place(
    kind: str, size: int, is_backward: bool, is_linear: bool, x: Any, weights: Any,
    recurrence: Any, h: Any, c: Any, bias: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Compute the steps of `_steps` by few calls of NumPy, in memory that all steps share.

    The sigmoid of x is (1 + tanh(x / 2)) / 2, so that the gates of LSTM need one call. For one row,
    ``dot`` takes half the time of ``matmul``.
    """
    z, inner = _inputs(kind, size, is_linear, np, x, weights, bias)
    states, c = np.empty((*z.shape[:2], size), x.dtype), c.copy()
    split = {"LSTM": 3, "GRU": 2, "RNN": 0}[kind] * size
    sums, held, new = (np.empty(each.shape, x.dtype) for each in (z[0], h, h))
    soft = np.empty((len(h), split), x.dtype)
    if kind == "LSTM":
        soft, new = sums[:, :split], sums[:, split:]
    first, second, third = (soft[:, at * size : (at + 1) * size] for at in range(3))
    of_soft, of_new = recurrence[:, :split], recurrence[:, split:]
    forward = slice(None, None, -1 if is_backward else 1)
    parts = (each[forward] for each in (z, z[..., :split], z[..., split:], states))
    for at, at_soft, at_new, result in zip(*parts, strict=True):
        if kind == "GRU":
            np.dot(h, of_soft, out=soft)
            soft += at_soft
        else:
            np.dot(h, recurrence, out=sums)
            sums += at
        if kind == "RNN":
            h = np.tanh(sums, out=result)
            continue
        soft *= 0.5
        active = soft if kind == "GRU" else sums
        np.tanh(active, out=active)
        soft *= 0.5
        soft += 0.5
        if kind == "LSTM":
            c *= third
            first *= new
            c += first
            h = np.multiply(second, np.tanh(c, out=new), out=result)
            continue
        if is_linear:
            np.dot(h, of_new, out=new)
            new += inner
            new *= second
        else:
            np.dot(np.multiply(second, h, out=held), of_new, out=new)
        new += at_new
        np.tanh(new, out=new)
        np.subtract(h, new, out=held)
        held *= first
        h = np.add(new, held, out=result)
    return states, h, c


def _steps(
    kind: str, size: int, is_backward: bool, is_linear: bool, x: Any, weights: Any,
    recurrence: Any, h: Any, c: Any, bias: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Compute steps with the default activations."""
    z, inner = _inputs(kind, size, is_linear, dp, x, weights, bias)
    steps, xp = z.shape[0], dp
    states: list[Any] = [None] * steps
    for step in reversed(range(steps)) if is_backward else range(steps):
        at = z[step]
        if kind == "RNN":
            h = xp.tanh(at + xp.matmul(h, recurrence))
        elif kind == "LSTM":
            at = at + xp.matmul(h, recurrence)
            gate = 1 / (1 + xp.exp(-at[:, : 3 * size]))
            c = gate[:, 2 * size :] * c + gate[:, :size] * xp.tanh(at[:, 3 * size :])
            h = gate[:, size : 2 * size] * xp.tanh(c)
        else:
            first = xp.matmul(h, recurrence[:, : 2 * size])
            both = 1 / (1 + xp.exp(-at[:, : 2 * size] - first))
            update, reset = both[:, :size], both[:, size:]
            if is_linear:
                added = reset * (xp.matmul(h, recurrence[:, 2 * size :]) + inner)
            else:
                added = xp.matmul(reset * h, recurrence[:, 2 * size :])
            new = xp.tanh(at[:, 2 * size :] + added)
            h = (1 - update) * new + update * h
        states[step] = h
    return xp.stack(states, axis=0), h, c


class _Layer:
    """One direction of a recurrent layer."""

    def __init__(
        self, call: Call, kind: str, size: int, functions: list[Any], recurrence: Any, bias: Any,
        peephole: Any,
    ) -> None:  # fmt: skip
        self.call, self.kind, self.size, self.functions = call, kind, size, functions
        self.recurrence, self.peephole = recurrence, peephole
        gates = _GATES[kind] * size
        self.bias = bias
        self.input_bias = None if bias is None else bias[:gates]
        self.state_bias = None if bias is None else bias[gates:]
        self.clip = call.get("clip")

    def run(self, x: Any, weights: Any, h: Any, c: Any, is_backward: bool, ends: Any) -> Any:
        """Return the states of all steps, the last state, and the last cell."""
        xp, (steps, batch, width) = self.call.xp, x.shape
        if self._is_for_host(x, weights, ends):
            is_linear = bool(self.call.get("linear_before_reset", 0))
            given = x, weights, self.recurrence, h, c
            given += () if self.bias is None else (self.bias,)
            result: Any = xp.call(_by_host, self.kind, self.size, is_backward, is_linear, *given)
            return result
        flat = xp.matmul(xp.reshape(x, (steps * batch, width)), weights)
        flat = xp.reshape(flat, (steps, batch, _GATES[self.kind] * self.size))
        if self.input_bias is not None:
            flat = xp.add(flat, self.input_bias)
        states: list[Any] = [None] * steps
        for step in reversed(range(steps)) if is_backward else range(steps):
            before = h, c
            h, c = getattr(self, f"_{self.kind.lower()}")(flat[step], h, c)
            states[step] = h
            if ends is not None:  # sequences that have ended, or not begun, keep their state
                inside = (step < ends).reshape(-1, 1)
                h, c = (xp.where(inside, a, b) for a, b in zip((h, c), before, strict=True))
                states[step] = xp.where(inside, states[step], scalar(x, 0))
        return xp.stack(states, axis=0), h, c

    def _is_for_host(self, x: Any, weights: Any, ends: Any) -> bool:
        """Return whether the host computes all steps: a step takes less time than a launch."""
        call, peephole = self.call, self.peephole
        activations = call.get("activations", _DEFAULTS[self.kind] * 2)
        return (
            call.run.model.traits.shares_memory
            and x.dtype.name in ("float32", "float64")
            and ends is None is peephole
            and not (self.clip or call.get("input_forget", 0))
            and list(activations) in (_DEFAULTS[self.kind], _DEFAULTS[self.kind] * 2)
            and not any(map(is_differentiated, (x, weights, self.recurrence, self.bias)))
        )

    def _limited(self, x: Any) -> Any:
        if not self.clip:
            return x
        xp = self.call.xp
        return xp.minimum(xp.maximum(x, scalar(x, -self.clip)), scalar(x, self.clip))

    def _gate(self, x: Any, number: int, count: int = 1) -> Any:
        return x[..., number * self.size : (number + count) * self.size]

    def _product(self, h: Any, first: int, count: int) -> Any:
        result = self.call.xp.matmul(h, self._gate(self.recurrence, first, count))
        if self.state_bias is None:
            return result
        return self.call.xp.add(result, self._gate(self.state_bias, first, count))

    def _rnn(self, z: Any, h: Any, c: Any) -> Any:
        return self.functions[0](self._limited(z + self._product(h, 0, 1))), c

    def _lstm(self, z: Any, h: Any, c: Any) -> Any:
        f, g, out = self.functions
        z = z + self._product(h, 0, 4)
        i, o, keep, new = (self._gate(z, number) for number in range(4))
        if self.peephole is not None:
            i = i + self._gate(self.peephole, 0) * c
            keep = keep + self._gate(self.peephole, 2) * c
        i, keep = f(self._limited(i)), f(self._limited(keep))
        if self.call.get("input_forget", 0):
            keep = scalar(z, 1) - i
        c = keep * c + i * g(self._limited(new))
        if self.peephole is not None:
            o = o + self._gate(self.peephole, 1) * c
        return f(self._limited(o)) * out(c), c

    def _gru(self, z: Any, h: Any, c: Any) -> Any:
        f, g = self.functions
        both = f(self._limited(self._gate(z, 0, 2) + self._product(h, 0, 2)))
        update, reset = self._gate(both, 0), self._gate(both, 1)
        if self.call.get("linear_before_reset", 0):
            inner = reset * self._product(h, 2, 1)
        else:
            inner = self._product(reset * h, 2, 1)
        new = g(self._limited(self._gate(z, 2) + inner))
        return (scalar(z, 1) - update) * new + update * h, c
