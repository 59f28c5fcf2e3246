"""Compare `dparray.onnx` with onnxruntime: ``python -m tests.benchmarks.models [model.onnx ...]``.

Without arguments, two networks with random weights are compared, written as exporters write them:
ResNet-18 (1,814 million multiplications) and MobileNetV2 (299 million) on one image. The times are
the 20th percentile of interleaved calls, as elapsed time and as CPU time. onnxruntime is not a
locked dependency: ``pip install onnxruntime``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import dparray as dp

CALLS = 25


class Network:
    """A graph that is built by calls; values are names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.random = np.random.default_rng(0)

    def weight(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, "float32"), name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def conv(
        self, x: str, depth: int, filters: int, size: int, step: int = 1, groups: int = 1
    ) -> str:
        """Add a convolution that keeps the size at step 1, and batch normalization."""
        shape = (filters, depth // groups, size, size)
        scale = np.sqrt(2 / np.prod(shape[1:]))
        y = self.node(
            "Conv", x, self.weight(self.random.standard_normal(shape) * scale),
            pads=[size // 2] * 4, strides=[step] * 2, group=groups,
        )  # fmt: skip
        some = [self.random.uniform(0.8, 1.2, filters) for _ in range(4)]
        return self.node("BatchNormalization", y, *map(self.weight, some))

    def classified(self, x: str, depth: int, name: str) -> Any:
        """Return the model, which ends with the scores of 1,000 classes."""
        x = self.node("Flatten", self.node("GlobalAveragePool", x))
        weights = self.random.standard_normal((1000, depth)) * 0.05
        y = self.node("Gemm", x, self.weight(weights), self.weight(np.zeros(1000)), transB=1)
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])
        made = helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 1000])
        graph = helper.make_graph(self.nodes, name, [given], [made], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model


def resnet_18() -> Any:
    network = Network()
    x = network.node("Relu", network.conv("x", 3, 64, 7, 2))
    x = network.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    depth = 64
    for filters in (64, 128, 256, 512):
        for step in (1 if filters == 64 else 2, 1):
            y = network.node("Relu", network.conv(x, depth, filters, 3, step))
            y = network.conv(y, filters, filters, 3)
            x = x if depth == filters else network.conv(x, depth, filters, 1, step)
            x, depth = network.node("Relu", network.node("Add", y, x)), filters
    return network.classified(x, depth, "ResNet-18")


def mobilenet_v2() -> Any:
    network = Network()
    low, high = network.weight(0.0), network.weight(6.0)

    def clipped(x: str) -> str:
        return network.node("Clip", x, low, high)

    x, depth = clipped(network.conv("x", 3, 32, 3, 2)), 32
    for wider, filters, count, first in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for step in (first, *[1] * (count - 1)):
            wide = depth * wider
            y = x if wider == 1 else clipped(network.conv(x, depth, wide, 1))
            y = clipped(network.conv(y, wide, wide, 3, step, wide))
            y = network.conv(y, wide, filters, 1)
            x = network.node("Add", y, x) if step == 1 and depth == filters else y
            depth = filters
    return network.classified(clipped(network.conv(x, depth, 1280, 1)), 1280, "MobileNetV2")


def _wait_for_threads() -> None:
    """Wait until the previous function's threads sleep: onnxruntime's spin after a call."""
    spent = 1.0
    while spent > 2e-4:
        before = time.process_time()
        time.sleep(0.02)
        spent = time.process_time() - before


def measured(functions: list[Callable[[], Any]]) -> list[tuple[float, float]]:
    """Return elapsed and CPU milliseconds for each function."""
    spent: list[list[tuple[float, float]]] = [[] for _ in functions]
    for _ in range(CALLS):
        for function, times in zip(functions, spent, strict=True):
            _wait_for_threads()
            wall, cpu = time.perf_counter(), time.process_time()
            function()
            times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return [
        (1e3 * sorted(wall)[CALLS // 5], 1e3 * sorted(cpu)[CALLS // 5])
        for wall, cpu in (zip(*times, strict=True) for times in spent)
    ]


def compare(name: str, proto: Any) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    random, inputs = np.random.default_rng(0), {}
    for each in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in each.shape]
        word = each.type[len("tensor(") : -1]
        dtype = np.dtype({"float": "float32", "double": "float64"}.get(word, word))
        values = (
            random.standard_normal(shape) if dtype.kind == "f" else random.integers(0, 256, shape)
        )
        inputs[each.name] = values.astype(dtype)
    model = dp.onnx.load(proto)

    def ours() -> list[np.ndarray]:
        return [value.asnumpy() for value in model.run(inputs).values()]

    start = time.perf_counter()
    results = ours()
    first = time.perf_counter() - start
    error = max(
        float(np.abs(a - b).max() / np.abs(b).max())
        for a, b in zip(results, session.run(None, inputs), strict=True)
    )
    for _ in range(10):  # kernels are compiled in the background
        ours()
        time.sleep(0.5)
    (wall, cpu), (their_wall, their_cpu) = measured([ours, lambda: session.run(None, inputs)])
    print(
        f"{name}: error {error:.0e}, first call {first:.2f} s; wall {wall:.1f} ms, onnxruntime "
        f"{their_wall:.1f}, ratio {wall / their_wall:.2f}; CPU {cpu:.1f} ms, onnxruntime "
        f"{their_cpu:.1f}, ratio {cpu / their_cpu:.2f}",
        flush=True,
    )


def main() -> None:
    paths = sys.argv[1:]
    for path in paths:
        compare(Path(path).stem, onnx.load(path))
    if not paths:
        for model in (resnet_18(), mobilenet_v2()):
            compare(model.graph.name, model)


if __name__ == "__main__":
    main()
