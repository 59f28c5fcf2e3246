"""Invalid models and inputs raise an error that names the position, and never crash."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dparray as dp

onnx = pytest.importorskip("onnx", reason="dparray.onnx needs the package onnx")

from onnx import TensorProto, helper  # noqa: E402

from tests.onnx.test_models import I64, dense, info, make, values  # noqa: E402

node = helper.make_node
BOOL = TensorProto.BOOL


def raises(match: str):
    return pytest.raises(dp.exceptions.OnnxError, match=match)


@pytest.mark.parametrize(
    "text", [b"", b"garbage" * 9, b"\x00" * 100], ids=["empty", "text", "zeros"]
)
def test_bytes_that_are_not_a_model(text: bytes) -> None:
    with raises("not an ONNX model|no graph"):
        dp.onnx.load(text)


def test_a_file_that_does_not_exist_and_a_wrong_argument(tmp_path) -> None:
    with raises("cannot be read"):
        dp.onnx.load(tmp_path / "none.onnx")
    with pytest.raises(dp.exceptions.ArgumentError, match="must be a path"):
        dp.onnx.load(5)
    with pytest.raises(dp.exceptions.ArgumentError, match="max_bytes"):
        dp.onnx.load(dense()[0], max_bytes=-1)


def test_all_unsupported_operators_are_named_at_load() -> None:
    nodes = [
        node("Nope", ["x"], ["a"], name="first"),
        node("Other", ["a"], ["b"], domain="my"),
        node("Nope", ["b"], ["y"]),
    ]
    with raises(r"ai.onnx::Nope \(opset 17, 2 nodes.*'first'.*my::Other.*dp.onnx.operator"):
        dp.onnx.load(make(nodes, [info("x")], [info("y")], my=1))


def test_an_operator_that_the_opset_does_not_have_yet() -> None:
    with raises("Gelu"):
        dp.onnx.load(make([node("Gelu", ["x"], ["y"])], [info("x")], [info("y")], opset=12))


@pytest.mark.parametrize("opset", [0, 99, 2**40])
def test_an_unknown_opset(opset: int) -> None:
    with raises("knows|opset"):
        dp.onnx.load(make([node("Relu", ["x"], ["y"])], [info("x")], [info("y")], opset=opset))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (values(3), r"x: float32\[N, 8\] was given the shape \[3\]"),
        (values(3, 9), r"was given the shape \[3, 9\]"),
        (values(3, 8).astype("float64"), r'float64; convert it: x.astype\("float32"\)'),
        (np.array(["a"]), "convert it"),
        ([[1, 2], [3]], "not an array"),
        (None, "not an array"),
    ],
    ids=["rank", "size", "dtype", "text", "ragged", "none"],
)
def test_inputs_that_the_model_does_not_declare(given: object, match: str) -> None:
    model = dp.onnx.load(dense()[0])
    with raises(match):
        model(given)
    assert model(values(2, 8)).shape == (2, 4)  # it still works


def test_names_and_numbers_of_inputs() -> None:
    model = dp.onnx.load(dense()[0])
    with raises("there is no input 'q'; the inputs are x"):
        model.run({"x": values(1, 8), "q": 1})
    with raises("input x: float32.* is missing"):
        model.run({})
    with raises("has 1 inputs .* but 2 were given"):
        model(1, 2)


def test_one_name_of_a_size_is_one_size() -> None:
    nodes = [node("Add", ["a", "b"], ["y"])]
    model = dp.onnx.load(make(nodes, [info("a", ["N"]), info("b", ["N"])], [info("y")]))
    with raises("N is 3 in the input 'a'"):
        model(values(3), values(1))


def test_an_error_names_the_node_and_the_producers() -> None:
    nodes = [
        node("Relu", ["x"], ["a"], name="early"),
        node("MatMul", ["a", "w"], ["y"], name="late"),
    ]
    model = dp.onnx.load(make(nodes, [info("x")], [info("y")], {"w": values(8, 4)}))
    with raises(
        r"node MatMul 'late': .*a float32\[2, 3\] \(from Relu 'early'\), w float32\[8, 4\]"
    ):
        model(values(2, 3))


@pytest.mark.parametrize(
    ("nodes", "outputs", "match"),
    [
        ([("Relu", "z", "y")], "y", "'z' is not computed before"),
        ([("Relu", "a", "y"), ("Relu", "x", "a")], "y", "'a' is not computed before"),
        ([("Relu", "x", "y"), ("Neg", "x", "y")], "y", "'y' is defined twice"),
        ([("Relu", "x", "a")], "y", "output 'y' is not computed"),
    ],
    ids=["undefined", "order", "twice", "output"],
)
def test_names_within_a_graph(nodes, outputs: str, match: str) -> None:
    made = [node(kind, [one], [other]) for kind, one, other in nodes]
    with raises(match):
        dp.onnx.load(make(made, [info("x")], [info(outputs)]))


# -- external data ---------------------------------------------------------------------------------


def external(folder: Path, location: str, **entries: object) -> Path:
    """Write a model whose weights are in another file."""
    proto = make([node("Add", ["x", "w"], ["y"])], [info("x", [4])], [info("y")], {"w": values(4)})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return folder / "m.onnx"


def test_external_data_is_read(tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/w.bin").write_bytes(b"12345678" + values(4).tobytes())
    model = dp.onnx.load(external(tmp_path, "sub/w.bin", offset=8, length=16))
    np.testing.assert_allclose(model(np.zeros(4, "float32")).asnumpy(), values(4))


@pytest.mark.parametrize(
    ("location", "entries", "match"),
    [
        ("none.bin", {}, "cannot be read"),
        ("../secret", {}, "leaves the folder"),
        ("sub/../../secret", {}, "leaves the folder"),
        (os.path.abspath(os.sep + "etc/hostname"), {}, "path below"),
        ("", {}, "path below"),
        ("link.bin", {}, "symbolic link"),
        ("linked/w.bin", {}, "symbolic link"),
        ("sub", {}, "not a regular file"),
        ("short.bin", {}, "needs 16 bytes, its data has 4"),
        ("w.bin", {"offset": 10**12, "length": 16}, "not in the data file"),
        ("w.bin", {"offset": 8, "length": 16}, "not in the data file"),
        ("w.bin", {"offset": -8}, "not in the data file"),
        ("w.bin", {"length": "x"}, "must be integers"),
    ],
)
def test_external_data_that_must_not_be_read(location, entries, match: str, tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "w.bin").write_bytes(values(4).tobytes())
    (tmp_path / "short.bin").write_bytes(b"1234")
    (tmp_path / "link.bin").symlink_to("w.bin")
    (tmp_path / "linked").symlink_to(tmp_path)
    with raises(match):
        dp.onnx.load(external(tmp_path, location, **entries))


def test_external_data_of_a_model_without_a_folder(tmp_path) -> None:
    path = external(tmp_path, "w.bin")
    with raises("load the model by its path"):
        dp.onnx.load(path.read_bytes())


# -- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dims", "match"),
    [([-1], "negative size"), ([1 << 20, 1 << 20], "max_bytes"), ([1 << 16, 2], "more elements")],
)
def test_weights_whose_shape_is_wrong(dims: list[int], match: str) -> None:
    proto = make([node("Add", ["x", "w"], ["y"])], [info("x")], [info("y")], {"w": values(4)})
    del proto.graph.initializer[0].dims[:]
    proto.graph.initializer[0].dims.extend(dims)
    with raises(match):
        dp.onnx.load(proto, max_bytes=1 << 30)


@pytest.mark.parametrize("kind", ["ConstantOfShape", "Expand", "Range", "Tile", "Pad", "OneHot"])
def test_huge_constants_are_not_allocated(kind: str) -> None:
    huge = np.array([1 << 22, 1 << 23])
    weights = {"s": huge, "one": np.ones((1, 1), "float32"), "n": np.array(1 << 45)}
    weights |= {
        "off_on": np.array([0, 1]),
        "zero": np.array(0),
        "step": np.array(1),
        "p": np.array([0, 0, 1 << 40, 1]),
    }
    nodes = {
        "ConstantOfShape": node(kind, ["s"], ["c"]),
        "Expand": node(kind, ["one", "s"], ["c"]),
        "Tile": node(kind, ["one", "s"], ["c"]),
        "Range": node(kind, ["zero", "n", "step"], ["c"]),
        "Pad": node(kind, ["one", "p"], ["c"]),
        "OneHot": node(kind, ["s", "n", "off_on"], ["c"]),
    }
    proto = make([nodes[kind], node("Shape", ["c"], ["y"])], [], [info("y", dtype=I64)], weights)
    started = time.perf_counter()
    with raises("max_bytes"):
        dp.onnx.load(proto, max_bytes=1 << 30).run({})
    assert time.perf_counter() - started < 120


@pytest.mark.parametrize(
    ("kind", "shapes", "attributes"),
    [
        ("MatMul", [(300, 1), (1, 300)], {}),
        ("MatMul", [(90, 1, 30, 2), (90, 2, 30)], {}),
        ("Gemm", [(1, 300), (1, 300)], {"transA": 1}),
        ("Einsum", [(300,), (300,)], {"equation": "i,j->ij"}),
        ("Einsum", [(300,), (300,)], {"equation": "i,j"}),
        ("Einsum", [(100, 2, 30), (2, 30)], {"equation": "...ij,kj->...ik"}),
    ],
)
def test_products_larger_than_the_limit_are_refused(kind, shapes, attributes) -> None:
    proto = make([node(kind, ["x", "z"], ["y"], **attributes)], [info("x"), info("z")], [info("y")])
    arrays = [values(*shape) for shape in shapes]
    limit = 1 << 10 if kind == "Einsum" and len(shapes[0]) == 3 else 1 << 18
    with raises("max_bytes"):
        dp.onnx.load(proto, max_bytes=limit)(*arrays)
    dp.onnx.load(proto, max_bytes=1 << 26)(*arrays)


@pytest.mark.parametrize(
    ("kind", "shape", "weights", "attributes"),
    [
        ("Reshape", (2, 8), {"w": np.array([-3, 8])}, {}),
        ("Transpose", (2, 8), {}, {"perm": [0, 0]}),
        ("Transpose", (2, 8), {}, {"perm": [0, 3]}),
        ("Transpose", (2, 8), {}, {"perm": [0]}),
        ("Pad", (2, 8), {"w": np.array([0, 0, -3, 0])}, {}),
        ("Conv", (1, 3, 8, 8), {"w": values(4, 3, 3, 3)}, {"pads": [1 << 17] * 4}),
        ("Conv", (1, 3, 8, 8), {"w": values(4, 3, 3, 3)}, {"pads": [-9] * 4}),
        ("MaxPool", (1, 3, 8, 8), {}, {"kernel_shape": [3, 3], "pads": [1 << 17] * 4}),
    ],
)
def test_sizes_that_a_node_cannot_have(kind, shape, weights, attributes) -> None:
    made = [node(kind, ["x", *weights], ["y"], name="late", **attributes)]
    with raises(f"node {kind} 'late': .*(negative size|permutation|max_bytes)"):
        dp.onnx.load(make(made, [info("x")], [info("y")], weights), max_bytes=1 << 30)(
            values(*shape)
        )


HUGE = 1 << 31
FILTERS = {"w": values(4, 3, 3, 3)}

#: Nodes whose attribute is checked at load, and nodes that are checked when the shapes are known.
NUMBERS = [
    ("LayerNormalization", {"s": values(8)}, {"axis": -HUGE}, "load"),
    ("LayerNormalization", {"s": values(8)}, {"axis": -5}, "call"),
    ("Split", {}, {"num_outputs": HUGE}, "load"),
    ("Split", {}, {"num_outputs": 2}, "load"),
    ("Split", {"s": np.zeros(0, "int64")}, {}, "call"),
    ("Split", {"s": np.array([HUGE, 8 - HUGE])}, {}, "call"),
    ("SplitToSequence", {"s": np.array(0)}, {}, "call"),
    ("Flatten", {}, {"axis": HUGE}, "load"),
    ("Flatten", {}, {"axis": 9}, "call"),
    ("Softmax", {}, {"axis": 7}, "call"),
    ("Concat", {}, {"axis": -HUGE}, "load"),
    ("Transpose", {}, {"perm": [0, 1, 2, HUGE]}, "load"),
    ("Conv", FILTERS, {"group": 0}, "load"),
    ("Conv", FILTERS, {"strides": [0, 1]}, "load"),
    ("Conv", FILTERS, {"kernel_shape": [HUGE, HUGE]}, "call"),
    ("ConvTranspose", FILTERS, {"output_shape": [HUGE, HUGE]}, "call"),
    ("ConvTranspose", FILTERS, {"output_padding": [-1, 0]}, "load"),
    ("MaxPool", {}, {"kernel_shape": [HUGE, HUGE], "strides": [HUGE * 2, HUGE * 2]}, "call"),
    ("AveragePool", {}, {"kernel_shape": [3, -1]}, "load"),
    ("LpPool", {}, {"kernel_shape": [3, 3], "p": 0}, "load"),
    ("LRN", {}, {"size": HUGE}, "call"),
    ("DepthToSpace", {}, {"blocksize": 0}, "load"),
    ("GatherND", {"s": np.zeros((1, 1), "int64")}, {"batch_dims": 9}, "call"),
    ("TopK", {"s": np.array([HUGE])}, {}, "call"),
    ("ReverseSequence", {"s": np.array([1, 1, 1])}, {"time_axis": HUGE}, "load"),
    ("OneHot", {"s": np.array(8), "v": np.array([0, 1])}, {"axis": HUGE}, "load"),
]


@pytest.mark.parametrize(("kind", "weights", "attributes", "when"), NUMBERS)
@pytest.mark.sample(len(NUMBERS))
def test_numbers_that_no_node_can_have(kind, weights, attributes, when: str) -> None:
    made = [node(kind, ["x", *weights], ["y"], name="odd", **attributes)]
    proto = make(made, [info("x")], [info("y")], weights, opset=18)
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    match = f"node {kind} 'odd': "
    if when == "load":
        with raises(match):
            dp.onnx.load(proto, max_bytes=1 << 28)
    else:
        model = dp.onnx.load(proto, max_bytes=1 << 28)
        with raises(match):
            model(values(1, 3, 8, 8))
    assert time.perf_counter() - started < 120
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown << 10 < 1 << 28


def test_numbers_of_other_operators_that_would_not_end() -> None:
    def run(kind, inputs, **attributes):
        names = [f"i{at}" for at in range(len(inputs))]
        proto = make(
            [node(kind, names, ["y"], **attributes)],
            [info(name, None, helper.np_dtype_to_tensor_dtype(x.dtype)) for name, x in zip(
                names, inputs, strict=True)],
            [info("y")],
            opset=20,
        )  # fmt: skip
        return dp.onnx.load(proto, max_bytes=1 << 28).run(dict(zip(names, inputs, strict=True)))

    grams = {"mode": "TF", "min_gram_length": 1, "ngram_counts": [0], "pool_int64s": [1, 2]}
    long = {"max_gram_length": HUGE, "max_skip_count": HUGE, "ngram_indexes": [0, 1]}
    found = run("TfIdfVectorizer", [np.array([1, 1, 5])], **grams, **long)
    assert found["y"].tolist() == [2, 0]
    with raises("max_bytes"):
        run("TfIdfVectorizer", [np.array([1])], **grams, **{**long, "ngram_indexes": [0, 1 << 40]})
    with raises("hidden_size=4294967296 does not match"):
        run("RNN", [values(2, 1, 3), values(1, 4, 3), values(1, 4, 4)], hidden_size=2 * HUGE)
    with raises("16777216 terms"):
        run("GridSample", [values(*(1,) * 26), values(*(1,) * 25, 24)])
    with raises("max_bytes"):
        boxes = [np.ones((1, 4), "float32"), np.zeros(1, "int64")]
        run("RoiAlign", [values(1, 1, 4, 4), *boxes], sampling_ratio=HUGE)
    with raises("num_scan_inputs"):
        body = helper.make_graph([node("Identity", ["a"], ["b"])], "b", [info("a")], [info("b")])
        run("Scan", [values(2)], body=body, num_scan_inputs=HUGE)


def test_a_boundary_of_axes_may_be_the_rank() -> None:
    proto = make([node("Flatten", ["x"], ["y"], axis=2)], [info("x")], [info("y")])
    assert dp.onnx.load(proto)(values(2, 3)).shape == (6, 1)


def test_constants_too_large_for_folding_are_computed_by_the_call() -> None:
    nodes = [node("ConstantOfShape", ["s"], ["c"]), node("Add", ["c", "x"], ["y"])]
    weights = {"s": np.array([1 << 19])}
    model = dp.onnx.load(make(nodes, [info("x", [1])], [info("y")], weights))
    assert model.explain().nodes[0].how != "folded"
    assert model(np.ones(1, "float32")).sum().item() == 1 << 19


# -- inputs and attributes that an operator does not declare ---------------------------------------


def schemas() -> dict[str, list[onnx.defs.OpSchema]]:
    """Return all versions of each operator of the standard that dparray has."""
    made: dict[str, list[onnx.defs.OpSchema]] = {
        each.name: [] for each in dp.onnx.supported() if each.how != "user"
    }
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.name in made and not schema.domain and not schema.deprecated:
            made[schema.name].append(schema)
    return made


def declared(schema: onnx.defs.OpSchema, inputs: list[str], **attributes: object):
    """Return a model of one node of a version of an operator."""
    nodes = [node("Relu", ["x"], ["a"], name="early")]
    nodes += [node(schema.name, inputs, ["y"], name="late", **attributes)]
    return make(nodes, [info("x")], [info("y")], opset=schema.since_version)


SCHEMAS = schemas()
_GRAPH = helper.make_graph([node("Relu", ["x"], ["z"])], "g", [], [info("z")])
#: A value for each type of attribute.
DEFAULTS = {"INT": 1, "INTS": [1], "FLOAT": 1.0, "FLOATS": [1.0], "STRING": "a", "GRAPH": _GRAPH}


@pytest.mark.parametrize("name", SCHEMAS)
def test_required_inputs_and_the_types_of_attributes_are_checked_at_load(name: str) -> None:
    for schema in SCHEMAS[name]:
        optional = onnx.defs.OpSchema.FormalParameterOption.Optional
        for count, each in enumerate(schema.inputs[: schema.min_input]):
            if each.option == optional:
                continue
            match = f"{name} 'late': the input {re.escape(each.name)} is required"
            for given in (["a"] * count, ["a"] * count + ["", "a"]):
                with raises(f"{match}.*{'from Relu' if given else 'none'}"):
                    dp.onnx.load(declared(schema, given))
        most = schema.max_input
        if most < 100:
            with raises(f"{name} 'late': {most + 1} inputs are given; .* at most {most}"):
                dp.onnx.load(declared(schema, ["a"] * (most + 1)))
        inputs = ["a"] * schema.min_input
        for key, declaration in schema.attributes.items():
            wrong = helper.make_attribute(key, [0.5])
            if declaration.type.value == wrong.type:
                wrong = helper.make_attribute(key, "text")
            proto = declared(schema, inputs)
            proto.graph.node[1].attribute.append(wrong)
            word = onnx.AttributeProto.AttributeType.Name
            match = f"attribute '{key}' is {word(wrong.type)}; it must be {declaration.type.name}"
            others = [each for each in schema.attributes.values() if each.required]
            with raises(f"{name} 'late': the (attribute '.*' is required|{match})"):
                dp.onnx.load(proto)
            if others in ([], [declaration]):
                with raises(match):
                    dp.onnx.load(proto)


def test_more_outputs_than_the_operator_has() -> None:
    with raises("Relu 'late': 2 outputs are given; .* at most 1; its inputs: x"):
        dp.onnx.load(make([node("Relu", ["x"], ["z", "y"], name="late")], [info("x")], [info("y")]))


@pytest.mark.parametrize(
    ("inputs", "outputs", "match"),
    [(["x", "x"], ["y"], "2 inputs are given"), (["x"], ["z", "y"], "2 outputs are given")]
)  # fmt: skip
def test_a_function_of_the_model_with_other_inputs(inputs, outputs, match: str) -> None:
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("my", "F", ["a"], ["b"], [node("Relu", ["a"], ["b"])], opsets)
    proto = make([node("F", inputs, outputs, domain="my")], [info("x")], [info("y")], my=1)
    proto.functions.append(function)
    with raises(f"my::F: {match}"):
        dp.onnx.load(proto)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_function_is_called_without_an_input_that_its_node_requires(name: str) -> None:
    schema = SCHEMAS[name][-1]
    for at, each in enumerate(schema.inputs):
        may_be_absent = each.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        if may_be_absent or "optional(" in " ".join(each.types):
            continue
        given = ["a"] * max(schema.min_input, at + 1)
        given[at] = "c"
        attributes = {key: DEFAULTS[one.type.name] for key, one in schema.attributes.items()
                      if one.required}  # fmt: skip
        inner = node(name, given, ["b"], name="inner", **attributes)
        opsets = [helper.make_opsetid("", schema.since_version)]
        proto = make([node("F", ["x"], ["y"], domain="my")], [info("x")], [info("y")], my=1,
                     opset=schema.since_version)  # fmt: skip
        proto.functions.append(helper.make_function("my", "F", ["a", "c"], ["b"], [inner], opsets))
        match = (
            f"{name} 'inner': the input {re.escape(each.name)} is required, and is absent; pass c"
        )
        with raises(f"{match} in the call.*; its inputs: .*c absent"):
            dp.onnx.load(proto)(values(2, 3))


def test_a_wrong_attribute_in_a_function_or_in_an_inner_graph() -> None:
    wrong = node("Softmax", ["a"], ["b"], name="inner", axis="last")
    opsets = [helper.make_opsetid("", 17)]
    proto = make([node("F", ["x"], ["y"], domain="my")], [info("x")], [info("y")], my=1)
    proto.functions.append(helper.make_function("my", "F", ["a"], ["b"], [wrong], opsets))
    with raises("Softmax 'inner': the attribute 'axis' is STRING; it must be INT"):
        dp.onnx.load(proto)
    body = helper.make_graph([node("Softmax", ["x"], ["b"], axis="last")], "g", [], [info("b")])
    branch = node("If", ["t"], ["y"], then_branch=body, else_branch=body)
    with raises("the attribute 'axis' is STRING; it must be INT"):
        dp.onnx.load(make([branch], [info("x"), info("t", [], BOOL)], [info("y")]))


# -- functions and loops ---------------------------------------------------------------------------


def test_a_function_that_calls_itself() -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    f = helper.make_function(
        "my", "F", ["a"], ["b"], [node("G", ["a"], ["b"], domain="my")], opsets
    )
    g = helper.make_function(
        "my", "G", ["a"], ["b"], [node("F", ["a"], ["b"], domain="my")], opsets
    )
    proto = make([node("F", ["x"], ["y"], domain="my")], [info("x")], [info("y")], my=1)
    proto.functions.extend([f, g])
    with raises("calls itself: F -> G -> F"):
        dp.onnx.load(proto)


def test_a_function_of_the_model_is_computed() -> None:
    opsets = [helper.make_opsetid("", 17)]
    body = [node("Mul", ["a", "a"], ["s"]), node("Add", ["s", "a"], ["b"])]
    function = helper.make_function("my", "F", ["a"], ["b"], body, opsets)
    proto = make([node("F", ["x"], ["y"], domain="my")], [info("x")], [info("y")], my=1)
    proto.functions.append(function)
    x = values(5)
    np.testing.assert_allclose(dp.onnx.load(proto)(x).asnumpy(), x * x + x, rtol=1e-6)


def test_attributes_of_a_call_are_those_of_nodes_in_the_function() -> None:
    inner = node("LeakyRelu", ["a"], ["b"])
    inner.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    opsets = [helper.make_opsetid("", 17)]
    function = helper.make_function("my", "F", ["a"], ["b"], [inner], opsets, attributes=["slope"])
    nodes = [node("F", ["x"], ["y"], domain="my", slope=0.5)]
    nodes += [node("F", ["y"], ["z"], domain="my", slope=0.25)]
    proto = make(nodes, [info("x")], [info("z")], my=1)
    proto.functions.append(function)
    x = values(9)
    expected = np.where(x < 0, x * 0.125, x)
    np.testing.assert_allclose(dp.onnx.load(proto)(x).asnumpy(), expected, rtol=1e-6)


def endless() -> onnx.ModelProto:
    body = helper.make_graph(
        [node("Identity", ["c"], ["d"]), node("Add", ["v", "v"], ["w"])],
        "body",
        [info("i", [], I64), info("c", [], BOOL), info("v")],
        [info("d", [], BOOL), info("w")],
    )
    return make([node("Loop", ["", "t", "x"], ["y"], body=body)], [info("x"), info("t", [], BOOL)],
                [info("y")])  # fmt: skip


@pytest.mark.process
def test_an_endless_loop_can_be_interrupted() -> None:
    script = f"""
import signal, numpy as np, dparray as dp
model = dp.onnx.load({endless().SerializeToString()!r})
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 1)
    model(np.ones(2, "float32"), np.array(True))
except KeyboardInterrupt:
    print("interrupted")
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert run.stdout == "interrupted\n", run.stderr


@pytest.mark.process
@pytest.mark.parametrize("count", [60, pytest.param(5000, marks=pytest.mark.slow)])
def test_mutated_models_never_crash(count: int) -> None:
    script = Path(__file__).with_name("mutations.py")
    run = subprocess.run(
        [sys.executable, str(script), "0", str(count)], capture_output=True, text=True, timeout=600
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "other" not in run.stdout, run.stdout
