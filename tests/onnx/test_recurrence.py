"""Recurrent layers whose steps the host computes, beside the general steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

onnx = pytest.importorskip("onnx", reason="dparray.onnx needs the package onnx")

from onnx import helper  # noqa: E402

from tests.onnx.test_models import info, make  # noqa: E402

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SIZE, WIDTH, STEPS = 5, 4, 7
#: Batches whose steps are native code, and calls of NumPy.
FEW, MANY = 3, 6


def layer(
    kind: str, direction: str, dtype: str, has_bias: bool, batch: int = FEW, **options: Any
) -> Any:
    """Return a model of one layer, and its operands."""
    count = 2 if direction == "bidirectional" else 1
    random = np.random.default_rng(3)

    def values(*shape: int) -> Any:
        return random.uniform(-1, 1, shape).astype(dtype)

    rows = GATES[kind] * SIZE
    weights = {"w": values(count, rows, WIDTH), "r": values(count, rows, SIZE)}
    if has_bias:
        weights["b"] = values(count, 2 * rows)
    names = ["x", "w", "r", "b" if has_bias else "", "", "h"]
    given = {"x": values(STEPS, batch, WIDTH), "h": values(count, batch, SIZE)}
    if kind == "LSTM":
        names, given["c"] = [*names, "c"], values(count, batch, SIZE)
    ends = ["y", "last", "cell"] if kind == "LSTM" else ["y", "last"]
    one = helper.make_node(kind, names, ends, hidden_size=SIZE, direction=direction, **options)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [info(name, x.shape, code) for name, x in given.items()]
    return make([one], inputs, [info(name, None, code) for name in ends], weights), given


@pytest.mark.parametrize("device", ["cpu", "host:cpu"])
@pytest.mark.parametrize("batch", [FEW, MANY])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("RNN", {})],
)
def test_steps_of_the_host_are_the_general_ones(
    kind: str, options: dict[str, Any], direction: str, has_bias: bool, dtype: str, batch: int,
    device: str,
) -> None:  # fmt: skip
    found, wanted = [], []
    for results, limits in ((found, {}), (wanted, {"clip": 1e6})):  # A limit needs general steps.
        proto, given = layer(kind, direction, dtype, has_bias, batch, **options, **limits)
        model = dp.onnx.load(proto, device=device)
        operands = [dp.asarray(x, device=device) for x in given.values()]
        for _ in range(2):  # recorded, and replayed
            results[:] = [np.asarray(each.asnumpy()) for each in model(*operands)]
        calls = dp.explain(model, *operands).nodes[0].calls
        assert ("_by_host" in calls) is (results is found)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", GATES)
def test_without_the_host_the_same_steps_are_arrays(kind: str) -> None:
    proto, given = layer(kind, "forward", "float32", True, MANY)
    model = dp.onnx.load(proto)
    operands = [dp.asarray(x) for x in given.values()]
    wanted = [each.asnumpy() for each in model(*operands)]
    with dp.config.override(host_tier=False):
        found = [each.asnumpy() for each in model(*operands)]
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_steps_of_few_rows_call_no_function_of_numpy(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve calls of NumPy take eight times as long as a step of onnxruntime."""
    proto, given = layer(kind, "forward", "float32", True)
    model = dp.onnx.load(proto)
    operands = [dp.asarray(x) for x in given.values()]
    monkeypatch.setattr(np, "tanh", None)
    for _ in range(2):
        assert np.isfinite(model(*operands)[0].asnumpy()).all()
