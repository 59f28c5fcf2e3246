"""Gradients of loaded ONNX models, by their inputs and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

onnx = pytest.importorskip("onnx")
helper = pytest.importorskip("onnx.helper")
numpy_helper = pytest.importorskip("onnx.numpy_helper")

R = np.random.default_rng(0)
N = helper.make_node


def made(nodes: Any, weights: dict[str, Any], shape: Any, out: Any) -> Any:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, out)],
        [numpy_helper.from_array(w.astype("f4"), name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mlp() -> Any:
    weights = {
        "w1": R.normal(size=(6, 8)) / 2,
        "b1": R.normal(size=8),
        "w2": R.normal(size=(3, 8)) / 2,
        "b2": R.normal(size=3),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Add", ["a", "b1"], ["b"]),
        helper.make_node("Tanh", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "w2", "b2"], ["d"], transB=1),
        helper.make_node("Softmax", ["d"], ["y"], axis=-1),
    ]
    return made(nodes, weights, ["n", 6], ["n", 3]), (4, 6)


def cnn(groups: int = 1) -> Any:
    weights = {
        "w1": R.normal(size=(4, 2, 3, 3)) / 3,
        "b1": R.normal(size=4),
        "scale": R.uniform(0.5, 1.5, 4),
        "shift": R.normal(size=4),
        "mean": R.normal(size=4),
        "variance": R.uniform(0.5, 1.5, 4),
        "w2": R.normal(size=(4, 4 // groups, 2, 2)) / 3,
        "w3": R.normal(size=(4, 3)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "scale", "shift", "mean", "variance"], ["b"]),
        helper.make_node("Sigmoid", ["b"], ["c"]),
        helper.make_node("AveragePool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["d", "w2"], ["e"], strides=[2, 2], group=groups),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("MatMul", ["g", "w3"], ["y"]),
    ]
    return made(nodes, weights, ["n", 2, 8, 8], ["n", 3]), (2, 2, 8, 8)


MODELS = {"mlp": mlp, "cnn": cnn, "cnn with groups": lambda: cnn(2)}


@pytest.mark.parametrize("name", MODELS)
def test_gradients_by_inputs_and_weights_follow_differences(name: str) -> None:
    proto, shape = MODELS[name]()
    model, plain = dp.onnx.load(proto, trainable=True), dp.onnx.load(proto)
    x = dp.asarray(R.normal(size=shape).astype("f4"))
    parameters = model.parameters
    assert set(parameters) == {each.name for each in proto.graph.initializer}
    assert np.allclose(model.apply(parameters, x).asnumpy(), plain(x).asnumpy(), atol=1e-5)
    assert np.allclose(model(x).asnumpy(), plain(x).asnumpy(), atol=1e-5)
    target = dp.asarray(R.normal(size=plain(x).shape).astype("f4"))

    def loss(parameters: Any, x: Any) -> Any:
        return dp.sum((model.apply(parameters, x) - target) ** 2)

    value, (by_weights, by_input) = dp.value_and_grad(loss, argnums=(0, 1))(parameters, x)
    assert value.dtype == dp.float32
    for name, gradient in [*by_weights.items(), ("", by_input)]:
        point = parameters[name] if name else x
        assert gradient.shape == point.shape
        direction = dp.asarray(R.normal(size=point.shape).astype("f4"))

        def at(h: float, name: str = name, direction: Any = direction) -> float:
            if not name:
                return float(loss(parameters, x + h * direction))
            return float(loss(parameters | {name: parameters[name] + h * direction}, x))

        slope = (at(1e-2) - at(-1e-2)) / 2e-2
        found = float(dp.sum(gradient * direction))
        assert found == pytest.approx(slope, rel=2e-2, abs=2e-2), name
    only_input = dp.grad(lambda x: dp.sum((plain(x) - target) ** 2))(x)
    assert np.allclose(only_input.asnumpy(), by_input.asnumpy(), rtol=1e-3, atol=1e-4)


def test_a_model_trains() -> None:
    proto, _ = mlp()
    model = dp.onnx.load(proto, trainable=True)
    x = dp.asarray(R.normal(size=(32, 6)).astype("f4"))
    target = dp.asarray(np.eye(3, dtype="f4")[R.integers(0, 3, 32)])
    step = dp.value_and_grad(lambda p: -dp.mean(dp.sum(target * dp.log(model.apply(p, x)), axis=1)))
    parameters, losses = model.parameters, []
    for _ in range(30):
        value, gradients = step(parameters)
        losses.append(float(value))
        parameters = {name: w - 0.5 * gradients[name] for name, w in parameters.items()}
    assert losses[-1] < 0.8 * losses[0]


def test_wrong_parameters_raise() -> None:
    proto, shape = mlp()
    x = dp.ones(shape, dtype="f4")
    with pytest.raises(dp.exceptions.OnnxError, match="trainable=True"):
        dp.onnx.load(proto).apply({}, x)
    model = dp.onnx.load(proto, trainable=True)
    with pytest.raises(dp.exceptions.OnnxError, match="no weight 'w9'"):
        model.apply({"w9": x}, x)
    with pytest.raises(dp.exceptions.OnnxError, match=r"has shape \(8,\)"):
        model.apply({"b1": x}, x)


def constant(name: str, value: Any) -> Any:
    return N(
        "Constant", [], [name], value=numpy_helper.from_array(np.asarray(value), f"{name}_value")
    )


CASES: dict[str, Any] = {
    "MaxPool": (
        [N("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
        {},
        (2, 2, 8, 8),
    ),
    "Relu": ([N("Relu", ["x"], ["y"])], {}, (3, 4)),
    "Clip": (
        [
            constant("lo", np.float32(-0.5)),
            constant("hi", np.float32(0.5)),
            N("Clip", ["x", "lo", "hi"], ["y"]),
        ],
        {},
        (3, 4),
    ),
    "Concat": ([N("Concat", ["x", "x"], ["y"], axis=1)], {}, (3, 4)),
    "Slice": (
        [
            constant("s", [1]),
            constant("e", [3]),
            constant("a", [1]),
            N("Slice", ["x", "s", "e", "a"], ["y"]),
        ],
        {},
        (3, 4),
    ),
    "Gather": ([constant("i", [0, 2, 0]), N("Gather", ["x", "i"], ["y"], axis=0)], {}, (3, 4)),
    "LayerNormalization": (
        [N("LayerNormalization", ["x", "g", "b"], ["y"])],
        {"g": R.uniform(0.5, 1, 4), "b": R.uniform(0.5, 1, 4)},
        (3, 4),
    ),
    "Split": ([N("Split", ["x"], ["y", "z"], axis=1)], {}, (3, 4)),
    "Transpose": ([N("Transpose", ["x"], ["y"])], {}, (3, 4)),
    "Reshape": ([constant("s", [2, 6]), N("Reshape", ["x", "s"], ["y"])], {}, (3, 4)),
    "ReduceMean": ([N("ReduceMean", ["x"], ["y"], axes=[1])], {}, (3, 4)),
    "ReduceMax": ([N("ReduceMax", ["x"], ["y"], axes=[1])], {}, (3, 4)),
    "Erf": ([N("Erf", ["x"], ["y"])], {}, (3, 4)),
    "LeakyRelu": ([N("LeakyRelu", ["x"], ["y"])], {}, (3, 4)),
    "Elu": ([N("Elu", ["x"], ["y"])], {}, (3, 4)),
    "Selu": ([N("Selu", ["x"], ["y"])], {}, (3, 4)),
    "HardSwish": ([N("HardSwish", ["x"], ["y"])], {}, (3, 4)),
    "Softplus": ([N("Softplus", ["x"], ["y"])], {}, (3, 4)),
    "LogSoftmax": ([N("LogSoftmax", ["x"], ["y"])], {}, (3, 4)),
    "Pow": ([constant("p", np.float32(3)), N("Pow", ["x", "p"], ["y"])], {}, (3, 4)),
    "Sqrt": ([N("Abs", ["x"], ["a"]), N("Sqrt", ["a"], ["y"])], {}, (3, 4)),
    "Pad": ([constant("p", [0, 1, 0, 1]), N("Pad", ["x", "p"], ["y"])], {}, (3, 4)),
    "Expand": ([constant("s", [2, 3, 4]), N("Expand", ["x", "s"], ["y"])], {}, (3, 4)),
    "Where": (
        [
            constant("z", np.float32(0)),
            N("Greater", ["x", "z"], ["c"]),
            N("Where", ["c", "x", "z"], ["y"]),
        ],
        {},
        (3, 4),
    ),
    "ConvTranspose": (
        [N("ConvTranspose", ["x", "w"], ["y"])],
        {"w": R.normal(size=(2, 3, 3, 3))},
        (2, 2, 8, 8),
    ),
    "InstanceNormalization": (
        [N("InstanceNormalization", ["x", "g", "b"], ["y"])],
        {"g": R.uniform(0.5, 1, 2), "b": R.uniform(0.5, 1, 2)},
        (2, 2, 8, 8),
    ),
    "Resize": (
        [
            constant("s", np.array([1, 1, 2, 2], "f4")),
            N("Resize", ["x", "", "s"], ["y"], mode="nearest"),
        ],
        {},
        (2, 2, 4, 4),
    ),
    "Unsqueeze": ([constant("a", [0]), N("Unsqueeze", ["x", "a"], ["y"])], {}, (3, 4)),
    "LSTM": (
        [N("LSTM", ["x", "w", "r"], ["y"], hidden_size=3)],
        {"w": R.normal(size=(1, 12, 4)), "r": R.normal(size=(1, 12, 3))},
        (5, 2, 4),
    ),
    "GRU": (
        [N("GRU", ["x", "w", "r"], ["y"], hidden_size=3)],
        {"w": R.normal(size=(1, 9, 4)), "r": R.normal(size=(1, 9, 3))},
        (5, 2, 4),
    ),
    "Einsum": (
        [N("Einsum", ["x", "w"], ["y"], equation="ij,jk->ik")],
        {"w": R.normal(size=(4, 2))},
        (3, 4),
    ),
    "Cast": ([N("Cast", ["x"], ["a"], to=11), N("Mul", ["a", "a"], ["y"])], {}, (3, 4)),
    "LRN": ([N("LRN", ["x"], ["y"], size=3)], {}, (2, 4, 3, 3)),
    "CumSum": ([constant("a", np.int64(1)), N("CumSum", ["x", "a"], ["y"])], {}, (3, 4)),
    "TopK": ([constant("k", [2]), N("TopK", ["x", "k"], ["y", "i"])], {}, (3, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_have_gradients(name: str) -> None:
    nodes, weights, shape = CASES[name]
    proto = made(nodes, weights, list(shape), None)
    if name == "Cast":
        proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    model = dp.onnx.load(proto, trainable=True)
    x, parameters = dp.asarray(R.normal(size=shape).astype("f4")), model.parameters

    def result(parameters: Any, x: Any) -> Any:
        y = model.apply(parameters, x)
        return y[0] if isinstance(y, tuple) else y

    target = dp.asarray(R.normal(size=result(parameters, x).shape).astype("f4"))

    def loss(parameters: Any, x: Any) -> Any:
        return dp.sum(result(parameters, x) * target)

    direction = dp.asarray(R.normal(size=shape).astype("f4"))
    up, down = (float(loss(parameters, x + h * direction)) for h in (1e-3, -1e-3))
    found = float(dp.sum(dp.grad(loss, argnums=1)(parameters, x) * direction))
    assert found == pytest.approx((up - down) / 2e-3, rel=3e-2, abs=3e-2)
    if parameters:
        gradients = dp.grad(loss)(parameters, x)
        assert {k: g.shape for k, g in gradients.items()} == {
            k: w.shape for k, w in parameters.items()
        }
