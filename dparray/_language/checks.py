"""Checks in kernels that are launched under ``dp.config.debug``.

A check is an op: the condition, the indices and the shape. Outside of an array, reads take the
first element and writes do nothing, so the work-items of a group still meet at barriers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dparray._ir.checks import INDICES, MAX_NUMBERS, SHAPE
from dparray._ir.instructions import Op
from dparray._ir.types import BOOL, I64, U64
from dparray._language.arrays import Arrays
from dparray._language.source import Source, quote
from dparray._language.syntax import syntax_of
from dparray._language.values import NONE, Array, Constant, Number, Slice

_INDEX = "index {found} is out of bounds of {there}, whose shape is {shape}"
_RUN = (
    "the elements from index {found} on are not all inside the array of {there}, of shape {shape}"
)
_STEP = "the step of {there} is 0"
_SLICE_STEP = "the step of the slice {there} is 0"
_DIMENSION = "{there} asks for dimension {found} of {shape[0]}"
_ASSERTION = "the assertion {there} failed"
_UNPACKED = "{found} names are assigned from {there}, whose shape is {shape}"
#: Functions of these modules are not checked: the language is written in them.
_OWN = "dparray._language"


class Site(NamedTuple):
    """A checked expression: an index, a step, a dimension, a number of names."""

    function: str
    problem: str
    there: str
    source: Source
    line: int
    column: int
    end_column: int

    def describe(self, found: Sequence[int], shape: Sequence[int]) -> str:
        """Return what is wrong with the numbers of a fault."""
        shown = str(found[0]) if len(found) == 1 else str(tuple(found))
        return self.problem.format(found=shown, there=self.there, shape=tuple(shape))

    @property
    def excerpt(self) -> str:
        """The line of the source with a mark below the expression."""
        return quote(self.source, self.line, self.column, self.end_column).rstrip()


def describe_fault(kernel: str, sites: Sequence[Site], record: Sequence[int]) -> str:
    """Return the message for the record of a launch (:mod:`dparray._ir.checks`)."""
    faults, number, count, unsigned, dimensions = map(int, record[:INDICES])
    if not (0 <= number < len(sites) and 0 <= max(count, dimensions) <= MAX_NUMBERS):
        return (
            f"kernel {kernel}: it reported a fault, but the record of it is damaged. Check the "
            "device with `dparray doctor`"
        )
    site = sites[number]
    indices = [
        int(value) % 2**64 if unsigned >> place & 1 else int(value)
        for place, value in enumerate(record[INDICES : INDICES + count])
    ]
    shape = list(map(int, record[SHAPE : SHAPE + dimensions]))
    others = f" ({faults - 1} more fault{'s' if faults > 2 else ''})" if faults > 1 else ""
    where = "" if site.function == kernel else f" in {site.function}"
    return f"kernel {kernel}: {site.describe(indices, shape)}{where}{others}\n{site.excerpt}"


class Check(NamedTuple):
    """The attribute of a ``check``.

    Attributes:
        site: the number of the site.
        indices: how many of the operands after the condition are indices; the others are the
            shape.
        unsigned: a bit for each index that is unsigned.
    """

    site: int
    indices: int
    unsigned: int


class Checks(Arrays):
    """The part of the front end that adds checks.

    Attributes:
        sites: the checked expressions, by number.
        guards: for the address of an element, whether it is inside of its array.
        last_guard: the same for the last index that was checked.
        statement: the statement of the source that is being translated.
    """

    sites: list[Site]
    guards: dict[Op, Op]
    last_guard: Op | None
    statement: ast.stmt

    @property
    def checks_here(self) -> bool:
        """Whether the function that is being translated is checked."""
        module = getattr(self.frame.function, "__module__", None) or ""
        return self.is_checked and not module.startswith(_OWN)

    def require(self, holds: Op, error: str, text: str) -> None:
        """End a function of the host unless a condition holds; check it in a checked kernel."""
        if not self.is_sequential:
            if self.checks_here:
                nodes = ast.walk(self.statement)
                node = next(each for each in nodes if isinstance(each, ast.expr))
                self.check(holds, text, [], [], node, node)
                self.branch(Number(holds), lambda: NONE, self.abandon)
            return
        raised = ast.parse(f"{error}({text!r})", mode="eval").body
        self.branch(Number(holds), lambda: NONE, lambda: self.stop(raised))

    def abandon(self) -> None:
        """End the work-item."""
        self.leave(self.targets[0])

    def stop(self, error: ast.expr) -> None:
        """End a function of the host: its caller raises an exception."""
        raise NotImplementedError

    # -- indices ----------------------------------------------------------------------------------

    def checked(
        self, array: Array, parts: Sequence[Any], positions: list[Number], node: ast.AST | None
    ) -> list[Number]:
        if not self.checks_here or node is None or not positions:
            return positions
        inside = self.are_inside(positions, array.shape)
        self.check(inside, _INDEX, parts, array.shape, node, _array_of(node))
        zero = self.constant(0, I64)
        self.last_guard = inside
        return [
            Number(self.op("select", I64, inside, each.op, zero), is_natural=True)
            for each in positions
        ]

    def address(self, array: Array, index: Any, node: ast.AST | None = None) -> Op:
        self.last_guard = None
        address = super().address(array, index, node)
        if self.last_guard is not None:
            self.guards[address] = self.last_guard
        return address

    def checked_view(
        self, array: Array, parts: Sequence[Any], starts: list[Number], node: ast.AST
    ) -> list[Number]:
        own = [part for part in parts if part not in (NONE, Constant(...))]
        chosen = [number for number, part in enumerate(own) if not isinstance(part, Slice)]
        if not self.checks_here or not chosen:
            return starts
        extents = [array.shape[number] for number in chosen]
        inside = self.are_inside([starts[number] for number in chosen], extents)
        given = [own[number] for number in chosen]
        self.check(inside, _INDEX, given, array.shape, node, _array_of(node))
        zero = self.constant(0, I64)
        return [
            Number(self.op("select", I64, inside, start.op, zero)) if number in chosen else start
            for number, start in enumerate(starts)
        ]

    def are_inside(self, positions: Sequence[Number], extents: Sequence[Number]) -> Op:
        """Return whether positions are inside of an array."""
        result: Op | None = None
        for position, extent in zip(positions, extents, strict=True):
            numbers = (self.to(each, U64).op for each in (position, extent))
            below = self.op("lt", BOOL, *numbers)
            result = below if result is None else self.op("and", BOOL, result, below)
        assert result is not None
        return result

    def address_of_run(self, array: Array, index: Any, count: int, node: ast.AST) -> Op:
        if not self.checks_here:
            return super().address_of_run(array, index, count, node)
        parts = index.items if hasattr(index, "items") else (index,)
        positions = [
            self.position(part, extent, node)
            for part, extent in zip(parts, array.shape, strict=True)
        ]
        inside = self.are_inside(positions, array.shape)
        last, extent = (self.to(each, U64).op for each in (positions[-1], array.shape[-1]))
        rest = self.op("sub", U64, extent, last)
        fits = self.op("ge", BOOL, rest, self.constant(count, U64))
        inside = self.op("and", BOOL, inside, fits)
        self.check(inside, _RUN, parts, array.shape, node, node)
        address = self.address_of(array, positions)
        self.guards[address] = inside
        return address

    def guarded(self, address: Op, translate: Callable[[], Any], otherwise: Any = NONE) -> Any:
        inside = self.guards.get(address)
        if inside is None:
            return translate()
        return self.branch(Number(inside), translate, lambda: otherwise)

    def check_item(self, index: Any, position: Number, count: int, node: ast.AST) -> None:
        if self.is_sequential:
            unsigned = self.to(position, U64).op
            inside = self.op("lt", BOOL, unsigned, self.constant(count, U64))
            self.require(inside, "IndexError", "tuple index out of range")
        elif self.checks_here:
            extent = self.number(Constant(count))
            inside = self.are_inside([position], [extent])
            self.check(inside, _INDEX, [index], [extent], node, _array_of(node))

    # -- other faults -----------------------------------------------------------------------------

    def check_step(self, step: Any, node: ast.AST) -> None:
        if self.is_sequential and not isinstance(step, Constant):
            what = (
                "slice step cannot be"
                if isinstance(node, ast.Slice)
                else "range() arg 3 must not be"
            )
            differs = self.op("ne", BOOL, self.to(step, I64).op, self.constant(0, I64))
            self.require(differs, "ValueError", f"{what} zero")
        elif self.checks_here and not isinstance(step, Constant):
            number = self.to(step, I64)
            holds = self.op("ne", BOOL, number.op, self.constant(0, I64))
            problem = _SLICE_STEP if isinstance(node, ast.Slice) else _STEP
            place = node.step if isinstance(node, ast.Slice) and node.step else node
            self.check(holds, problem, [step], [], place, node)

    def check_dimension(self, dim: Any, count: int, node: ast.AST) -> None:
        if self.checks_here:
            extent = self.number(Constant(count))
            inside = self.are_inside([self.to(dim, I64)], [extent])
            self.check(inside, _DIMENSION, [dim], [extent], node, node)

    def check_count(self, array: Array, count: int, value: ast.AST) -> None:
        if not (self.is_sequential or self.checks_here):
            return
        holds = self.op("eq", BOOL, array.shape[0].op, self.constant(count, I64))
        if self.is_sequential:
            problem = f"{ast.unparse(value)} must have {count} elements, one for each name"
            self.require(holds, "ValueError", problem)
        else:
            self.check(holds, _UNPACKED, [Constant(count)], array.shape, value, value)

    def check_assertion(self, statement: ast.Assert) -> None:
        if not self.checks_here:
            return
        problem = _ASSERTION
        if statement.msg is not None:
            message = ast.unparse(statement.msg)
            if isinstance(statement.msg, ast.Constant):
                message = str(statement.msg.value)
            problem += ": " + message.replace("{", "{{").replace("}", "}}")
        holds = self.truth(self.value(statement.test)).op
        self.check(holds, problem, [], [], statement.test, statement.test)

    def check(
        self,
        holds: Op,
        problem: str,
        indices: Sequence[Any],
        shape: Sequence[Number],
        node: ast.AST,
        there: ast.AST,
    ) -> None:
        """Add a check; in a function of the host, it ends the function."""
        assert isinstance(node, ast.expr)
        if self.is_sequential:
            array, index = ast.unparse(there), ast.unparse(node)
            self.require(holds, "IndexError", f"the index of {index} is out of bounds of {array}")
            return
        source = syntax_of(self.frame.function)
        end = node.end_col_offset or node.col_offset + 1
        site = Site(
            getattr(self.frame.function, "__name__", ""),
            problem,
            ast.unparse(there),
            source,
            node.lineno + source.first - 1,
            node.col_offset + source.indent,
            end + source.indent,
        )
        if site not in self.sites:
            self.sites.append(site)
        unsigned = sum(
            1 << number
            for number, each in enumerate(indices)
            if not isinstance(each, Constant) and self.type_of(each).kind == "u"
        )
        attribute = Check(self.sites.index(site), len(indices), unsigned)
        operands = (self.to(each, I64).op for each in (*indices, *shape))
        self.op("check", None, holds, *operands, attribute=attribute)


def _array_of(node: ast.AST) -> ast.AST:
    """Return the expression of the array whose element an expression accesses."""
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node, ast.Call):
        named = {each.arg: each.value for each in node.keywords}
        return node.args[0] if node.args else named.get("ref", node)
    return node
