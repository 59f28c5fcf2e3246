"""Load and run mutated models: whatever the bytes are, the error is an `OnnxError`.

Run as a program, ``mutations.py SEED COUNT``: it limits its memory and counts the outcomes.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import warnings
from collections import Counter

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dparray as dp


def models() -> list[onnx.ModelProto]:
    """Return small models with many kinds of attributes and constants."""
    node, info = helper.make_node, helper.make_tensor_value_info
    x, y = info("x", TensorProto.FLOAT, [1, 2, 6, 6]), info("y", TensorProto.FLOAT, None)
    weights = {
        "w": np.ones((4, 2, 3, 3), "float32"), "b": np.ones(4, "float32"),
        "s": np.array([1, -1]), "g": np.array([2, 2]), "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "r": np.array([1, 1, 2, 2], "float32"), "i": np.array([0, 1]),
    }  # fmt: skip
    graphs = [
        [
            node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
            node("Relu", ["c"], ["d"]),
            node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2]),
            node("Reshape", ["e", "s"], ["f"]),
            node("Softmax", ["f"], ["y"], axis=1),
        ],
        [
            node("Pad", ["x", "p"], ["c"]),
            node("Resize", ["c", "", "r"], ["d"], mode="linear"),
            node("Transpose", ["d"], ["e"], perm=[0, 2, 3, 1]),
            node("ReduceMean", ["e"], ["f"], axes=[1, 2]),
            node("Gather", ["f", "i"], ["y"], axis=3),
        ],
        [
            node("ConstantOfShape", ["g"], ["c"]),
            node("Expand", ["c", "g"], ["d"]),
            node("Tile", ["d", "g"], ["e"]),
            node("Split", ["e"], ["f", "h"], axis=0),
            node("Concat", ["f", "h"], ["k"], axis=1),
            node("ReduceSum", ["k", "i"], ["l"]),
            node("Mul", ["x", "l"], ["y"]),
        ],
    ]
    made = []
    for nodes in graphs:
        used = {name for each in nodes for name in each.input}
        tensors = [numpy_helper.from_array(v, k) for k, v in weights.items() if k in used]
        graph = helper.make_graph(nodes, "g", [x], [y], tensors)
        opset = [helper.make_opsetid("", 13)]
        made.append(helper.make_model(graph, opset_imports=opset, ir_version=8))
    return made


def mutated(text: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few changes: other bytes, gaps, repetitions."""
    data = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del data[at : at + chance.randint(1, 8)]
        else:
            data[at:at] = data[at : at + chance.randint(1, 8)]
    return bytes(data)


def changed(model: onnx.ModelProto, chance: random.Random) -> onnx.ModelProto:
    """Return a model with other numbers in attributes, sizes and constants."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    numbers = [-1, 0, 1, 2, 3, 7, -5, 1 << 31, 1 << 40, -(1 << 40), (1 << 63) - 1]
    for _ in range(chance.randint(1, 3)):
        node = chance.choice(made.graph.node)
        kind = chance.randrange(5)
        if kind == 0 and node.attribute:
            attribute = chance.choice(node.attribute)
            if attribute.ints:
                attribute.ints[chance.randrange(len(attribute.ints))] = chance.choice(numbers)
            else:
                attribute.i = chance.choice(numbers)
        elif kind == 1 and node.input:
            names = [name for each in made.graph.node for name in (*each.input, *each.output)]
            node.input[chance.randrange(len(node.input))] = chance.choice([*names, ""])
        elif kind == 2:
            node.op_type = chance.choice(
                ["Add", "Gemm", "LSTM", "TopK", "Slice", "Loop", "OneHot", "Range", "LRN", "Einsum"]
            )
        elif kind == 3:
            tensor = chance.choice(made.graph.initializer)
            del tensor.dims[:]  # an earlier change may have made its shape invalid
            tensor.dims.append(len(tensor.raw_data) // (4 if tensor.data_type == 1 else 8))
            value = numpy_helper.to_array(tensor).copy()
            if value.dtype.kind == "i":
                value[chance.randrange(value.size)] = chance.choice(numbers)
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
        else:
            tensor = chance.choice(made.graph.initializer)
            tensor.dims[0] = chance.choice(numbers)
    return made


def main(seed: int, count: int) -> None:
    """Run ``count`` mutated models, and count the outcomes."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    base, ends = models(), Counter()
    x = np.ones((1, 2, 6, 6), "float32")
    for model in base:
        assert dp.onnx.load(model)(x).asnumpy().size  # the unchanged models are valid
    for number in range(seed, seed + count):
        chance = random.Random(number)
        model = chance.choice(base)
        if chance.random() < 0.5:
            given = mutated(model.SerializeToString(), chance)
        else:
            given = changed(model, chance)
        signal.alarm(60)
        try:
            made = dp.onnx.load(given, max_bytes=1 << 28).run({"x": x})
            for value in made.values():
                if isinstance(value, dp.ndarray):
                    value.asnumpy()
            ends["run"] += 1
        except dp.onnx.OnnxError:
            ends["OnnxError"] += 1
        except Exception as error:
            print(f"seed {number}: {type(error).__name__}: {error}")
            ends["other"] += 1
    print(dict(ends))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
