"""Native regions: code that Numba's public ``njit`` compiles, on views of USM memory.

The source of a region is written to a file in dparray's cache directory, because Numba only caches
functions that have a file. Its name is a digest of everything the region depends on. Line numbers
are those of the user's function.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import inspect
import math
import os
import re
import shutil
import stat
import sys
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType, ModuleType, TracebackType
from typing import Any, cast

import numpy as np

from dparray import config
from dparray._compiler import cache
from dparray._compiler.device_function import DeviceFunction
from dparray._jit import native_functions
from dparray._jit.casts import NUMPY, Casts
from dparray._jit.checks import checked_source, meaning_of
from dparray._jit.inference import UNKNOWN, Builtin, Inference, Known, Value, constant
from dparray._jit.native_functions import NO_BROADCAST, functions
from dparray._jit.source import (
    Source,
    assigned_names,
    copied,
    is_prange_function,
    source_of,
    used_names,
)
from dparray.exceptions import KernelCompileError, ShapeError

_PRANGE = "__prange__"
_LINE = "__line__"
#: How Numba's errors about shapes begin. They have no line.
_ABOUT_SHAPES = (NO_BROADCAST, "unable to broadcast", "shape mismatch", "cannot assign slice",
                 "incompatible array")  # fmt: skip
_PLACEMENT_KEYWORDS = frozenset({"device", "sycl_queue", "usm_type"})
_lock = threading.RLock()
_callees: dict[tuple[Any, ...], Any] = {}
_sources: dict[str, Source] = {}  # by the names of generated files


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
        parallel: bool = False,
        has_lines: bool = False,
    ) -> None:
        self.source = source
        self.has_lines = has_lines
        self._parts = definition, dict(options), parallel
        #: Arrays for lines that no call uses now.
        self._lines: list[tuple[np.ndarray, ...]] = []
        self.dispatcher = _build(source, *self._parts)

    def compile(self, arguments: tuple[Any, ...]) -> None:
        """Compile for the types of host arguments.

        Raises:
            KernelCompileError: Numba does not compile it.
        """
        numba = importlib.import_module("numba")
        self.compile_types(tuple(numba.typeof(argument) for argument in arguments))

    def compile_types(self, types: tuple[Any, ...]) -> None:
        """Compile for Numba types.

        Raises:
            KernelCompileError: Numba does not compile it.
        """
        numba = importlib.import_module("numba")
        with _lock:
            try:
                with warnings.catch_warnings():
                    # Numba warns of functions without any loop to run in parallel.
                    warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
                    lines = (numba.int64[::1],) if self.has_lines else ()
                    self.dispatcher.compile((*types, *lines))
            except Exception as error:
                if type(error).__module__.startswith("numba") or not self._leave_cache():
                    raise self._refused(error) from error
                self.compile_types(types)

    def _leave_cache(self) -> bool:
        """Continue without the possibly damaged disk cache; return whether it was used."""
        definition, options, parallel = self._parts
        if not options.get("cache", True):
            return False
        file = Path(self.dispatcher.py_func.__code__.co_filename)
        if file.parent.parent.name == cache.REGIONS:
            shutil.rmtree(file.parent, ignore_errors=True)
        self._parts = definition, {**options, "cache": False}, parallel
        self.dispatcher = _build(self.source, *self._parts)
        return True

    def _refused(self, error: Exception) -> KernelCompileError:
        text = str(error)
        source = self.source
        last = source.first_line + len(source.lines) - 1
        found = re.findall(r'[/"][^"\n]*(?:", line |\.py \()(\d+)', text)
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

    def run(self, arguments: tuple[Any, ...]) -> Any:
        """Call the region; an exception shows the line of the user's function."""
        copies, line = None, self._line()
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

    def run_vectorized(self, arguments: tuple[Any, ...], threads: int = sys.maxsize) -> Any:
        """Call a region with parallel loops on at most some threads."""
        numba = importlib.import_module("numba")
        available, line = numba.get_num_threads(), self._line()
        numba.set_num_threads(min(threads, available))
        try:
            return self.dispatcher(*arguments, *line)
        except (AssertionError, SystemError) as error:
            # Numba leaves an exception in a loop behind, which Python then reports in its way.
            cause = error.__cause__ or error
            if isinstance(cause, AssertionError):  # how Numba reports sizes in such loops
                cause = ShapeError(str(cause).partition(" on ")[0])
            raise self.located(cast("Exception", cause), *line) from None
        except Exception as error:
            raise self.located(error, *line) from None
        finally:
            numba.set_num_threads(available)

    def _line(self) -> tuple[np.ndarray, ...]:
        if not self.has_lines:
            return ()
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
        return error.with_traceback(trace)


def numba_type(kind: Any, order: str = "C") -> Any:
    """Return Numba's type for an inferred type, or ``None`` if it is unknown.

    Args:
        kind: the inferred type.
        order: the memory order of an array, as in type keys.
    """
    numba = importlib.import_module("numba")
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
        found = _sources.get(trace.tb_frame.f_code.co_filename)
        if found is not None:
            places = [each for each in places if each[0].function is not found.function]
            places.append((found, trace.tb_lineno))
        trace = trace.tb_next
    if not places:
        return error.__traceback__
    trace = error.__traceback__ = None
    for origin, at in reversed(places):
        code = compile("\n" * (at - 1) + "raise error", origin.file, "exec")
        try:
            exec(code.replace(co_name=origin.function.__name__), {"error": error})
        except BaseException as raised:  # the same error, with a frame of the user's file
            frame: Any = raised.__traceback__
            frame.tb_next.tb_next, trace = trace, frame.tb_next
        error.__traceback__ = None
    return trace


def with_lines(definition: ast.FunctionDef, types: Inference) -> bool:
    """Let a function store the line of each statement that may raise, index errors aside.

    The errors of Numba's library functions lack the line from which they were called. Return
    whether there is such a statement; the function then has one more parameter.
    """

    def is_number(node: ast.expr) -> bool:
        kind = types.of(node)
        return isinstance(kind, Known) or (isinstance(kind, Value) and not kind.ndim)

    def may_raise(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and isinstance(
                types.of(node.func.value), Value
            ):
                return True
            is_range = types.called(node) in ("range", "prange", "len")
            return not (is_range or all(map(is_number, [*node.args, node])))
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.MatMult) or not is_number(node)
        if not isinstance(node, ast.Subscript):
            return False
        is_stored = isinstance(node.ctx, ast.Store) and not is_number(node)
        index = types.of(node.slice)
        return is_stored or (isinstance(index, Value) and index.ndim > 0)

    has_lines = False

    def lined(body: list[ast.stmt]) -> list[ast.stmt]:
        nonlocal has_lines
        made: list[ast.stmt] = []
        for each in body:
            own = [node for node in ast.iter_child_nodes(each) if isinstance(node, ast.expr)]
            updates_array = isinstance(each, ast.AugAssign) and not is_number(each.target)
            if updates_array or any(may_raise(node) for part in own for node in ast.walk(part)):
                has_lines = True
                store = ast.parse(f"{_LINE}[0] = {each.lineno}").body[0]
                made.append(ast.copy_location(store, each))
            for name in ("body", "orelse"):
                if isinstance(getattr(each, name, None), list):
                    setattr(each, name, lined(getattr(each, name)))
            made.append(each)
        return made

    definition.body = lined(definition.body)
    if has_lines:
        definition.args.args.append(ast.arg(_LINE))
        # An earlier call may have left its line.
        definition.body.insert(0, ast.parse(f"{_LINE}[0] = 0").body[0])
    ast.fix_missing_locations(definition)
    return has_lines


class _ForNumba(ast.NodeTransformer):
    """Replaces dparray names by NumPy's, and ``prange`` by Numba's or ``range``."""

    def __init__(self, source: Source) -> None:
        self.source = source

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


def longest_that_broadcasts(tree: ast.FunctionDef, types: Inference) -> float:
    """Return the greatest length of an argument's axis that slices may cut to one element.

    Such an axis broadcasts. The length is infinite unless the function only computes element by
    element and takes slices that leave out a fixed number of elements.
    """
    shortened: dict[str, float] = {}  # the most elements left out of an axis, by variable

    def most_left_out(node: ast.AST) -> float:
        if isinstance(node, ast.Name):
            return shortened.get(node.id, 0)
        if isinstance(node, ast.Slice):
            return _elements_left_out(node)
        adds_axes = isinstance(node, ast.Constant) and node.value in (None, Ellipsis)
        if adds_axes or (isinstance(node, ast.Call) and not _keeps_shape(node, types)):
            return math.inf
        inner = list(map(most_left_out, ast.iter_child_nodes(node)))
        return sum(inner) if isinstance(node, ast.Subscript) else max(inner, default=0)

    assigned: list[Any] = [
        each for each in ast.walk(tree) if {"target", "targets"} & {*each._fields}
    ]
    for _ in range(4):  # in a loop, a statement may read what a later statement assigns
        before = dict(shortened)
        for node in assigned:
            value = node.iter if hasattr(node, "iter") else node.value
            count = 0 if value is None else most_left_out(value)
            for target in node.targets if hasattr(node, "targets") else [node.target]:
                for name in assigned_names(target):
                    shortened[name] = max(count, shortened.get(name, 0))
        if shortened == before:
            return 1 + max(map(most_left_out, tree.body))
    return math.inf


def _elements_left_out(node: ast.Slice) -> float:
    """Return how many elements a slice leaves out; infinite unless it is a fixed number."""
    lower, upper, step = map(constant, (node.lower, node.upper, node.step))
    if not all(each is None or type(each) is int for each in (lower, upper, step)):
        return math.inf
    if step not in (None, 1):
        return 0 if step == -1 and lower is None and upper is None else math.inf
    keeps_fixed_number = (lower or 0) < 0 or (upper is not None and upper >= 0)
    return math.inf if keeps_fixed_number else (lower or 0) - (upper or 0)


def _keeps_shape(node: ast.Call, types: Inference) -> bool:
    """Return whether a call computes element by element, copies an array, or is range or len."""
    name, function = types.called(node), types.of(node.func)
    if isinstance(node.func, ast.Attribute) and isinstance(types.of(node.func.value), Value):
        return name == "copy"
    value = function.value if isinstance(function, Known) else None
    is_known = value in (np.copy, np.zeros_like, np.empty_like, Builtin("range"), Builtin("len"))
    return is_known or isinstance(value, np.ufunc) or getattr(value, "__module__", "") == "math"


def names_in_array_statements(tree: ast.FunctionDef, types: Inference) -> set[str]:
    """Return the parameters that statements on whole arrays or slices read or write."""

    def is_array(node: ast.expr) -> bool:
        kind = types.of(node)
        return isinstance(kind, Value) and kind.ndim > 0

    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and is_array(node):
            inner: list[ast.expr] = [node]
        elif isinstance(node, ast.AugAssign) and is_array(node.target):
            inner = [node.target, node.value]
        else:
            continue
        names = (each for part in inner for each in ast.walk(part) if isinstance(each, ast.Name))
        found |= {each.id for each in names if is_array(each) and each.id in types.parameters}
    return found


def _build(
    source: Source, definition: ast.FunctionDef, options: dict[str, Any], parallel: bool
) -> Any:
    numba = importlib.import_module("numba")
    options = dict(options)
    tree = _ForNumba(source).visit(copied(definition))
    ast.fix_missing_locations(tree)
    names = {NUMPY: np, _PRANGE: numba.prange if parallel else range, **functions()}
    if options.get("fastmath"):
        names[native_functions.SUM_OF_PRODUCT] = names[native_functions.REORDERED_SUM]
    described = [ast.unparse(tree), str(tree.lineno), str(parallel), repr(sorted(options.items()))]
    local = {argument.arg for argument in tree.args.args}
    itself: list[str] = []
    for name in sorted(used_names(tree) - local):
        if name in source.names and name not in names:
            value = source.names[name]
            if getattr(value, "py_func", value) is source.function:
                itself.append(name)
                continue
            names[name] = _for_numba(value, options)
            described.append(f"{name}={_description(source.names[name])}")
    use_cache = bool(options.pop("cache", True)) and cache.base_directory() is not None
    chosen = {"error_model": "numpy", **options}
    if parallel:
        # Numba fuses an update with the reads of the same array that it changes.
        chosen["parallel"] = {"fusion": False}
    if config.debug:
        chosen["boundscheck"] = True
        chosen.pop("parallel", None)  # exceptions cannot leave Numba's threads
    described.append(repr((sorted(chosen.items()), numba.__version__, np.__version__, sys.version)))
    # Numba's cache does not notice changes of the functions that a region calls.
    described.append(inspect.getsource(native_functions))
    # Numba cannot load a function that calls itself.
    file = _file_of(described, ast.unparse(tree)) if use_cache and not itself else None
    filename = source.file if file is None else str(file)
    _sources[filename] = source
    function = _function(tree, names, filename)
    dispatcher = None
    if file is not None:
        try:
            dispatcher = numba.njit(cache=True, **chosen)(function)
        except Exception:  # a damaged or unusable cache is a miss
            shutil.rmtree(file.parent, ignore_errors=True)
    if dispatcher is None:
        dispatcher = numba.njit(**chosen)(function)
    function.__globals__.update(dict.fromkeys(itself, dispatcher))
    return dispatcher


def _function(tree: ast.FunctionDef, names: dict[str, Any], filename: str) -> FunctionType:
    module = ast.fix_missing_locations(ast.Module([tree], []))
    names["__name__"] = __name__  # Numba looks functions up in an existing module
    exec(compile(module, filename, "exec"), names)
    made: FunctionType = names[tree.name]
    return made


def _for_numba(value: Any, options: dict[str, Any]) -> Any:
    """Return a captured value as Numba accepts it."""
    if isinstance(value, ModuleType):
        return np if value.__name__ in ("dparray", "dpnp") else value
    function: Any = getattr(value, "py_func", None)
    if isinstance(value, DeviceFunction):
        function = value.py_func
    if function is None and isinstance(value, FunctionType):
        if (value.__module__ or "").startswith("dparray"):
            return getattr(np, value.__name__, value)
        if not (value.__module__ or "").startswith("numpy"):
            function = value
    if function is None or type(value).__module__.startswith("numba"):
        home = getattr(value, "__module__", None) or ""
        if home.startswith("dparray") and hasattr(np, getattr(value, "__name__", " ")):
            return getattr(np, value.__name__)
        return value
    return _callee(function, options)


def _callee(function: FunctionType, options: dict[str, Any]) -> Any:
    key = (function.__code__, tuple(sorted(options.items())))
    if key not in _callees:
        inner = checked_source(function)
        given = {each.arg: UNKNOWN for each in inner.definition.args.args}
        casts = Casts(Inference(inner.definition, given, inner.names))
        tree = casts.visit(copied(inner.definition))
        _callees[key] = _build(inner, tree, dict(options), False)
    return _callees[key]


def _description(value: Any) -> str:
    function = getattr(value, "py_func", value)
    if isinstance(function, FunctionType):
        with contextlib.suppress(KernelCompileError):
            inner = source_of(function)
            used = sorted(used_names(inner.definition) & set(inner.names))
            values = [
                repr(inner.names[name])
                for name in used
                if isinstance(inner.names[name], int | float | complex | str | tuple)
            ]
            return ast.unparse(inner.definition) + repr(values)
        return repr(function.__code__.co_code)
    if isinstance(value, np.ndarray):
        return repr((value.dtype, value.shape, hashlib.sha256(value.tobytes()).hexdigest()))
    if isinstance(value, int | float | complex | str | tuple | np.generic):
        return repr(value)
    return getattr(value, "__qualname__", getattr(value, "__name__", repr(type(value))))


def _file_of(described: list[str], text: str) -> Path | None:
    """Create and return the file of a region, or ``None`` if there can be none."""
    base = cache.base_directory()
    if base is None:
        return None
    digest = hashlib.sha256("\0".join(described).encode()).hexdigest()[:32]
    folder = base / cache.REGIONS / digest
    file = folder / "region.py"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.parent.lstat()
        # The entries are native code, so other users must not be able to write them.
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        if not file.exists():
            part = folder / f"region.{os.getpid()}.{threading.get_ident()}.part"
            part.write_text(text + "\n")
            part.replace(file)
            cache.trim_regions(digest)
    except OSError:
        return None
    return file
