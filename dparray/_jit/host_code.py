"""Native regions, which dparray's own compiler translates.

The function becomes one in the kernel language: a ``prange`` loop becomes a loop over its parts,
which threads share, and results are stored in more arguments.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dparray import kernel_api
from dparray._compiler import cache
from dparray._compiler.compile import obtain_host_function, obtain_kernel
from dparray._driver import processor, traits_of
from dparray._jit.division import IDENTITIES, SYMBOLS, loop_over, range_of
from dparray._jit.inference import (
    UNKNOWN,
    WEAK_INT,
    Inference,
    Items,
    Known,
    Value,
    constant,
    is_array,
    is_number,
)
from dparray._jit.kernel_texts import (
    NUMPY,
    PYTHON_CLASSES,
    FloatPowers,
    PlainLoops,
    dtype_of,
    for_kernel,
    type_key,
)
from dparray._jit.lists import NAMES as LISTS
from dparray._jit.parts import REDUCTION_PARTS, addresses, call_function
from dparray._jit.source import (
    Source,
    assigned_names,
    at_line,
    copied,
    function_of,
    references_of,
    traceback_of,
    used_names,
)
from dparray._language import intrinsics
from dparray._language.errors import (
    CAPTURED,
    MAX_RAISED_VALUES,
    RAISED_VALUES,
    SHAPE_ERROR,
    Refusal,
    refusal_of_host_code,
)
from dparray._layout import order_of
from dparray._type_keys import code_of
from dparray.exceptions import KernelArgumentError, KernelCompileError, ShapeError

#: The most numbers that a function takes and returns, as in `_fastpath_pool.c`.
MAX_WORDS = 512
MAX_RESULTS = 16
_GIVE, _LAUNCH, _APART = "__give__", "__launch__", "__apart__"
#: The most work-items that share the iterations of a kernel with reductions.
MAX_PARTIALS = 1024
#: How many elements the copies of an array that is a reduction variable have together, unless that
#: would be fewer than some copies.
_COPIED_ELEMENTS = 1 << 22
_MIN_COPIES = 16
#: Operators of reductions, which may be reordered.
_REORDERED = (ast.Add, ast.Sub, ast.Mult)
SHARED, _PARTIAL, _ORDERED = "__shared__", "__partial__", "__reordered__"


class _Compiled(NamedTuple):
    """The code for some layouts of arguments.

    Attributes:
        kept: the objects that keep the code.
        address: of the code.
        kinds: a letter for each argument: the type of a number, ``C`` for an array in C order,
            ``S`` for one with strides, ``R`` for one that is read-only.
        runs: the addresses of the kernels that it launches.
        function: the function in the kernel language.
        keys: the type keys of all its parameters.
    """

    kept: Any
    address: int
    kinds: bytes
    runs: tuple[int, ...]
    function: Any
    keys: list[str]


class HostCode:
    """A native region that dparray's own compiler has made."""

    def __init__(
        self,
        source: Source,
        tree: ast.FunctionDef,
        types: Inference,
        loops: Sequence[Any],
        options: Mapping[str, Any],
    ) -> None:
        """Translate the function.

        Args:
            source: the origin of the code.
            tree: the function, which is changed.
            types: its types.
            loops: its ``prange`` loops.
            options: those of the user.

        Raises:
            KernelCompileError: the language does not have something in it.
        """
        self.source, self._options = source, options
        named = [each.arg for each in tree.args.args]
        self._parameters: list[str] = []
        self._kinds: list[Value] = []
        #: For each parameter the position of its argument, and that in a tuple.
        self._places: list[tuple[int, int | None]] = []
        head = []
        for position, name in enumerate(named):
            kind = types.parameters.get(name)
            if isinstance(kind, Known) and isinstance(kind.value, str | None):
                head.append(f"{name} = {kind.value!r}")
            elif isinstance(kind, Items) and all(map(is_number, kind.items)):
                parts = [f"{name}__{at}" for at in range(len(kind.items))]
                head.append(f"{name} = ({''.join(f'{each}, ' for each in parts)})")
                for at, (part, own) in enumerate(zip(parts, kind.items, strict=True)):
                    self._take(part, own, position, at)
                    types.variables[part] = own
            else:
                self._take(name, kind, position)
        if sum(_words_of(kind) for kind in self._kinds) > MAX_WORDS // 2:
            raise KernelCompileError("it takes too many arrays")
        self._is_plain = len(self._places) == len(named) and not head
        for callee, _ in types.callees.values():
            if callee is not None:
                source.depends_on([*callee.references, *references_of(callee.function)])
        sources = [source, *(callee for callee, _ in types.callees.values() if callee is not None)]
        self._captured = _arrays_among(sources)
        self._views = tuple(map(_read_only, self._captured))
        self._raises = any(_raises_values(each.definition) for each in sources)
        self._results = _Results(tree, types, named)
        tree.body[:0] = at_line(ast.parse("\n".join(head)), tree.lineno).body
        sharer = _Sharer(source, types, {loop.line: loop for loop in loops})
        tree = sharer.visit(tree)
        tree = FloatPowers(types).visit(tree)
        tree = _Ordered(sharer.floats).visit(tree)
        tree = _Returns(self._results).visit(tree)
        self._tree = PlainLoops(source).visit(tree)
        # Its own name is that of the user's function, which it may call.
        self._name = f"{tree.name}__native"
        self._kernels = sharer.kernels
        self._assigned = assigned_names(tree.body)
        self._letters, self._has_results = self._results.letters, self._results.are_any
        self._by_orders: dict[tuple[str, ...], _Compiled] = {}
        self._last: _Compiled | None = None

    def _take(self, name: str, kind: Any, position: int, item: int | None = None) -> None:
        """Add a parameter."""
        if not isinstance(kind, Value):
            raise KernelCompileError(f"{name} is neither an array nor a number")
        if kind.dtype == np.float16 or (kind.dtype.kind == "c" and not kind.ndim):
            raise KernelCompileError(f"{name} is {kind.dtype}")
        self._parameters.append(name)
        self._kinds.append(kind)
        self._places.append((position, item))

    def _taken(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values of the parameters."""
        if self._is_plain:
            return arguments
        return tuple(
            arguments[position] if item is None else arguments[position][item]
            for position, item in self._places
        )

    def compile(self, orders: Mapping[str, str]) -> None:
        """Compile for the memory orders of arrays, by name.

        Raises:
            KernelCompileError: the language does not have something in the function.
        """
        self._last = self._compiled(
            tuple(orders.get(name, "C") if kind.ndim else "" for name, kind in self._typed())
        )

    def _typed(self) -> list[tuple[str, Value]]:
        return list(zip(self._parameters, self._kinds, strict=True))

    def _compiled(self, orders: tuple[str, ...]) -> _Compiled:
        found = self._by_orders.get(orders)
        if found is not None:
            return found
        keys, kinds = [], ""
        for kind, order in zip(self._kinds, orders, strict=True):
            keys.append(f"python {code_of(kind.dtype)}" if kind.is_weak else type_key(kind, order))
            if kind.ndim:
                kinds += order if order in "CR" else "S"
            else:
                kinds += _letter(kind.dtype)
        by_name = dict(zip(self._parameters, orders, strict=True))
        names, launched = dict[str, Any](), []
        for each in self._kernels:
            code, multiple, least = self._kernel(each, by_name, names)
            names[f"__sizes_{each.tag}"] = (multiple, least)
            launched.append(code)
        function = self._function(names)
        keys += [f"{code_of(each.dtype)}:{each.ndim}R" for each in self._captured]
        keys += ["i8:1C"] * self._raises + ["i8"] * len(launched) + self._results.keys
        try:
            kernel = obtain_host_function(function, keys, self._options)
        except Refusal as refusal:
            raise self._refused(refusal, function) from None
        code = processor().load(kernel.module, kernel.entry, addresses, cache)
        runs = tuple(each.address for each in launched)
        kinds += "R" * len(self._captured) + "C" * self._raises + "q" * len(runs)
        kept = code, launched
        made = _Compiled(kept, code.address, kinds.encode(), runs, function, keys)
        return self._by_orders.setdefault(orders, made)

    def _refused(self, refusal: Refusal, function: Any) -> KernelCompileError:
        name = self.source.function.__name__
        return KernelCompileError(refusal_of_host_code(refusal, name, function))

    def _function(self, own: Mapping[str, Any]) -> Any:
        """Return the function in the kernel language.

        Args:
            own: the values of more names.
        """
        source = self.source
        parameters = [*self._parameters]
        parameters += [f"{CAPTURED}{at}" for at in range(len(self._captured))]
        parameters += [RAISED_VALUES] * self._raises
        parameters += [f"__run_{each.tag}" for each in self._kernels]
        parameters += [f"__result_{at}" for at in range(len(self._results.stored))]
        names = {name: for_kernel(value) for name, value in source.names.items()}
        names |= {NUMPY: np, SHARED: intrinsics.shared, _ORDERED: intrinsics.reordered}
        names |= {_GIVE: intrinsics.give}
        names |= {_APART: intrinsics.are_apart, _PARTIAL: kernel_api.PrivateArray}
        names |= {_LAUNCH: intrinsics.launch, CAPTURED: self._captured, **LISTS, **own}
        body = copied(self._tree.body)
        return function_of(source, self._name, parameters, body, names, source.file)

    def _kernel(self, loop: _Launched, orders: Mapping[str, str], names: dict[str, Any]) -> Any:
        """Return the code of a loop's kernel for memory orders of arrays, and sizes of pieces.

        Add the type keys of its arguments to the names of the function.
        """
        keys = []
        for name, kind in loop.arguments:
            order = orders.get(name, "C") if name not in self._assigned else "C"
            keys.append(type_key(kind, order))
        names[f"__keys_{loop.tag}"] = tuple(keys)
        types = (f"item:{loop.ndim}", *keys)
        options, target = loop.kernel.options, processor().target()
        kernel = obtain_kernel(loop.kernel.py_func, types, options, target)
        return processor().load_kernel(kernel.module, kernel.entry, loop.ndim, cache)

    def run(self, arguments: tuple[Any, ...], queue: Any = None) -> Any:
        """Call the region with host arrays and numbers.

        Args:
            arguments: its arguments.
            queue: the queue whose device decides on how many threads parallel loops run; ``None``
                where there are no arrays.
        """
        compiled = self._last
        threads = 1 if queue is None else traits_of(queue).units
        results = NotImplemented
        if compiled is not None:
            results = self._call(compiled, arguments, threads)
        if results is NotImplemented:
            results = self._run_otherwise(arguments, threads)
        return self._results.of(results, arguments) if self._has_results else None

    def _call(self, compiled: _Compiled, arguments: tuple[Any, ...], threads: int) -> Any:
        """Return the stored results; ``NotImplemented`` for arrays of other memory orders."""
        raised = (np.zeros(MAX_RAISED_VALUES, np.int64),) if self._raises else ()
        given = self._taken(arguments) + self._views + raised + compiled.runs
        try:
            results = call_function(compiled.address, compiled.kinds, given, self._letters, threads)
        except OverflowError:
            raise KernelArgumentError(
                f"{self.source.function.__name__}: an argument is an integer that does not fit "
                "into 64 bits; pass a floating-point number: float(n)"
            ) from None
        if type(results) is int:
            raise self._error(compiled, results, *raised)
        return results

    def _error(
        self, compiled: _Compiled, number: int, values: np.ndarray | None = None
    ) -> BaseException:
        """Return the exception with which the function has ended, of the values of variables."""
        from dparray._language.frontend import translation

        function, is_checked = compiled.function, bool(self._options.get("debug"))
        whole = translation(function, compiled.keys, is_checked, is_sequential=True)
        found = whole.raised[number - 1]
        code = compile(found.error, self.source.file, "eval")
        scope = {**found.scope, SHAPE_ERROR: ShapeError}
        for at, value in enumerate(found.values):
            assert values is not None
            scope[value.name] = value.kind(values[at : at + 1].view(value.stored)[0])
        error = eval(code, scope)
        error = error() if isinstance(error, type) else error
        if isinstance(error, ShapeError):
            error = ShapeError(f"{self.source.function.__name__}: {error}")
        own = {self._name: self.source.function.__name__}
        places = [
            (each.file, each.line, own.get(each.function, each.function)) for each in found.places
        ]
        made: BaseException = error.with_traceback(traceback_of(error, places))
        return made

    def _run_otherwise(self, arguments: tuple[Any, ...], threads: int) -> Any:
        """Return the stored results for arrays of other memory orders than the last."""
        orders = tuple(map(_order, self._taken(arguments)))
        compiled = self._compiled(orders)
        results = self._call(compiled, arguments, threads)
        assert results is not NotImplemented
        self._last = compiled
        return results


def _words_of(kind: Value) -> int:
    """Return in how many numbers an argument is passed: its sizes, address and strides."""
    return 3 + 2 * kind.ndim if kind.ndim else 1


def _letter(dtype: np.dtype[Any]) -> str:
    """Return the letter of a type of numbers, alike on all systems."""
    return "q" if dtype == np.int64 else dtype.char


def _order(argument: Any) -> str:
    if not isinstance(argument, np.ndarray) or not argument.ndim:
        return ""
    if not argument.flags.writeable:
        return "R"
    return order_of(argument.shape, argument.strides, argument.itemsize)


def _arrays_among(sources: Sequence[Source]) -> tuple[np.ndarray, ...]:
    """Return the NumPy arrays of functions: globals, captured names and attributes of modules."""
    values = (each.resolve(node) for each in sources for node in ast.walk(each.definition))
    arrays = (each for each in values if isinstance(each, np.ndarray))
    return tuple({id(each): each for each in arrays if each.dtype.kind in "biuf"}.values())


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _raises_values(tree: ast.FunctionDef) -> bool:
    """Return whether a function raises an exception with the value of a variable."""
    stored = {argument.arg for argument in tree.args.args} | assigned_names(tree.body)
    raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc)
    asserted = (node.msg for node in ast.walk(tree) if isinstance(node, ast.Assert) and node.msg)
    return any(used_names(each) & stored for each in (*raised, *asserted))


class _Result(NamedTuple):
    """A result of a function: a number, a new array, or an argument.

    Attributes:
        kind: its type.
        argument: the position of the argument, or ``None``.
    """

    kind: Value
    argument: int | None = None


class _Results:
    """The results of a function, which it stores in more arguments unless they are arguments.

    Attributes:
        stored: those that it stores.
    """

    def __init__(self, tree: ast.FunctionDef, types: Inference, parameters: list[str]) -> None:
        self._found: list[_Result] | None = None
        self.stored: list[_Result] = []
        result = types.result
        self._is_tuple = isinstance(result, Items)
        kinds = result.items if isinstance(result, Items) else (result,)
        # An update of an array changes it, and its name stays the name of the argument.
        updated = {id(each.target) for each in ast.walk(tree) if isinstance(each, ast.AugAssign)}
        assigned = {
            each.id
            for each in ast.walk(tree)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            if id(each) not in updated
        }
        for node in _returns_of(tree.body):
            if node.value is None and self._found is None:
                continue
            found: list[_Result] = []
            values = _items(node.value, len(kinds), self._is_tuple)
            for value, kind in zip(values, kinds, strict=True):
                name = value.id if isinstance(value, ast.Name) else ""
                if is_array(kind) and name in parameters and name not in assigned:
                    found.append(_Result(kind, parameters.index(name)))
                elif isinstance(kind, Value):
                    found.append(_Result(kind))
                else:
                    raise KernelCompileError("the type of a result is not known")
            if self._found not in (None, found):
                raise KernelCompileError("it returns one of several arrays")
            self._found = found
        if self._found is None:
            return
        self.stored = [each for each in self._found if each.argument is None]
        if len(self.stored) > MAX_RESULTS:
            raise KernelCompileError(f"it returns more than {MAX_RESULTS} values")

    @property
    def are_any(self) -> bool:
        """Whether the function returns something."""
        return self._found is not None

    @property
    def letters(self) -> bytes:
        """For each stored result its number of dimensions and the letter of its type."""
        return b"".join(
            bytes([each.kind.ndim]) + _letter(each.kind.dtype).encode() for each in self.stored
        )

    @property
    def keys(self) -> list[str]:
        """The type keys of the arguments in which results are stored."""
        codes = ["i8" if each.kind.ndim else code_of(each.kind.dtype) for each in self.stored]
        return [f"{code}:1C" for code in codes]

    def stores(self, node: ast.Return) -> list[ast.stmt]:
        """Return the statements that replace a ``return``."""
        made: list[ast.stmt] = []
        if self._found is not None:
            values = _items(node.value, len(self._found), self._is_tuple)
            pairs = zip(values, self._found, strict=True)
            stored = [(value, each) for value, each in pairs if each.argument is None]
            given: list[ast.expr] = []
            for at, (value, each) in enumerate(stored):
                result: ast.expr = ast.Name(f"__result_{at}", ast.Load())
                if each.kind.ndim:
                    parts = [result, value, dtype_of(each.kind.dtype), ast.Constant(each.kind.ndim)]
                    given.append(ast.Tuple(parts, ast.Load()))
                else:
                    place = ast.Subscript(result, ast.Constant(0), ast.Store())
                    made.append(ast.Assign([place], value))
            if given:
                made.append(ast.Expr(ast.Call(ast.Name(_GIVE, ast.Load()), given, [])))
        made.append(ast.Return(None))
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in made]

    def of(self, values: tuple[Any, ...], arguments: tuple[Any, ...]) -> Any:
        """Return what the function returns."""
        assert self._found is not None
        rest = iter(values)
        found = [
            arguments[each.argument] if each.argument is not None else next(rest)
            for each in self._found
        ]
        if tuple in map(type, values):
            found = [
                _argument_of(each, arguments) if type(each) is tuple else each for each in found
            ]
        return tuple(found) if self._is_tuple else found[0]


def _returns_of(body: Sequence[ast.AST]) -> Iterator[ast.Return]:
    """Yield the ``return`` statements of a function, without those of functions in it."""
    for each in body:
        if isinstance(each, ast.Return):
            yield each
        elif not isinstance(each, ast.FunctionDef | ast.Lambda):
            yield from _returns_of([*ast.iter_child_nodes(each)])


def _argument_of(value: tuple[int, ...], arguments: tuple[Any, ...]) -> np.ndarray:
    """Return the array in C order at an address, of a shape, among arguments."""
    address, *shape = value
    arrays = [each for each in arguments if isinstance(each, np.ndarray)]
    found = next(each for each in arrays if each.ctypes.data == address)
    if found.shape == tuple(shape):
        return found
    return found.reshape(-1)[: math.prod(shape)].reshape(shape)


def _items(value: Any, count: int, is_tuple: bool) -> list[ast.expr]:
    """Return the expressions of the results of a ``return``."""
    if value is None:
        raise KernelCompileError("it returns nothing on some path")
    if not is_tuple:
        return [value]
    if isinstance(value, ast.Tuple) and len(value.elts) == count:
        return list(value.elts)
    if not isinstance(value, ast.Name):
        raise KernelCompileError("it returns a tuple of a call")
    return [ast.Subscript(value, ast.Constant(at), ast.Load()) for at in range(count)]


class _Returns(ast.NodeTransformer):
    """Replaces the ``return`` statements of a function by stores."""

    def __init__(self, results: _Results) -> None:
        self.results = results

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Rewrite the function itself, not those that it defines."""
        node.body = [each for one in node.body for each in self._visited(one)]
        return node

    def _visited(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef):
            return [node]
        found = self.visit(node)
        return found if isinstance(found, list) else [found]

    def visit_Return(self, node: ast.Return) -> Any:
        """Store the results."""
        return self.results.stores(node)


class _Sharer(ast.NodeTransformer):
    """Makes ``prange`` loops loops over their parts.

    Attributes:
        floats: the reduction variables of each loop whose updates may be reordered, by its line.
        kernels: the loops that are launched as kernels.
    """

    def __init__(self, source: Source, types: Inference, loops: Mapping[int, Any]) -> None:
        self.source, self.types, self.loops = source, types, loops
        self.floats: dict[int, set[str]] = {}
        self.kernels: list[_Launched] = []

    def visit_For(self, node: ast.For) -> Any:
        """Replace a loop."""
        if not self.source.is_prange(node):
            return self.generic_visit(node)
        loop = self.loops[node.lineno]
        given = {name: self.types.variables.get(name, UNKNOWN) for name in loop.captured}
        if loop.is_launched:
            return self._launched(loop, given)
        reduced = loop._accumulators(given)
        mark, variables = loop.line, self.types.variables
        head, starts = _bounds(loop, loop.loops)
        total = " * ".join(f"__count{axis}_{mark}" for axis in range(len(starts)))
        counts = [total, str(REDUCTION_PARTS)]
        counts += [
            f"max({_MIN_COPIES}, {_COPIED_ELEMENTS} // ({name}.size + 1))"
            for name, kind in reduced.items()
            if kind.ndim
        ]
        parts = f"min({', '.join(counts)})" if reduced else "0"
        head.append(f"__parts_{mark} = {parts}")
        first, last, after = list[str](), list[str](), list[str]()
        for each in loop.reductions:
            kind, partial = reduced[each.name], f"__{each.name}_{mark}"
            variables[partial] = Value(kind.dtype, 1 + kind.ndim)
            combined = f"{each.name} = {_combined(each, kind, f'{partial}[__p]')}"
            if kind.ndim:
                head += _copies(each, kind, partial, f"__parts_{mark}")
                first.append(f"{each.name} = {partial}[__part]")
                if not each.is_update:
                    first[-1] = f"{each.name} = {NUMPY}.copy({partial}[__part])"
                elif each.op in SYMBOLS:
                    combined = f"{each.name} {SYMBOLS[each.op]}= {partial}[__p]"
            else:
                head.append(f"{partial} = {_PARTIAL}({REDUCTION_PARTS}, {_dtype(kind)})")
                first.append(f"{each.name} = {_dtype(kind)}({_first_value(each, kind)})")
            if not (kind.ndim and each.is_update):
                last.append(f"{partial}[__part] = {each.name}")
            after.append(f"for __p in range(__parts_{mark}): {combined}")
        run = [*first, *loop_over(loop, starts).split("\n"), *last]
        head.append(f"for __part, __first, __last in {SHARED}({total}, __parts_{mark}):")
        made = self._parsed([*head, *(f" {line}" for line in run), *after], mark)
        self.floats[mark] = {
            name for name, kind in reduced.items() if kind.dtype.kind in "fc" and not kind.ndim
        }
        inner: Any = next(each for each in made if _is_shared(each))
        inner = next(each for each in inner.body if isinstance(each, ast.For))
        while not isinstance(inner.body[-1], ast.Pass):
            inner = inner.body[-1]
        inner.body[-1:] = copied(loop.body)
        return made

    def _launched(self, loop: Any, given: Mapping[str, Any]) -> list[ast.stmt]:
        """Return the statements that launch a loop as a kernel of the host."""
        mark, rows = loop.line, [*range(len(loop.loops))]
        inner = loop.inner if loop.independent else []
        head, starts = _bounds(loop, [*loop.loops, *inner])
        if loop.reductions:
            reduced = loop._accumulators(given)
            if any(kind.ndim for kind in reduced.values()):
                raise KernelCompileError("a reduction is an array")
            total = " * ".join(f"__count{axis}_{mark}" for axis in rows)
            head.append(f"__total_{mark} = {total}")
            head.append(f"__width_{mark} = min(__total_{mark}, {MAX_PARTIALS})")
            more, after = [f"__total_{mark}"], list[str]()
            more += [f"__count{axis}_{mark}" for axis in rows[1:]]
            for each in loop.reductions:
                kind, partial = reduced[each.name], f"__{each.name}_{mark}"
                self.types.variables[partial] = Value(kind.dtype, 1)
                head.append(f"{partial} = {_PARTIAL}({MAX_PARTIALS}, {_dtype(kind)})")
                more.append(partial)
                combined = _combined(each, kind, f"{partial}[__p]")
                after.append(f"for __p in range(__width_{mark}): {each.name} = {combined}")
            call = self._call(loop, rows, {**given, **reduced}, starts, more)
            return self._parsed([*head, call, *after], mark)
        call = self._call(loop, rows, given, starts, [])
        if loop.independent:
            together = self._call(loop, loop.by_lanes, given, starts, [])
            conditions = []
            for axis, each in enumerate(loop.independent, len(rows)):
                start, step = starts[axis]
                last = f"{start} + (__count{axis}_{mark} - 1) * {step}"
                conditions.append(f"min({start}, {last}) >= {each.least}")
            arrays = [name for name, kind in given.items() if is_array(kind)]
            conditions += [
                f"{_APART}({name}, {other})"
                for name in sorted(loop.written & set(arrays))
                for other in arrays
                if other != name
            ]
            call = f"if {' and '.join(conditions)}: {together}\nelse: {call}"
        return self._parsed([*head, call], mark)

    def _call(
        self,
        loop: Any,
        axes: list[int],
        given: Mapping[str, Any],
        starts: Sequence[tuple[str, str]],
        more: list[str],
    ) -> str:
        """Return the call that launches a loop over some axes.

        Args:
            loop: the loop.
            axes: those of the kernel, in the order of dimensions.
            given: the types of the variables that it reads.
            starts: starts and steps of all axes.
            more: the arguments for reductions.
        """
        kernel, names, _ = loop.kernel_of(
            {name: given[name] for name in loop.captured}, axes, in_cpu=True
        )
        tag = f"{loop.line}_{len(self.kernels)}"
        fixed = [axis for axis in sorted(axes) if loop.fixed[axis] is None]
        numbers = [text for axis in fixed for text in starts[axis]]
        partials = [self.types.variables.get(each, WEAK_INT) for each in more]
        kinds = [WEAK_INT] * len(numbers) + partials + [given[name] for name in names]
        passed = [*numbers, *more, *names]
        ndim = 1 if more else len(axes)
        self.kernels.append(_Launched(tag, kernel, list(zip(passed, kinds, strict=True)), ndim))
        extents = [f"__count{axis}_{loop.line}" for axis in axes]
        extents = [f"__width_{loop.line}"] if more else extents
        given_texts = "".join(f", {each}" for each in passed)
        extent = "".join(f"{each}, " for each in extents)
        return f"{_LAUNCH}(__run_{tag}, __sizes_{tag}, ({extent}), __keys_{tag}{given_texts})"

    def _parsed(self, texts: list[str], line: int) -> list[ast.stmt]:
        """Return generated statements at a line; their own variables are integers."""
        made: list[ast.stmt] = at_line(ast.parse("\n".join(texts)), line).body
        nodes = [each for one in made for each in ast.walk(one)]
        names = {each.id for each in nodes if isinstance(each, ast.Name) and each.id[:2] == "__"}
        self.types.variables |= dict.fromkeys(names - self.types.variables.keys(), WEAK_INT)
        return made


class _Launched(NamedTuple):
    """A kernel that the function launches.

    Attributes:
        tag: the end of the names of its address and its keys.
        kernel: the kernel function.
        arguments: the texts of its arguments, and their types.
        ndim: the number of dimensions of its range.
    """

    tag: str
    kernel: Any
    arguments: list[tuple[str, Value]]
    ndim: int


def _bounds(loop: Any, loops: Sequence[Any]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the statements that compute the lengths of loops, and their starts and steps."""
    head, starts = list[str](), []
    for axis, (_, arguments) in enumerate(loops):
        texts = []
        start, stop, step = range_of(arguments)
        for word, bound in (("start", start), ("step", step)):
            text = ast.unparse(bound)
            if type(constant(bound)) is not int:
                head.append(f"__{word}{axis}_{loop.line} = {text}")
                text = f"__{word}{axis}_{loop.line}"
            texts.append(text)
        starts.append((texts[0], texts[1]))
        length = f"len(range({texts[0]}, {ast.unparse(stop)}, {texts[1]}))"
        head.append(f"__count{axis}_{loop.line} = {length}")
    return head, starts


def _is_shared(node: ast.AST) -> bool:
    """Return whether a statement is a loop over parts."""
    called = node.iter if isinstance(node, ast.For) else None
    return isinstance(called, ast.Call) and ast.unparse(called.func) == SHARED


def _dtype(kind: Value) -> str:
    return ast.unparse(dtype_of(kind.dtype))


def _copies(reduced: Any, kind: Value, partial: str, parts: str) -> list[str]:
    """Return the statements that make the arrays of a reduction variable, one for each part."""
    name = reduced.name
    made = [f"{partial} = {NUMPY}.empty(({parts}, *{name}.shape), {_dtype(kind)})"]
    if not reduced.is_update:  # another array, which the iterations make
        made.insert(0, f"{name} = {NUMPY}.copy({name})")
    value = name if reduced.op in ("min", "max") else _first_value(reduced, kind)
    return [*made, f"{partial}[:] = {value}"]


def _first_value(reduced: Any, kind: Value) -> str:
    """Return the value of a reduction variable before the iterations of a part."""
    if reduced.op in ("min", "max"):
        return str(reduced.name)
    return repr(np.array(IDENTITIES[reduced.op]).astype(kind.dtype).item())


def _combined(reduced: Any, kind: Value, partial: str) -> str:
    """Return a reduction variable combined with the result of a part."""
    name = reduced.name
    if kind.ndim:
        function = f"{NUMPY}.{reduced.op}imum({name}, {partial})"
        is_order = reduced.op in ("min", "max")
        return function if is_order else f"{name} {SYMBOLS[reduced.op]} {partial}"
    convert = PYTHON_CLASSES[kind.dtype.kind] if kind.is_weak else _dtype(kind)
    if reduced.op in ("min", "max"):
        function = reduced.op if kind.is_weak else f"{NUMPY}.{reduced.op}imum"
        return f"{convert}({function}({name}, {partial}))"
    return f"{convert}({name} {SYMBOLS[reduced.op]} {partial})"


class _Ordered(ast.NodeTransformer):
    """Lets the updates of reduction variables be reordered, so that loops are vectorized."""

    def __init__(self, floats: Mapping[int, set[str]]) -> None:
        self.floats = floats
        self.names: set[str] = set()

    def visit_For(self, node: ast.For) -> ast.AST:
        """Enter a loop over parts."""
        if _is_shared(node):
            self.names, before = self.floats[node.lineno], self.names
            node = self.generic_visit(node)  # type: ignore[assignment]
            self.names = before
            return node
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Replace ``total += value``."""
        target = node.target
        if not isinstance(target, ast.Name) or target.id not in self.names:
            return self.generic_visit(node)
        left = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        value = self.visit(ast.copy_location(ast.BinOp(left, node.op, node.value), node))
        return ast.copy_location(ast.Assign([target], value), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace ``total + value``."""
        self.generic_visit(node)
        left = node.left
        if type(node.op) in _REORDERED and isinstance(left, ast.Name) and left.id in self.names:
            made = ast.Call(ast.Name(_ORDERED, ast.Load()), [node], [])
            return ast.fix_missing_locations(ast.copy_location(made, node))
        return node
