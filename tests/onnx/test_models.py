"""Models: loading, calling, plans, user-defined operators."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dparray as dp

onnx = pytest.importorskip("onnx", reason="dparray.onnx needs the package onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def info(name: str, shape: object = None, dtype: int = F32) -> object:
    return helper.make_tensor_value_info(name, dtype, shape)


def make(nodes, inputs, outputs, weights=None, opset: int = 17, **opsets: int):
    """Return a model of nodes; weights are NumPy arrays by name."""
    initializers = [numpy_helper.from_array(x, name) for name, x in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    versions = [helper.make_opsetid("", opset)]
    versions += [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def dense():
    """Return a dense layer with bias, activation and softmax."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("Add", ["a", "b"], ["c"]),
        node("Relu", ["c"], ["d"]),
        node("Softmax", ["d"], ["y"]),
    ]
    weights = {"w": values(8, 4), "b": values(4, seed=1)}
    return make(nodes, [info("x", ["N", 8])], [info("y", ["N", 4])], weights), weights


def expected(x, weights):
    z = np.maximum(x @ weights["w"] + weights["b"], 0)
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("given", ["path", "bytes", "proto"])
def test_a_model_is_loaded_and_called(given: str, tmp_path) -> None:
    proto, weights = dense()
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    model = dp.onnx.load(
        {"path": tmp_path / "m.onnx", "bytes": proto.SerializeToString(), "proto": proto}[given]
    )
    for rows in (3, 5, 3):
        x = values(rows, 8, seed=rows)
        y = model(dp.asarray(x))
        assert isinstance(y, dp.ndarray)
        np.testing.assert_allclose(y.asnumpy(), expected(x, weights), rtol=1e-5)
        np.testing.assert_allclose(model.run({"x": x})["y"].asnumpy(), y.asnumpy())


def test_a_model_describes_itself() -> None:
    model = dp.onnx.load(dense()[0])
    assert [str(each) for each in model.inputs] == ["x: float32[N, 8]"]
    assert [str(each) for each in model.outputs] == ["y: float32[N, 4]"]
    assert model.operators == {"Add": 1, "MatMul": 1, "Relu": 1, "Softmax": 1}
    assert set(model.weights) == {"w", "b"}
    assert model.nbytes == 4 * (32 + 4)
    assert model.opset == {"": 17}


def test_results_are_pending_and_in_their_own_memory() -> None:
    node = helper.make_node
    model = dp.onnx.load(
        make(
            [node("Identity", ["x"], ["y"]), node("Reshape", ["x", "s"], ["z"])],
            [info("x", [2, 3])],
            [info("y"), info("z")],
            {"s": np.array([3, 2])},
        )
    )
    x = dp.ones((2, 3), dtype="float32")
    y, z = model(x)
    x[0, 0] = 5
    assert y.asnumpy().max() == 1
    assert z.asnumpy().max() == 1


def test_shapes_are_computed_on_the_host_and_leave_no_work() -> None:
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Concat", ["n", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["r"]),
        node("Add", ["r", "one"], ["y"]),
    ]
    weights = {
        "zero": np.array([0]), "rest": np.array([-1]), "one": np.ones((), "float32")
    }  # fmt: skip
    model = dp.onnx.load(make(nodes, [info("x", ["N", 2, 3])], [info("y")], weights))
    for rows in (2, 4):
        x = values(rows, 2, 3)
        np.testing.assert_allclose(model(x).asnumpy(), x.reshape(rows, 6) + 1)


def test_a_small_integer_input_from_the_host_selects_the_plan() -> None:
    node = helper.make_node
    nodes = [node("Reshape", ["x", "s"], ["r"]), node("Neg", ["r"], ["y"])]
    proto = make(nodes, [info("x"), info("s", [2], I64)], [info("y")])
    model, x = dp.onnx.load(proto), values(2, 6)
    for shape in ((3, 4), (4, 3), (3, 4)):
        np.testing.assert_allclose(model(x, np.array(shape)).asnumpy(), -x.reshape(shape))
        on_device = model(x, dp.asarray(np.array(shape)))
        np.testing.assert_allclose(on_device.asnumpy(), -x.reshape(shape))


def test_weights_are_placed_on_the_device_of_the_model() -> None:
    other = dp.ones(1).device.new_queue()
    proto, weights = dense()
    model = dp.onnx.load(proto, device=other)
    x = values(3, 8)
    assert model(x).queue == other.queue
    np.testing.assert_allclose(model(x).asnumpy(), expected(x, weights), rtol=1e-5)
    with pytest.raises(dp.exceptions.ExecutionPlacementError, match="to_device"):
        model(dp.asarray(x))


def test_an_operator_of_the_user_launches_a_kernel() -> None:
    @dp.kernel
    def gate(item, x, y, limit):
        i = item.get_id(0)
        y[i] = x[i] if x[i] > limit else x[i] * 0.125

    @dp.onnx.operator("Gate", domain="my")
    def compute(node, x):
        y = dp.empty_like(x)
        limit = np.float32(node.get("alpha", 0.5))
        dp.call_kernel(gate, dp.Range(x.size), x.reshape(-1), y.reshape(-1), limit)
        return y

    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Gate", ["a"], ["y"], domain="my", alpha=0.25),
    ]
    model = dp.onnx.load(make(nodes, [info("x")], [info("y")], my=1))
    for seed in (1, 2):
        x = values(4, 5, seed=seed)
        np.testing.assert_allclose(
            model(x).asnumpy(), np.where(-x > 0.25, -x, -x * np.float32(0.125))
        )
    assert any(each.how == "user" and each.name == "my::Gate" for each in dp.onnx.supported())


def test_operators_of_one_model_come_first() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    proto = make(nodes, [info("x")], [info("y")])
    own = dp.onnx.load(proto, operators={"Relu": lambda node, x: x * 2})
    x = values(5)
    np.testing.assert_allclose(own(x).asnumpy(), x * 2)
    np.testing.assert_allclose(dp.onnx.load(proto)(x).asnumpy(), np.maximum(x, 0))


def test_batch_normalization_is_merged_into_the_filters() -> None:
    node = helper.make_node
    weights = {
        "w": values(6, 3, 3, 3), "b": values(6), "s": values(6, seed=1), "t": values(6, seed=2),
        "m": values(6, seed=3), "v": np.abs(values(6, seed=4)) + 1,
    }  # fmt: skip
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"]),
        node("BatchNormalization", ["c", "s", "t", "m", "v"], ["n"]),
        node("Relu", ["n"], ["y"]),
    ]
    merged = dp.onnx.load(make(nodes, [info("x")], [info("y")], weights))
    kept = dp.onnx.load(make(nodes, [info("x")], [info("y"), info("c")], weights))
    x = values(2, 3, 9, 8)
    np.testing.assert_allclose(merged(x).asnumpy(), kept(x)[0].asnumpy(), rtol=1e-4, atol=1e-5)
    hows = {each.operator: each.how for each in merged.explain(x).nodes}
    assert hows["BatchNormalization"] == "merged"
    assert "merged" not in {each.how for each in kept.explain(x).nodes}


def test_importing_dparray_does_not_import_onnx() -> None:
    script = "import sys, dparray; sys.exit('onnx' in sys.modules or 'dparray.onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


def test_every_function_that_rows_call_exists() -> None:
    from dparray.onnx import functions

    folder = Path(dp.onnx.__file__).parent / "rows"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    names = set(re.findall(r"\b(?:xp|dp)\.([a-z_0-9]+)\b", text))
    # parameters of the recorder
    names -= {"call", "call_each_time", "place", "erf", "expit", "linalg_det"}
    assert names > {"add", "matmul", "mean"}
    assert not {name for name in names if not hasattr(functions, name)}


@pytest.mark.parametrize("window", [(2, 2), (6, 5)], ids=["few", "many"])
@pytest.mark.parametrize(("steps", "apart"), [((1, 1), (1, 1)), ((2, 3), (2, 1))])
def test_small_and_large_convolutions_agree(window, steps, apart) -> None:
    """A small one is a product of gathered windows; a large batch is a Tile contraction."""
    from dparray.onnx.rows.windows import MAX_GATHERED

    weights = {"w": values(4, 3, *window), "b": values(4)}
    attributes = {"strides": steps, "dilations": apart, "pads": [1, 0, 2, 1]}
    conv = helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    model = dp.onnx.load(make([conv], [info("x")], [info("y")], weights))
    x = values(1, 3, 14, 15)
    many = model(np.repeat(x, 400, axis=0)).asnumpy()
    products = many[:1].size * weights["w"][0].size
    assert products <= MAX_GATHERED < 400 * products
    np.testing.assert_allclose(model(x).asnumpy(), many[:1], rtol=1e-4, atol=1e-4)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)))
    reach = [d * (k - 1) + 1 for d, k in zip(apart, window, strict=True)]
    parts = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    parts = parts[:, :, :: steps[0], :: steps[1], :: apart[0], :: apart[1]]
    right = np.einsum("ncyxij,fcij->nfyx", parts, weights["w"]) + weights["b"][:, None, None]
    np.testing.assert_allclose(many[:1], right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_large_products_by_constant_weights(is_transposed: bool) -> None:
    """They are computed as convolutions, without the threads of BLAS."""
    weights = {"w": values(96, 80).T if is_transposed else values(80, 96), "b": values(96)}
    weights["w"] = np.ascontiguousarray(weights["w"].T if is_transposed else weights["w"])
    gemm = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=int(is_transposed))
    model = dp.onnx.load(make([gemm], [info("x")], [info("y")], weights))
    x = values(64, 80)
    right = x @ (weights["w"].T if is_transposed else weights["w"]) + weights["b"]
    np.testing.assert_allclose(model(x).asnumpy(), right, rtol=1e-4, atol=1e-4)
    assert "convolved" in str(dp.explain(model, x))


def test_bfloat16_is_computed_on_the_device() -> None:
    """bfloat16 filters stayed on the host, and a convolution raised an AttributeError."""
    bfloat16 = np.dtype("bfloat16")
    weights = {"w": values(8, 4, 3, 3).astype(bfloat16)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("ReduceMax", ["b"], ["y"], keepdims=0),
    ]
    declared = [
        helper.make_tensor_value_info(name, TensorProto.BFLOAT16, None) for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "g", declared[:1], declared[1:])
    graph.initializer.append(
        helper.make_tensor("w", TensorProto.BFLOAT16, (8, 4, 3, 3), weights["w"].ravel().tolist())
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    x = values(1, 4, 6, 6).astype(bfloat16)
    made = dp.onnx.load(model)(x)
    assert isinstance(made, dp.ndarray)
    padded = np.pad(x.astype("float32"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    right = np.einsum("ncyxij,fcij->nfyx", parts, weights["w"].astype("float32")).max()
    assert made.dtype == bfloat16
    assert float(made) == float(np.asarray(right).astype(bfloat16))
