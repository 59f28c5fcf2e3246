"""Native regions: code that Numba's public ``njit`` compiles, on views of USM memory.

A region has a digest of everything it depends on, which is part of its key in dparray's disk cache.
Line numbers are those of the user's function.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import inspect
import pickle
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, ModuleType, TracebackType
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np

from dparray import config
from dparray._compiler import cache
from dparray._compiler.key import Describer, UnkeyedError, toolchain
from dparray._jit import native_functions, recursion
from dparray._jit.casts import NUMPY, Casts, types_in_name
from dparray._jit.checks import checked_source, meaning_of
from dparray._jit.inference import (
    MAX_VERSIONS,
    Inference,
    Known,
    Value,
    types_of_parameters,
)
from dparray._jit.native_functions import NO_BROADCAST, functions
from dparray._jit.only_python import refused_in_native_code
from dparray._jit.source import (
    PlainMembers,
    Source,
    copied,
    expressions_of,
    is_prange_function,
    used_names,
    users_function,
)
from dparray._language.references import Reference, may_change
from dparray.exceptions import (
    KernelArgumentError,
    KernelCompileError,
    ShapeError,
    UnsupportedFeatureError,
)

_PRANGE = "__prange__"
LINE = "__line__"
#: How Numba's errors about shapes begin. They have no line.
_ABOUT_SHAPES = (NO_BROADCAST, "unable to broadcast", "shape mismatch", "cannot assign slice",
                 "incompatible array")  # fmt: skip
_PLACEMENT_KEYWORDS = frozenset({"device", "sycl_queue", "usm_type"})
_lock = threading.RLock()
#: The functions that native regions call. The sources of the callers keep them.
_callees: WeakValueDictionary[tuple[Any, ...], _Callee] = WeakValueDictionary()


@dataclass(eq=False)
class _Callee:
    """A function that native regions call, for some types of arguments.

    Attributes:
        source: the origin of the code.
        kinds: the known types of the first arguments.
        dispatcher: Numba's function; ``None`` until the functions that it calls are built.
        description: everything that the compiled code depends on; ``None`` if it contains a value
            without an exact description, so that it cannot be cached on disk.
        scopes: the globals of the functions that call it recursively, and its name there.
        unfinished: the functions that it calls and that were not built when it was, because they
            call it, too.
    """

    source: Source
    kinds: tuple[Any, ...]
    dispatcher: Any = None
    description: tuple[Any, ...] | None = None
    scopes: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    unfinished: set[_Callee] = field(default_factory=set)


class Native:
    """A native region.

    Attributes:
        dispatcher: Numba's function.
        source: the origin of the code.
        has_lines: whether the last parameter is an array in which the function stores the line that
            it executes (``with_lines``).
    """

    def __init__(
        self,
        source: Source,
        definition: ast.FunctionDef,
        options: Mapping[str, Any],
        has_lines: bool = False,
    ) -> None:
        """Build Numba's function.

        Args:
            source: the origin of the code.
            definition: the function.
            options: options of Numba.
            has_lines: whether the last parameter is the array of lines.
        """
        self.source = source
        self.has_lines = has_lines
        #: Arrays for lines that no call uses now.
        self._lines: list[tuple[np.ndarray, ...]] = []
        self.dispatcher, _ = _build(source, definition, options)

    def compile(self, arguments: tuple[Any, ...]) -> None:
        """Compile for the types of host arguments.

        Raises:
            KernelCompileError: Numba does not compile it.
        """
        numba = load_numba()
        try:
            types = tuple(numba.typeof(argument) for argument in arguments)
        except ValueError as error:
            raise self.located(error) from None
        self.compile_types(types)

    def compile_types(self, types: tuple[Any, ...]) -> None:
        """Compile for Numba types.

        Raises:
            KernelCompileError: Numba does not compile it.
        """
        numba = load_numba()
        with _lock:
            try:
                lines = (numba.int64[::1],) if self.has_lines else ()
                self.dispatcher.compile((*types, *lines))
            except Exception as error:
                raise self._refused(error) from error

    @property
    def returns_number(self) -> bool:
        """Whether the last signature that was compiled returns a number, or a tuple with one."""
        types = load_numba().types
        result = self.dispatcher.nopython_signatures[-1].return_type
        parts = list(result) if isinstance(result, types.BaseTuple) else [result]
        return any(isinstance(each, types.Number | types.Boolean) for each in parts)

    def _refused(self, error: Exception) -> KernelCompileError:
        text = str(error)
        source = self.source
        last = source.first_line + len(source.lines) - 1
        found = re.findall(r'[/"<][^"\n]*(?:", line |(?:\.py|>) \()(\d+)', text)
        inside = [line for line in map(int, found) if source.first_line <= line <= last]
        node: Any = ast.Pass(lineno=inside[-1] if inside else source.first_line, col_offset=0)
        node.col_offset = source.indent_of(node.lineno)
        for each in ast.walk(source.definition):
            is_named = isinstance(each, ast.NamedExpr) and each.lineno in inside
            if is_named or (not inside and isinstance(each, ast.With | ast.NamedExpr)):
                node = each  # Numba does not report these lines.
                break
        reason, fix = meaning_of(text)
        if isinstance(node, ast.NamedExpr):
            reason, fix = ":= is not compiled", "assign in a statement of its own"
        refused = source.error(node, f"Numba does not compile this as native code: {reason}", fix)
        refused.details = text
        return refused

    def run(self, arguments: tuple[Any, ...], queue: Any = None) -> Any:
        """Call the region; an exception shows the line of the user's function.

        Args:
            arguments: its arguments, with host arrays.
            queue: as of :meth:`dparray._jit.host_code.HostCode.run`.
        """
        copies = None
        line: tuple[np.ndarray, ...] = ()
        if self.has_lines:
            line = self._line()
            arguments += line
        if config.debug:
            copies = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
        try:
            result = self.dispatcher(*arguments)
        except (IndexError, ValueError) as error:
            if copies is None:
                raise self.located(error, *line) from None
            # Numba reports no line for an index out of bounds, nor for shapes that differ; Python
            # does, with the original values.
            try:
                self.dispatcher.py_func(*copies)
            except (IndexError, ValueError) as found:
                raise self.located(found) from None
            raise self.located(error, *line) from None
        except Exception as error:
            # The dispatcher compiles for types that were not foreseen, as read-only arrays are.
            if type(error).__module__.startswith("numba"):
                raise self._refused(error) from error
            raise self.located(error, *line) from None
        if line:
            self._lines.append(line)
        return result

    def _line(self) -> tuple[np.ndarray, ...]:
        try:
            return self._lines.pop()
        except IndexError:
            return (np.zeros(1, np.int64),)

    def located(self, error: Exception, *stored: np.ndarray) -> Exception:
        """Return an exception of the region, with the line of the user's function, if known."""
        line = int(stored[0][0]) if stored else 0
        trace = _user_traceback(error, self.source, line)
        if isinstance(error, ValueError) and str(error).startswith(_ABOUT_SHAPES):
            problem = str(error).partition("\n")[0]
            error = ShapeError(f"{self.source.function.__name__}: {problem}")
        if str(error).startswith(("Int value is too large", "int too big to convert")):
            error = argument_error(self.source)
        return error.with_traceback(trace)


def argument_error(source: Source) -> KernelArgumentError:
    """Return the error of an integer that does not fit into a parameter."""
    return KernelArgumentError(
        f"{source.function.__name__}: an argument is an integer that does not fit "
        "into 64 bits; pass a floating-point number: float(n)"
    )


def load_numba() -> Any:
    """Return Numba, which compiles native code.

    Raises:
        UnsupportedFeatureError: it is not installed.
    """
    try:
        return importlib.import_module("numba")
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise UnsupportedFeatureError(
            "dp.jit compiles native code with Numba, which is not installed: pip install numba. "
            "Arrays and kernels work without it"
        ) from None


def numba_type(kind: Any, order: str = "C") -> Any:
    """Return Numba's type for an inferred type, or ``None`` if it is unknown.

    Args:
        kind: the inferred type.
        order: the memory order of an array, as in type keys.
    """
    numba = load_numba()
    if isinstance(kind, Value):
        element = numba.from_dtype(kind.dtype)
        if not kind.ndim:
            return element
        return numba.types.Array(element, kind.ndim, order if order in "CF" else "A")
    return numba.types.none if isinstance(kind, Known) and kind.value is None else None


def _user_traceback(error: BaseException, source: Source, line: int) -> TracebackType | None:
    """Return the traceback with frames of the user's files instead of the generated ones."""
    places = [(source, line)] if line else []
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        found = next((each for each in _sources_of(source) if file in each.generated), None)
        if found is not None:
            places = [each for each in places if each[0].function is not found.function]
            places.append((found, trace.tb_lineno))
        trace = trace.tb_next
    if not places:
        return error.__traceback__
    return traceback_of(error, [(each.file, at, each.function.__name__) for each, at in places])


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


def _sources_of(source: Source) -> list[Source]:
    """Return a source and those of the functions that its compiled code calls."""
    sources = [source]
    for each in sources:
        sources += (callee.source for callee in each.callees if callee.source not in sources)
    return sources


def with_lines(definition: ast.FunctionDef, types: Inference) -> bool:
    """Let a function store the line of each statement that may raise, index errors aside.

    The errors of Numba's library functions lack the line from which they were called. Return
    whether there is such a statement; the function then has one more parameter.
    """
    has_lines = False

    def is_number(node: ast.expr) -> bool:
        kind = types.of(node)
        return isinstance(kind, Known) or (isinstance(kind, Value) and not kind.ndim)

    called = [source.definition for source, _ in types.callees.values() if source is not None]
    callees_raise = any(
        isinstance(node, ast.Raise | ast.Assert) for each in called for node in ast.walk(each)
    )

    def may_raise(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            if callees_raise and types.users_callee(node) is not None:
                return True
            if isinstance(node.func, ast.Attribute) and isinstance(
                types.of(node.func.value), Value
            ):
                return True
            is_range = types.called(node) in ("range", "prange", "len")
            is_generated = ast.unparse(node.func).startswith("__")
            return not (is_range or is_generated or all(map(is_number, [*node.args, node])))
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.MatMult) or not is_number(node)
        if not isinstance(node, ast.Subscript):
            return False
        is_stored = isinstance(node.ctx, ast.Store) and not is_number(node)
        index = types.of(node.slice)
        return is_stored or (isinstance(index, Value) and index.ndim > 0)

    def lined(body: list[ast.stmt]) -> list[ast.stmt]:
        nonlocal has_lines
        made: list[ast.stmt] = []
        for each in body:
            own = expressions_of(each)
            updates_array = isinstance(each, ast.AugAssign) and not is_number(each.target)
            if updates_array or any(may_raise(node) for part in own for node in ast.walk(part)):
                has_lines = True
                store = ast.parse(f"{LINE}[0] = {each.lineno}").body[0]
                made.append(ast.copy_location(store, each))
            for name in ("body", "orelse"):
                if isinstance(getattr(each, name, None), list):
                    setattr(each, name, lined(getattr(each, name)))
            made.append(each)
        return made

    definition.body = lined(definition.body)
    if has_lines:
        definition.args.args.append(ast.arg(LINE))
        # An earlier call may have left its line.
        definition.body.insert(0, ast.parse(f"{LINE}[0] = 0").body[0])
    ast.fix_missing_locations(definition)
    return has_lines


class _ForNumba(PlainMembers):
    """Replaces dparray names by NumPy's, and ``prange`` by Numba's or ``range``."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite loops and creation functions."""
        if is_prange_function(self.source.resolve(node.func)):
            node.func = ast.copy_location(ast.Name(_PRANGE, ast.Load()), node.func)
        self.generic_visit(node)
        node.keywords = [each for each in node.keywords if each.arg not in _PLACEMENT_KEYWORDS]
        for keyword in node.keywords:
            if keyword.arg == "dtype" and isinstance(keyword.value, ast.Constant):
                with contextlib.suppress(TypeError):
                    name = np.dtype(cast("Any", keyword.value.value)).name
                    value = ast.Attribute(ast.Name(NUMPY, ast.Load()), name, ast.Load())
                    keyword.value = ast.copy_location(value, keyword.value)
        return node


def has_placement(tree: ast.AST) -> bool:
    """Return whether a creation function has a placement argument."""
    return any(
        isinstance(node, ast.keyword)
        and node.arg in _PLACEMENT_KEYWORDS
        and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        for node in ast.walk(tree)
    )


def _build(
    source: Source,
    definition: ast.FunctionDef,
    options: Mapping[str, Any],
    callees: dict[Any, _Callee] | None = None,
) -> tuple[Any, tuple[Any, ...] | None]:
    """Return Numba's function, and its description as in :class:`_Callee`.

    The ``callees`` are those of the region that this function is for, by key, as far as there are.
    """
    numba = load_numba()
    options = dict(options)
    callees = {} if callees is None else callees
    replacer = _ForNumba(source)
    tree = replacer.visit(copied(definition))
    names = {NUMPY: np, _PRANGE: range, **functions()}
    if options.get("fastmath"):
        names[native_functions.SUM_OF_PRODUCT] = names[native_functions.REORDERED_SUM]
    use_cache = bool(options.pop("cache", True))
    chosen = {"error_model": "numpy", **options}
    if config.debug:
        chosen["boundscheck"] = True
    # Numba's cache does not notice changes of the functions that a region calls.
    described: list[Any] = [repr(sorted(chosen.items())), toolchain()]
    described.append(inspect.getsource(native_functions))
    described.append((ast.unparse(ast.fix_missing_locations(tree)), tree.lineno))
    local = {argument.arg for argument in tree.args.args}
    recursive: dict[str, _Callee] = {}
    for name in sorted(used_names(tree) - local):
        if (function := native_functions.integer_function(name)) is not None:
            names[name] = function
            continue
        plain, kinds = types_in_name(name)
        if kinds or (name in source.names and name not in names):
            value = (
                source.resolve(ast.parse(plain, mode="eval").body) if kinds else source.names[name]
            )
            accepted, description = _for_numba(value, options, source, callees, kinds)
            if isinstance(accepted, _Callee):
                recursive[name] = accepted
            else:
                names[name] = accepted
            described.append((name, description))
            use_cache = use_cache and description is not None
    if recursive:
        names |= recursion.guard(tree)
    digest = hashlib.sha256(repr(described).encode()).hexdigest()
    file = f"<dparray region {digest}>"
    source.generated.add(file)
    dispatcher = numba.njit(**chosen)(_function(tree, names, file))
    # Numba cannot load a function that calls itself; it can load the callers of one.
    if use_cache and not recursive:
        dispatcher._cache = _DiskCache(digest)
    for name, callee in recursive.items():
        callee.scopes.append((dispatcher.py_func.__globals__, name))
    return dispatcher, tuple(described) if use_cache else None


def _label(kind: Any) -> str:
    """Return the text of an inferred type, as in :attr:`JitFunction.signatures`."""
    if not isinstance(kind, Value):
        return "?"
    return f"{kind.dtype}[{kind.ndim}]" if kind.ndim else str(kind.dtype)


class _DiskCache:
    """The cache of a function's native code, as Numba calls it, in dparray's cache directory.

    Numba's own (``cache=True``) loads files without a check, and needs a source file.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def _key(self, types: Sequence[Any], codegen: Any) -> str:
        text = repr((self.digest, [_description(each) for each in types], codegen.magic_tuple()))
        return hashlib.sha256(text.encode()).hexdigest()

    def load_overload(self, types: Sequence[Any], target: Any) -> Any:
        """Return Numba's compiled code for some argument types, or ``None``."""
        target.refresh()
        saved = cache.load(self._key(types, target.codegen()), cache.REGION)
        if saved is None:
            return None
        result = importlib.import_module("numba.core.compiler").CompileResult
        return result._rebuild(target, *pickle.loads(saved))

    def save_overload(self, types: Sequence[Any], result: Any) -> None:
        """Save compiled code, unless it contains addresses in this process."""
        if not result.library.has_dynamic_globals:
            dumps = importlib.import_module("numba.core.serialize").dumps
            key = self._key(types, result.codegen)
            cache.save(key, dumps(result._reduce()), cache.REGION)


def _description(kind: Any) -> tuple[Any, ...]:
    """Return a description of a Numba type; the name of a tuple's class lacks its fields."""
    inner = map(_description, getattr(kind, "types", ()))
    return str(kind), getattr(kind, "fields", ()), *inner


def _function(tree: ast.FunctionDef, names: dict[str, Any], filename: str) -> FunctionType:
    module = ast.fix_missing_locations(ast.Module([tree], []))
    names["__name__"] = __name__  # Numba looks functions up in an existing module
    exec(compile(module, filename, "exec"), names)
    made: FunctionType = names[tree.name]
    return made


def _for_numba(
    value: Any,
    options: dict[str, Any],
    source: Source,
    callees: dict[Any, _Callee],
    kinds: tuple[Any, ...],
) -> tuple[Any, Any]:
    """Return a captured value as Numba accepts it, and its description as in :class:`_Callee`.

    A function that is not built yet, because it is recursive, is returned as a :class:`_Callee`.

    Args:
        value: the value.
        options: options of Numba.
        source: the code that captures it.
        callees: the functions that the region calls, as far as there are.
        kinds: the known types of the first arguments, of a function.
    """
    home = (getattr(value, "__module__", None) or "").partition(".")[0]
    if isinstance(value, ModuleType):
        value = np if value.__name__ in ("dparray", "dpnp") else value
        return value, None if may_change(value) else ("module", value.__name__)
    function = users_function(value)
    if function is not None:
        callee = _callee(function, options, source, callees, kinds)
        for each in (callee, *callee.unfinished):
            source.depends_on(each.source.references)
        source.callees.append(callee)
        if callee.dispatcher is None:
            # Numba cannot load functions that call each other.
            return callee, ("recursion",) if callee.source is source else None
        return callee.dispatcher, callee.description
    if home == "dparray":
        value = getattr(np, getattr(value, "__name__", " "), value)
    if isinstance(value, np.ndarray):
        source.depends_on([_content_of(value)])
    if home in ("dparray", "numpy") and callable(value):
        return value, (home, value.__name__)
    # Numba's cache does not describe the classes that it compiles.
    is_compiled = isinstance(value, type) and type(value).__module__.startswith("numba")
    try:
        return value, None if is_compiled else Describer().value(value)
    except UnkeyedError:
        return value, None


def _content_of(array: np.ndarray) -> Reference:
    """Return the content of an array, which compiled code contains, as a reference."""
    content = array.tobytes()

    def read(name: str, default: Any) -> Any:
        return content if array.tobytes() == content else default

    return Reference(read, "", content)


def references_of(function: FunctionType) -> list[Reference]:
    """Return what IPython's autoreload assigns to a function."""
    names = ("__code__", "__defaults__", "__kwdefaults__")
    return [Reference(partial(getattr, function), name, getattr(function, name)) for name in names]


def _callee(
    function: FunctionType,
    options: dict[str, Any],
    source: Source,
    callees: dict[Any, _Callee],
    kinds: tuple[Any, ...],
) -> _Callee:
    """Return a function that native code calls; a recursive one may not be built yet."""
    key = (function, kinds, config.debug, tuple(sorted(options.items())))
    if key in callees:
        return callees[key]
    callee = _callees.get(key)
    if callee is not None and all(each.is_current for each in callee.source.references):
        return callee
    versions = [each for each in callees.values() if each.source.function is function]
    versions = [each for each in versions if each.dispatcher is None]
    if len(versions) > MAX_VERSIONS:
        raise _endless_versions(function, source, versions)
    inner = checked_source(function)
    inner.depends_on(references_of(function))
    given = types_of_parameters(inner, kinds)
    inferred = Inference(inner.definition, given, inner.names)
    if refused := refused_in_native_code(inner, inner.definition, inferred):
        raise refused
    casts = Casts(inferred)
    tree = casts.visit(copied(inner.definition))
    for at, value in enumerate(inner.defaults):
        inner.names[f"__default{at}"] = value
        tree.args.defaults.append(ast.Name(f"__default{at}", ast.Load()))
    callee = callees[key] = _Callee(inner, kinds)
    dispatcher, callee.description = _build(inner, tree, options, callees)
    callee.dispatcher = dispatcher
    for scope, name in callee.scopes:
        scope[name] = dispatcher
    called = {each for part in inner.callees for each in (part, *part.unfinished)}
    callee.unfinished = {each for each in called if each.dispatcher is None}
    if not callee.unfinished:  # Other regions would not notice changes of the unfinished functions.
        _callees[key] = callee
    return callee


def _endless_versions(
    function: FunctionType, source: Source, versions: Sequence[_Callee]
) -> KernelCompileError:
    """Return the error of a function that calls itself with new types in every call."""
    calls = (node for node in ast.walk(source.definition) if isinstance(node, ast.Call))
    place = next(each for each in calls if users_function(source.resolve(each.func)) is function)
    shown = [", ".join(map(_label, each.kinds)) for each in versions[:3]]
    return source.error(
        place,
        f"{function.__name__} calls itself with arguments of other types in each call: "
        f"({'), then ('.join(shown)}), and so on; compiled code has at most {MAX_VERSIONS} "
        "versions of a recursive function",
        "pass arguments of the same dtypes and numbers of dimensions in each recursive call, or "
        "use a loop",
    )
