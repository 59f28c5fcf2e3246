"""Compiled functions with traced arguments: ``prange`` loops are kernels over their iterations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from operator import index
from typing import Any
from weakref import WeakKeyDictionary

from dparray._ir.instructions import root, walk
from dparray._jit.captured import check_value
from dparray._jit.driver import Driver, contains_prange
from dparray._jit.function import JitFunction
from dparray._jit.inference import Inference, type_of
from dparray._jit.regions import ParallelRegion, about_loop
from dparray._jit.source import Source, copied, root_of
from dparray._kernel.function import KernelFunction
from dparray.device import use_device
from dparray.exceptions import GradientError, KernelCompileError
from dparray.gradients.calls import OF_CLASSES, is_array, write
from dparray.gradients.kernels import Form, called
from dparray.gradients.public import dp
from dparray.gradients.shapes import constant_like
from dparray.gradients.traced import Traced, constants, is_float, leaves_of, stored
from dparray.kernel_api import Range

#: Each function with the source that it was made from.
_FUNCTIONS: WeakKeyDictionary[JitFunction, tuple[Source, Callable[..., Any]]] = WeakKeyDictionary()

#: Functions that return an array of their own.
_CREATING = frozenset({"array", "copy", *("empty", "empty_like", "full", "full_like")})
_CREATING |= {"ones", "ones_like", "zeros", "zeros_like"}
#: A name in generated code.
_CREATED = "__created"
#: An array of the transformation in which a compiled function runs.
_LIKE: ContextVar[Any] = ContextVar("like")


def call_compiled(function: JitFunction, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Run a compiled function in Python, and its ``prange`` loops as kernels.

    Raises:
        GradientError: a loop has no derivative; the error names the line.
    """
    source = function._read()
    known = _FUNCTIONS.get(function)
    if known is None or known[0] is not source:
        plain: Callable[..., Any] = function.py_func
        if contains_prange(source, source.definition):
            plain = _with_kernels(source, function.options)
        known = _FUNCTIONS[function] = source, plain
    arguments = function._completed(tuple(args), dict(options))
    if known[1] is not function.py_func:
        pairs = zip(function._parameters, arguments, strict=True)
        arguments = tuple([x if has_traced(x) else function._checked(n, x) for n, x in pairs])
        function._placed([stored(x) for x in arguments])  # or it raises
    like = max(leaves_of(arguments), key=lambda x: x._level.depth)
    token = _LIKE.set(like)
    try:
        with use_device(like.queue):
            return known[1](*arguments)
    finally:
        _LIKE.reset(token)


OF_CLASSES[JitFunction] = call_compiled


def has_traced(x: Any) -> bool:
    """Return whether a value is, or a list or tuple has, a traced array."""
    return next(leaves_of([x]), None) is not None


def _with_kernels(source: Source, options: dict[str, Any]) -> Callable[..., Any]:
    """Return a function whose ``prange`` loops are kernels.

    The arrays that it creates are constants of the transformation: differentiated values may be
    written to them.
    """
    definition = _Creations(source).visit(copied(source.definition))
    names = {**source.names, _CREATED: _created}
    source = replace(source, definition=ast.fix_missing_locations(definition), names=names)
    types = Inference(definition, {}, names)
    return Driver(source, types, options, _Loop).function


class _Creations(ast.NodeTransformer):
    """Passes the results of calls that create arrays through a function."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit_For(self, node: ast.For) -> ast.AST:
        """Leave out the bodies of kernels."""
        return node if self.source.is_prange(node) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Change a call."""
        self.generic_visit(node)
        called = getattr(self.source.resolve(node.func), "__name__", "")
        is_method = not called and getattr(node.func, "attr", "") == "copy"
        if called not in _CREATING and not is_method:
            return node
        return ast.copy_location(ast.Call(ast.Name(_CREATED, ast.Load()), [node], []), node)


def _created(x: Any) -> Any:
    like = _LIKE.get()
    return x if type(x) is Traced else constant_like(like, x)


class _Loop:
    """A ``prange`` loop whose variables may be traced."""

    def __init__(self, region: ParallelRegion) -> None:
        self._region = region
        self._forms: dict[KernelFunction, Form] = {}

    def __call__(self, *values: Any) -> Any:
        """Run the loop, and record it.

        Raises:
            GradientError: it has no derivative, or writes to an array that is not differentiated.
        """
        region = self._region
        if not has_traced(values):
            return region(*values)
        given = dict(zip(region.captured, values[3 * len(region.fixed) :], strict=True))
        region, given = _with_parts(region, given)
        ends = range(0, 3 * len(region.fixed), 3)
        bounds = [range(*map(index, values[at : at + 3])) for at in ends]
        if not all(map(len, bounds)):
            return tuple(given[each.name] for each in region.reductions)
        plain = {name: stored(x) for name, x in given.items()}
        types = {name: type_of(x) for name, x in plain.items()}
        queue = next(leaves_of(given.values())).queue
        try:
            kernel, space, arguments, partials = region.launch_of(bounds, plain, types, queue)
            form = self._form(region, kernel, space, arguments)
        except KernelCompileError as error:
            text = str(about_loop(region, error))
            if region.source.file in text:
                raise GradientError(text) from None
            fix = "write it with loops over elements, or as array statements"
            raise _error(region, region.node, f"it has no kernel: {text}", fix) from None
        inputs = dict(zip(kernel._parameters, arguments, strict=True))
        for name, x in given.items():
            if is_array(inputs.get(name)):
                inputs[name] = x
            elif name in inputs and type(x) is Traced:
                raise _error(
                    region, region.node, f"{name!r}, which a reduction starts from, has a gradient",
                    "start from a number, and combine the result with the array after the loop",
                )  # fmt: skip
        written = [name for name in form.outputs if name in given]
        _check_written(region, written, given)
        if not any(is_float(inputs[name]) for name in form.outputs):
            inputs = {name: constants(x) for name, x in inputs.items()}
        for each in partials:
            each[...] = 0
        made = called(form, Range(*space), [inputs[name] for name in form.inputs])
        outs = dict(zip(form.outputs, made, strict=True))
        for name in written:
            _store(given[name], outs[name])
        reduced = [outs[f"__partial_{each.name}"] for each in region.reductions]
        is_number = [kind.is_weak for kind in region._accumulators(types).values()]
        reduced = [constants(x) if n else x for x, n in zip(reduced, is_number, strict=True)]
        return region.results_of(given, types, reduced)

    def _form(
        self,
        region: ParallelRegion,
        kernel: KernelFunction,
        space: Sequence[int],
        arguments: Sequence[Any],
    ) -> Form:
        """Return the kernel of the loop with the arrays that it writes."""
        if kernel not in self._forms:
            title = f"{region.source.function.__name__}: prange loop"
            form = Form(kernel, {}, title)
            program = form.program(form.types(space, tuple(arguments)))
            ops = [op for op in walk(program.body) if op.name in ("store", "atomic")]
            starts = [root(op.operands[0]) for op in ops]
            names = [op.attribute.argument for op in starts if op.name == "parameter"]
            self._forms[kernel] = Form(kernel, dict.fromkeys(names), title)
        return self._forms[kernel]


def _with_parts(
    region: ParallelRegion, given: Mapping[str, Any]
) -> tuple[ParallelRegion, dict[str, Any]]:
    """Return a loop as a kernel of arrays and numbers, and its variables.

    Items of tuples and lists become variables, and differentiated numbers arrays of one element.
    """
    reduced = {each.name for each in region.reductions}
    parts: dict[str, Any] = {}
    displays = []
    for name, x in given.items():
        text = name
        if name in reduced:
            parts[name] = x
        else:
            text = _display(name, x, parts)
        if text != name:
            displays.append(f"{name} = {text}")
    for name, x in parts.items():
        check_value(region.source, region.node, name, stored(x))
    if displays:
        region = region._with_displays(tuple(displays), parts.keys())
        parts = {name: parts[name] for name in region.captured}
    region.must_be_kernel = True
    return region, parts


def _display(name: str, x: Any, parts: dict[str, Any]) -> str:
    """Return an expression for a variable of a loop, of variables that are added to ``parts``."""
    if isinstance(x, tuple | list):
        items = [_display(f"{name}__{at}", item, parts) for at, item in enumerate(x)]
        return f"({''.join(f'{text}, ' for text in items)})"
    if type(x) is Traced and not x.ndim:
        parts[f"{name}__0"] = dp.reshape(x, (1,))
        return f"{name}__0[0]"
    parts[name] = x
    return name


def _check_written(
    region: ParallelRegion, written: Sequence[str], given: Mapping[str, Any]
) -> None:
    """Raise if the loop writes to an array that is not differentiated, or shares its memory."""
    roots = {
        name: id(x if x._root is None else x._root)
        for name, x in given.items()
        if type(x) is Traced
    }
    for name in written:
        stores = (
            node
            for node in ast.walk(region.node)
            if isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Store)
            and root_of(node) == name
        )
        node = next(stores, region.node)
        if name not in roots and is_float(given[name]):
            raise _error(
                region, node, f"it writes to {name!r}, which is not differentiated",
                f"create it from an array that is: {name} = dp.zeros_like(x, shape=...)",
            )  # fmt: skip
        if list(roots.values()).count(roots.get(name, 0)) > 1:
            raise _error(
                region, node, f"it writes to {name!r}, which shares its memory with another array",
                "write to an array of its own, and copy it after the loop",
            )  # fmt: skip


def _error(region: ParallelRegion, node: ast.AST, problem: str, fix: str) -> GradientError:
    return GradientError(
        region.source.text_of_error(node, f"this prange loop is differentiated, and {problem}", fix)
    )


def _store(x: Any, value: Any) -> None:
    """Give an array of the function its elements after the loop."""
    if type(x) is Traced:
        write(x, lambda _: value)
    else:
        x[...] = value
