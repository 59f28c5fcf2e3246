"""Drivers: the function itself, with its loops over elements replaced.

A driver runs in Python. Array statements are dparray operations, deferred and fused as usual;
``prange`` loops are calls of parallel regions; other loops over elements are calls of native
regions. Everything else runs as in the uncompiled function.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from dparray import config
from dparray._array.ndarray import ndarray
from dparray._compiler.device_function import DeviceFunction
from dparray._driver import traits_of
from dparray._jit.captured import check_types, check_value
from dparray._jit.casts import Casts
from dparray._jit.inference import Inference, Known, Value, type_of
from dparray._jit.native import Native, numba_type, with_lines
from dparray._jit.regions import (
    ParallelRegion,
    PlainLoops,
    about_loop,
    kernel_of,
    launcher,
    scalarized,
    type_key,
)
from dparray._jit.source import (
    Source,
    assigned_names,
    copied,
    definition_of,
    is_prange_function,
    local_functions,
    source_of,
    upward_exposed,
    used_names,
)
from dparray._jit.views import host_arguments, may_overlap, orders_of, result_of
from dparray._kernel.function import KernelFunction
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray._type_keys import code_of
from dparray.exceptions import KernelCompileError
from dparray.kernel_api import Range

#: Up to this many elements of its arrays, a loop around ``prange`` loops is one native region.
MAX_NEST_ELEMENTS = 1 << 18
#: The name of ``dparray.special`` in drivers.
_SPECIAL = "__special__"


class Driver:
    """A function split into regions.

    Attributes:
        function: the generated Python function.
        regions: the regions, in the order of the source.
        uncut: loops over elements that cannot be regions, because they return from the function.
    """

    def __init__(self, source: Source, types: Inference, options: dict[str, Any]) -> None:
        tree = copied(source.definition)
        parameters = [argument.arg for argument in tree.args.args]
        local = set(parameters) | assigned_names(tree.body)
        cutter = _Cutter(source, types, options, local, tree.body)
        tree.body = cutter.cut(tree.body)
        tree.args.defaults = []
        self.regions = cutter.regions
        self.uncut = cutter.uncut
        tree.body = [_SpecialFunctions(source).visit(each) for each in tree.body]
        names = {name: _for_driver(value) for name, value in source.names.items()}
        names[_SPECIAL] = sys.modules["dparray"].special
        names.update(cutter.names)
        names["range"] = range
        module = ast.fix_missing_locations(ast.Module([tree], []))
        exec(compile(module, source.file, "exec"), names)
        self.function: FunctionType = names[tree.name]
        if tree.name in source.names:
            names[tree.name] = _for_driver(source.names[tree.name])


class NativeRegion:
    """A loop over elements inside a driver.

    Attributes:
        node: the loop.
        inputs: the variables that it reads.
        outputs: the variables that it assigns and the rest of the function reads.
    """

    def __init__(
        self, source: Source, node: Any, inputs: list[str], outputs: list[str], options: Any
    ) -> None:
        self.source = source
        self.__name__ = source.function.__name__  # which warnings show
        self.node = node
        self.line = node.lineno
        self.inputs = inputs
        self.outputs = outputs
        self.options = options
        self._compiled: dict[Any, tuple[Native, dict[str, Any]]] = {}
        self._tasks: dict[Any, tuple[KernelFunction, dict[str, Any]]] = {}

    def call(self, name: str) -> ast.stmt:
        """Return the statement that replaces the loop in the driver."""
        inputs: list[ast.expr] = [ast.Name(each, ast.Load()) for each in self.inputs]
        call = ast.Call(ast.Name(name, ast.Load()), inputs, [])
        statement: ast.stmt = ast.Expr(call)
        if self.outputs:
            targets: list[ast.expr] = [ast.Name(each, ast.Store()) for each in self.outputs]
            statement = ast.Assign([ast.Tuple(targets, ast.Store())], call)
        return ast.fix_missing_locations(ast.copy_location(statement, self.node))

    def __call__(self, *values: Any) -> Any:
        """Run the loop on the calling thread."""
        for name, value in zip(self.inputs, values, strict=True):
            check_value(self.source, self.node, name, value)
        arrays = [
            (name, value)
            for name, value in zip(self.inputs, values, strict=True)
            if isinstance(value, ndarray)
        ]
        placement = common_placement(self.source.function.__name__, arrays) if arrays else None
        types = dict(zip(self.inputs, map(type_of, values), strict=True))
        if placement is not None and not traits_of(placement.queue).shares_memory:
            return self._run_task(types, values, placement.queue)
        host = host_arguments(values)
        key = tuple(types.values()), self.is_parallel(values)
        found = self._compiled.get(key)
        native, kinds = found or self._compile(types, orders_of(self.inputs, values), key[1])
        result = (native.run_vectorized if key[1] else native.run)(tuple(host))
        if not self.outputs:
            return None
        queue = placement.queue if placement else None
        own = [x for _, x in arrays]
        return tuple(
            result_of(item, kinds.get(name), queue, own)
            for name, item in zip(self.outputs, result, strict=True)
        )

    def is_parallel(self, values: tuple[Any, ...]) -> bool:
        """Return whether a call with these values runs on all of Numba's threads."""
        return False

    def prepare(self, types: Inference, orders: Mapping[str, str], queue: Any) -> None:
        """Compile the loop for inferred types, as :meth:`ParallelRegion.prepare` does."""
        given = {name: types.variables.get(name) for name in self.inputs}
        check_types(self.source, self.node, given)
        are_known = all(isinstance(kind, Value | Known) for kind in given.values())
        if not are_known or given.keys() & types.mixed:
            return
        values = {name: kind for name, kind in given.items() if isinstance(kind, Value)}
        has_arrays = any(kind.ndim for kind in values.values())
        if traits_of(queue).shares_memory or not has_arrays:
            self._compile(given, orders, False)
            return
        kernel, kinds = self._task(given)
        keys = [type_key(kind, orders.get(name, "C")) for name, kind in values.items()]
        keys += [f"{code_of(kinds[name].dtype)}:1C" for name in self.outputs]
        try:
            kernel._compile("item:1", tuple(keys), queue)
        except KernelCompileError as error:
            raise about_loop(self, error) from None

    def _compile(
        self, types: Mapping[str, Any], orders: Mapping[str, str], is_parallel: bool
    ) -> tuple[Native, dict[str, Any]]:
        functions = local_functions(self.source, [self.node]).values()
        body: list[ast.stmt] = copied([*functions, self.node])
        if self.outputs:
            names: list[ast.expr] = [ast.Name(each, ast.Load()) for each in self.outputs]
            body.append(ast.Return(ast.Tuple(names, ast.Load())))
        definition, inferred = self._inferred(types, body)
        # What runs on several threads raises nothing.
        has_lines = not is_parallel and with_lines(definition, inferred)
        tree = Casts(inferred).visit(definition)
        native = Native(self.source, tree, self.options, is_parallel, has_lines)
        kinds = [numba_type(kind, orders.get(name, "C")) for name, kind in types.items()]
        if None not in kinds:
            native.compile_types(tuple(kinds))
        self._compiled[tuple(types.values()), is_parallel] = found = native, inferred.variables
        return found

    def _inferred(
        self, types: Mapping[str, Any], body: list[ast.stmt]
    ) -> tuple[ast.FunctionDef, Inference]:
        name = f"{self.source.function.__name__}_line_{self.line}"
        definition = definition_of(name, self.inputs, body)
        return definition, Inference(definition, types, self.source.names)

    # -- devices other than CPUs ----------------------------------------------------------------

    def _task(self, types: Mapping[str, Any]) -> tuple[KernelFunction, dict[str, Any]]:
        """Return the loop as a kernel for one work-item, with results in arrays of one element."""
        found = self._tasks.get(tuple(types.values()))
        if found is not None:
            return found
        inferred = self._inferred(types, [copied(self.node)])[1]
        kinds = inferred.variables
        for name in self.outputs:
            if not isinstance(kinds.get(name), Value) or kinds[name].ndim:
                raise self.source.error(
                    self.node,
                    f"this loop over elements assigns {name!r}, which is not a number, so it "
                    "can run on a CPU device only",
                    "write the loop with dp.prange or as a kernel, or move the arrays to a CPU "
                    "device",
                )
        constants = {
            name: kind.value for name, kind in types.items() if not isinstance(kind, Value)
        }
        parameters = ["__item", *(name for name in types if name not in constants)]
        parameters += [f"__{name}_out" for name in self.outputs]
        stores = "\n".join(f"__{name}_out[0] = {name}" for name in self.outputs)
        body, _ = scalarized(self.source, [self.node], inferred)
        casts, plain = Casts(inferred, for_kernel=True), PlainLoops(self.source)
        statements = [plain.visit(casts.visit(each)) for each in body] + ast.parse(stores).body
        kernel = kernel_of(self.source, self.line, parameters, [], statements, constants)
        self._tasks[tuple(types.values())] = kernel, kinds
        return kernel, kinds

    def _run_task(self, types: dict[str, Any], values: tuple[Any, ...], queue: Any) -> Any:
        kernel, kinds = self._task(types)
        library = sys.modules["dparray"]
        arguments = [
            value.asnumpy()[()] if isinstance(value, ndarray) and not value.ndim else value
            for value, kind in zip(values, types.values(), strict=True)
            if isinstance(kind, Value)
        ]
        results = [
            library.empty(1, dtype=kinds[name].dtype, sycl_queue=queue) for name in self.outputs
        ]
        launcher.get()(kernel, Range(1), *arguments, *results)
        return tuple(
            result.item() if kinds[name].is_weak else result[0]
            for name, result in zip(self.outputs, results, strict=True)
        )


class Nest(NativeRegion):
    """A loop around ``prange`` loops, as one native region.

    On a CPU device and for small arrays a launch for each iteration would cost more than its work.
    The regions inside of it are for larger arrays and other devices.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: Groups of axes that must have one length, so that no iteration raises; ``None`` if one
        #: may raise anyway.
        self.equal_axes: list[set[tuple[str, int]]] | None = []
        self._is_refused = False

    def choice(self, name: str, otherwise: ast.stmt) -> ast.stmt:
        """Return the statement that chooses between this region and the regions inside."""
        inputs: list[ast.expr] = [ast.Name(each, ast.Load()) for each in self.inputs]
        fits = ast.Attribute(ast.Name(name, ast.Load()), "fits", ast.Load())
        chosen = ast.If(ast.Call(fits, inputs, []), [self.call(name)], [otherwise])
        return ast.fix_missing_locations(ast.copy_location(chosen, self.node))

    def fits(self, *values: Any) -> bool:
        """Return whether a call with these values is the one native region."""
        if self._is_refused or config.debug or launcher.get() is not call_kernel:
            return False
        arrays = [value for value in values if isinstance(value, ndarray)]
        if any(isinstance(value, tuple | list) for value in values):
            return False  # Iterations read their items as variables.
        if not arrays or sum(x.size for x in arrays) > MAX_NEST_ELEMENTS:
            return False
        if not traits_of(arrays[0].queue).shares_memory:
            return False
        if may_overlap(arrays):
            return False
        types = dict(zip(self.inputs, map(type_of, values), strict=True))
        key = tuple(types.values()), self.is_parallel(values)
        return key in self._compiled or self._compiles(types, values, key[1])

    def is_parallel(self, values: tuple[Any, ...]) -> bool:
        """Return whether no iteration can raise: from one of Numba's threads it would be lost."""
        if self.equal_axes is None:
            return False
        given = dict(zip(self.inputs, values, strict=True))
        groups = ({given[name].shape[axis] for name, axis in each} for each in self.equal_axes)
        return all(len(lengths) == 1 for lengths in groups)

    def _compiles(self, types: dict[str, Any], values: Sequence[Any], is_parallel: bool) -> bool:
        tree, inferred = self._inferred(types, [copied(self.node)])
        casts = Casts(inferred)
        casts.visit(tree)
        try:
            if not casts.doubts:
                self._compile(types, orders_of(self.inputs, values), is_parallel)
                return True
        except KernelCompileError:  # the regions inside have their own errors
            pass
        self._is_refused = True
        return False

    def prepare(self, types: Inference, orders: Mapping[str, str], queue: Any) -> None:
        """Do nothing: the regions inside are prepared by themselves, so that errors come first."""


class _Cutter:
    """Replaces loops by calls of regions."""

    def __init__(
        self,
        source: Source,
        types: Inference,
        options: dict[str, Any],
        local: set[str],
        body: list[ast.stmt],
    ) -> None:
        self.source = source
        self.types = types
        self.options = options
        self.local = local
        self.body = body
        self.regions: list[ParallelRegion | NativeRegion] = []
        self.uncut: list[ast.stmt] = []
        self.names: dict[str, Any] = {}

    def cut(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements with loops replaced by calls of regions."""
        return [self._one(statement) for statement in body]

    def _one(self, node: ast.stmt) -> ast.stmt:
        if self.source.is_prange(node):
            assert isinstance(node, ast.For)
            region = ParallelRegion(self.source, node, self.local, self.options)
            region.check_after(upward_exposed(_after(self.body, node, []) or []))
            return self._add(region)
        if isinstance(node, ast.For | ast.While) and self._is_native(node):
            return self._add(self._native(node))
        if isinstance(node, ast.For | ast.While) and self._may_be_nest(node):
            return self._nest(node)
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, None)
            if inner and isinstance(inner[0], ast.stmt):
                setattr(node, name, self.cut(inner))
        return node

    def _add(self, region: Any) -> ast.stmt:
        name = f"__region_{len(self.regions)}"
        self.regions.append(region)
        self.names[name] = region
        statement: ast.stmt = region.call(name)
        return statement

    def _may_be_nest(self, node: ast.For | ast.While) -> bool:
        """Return whether a loop around ``prange`` loops may be one native region."""
        if not contains_prange(self.source, node):
            return False
        for each in ast.walk(node):
            if isinstance(each, ast.Return):
                return False
            if self.source.is_prange(each) and _reduces_arrays(each, self.types):
                return False
            # Numba would run the prange loops of a callee one iteration after the other.
            function = self.source.resolve(each.func) if isinstance(each, ast.Call) else None
            plain = getattr(function, "py_func", None)
            if isinstance(plain, FunctionType):
                called = source_of(plain)
                if contains_prange(called, called.definition):
                    return False
        return True

    def _nest(self, node: ast.For | ast.While) -> ast.stmt:
        nest = self._native(copied(node), node, Nest)
        assert isinstance(nest, Nest)
        loops = (each for each in ast.walk(node) if self.source.is_prange(each))
        found = [_equal_axes(self.source, each, self.types) for each in loops]
        groups = [group for each in found for group in each or () if len(group) > 1]
        names = {name for each in groups for name, _ in each}
        is_fixed = names <= set(nest.inputs) - assigned_names([node])
        nest.equal_axes = groups if is_fixed and None not in found else None
        name = f"__region_{len(self.regions)}"
        self.regions.append(nest)
        self.names[name] = nest
        node.body, node.orelse = self.cut(node.body), self.cut(node.orelse)
        return nest.choice(name, node)

    def _is_native(self, node: ast.For | ast.While) -> bool:
        if contains_prange(self.source, node) or not walks_elements(self.source, node, self.types):
            return False
        # The return would have to leave the driver, too.
        if any(isinstance(each, ast.Return) for each in ast.walk(node)):
            self.uncut.append(node)
            return False
        return True

    def _native(
        self,
        node: ast.For | ast.While,
        place: ast.stmt | None = None,
        kind: type[NativeRegion] = NativeRegion,
    ) -> NativeRegion:
        assigned = assigned_names([node])
        functions = local_functions(self.source, [node])
        inputs = upward_exposed([*functions.values(), node]) & self.local - functions.keys()
        before = _assigned_before(self.source.definition, node)
        outputs = assigned & upward_exposed(_after(self.body, place or node, []) or [])
        # A loop without iterations leaves its variables unchanged.
        inputs |= outputs & before
        inputs -= {name for name in inputs - before if name in assigned}
        return kind(self.source, node, sorted(inputs), sorted(outputs), self.options)


class _SpecialFunctions(ast.NodeTransformer):
    """Maps functions from dpnp's old namespace, such as ``dpnp.erf``, to ``dparray.special``."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Rewrite ``dpnp.name``."""
        self.generic_visit(node)
        owner = self.source.resolve(node.value)
        if isinstance(owner, ModuleType) and owner.__name__ == "dpnp":
            library = sys.modules["dparray"]
            if not hasattr(library, node.attr) and hasattr(library.special, node.attr):
                node.value = ast.copy_location(ast.Name(_SPECIAL, ast.Load()), node.value)
        return node


def contains_prange(source: Source, tree: ast.AST) -> bool:
    """Return whether there is a ``prange`` loop in a tree."""
    return any(
        isinstance(node, ast.Call) and is_prange_function(source.resolve(node.func))
        for node in ast.walk(tree)
    )


def walks_elements(source: Source, tree: ast.AST, types: Inference) -> ast.stmt | None:
    """Return the first loop of a tree, except ``prange``, that reads or writes single elements.

    A loop without any array also counts.
    """
    if source.is_prange(tree):
        return None
    if isinstance(tree, ast.For | ast.While) and _is_over_elements(tree, types):
        return tree
    for inner in ast.iter_child_nodes(tree):
        found = walks_elements(source, inner, types)
        if found is not None:
            return found
    return None


def _is_over_elements(loop: ast.For | ast.While, types: Inference) -> bool:
    if isinstance(loop, ast.For):
        value = types.of(loop.iter)
        if isinstance(value, Value) and value.ndim == 1:
            return True
    has_arrays = False
    for node in ast.walk(loop):
        if isinstance(node, ast.Subscript):
            base, value = types.of(node.value), types.of(node)
            if isinstance(base, Value) and isinstance(value, Value) and not value.ndim:
                return True
        elif isinstance(node, ast.Name):
            value = types.of(node)
            has_arrays |= isinstance(value, Value) and value.ndim > 0
    return isinstance(loop, ast.For) and not has_arrays


def _is_array(node: ast.expr, types: Inference) -> bool:
    kind = types.of(node)
    return isinstance(kind, Value) and kind.ndim > 0


def _reduces_arrays(loop: ast.AST, types: Inference) -> bool:
    """Return whether iterations update the same array, as reductions do."""
    for statement in ast.walk(loop):
        if not isinstance(statement, ast.Assign | ast.AugAssign):
            continue
        targets = [statement.target] if isinstance(statement, ast.AugAssign) else statement.targets
        for each in targets:
            is_update = isinstance(statement, ast.AugAssign) or (
                bool(assigned_names(each) & used_names(statement.value))
            )
            if isinstance(each, ast.Name) and _is_array(each, types) and is_update:
                return True
    return False


def _equal_axes(
    source: Source, loop: ast.AST, types: Inference
) -> list[set[tuple[str, int]]] | None:
    """Return groups of axes, each the text of an array and a position.

    A loop raises nothing where the axes of each group have one length. Return ``None`` if it may
    raise anyway.
    """
    groups: list[set[tuple[str, int]]] = []
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and not _raises_nothing(source, node, types):
            return None
        if not isinstance(node, ast.stmt):
            continue
        if isinstance(node, ast.Assert | ast.Raise | ast.Try | ast.With):
            return None
        parts = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
        shapes = [shape for each in parts for shape in _shapes(each, types)]
        texts = {None if each is None else tuple(text for *_, text in each) for each in shapes}
        if None in texts or len(texts) > 1:
            return None
        groups += ({(name, axis) for name, axis, _ in axes} for axes in zip(*shapes, strict=True))
    return groups


def _raises_nothing(source: Source, call: ast.Call, types: Inference) -> bool:
    """Return whether a call raises nothing for arrays of equal shapes."""
    function, name = source.resolve(call.func), types.called(call)
    if function is None and isinstance(call.func, ast.Name):
        function = getattr(builtins, name, None)
    if function is range or is_prange_function(function):
        # A step must be a number other than 0.
        return len(call.args) < 3 or ast.unparse(call.args[2]).strip("-0").isdigit()
    kinds = [types.of(each) for each in call.args]
    if function in (len, int, float, bool, complex, abs, min, max, round):
        return all(isinstance(kind, Value) for kind in kinds)
    home = (getattr(function, "__module__", None) or type(function).__module__).partition(".")[0]
    known = vars(np).get(name) if home in ("numpy", "dparray", "dpnp") else None
    if isinstance(known, np.ufunc):
        return len(kinds) == known.nin and not call.keywords
    if name == "dot" and known is not None:
        return all(isinstance(kind, Value) and kind.ndim == 1 for kind in kinds)
    return home == "math" or (isinstance(known, type) and issubclass(known, np.generic))


def _shapes(node: ast.AST, types: Inference) -> Iterator[tuple[tuple[str, int, str], ...] | None]:
    """Yield the axes of each array that an expression reads, or ``None`` if they are not known.

    An axis is the text of the array, a position, and the text of the slice.
    """
    base = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(node, ast.expr) and isinstance(base, ast.Name | ast.Attribute):
        if _is_array(node, types):
            index = node.slice if isinstance(node, ast.Subscript) else ast.Tuple([])
            entries = index.elts if isinstance(index, ast.Tuple) else [index]
            others = [types.of(each) for each in entries if not isinstance(each, ast.Slice)]
            is_known = all(isinstance(kind, Value) and not kind.ndim for kind in others)
            entries = [*entries, *[ast.Slice()] * (types.of(base).ndim - len(entries))]
            axes = (pair for pair in enumerate(entries) if isinstance(pair[1], ast.Slice))
            text = ast.unparse(base)
            yield tuple((text, at, ast.unparse(each)) for at, each in axes) if is_known else None
        return
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    is_elementwise = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call) and not is_product
    if isinstance(node, ast.expr) and not is_elementwise and _is_array(node, types):
        yield None
    for each in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.Call) and (each is node.func or types.called(node) == "len")):
            yield from _shapes(each, types)


def walked_lines(
    source: Source, tree: ast.FunctionDef, types: Inference
) -> dict[str, tuple[int, ...]] | None:
    """Return the axes along which loops traverse arrays line by line, by parameter.

    A loop ``for j in range(n): x[:, j] = ...`` traverses axis 1. Returns ``None`` if no loop does.
    """
    found: dict[str, tuple[int, ...]] = {}
    has_loops = False
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.For) or source.is_prange(loop):
            continue
        variables = assigned_names(loop.target)
        for node in ast.walk(loop):
            if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
                continue
            value = types.of(node.value)
            if not isinstance(value, Value) or not value.ndim:
                continue
            entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            axes = {at for at, entry in enumerate(entries) if _steps(entry, variables)}
            if axes:
                has_loops = True
                if node.value.id in types.parameters:
                    axes |= set(found.get(node.value.id, ()))
                    found[node.value.id] = tuple(sorted(axes))
    return found if has_loops else None


def _steps(entry: ast.expr, variables: set[str]) -> bool:
    """Return whether an index, or both ends of a slice, move with the variables of a loop."""
    if isinstance(entry, ast.Slice):
        ends = (entry.lower, entry.upper)
        return all(end is not None and bool(used_names(end) & variables) for end in ends)
    return bool(used_names(entry) & variables)


def _after(
    body: list[ast.stmt], node: ast.stmt, following: list[ast.stmt]
) -> list[ast.stmt] | None:
    """Return the statements that can run after a given one, or ``None`` if it is not in a body.

    The end of a loop's body is followed by the loop itself.
    """
    for position, statement in enumerate(body):
        rest = body[position + 1 :] + following
        if statement is node:
            return rest
        again = [statement] if isinstance(statement, ast.For | ast.While) else []
        for name in ("body", "orelse", "finalbody"):
            found = _after(getattr(statement, name, []), node, again + rest)
            if found is not None:
                return found
    return None


def _assigned_before(tree: ast.FunctionDef, inside: ast.stmt) -> set[str]:
    """Return the names assigned in lines before a statement, and the parameters."""
    found = {argument.arg for argument in tree.args.args}
    stored = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return found | {node.id for node in stored if node.lineno < inside.lineno}


def _for_driver(value: Any) -> Any:
    """Return a captured value as the driver uses it."""
    library = sys.modules["dparray"]
    if isinstance(value, ModuleType):
        return library if value.__name__ in ("numpy", "dpnp") else value
    if isinstance(value, DeviceFunction):
        return value.py_func
    home = (getattr(value, "__module__", None) or type(value).__module__).partition(".")[0]
    if callable(value) and not isinstance(value, type) and home in ("numpy", "dpnp"):
        name = getattr(value, "__name__", "")
        if not hasattr(library, name):  # dpnp's universal functions are named after their class
            names = (each for each, known in vars(sys.modules[home]).items() if known is value)
            name = next(names, name)
        return getattr(library, name, None) or getattr(library.special, name, value)
    return value
