"""Nodes and graphs of a model, decoded once, and the pass that runs them."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

from dparray._dtypes import SUPPORTED
from dparray.exceptions import DparrayError, OnnxError
from dparray.onnx import functions as dp
from dparray.onnx.call_recorder import NeedsHostValue, Recorder, Traced
from dparray.onnx.operator_table import HOST, ROWS, Call, Row, is_traced, standard_domain
from dparray.onnx.tensors import dense, tensor

#: Constants that are folded at load and are larger than this are computed at each call instead.
MAX_FOLDED_BYTES = 1 << 20


class TooLargeToFold(Exception):
    """Raised for a constant that is too large to fold at load; the first call computes it."""


class Node:
    """A node with decoded attributes.

    Attributes:
        operator, domain, version: the operator and its opset.
        inputs, outputs: names of values; ``""`` for absent ones.
        attributes: by name; graphs are `Graph` objects.
        number: its position in the model's graph; -1 in inner graphs, whose work counts for the
            outer node.
        cache: values that the implementation derived from constants.
    """

    def __init__(self, proto: Any, opsets: Mapping[str, int], model: Any) -> None:
        self.proto, self.model = proto, model
        self.operator, self.domain = proto.op_type, standard_domain(proto.domain)
        self.version = opsets.get(self.domain, 1)
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        self.number = -1
        self.cache: dict[Any, Any] = {}
        self.attributes: dict[str, Any] = {}
        for attribute in proto.attribute:
            self.attributes[attribute.name] = _attribute(attribute, opsets, model)

    @property
    def label(self) -> str:
        """The operator and the name, for messages."""
        name = f"{self.domain}::{self.operator}" if self.domain else self.operator
        return f"{name} {self.proto.name!r}" if self.proto.name else name

    @property
    def graphs(self) -> list[Graph]:
        """The graphs among the attributes."""
        return [value for value in self.attributes.values() if isinstance(value, Graph)]

    def row(self) -> Row | None:
        """Return the implementation of this node; a function of the model takes precedence."""
        if self.model.function_of(self) is not None:
            return None
        key = (self.domain, self.operator)
        row = self.model.own_rows.get(key) or ROWS.get(key)
        if row is None or row.is_users:
            return row if row is None or row.since <= self.version else None
        # The standard's operators exist from some opset on.
        return row if onnx.defs.has(self.operator, self.version, "") else None


def _attribute(attribute: Any, opsets: Mapping[str, int], model: Any) -> Any:
    if attribute.ref_attr_name:
        return None  # an attribute of the function around it, which each call gives
    if attribute.type == AttributeProto.GRAPH:
        return Graph(attribute.g, opsets, model)
    if attribute.type == AttributeProto.TENSOR:
        return tensor(attribute.t, model.folder)
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        return dense(attribute.sparse_tensor, model.folder)
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple) and value and isinstance(value[0], bytes):
        return [each.decode() for each in value]
    return value


class Graph:
    """A graph: names of inputs and outputs, constants by name, and nodes in their order."""

    def __init__(self, proto: Any, opsets: Mapping[str, int], model: Any) -> None:
        self.model = model
        self.inputs = [value.name for value in proto.input]
        self.outputs = [value.name for value in proto.output]
        self.constants = {each.name: tensor(each, model.folder) for each in proto.initializer}
        for sparse in proto.sparse_initializer:
            self.constants[sparse.values.name] = dense(sparse, model.folder)
        self.weights = {name: x for name, x in self.constants.items() if name not in self.inputs}
        self.nodes = [Node(each, opsets, model) for each in proto.node]
        self._last_use: dict[str, int] | None = None

    def all_nodes(self) -> Iterator[Node]:
        """Iterate over the nodes of this graph and of those in attributes."""
        for node in self.nodes:
            yield node
            for graph in node.graphs:
                yield from graph.all_nodes()

    def free_names(self) -> set[str]:
        """Return the names that graphs around this one define."""
        own = {*self.inputs, *self.constants, *(o for node in self.nodes for o in node.outputs)}
        used = {*self.outputs, *(i for node in self.nodes for i in _reads(node))}
        return used - own - {""}

    def fold(self) -> int:
        """Compute the nodes that depend on constants only; return their number."""
        run = Run(self.model, Recorder(self.model.device, self.model.placed), folding=True)
        left: list[Node] = []
        for node in self.nodes:
            for graph in node.graphs:
                graph.fold()
            row = node.row()
            may_fold = row and not (row.is_on_device or row.reads_graphs or row.is_random)
            if may_fold and all(name in self.constants or not name for name in node.inputs):
                values = [self.constants.get(name) for name in node.inputs]
                try:
                    results = run.node(node, values, self.constants)
                except TooLargeToFold:
                    left.append(node)
                    continue
                if all(isinstance(result, np.ndarray | np.generic) for result in results):
                    made = zip(node.outputs, results, strict=False)
                    self.constants.update((name, np.asarray(x)) for name, x in made if name)
                    self.model.folded.append(node)
                    continue
            left.append(node)
        self.nodes = left
        return len(self.model.folded)

    def last_use(self) -> dict[str, int]:
        """Return for each name the position of the last node that reads the value."""
        if self._last_use is None:
            self._last_use = {i: k for k, node in enumerate(self.nodes) for i in _reads(node)}
        return self._last_use

    def run(self, run: Run, inputs: Mapping[str, Any], scope: Any = None) -> list[Any]:
        """Run the graph.

        Args:
            run: the pass through the model.
            inputs: the values of the inputs.
            scope: the values of the outer graphs; None for the outermost graph, whose values are
                dropped after their last use.
        """
        own = {**self.constants, **inputs}
        values: Any = own if scope is None else ChainMap(own, *getattr(scope, "maps", [scope]))
        last = self.last_use() if scope is None else {}
        for position, node in enumerate(self.nodes):
            given = [values[name] if name else None for name in node.inputs]
            for name, value in zip(node.outputs, run.node(node, given, values), strict=False):
                if name:
                    own[name] = value
            for name in node.inputs:
                if last.get(name) == position and name not in self.outputs:
                    own.pop(name, None)
        return [values.get(name) for name in self.outputs]


def _reads(node: Node) -> list[str]:
    return [*node.inputs, *(name for graph in node.graphs for name in graph.free_names())]


class Run:
    """One pass through a model: implementations compute its nodes, and a recorder records calls."""

    def __init__(self, model: Any, recorder: Recorder, folding: bool = False) -> None:
        self.model, self.device, self._folding = model, recorder, folding

    def node(self, node: Node, values: list[Any], scope: Any) -> tuple[Any, ...]:
        """Compute a node; errors name it."""
        outer = self.device.label
        if outer < 0:
            self.device.label = node.number
        try:
            with np.errstate(all="ignore"):
                result = self._call(node, values, scope)
        except (NeedsHostValue, TooLargeToFold):
            raise
        except OnnxError as error:
            raise error if error.is_located else self._located(node, values, error) from error
        except DparrayError as error:
            if isinstance(error, dp.exceptions.ExecutionPlacementError):
                raise  # its message has the line that moves the data
            raise self._located(node, values, error) from error
        except (
            ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
            NotImplementedError, RecursionError, RuntimeError, TypeError, ValueError,
        ) as error:  # fmt: skip
            row = node.row()
            if row is not None and row.is_users:
                raise  # an error in a user function is passed on unchanged
            raise self._located(node, values, error) from error
        finally:
            self.device.label = outer
        return result if isinstance(result, tuple) else (result,)

    def _located(self, node: Node, values: list[Any], error: BaseException) -> OnnxError:
        given = ", ".join(
            f"{name} {_described(value)}{self.model.producer_of(name)}"
            for name, value in zip(node.inputs, values, strict=False)
            if name
        )
        text = str(error) or type(error).__name__
        located = OnnxError(f"node {node.label}: {text}; its inputs: {given or 'none'}")
        located.is_located = True
        return located

    def _call(self, node: Node, values: list[Any], scope: Any) -> Any:
        row = node.row()
        if any(value is None for value in values):
            _check_absent(node, row, values)
        if row is None:
            return self.model.function_graph(node, values).run(self, values)
        if row.is_users:
            arrays = [self.device.place(value) for value in values]
            return self.device.call(row.function, Call(node, self.device, self), *arrays)
        on_device = row.is_on_device or any(map(is_traced, values))
        if on_device and any(_only_on_host(value) for value in values):
            on_device = False
            values = [
                Call(node, HOST, self).host(x) if isinstance(x, Traced) else x for x in values
            ]
        if row.is_on_device and on_device:
            count = len(values) if row.placed is None else row.placed
            values = [*map(self.device.place, values[:count]), *values[count:]]
        return row.function(Call(node, self.device if on_device else HOST, self, scope), *values)

    @staticmethod
    def is_device_dtype(dtype: Any) -> bool:
        """Return whether arrays on the device can have a dtype."""
        return np.dtype(dtype) in DEVICE_DTYPES

    def check_size(self, shape: Any, dtype: Any) -> None:
        """Raise if an array would exceed the limit of the model, or of folding at load."""
        if any(size < 0 for size in shape):
            raise OnnxError(f"the shape {tuple(shape)} has a negative size")
        count = math.prod(int(size) for size in shape) * np.dtype(dtype).itemsize
        if count > self.model.max_bytes:
            raise OnnxError(
                f"an array of {count:,} bytes is larger than max_bytes, {self.model.max_bytes:,}; "
                "pass a larger max_bytes to dp.onnx.load if this is intended"
            )
        if self._folding and count > MAX_FOLDED_BYTES:
            raise TooLargeToFold


def _check_absent(node: Node, row: Row | None, values: list[Any]) -> None:
    """Raise if a required input is absent: a call of the function around the node left it out."""
    if node.domain or node.model.function_of(node) is not None or (row and row.is_users):
        return
    schema = onnx.defs.get_schema(node.operator, node.version, "")
    for number, value in enumerate(values):
        declared = schema.inputs[min(number, len(schema.inputs) - 1)]
        is_optional = declared.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        if value is None and not is_optional and "optional(" not in " ".join(declared.types):
            raise OnnxError(
                f"the input {declared.name} is required, and is absent; pass {node.inputs[number]} "
                "in the call of the function"
            )


def _only_on_host(value: Any) -> bool:
    """Return whether devices do not support the dtype of a value: strings and sub-byte numbers."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, np.ndarray) and dtype not in DEVICE_DTYPES


def _described(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, list):
        return f"sequence of {len(value)}"
    shape = getattr(value, "shape", ())
    return f"{getattr(value, 'dtype', type(value).__name__)}{list(shape)}"


DEVICE_DTYPES = SUPPORTED | {np.dtype("bfloat16")}


class FunctionGraph:
    """A function of the model or of the standard, with the attributes of one node."""

    def __init__(self, function: Any, node: Node, model: Any) -> None:
        given = {each.name: each for each in node.proto.attribute}
        for attribute in function.attribute_proto:
            given.setdefault(attribute.name, attribute)
        if onnx.defs.has(node.operator, node.domain):
            schema = onnx.defs.get_schema(node.operator, node.version, node.domain)
            for name, declared in schema.attributes.items():
                if declared.default_value.name:
                    given.setdefault(name, declared.default_value)
        proto = onnx.GraphProto()
        proto.node.extend(_filled(each, given) for each in function.node)
        proto.input.extend(onnx.ValueInfoProto(name=name) for name in function.input)
        proto.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
        opsets = {standard_domain(each.domain): each.version for each in function.opset_import}
        self.graph = Graph(proto, {**model.opset, **opsets}, model)

    def run(self, run: Run, values: list[Any]) -> tuple[Any, ...]:
        """Run the function; inputs that are not given are absent."""
        names = self.graph.inputs
        values = [*values, *[None] * (len(names) - len(values))]
        return tuple(self.graph.run(run, dict(zip(names, values, strict=True))))


def _filled(node: Any, given: Mapping[str, Any]) -> Any:
    """Return a node of a function with references replaced by the attributes of its caller."""
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            result.attribute.add().CopyFrom(attribute)
            graph = result.attribute[-1].g
            if result.attribute[-1].type == AttributeProto.GRAPH:
                inner = [_filled(each, given) for each in graph.node]
                del graph.node[:]
                graph.node.extend(inner)
        elif attribute.ref_attr_name in given:
            result.attribute.add().CopyFrom(given[attribute.ref_attr_name])
            result.attribute[-1].name = attribute.name
    return result


def standard_function(node: Node, values: list[Any] | None) -> Any:
    """Return the standard's function body for a node's operator, or None.

    ``values`` are the inputs, on whose types some bodies depend; None tests whether there is a
    body.
    """
    if not onnx.defs.has(node.operator, node.domain):
        return None
    try:
        schema: Any = onnx.defs.get_schema(node.operator, node.version, node.domain)
    except Exception:
        return None  # an operator that this opset does not have yet
    if schema.has_function:
        return schema.function_body
    if not schema.has_context_dependent_function or values is None:
        return schema.has_context_dependent_function or None
    types = [_type_text(value) for value in values]
    proto = node.proto.SerializeToString()
    if node.version in getattr(schema, "context_dependent_function_opset_versions", []):
        body = schema.get_context_dependent_function_with_opset_version(node.version, proto, types)
    else:
        body = schema.get_context_dependent_function(proto, types)
    function = onnx.FunctionProto()
    function.ParseFromString(body)
    return function


def _type_text(value: Any) -> Any:
    if value is None:
        return onnx.TypeProto().SerializeToString()
    if isinstance(value, list):
        result = onnx.TypeProto()
        result.sequence_type.elem_type.ParseFromString(_type_text(value[0] if value else None))
        return result.SerializeToString()
    code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
    return onnx.helper.make_tensor_type_proto(code, value.shape).SerializeToString()
