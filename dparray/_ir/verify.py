"""Check that a program is valid: the form on which passes, back ends and the interpreter rely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dparray._ir.instructions import (
    ATOMICS,
    CONTROL,
    FUNCTIONS,
    GROUP_FUNCTIONS,
    INDICES,
    JUMPS,
    OPS,
    ORDERS,
    SCOPES,
    Function,
    Op,
    Parameter,
)
from dparray._ir.types import BOOL, GLOBAL, I32, I64, LOCAL, PRIVATE, U32, U64, Pointer, Type

_FREE = ("parameter", "constant", "result", "carried")


class InvalidProgram(AssertionError):
    """A program breaks a rule of its form, which is a fault of the pass before."""


def verify(function: Function, stage: str = "") -> None:
    """Check a program.

    Args:
        function: the program.
        stage: the name of the pass before, for the error.

    Raises:
        InvalidProgram: with the op that breaks a rule, and the program.
    """
    for each in (function, *function.procedures):
        _Verifier(each, stage, function.procedures).run()


class _Verifier:
    """Walks through one program.

    Attributes:
        known: the ops whose values may be used at this point, by identity.
        seen: all ops in bodies so far.
        around: the control flow around this point, outer ones first.
        left: for each construct, whether a jump leaves it.
    """

    def __init__(self, function: Function, stage: str, procedures: Sequence[Function]) -> None:
        self.function = function
        self.procedures = procedures
        self.stage = stage
        self.known: set[int] = set()
        self.seen: set[int] = set()
        self.around: list[Op] = []
        self.left: dict[int, bool] = {}

    def fail(self, op: Op | None, problem: str) -> None:
        from dparray._ir.text import printed, shown

        where = f"{shown(op)}: " if op is not None else ""
        stage = f" after {self.stage}" if self.stage else ""
        raise InvalidProgram(f"invalid program{stage}: {where}{problem}\n{printed(self.function)}")

    def require(self, holds: bool, op: Op, problem: str) -> None:
        if not holds:
            self.fail(op, problem)

    def run(self) -> None:
        for parameter in self.function.parameters:
            self.require(parameter.name == "parameter", parameter, "is in the list of parameters")
            described = isinstance(parameter.attribute, Parameter)
            self.require(described, parameter, "its attribute must be a Parameter")
            is_pointer = isinstance(parameter.type, Pointer)
            self.require(
                is_pointer == (parameter.attribute.part == "pointer"),
                parameter,
                "only the part `pointer` of an argument must be a pointer",
            )
            self.define(parameter)
        self.body(self.function.body, None)

    def define(self, op: Op) -> None:
        self.require(id(op) not in self.seen, op, "must be in one body, once")
        self.seen.add(id(op))
        self.known.add(id(op))

    def body(self, body: Sequence[Op], owner: Op | None) -> None:
        self.require(bool(body), owner or Op("return"), "has an empty body")
        before = set(self.known)
        for op in body:
            self.op(op)
            if (op is body[-1]) != self.ends(op):
                self.fail(op, "must be the last of its body" if self.ends(op) else "is the last")
        self.known = before

    def ends(self, op: Op) -> bool:
        """Return whether execution does not continue with the op after this one."""
        return op.name in JUMPS or (op.name in CONTROL and not self.left[id(op)])

    def op(self, op: Op) -> None:
        rule = OPS.get(op.name)
        if rule is None or op.name in ("parameter", "constant", "carried"):
            self.fail(op, "is no op of a body")
            return
        self.require(op.name != "result", op, "must not be in a body")
        for operand in op.operands:
            if operand.name == "constant":
                self.types(operand)
            elif id(operand) not in self.known:
                self.fail(op, f"the operand {operand!r} is not computed on every path to it")
        self.types(op)
        check = _CHECKS.get(op.name)
        if check is not None:
            problem = check(op)
            self.require(not problem, op, str(problem))
        if op.name == "call":
            self.fits(op, op.operands, self.procedures[op.attribute].parameters, "arguments")
        if op.name in ("leave", "repeat"):
            self.jump(op)
        if op.name in CONTROL:
            self.control(op)
        else:
            self.require(not op.bodies and not op.results, op, "has bodies or results")
        if op.name not in ("loop", "parallel"):
            self.require(not op.carried, op, "carries values")
        self.define(op)

    def control(self, op: Op) -> None:
        count = 2 if op.name == "if" else 1
        self.require(len(op.bodies) == count, op, f"must have {count} bodies")
        if op.name == "loop":
            self.fits(op, op.operands, op.carried, "first values")
        if op.name == "parallel":
            kinds = [each.type for each in op.carried]
            self.require(kinds == [I64] * 3, op, "carries a number and the ends of a part")
            self.require(not op.results, op, "has no results")
        before = set(self.known)
        for carried in op.carried:
            self.require(carried.name == "carried", carried, "is carried by a loop")
            self.define(carried)
        self.around.append(op)
        self.left[id(op)] = False
        for body in op.bodies:
            self.body(body, op)
        self.around.pop()
        self.known = before
        for result in op.results:
            self.require(result.name == "result", result, "is a result of control flow")
            self.define(result)
        self.require(self.left[id(op)] or not op.results, op, "has results, but nothing leaves it")

    def jump(self, op: Op) -> None:
        target = op.attribute
        inside = any(target is construct for construct in self.around)
        self.require(inside, op, "its target must be control flow around it")
        if op.name == "repeat":
            self.require(target.name == "loop", op, "its target must be a loop")
            self.fits(op, op.operands, target.carried, "next values")
        else:
            self.left[id(target)] = True
            self.fits(op, op.operands, target.results, "results")

    def fits(self, op: Op, values: Sequence[Op], targets: Sequence[Op], what: str) -> None:
        kinds = [str(value.type) for value in values]
        wanted = [str(target.type) for target in targets]
        self.require(kinds == wanted, op, f"its {what} are {kinds}; expected {wanted}")

    # -- types ------------------------------------------------------------------------------------

    def types(self, op: Op) -> None:
        """Check the types of an op by its row in the table."""
        rule = OPS[op.name]
        specs = rule.operands.split()
        any_number = "*" in specs
        fixed = specs[: specs.index("*")] if any_number else specs
        enough = len(op.operands) >= len(fixed) if any_number else len(op.operands) == len(fixed)
        self.require(enough, op, f"has {len(op.operands)} operands; expected {rule.operands!r}")
        common: Any = None
        pairs = [(operand.type, spec) for operand, spec in zip(op.operands, fixed, strict=False)]
        if rule.result not in ("", "*"):
            pairs.append((op.type, rule.result))
        for kind, spec in pairs:
            if spec == "T":
                common = common or kind
                letter = "p" if isinstance(kind, Pointer) else kind.kind if kind else ""
                fits = kind == common and letter in rule.kinds and letter != ""
                self.require(fits, op, f"{kind} is not {common}, or not of {rule.kinds!r}")
        for kind, spec in pairs:
            if spec != "T" and not _is(kind, spec, common):
                self.fail(op, f"{kind} must be {spec}")
        if rule.result == "" and op.name not in CONTROL:
            self.require(op.type is None, op, "must not have a value")


def _is(kind: Any, spec: str, common: Any) -> bool:
    if spec == "P":
        return isinstance(kind, Pointer)
    if spec == "W":
        return kind in (I64, U64)
    if spec == "E":
        return kind in (I64, U64) and common in (I64, U64)
    if spec == "B":
        return bool(kind == common.flag)
    if spec == "F":
        return kind == BOOL or (isinstance(common, Type) and kind == common.flag)
    return str(kind) == spec


# --- kinds of ops with rules of their own ---------------------------------------------------------
# Each returns the problem of an op, or an empty string.


def _convert(op: Op) -> str:
    own, kind = op.operands[0].type, op.type
    if not (isinstance(own, Type) and isinstance(kind, Type)) or len(op.operands) != 1:
        return "takes one number"
    return "" if own.lanes == kind.lanes else "must keep the number of lanes"


def _bitcast(op: Op) -> str:
    own, kind = op.operands[0].type, op.type
    if not (isinstance(own, Type) and isinstance(kind, Type)) or len(op.operands) != 1:
        return "takes one number"
    fits = own.bits == kind.bits and own.lanes == kind.lanes and "b" not in own.kind + kind.kind
    return "" if fits else "must keep the number of bits and lanes"


def _math(op: Op) -> str:
    if FUNCTIONS.get(op.attribute) != len(op.operands):
        return "must name a function, with as many operands as it takes"
    kinds = [operand.type for operand in op.operands]
    if op.attribute == "ldexp":
        return "" if kinds == [op.type, I32] else "ldexp takes a float and an i32"
    is_scalar = isinstance(op.type, Type) and op.type.lanes == 1
    return "" if is_scalar and set(kinds) == {op.type} else "takes and returns one type of float"


def _index(op: Op) -> str:
    name, dimension = op.attribute
    fits = name in INDICES and dimension in range(1 if "sub_group" in name else 3)
    return "" if fits else "must name an id or a size, and its dimension"


def _pack(op: Op) -> str:
    kind = op.type
    fits = isinstance(kind, Type) and kind.lanes == len(op.operands) > 1
    fits = fits and all(operand.type == kind.scalar for operand in op.operands)  # type: ignore[union-attr]
    return "" if fits else "takes a number for each lane"


def _extract(op: Op) -> str:
    vector, *lane = op.operands
    if not isinstance(vector.type, Type) or op.type != vector.type.scalar:
        return "takes a vector and returns one of its numbers"
    if lane:
        fits = len(lane) == 1 and lane[0].type == I64 and op.attribute is None
    else:
        fits = op.attribute in range(vector.type.lanes)
    return "" if fits else "takes a lane, as the attribute or as an i64"


def _allocate(op: Op) -> str:
    assert isinstance(op.type, Pointer)
    fits = op.type.space in (PRIVATE, LOCAL) and type(op.attribute) is int and op.attribute > 0
    return "" if fits else "takes a number of elements, in private or local memory"


def _offset(op: Op) -> str:
    fits = op.type == op.operands[0].type and op.attribute in (None, "bytes")
    return "" if fits else "keeps the type of the pointer"


def _element_of(op: Op, kind: Any) -> str:
    pointer = op.operands[0].type
    assert isinstance(pointer, Pointer)
    if not isinstance(kind, Type) or kind.scalar != pointer.element:
        return f"accesses {kind} in memory of {pointer.element}"
    alignment = op.attribute
    fits = alignment is None or (type(alignment) is int and alignment % kind.size == 0 < alignment)
    return "" if fits else "its alignment must be a multiple of the size of an element"


def _load(op: Op) -> str:
    return _element_of(op, op.type)


def _store(op: Op) -> str:
    return "takes one value" if len(op.operands) != 2 else _element_of(op, op.operands[1].type)


def _atomic(op: Op) -> str:
    method, scope, orders = op.attribute
    pointer, *values = op.operands
    count = ATOMICS.get(method)
    if count is None or scope not in SCOPES or not set(orders) <= set(ORDERS):
        return "must name a method, a scope and orders"
    if len(orders) != (2 if method == "compare_exchange" else 1):
        return "has one order, or two for compare_exchange"
    if not isinstance(pointer.type, Pointer) or pointer.type.space not in (GLOBAL, LOCAL):
        return "accesses global or local memory"
    element = pointer.type.element
    if element.bits not in (32, 64) or (element.is_float and method[6:] in ("and", "or", "xor")):
        return f"{method} does not take {element}"
    if [value.type for value in values] != [element] * count:
        return f"{method} takes {count} values of the element's type"
    return "" if op.type == (None if method == "store" else element) else "returns the element"


def _barrier(op: Op) -> str:
    scope, memory = op.attribute
    fits = scope in ("work_group", "sub_group") and memory in SCOPES
    return "" if fits else "must name who waits, and the scope of the fence"


def _fence(op: Op) -> str:
    scope, order = op.attribute
    return "" if scope in SCOPES and order in ORDERS else "must name a scope and an order"


def _group(op: Op) -> str:
    scope, function, operation = op.attribute
    if scope not in ("work_group", "sub_group") or operation not in GROUP_FUNCTIONS.get(
        function, ()
    ):
        return "must name a group, a function and its operation"
    value, *others = [operand.type for operand in op.operands] or [None]
    if not isinstance(value, Type) or value != op.type or value.lanes != 1 or value.bits < 32:
        return "takes and returns a number of at least 32 bits"
    if function == "broadcast":
        return "" if others and set(others) == {U64} else "takes a u64 for each dimension"
    if function == "shuffle":
        is_right = scope == "sub_group" and others == [U32]
        return "" if is_right else "takes the lane of a sub-group as a u32"
    return "" if not others else "takes one value"


def _print(op: Op) -> str:
    return "" if isinstance(op.attribute, str) else "must have a format"


def _check(op: Op) -> str:
    fits = bool(op.operands) and op.operands[0].type == BOOL
    return "" if fits else "takes a Boolean first"


_CHECKS: dict[str, Callable[[Op], str]] = {
    "convert": _convert,
    "bitcast": _bitcast,
    "math": _math,
    "index": _index,
    "pack": _pack,
    "extract": _extract,
    "allocate": _allocate,
    "offset": _offset,
    "load": _load,
    "store": _store,
    "atomic": _atomic,
    "barrier": _barrier,
    "fence": _fence,
    "group": _group,
    "print": _print,
    "check": _check,
}
