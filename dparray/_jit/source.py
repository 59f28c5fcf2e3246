"""The source of a function, and the names it refers to."""

from __future__ import annotations

import ast
import builtins
import math
import pickle
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, cast

from dparray._jit.signs import mark_powers
from dparray._language.device_function import DeviceFunction
from dparray._language.references import Reference, may_change, with_references
from dparray._language.source import GIVEN_SOURCE, lines_of
from dparray._language.source import Source as CompilerSource
from dparray.exceptions import KernelCompileError


def prange(start: int, stop: int | None = None, step: int = 1) -> range:
    """Iterate like ``range``; in a function compiled by ``dp.jit``, in parallel.

    Iterations are work-items of a kernel on the queue of the arrays, or run as native code on the
    threads of a CPU device. They must not depend on each other, except for reductions
    (``total += x[i]``), whose values can be read after the loop only. Directly nested
    ``prange`` loops become one range of at most three dimensions.

    Args:
        start: the number of iterations, or the first value if ``stop`` is given.
        stop: the end of the values.
        step: the difference between values; must not be 0.

    Example:
        >>> import dparray as dp
        >>> @dp.jit
        ... def scale(x, factor):
        ...     for i in dp.prange(x.size):
        ...         x[i] *= factor
        >>> x = dp.arange(3.0)
        >>> scale(x, 10)
        >>> x.tolist()
        [0.0, 10.0, 20.0]
    """
    return range(start) if stop is None else range(start, stop, step)


@dataclass(eq=False)
class Source:
    """A function's definition, with the line numbers of its file.

    Attributes:
        function: the Python function.
        definition: its syntax tree, without decorators.
        file: the path of its file.
        lines: the text of the definition, and the number of its first line.
        names: the values of the globals, captured variables and builtins that it refers to.
        references: the values that compiled code contains, and where they were read.
    """

    function: FunctionType
    definition: ast.FunctionDef
    file: str
    lines: list[str]
    first_line: int
    names: dict[str, Any] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)

    @property
    def defaults(self) -> list[Any]:
        """Return the values of the last parameters, which a call may omit."""
        function = self.function
        return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]

    def depends_on(self, references: Iterable[Reference]) -> None:
        """Add values that compiled code contains, too."""
        known = {(each.read, each.name) for each in self.references}
        self.references += (each for each in references if (each.read, each.name) not in known)

    def error(self, node: ast.AST, message: str, fix: str = "") -> KernelCompileError:
        """Return an error that shows the line of a node, a caret and a fix."""
        return KernelCompileError(self.text_of_error(node, message, fix))

    def text_of_error(self, node: ast.AST, message: str, fix: str = "") -> str:
        """Return a message with the line of a node, a caret and a fix."""
        line = getattr(node, "lineno", self.first_line)
        column = getattr(node, "col_offset", 0)
        text = self.lines[line - self.first_line].rstrip("\n") if self.lines else ""
        indent = len(text) - len(text.lstrip())
        shown = f"\n    {text.strip()}\n    {' ' * max(column - indent, 0)}^"
        advice = f"\n{fix}" if fix else ""
        return f"{self.function.__name__}: {message}\n  {self.file}:{line}{shown}{advice}"

    def indent_of(self, line: int) -> int:
        """Return the column where a line of the function begins."""
        at = line - self.first_line
        text = self.lines[at] if 0 <= at < len(self.lines) else ""
        return len(text) - len(text.lstrip())

    def resolve(self, node: ast.AST) -> Any:
        """Return the value of a name or a chain of attributes of modules, or ``None``."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            if isinstance(base, ModuleType):
                return getattr(base, node.attr, None)
        return None

    def is_prange(self, node: ast.AST) -> bool:
        """Return whether a statement is a loop over ``prange``."""
        return (
            isinstance(node, ast.For)
            and isinstance(node.iter, ast.Call)
            and is_prange_function(self.resolve(node.iter.func))
        )


def is_prange_function(value: Any) -> bool:
    """Return whether a value is ``dp.prange``, or Numba's, which is treated as the same."""
    home = (getattr(value, "__module__", None) or "").partition(".")[0]
    return getattr(value, "__name__", "") == "prange" and home in ("dparray", "numba")


def python_function_of(value: Any) -> Any:
    """Return the Python function of a compiled function; ``None`` for other values.

    A decorator made by ``functools.wraps`` or ``functools.update_wrapper`` copies the attributes of
    the function that it decorates, ``py_func`` among them, but does something else.
    """
    home = type(value).__module__.partition(".")[0]
    return getattr(value, "py_func", None) if home in ("dparray", "numba") else None


def users_function(value: Any) -> FunctionType | None:
    """Return the plain function of a user's function, which is compiled with its callers; ``None``
    for other values, also for what Numba has compiled.
    """
    plain = python_function_of(value) or value
    home = (getattr(plain, "__module__", None) or "").partition(".")[0]
    is_ours = home in ("dparray", "numpy", "numba") or type(value).__module__.startswith("numba")
    return None if is_ours or not isinstance(plain, FunctionType) else plain


def source_of(function: FunctionType) -> Source:
    """Read the definition of a function.

    Raises:
        KernelCompileError: its source is not available, or it is not a plain function.
    """
    try:
        lines, first = lines_of(function)
    except OSError as error:
        raise KernelCompileError(
            f"{function.__name__}: dp.jit reads the source of a function, which is not available "
            "here; define the function in a file or a notebook cell"
        ) from error
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError:  # a lambda in the lines of a longer statement
        tree = ast.Module([], [])
    definition = tree.body[0] if tree.body else None
    lambdas = {ast.dump(node): node for node in ast.walk(tree) if isinstance(node, ast.Lambda)}
    if function.__name__ == "<lambda>" and len(lambdas) == 1:
        (only,) = lambdas.values()
        returned: list[ast.stmt] = [ast.copy_location(ast.Return(only.body), only.body)]
        definition = definition_of("lambda_function", [], returned)
        definition.args = only.args
    if not isinstance(definition, ast.FunctionDef):
        raise KernelCompileError(
            f"{function.__name__}: dp.jit compiles plain functions, and a lambda that is the only "
            "one in its lines, not a class or an async function; write def"
        )
    ast.increment_lineno(definition, first - 1)
    shift = len(lines[0]) - len(lines[0].lstrip())
    for node in cast("Iterator[Any]", ast.walk(definition)):
        if shift and hasattr(node, "col_offset"):
            node.col_offset += shift
            node.end_col_offset += shift
    definition.decorator_list = []
    definition.returns = None
    given = definition.args  # calls pass every argument in order
    given.args = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    given.posonlyargs, given.kwonlyargs, given.defaults, given.kw_defaults = [], [], [], []
    for parameter in ast.walk(definition.args):
        if isinstance(parameter, ast.arg):
            parameter.annotation = None
    source = Source(function, definition, function.__code__.co_filename, lines, first)
    with_references(function, source.references, lambda value: value)
    used = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    # A variable of the function hides a global of the same name, whose value is none of its.
    used -= {*function.__code__.co_varnames, *function.__code__.co_cellvars}
    source.names = {name: value for name, value in _names_of(function) if name in used}
    _Plainer(source).visit(definition)
    mark_powers(definition, source.names)
    return source


class _Plainer(ast.NodeTransformer):
    """Writes ``prange`` by its own name, ``pow(x, n)`` as a power, and logarithms by quotients."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite a call."""
        self.generic_visit(node)
        value = self.source.resolve(node.func)
        if isinstance(node.func, ast.Name) and is_prange_function(value):
            node.func.id = "prange"
            self.source.names["prange"] = value
        is_changed = value is pow or value is math.log
        if len(node.args) != 2 or node.keywords or not is_changed:
            return node
        first, second = node.args
        if value is pow:
            return ast.copy_location(ast.BinOp(first, ast.Pow(), second), node)
        first, second = (
            ast.copy_location(ast.Call(copied(node.func), [each], []), node) for each in node.args
        )
        return ast.copy_location(ast.BinOp(first, ast.Div(), second), node)


def _names_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    yield from vars(builtins).items()
    yield from function.__globals__.items()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # the variable is not assigned yet
            continue


def entries_of(node: ast.Subscript) -> list[ast.expr]:
    """Return the entries of an index."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def own_jumps(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the ``break`` and ``continue`` statements of a loop itself."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Break | ast.Continue):
            found.append(statement)
        elif isinstance(statement, ast.If):
            found += own_jumps(statement.body) + own_jumps(statement.orelse)
    return found


def expressions_of(node: ast.AST) -> list[ast.expr]:
    """Return the expressions directly below a node."""
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]


def root_of(node: ast.expr) -> str:
    """Return the name of the array that a view shows, or ``""``."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def at_line(tree: Any, line: int) -> Any:
    """Give generated code the location of a line in the user's file."""
    for node in cast("Iterator[Any]", ast.walk(tree)):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line
    return tree


def copied(tree: Any) -> Any:
    """Return a copy of a syntax tree; pickle is three times as fast as ``copy.deepcopy``."""
    return pickle.loads(pickle.dumps(tree, pickle.HIGHEST_PROTOCOL))


class PlainMembers(ast.NodeTransformer):
    """Replaces members of a user's modules, and device functions, by names such as ``helper.K``."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Rewrite ``module.name``."""
        value = self.source.resolve(node)
        is_plain = may_change(self.source.resolve(node.value)) or isinstance(value, DeviceFunction)
        if not is_plain or is_prange_function(value):
            return self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and value is not None:
            name = ast.unparse(node)
            self.source.names[name] = value
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return node


def used_names(node: ast.AST | list[ast.stmt]) -> set[str]:
    """Return the names that code reads."""
    return {name.id for name in _names_in(node) if isinstance(name.ctx, ast.Load)}


def assigned_names(node: ast.AST | list[ast.stmt]) -> set[str]:
    """Return the names that code assigns, including by loops and augmented assignments."""
    imported = {
        (each.asname or each.name).partition(".")[0]
        for part in (node if isinstance(node, list) else [node])
        for each in ast.walk(part)
        if isinstance(each, ast.alias)
    }
    return imported | {name.id for name in _names_in(node) if isinstance(name.ctx, ast.Store)}


def _names_in(node: ast.AST | list[ast.stmt]) -> Iterator[ast.Name]:
    """Yield the names in code, except those that comprehensions and functions bind themselves."""
    own: set[str] = set()
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        own = {name for each in node.generators for name in assigned_names(each.target)}
    elif isinstance(node, ast.Lambda | ast.FunctionDef):
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        own |= assigned_names(node.body)
    for inner in node if isinstance(node, list) else ast.iter_child_nodes(node):
        yield from (name for name in _names_in(inner) if name.id not in own)


def upward_exposed(statements: list[ast.stmt]) -> set[str]:
    """Return the names that code may read before it assigns them."""
    exposed: set[str] = set()
    _expose(statements, set(), exposed)
    return exposed


def _expose(statements: list[ast.stmt], bound: set[str], exposed: set[str]) -> set[str]:
    """Add to ``exposed``; return the names that are certainly bound after the statements."""
    for statement in statements:
        if isinstance(statement, ast.If | ast.While):
            exposed |= used_names(statement.test) - bound - assigned_names(statement.test)
            bound |= assigned_names(statement.test)  # by :=
            after_body = _expose(statement.body, set(bound), exposed)
            after_else = _expose(statement.orelse, set(bound), exposed)
            if isinstance(statement, ast.If):
                bound |= after_body & after_else
        elif isinstance(statement, ast.For):
            exposed |= used_names(statement.iter) - bound
            _expose(statement.body, bound | assigned_names(statement.target), exposed)
            _expose(statement.orelse, set(bound), exposed)
        elif isinstance(statement, ast.AugAssign):
            names = used_names(statement.value) | used_names(statement.target)
            exposed |= (names | assigned_names(statement.target)) - bound
            bound |= assigned_names(statement.target)
        elif isinstance(statement, ast.AnnAssign) and statement.value is None:
            continue
        elif isinstance(statement, ast.FunctionDef):
            exposed |= used_names(statement) - bound
            bound.add(statement.name)
        else:
            exposed |= used_names(statement) - bound
            bound |= assigned_names(statement)
    return bound


def local_functions(source: Source, body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return the functions and lambdas that a function defines, by name, if a body uses any."""
    found: dict[str, ast.stmt] = {}
    for each in source.definition.body:
        if isinstance(each, ast.FunctionDef):
            found[each.name] = each
        elif isinstance(each, ast.Assign) and isinstance(each.value, ast.Lambda):
            found |= dict.fromkeys(assigned_names(each), each)
    return found if used_names(body) & found.keys() else {}


def definition_of(name: str, parameters: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """Return the definition of a function with plain parameters, at the line of its body."""
    given = [ast.arg(each) for each in parameters]
    arguments = ast.arguments([], given, None, [], [], None, [])
    definition: Any = ast.FunctionDef(name, arguments, body, [])
    if "type_params" in ast.FunctionDef._fields:
        definition.type_params = []
    ast.copy_location(definition, body[0])
    made: ast.FunctionDef = ast.fix_missing_locations(definition)
    return made


def function_of(
    source: Source, name: str, parameters: list[str], body: list[ast.stmt], names: dict[str, Any],
    file: str,
) -> FunctionType:  # fmt: skip
    """Create a function from statements that keep the line numbers of the source."""
    definition = definition_of(name, parameters, body)
    module = ast.fix_missing_locations(ast.Module([definition], []))
    space = dict(names)
    space["__name__"] = source.function.__module__
    exec(compile(module, file, "exec"), space)
    made: FunctionType = space[name]
    made.__module__ = source.function.__module__
    # Its lines are those of the user's file, where checks and the simulator would not find it.
    lines = [""] * (source.first_line - 1) + [line.rstrip("\n") for line in source.lines]
    setattr(made, GIVEN_SOURCE, CompilerSource(file, 1, lines, definition, 0))
    return made


def references_of(function: FunctionType) -> list[Reference]:
    """Return what IPython's autoreload assigns to a function."""
    names = ("__code__", "__defaults__", "__kwdefaults__")
    return [Reference(partial(getattr, function), name, getattr(function, name)) for name in names]


def traceback_of(error: BaseException, places: Sequence[tuple[str, int, str]]) -> Any:
    """Return a traceback of frames of the user's files.

    Args:
        error: the exception.
        places: file, line and name of the function of each frame, the outermost first.
    """
    trace = error.__traceback__ = None
    for file, line, name in reversed(places):
        code = compile("\n" * (line - 1) + "raise error", file, "exec")
        try:
            exec(code.replace(co_name=name), {"error": error})
        except BaseException as raised:  # the same error, with a frame of the user's file
            frame: Any = raised.__traceback__
            frame.tb_next.tb_next, trace = trace, frame.tb_next
        error.__traceback__ = None
    return trace
