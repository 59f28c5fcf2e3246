"""Find the arguments of a kernel that are offsets, such as ``s`` in ``x[item.get_id(0) + s]``.

An index that may be negative counts from the end of the array, and the check for it keeps drivers
from loading vectors. The ids of work-items are not negative, so with these arguments the indices
are not, either. A kernel therefore has its code twice, and chooses once by their values.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir, types

from dparray._compiler.numba.passes import analysis
from dparray._compiler.numba.types import DeviceArray, ItemType
from dparray.kernel_api import AddressSpace

_KEEP_SIGN = (operator.add, operator.iadd, operator.mul, operator.imul)


@analysis
def find_offsets(state: Any) -> None:
    """Find the offsets among the arguments of a kernel over a ``Range``."""
    state.metadata["offsets"] = _offsets(state) if _may_be_doubled(state) else ()


def _may_be_doubled(state: Any) -> bool:
    """Return whether a kernel may contain its code twice: without barriers and private arrays."""
    return isinstance(next(iter(state.args), None), ItemType) and not any(
        isinstance(each, DeviceArray) and each.addrspace == AddressSpace.PRIVATE
        for each in state.typemap.values()
    )


def _offsets(state: Any) -> tuple[int, ...]:
    blocks = state.func_ir.blocks.values()
    assigned = [each for block in blocks for each in block.find_insts(ir.Assign)]
    parts: dict[str, frozenset[int]] = {}  # the offsets in the sum that each variable holds
    sums: set[str] = set()
    is_changed = True
    while is_changed:
        is_changed = False
        for statement in assigned:
            name = statement.target.name
            read, is_sum = _read(state, statement.value)
            found = parts.get(name, frozenset()).union(
                *(parts.get(each, ()) for each in read),
                [statement.value.index] if _is_offset(state, statement) else (),
            )
            is_sum = bool(found) and (is_sum or not sums.isdisjoint(read))
            if found != parts.get(name, frozenset()) or (is_sum and name not in sums):
                is_changed = True
                parts[name] = found
                sums |= {name} if is_sum else set()
    indices = [each.index for block in blocks for each in block.find_insts(ir.SetItem)]
    indices += [each.index for block in blocks for each in block.find_exprs(op="getitem")]
    used = (parts[each.name] for each in indices if each.name in sums)
    return tuple(sorted(frozenset().union(*used)))


def _is_offset(state: Any, statement: Any) -> bool:
    is_integer = types.unliteral(state.typemap[statement.target.name]) == types.int64
    return isinstance(statement.value, ir.Arg) and is_integer


def _read(state: Any, value: Any) -> tuple[list[str], bool]:
    """Return the variables whose signs decide that of a value, and whether the value is a sum."""
    if isinstance(value, ir.Var):
        return [value.name], False
    if not isinstance(value, ir.Expr):
        return [], False
    if value.op in ("binop", "inplace_binop") and value.fn in _KEEP_SIGN:
        return [value.lhs.name, value.rhs.name], True
    if value.op in ("cast", "build_tuple", "phi", "getiter", "iternext", "pair_first"):
        return [each.name for each in value.list_vars()], False
    if value.op == "call" and getattr(state.typemap[value.func.name], "typing_key", None) is range:
        start, *_, step = value.args if len(value.args) == 3 else (value.args[0], None)
        is_counted = len(value.args) == 1  # a range that starts at 0
        return [each.name for each in (start, step) if each and not is_counted], True
    return [], False
