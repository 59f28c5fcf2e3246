"""Operators in cases that the standard's own suite does not have, against its reference."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from tests.onnx.test_models import info, make, values

onnx = pytest.importorskip("onnx", reason="dparray.onnx needs the package onnx")

from onnx import TensorProto, helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

node = helper.make_node
VECTOR = values(3)


def check(nodes, inputs=None, constants=None, opset: int = 20, wanted=None) -> None:
    """Compare a model with the reference, in three calls: by nodes, by a plan, by bound plans."""
    inputs = inputs or {}
    outputs = [info(name) for name in nodes[-1].output]
    for output in outputs:
        output.ClearField("type")
    code = helper.np_dtype_to_tensor_dtype
    given = [info(name, x.shape, code(x.dtype)) for name, x in inputs.items()]
    proto = make(nodes, given, outputs, constants, opset)
    model = dp.onnx.load(proto)
    with np.errstate(all="ignore"):
        wanted = ReferenceEvaluator(proto).run(None, inputs) if wanted is None else wanted
    for _ in range(3):
        found = model.run({name: dp.asarray(x) for name, x in inputs.items()})
        for x, right in zip(found.values(), wanted, strict=True):
            host = x.asnumpy() if isinstance(x, dp.ndarray) else np.asarray(x)
            assert (host.shape, host.dtype) == (np.shape(right), np.asarray(right).dtype)
            np.testing.assert_allclose(host, right, rtol=1e-5, atol=1e-6)


BINARY = [
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Equal", "Greater", "Less"),
    *("GreaterOrEqual", "LessOrEqual"),
]


@pytest.mark.parametrize("operator", BINARY)
@pytest.mark.parametrize("shape", [(2, 3), (), (3,)])
@pytest.mark.parametrize("constant", [(1, 1, 1), (1, 1), (1,), ()])
@pytest.mark.sample(30)
def test_a_constant_of_one_element_keeps_its_rank(operator: str, shape, constant) -> None:
    x, c = np.abs(values(*shape)) + 1, np.full(constant, 2, "float32")
    check([node(operator, ["x", "c"], ["y"])], {"x": x}, {"c": c})
    check([node(operator, ["c", "x"], ["y"])], {"x": x}, {"c": c})
    # The next node depends on the number of axes.
    more = [node(operator, ["x", "c"], ["a"]), node("Unsqueeze", ["a", "at"], ["y"])]
    check(more, {"x": x}, {"c": c, "at": np.array([-1])})


def test_other_functions_of_a_constant_of_one_element() -> None:
    x, c = values(2, 3), np.full((1, 1, 1), 2, "float32")
    check([node("Where", ["b", "x", "c"], ["y"])], {"x": x, "b": x > 0}, {"c": c})
    check([node("Where", ["c", "x", "x"], ["y"])], {"x": x}, {"c": c > 0})
    check([node("Mod", ["x", "c"], ["y"], fmod=1)], {"x": x}, {"c": c})
    integers = {"x": np.arange(6).reshape(2, 3)}
    check([node("Div", ["x", "c"], ["y"])], integers, {"c": c.astype("int64")})
    image, filters = values(1, 1, 4, 4), values(2, 1, 2, 2)
    nodes = [node("Conv", ["x", "w"], ["a"]), node("Mul", ["a", "c"], ["y"])]
    check(nodes, {"x": image}, {"w": filters, "c": c.reshape(1, 1, 1, 1, 1)})


@pytest.mark.parametrize("operator", ["Celu", "Elu", "Selu", "Mish", "HardSwish", "Softplus"])
def test_an_activation_keeps_the_rank_of_a_scalar(operator: str) -> None:
    for x in (np.full((), -2, "float32"), np.full((1,), -2, "float32")):
        check([node(operator, ["x"], ["y"])], {"x": x})
        check([node(operator, ["c"], ["a"]), node("Add", ["a", "x"], ["y"])], {"x": x}, {"c": x})
    check([node("Celu", ["x"], ["y"], alpha=2.5)], {"x": values(4, 5)})


@pytest.mark.parametrize(
    ("operator", "more", "attributes"),
    [
        ("Softmax", [], {}),
        ("LogSoftmax", [], {"axis": 1}),
        ("LayerNormalization", ["four"], {}),
        ("InstanceNormalization", ["three", "three"], {}),
        ("BatchNormalization", ["three", "three", "three", "three"], {}),
        ("LpNormalization", [], {}),
    ],
)
def test_a_convolution_of_constants_is_normalized(operator: str, more, attributes) -> None:
    weights = {"i": values(1, 2, 5, 5), "w": values(3, 2, 2, 2)}
    weights |= {"three": np.ones(3, "float32"), "four": np.ones(4, "float32")}
    after = node(operator, ["a", *more], ["y"], **attributes)
    check([node("Conv", ["i", "w"], ["a"]), after], {}, weights)
    both = [node("Conv", ["i", "w"], ["c"]), node("Conv", ["x", "w"], ["d"])]
    check([*both, node("Mul", ["c", "d"], ["a"]), after], {"x": weights["i"]}, weights)


def loop(trips_of_type: str | None, cast: int):
    """Return a loop that doubles ``x`` and stacks a converted copy of each step."""
    body = helper.make_graph(
        [
            node("Identity", ["going"], ["still"]),
            node("Add", ["state", "state"], ["next"]),
            node("Concat", ["next", "outer"], ["joined"], axis=0),
            node("Cast", ["joined"], ["seen"], to=cast),
        ],
        "body",
        [info("step", [], TensorProto.INT64), info("going", [], TensorProto.BOOL), info("state")],
        [info("still", [], TensorProto.BOOL), info("next"), info("seen", None, cast)],
    )
    trips = node("Identity", ["n"], ["trips"])
    return [trips, node("Loop", ["trips", "", "x"], ["last", "y"], body=body)]


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("is_input", [True, False])
def test_the_scan_output_of_a_loop(count: int, dtype: str, is_input: bool) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, outer = np.arange(3, dtype="float32"), np.ones(2, "float32")
    stacked = [np.append(x * 2.0 ** (at + 1), outer) for at in range(count)]
    wanted = [x * 2**count, np.reshape(stacked, (count, 5)).astype(dtype)]
    n, both = {"n": np.array(count)}, {"x": x, "outer": outer}
    if is_input:
        check(loop(None, code), {**both, **n}, {}, wanted=[w.astype(w.dtype) for w in wanted])
    else:
        check(loop(None, code), both, n, wanted=wanted)


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_scan_output_of_a_scan(count: int, axis: int) -> None:
    body = helper.make_graph(
        [
            node("Add", ["state", "each"], ["next"]),
            node("Concat", ["each", "each"], ["seen"], axis=0),
        ],
        "body",
        [info("state"), info("each")],
        [info("next"), info("seen")],
    )
    attributes = {"num_scan_inputs": 1, "scan_input_axes": [1], "scan_output_axes": [axis]}
    q = values(3, count)
    nodes = [node("Scan", ["x", "q"], ["last", "y"], body=body, **attributes)]
    wanted = [VECTOR + q.sum(1), np.concatenate([q, q]).T if axis == 0 else np.concatenate([q, q])]
    check(nodes, {"x": VECTOR, "q": q}, wanted=wanted)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 20])
def test_softmax_over_an_empty_axis(operator: str, opset: int) -> None:
    x = np.zeros((2, 0), "float32")
    check([node(operator, ["x"], ["y"], axis=1)], {"x": x}, {}, opset)
    check([node(operator, ["c"], ["y"], axis=1)], {}, {"c": x}, opset, [x])


@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("reverse", [0, 1])
def test_an_exclusive_cumulative_sum(size: int, reverse: int) -> None:
    made = node("CumSum", ["x", "axis"], ["y"], exclusive=1, reverse=reverse)
    check([made], {"x": values(size, 3)}, {"axis": np.array(0)})


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_the_nonzero_elements_of_a_scalar_have_no_index(value: float) -> None:
    x = np.array(value, "float32")
    wanted = [np.zeros((0, int(value != 0)), "int64")]
    check([node("NonZero", ["x"], ["y"])], {"x": x}, wanted=wanted)
    check([node("NonZero", ["c"], ["y"])], {}, {"c": x}, wanted=wanted)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_are_divided_toward_zero(dtype: str) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([least, least, most, least, 7, -7, 7, -7, 0, 6], dtype)
    y = np.array([2, 3, -2, most, 2, 2, -2, -2, 3, 3], dtype)
    wanted = np.array([abs(a) // abs(b) * (1 if a * b > 0 else -1) for a, b in zip(
        x.tolist(), y.tolist(), strict=True)], dtype)  # fmt: skip
    check([node("Div", ["x", "y"], ["z"])], {"x": x, "y": y}, wanted=[wanted])
    check([node("Div", ["x", "y"], ["z"])], {}, {"x": x, "y": y}, wanted=[wanted])


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_sampling_outside_of_an_image(mode: str, padding: str, aligned: int) -> None:
    generator = np.random.default_rng(0)
    image = generator.random((1, 1, 4, 5), dtype="float32")
    grid = generator.random((1, 3, 3, 2), dtype="float32") * 4 - 2
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    check([node("GridSample", ["x", "grid"], ["y"], **attributes)], {"x": image, "grid": grid})


@pytest.mark.parametrize("x", [[0, 0], [1, 1], [-1, -1], [-2, 3]])
def test_a_scale_for_dynamic_quantization(x: list[int]) -> None:
    given = np.array(x, "float32")
    quantize = node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])
    check([quantize], {"x": given})
    check([quantize], {}, {"x": given})
