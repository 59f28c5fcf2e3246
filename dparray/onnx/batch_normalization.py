"""Merge batch normalization into the convolution before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray.onnx.graph import Graph, Node


def merge_batch_norms(graph: Graph, model: Any) -> None:
    """Scale the filters of each Conv that is read only by a BatchNormalization, and remove that."""
    readers: dict[str, list[Node]] = {}
    for node in graph.all_nodes():
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    producers = {name: node for node in graph.nodes for name in node.outputs if name}
    left = []
    for node in graph.nodes:
        conv = producers.get(node.inputs[0]) if node.inputs else None
        if conv is None or not _may_merge(node, conv, graph, readers):
            left.append(node)
            continue
        _merge(node, conv, graph)
        conv.outputs = [node.outputs[0]]
        producers[node.outputs[0]] = conv
        model.merged[node.number] = conv.label
    graph.nodes = left


def _may_merge(node: Node, conv: Node, graph: Graph, readers: dict[str, list[Node]]) -> bool:
    constants = [*conv.inputs[1:], *node.inputs[1:]]
    return (
        (node.operator, conv.operator) == ("BatchNormalization", "Conv")
        and not node.domain + conv.domain
        and not node.attributes.get("training_mode", 0)
        and len(node.inputs) == 5
        and [name for name in node.outputs if name] == node.outputs[:1]
        and len(readers.get(conv.outputs[0], ())) == 1
        and conv.outputs[0] not in graph.outputs
        and all(name in graph.constants and name not in graph.inputs for name in constants if name)
        and all(graph.constants[name].dtype.kind == "f" for name in constants if name)
        and graph.constants[conv.inputs[1]].ndim > 2
        and {graph.constants[name].shape for name in node.inputs[1:]}
        == {graph.constants[conv.inputs[1]].shape[:1]}
    )


def _merge(node: Node, conv: Node, graph: Graph) -> None:
    scale, shift, mean, variance = (
        graph.constants[name].astype("float64") for name in node.inputs[1:]
    )
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    filters = graph.constants[conv.inputs[1]]
    has_bias = len(conv.inputs) > 2 and conv.inputs[2]
    bias: Any = graph.constants[conv.inputs[2]] if has_bias else np.zeros(())
    wide = factor.reshape(-1, *(1,) * (filters.ndim - 1))
    merged = np.empty_like(filters)  # computed in float64 piece by piece, and rounded once
    np.multiply(filters, wide, out=merged, dtype="float64", casting="same_kind")
    shifted = ((bias - mean) * factor + shift).astype(filters.dtype)
    names = f"{conv.inputs[1]} with {node.outputs[0]}", f"bias with {node.outputs[0]}"
    graph.constants.update(zip(names, (merged, shifted), strict=True))
    conv.inputs = [conv.inputs[0], *names]
