"""Checks of a model before it is run, and of inputs before they are used."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto

from dparray._layout import MAX_DIMENSIONS
from dparray.exceptions import OnnxError
from dparray.onnx.graph import Graph, Node, standard_function
from dparray.onnx.operator_table import standard_domain
from dparray.onnx.tensors import check_external, numpy_dtype

_POSITIVE = (
    *("kernel_shape", "strides", "dilations", "group", "num_groups", "blocksize", "size", "p"),
    *("hidden_size", "chunk_size", "offset_group", "num_scan_inputs", "num_outputs"),
    *("min_gram_length", "max_gram_length", "output_height", "output_width", "sample_size"),
)
_NOT_NEGATIVE = (
    *("sampling_ratio", "max_skip_count", "block_size", "output_padding", "split", "num_heads"),
    *("output_shape", "batch_dims", "ngram_counts", "ngram_indexes", "q_num_heads", "perm"),
    *("kv_num_heads", "rotary_embedding_dim", "time_axis", "batch_axis"),
)
#: The least value of each attribute that is a count or a size.
_LEAST = dict.fromkeys(_POSITIVE, 1) | dict.fromkeys(_NOT_NEGATIVE, 0)
#: Attributes that are axes or numbers of axes.
_AXES = frozenset(
    {"axis", "axes", "batch_axis", "time_axis", "batch_dims", "scan_input_axes"}
    | {"scan_output_axes", "perm"}
)

#: The maximum depth of nested graphs.
MAX_DEPTH = 100


def opsets(proto: Any) -> dict[str, int]:
    """Return the version of each domain; raise for versions newer than the installed standard."""
    if not proto.HasField("graph"):
        raise OnnxError("this is not an ONNX model: it has no graph")
    result = {standard_domain(each.domain): int(each.version) for each in proto.opset_import}
    result.setdefault("", 1)
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= result[""] <= newest:
        raise OnnxError(
            f"the model is written for opset {result['']}; onnx {onnx.__version__} supports "
            f"opsets 1 to {newest}: install a newer one, or export the model for opset {newest}"
        )
    return result


def functions(proto: Any) -> dict[tuple[str, str, str], Any]:
    """Return the functions of a model by domain, name and overload; none may call itself."""
    result = {
        (standard_domain(f.domain), f.name, getattr(f, "overload", "")): f for f in proto.functions
    }
    done: set[Any] = set()

    def visit(key: Any, path: tuple[Any, ...]) -> None:
        if key in path:
            names = " -> ".join(name for _, name, _ in (*path, key))
            raise OnnxError(f"the function {key[1]!r} calls itself: {names}")
        if key in done:
            return
        for node in _nodes(result[key].node):
            called = (standard_domain(node.domain), node.op_type, getattr(node, "overload", ""))
            if called in result:
                visit(called, (*path, key))
        done.add(key)

    for key in result:
        visit(key, ())
    return result


def _nodes(nodes: Any, depth: int = 0) -> Iterator[Any]:
    if depth > MAX_DEPTH:
        raise OnnxError(f"graphs are nested more than {MAX_DEPTH} deep")
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g.node, depth + 1)
            for graph in attribute.graphs:
                yield from _nodes(graph.node, depth + 1)


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in _nodes(graph.node):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from attribute.g.initializer


def weights(proto: Any, folder: Path | None, max_bytes: int) -> int:
    """Return the size of the weights in bytes, after checking the location of their data."""
    total = 0
    for each in _tensors(proto.graph):
        if each.data_location == onnx.TensorProto.EXTERNAL:
            check_external(each, folder)
        if any(size < 0 for size in each.dims):
            raise OnnxError(f"tensor {each.name!r}: shape {list(each.dims)} has a negative size")
        dtype = numpy_dtype(each.data_type)
        total += math.prod(each.dims) * (0 if dtype.kind == "O" else dtype.itemsize)
    if total > max_bytes:
        raise OnnxError(
            f"the weights have {total:,} bytes, more than max_bytes, {max_bytes:,}; pass a larger "
            "max_bytes to dp.onnx.load if this is intended"
        )
    return total


def names(graph: Graph, outer: frozenset[str] = frozenset()) -> None:
    """Check that each value is computed once, and before it is used."""
    known = {*graph.inputs, *graph.constants}
    for node in graph.nodes:
        for name in node.inputs:
            if name and name not in known and name not in outer:
                raise OnnxError(f"node {node.label}: its input {name!r} is not computed before it")
        for inner in node.graphs:
            names(inner, outer | known)
        for name in node.outputs:
            if name and name in known:
                raise OnnxError(f"node {node.label}: its output {name!r} is defined twice")
            known.add(name)
    for name in graph.outputs:
        if name not in known and name not in outer:
            raise OnnxError(f"the output {name!r} is not computed by any node")


def signatures(graph: Graph, model: Any) -> None:
    """Check the nodes of a model and of its functions against the operators' declarations."""
    nodes = list(graph.all_nodes())
    for function in model.functions.values():
        opset = {standard_domain(each.domain): each.version for each in function.opset_import}
        nodes += [Node(each, {**model.opset, **opset}, model) for each in _nodes(function.node)]
    _supported([node for node in nodes if not _is_supported(node, model)])
    for node in nodes:
        if problem := _problem(node, model):
            given = ", ".join(name + model.producer_of(name) for name in node.inputs if name)
            raise OnnxError(f"node {node.label}: {problem}; its inputs: {given or 'none'}")


def _problem(node: Node, model: Any) -> str | None:
    """Return why the inputs, outputs or attributes of a node are invalid, or None."""
    row, function = node.row(), model.function_of(node)
    if row is not None and row.is_users:
        return None  # the user's function decides
    if function is None:
        inputs, attributes, most, outputs = _declared(node.operator, node.version, node.domain)
    else:
        inputs, attributes, most, outputs = (), {}, len(function.input), len(function.output)
    for number, (name, is_required) in enumerate(inputs):
        if is_required and not "".join(node.inputs[number : number + 1]):
            return f"the input {name} is required, and is missing"
    for count, limit, kind in ((len(node.inputs), most, "in"), (len(node.outputs), outputs, "out")):
        if count > limit:
            return f"{count} {kind}puts are given; this operator has at most {limit}"
    given = {each.name: each.type for each in node.proto.attribute}
    for name, (wanted, is_required) in attributes.items():
        if given.get(name, wanted) != wanted:
            kinds = [AttributeProto.AttributeType.Name(each) for each in (given[name], wanted)]
            return "the attribute {!r} is {}; it must be {}".format(name, *kinds)
        if is_required and name not in given:
            return f"the attribute {name!r} is required, and is missing"
    return None if function is not None or node.domain else _bad_number(node)


def _bad_number(node: Node) -> str | None:
    """Return why an attribute that is a count, a size or an axis is invalid, or None.

    Ranks and sizes are checked when they are known. No number may be so large, or so small, that
    looping over it or allocating memory for it would not end.
    """
    for name, value in node.attributes.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(isinstance(number, int) for number in numbers):
            continue
        least = _LEAST.get(name)
        if least is not None and min(numbers, default=least) < least:
            return f"the attribute {name!r} is {value}; it must be at least {least}"
        if name in _AXES and max(map(abs, numbers), default=0) > MAX_DIMENSIONS:
            return f"the attribute {name!r} is {value}; an array has {MAX_DIMENSIONS} axes at most"
        if name == "perm" and sorted(numbers) != list(range(len(numbers))):
            return f"the attribute 'perm' is {value}; it must be a permutation of the axes"
    if node.operator == "Split":
        count = len(node.outputs)
        for name, parts in (
            ("num_outputs", node.attributes.get("num_outputs", count)),
            ("split", len(node.attributes.get("split") or node.outputs)),
        ):
            if parts not in (None, count):
                return f"the attribute {name!r} is for {parts} outputs; the node has {count}"
    return None


@functools.cache
def _declared(operator: str, version: int, domain: str) -> tuple[Any, Any, int, int]:
    """Return inputs, attributes, and the largest numbers of inputs and outputs of an operator."""
    schema = onnx.defs.get_schema(operator, version, domain)
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    inputs = [
        (each.name, number < schema.min_input and each.option != optional)
        for number, each in enumerate(schema.inputs)
    ]
    attributes = {key: (each.type.value, each.required) for key, each in schema.attributes.items()}
    return inputs, attributes, schema.max_input, schema.max_output


def _supported(missing: list[Node]) -> None:
    """Raise one error that lists all operators that dparray does not have."""
    if missing:
        kinds: dict[str, list[Node]] = {}
        for node in missing:
            kinds.setdefault(f"{node.domain or 'ai.onnx'}::{node.operator}", []).append(node)
        listed = ", ".join(
            f"{kind} (opset {found[0].version}, {len(found)} nodes, first {found[0].label})"
            for kind, found in sorted(kinds.items())
        )
        raise OnnxError(
            f"the model has operators that dparray does not have: {listed}; write them with "
            '@dp.onnx.operator("Name", domain="...")'
        )


def _is_supported(node: Node, model: Any) -> bool:
    if node.row() is not None or model.function_of(node) is not None:
        return True
    return bool(standard_function(node, None))


def inputs(given: Mapping[str, Any], declared: Sequence[Any]) -> None:
    """Check inputs against the declared dtypes, ranks and sizes; a size name has one value."""
    sizes: dict[str, tuple[int, str]] = {}
    for info in declared:
        if info.name not in given or info.dtype is None:
            continue
        x = given[info.name]
        if not hasattr(x, "dtype"):
            raise OnnxError(f"the input {info} was given {type(x).__name__}, not an array")
        is_text = info.dtype == object and x.dtype.kind in "OUST"
        if x.dtype != info.dtype and not is_text:
            fix = f'x.astype("{info.dtype}")'
            raise OnnxError(f"the input {info} was given {x.dtype}; convert it: {fix}")
        if info.shape is None:
            continue
        pairs = list(zip(x.shape, info.shape, strict=False))
        if x.ndim != len(info.shape) or any(isinstance(b, int) and a != b for a, b in pairs):
            raise OnnxError(f"the input {info} was given the shape {list(x.shape)}")
        for size, wanted in pairs:
            if isinstance(wanted, str):
                before, first = sizes.setdefault(wanted, (size, info.name))
                if before != size:
                    raise OnnxError(
                        f"the input {info} was given the shape {list(x.shape)}, but {wanted} is "
                        f"{before} in the input {first!r}"
                    )
