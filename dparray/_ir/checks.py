"""Checks on devices: a failed ``check`` is stored in a record, which the host reads afterwards.

The attribute of a ``check`` is the number of its site, the number of indices among its operands
after the condition, and a bit for each index that is unsigned. The other operands are a shape. The
record counts the faults, and describes the first one.
"""

from __future__ import annotations

from dparray._ir.instructions import Function, Op, Parameter, constant, walk
from dparray._ir.types import BOOL, GLOBAL, I64, Pointer

#: The most indices, and the most dimensions of a shape, that a record describes.
MAX_NUMBERS = 8
#: The places in a record after the number of faults.
SITE, INDEX_COUNT, UNSIGNED, DIMENSIONS, INDICES = range(1, 6)
SHAPE = INDICES + MAX_NUMBERS
RECORD_SIZE = SHAPE + MAX_NUMBERS

_MEMORY = Pointer(I64, GLOBAL)


def record_checks(function: Function, argument: str = "record") -> None:
    """Replace the checks of a program by stores into a record, which is its last argument.

    Args:
        function: the program.
        argument: the name of the record, an array of :data:`RECORD_SIZE` integers that are 0.
    """
    parts = (
        ("count", I64),
        ("itemsize", I64),
        ("pointer", _MEMORY),
        ("shape", I64),
        ("stride", I64),
    )
    parameters = [
        Op("parameter", kind, attribute=Parameter(argument, part)) for part, kind in parts
    ]
    function.parameters += parameters
    record = parameters[2]
    bodies = [function.body, *(body for op in walk(function.body) for body in op.bodies)]
    for body in bodies:
        body[:] = [_recorded(op, record) if op.name == "check" else op for op in body]


def _recorded(check: Op, record: Op) -> Op:
    """Return the condition that counts a fault, and describes it if it is the first one."""
    holds, *numbers = check.operands
    site, count, unsigned = check.attribute
    indices, shape = numbers[:count][:MAX_NUMBERS], numbers[count:][:MAX_NUMBERS]
    values = {SITE: site, INDEX_COUNT: len(indices), UNSIGNED: unsigned, DIMENSIONS: len(shape)}
    stored = {position: constant(value, I64) for position, value in values.items()}
    stored |= {INDICES + position: index for position, index in enumerate(indices)}
    stored |= {SHAPE + position: size for position, size in enumerate(shape)}
    place = check.place

    describing: list[Op] = []
    for position, value in stored.items():
        address = Op("offset", _MEMORY, [record, constant(position, I64)], place=place)
        describing += [address, Op("store", None, [address, value], place=place)]
    attribute = ("fetch_add", "device", ("relaxed",))
    before = Op("atomic", I64, [record, constant(1, I64)], attribute, place)
    is_first = Op("eq", BOOL, [before, constant(0, I64)], place=place)
    first = _condition(is_first, describing, [])
    return _condition(holds, [], [before, is_first, first])


def _condition(test: Op, then: list[Op], otherwise: list[Op]) -> Op:
    condition = Op("if", operands=[test], place=test.place)
    condition.bodies = [
        [*body, Op("leave", attribute=condition, place=test.place)] for body in (then, otherwise)
    ]
    return condition
