"""Drivers: the function itself, with its loops over elements replaced.

A driver runs in Python. Array statements are dparray operations, deferred and fused as usual;
``prange`` loops are calls of parallel regions; other loops over elements are calls of native
regions. Everything else runs as in the uncompiled function.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from dparray import config
from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._jit.captured import check_types, check_value, is_value
from dparray._jit.host_code import HostCode
from dparray._jit.inference import (
    ABOUT_ARRAYS,
    Inference,
    Items,
    Known,
    Value,
    is_array,
    is_number,
    type_of,
)
from dparray._jit.kernel_texts import FloatPowers, PlainLoops, python_numbers, type_key
from dparray._jit.only_python import refused_power
from dparray._jit.regions import (
    NativeCode,
    ParallelRegion,
    about_loop,
    call_of_region,
    has_array_statements,
    kernel_of,
    launcher,
    with_functions,
)
from dparray._jit.source import (
    Source,
    assigned_names,
    copied,
    definition_of,
    entries_of,
    is_prange_function,
    local_functions,
    python_function_of,
    source_of,
    upward_exposed,
    used_names,
)
from dparray._jit.views import (
    host_arguments,
    orders_of,
    result_of,
    staged,
    staged_nbytes,
)
from dparray._kernel.function import KernelFunction
from dparray._kernel.launch import call_kernel
from dparray._language.device_function import DeviceFunction
from dparray._placement import common_placement
from dparray._runtime import fallback
from dparray._type_keys import code_of
from dparray.device import queue_of
from dparray.exceptions import KernelCompileError
from dparray.kernel_api import Range

#: Up to this many elements of its arrays, a loop around ``prange`` loops is one native region.
MAX_NEST_ELEMENTS = 1 << 18
#: The most iterations of a loop that runs as one work-item. A GPU runs some millions a second, and
#: copies to the host and back take some ten microseconds.
MAX_TASK_ITERATIONS = 1 << 12
#: The name of ``dparray.special`` in drivers.
_SPECIAL = "__special__"


class Driver:
    """A function split into regions.

    With ``loop``, the regions are its ``prange`` loops alone, and the function calls what ``loop``
    returns for each of them.

    Attributes:
        function: the generated Python function.
        regions: the regions, in the order of the source.
        uncut: loops over elements that cannot be regions, because they return from the function.
    """

    def __init__(
        self,
        source: Source,
        types: Inference,
        options: dict[str, Any],
        loop: Callable[[ParallelRegion], Any] | None = None,
    ) -> None:
        tree = copied(source.definition)
        parameters = [argument.arg for argument in tree.args.args]
        local = set(parameters) | assigned_names(tree.body)
        cutter = _Cutter(source, types, options, local, tree.body)
        cutter.loop = loop
        tree.body = cutter.cut(tree.body)
        tree.args.defaults = []
        self.regions = cutter.regions
        self.uncut = cutter.uncut
        tree.body = [_SpecialFunctions(source).visit(each) for each in tree.body]
        names = {name: _for_driver(value) for name, value in source.names.items()}
        names[_SPECIAL] = sys.modules["dparray"].special
        names.update(cutter.names)
        names["range"] = range
        self.function = python_function(tree, source.file, names)
        for region in self.regions:
            if isinstance(region, NativeRegion):
                region.names = names
        if tree.name in source.names:
            names[tree.name] = _for_driver(source.names[tree.name])


def python_function(tree: ast.FunctionDef, file: str, names: dict[str, Any]) -> FunctionType:
    """Return the function of a definition, which reads and enters names."""
    module = ast.fix_missing_locations(ast.Module([tree], []))
    exec(compile(module, file, "exec"), names)
    made: FunctionType = names[tree.name]
    return made


class _Task(NamedTuple):
    """A loop over elements as a kernel for one work-item.

    Attributes:
        kernel: the kernel. Results are in arrays of one element.
        kinds: the types of variables.
        has_loops: whether array statements became loops.
    """

    kernel: KernelFunction
    kinds: dict[str, Any]
    has_loops: bool


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
        self._name = f"{source.function.__name__}_line_{self.line}"
        self.inputs = inputs
        self.outputs = outputs
        self.options = options
        self._compiled: dict[Any, tuple[HostCode, dict[str, Any]] | None] = {}
        #: The names with which the loop runs in Python.
        self.names: dict[str, Any] = {}
        self._tasks: dict[Any, _Task | None] = {}
        self._written_by_types: dict[Any, set[str]] = {}

    def call(self, name: str) -> ast.stmt:
        """Return the statement that replaces the loop in the driver."""
        inputs: list[ast.expr] = [ast.Name(each, ast.Load()) for each in self.inputs]
        return call_of_region(self.node, name, inputs, self.outputs)

    def __call__(self, *values: Any) -> Any:
        """Run the loop on the calling thread, or as one work-item of a device."""
        try:
            for name, value in zip(self.inputs, values, strict=True):
                check_value(self.source, self.node, name, value)
        except KernelCompileError as error:
            fallback.runs_in_python(self.__name__, self.source.file, self.line, str(error))
            return self._in_python(*values)
        arrays = [
            (name, value)
            for name, value in zip(self.inputs, values, strict=True)
            if isinstance(value, ndarray)
        ]
        placement = common_placement(self.source.function.__name__, arrays) if arrays else None
        types = dict(zip(self.inputs, map(type_of, values), strict=True))
        if placement is not None and not traits_of(placement.queue).shares_memory:
            return self._run_elsewhere(types, values, placement.queue)
        host = host_arguments([each if is_value(each) else None for each in values])
        compiled = self._ready(types, orders_of(self.inputs, values))
        if compiled is None:
            return self._in_python(*values)
        native, kinds = compiled
        queue = placement.queue if placement else queue_of(None)  # of the arrays that it makes
        result = native.run(tuple(host), queue)
        if not self.outputs:
            return None
        own = [x for _, x in arrays]
        return tuple(
            result_of(item, kinds.get(name), queue, own)
            for name, item in zip(self.outputs, result, strict=True)
        )

    def prepare(self, types: Inference, orders: Mapping[str, str], queue: Any) -> None:
        """Compile the loop for inferred types, as :meth:`ParallelRegion.prepare` does."""
        given = {name: types.variables.get(name) for name in self.inputs}
        try:
            check_types(self.source, self.node, given)
        except KernelCompileError as error:
            fallback.runs_in_python(self.__name__, self.source.file, self.line, str(error))
            return
        are_known = all(isinstance(kind, Value | Known) for kind in given.values())
        if not are_known or given.keys() & types.mixed:
            return
        values = {name: kind for name, kind in given.items() if isinstance(kind, Value)}
        has_arrays = any(kind.ndim for kind in values.values())
        if traits_of(queue).shares_memory or not has_arrays:
            self._ready(given, orders)
            return
        self._task(given, orders, queue)

    def _ready(
        self,
        types: Mapping[str, Any],
        orders: Mapping[str, str],
        refusal: KernelCompileError | None = None,
    ) -> tuple[HostCode, dict[str, Any]] | None:
        """Return the loop as native code; ``None`` if it runs in Python.

        Args:
            types: the types of the variables that it reads.
            orders: the memory orders of arrays, as in type keys.
            refusal: why it is no kernel.

        Raises:
            FallbackError: the policy forbids that.
        """
        key = tuple(types.values())
        if key not in self._compiled:
            try:
                return self._compile(types, orders)
            except KernelCompileError as error:
                reason = error if refusal is None else about_loop(self, refusal)
                fallback.runs_in_python(self.__name__, self.source.file, self.line, str(reason))
            self._compiled[key] = None
        return self._compiled[key]

    @property
    def runs_in_python(self) -> bool:
        """Whether the compiler refused the loop."""
        return None in self._compiled.values()

    @cached_property
    def _in_python(self) -> FunctionType:
        """The loop as a function of the arrays and numbers that it reads."""
        names: list[ast.expr] = [ast.Name(each, ast.Load()) for each in self.outputs]
        body = [copied(self.node), ast.Return(ast.Tuple(names, ast.Load()))]
        tree = definition_of(self._name, self.inputs, body)
        return python_function(tree, self.source.file, self.names)

    def _compile(
        self, types: Mapping[str, Any], orders: Mapping[str, str]
    ) -> tuple[HostCode, dict[str, Any]]:
        functions = local_functions(self.source, [self.node]).values()
        body: list[ast.stmt] = copied([*functions, self.node])
        if self.outputs:
            names: list[ast.expr] = [ast.Name(each, ast.Load()) for each in self.outputs]
            body.append(ast.Return(ast.Tuple(names, ast.Load())))
        source, plain = with_functions(self.source, {name: types[name] for name in self.inputs})
        definition = definition_of(self._name, [*plain], body)
        inferred = Inference(definition, plain, source.names)
        native = NativeCode(source, definition, inferred, self.options).compiled(orders)
        self._compiled[tuple(types.values())] = found = native, inferred.variables
        return found

    # -- devices other than CPUs ----------------------------------------------------------------

    def _task(
        self, types: Mapping[str, Any], orders: Mapping[str, str], queue: Any
    ) -> _Task | None:
        """Return the loop as a kernel for one work-item, or ``None`` if only native code has it."""
        values = {name: kind for name, kind in types.items() if isinstance(kind, Value)}
        keys = [type_key(kind, orders.get(name, "C")) for name, kind in values.items()]
        key = (*types.values(), *keys)
        if key not in self._tasks:
            refusal: KernelCompileError | None = None
            try:
                self._tasks[key] = task = self._compiled_task(types, keys, queue)
            except KernelCompileError as error:
                task, refusal = None, error
            if task is None:
                self._ready(types, orders, refusal)
                self._tasks[key] = None
        return self._tasks[key]

    def _compiled_task(
        self, types: Mapping[str, Any], keys: Sequence[str], queue: Any
    ) -> _Task | None:
        """Return the loop as a kernel; ``None`` if it reads tuples or assigns other arrays."""
        definition = definition_of(self._name, self.inputs, [copied(self.node)])
        inferred = Inference(definition, types, self.source.names)
        kinds = inferred.variables
        if any(not is_number(kinds.get(name)) for name in self.outputs):
            return None
        if any(isinstance(kind, Items) for kind in types.values()):
            return None
        constants = {
            name: kind.value for name, kind in types.items() if not isinstance(kind, Value)
        }
        parameters = ["__item", *(name for name in types if name not in constants)]
        parameters += [f"__{name}_out" for name in self.outputs]
        stores = "\n".join(f"__{name}_out[0] = {name}" for name in self.outputs)
        if refused := refused_power(self.source, definition, inferred):
            raise refused
        has_loops = has_array_statements([self.node], inferred)
        powers, plain = FloatPowers(inferred), PlainLoops(self.source)
        numbers = {name: kind for name, kind in types.items() if isinstance(kind, Value)}
        statements = python_numbers(numbers, self.line)
        statements.append(plain.visit(powers.visit(copied(self.node))))
        statements += ast.parse(stores).body
        kernel = kernel_of(self.source, self.line, parameters, [], statements, constants)
        outputs = [f"{code_of(kinds[name].dtype)}:1C" for name in self.outputs]
        kernel._compile("item:1", (*keys, *outputs), queue)
        return _Task(kernel, kinds, has_loops)

    def _run_elsewhere(self, types: dict[str, Any], values: tuple[Any, ...], queue: Any) -> Any:
        """Run the loop for arrays of a device that is not a CPU.

        A short loop is one work-item. Others run on the host, on copies of the arrays.
        """
        orders = orders_of(self.inputs, values)
        task = self._task(types, orders, queue)
        given = dict(zip(self.inputs, values, strict=True))
        where = self.source.function.__name__, self.source.file, self.line
        is_simulated = launcher.get() is not call_kernel
        if task is not None and (is_simulated or self._is_short(given, task)):
            fallback.is_sequential(queue, *where)
            return self._run_task(task, types, values, queue)
        compiled = self._ready(types, orders)
        if compiled is None:
            return self._in_python(*values)
        native, kinds = compiled
        has_views = not all(is_number(kinds.get(name)) for name in self.outputs)
        fallback.is_sequential(queue, *where, staged_nbytes(values))
        with staged(given, self._written(types), has_views) as (host, views):
            result = native.run(tuple(host), queue)
        return tuple(
            result_of(item, kinds.get(name), queue, *views)
            for name, item in zip(self.outputs, result or (), strict=True)
        )

    def _written(self, types: Mapping[str, Any]) -> set[str]:
        """Return the variables through which the loop may write elements."""
        key = tuple(types.values())
        if key in self._written_by_types:
            return self._written_by_types[key]
        functions = local_functions(self.source, [self.node]).values()
        definition = definition_of(self._name, self.inputs, [*functions, self.node])
        inferred = Inference(definition, types, self.source.names)
        only_read: set[int] = set()
        for node in ast.walk(self.node):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                kind = inferred.of(node)
                if is_number(kind):
                    only_read.add(id(node.value))
            elif isinstance(node, ast.Attribute) and node.attr in ABOUT_ARRAYS:
                only_read.add(id(node.value))
            elif isinstance(node, ast.Call) and inferred.called(node) == "len":
                only_read |= set(map(id, node.args))
        names = (each for each in ast.walk(definition) if isinstance(each, ast.Name))
        written = {each.id for each in names if id(each) not in only_read}
        return self._written_by_types.setdefault(key, written)

    def _is_short(self, given: Mapping[str, Any], task: _Task) -> bool:
        """Return whether a loop is known to have few iterations, with those of inner loops."""
        known = {name: x for name, x in given.items() if name not in assigned_names([self.node])}
        count = _iterations(self.node, {**self.source.names, **known})
        if task.has_loops:
            count *= max(x.size for x in given.values() if isinstance(x, ndarray))
        return count <= MAX_TASK_ITERATIONS

    def _run_task(
        self, task: _Task, types: dict[str, Any], values: tuple[Any, ...], queue: Any
    ) -> Any:
        library = sys.modules["dparray"]
        arguments = [
            value.asnumpy()[()] if isinstance(value, ndarray) and not value.ndim else value
            for value, kind in zip(values, types.values(), strict=True)
            if isinstance(kind, Value)
        ]
        kinds = task.kinds
        results = [
            library.empty(1, dtype=kinds[name].dtype, sycl_queue=queue) for name in self.outputs
        ]
        launcher.get()(task.kernel, Range(1), *arguments, *results)
        return tuple(
            result.item() if kinds[name].is_weak else result[0]
            for name, result in zip(self.outputs, results, strict=True)
        )


def _iterations(node: ast.AST, given: dict[str, Any]) -> float:
    """Return the iterations of the innermost loops; infinity if they are not known before."""
    inside = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt))
    count = sum(_iterations(each, given) for each in inside)
    if isinstance(node, ast.While):
        return math.inf
    return max(count, 1) * _count(node.iter, given) if isinstance(node, ast.For) else count


def _count(iterated: ast.expr, given: dict[str, Any]) -> float:
    """Return the number of items over which a loop iterates; infinity if it is not known."""
    calls = [each.func for each in ast.walk(iterated) if isinstance(each, ast.Call)]
    if any(not isinstance(each, ast.Name) or each.id not in ("range", "len") for each in calls):
        return math.inf
    try:
        return len(eval(compile(ast.Expression(iterated), "", "eval"), given))
    except Exception:  # It reads variables of the loop, or iterates over something else.
        return math.inf


class Nest(NativeRegion):
    """A loop around ``prange`` loops, as one native region.

    On a CPU device and for small arrays, its array statements cost less as native code than as
    dparray's operations. The regions inside of it are for larger arrays and other devices.
    """

    _is_refused = False

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
        types = dict(zip(self.inputs, map(type_of, values), strict=True))
        if tuple(types.values()) not in self._compiled:
            try:
                self._compile(types, orders_of(self.inputs, values))
            except KernelCompileError:  # the regions inside have their own errors
                self._is_refused = True
        return not self._is_refused

    def prepare(self, types: Inference, orders: Mapping[str, str], queue: Any) -> None:
        """Do nothing: the regions inside are prepared by themselves, so that errors come first."""


class _Cutter:
    """Replaces loops by calls of regions."""

    loop: Callable[[ParallelRegion], Any] | None = None

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
        if isinstance(node, ast.For | ast.While) and self.loop is None:
            if self._is_native(node):
                return self._add(self._native(node))
            if self._may_be_nest(node):
                return self._nest(node)
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, None)
            if inner and isinstance(inner[0], ast.stmt):
                setattr(node, name, self.cut(inner))
        return node

    def _add(self, region: Any) -> ast.stmt:
        statement: ast.stmt = region.call(self._named(region))
        return statement

    def _named(self, region: Any) -> str:
        name = f"__region_{len(self.regions)}"
        self.regions.append(region)
        self.names[name] = self.loop(region) if self.loop else region
        return name

    def _may_be_nest(self, node: ast.For | ast.While) -> bool:
        """Return whether a loop around ``prange`` loops may be one native region."""
        if not contains_prange(self.source, node):
            return False
        for each in ast.walk(node):
            if isinstance(each, ast.Return):
                return False
            # The prange loops of a callee would run one iteration after the other.
            function = self.source.resolve(each.func) if isinstance(each, ast.Call) else None
            plain = python_function_of(function)
            if isinstance(plain, FunctionType):
                called = source_of(plain)
                if contains_prange(called, called.definition):
                    return False
        return True

    def _nest(self, node: ast.For | ast.While) -> ast.stmt:
        nest = self._native(copied(node), node, Nest)
        assert isinstance(nest, Nest)
        name = self._named(nest)
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
            has_arrays |= is_array(value)
    return isinstance(loop, ast.For) and not has_arrays


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
            if not is_array(types.of(node.value)):
                continue
            axes = {at for at, entry in enumerate(entries_of(node)) if _steps(entry, variables)}
            if axes:
                has_loops = True
                if node.value.id in types.parameters:
                    axes |= set(found.get(node.value.id, ()))
                    found[node.value.id] = tuple(sorted(axes))
    return found if has_loops else None


def has_array_code(source: Source, tree: ast.AST, types: Inference) -> bool:
    """Return whether a function computes with arrays outside of its ``prange`` loops, or whether
    that is not known.
    """
    if source.is_prange(tree):
        return False
    if isinstance(tree, ast.expr) and not isinstance(tree, ast.Name | ast.Constant | ast.Tuple):
        kind = types.of(tree)
        is_shape = isinstance(tree, ast.Attribute) and isinstance(kind, Items | Known)
        if not (is_number(kind) or is_shape):
            return not (isinstance(tree, ast.Call) and types.called(tree) in ("range", "prange"))
        if isinstance(tree, ast.Call) and types.called(tree) != "len":
            kinds = [types.of(each) for each in tree.args]
            if not all(map(is_number, kinds)):
                return True
    return any(has_array_code(source, each, types) for each in ast.iter_child_nodes(tree))


def stores_in_place(tree: ast.FunctionDef, types: Inference) -> bool:
    """Return whether a function computes with arrays element by element, and only to store the
    results in arrays that there are.
    """

    def computes_array(node: Any) -> bool:
        is_plain = isinstance(node, ast.Name | ast.Subscript | ast.Attribute | None)
        return not is_plain and not is_number(types.of(node))

    def operands_of(node: ast.Call) -> list[ast.expr]:
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*owner, *node.args]

    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and any(map(is_array, map(types.of, operands_of(node)))):
            function = vars(np).get(types.called(node))
            is_elementwise = isinstance(function, np.ufunc) or function is np.where
            if not is_elementwise and types.called(node) != "len":
                return False
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return False
        elif isinstance(node, ast.Assign) and computes_array(node.value):
            if not all(isinstance(each, ast.Subscript) for each in node.targets):
                return False
        elif isinstance(node, ast.Return) and computes_array(node.value):
            return False
    return True


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
