"""Find the values that a function refers to: globals, members of modules and captured variables."""

from __future__ import annotations

import builtins
import dis
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dparray._language.source import TEXT

#: Packages whose members their names identify.
KNOWN_PACKAGES = frozenset({"dpctl", "dpnp", "math", "numba", "numpy"})
_NAME_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"})
_ATTRIBUTE_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# Packages whose members are never reassigned.
_STABLE_PACKAGES = KNOWN_PACKAGES | {"dparray"} | sys.stdlib_module_names


class Reference(NamedTuple):
    """A value to which a function refers, and its location.

    Attributes:
        read: the function that returns the value of a name, or its second argument if it has none.
        name: the name of the global, the module's member or the captured variable.
        value: its value at that time; :data:`UNASSIGNED` if there was none.
    """

    read: Callable[[str, Any], Any]
    name: str
    value: Any

    @property
    def is_current(self) -> bool:
        """Return whether the name still has this value."""
        return self.read(self.name, UNASSIGNED) is self.value


#: The value of a name without an assignment, which may be a builtin.
UNASSIGNED = object()


def with_references(
    function: types.FunctionType, found: list[Reference], replace: Callable[[Any], Any]
) -> types.FunctionType:
    """Return a copy of a function that keeps its current values.

    Args:
        function: the function.
        found: receives the values and their locations.
        replace: returns a replacement for a value.
    """
    code = function.__code__
    used = _by_name(references_of(code))

    def kept(scope: Any, name: str, paths: Sequence[Sequence[str]]) -> Any:
        value = (read := reader(scope))(name, UNASSIGNED)
        found.append(Reference(read, name, value))
        if value is UNASSIGNED:
            return value
        if may_change(value) and all(paths):
            members = _by_name((path[0], path[1:]) for path in paths)
            copy = types.ModuleType(value.__name__)
            for member, rest in members.items():
                inner = kept(vars(value), member, rest)
                if inner is UNASSIGNED:  # a module may create a member on access
                    inner = getattr(value, member, UNASSIGNED)
                if inner is not UNASSIGNED:
                    setattr(copy, member, inner)
            return copy
        return replace(value)

    scope = {"__name__": function.__globals__.get("__name__"), "__builtins__": builtins}
    if TEXT in function.__globals__:
        scope[TEXT] = function.__globals__[TEXT]
    for name in sorted(used.keys() - set(code.co_freevars)):
        value = kept(function.__globals__, name, used[name])
        if value is not UNASSIGNED:
            scope[name] = value
    cells = []
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        value = kept(cell, name, used.get(name, [()]))
        cells.append(types.CellType() if value is UNASSIGNED else types.CellType(value))
    copy = types.FunctionType(
        code, scope, function.__name__, function.__defaults__, tuple(cells) or None
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    copy.__doc__ = function.__doc__
    return copy


def referred_values(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the assigned values of the globals and captured names of a function.

    Members of modules are included, by their dotted names.
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found: dict[str, Any] = {}
    for path, attributes in references_of(function.__code__):
        value = reader(cells.get(path, function.__globals__))(path, UNASSIGNED)
        for attribute in (*attributes, None):
            if value is not UNASSIGNED:
                found[path] = value
            if attribute is None or not isinstance(value, types.ModuleType):
                break
            value = getattr(value, attribute, UNASSIGNED)
            path = f"{path}.{attribute}"
    return found


def _by_name(
    references: Iterable[tuple[str, Sequence[str]]],
) -> dict[str, list[Sequence[str]]]:
    """Return the attributes that are accessed on each name."""
    found: dict[str, list[Sequence[str]]] = {}
    for name, attributes in references:
        found.setdefault(name, []).append(attributes)
    return found


def may_change(value: Any) -> bool:
    """Return whether a value is a user module, whose members are watched."""
    is_module = isinstance(value, types.ModuleType)
    return is_module and value.__name__.partition(".")[0] not in _STABLE_PACKAGES


def reader(scope: Any) -> Callable[[str, Any], Any]:
    if isinstance(scope, dict):
        return scope.get

    def read(name: str, default: Any) -> Any:
        try:
            return scope.cell_contents
        except ValueError:
            return default

    return read


def references_of(code: types.CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the globals and captured names of the code, each with its chain of attributes."""
    name: str | None = None
    attributes: list[str] = []
    local = set(code.co_varnames) | set(code.co_cellvars)
    for instruction in dis.get_instructions(code):
        if instruction.opname == "EXTENDED_ARG":
            continue
        if instruction.opname in _ATTRIBUTE_LOADS and name is not None:
            attributes.append(instruction.argval)
            continue
        if name is not None:
            yield name, tuple(attributes)
            name, attributes = None, []
        if instruction.opname in _NAME_LOADS and instruction.argval not in local:
            name = instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for found in references_of(constant):
                if found[0] not in local:
                    yield found


def called_device_functions(function: Callable[..., Any]) -> Iterator[types.FunctionType]:
    """Return the Python functions of the device functions that a function refers to."""
    for value in referred_values(function).values():
        called = getattr(value, "py_func", None)
        if isinstance(called, types.FunctionType):
            yield called
