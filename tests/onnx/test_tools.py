"""Explanations of models, the table of operators, and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dparray as dp
from dparray import cli

onnx = pytest.importorskip("onnx", reason="dparray.onnx needs the package onnx")

from onnx import helper  # noqa: E402

from tests.onnx.test_models import dense, info, make, values  # noqa: E402

node = helper.make_node


def shaped():
    """Return a model with a constant-folded node, a node known from shapes, and a view."""
    nodes = [
        node("Add", ["one", "one"], ["two"]),
        node("Shape", ["x"], ["s"]),
        node("Reshape", ["x", "s"], ["r"]),
        node("Transpose", ["r"], ["t"]),
        node("Mul", ["t", "two"], ["y"]),
    ]
    return make(nodes, [info("x", ["N", 3])], [info("y")], {"one": np.ones((), "float32")})


def test_explain_shows_how_each_node_is_computed() -> None:
    plan = dp.explain(dp.onnx.load(shaped()), values(2, 3))
    assert [each.how for each in plan.nodes] == ["folded", "constant", "constant", "view", "device"]
    assert plan.nodes[-1].calls == ("multiply",)
    assert plan.is_recorded
    assert "replayed from a recorded plan" in str(plan)


def test_explain_without_inputs_shows_the_work_of_load() -> None:
    plan = dp.explain(dp.onnx.load(shaped()))
    assert [each.how for each in plan.nodes] == ["folded", *["device"] * 4]


def test_explain_reports_reads_of_values_that_decide_shapes() -> None:
    model = dp.onnx.load(make([node("NonZero", ["x"], ["y"])], [info("x", ["N"])], [info("y")]))
    plan = dp.explain(model, np.array([0, 1, 2], "float32"))
    assert not plan.is_recorded
    assert "run node by node" in str(plan)


def test_the_table_of_operators() -> None:
    table = {each.name: each for each in dp.onnx.supported()}
    assert len(table) > 180
    assert table["Conv"].how == "row"
    assert table["Gelu"].opsets[0] == 20
    assert {"float", "double"} <= set(table["Conv"].dtypes)
    assert table["RMSNormalization"].how == "function"


def test_the_command(tmp_path, capsys) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(dense()[0].SerializeToString())
    assert cli.main(["onnx", str(path)]) == 0
    assert "MatMul 1" in capsys.readouterr().out
    assert cli.main(["onnx", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["nbytes"] == 144
    assert cli.main(["onnx", "--check", str(path)]) == 0
    assert capsys.readouterr().out == ""
    assert cli.main(["onnx", "--profile", "--size", "N=5", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "Softmax" in shown
    assert "each waited for" in shown
    path.write_bytes(b"text")
    assert cli.main(["onnx", str(path)]) == 1
    assert "not an ONNX model" in capsys.readouterr().err


def test_explain_shows_where_a_policy_computes_each_node() -> None:
    """A device that is fast at convolutions computes them; the rest keeps its placement."""
    weights = {"v": values(64, 16, 3, 3), "w": values(64, 64, 3, 3)}
    nodes = [
        node("Conv", ["x", "v"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w"], ["c"], pads=[1] * 4),
        node("GlobalAveragePool", ["c"], ["y"]),
    ]
    model = dp.onnx.load(make(nodes, [info("x", [4, 16, 24, 24])], [info("y")], weights))
    x = values(4, 16, 24, 24)
    right = model(x).asnumpy()
    rates = {"launch": 5e-6, "memory": 400e9, "reduction": 400e9, "single": 2e12}
    host = dp.testing.SimulatedDevice("host")
    gpu = dp.testing.SimulatedDevice("gpu", rates, bandwidths=100e9, memory=8e9)
    with dp.placement("fastest", devices=[host, gpu]):
        made = model(dp.asarray(x, device=host)).asnumpy()
        plan = dp.explain(model, dp.asarray(x, device=host))
    np.testing.assert_allclose(made, right, rtol=1e-4, atol=1e-4)
    where = [each.devices for each in plan.nodes]
    assert "gpu" in where[0]
    assert where[2] == ("gpu",)
    assert where[1]
    assert where[3] == ("host",)
    assert "convolve on gpu" in str(plan)
