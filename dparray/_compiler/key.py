"""The key of a kernel: it changes whenever the compiled bytes may change.

The compiler freezes everything to which a function refers: constants in its code, captured values,
globals, attributes of modules, and the same for the device functions that it calls. The key
contains all of these by value. A value that this module cannot describe exactly makes the function
*unkeyed*: it is compiled again in every process, which is slower and never wrong.

Imports no SYCL: a key is computed from the code object alone.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import functools
import hashlib
import importlib
import os
import sys
import time
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dparray._compiler import cache
from dparray._compiler.targets import FOLDERS
from dparray._driver.interface import Target
from dparray._language.constants import plain
from dparray._language.promotion import is_own
from dparray._language.references import KNOWN_PACKAGES, UNASSIGNED, reader, references_of
from dparray._language.source import TEXT
from dparray._system import READ_BYTES

_FORMAT = 1
_WHOLE_FILE = 1 << 20  # bytes, more than any file of dparray
_SETTLED_SECONDS = 2.0  # more than the resolution of the times of any file system
_COMPILING_PACKAGES = ("llvmlite", "numpy", "dpnp")
# The locations of dparray's files whose text determines the compiled kernels.
_FOLDER = Path(__file__).parent
_LANGUAGE = (_FOLDER.parent / "_language", _FOLDER.parent / "_ir")
# dparray's device code, where it is imported; and the names under which it is recorded.
_DEVICE_CODE = next(
    folder / "kernels"
    for folder in (_FOLDER.parent, _FOLDER.parents[1])  # in a wheel; in a clone
    if (folder / "kernels").is_dir()
)
_KERNEL_API = _FOLDER.parent / "kernel_api"


class UnkeyedError(Exception):
    """Raised if a function refers to a value without an exact description."""


def kernel_key(
    function: Callable[..., Any], types: Sequence[str], options: Mapping[str, Any], target: Target
) -> str | None:
    """Return the key of a kernel on disk and in memory; ``None`` if the function has none."""
    try:
        described = describe(function, lines=bool(options.get("debug")))
    except UnkeyedError:
        return None
    return _digest((toolchain(), _our_files(target.name)), described, types, options, target)


def _digest(made_by: Any, described: Any, types: Any, options: Any, target: Target) -> str:
    text = repr((_FORMAT, made_by, described, tuple(types), sorted(options.items()), target))
    return hashlib.sha256(text.encode()).hexdigest()


def text_key(source: str, types: Sequence[str], options: Mapping[str, Any], target: Target) -> str:
    """Return the key of a generated kernel: its source, and the versions of LLVM and dparray."""
    made_by = (_package_versions()["llvmlite"], _our_files(target.name))
    return _digest(made_by, source, types, options, target)


def stored_kernel_key(
    function: Callable[..., Any], types: Sequence[str], options: Mapping[str, Any], target: Target
) -> str | None:
    """Return the key of a dparray kernel among the bundled kernels; ``None`` if it has none.

    The effect of device code follows from its source, whichever Python runs.
    Functions are therefore identified by their position in dparray's files, and the key by the
    content of these files.
    """
    try:
        described = Describer(lines=False, is_for_store=True).function(function)
    except UnkeyedError:
        return None
    return _digest(store_files(), described, types, options, target)


def stored_text_key(
    source: str, types: Sequence[str], options: Mapping[str, Any], target: Target
) -> str:
    """Return the key of a generated kernel among the bundled kernels."""
    return _digest(store_files(), source, types, options, target)


@functools.lru_cache(maxsize=1)
def store_files() -> str:
    """Return a digest of dparray's files that determine the effect of bundled kernels."""
    folders = (_DEVICE_CODE, _KERNEL_API, _FOLDER / "back_ends" / "ptx")
    files = sorted(file for folder in folders for file in _files_below(str(folder)))
    return _digest_of(files, _our_files("spirv64").encode())


@functools.lru_cache(maxsize=1)
def _package_versions() -> dict[str, str]:
    """Return the versions of everything between a Python function and SPIR-V."""
    found = _installed_versions()
    for name in _COMPILING_PACKAGES:
        if name not in found:
            try:
                found[name] = importlib.import_module("importlib.metadata").version(name)
            except ImportError:
                found[name] = "none"
    return found


def _files_below(folder: str) -> list[str]:
    """Return the Python files in a folder and below; `Path.rglob` takes ten times as long."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                found.append(entry.path)
            elif entry.name != "__pycache__" and entry.is_dir():
                found += _files_below(entry.path)
    return found


@functools.lru_cache(maxsize=4)
def _our_files(target: str) -> str:
    """Return a digest of the files that determine a target's kernels: no other back end's."""
    back_ends = f"{_FOLDER}/back_ends"
    others = tuple(f"{back_ends}/{folder}/" for name, folder in FOLDERS.items() if name != target)
    files = [
        file
        for folder in (_FOLDER, *_LANGUAGE)
        for file in _files_below(str(folder))
        if not file.startswith(others)
    ]
    return _digest_of(sorted(files))


def _digest_of(files: Sequence[str], start: bytes = b"") -> str:
    """Return a digest of ``start`` and the content of files.

    The first launch of a process waits for this, so the digest is kept in the disk cache under a
    description of the files: each of their changes sets a new time of change.
    """
    states = [os.stat(file) for file in files]
    described = [
        (file, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns)
        for file, each in zip(files, states, strict=True)
    ]
    key = hashlib.sha256(repr((start, described)).encode()).hexdigest()
    known = cache.load(key, cache.DIGEST)
    if known is not None:
        return known.decode()
    ours = hashlib.sha256(start)
    for file in files:
        handle = os.open(file, READ_BYTES)  # without the layers of `open`
        try:
            while part := os.read(handle, _WHOLE_FILE):
                ours.update(part)
        finally:
            os.close(handle)
    found = ours.hexdigest()
    # A second change within the resolution of file times, or while this reads, would be missed.
    if time.time() - max(each.st_ctime for each in states) > _SETTLED_SECONDS:
        cache.save(key, found.encode(), cache.DIGEST)
    return found


@functools.lru_cache(maxsize=1)
def _versions() -> tuple[Any, ...]:
    # Bytecode and its meaning belong to the Python version.
    return (
        sys.version_info[:3],
        sys.platform,
        tuple(sorted(_package_versions().items())),
    )


def _installed_versions() -> dict[str, str]:
    """Return versions from the names of metadata directories: reading metadata takes 30 ms."""
    wanted = {name.replace("-", "_"): name for name in _COMPILING_PACKAGES}
    found: dict[str, str] = {}
    # Python's own library, which is large and contains no packages
    library = os.path.dirname(os.__file__)
    for directory in sys.path:
        if directory in (library, os.path.join(library, "lib-dynload")):
            continue
        with contextlib.suppress(OSError):
            for entry in os.listdir(directory or "."):
                if entry.endswith(".dist-info"):
                    package, _, version = entry[: -len(".dist-info")].partition("-")
                    name = wanted.get(package.lower())
                    if name is not None and version:
                        found.setdefault(name, version)
    return found


def toolchain() -> tuple[Any, ...]:
    """Return the versions of what compiles."""
    return _versions()


def describe(function: Callable[..., Any], *, lines: bool = False) -> tuple[Any, ...]:
    """Return everything that the compiler uses of ``function``, as nested tuples of plain values.

    Args:
        lines: whether to include source lines, for kernels that report them.

    Raises:
        UnkeyedError: it refers to a value without an exact description.
    """
    return Describer(lines).function(function)


class Describer:
    """Describes one function and all functions it reaches; a repeated function is a number."""

    def __init__(self, lines: bool = False, is_for_store: bool = False) -> None:
        self.lines = lines
        self.is_for_store = is_for_store
        self.seen: dict[int, int] = {}

    def function(self, function: Any) -> tuple[Any, ...]:
        if not isinstance(function, types.FunctionType):
            raise UnkeyedError(f"{function!r} is not a Python function")
        if id(function) in self.seen:
            return ("function seen", self.seen[id(function)])
        self.seen[id(function)] = len(self.seen)
        code = function.__code__
        captured = _captured(function)
        scope = []
        for name, attributes in dict.fromkeys(references_of(code)):
            if name in captured:
                scope.append((name, attributes, self.reached(captured[name], attributes)))
            elif name in function.__globals__:
                scope.append(
                    (name, attributes, self.reached(function.__globals__[name], attributes))
                )
            elif not hasattr(builtins, name):
                scope.append((name, attributes, "undefined"))
        return (
            "own function" if is_own(function) else "function",
            function.__qualname__,
            _place(function) if self.is_for_store else _code(code, self.lines),
            tuple(scope),
            self.value((function.__defaults__, function.__kwdefaults__)),
        )

    def reached(self, value: Any, attributes: Sequence[str]) -> Any:
        """Return the value of ``value.a.b...``; modules on the way are not values themselves."""
        path = []
        remaining = list(attributes)
        while isinstance(value, types.ModuleType):
            if not remaining:
                raise UnkeyedError(f"the module {value.__name__} itself")
            module, name = value, remaining.pop(0)
            path.append(name)
            value = getattr(module, name, UnkeyedError)
            if value is UnkeyedError:
                return ("missing", module.__name__, name)
            if module.__name__.partition(".")[0] in KNOWN_PACKAGES and _is_opaque(value):
                return ("member", module.__name__, name)
        return (tuple(path), self.value(value))

    def value(self, value: Any) -> Any:
        """Return the description of a value to which the function refers."""
        if value is None or value is Ellipsis or type(value) in (bool, str, bytes):
            return value
        if isinstance(value, enum.Enum):
            return ("enum", _name_of(type(value)), value.name, self.value(value.value))
        value = plain(value)
        if type(value) in (int, float, complex):
            return (type(value).__name__, repr(value))
        if isinstance(value, np.generic):
            return ("scalar", _dtype(value.dtype), value.tobytes())
        if isinstance(value, np.dtype):
            return ("dtype", _dtype(value))
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise UnkeyedError("an array of objects")
            order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
            digest = hashlib.sha256(value.tobytes()).hexdigest()
            return ("array", _dtype(value.dtype), value.shape, order, digest)
        if isinstance(value, tuple | list):
            return ("sequence", self.value(type(value)), tuple(map(self.value, value)))
        if isinstance(value, dict):
            return ("dict", tuple((self.value(k), self.value(v)) for k, v in value.items()))
        if isinstance(value, type):
            # Numba identifies classes by identity; the members of an enumeration are constants, and
            # the names of a tuple's items are ordered.
            members = getattr(value, "_fields", ())
            if issubclass(value, enum.Enum):
                members = tuple(
                    (name, self.value(each.value)) for name, each in value.__members__.items()
                )
            return ("class", _name_of(value), members)
        if isinstance(value, np.ufunc):
            return ("ufunc", value.__name__)
        if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__module__, str):
            return ("builtin", value.__module__, value.__qualname__)
        if isinstance(value, types.FunctionType):
            meaning = getattr(value, "device_meaning", None)  # for a public special function
            if meaning is not None:
                return ("special", tuple(map(self.compiled, meaning.all())))
            if (value.__module__ or "").partition(".linalg")[0] == "dparray":  # a public function
                return ("public", value.__module__, value.__name__)
            return self.function(value)
        if isinstance(getattr(value, "py_func", None), types.FunctionType):
            return self.compiled(value)
        if type(value).__module__.startswith("numba.core.types"):
            return ("numba type", str(value))
        raise UnkeyedError(f"a {_name_of(type(value))}")

    def compiled(self, value: Any) -> tuple[Any, ...]:
        """Describe a dparray device function or a Numba dispatcher."""
        is_dispatcher = hasattr(value, "targetoptions")
        options = value.targetoptions if is_dispatcher else value.options
        plain = {k: repr(v) for k, v in options.items() if isinstance(v, bool | int | str | None)}
        if is_dispatcher and value.overloads and not hasattr(value, "_dparray_key"):
            # Compiled earlier, perhaps with other values of the names than now.
            raise UnkeyedError(f"{value.py_func.__name__} was compiled before")
        described = ("compiled", self.function(value.py_func), sorted(plain.items()))
        if is_dispatcher:
            # A dispatcher freezes its globals when it compiles, so their first values are recorded.
            text = repr(described)
            if value.__dict__.setdefault("_dparray_key", text) != text:
                raise UnkeyedError(f"{value.py_func.__name__} refers to values that changed")
        return described


def _dtype(dtype: np.dtype[Any]) -> str:
    """Describe a dtype with the names and offsets of its fields."""
    return dtype.str if dtype.fields is None and dtype.subdtype is None else repr(dtype)


def _is_opaque(value: Any) -> bool:
    """Return whether the name and the package version identify a member of a known package."""
    return not isinstance(
        value, types.ModuleType | types.FunctionType | type | enum.Enum | int | float | complex
    ) and not hasattr(value, "py_func")


def _captured(function: types.FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    captured = {name: reader(cell)(name, UNASSIGNED) for name, cell in cells}
    if missing := [name for name, value in captured.items() if value is UNASSIGNED]:
        raise UnkeyedError(f"{missing[0]!r} is not assigned yet")
    return captured


def _name_of(named: Any) -> str:
    return f"{named.__module__}.{named.__qualname__}"


def _place(function: types.FunctionType) -> tuple[Any, ...]:
    """Return the location of a dparray function, or the source it was generated from."""
    code = function.__code__
    if code.co_filename.startswith("<dparray") and TEXT in function.__globals__:
        return ("text", function.__globals__[TEXT], code.co_name, code.co_firstlineno)
    for folder in (_DEVICE_CODE, _KERNEL_API):
        if code.co_filename.startswith(f"{folder}{os.sep}"):
            file = code.co_filename[len(str(folder)) :]
            if code.co_name != "<lambda>":  # a line may have several of these
                return ("place", folder.name, file, code.co_name, code.co_firstlineno)
    raise UnkeyedError(f"{function.__qualname__} is not a dparray function")


def _code(code: types.CodeType, lines: bool) -> tuple[Any, ...]:
    return (
        code.co_name,
        code.co_code,
        tuple(_constant(constant, lines) for constant in code.co_consts),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        getattr(code, "co_exceptiontable", b""),
        (code.co_filename, tuple(code.co_lines())) if lines else None,
    )


def _constant(constant: Any, lines: bool) -> Any:
    if isinstance(constant, types.CodeType):
        return _code(constant, lines)
    if isinstance(constant, frozenset):  # its order varies between processes
        return ("frozenset", tuple(sorted(map(repr, constant))))
    if isinstance(constant, tuple):
        return ("tuple", tuple(_constant(item, lines) for item in constant))
    return (type(constant).__name__, repr(constant))
