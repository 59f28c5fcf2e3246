"""Parallel regions: ``prange`` loops as kernels.

The body of a loop becomes a kernel whose work-items are the iterations. For reductions, at most as
many work-items as fill the device each run every n-th iteration and write a partial result.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from contextvars import ContextVar
from dataclasses import replace
from math import prod
from operator import index
from types import ModuleType
from typing import Any, cast

import numpy as np

from dparray import config
from dparray._array.ndarray import ndarray
from dparray._driver import traits_of
from dparray._jit.captured import (
    check_types,
    check_value,
    is_function,
    is_value,
    unpacked,
    unreadable,
)
from dparray._jit.dependences import find_reductions, fixed_update, put_first
from dparray._jit.division import IDENTITIES, range_of
from dparray._jit.element_dependences import dependent_elements
from dparray._jit.host_code import MAX_PARTIALS, HostCode
from dparray._jit.independent_loops import Independent, independent_loops, written_arrays
from dparray._jit.inference import (
    UNKNOWN,
    WEAK_INT,
    Inference,
    Items,
    Known,
    Value,
    constant,
    is_array,
    type_of,
)
from dparray._jit.kernel_texts import (
    FloatPowers,
    PlainLoops,
    for_kernel,
    is_of_kernels,
    python_numbers,
    type_key,
)
from dparray._jit.lists import with_arrays
from dparray._jit.loop_forms import (
    are_vectors,
    contiguous_last,
    is_slow,
    reason_for_kernel,
    remarks,
)
from dparray._jit.only_python import refused_in_native_code, refused_power
from dparray._jit.parts import has_launches
from dparray._jit.source import (
    Source,
    assigned_names,
    at_line,
    copied,
    definition_of,
    function_of,
    local_functions,
    own_jumps,
    upward_exposed,
    used_names,
)
from dparray._jit.views import host_arguments, orders_of, overlap, result_of
from dparray._kernel.function import KernelFunction
from dparray._kernel.launch import call_kernel
from dparray._placement import common_placement
from dparray._type_keys import code_of
from dparray.device import queue_of
from dparray.exceptions import KernelCompileError
from dparray.kernel_api import Range

_FOLDS: dict[Any, tuple[str, np.ufunc]] = {
    ast.Add: ("sum", np.add), ast.Sub: ("sum", np.add), ast.Mult: ("prod", np.multiply),
    ast.BitOr: ("", np.bitwise_or), ast.BitXor: ("", np.bitwise_xor),
    ast.BitAnd: ("", np.bitwise_and), "min": ("min", np.minimum), "max": ("max", np.maximum),
}  # fmt: skip


#: The launch function: :func:`call_kernel`, or that of the simulator.
launcher: ContextVar[Any] = ContextVar("launcher", default=call_kernel)


class Reduction:
    """A reduction variable of a loop.

    Attributes:
        name: the variable.
        op: the class of the operator, ``"min"`` or ``"max"``.
        is_update: whether the loop changes an array itself, by augmented assignments.
    """

    def __init__(self, name: str, op: Any, is_update: bool) -> None:
        self.name = name
        self.op = op
        self.is_update = is_update


class ParallelRegion:
    """A ``prange`` loop of a function.

    Attributes:
        node: the loop.
        loops: the collapsed loops, outermost first: variable, and the arguments of ``range``.
        inner: the loops inside of these that are collapsed in kernels of other devices than CPUs.
        captured: the variables of the function that the body reads.
        reductions: the reduction variables of the loop.
        must_be_kernel: whether it is a kernel where native code is faster, too.
    """

    must_be_kernel = False

    def __init__(
        self, source: Source, node: ast.For, local: set[str], options: dict[str, Any]
    ) -> None:
        self.source = source
        self.__name__ = source.function.__name__  # which warnings show
        self.node = node
        self.options = options
        self.loops: list[tuple[str, list[ast.expr]]] = []
        body = self._collapse(node)
        bound = {name for name, _ in self.loops}
        found = find_reductions(source, body, bound)
        self.reductions = [Reduction(name, *each) for name, each in found.items()]
        self.inner: list[tuple[str, list[ast.expr]]] = []
        self.inner_body = body
        is_fixed = any(fixed_update(body, name) for name, _ in self.loops[1:])
        if self.reductions or is_fixed:
            ends = [each for _, given in self.loops[1:] for each in given]
            if not (is_fixed or any(used_names(end) & assigned_names(body) for end in ends)):
                self.inner = self.loops[1:]
            del self.loops[1:]  # native code divides only the outer loop
            body = node.body
        #: Loops that are not ``prange`` loops: their iterations are independent unless arrays
        #: that they write overlap with others.
        self.independent: list[Independent] = []
        if not self.reductions and not self.inner:
            names = {name for name, _ in self.loops}
            self.independent = independent_loops(source, body, names, 3 - len(self.loops))
            self.inner += [_counted(each.loop) for each in self.independent]
        #: The arrays that these loops write.
        self.written: set[str] = set()
        if self.independent:
            self.inner_body = self.independent[-1].loop.body
            self.written = written_arrays(self.inner_body)
        for name in found:
            put_first(body, name)
        self._check(body)
        self.body = body
        self.functions = local_functions(source, body)
        changing = assigned_names(body) | bound
        for name, function in self.functions.items():
            for each in sorted(used_names([function]) & changing):
                raise source.error(
                    function,
                    f"{name!r} is called in a prange loop and reads {each!r}, which differs "
                    "between iterations",
                    f"pass {each} to {name} as an argument",
                )
        bound = {name for name, _ in self.loops} | self.functions.keys()
        self.captured = sorted((upward_exposed([*self.functions.values(), *body]) - bound) & local)
        self.line = node.lineno
        #: Start and step of the loops where they are literals, otherwise ``None``.
        self.fixed = tuple(_fixed(given) for _, given in (*self.loops, *self.inner))
        self.device_code = next(
            (node for each in body for node in ast.walk(each) if is_of_kernels(source, node)), None
        )
        self.reason_for_kernel = reason_for_kernel(self)
        if self.independent and is_slow(self.inner_body):
            inner = " and ".join(name for name, _ in self.inner)
            self.reason_for_kernel = f"iterations over {inner} are independent, too"
        if self.device_code is not None:
            self.reason_for_kernel = f"{ast.unparse(self.device_code)} is device code"
        #: Whether a function of the host launches the kernel.
        self.is_launched = (
            bool(self.reason_for_kernel)
            and has_launches
            and launcher.get() is call_kernel  # otherwise the simulator sees each launch
            and are_vectors(source, self.inner_body)
        )
        order = [name for name, _ in (*self.loops, *self.inner)]
        #: The loops of a kernel with independent inner loops, in the order of dimensions.
        self.by_lanes = contiguous_last(order, self.inner_body if self.inner else body)
        self._kernels: dict[Any, KernelFunction] = {}
        self._natives: dict[Any, HostCode | None] = {}
        self._by_displays: dict[tuple[str, ...], ParallelRegion] = {}
        self._reduced: dict[Any, dict[str, Value]] = {}  # the types of the reductions
        self.ran_as = ""

    def describe(self, in_cpu: bool, is_native: bool, types: Inference) -> str:
        """Return how the loop runs, for ``dp.explain``."""
        kind = "native parallel region" if is_native else "kernel"
        has_inner = not is_native and (bool(self.independent) or not in_cpu)
        count = len(self.loops) + (len(self.inner) if has_inner else 0)
        kind += f" over {count} dimension{'s' * (count > 1)}"
        if self.reductions:
            kind += f", reduction of {', '.join(each.name for each in self.reductions)}"
        if is_native:
            if self.reason_for_kernel:
                kind += ": the kernel language lacks its statements"
            names = {each.name for each in self.reductions}
            return "\n    ".join([kind, *remarks(self.source, self.body, types, names)])
        return f"{kind}: {self.reason_for_kernel}" if in_cpu and self.reason_for_kernel else kind

    # -- analysis -------------------------------------------------------------------------------

    def _collapse(self, node: ast.For) -> list[ast.stmt]:
        """Return the loops and the body of a perfect nest of at most three loops."""
        current: ast.stmt = node
        body: list[ast.stmt] = []
        while isinstance(current, ast.For) and self.source.is_prange(current):
            assert isinstance(current.iter, ast.Call)
            if current.orelse:
                raise self.source.error(current, "a prange loop must not have an else branch")
            if not isinstance(current.target, ast.Name):
                raise self.source.error(
                    current.target, "the loop variable of prange must be a single name"
                )
            arguments = current.iter.args
            if not 1 <= len(arguments) <= 3 or current.iter.keywords:
                raise self.source.error(
                    current.iter, "prange takes 1 to 3 positional arguments: prange(stop), "
                    "prange(start, stop) or prange(start, stop, step)"
                )  # fmt: skip
            outer = {name for name, _ in self.loops}
            used = set().union(*(used_names(argument) for argument in arguments))
            if used & outer or len(self.loops) == 3:
                break
            self.loops.append((current.target.id, list(arguments)))
            body = current.body
            if len(body) != 1:
                break
            current = body[0]
        return body

    def _check(self, body: list[ast.stmt]) -> None:
        refused = {
            ast.Return: ("return cannot leave a prange loop", "assign the result to an array"),
            ast.Try: ("an iteration of a prange loop cannot handle exceptions", "test with if"),
            ast.Raise: ("a prange loop cannot raise", "count in the loop, raise after the loop"),
            ast.With: ("a prange loop cannot use with", "write with around the call"),
            ast.NamedExpr: (":= is not compiled in a loop", "assign in a statement of its own"),
        }
        for statement in body:
            for node in ast.walk(statement):
                for kind, (problem, fix) in refused.items():
                    if isinstance(node, kind):
                        raise self.source.error(node, problem, fix)
        for node in own_jumps(body):
            if isinstance(node, ast.Break):
                raise self.source.error(
                    node, "break cannot leave a prange loop, whose iterations run together",
                    "use range for this loop",
                )  # fmt: skip
        updated = fixed_update(body, self.loops[0][0])
        if updated is not None:
            raise self.source.error(
                updated,
                f"all iterations of the prange loop write {ast.unparse(updated)}, so the result "
                "depends on their order",
                "sum into a variable (total += ...) and store it after the loop, or use range for "
                "this loop",
            )
        is_checked = config.debug or launcher.get() is not call_kernel  # which finds it itself
        found = None if is_checked else dependent_elements(self.source, self.loops, body)
        if found is not None:
            writes, other = map(ast.unparse, found)
            raise self.source.error(
                found[0],
                f"iterations of the prange loop depend on each other: one writes {writes}, and "
                f"another {'writes' if isinstance(found[1].ctx, ast.Store) else 'reads'} the same "
                f"element as {other}",
                "use range for this loop, or read a copy of the array made before it",
            )

    def is_native_in(self, types: Inference) -> bool:
        """Return whether the loop can be a part of a native region around it, for some types."""
        reduced = {each.name for each in self.reductions}
        kinds = {name: types.variables.get(name, UNKNOWN) for name in self.captured}
        is_plain = all(isinstance(kind, Value) for kind in kinds.values())
        arrays = {name for name, kind in kinds.items() if is_array(kind)}
        has_result = bool(reduced or arrays)
        return is_plain and has_result and not (self.reason_for_kernel or reduced & arrays)

    def check_after(self, read: set[str]) -> None:
        """Check that no variable of the iterations is read after the loop.

        Args:
            read: the variables whose values before the statements after the loop matter.

        Raises:
            KernelCompileError: with the line.
        """
        reduced = {each.name for each in self.reductions}
        for node in ast.walk(self.node):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Store):
                continue
            if node.id in read - reduced:
                raise self.source.error(
                    node,
                    f"{node.id!r} is read after the prange loop, but iterations run together, so "
                    "none of them is the last",
                    f"compute {node.id} after the loop, or use range for this loop",
                )

    # -- call in the driver ---------------------------------------------------------------------

    def call(self, name: str) -> ast.stmt:
        """Return the statement that replaces the loop in the driver."""
        arguments: list[ast.expr] = []
        for _, given in (*self.loops, *self.inner):
            arguments += range_of(given)
        arguments += [ast.Name(each, ast.Load()) for each in self.captured]
        return call_of_region(self.node, name, arguments, [each.name for each in self.reductions])

    def __call__(self, *values: Any) -> Any:
        """Run the loop."""
        count = 3 * len(self.fixed)
        bounds = [range(*map(index, values[at : at + 3])) for at in range(0, count, 3)]
        given = dict(zip(self.captured, values[count:], strict=True))
        if not all(map(len, bounds)):
            return tuple(given[each.name] for each in self.reductions)
        displays, parts = list[str](), dict(given)  # with a variable for each item
        for name, value in given.items():
            check_value(self.source, self.node, name, value)
            if isinstance(value, tuple | list) and (found := unpacked(name, value)):
                if any(name == each.name for each in self.reductions):
                    raise unreadable(self.source, self.node, name, type(value).__name__)
                displays.append(f"{name} = {found[0]}")
                parts |= found[1]
        if displays:
            region = self._with_displays(tuple(displays), parts.keys())
            count = 3 * len(region.fixed)
            result = region(*values[:count], *(parts[name] for name in region.captured))
            self.ran_as = region.ran_as
            return result
        arrays = [
            (name, value)
            for name, value in given.items()
            if isinstance(value, ndarray) and value.ndim
        ]
        if not arrays and not self.reductions:
            raise self._without_result()
        types = {name: type_of(value) for name, value in given.items()}
        name = self.source.function.__name__
        # Without an array, the queue is that of the function's arguments, or the default one.
        queue = common_placement(name, arrays).queue if arrays else queue_of(None)
        orders = orders_of(self.captured, list(given.values()))
        native = self._natives.get(tuple(types.values())) or self._preferred(types, orders, queue)
        if native is None:
            try:
                return self._launch(bounds, given, types, queue)
            except KernelCompileError as error:
                native = self._instead_of_kernel(types, orders, queue, error)
        return self._run(native, bounds, given, types, queue)

    def _without_result(self) -> KernelCompileError:
        return self.source.error(
            self.node,
            "this prange loop neither writes an array nor has a reduction (total += ...)",
            "use range for this loop, or write its results into an array",
        )

    def prepare(self, types: Inference, orders: Mapping[str, str], queue: Any) -> None:
        """Compile the loop for inferred types, so that errors are raised before anything runs.

        If a type is not known exactly, the loop is compiled when a call reaches it.

        Args:
            types: the types of the whole function.
            orders: the memory order of array parameters, as in type keys.
            queue: the queue on which the loop will run.

        Raises:
            KernelCompileError: the loop does not compile.
        """
        given = {name: types.variables.get(name) for name in self.captured}
        check_types(self.source, self.node, given)
        reduced = {each.name for each in self.reductions}
        if not all(isinstance(kind, Value | Known) for kind in given.values()):
            return
        if (given.keys() - reduced) & types.mixed:
            return
        if not reduced and not any(map(is_array, given.values())):
            raise self._without_result()
        if self._preferred(given, orders, queue) is not None:
            return
        try:
            axes = self._axes(queue)
            kernel, arguments, accumulators = self.kernel_of(
                given, axes, traits_of(queue).shares_memory
            )
            keys = ["i8" for axis in axes if self.fixed[axis] is None for _ in range(2)]
            if reduced:
                keys += ["i8"] * len(axes)
                keys += [f"{code_of(accumulators[name].dtype)}:1C" for name in accumulators]
            for name in arguments:
                kind: Any = accumulators.get(name, given[name])
                keys.append(type_key(kind, orders.get(name, "C")))
            item = f"item:{1 if reduced else len(axes)}"
            kernel._compile(item, tuple(keys), queue)
        except KernelCompileError as error:
            self._instead_of_kernel(given, orders, queue, error)

    def _preferred(
        self, types: Mapping[str, Any], orders: Mapping[str, str], queue: Any
    ) -> HostCode | None:
        """Return the loop as native code, or ``None`` if it is a kernel where that compiles."""
        key = tuple(types.values())
        is_kernel = config.debug or launcher.get() is not call_kernel
        is_kernel |= bool(self.reason_for_kernel) and not self.is_launched
        if key in self._natives or is_kernel or not traits_of(queue).shares_memory:
            return self._natives.get(key)
        native: HostCode | None = None
        try:
            native = self._native(types, orders)
        except KernelCompileError as error:
            self.reason_for_kernel = str(error).partition("\n")[0]
        self._natives[key] = native
        self.ran_as = "native" if native else ""
        return native

    def _instead_of_kernel(
        self,
        types: Mapping[str, Any],
        orders: Mapping[str, str],
        queue: Any,
        error: KernelCompileError,
    ) -> HostCode:
        """Return the loop as native code after the compiler of kernels has refused it."""
        if not traits_of(queue).shares_memory or launcher.get() is not call_kernel:
            raise about_loop(self, error) from None
        if self.device_code is not None:
            if _place_in(error):
                raise about_loop(self, error)
            raise self.source.error(
                self.device_code,
                f"{ast.unparse(self.device_code)} needs a kernel, and this loop has none: {error}",
                "write it with loops over elements, without array statements and library calls",
            )
        try:
            native = self._native(types, orders, has_launches=False)
        except KernelCompileError as refused:
            # The compiler of kernels explains more, where both stop at the same line.
            if _place_in(error) == _place_in(refused):
                raise about_loop(self, error, refused.details) from None
            raise
        self._natives[tuple(types.values())] = native
        self.ran_as = "native"
        return native

    # -- tuples and lists -----------------------------------------------------------------------

    def _with_displays(self, displays: tuple[str, ...], names: Set[str]) -> ParallelRegion:
        """Return the loop with additional statements in its body, which read some variables."""
        if displays in self._by_displays:
            return self._by_displays[displays]
        node = inner = copied(self.node)
        for _ in self.loops[1:]:
            inner = inner.body[0]
        inner.body[:0] = at_line(ast.parse("\n".join(displays)), self.line).body
        region = ParallelRegion(self.source, node, {*self.captured, *names}, self.options)
        return self._by_displays.setdefault(displays, region)

    # -- kernels --------------------------------------------------------------------------------

    def kernel_of(
        self, types: Mapping[str, Any], axes: list[int], in_cpu: bool
    ) -> tuple[KernelFunction, list[str], dict[str, Value]]:
        """Return the kernel for some types of variables, its arguments, and the reduction types.

        Args:
            types: of the captured variables, by name.
            axes: the loops that are its dimensions.
            in_cpu: whether it will run on a CPU device.
        """
        reduced = {each.name: each for each in self.reductions}
        arguments, constants = [], {}
        for name, kind in types.items():
            if name in reduced:
                if is_array(kind):
                    raise KernelCompileError(f"{name} is an array")
                if reduced[name].op not in ("min", "max"):
                    continue
            if isinstance(kind, Value):
                arguments.append(name)
            elif isinstance(kind, Known):
                constants[name] = for_kernel(kind.value)
            else:
                raise KernelCompileError(f"{name} is neither an array nor a number")
        accumulators = self._accumulators(types)
        dtypes = tuple(accumulators[name].dtype for name in reduced)
        key = (tuple(types.items()), dtypes, *axes)
        kernel = self._kernels.get(key)
        if kernel is None:
            body = self.body if len(axes) == len(self.loops) else self.inner_body
            is_launched = launcher.get() is call_kernel and not self.must_be_kernel
            if in_cpu and is_launched and has_array_statements(body, self._inferred(types)):
                raise KernelCompileError("its array statements are native code on a CPU device")
            loops, body = (*self.loops, *self.inner), copied(body)
            variables = {**types, **{loops[axis][0]: WEAK_INT for axis in axes}}
            inferred = Inference(definition_of("loop", [], body), variables, self.source.names)
            if refused := refused_power(self.source, inferred.tree, inferred):
                raise refused
            body = [FloatPowers(inferred).visit(each) for each in body]
            body[:0] = python_numbers({name: types[name] for name in arguments}, self.line)
            kernel = self._kernel(body, constants, arguments, accumulators, axes)
            self._kernels[key] = kernel
        return kernel, arguments, accumulators

    def _depend(self, bounds: list[range], given: dict[str, Any]) -> bool:
        """Return whether iterations of inner loops depend on each other in a call."""
        inner = zip(bounds[len(self.loops) :], self.independent, strict=False)
        is_below = any(min(each[0], each[-1]) < loop.least for each, loop in inner)
        return is_below or overlap(given, self.written)

    def _axes(self, queue: Any, depend: bool = False) -> list[int]:
        """Return the loops of a kernel, by their position in the nest, in the order of dimensions.

        Inner loops are left out if their iterations depend on each other.

        On devices other than CPUs, neighboring work-items of the last dimension should read
        neighboring elements. The simulator shows the iterations in the order of the source.
        """
        is_rows = traits_of(queue).shares_memory and not self.independent
        if is_rows or depend or launcher.get() is not call_kernel:
            return [*range(len(self.loops))]
        return self.by_lanes

    def _launch(
        self, bounds: list[range], given: dict[str, Any], types: dict[str, Any], queue: Any
    ) -> Any:
        kernel, space, arguments, partials = self.launch_of(bounds, given, types, queue)
        launcher.get()(kernel, Range(*space), *arguments)
        self.ran_as = "kernel"
        return self.results_of(given, types, partials)

    def results_of(
        self, given: Mapping[str, Any], types: Mapping[str, Any], partials: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Return the values of the reductions after the loop."""
        accumulators = self._accumulators(types)
        return tuple(
            _combined(each, given[each.name], partial, accumulators[each.name])
            for each, partial in zip(self.reductions, partials, strict=True)
        )

    def launch_of(
        self, bounds: list[range], given: dict[str, Any], types: dict[str, Any], queue: Any
    ) -> tuple[KernelFunction, tuple[int, ...], list[Any], list[Any]]:
        """Return the kernel of a call, its range, its arguments, and the partial results."""
        types = {
            name: Known(given[name]) if isinstance(kind, Items) else kind
            for name, kind in types.items()
        }
        axes = self._axes(queue, self._depend(bounds, given))
        in_cpu = traits_of(queue).shares_memory
        kernel, names, accumulators = self.kernel_of(types, axes, in_cpu)
        arguments = []
        for name in names:
            value = given[name]
            if isinstance(value, ndarray) and not value.ndim:
                value = value.asnumpy()[()]
            if name in accumulators:
                value = accumulators[name].dtype.type(value)
            arguments.append(value)
        space = tuple(len(bounds[axis]) for axis in axes)
        extra: list[Any] = []
        partials: list[Any] = []
        if self.reductions:
            library = sys.modules["dparray"]
            total, counts = prod(space), space[1:]
            # The simulator finds races only between iterations that are separate work-items.
            most = self._most_partials(queue) if launcher.get() is call_kernel else total
            space = (min(total, most),)
            partials = [
                library.empty(space[0], dtype=accumulators[each.name].dtype, sycl_queue=queue)
                for each in self.reductions
            ]
            extra = [total, *counts, *partials]
        lines = [
            number
            for axis in sorted(axes)
            if self.fixed[axis] is None
            for number in (bounds[axis].start, bounds[axis].step)
        ]
        return kernel, space, [*lines, *extra, *arguments], partials

    def _most_partials(self, queue: Any) -> int:
        """Return the most work-items of a loop with reductions; a GPU holds them together."""
        traits = traits_of(queue)
        if traits.shares_memory or not all(_FOLDS[each.op][0] for each in self.reductions):
            return MAX_PARTIALS
        return max(traits.units * traits.threads * traits.sub_group, MAX_PARTIALS)

    def _accumulators(self, given: Mapping[str, Any]) -> dict[str, Value]:
        """Return the types of the reductions, as the uncompiled loop would leave them."""
        key = tuple(given.items())
        if self.reductions and key not in self._reduced:
            types = self._inferred(given)
            dtypes = [value.dtype for value in given.values() if isinstance(value, Value)]
            found = {each.name: types.variables.get(each.name) for each in self.reductions}
            self._reduced[key] = {
                name: value if isinstance(value, Value) else Value(np.result_type(bool, *dtypes))
                for name, value in found.items()
            }
        return self._reduced.get(key, {})

    def _inferred(self, given: Mapping[str, Any]) -> Inference:
        """Return the types in the loop for types of its captured variables."""
        source, plain = with_functions(self.source, given)
        return Inference(definition_of("loop", [], [self.node]), plain, source.names)

    def _kernel(
        self,
        body: list[ast.stmt],
        constants: dict[str, Any],
        arguments: list[str],
        types: dict[str, Value],
        axes: list[int],
    ) -> KernelFunction:
        parameters = ["__item"]
        head: list[ast.stmt] = []
        reduced = [each.name for each in self.reductions]
        loops = (*self.loops, *self.inner)
        positions = [f"__item.get_id({at})" for at in range(len(axes))]
        counts = [f"__count{at}" for at in range(1, len(axes))]
        if reduced:
            positions = [" // ".join(["__at", *counts[at:]]) for at in range(len(axes))]
            positions[1:] = [
                f"{each} % {count}" for each, count in zip(positions[1:], counts, strict=True)
            ]
        for axis in sorted(axes):
            variable, position = loops[axis][0], positions[axes.index(axis)]
            fixed = self.fixed[axis]
            if fixed == (0, 1):
                head += ast.parse(f"{variable} = {position}").body
                continue
            start, step = fixed or (f"__start{axis}", f"__step{axis}")
            parameters += [] if fixed else [f"__start{axis}", f"__step{axis}"]
            head += ast.parse(f"{variable} = {start} + ({position}) * {step}").body
        body = [PlainLoops(self.source).visit(each) for each in body]
        if reduced:
            parameters += ["__total", *counts, *(f"__partial_{name}" for name in reduced)]
            # Work-items leave the first loop together, so that vectors can compute what is inside.
            text = """
for __round in range(__total // __width):
    __at = __item.get_id(0) + __round * __width
for __at in range(__total - __total % __width + __item.get_id(0), __total, __width): pass
"""
            together, rest = cast("list[Any]", ast.parse(text).body)
            together.body += head + body
            rest.body = copied(head + body)
            head = ast.parse("__width = __item.get_range(0)").body
            for each in self.reductions:
                if each.op not in ("min", "max"):
                    dtype = types[each.name].dtype
                    value = np.array(IDENTITIES[each.op]).astype(dtype).item()
                    name = "bool_" if dtype.kind == "b" else dtype.name
                    head += ast.parse(f"{each.name} = __numpy__.{name}({value!r})").body
            stores = [f"__partial_{name}[__item.get_id(0)] = {name}" for name in reduced]
            body = [together, rest, *ast.parse("\n".join(stores)).body]
        else:
            body = [_Skips().visit(each) for each in body]
        return kernel_of(self.source, self.line, parameters + arguments, head, body, constants)

    # -- native code ----------------------------------------------------------------------------

    def _native(
        self, types: Mapping[str, Any], orders: Mapping[str, str], has_launches: bool = True
    ) -> HostCode:
        """Return the loop as native code.

        Args:
            types: the types of the variables that it reads.
            orders: the memory orders of arrays, as in type keys.
            has_launches: whether it may launch kernels.

        Raises:
            KernelCompileError: it has something that the compiler does not have.
        """
        loop, numbers = copied(self.node), []
        inner: Any = loop
        for axis in range(len(self.loops)):
            given = [f"__{each}{axis}" for each in ("start", "stop", "step")]
            numbers += given
            # A literal stays in the code: compilers leave out checks for negative indices then.
            inner.iter.args = [
                bound
                if type(constant(bound)) is int or used_names(bound) <= {*self.captured}
                else ast.Name(name, ast.Load())
                for bound, name in zip(range_of(inner.iter.args), given, strict=True)
            ]
            inner = inner.body[0]
        names: list[ast.expr] = [ast.Name(each.name, ast.Load()) for each in self.reductions]
        body = [*copied([*self.functions.values()]), loop]
        body.append(ast.Return(ast.Tuple(names, ast.Load())))
        name = f"{self.source.function.__name__}_line_{self.line}"
        source, plain = with_functions(self.source, {each: types[each] for each in self.captured})
        definition = definition_of(name, [*numbers, *plain], body)
        given_types = {**plain, **self._accumulators(types)}
        parameters = {**dict.fromkeys(numbers, WEAK_INT), **given_types}
        inferred = Inference(definition, parameters, source.names)
        code = NativeCode(source, definition, inferred, self.options)
        for each in code.loops:
            each.is_launched &= has_launches
        return code.compiled(orders)

    def _run(
        self,
        native: HostCode,
        bounds: list[range],
        given: dict[str, Any],
        types: dict[str, Any],
        queue: Any,
    ) -> Any:
        given = {name: x if is_value(x) else None for name, x in given.items()}
        host = dict(zip(given, host_arguments(given.values()), strict=True))
        accumulators = self._accumulators(types)
        for name, kind in accumulators.items():
            if not kind.ndim:
                host[name] = kind.dtype.type(host[name])
        for each in self.reductions:
            views = [
                x for name, x in host.items() if isinstance(x, np.ndarray) and name != each.name
            ]
            if each.is_update and any(np.may_share_memory(host[each.name], x) for x in views):
                raise self.source.error(
                    self.node,
                    f"{each.name!r} is a reduction, and the loop reads its memory by another name",
                    f"update a copy, {each.name} = {each.name}.copy(), and store it after the loop",
                )
        given_bounds = bounds[: len(self.loops)]
        numbers = [number for each in given_bounds for number in (each.start, each.stop, each.step)]
        values = native.run((*numbers, *host.values()), queue)
        self.ran_as = "native"
        arrays = [x for x in given.values() if isinstance(x, ndarray)]
        return tuple(
            result_of(value, kind, queue, arrays)
            for value, kind in zip(values, accumulators.values(), strict=True)
        )


class NativeCode:
    """A function for native code.

    Attributes:
        tree: the function, with arrays in place of its lists.
        types: its types.
        returns_list: whether its result is a list, which is an array here.
        loops: its ``prange`` loops.
        refused: the error for what only Python can compute.
    """

    def __init__(
        self, source: Source, tree: ast.FunctionDef, types: Inference, options: dict[str, Any]
    ) -> None:
        replaced = with_arrays(source, tree, types)
        tree, types, self.returns_list = replaced or (tree, types, False)
        self.source, self.options, self.types, self.tree = source, options, types, tree
        self.refused = refused_in_native_code(source, tree, types)
        local = {argument.arg for argument in tree.args.args} | assigned_names(tree.body)
        self.loops = [
            ParallelRegion(source, each, local, options)
            for each in _outermost_loops(source, copied(tree))
        ]

    def compiled(self, orders: Mapping[str, str]) -> HostCode:
        """Return the function compiled for the types of its parameters.

        Args:
            orders: the memory orders of array arguments, as in type keys.

        Raises:
            KernelCompileError: it has something that the compiler does not have.
        """
        if self.refused is not None:
            raise self.refused
        options = {**self.options, "debug": True} if config.debug else self.options
        try:
            code = HostCode(self.source, copied(self.tree), self.types, self.loops, options)
            code.compile(orders)
        except KernelCompileError as error:
            name = self.source.function.__name__
            if str(error).startswith((f"{name}:", "kernel ")):
                raise
            raise KernelCompileError(f"{name}: not native: {error}") from None
        return code


def _outermost_loops(source: Source, tree: ast.AST) -> Iterator[ast.For]:
    """Yield the ``prange`` loops of a function that are not inside of another one."""
    for each in ast.iter_child_nodes(tree):
        if isinstance(each, ast.For) and source.is_prange(each):
            yield each
        else:
            yield from _outermost_loops(source, each)


def with_functions(source: Source, types: Mapping[str, Any]) -> tuple[Source, dict[str, Any]]:
    """Return a source whose names have the functions and modules among a region's inputs.

    Return also the types of the inputs, with ``None`` for these.
    """
    functions = {
        name: kind.value
        for name, kind in types.items()
        if isinstance(kind, Known)
        if is_function(kind.value) or isinstance(kind.value, ModuleType)
    }
    plain = {name: Known(None) if name in functions else kind for name, kind in types.items()}
    plain = {f"__{name}" if name in functions else name: kind for name, kind in plain.items()}
    return replace(source, names={**source.names, **functions}) if functions else source, plain


def call_of_region(
    node: ast.stmt, name: str, arguments: list[ast.expr], results: list[str]
) -> ast.stmt:
    """Return the statement that replaces a loop in a driver."""
    call = ast.Call(ast.Name(name, ast.Load()), arguments, [])
    statement: ast.stmt = ast.Expr(call)
    if results:
        targets: list[ast.expr] = [ast.Name(each, ast.Store()) for each in results]
        statement = ast.Assign([ast.Tuple(targets, ast.Store())], call)
    return ast.fix_missing_locations(ast.copy_location(statement, node))


def about_loop(region: Any, error: KernelCompileError, native: str = "") -> KernelCompileError:
    """Return an error of the generated kernel as one of the user's function."""
    name = region.source.function.__name__
    kind = "prange loop" if isinstance(region, ParallelRegion) else "loop over elements"
    text = str(error).replace(f"kernel {name}_line_{region.line} does", f"{name}: {kind} does")
    details = f"{error.details}\n\nAs native code:\n{native}" if native else error.details
    return KernelCompileError(text, details=details)


def has_array_statements(body: Sequence[ast.stmt], types: Inference) -> bool:
    """Return whether statements compute with arrays, not only with elements and views of them."""

    def computes(node: ast.AST) -> bool:
        operands: Sequence[Any] = ()
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            operands = (node,)
        elif isinstance(node, ast.AugAssign):
            operands = (node.target,)
        elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
            operands = [*ast.iter_child_nodes(node)]
        elif isinstance(node, ast.Call) and types.called(node) in {*vars(np), *dir(np.ndarray)}:
            owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            operands = [*owner, *node.args]
        return any(is_array(types.of(each)) for each in operands)

    return any(computes(node) for statement in body for node in ast.walk(statement))


def kernel_of(
    source: Source,
    line: int,
    parameters: list[str],
    head: list[ast.stmt],
    body: list[ast.stmt],
    constants: Mapping[str, Any],
) -> KernelFunction:
    """Return a kernel of generated statements and statements of the user's function.

    Args:
        source: the function.
        line: the line to which generated code belongs.
        parameters: the names of the kernel's parameters.
        head: generated statements.
        body: statements, some of them from the user.
        constants: the values of additional names.
    """
    for statement in head + body:
        for node in cast("Iterator[Any]", ast.walk(statement)):
            if statement in body and hasattr(node, "lineno") and node.lineno >= line:
                continue
            if hasattr(node, "lineno"):
                node.lineno = node.end_lineno = line
    statements = [ast.fix_missing_locations(each) for each in head + body]
    names = {name: for_kernel(value) for name, value in source.names.items()}
    names.update(constants)
    names["__numpy__"] = np
    function = function_of(
        source,
        f"{source.function.__name__}_line_{line}",
        parameters,
        statements,
        names,
        source.file,
    )
    return KernelFunction(function, {"arrays": True})


def _place_in(error: KernelCompileError) -> list[str]:
    """Return the first file and line in the text of an error."""
    return re.findall(r"^  (\S.*:\d+)$", str(error), re.MULTILINE)[:1]


def _counted(loop: ast.For) -> tuple[str, list[ast.expr]]:
    """Return the variable of a loop, and the arguments of its ``range``."""
    assert isinstance(loop.target, ast.Name)
    assert isinstance(loop.iter, ast.Call)
    return loop.target.id, list(loop.iter.args)


def _fixed(bounds: list[ast.expr]) -> tuple[int, int] | None:
    """Return start and step of a range if they are literals."""
    start, _, step = map(constant, range_of(bounds))
    return (start, step) if type(start) is int and type(step) is int else None


class _Skips(ast.NodeTransformer):
    """Replaces ``continue`` of the parallel loop by the end of the work-item."""

    def visit_For(self, node: ast.For) -> ast.AST:
        """Skip the jumps of inner loops."""
        return node

    visit_While = visit_For  # type: ignore[assignment]

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        """Return from the kernel."""
        return ast.copy_location(ast.Return(None), node)


def _combined(reduction: Reduction, before: Any, partial: Any, kind: Value) -> Any:
    """Return the value of a reduction after the loop."""
    method, ufunc = _FOLDS[reduction.op]
    total = getattr(partial, method)() if method else ufunc.reduce(partial.asnumpy())
    if kind.is_weak or not method:
        one, other = (kind.dtype.type(value) for value in (before, total.item()))
        if kind.is_weak and reduction.op in ("min", "max"):
            total = min(one, other) if reduction.op == "min" else max(one, other)
        else:
            with np.errstate(all="ignore"):
                total = ufunc(one, other)
        return total.item() if kind.is_weak else total
    if reduction.op in ("min", "max"):
        return total  # every work-item started with the value from before the loop
    result = before + total if ufunc is np.add else before * total
    return result if result.dtype == kind.dtype else result.astype(kind.dtype)
