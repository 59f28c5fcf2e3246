"""Dependences between iterations of a ``prange`` loop through elements of arrays.

The loop is traced for small arrays of several sizes: its index expressions and conditions are
computed, and the elements that each iteration reads and writes are compared. The iterations depend
on each other if they do for all of these sizes. An access that depends on elements (``x[k[i]]``,
``if x[i] > 0``) is unknown and left out.
"""

from __future__ import annotations

import ast
import itertools
import operator
import random
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from dparray._jit.inference import ON_PYTHON
from dparray._jit.source import Source, assigned_names, entries_of, root_of

_TRIALS = 16
_MIN_VALID = 4
_MAX_ITERATIONS = 250
_MAX_INNER = 12
#: The sizes of axes, by the number of parallel loops.
_SIZES = ((), (17, 20, 26, 33), (7, 8, 10), (4, 5, 6))
_NUMBERS = (0, 1, 2, 3, 5, 40)
_COMPARISONS: dict[type, Any] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_FUNCTIONS: dict[str, Any] = {"min": min, "max": max, "abs": abs, "int": int}


class _Unknown:
    """The value of an expression that the trace does not compute."""


_UNKNOWN = _Unknown()


class _Invalid(Exception):
    """A trial whose indices are out of bounds, or that takes too many iterations."""


class _Skip(Exception):
    """``continue`` of the parallel loop."""


class _Access(NamedTuple):
    iteration: tuple[int, ...]
    node: ast.Subscript
    is_write: bool
    value: Any


def dependent_elements(
    source: Source, loops: Sequence[tuple[str, list[ast.expr]]], body: list[ast.stmt]
) -> tuple[ast.Subscript, ast.Subscript] | None:
    """Return two accesses to one element by different iterations, of which the first writes.

    Args:
        source: the function.
        loops: the parallel loops: variable, and the arguments of ``range``.
        body: the statements of an iteration.

    Returns:
        the accesses; ``None`` if the iterations may be independent.
    """
    nodes = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Subscript)]
    written = {root_of(node) for node in nodes if isinstance(node.ctx, ast.Store)}
    aliases = _aliases(source, body)
    containers = ast.List | ast.Tuple | ast.Dict | ast.ListComp | ast.DictComp
    others = {k for k, x in _assigned_once(source, body).items() if isinstance(x, containers)}
    others |= assigned_names(body)
    written = {aliases.get(each, each) for each in written - others}
    texts: dict[str, set[str]] = {}
    for node in nodes:
        name = root_of(node)
        texts.setdefault(aliases.get(name, name), set()).add(ast.unparse(node.slice))
    names = {name for name, _ in loops}
    if not any(len(texts[name]) > 1 or not _is_plain(texts[name], names) for name in written):
        return None
    found, valid = None, 0
    for seed in range(_TRIALS):
        try:
            trace = _Trace(source, body, aliases, seed, len(loops))
            conflict = trace.conflict(loops, body)
        except _Invalid:
            continue
        if conflict is None:
            return None
        found, valid = found or conflict, valid + 1
    return found if valid >= _MIN_VALID else None


def _is_plain(texts: set[str], names: set[str]) -> bool:
    """Return whether the only index of an array is made of all parallel variables."""
    return names <= set(next(iter(texts)).strip("()").split(", "))


def _aliases(source: Source, body: list[ast.stmt]) -> dict[str, str]:
    """Return the variables that are other names of an array."""
    values = _assigned_once(source, body)
    assigned = assigned_names(source.definition.body) - values.keys()
    found: dict[str, str] = {}
    for name in values:
        value: ast.expr | None = values[name]
        known = {name}
        while isinstance(value, ast.Name) and value.id not in known | assigned:
            known.add(value.id)
            found[name] = value.id
            value = values.get(value.id)
    return found


def _assigned_once(source: Source, body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Return the values of the variables that the function assigns once, outside of the loop."""
    counts: dict[str, int] = {each.arg: 1 for each in source.definition.args.args}
    values: dict[str, ast.expr] = {}
    inside = assigned_names(body)
    for node in ast.walk(source.definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            (target,) = node.targets
            if isinstance(target, ast.Name):
                values[target.id] = node.value
            elif isinstance(target, ast.Tuple):
                for at, each in enumerate(target.elts):
                    if isinstance(each, ast.Name):
                        item = node.value
                        if isinstance(item, ast.Tuple) and len(item.elts) == len(target.elts):
                            values[each.id] = item.elts[at]
                        else:
                            values[each.id] = ast.Subscript(item, ast.Constant(at), ast.Load())
    return {k: value for k, value in values.items() if counts.get(k) == 1 and k not in inside}


class _Trace:
    """The accesses of a loop for arrays of some sizes."""

    def __init__(
        self,
        source: Source,
        body: list[ast.stmt],
        aliases: dict[str, str],
        seed: int,
        dimensions: int,
    ) -> None:
        self.random = random.Random(seed)
        self.dimensions = dimensions
        self.aliases = aliases
        self.outer = _assigned_once(source, body)
        self.constants = {k: x for k, x in source.names.items() if type(x) is int}
        self.sizes: dict[tuple[str, int], int] = {}
        self.accesses: dict[tuple[Any, ...], list[_Access]] = {}
        self.iteration: tuple[int, ...] = ()
        self.is_certain = True

    def conflict(
        self, loops: Sequence[tuple[str, list[ast.expr]]], body: list[ast.stmt]
    ) -> tuple[ast.Subscript, ast.Subscript] | None:
        """Return two accesses of different iterations to an element, of which the first writes."""
        globals_: dict[str, Any] = {}
        self.globals = globals_
        ranges = [self._range(given, {}) for _, given in loops]
        if any(each is None for each in ranges):
            raise _Invalid
        space = [each for each in ranges if each is not None]
        if not 1 < prod(map(len, space)) <= _MAX_ITERATIONS:
            raise _Invalid
        for self.iteration in itertools.product(*space):
            variables = dict(zip((name for name, _ in loops), self.iteration, strict=True))
            self.is_certain = True
            try:
                self._run(body, variables)
            except _Skip:
                continue
        for accesses in self.accesses.values():
            for one, other in itertools.product(accesses, accesses):
                if one.is_write and one.iteration != other.iteration and not _agree(one, other):
                    return one.node, other.node
        return None

    def _range(self, given: list[ast.expr], variables: dict[str, Any]) -> range | None:
        bounds = [self._value(each, variables) for each in given]
        is_known = all(isinstance(each, int) for each in bounds)
        return range(*bounds) if is_known and bounds[2:] != [0] else None

    # -- statements -----------------------------------------------------------------------------

    def _run(self, body: list[ast.stmt], variables: dict[str, Any]) -> None:
        for node in body:
            self._statement(node, variables)

    def _statement(self, node: ast.stmt, variables: dict[str, Any]) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value, variables)
            for target in node.targets:
                self._store(target, value, variables)
        elif isinstance(node, ast.AugAssign):
            load = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            self._store(node.target, self._value(load, variables), variables)
        elif isinstance(node, ast.If):
            test = self._value(node.test, variables)
            if test is _UNKNOWN:
                self._maybe([*node.body, *node.orelse], variables)
            else:
                self._run(node.body if test else node.orelse, variables)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            iterated: Any = node.iter
            is_range = isinstance(iterated, ast.Call) and "range" in ast.unparse(iterated.func)
            bounds = self._range(iterated.args, variables) if is_range else None
            has_jumps = any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(node))
            if bounds is None or has_jumps:
                self._maybe(node.body, {**variables, node.target.id: _UNKNOWN})
            for at in () if bounds is None or has_jumps else bounds[:_MAX_INNER]:
                variables[node.target.id] = at
                self._run(node.body, variables)
        elif isinstance(node, ast.Continue):
            if not self.is_certain:
                raise _Invalid  # what follows may not run
            raise _Skip
        elif isinstance(node, ast.Expr):
            self._value(node.value, variables)
        else:
            self._maybe([*getattr(node, "body", ())], variables)

    def _maybe(self, body: list[ast.stmt], variables: dict[str, Any]) -> None:
        """Forget the variables that statements assign which may not run."""
        variables.update(dict.fromkeys(assigned_names(body), _UNKNOWN))
        if any(isinstance(node, ast.Continue) for each in body for node in ast.walk(each)):
            raise _Invalid

    def _store(self, target: ast.expr, value: Any, variables: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            variables[target.id] = value
        elif isinstance(target, ast.Subscript):
            self._access(target, variables, True, value)
        elif isinstance(target, ast.Tuple):
            for each in target.elts:
                self._store(each, _UNKNOWN, variables)

    def _access(
        self, node: ast.Subscript, variables: dict[str, Any], is_write: bool, value: Any = None
    ) -> None:
        if not isinstance(node.value, ast.Name) or node.value.id in variables:
            return  # an array of the iteration itself
        name = self.aliases.get(node.value.id, node.value.id)
        index = [self._value(each, variables) for each in entries_of(node)]
        if not self.is_certain or not all(type(each) is int for each in index):
            return
        for axis, at in enumerate(index):
            size = self._size(name, axis)
            if not -size <= at < size:
                raise _Invalid
            index[axis] = at % size
        accesses = self.accesses.setdefault((name, *index), [])
        accesses.append(_Access(self.iteration, node, is_write, value))

    def _size(self, name: str, axis: int) -> int:
        sizes = _SIZES[min(self.dimensions, 3)]
        key = self.aliases.get(name, name), axis
        return self.sizes.setdefault(key, self.random.choice(sizes))

    # -- expressions ----------------------------------------------------------------------------

    def _value(self, node: ast.expr | None, variables: dict[str, Any]) -> Any:
        """Return the integer or Boolean of an expression, and note the elements that it reads."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, int) else _UNKNOWN
        if isinstance(node, ast.Name):
            return self._variable(node.id, variables)
        if isinstance(node, ast.BinOp):
            sides = [self._value(each, variables) for each in (node.left, node.right)]
            return _computed(ON_PYTHON.get(type(node.op)), sides)
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, variables)
            signs: dict[type, Any] = {ast.USub: operator.neg, ast.Not: operator.not_}
            return _computed(signs.get(type(node.op)), [value])
        if isinstance(node, ast.Compare):
            values = [self._value(each, variables) for each in (node.left, *node.comparators)]
            found = [
                _computed(_COMPARISONS.get(type(op)), values[at : at + 2])
                for at, op in enumerate(node.ops)
            ]
            return _UNKNOWN if _UNKNOWN in found else all(found)
        if isinstance(node, ast.BoolOp):
            values = [self._value(each, variables) for each in node.values]
            decided = not isinstance(node.op, ast.And)
            if any(each is not _UNKNOWN and bool(each) == decided for each in values):
                return decided
            return _UNKNOWN if _UNKNOWN in values else not decided
        if isinstance(node, ast.Subscript):
            shape = node.value
            if isinstance(shape, ast.Attribute) and shape.attr == "shape":
                axis = self._value(node.slice, variables)
                is_known = isinstance(shape.value, ast.Name) and type(axis) is int and axis >= 0
                return self._size(shape.value.id, axis) if is_known else _UNKNOWN  # type: ignore[attr-defined]
            self._access(node, variables, False)
            return _UNKNOWN
        if isinstance(node, ast.Attribute):
            is_size = node.attr == "size" and isinstance(node.value, ast.Name)
            return self._size(node.value.id, 0) if is_size else _UNKNOWN  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            if function == "len" and isinstance(node.args[0], ast.Name):
                return self._size(node.args[0].id, 0)
            return _computed(
                _FUNCTIONS.get(function), [self._value(each, variables) for each in node.args]
            )
        for each in ast.iter_child_nodes(node) if node is not None else ():
            if isinstance(each, ast.expr) and not isinstance(node, ast.IfExp | ast.Lambda):
                self._value(each, variables)
        return _UNKNOWN

    def _variable(self, name: str, variables: dict[str, Any]) -> Any:
        if name in variables:
            return variables[name]
        if name not in self.globals:
            self.globals[name] = _UNKNOWN  # of a value that reads the variable itself
            outer = self.outer.get(name)
            if outer is not None:
                self.globals[name] = self._value(outer, {})
            else:
                chosen = self.random.choice(_NUMBERS)
                self.globals[name] = self.constants.get(name, chosen)
        return self.globals[name]


def _computed(function: Any, values: Sequence[Any]) -> Any:
    """Return the result of a function of integers; unknown if one of them is."""
    if function is None or not values or not all(isinstance(each, int) for each in values):
        return _UNKNOWN
    try:
        result = function(*values)
    except (ArithmeticError, ValueError, TypeError):
        return _UNKNOWN
    return result if isinstance(result, int) else _UNKNOWN


def _agree(one: _Access, other: _Access) -> bool:
    """Return whether two accesses are writes of the same number."""
    return other.is_write and isinstance(one.value, int) and one.value == other.value
