"""Kernels that check their indices, launched under ``dp.config.debug`` instead of the kernel.

The kernel's syntax tree is copied. Every read of an element becomes ``checked_item``, and every
write follows a ``check``; faults are stored in a record, which is an additional argument. Outside
an array, reads return the first element and writes do nothing. The record also stores operations
for which Python raises an exception while a device defines a result (see
``device_code/exceptions.py``): steps of 0, dimensions that a range does not have, arrays unpacked
to a different number of names. Called device functions are copied too. Nothing returns early, so
barriers stay where they are.
"""

from __future__ import annotations

import ast
import builtins
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dparray._compiler.numba.diagnosis import RECORD
from dparray._ir.checks import INDICES, SHAPE
from dparray._language.device_function import DeviceFunction
from dparray._language.references import referred_values
from dparray._language.source import Source, quote, source_of
from dparray.kernel_api import AtomicRef, vec_load, vec_store

#: The problem at a site, with its source, the offending number, and the shape.
_INDEX = "index {found} is out of bounds of {there}, whose shape is {shape}"
_RUN = (
    "the elements from index {found} on are not all inside the array of {there}, of shape {shape}"
)
_STEP = "the step of {there} is 0"
_SLICE_STEP = "the step of the slice {there} is 0"
_DIMENSION = "{there} asks for dimension {found} of {shape[0]}"
_ASSERTION = "the assertion {there} failed"
_UNPACKED = "{found} names are assigned from {there}, whose shape is {shape}"
#: Methods of items and groups with a dimension parameter.
OF_A_DIMENSION = re.compile(r"get_(?:(?:global|local|group)_)?(?:id|range)")


class Site(NamedTuple):
    """A checked expression: an index, a step, a dimension, a number of names."""

    function: str
    problem: str
    there: str
    source: Source
    line: int
    column: int
    end_column: int


class CheckedKernel(NamedTuple):
    """The checking copy of a kernel, with the record as its last parameter.

    Attributes:
        function: the copy.
        sites: the checked expressions, by number.
        unchecked: names of device functions whose source is unavailable.
    """

    function: Callable[..., Any]
    sites: list[Site]
    unchecked: list[str]


def _in_kernels(name: str) -> Callable[..., Any]:
    """Return a function that only kernels call; ``device_code/checks.py`` has its device code."""

    def check(*arguments: Any) -> Any:
        raise NotImplementedError(f"{name} runs in kernels")

    check.__name__ = name
    return check


is_inside = _in_kernels("is_inside")
check = _in_kernels("check")
checked_index = _in_kernels("checked_index")
checked_item = _in_kernels("checked_item")
checked_load = _in_kernels("checked_load")
checked_store = _in_kernels("checked_store")
checked_step = _in_kernels("checked_step")
checked_dimension = _in_kernels("checked_dimension")
checked_parts = _in_kernels("checked_parts")
checked_assertion = _in_kernels("checked_assertion")
_CHECKS = {
    f"dparray_{each.__name__}": each
    for each in (
        *(is_inside, check, checked_index, checked_item, checked_load, checked_store),
        *(checked_step, checked_dimension, checked_parts, checked_assertion),
    )
}


def checked_copy(function: Callable[..., Any]) -> CheckedKernel | None:
    """Return the checking copy of a kernel's Python function; ``None`` without its source."""
    copier = _Copier()
    copied = copier.copy(function, is_kernel=True)
    return None if copied is None else CheckedKernel(copied, copier.sites, copier.unchecked)


def describe_fault(kernel: str, checked: CheckedKernel, record: Any) -> str:
    """Return the message for the record of a launch."""
    faults, number, count, unsigned, dimensions = map(int, record[:INDICES])
    if not (0 <= number < len(checked.sites) and 0 <= max(count, dimensions) <= SHAPE - INDICES):
        return (
            f"kernel {kernel}: it reported a fault, but the record of it is damaged. Check the "
            "device with `dparray doctor`"
        )
    site = checked.sites[number]
    indices = tuple(
        int(value) % 2**64 if unsigned >> at & 1 else int(value)
        for at, value in enumerate(record[INDICES : INDICES + count])
    )
    shape = tuple(map(int, record[SHAPE : SHAPE + dimensions]))
    shown = str(indices[0]) if count == 1 else str(indices)
    excerpt = quote(site.source, site.line, site.column, site.end_column)
    others = f" ({faults - 1} more fault{'s' if faults > 2 else ''})" if faults > 1 else ""
    where = "" if site.function == kernel else f" in {site.function}"
    problem = site.problem.format(found=shown, there=site.there, shape=shape)
    return f"kernel {kernel}: {problem}{where}{others}\n{excerpt.rstrip()}"


class _Copier:
    """Copies a kernel and the device functions that it calls, each once."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.unchecked: list[str] = []
        self.copies: dict[int, DeviceFunction | None] = {}

    def copy(self, function: Any, *, is_kernel: bool) -> Callable[..., Any] | None:
        source = source_of(function, exact=True)
        if source is None:
            return None
        scope = {**function.__globals__, **referred_values(function), **_CHECKS}
        tree = source.tree
        tree.decorator_list = []
        tree.returns = None
        arguments = tree.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            argument.annotation = None
        # A kernel's record is its last argument; in other functions it precedes the defaults.
        arguments.defaults = []
        arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
        tree = _Checker(self, source, scope).visit(tree)
        if is_kernel:
            arguments.args.append(ast.arg(RECORD))
        else:
            (arguments.posonlyargs or arguments.args).insert(0, ast.arg(RECORD))
        module = ast.fix_missing_locations(ast.Module([tree], []))
        ast.increment_lineno(module, source.first - 1)
        exec(compile(module, source.file, "exec"), scope)
        copied = scope[tree.name]
        copied.__qualname__ = function.__qualname__
        if not is_kernel:
            copied.__defaults__, copied.__kwdefaults__ = (
                function.__defaults__,
                function.__kwdefaults__,
            )
        return copied

    def device_function(self, original: Any) -> DeviceFunction | None:
        if id(original) not in self.copies:
            copied = self.copy(original.py_func, is_kernel=False)
            options = getattr(original, "options", {})
            if copied is None:
                self.unchecked.append(original.py_func.__name__)
            self.copies[id(original)] = copied and DeviceFunction(copied, options)
        return self.copies[id(original)]


class _Checker(ast.NodeTransformer):
    """Adds a check to every element access, and passes the record to every device function."""

    def __init__(self, copier: _Copier, source: Source, scope: dict[str, Any]) -> None:
        self.copier = copier
        self.source = source
        self.scope = scope
        self.own = {
            each.id
            for each in ast.walk(source.tree)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        } | {each.arg for each in ast.walk(source.tree.args) if isinstance(each, ast.arg)}
        self.atomic = AtomicRef
        self.made = 0

    # -- reading --------------------------------------------------------------------------------

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if _is_constant(node.slice) and isinstance(self.resolve(node.value), tuple):
            return node  # checked by the compiler
        site = self.site(node, _INDEX, node.value)
        self.generic_visit(node)
        if not _is_element(node):
            return node
        if isinstance(node.ctx, ast.Load):
            return self.call(checked_item, node.value, node.slice, site)
        # A target that is not a statement of its own, as in a loop.
        array = ast.parse(ast.unparse(node.value), mode="eval").body
        node.slice = self.call(checked_index, array, node.slice, site)
        return node

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        step = node.step
        if step is None or _is_constant(step):
            return self.generic_visit(node)
        site = self.site(step, _SLICE_STEP, node)
        self.generic_visit(node)
        assert node.step is not None
        node.step = self.call(checked_step, _load("slice"), node.step, site)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        problem = _ASSERTION
        if node.msg is not None:
            literal = isinstance(node.msg, ast.Constant)
            message = str(node.msg.value) if literal else ast.unparse(node.msg)  # type: ignore[attr-defined]
            problem += ": " + message.replace("{", "{{").replace("}", "}}")
        site = self.site(node.test, problem, node.test)
        holds = self.visit(node.test)
        noted = self.call(checked_assertion, ast.Constant(0), holds, site)
        return _placed(ast.Expr(noted), node)

    # -- writing --------------------------------------------------------------------------------

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_For(self, node: ast.For) -> Any:
        if isinstance(node.target, ast.Tuple | ast.List):
            value = self.name()
            unpacked = _placed(ast.Assign([node.target], _load(value)), node)
            ast.copy_location(unpacked.value, node.iter)  # type: ignore[attr-defined]
            node.target, node.body = _store(value), [unpacked, *node.body]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        counts = {
            len(target.elts) for target in node.targets if isinstance(target, ast.Tuple | ast.List)
        }
        sites = [(self.site(node.value, _UNPACKED, node.value), count) for count in counts]
        given = self.visit(node.value)
        for site, count in sites if not isinstance(node.value, ast.Tuple) else ():
            given = self.call(checked_parts, given, ast.Constant(count), site)
        if not any(map(_holds_element, node.targets)):
            node.value = given
            node.targets = [self.visit(target) for target in node.targets]
            return ast.fix_missing_locations(node)
        value = self.name()
        made: list[ast.stmt] = [ast.Assign([_store(value)], given)]
        for target in node.targets:
            made += self.assignments(target, value)
        return [_placed(one, node) for one in made]

    def assignments(self, target: ast.expr, value: str) -> Iterator[ast.stmt]:
        """Yield ``target = value``, from left to right."""
        if isinstance(target, ast.Tuple | ast.List) and _holds_element(target):
            parts = [self.name() for _ in target.elts]
            yield ast.Assign([ast.Tuple(list(map(_store, parts)), ast.Store())], _load(value))
            for one, part in zip(target.elts, parts, strict=True):
                yield from self.assignments(one, part)
        elif isinstance(target, ast.Subscript) and _is_element(target):
            site = self.site(target, _INDEX, target.value)
            array, index = self.name(), self.name()
            yield ast.Assign([_store(array)], self.visit(target.value))
            yield ast.Assign([_store(index)], self.visit(target.slice))
            inside = self.call(check, _load(array), _load(index), site)
            yield ast.If(inside, [ast.Assign([_element(array, index)], _load(value))], [])
        else:
            yield ast.Assign([self.visit(target)], _load(value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if not isinstance(target, ast.Subscript) or not _is_element(target):
            return self.generic_visit(node)
        site = self.site(target, _INDEX, target.value)
        array, index, old, new = (self.name() for _ in range(4))
        before = self.call(checked_item, _load(array), _load(index), site)
        inside = ast.Call(
            ast.Name("dparray_is_inside", ast.Load()), [_load(array), _load(index)], []
        )
        made = (
            ast.Assign([_store(array)], self.visit(target.value)),
            ast.Assign([_store(index)], self.visit(target.slice)),
            ast.Assign([_store(old)], before),
            ast.Assign([_store(new)], ast.BinOp(_load(old), node.op, self.visit(node.value))),
            ast.If(inside, [ast.Assign([_element(array, index)], _load(new))], []),
        )
        return [_placed(one, node) for one in made]

    # -- calls ----------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = self.resolve(node.func)
        if called in (vec_load, vec_store):
            return self.check_vector(node, called)
        if called is self.atomic:
            arguments = dict(zip(("ref", "index"), node.args, strict=False))
            arguments |= {one.arg: one.value for one in node.keywords if one.arg}
            site = self.site(node, _INDEX, arguments["ref"]) if "ref" in arguments else None
            self.generic_visit(node)
            if site is not None:
                self.check_atomic(node, site)
            return node
        if called is range and len(node.args) == 3 and not _is_constant(node.args[2]):
            site = self.site(node, _STEP, node)
            self.generic_visit(node)
            node.args[2] = self.call(checked_step, node.func, node.args[2], site)
            return node
        if called is None and _asks_for_dimension(node):
            site = self.site(node, _DIMENSION, node)
            self.generic_visit(node)
            assert isinstance(node.func, ast.Attribute)
            again = ast.parse(ast.unparse(node.func.value), mode="eval").body
            dimension = (*node.args, *(one.value for one in node.keywords))[0]
            node.args = [self.call(checked_dimension, again, dimension, site)]
            node.keywords = []
            return node
        self.generic_visit(node)
        if isinstance(getattr(called, "py_func", None), types.FunctionType):
            copied = self.copier.device_function(called)
            if copied is not None:
                name = f"dparray_checked_{id(called)}"
                self.scope[name] = copied
                node.func = _load(name)
                node.args.insert(0, _load(RECORD))
        return node

    def check_atomic(self, node: ast.Call, site: int) -> None:
        """Check the index of an ``AtomicRef``; outside its array, use the first element's."""
        named = {one.arg: one for one in node.keywords}
        array = node.args[0] if node.args else named["ref"].value
        again = ast.parse(ast.unparse(array), mode="eval").body
        if len(node.args) > 1:
            node.args[1] = self.call(checked_index, again, node.args[1], site)
        elif "index" in named:
            named["index"].value = self.call(checked_index, again, named["index"].value, site)

    def check_vector(self, node: ast.Call, called: Any) -> ast.AST:
        """Check the elements that a vector is read from or written to."""
        site = self.site(node, _RUN, node)
        self.generic_visit(node)
        named = {one.arg: one.value for one in node.keywords if one.arg}
        names = ("array", "index", "width" if called is vec_load else "vector")[len(node.args) :]
        if sorted(named) != sorted(names) or len(named) != len(node.keywords):
            return node  # which does not compile
        stub = checked_load if called is vec_load else checked_store
        arguments = [*node.args, *(named[name] for name in names)]
        arguments += [_load(RECORD), ast.Constant(site)]
        return ast.Call(_load(f"dparray_{stub.__name__}"), arguments, [])

    def resolve(self, node: ast.expr) -> Any:
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        value = None
        if isinstance(node, ast.Name) and node.id not in self.own:
            value = self.scope.get(node.id, getattr(builtins, node.id, None))
        for name in reversed(path):
            value = getattr(value, name, None)
        return value

    # -- pieces ---------------------------------------------------------------------------------

    def site(self, node: ast.expr, problem: str, there: ast.AST) -> int:
        """Return the number of a new site; its expression is not transformed yet."""
        indent = self.source.indent
        end_column = node.end_col_offset or node.col_offset + 1
        self.copier.sites.append(
            Site(
                self.source.tree.name,
                problem,
                ast.unparse(there),
                self.source,
                node.lineno + self.source.first - 1,
                node.col_offset + indent,
                end_column + indent,
            )
        )
        return len(self.copier.sites) - 1

    def call(
        self, stub: Callable[..., Any], array: ast.expr, index: ast.expr, site: int
    ) -> ast.Call:
        function = _load(f"dparray_{stub.__name__}")
        return ast.Call(function, [array, index, _load(RECORD), ast.Constant(site)], [])

    def name(self) -> str:
        """Return a new variable."""
        self.made += 1
        return f"dparray_value_{self.made}"


def _is_constant(node: ast.expr) -> bool:
    """Return whether an expression is a literal number, which the compiler checks."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _asks_for_dimension(call: ast.Call) -> bool:
    """Return whether a call may be an item or group method with a dimension known at run time."""
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "dim")]
    return (
        isinstance(call.func, ast.Attribute)
        and OF_A_DIMENSION.fullmatch(call.func.attr) is not None
        and len(given) == len(call.args) + len(call.keywords) == 1
        and not _is_constant(given[0])
    )


def _is_element(node: ast.Subscript) -> bool:
    """Return whether an expression may be an element of an array, not a slice, field or shape."""
    # Constant indices of a shape are checked at compile time.
    is_shape = isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "strides")
    if is_shape and _is_constant(node.slice):
        return False
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return False
    return not any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))


def _holds_element(target: ast.expr) -> bool:
    return any(isinstance(part, ast.Subscript) and _is_element(part) for part in ast.walk(target))


def _store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _element(array: str, index: str) -> ast.Subscript:
    return ast.Subscript(_load(array), _load(index), ast.Store())


def _placed(statement: ast.stmt, original: ast.stmt) -> ast.stmt:
    """Return a new statement that replaces the original one, on its line."""
    return ast.fix_missing_locations(ast.copy_location(statement, original))
