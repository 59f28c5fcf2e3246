"""Warnings about kernels that compile: floats truncated to integers, dimensions not read.

Numba passes find them when a kernel is compiled. They are stored with the compiled kernel, also on
disk, so a kernel from the cache warns like a newly compiled one.
"""

from __future__ import annotations

import linecache
from typing import Any

from numba.core import ir, types
from numba.core.utils import OPERATORS_TO_BUILTINS

from dparray._compiler.numba.passes import analysis
from dparray._compiler.numba.types import GroupType, ItemType, NdItemType
from dparray._language.advice import Advice
from dparray.kernel_api import vec_store


@analysis
def find_advice(state: Any) -> None:
    """Collect the warnings of a kernel."""
    first = state.func_id.firstlineno
    cuts = sorted(_cuts(state))
    line, unread = _unread_dimensions(state)
    state.metadata["advice"] = Advice(
        tuple((line - first, text) for line, text in cuts),
        line - first,
        unread,
        _first_double(state),
    )


def _first_double(state: Any) -> str:
    """Return where a kernel first computes in float64, with the operands; empty if nowhere."""
    typemap = state.typemap
    first: tuple[int, str] | None = None
    for block in state.func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            value, line = statement.value, statement.loc.line
            if not _is_double(typemap[statement.target.name]) or (first and first[0] <= line):
                continue
            if isinstance(value, ir.Arg):
                return f"its argument {value.name} is {typemap[statement.target.name]}"
            elif isinstance(value, ir.Expr) and value.op != "cast":
                first = line, f"{_operation(value, typemap)} is {typemap[statement.target.name]}"
    if first is None:
        return ""
    source = linecache.getline(state.func_id.filename, first[0]).strip()
    return first[1] + (f" in `{source}`" if source else "")


def _is_double(numba_type: Any) -> bool:
    return types.unliteral(numba_type) in (types.float64, types.complex128)


def _operation(value: ir.Expr, typemap: Any) -> str:
    """Return an expression by the types of its operands, such as ``float32 * float64``."""
    if value.op in ("binop", "inplace_binop"):
        left, right = (types.unliteral(typemap[each.name]) for each in (value.lhs, value.rhs))
        sign = OPERATORS_TO_BUILTINS.get(value.fn, "and").rstrip("=")
        return f"{left} {sign} {right}"
    if value.op == "call":
        name = getattr(typemap[value.func.name], "typing_key", value.func.name)
        operands = ", ".join(str(types.unliteral(typemap[each.name])) for each in value.args)
        return f"{getattr(name, '__name__', name)}({operands})"
    return "an element that it reads" if value.op in ("getitem", "static_getitem") else value.op


def _cuts(state: Any) -> set[tuple[int, str]]:
    """Return the lines in which floats are written into integer arrays, with the warning."""
    found = set()
    for block in state.func_ir.blocks.values():
        stores = [
            (each.loc.line, state.typemap[each.target.name], state.typemap[each.value.name])
            for each in block.find_insts((ir.SetItem, ir.StaticSetItem))
        ]
        for call in block.find_exprs(op="call"):
            if getattr(state.typemap[call.func.name], "typing_key", None) is vec_store:
                array, _, vector = state.calltypes[call].args
                stores.append((call.loc.line, array, vector.dtype))
        for line, array, value in stores:
            value = types.unliteral(value)
            if isinstance(getattr(array, "dtype", None), types.Integer) and isinstance(
                value, types.Float
            ):
                text = (
                    f"{value} is written into an array of {array.dtype}, which drops the fraction; "
                    "write int(...), or use an array of floats"
                )
                found.add((line, text))
    return found


def _unread_dimensions(state: Any) -> tuple[int, tuple[int, ...]]:
    """Return the dimensions that a kernel does not read, and the line that reads others."""
    typemap = state.typemap
    nothing = state.func_id.firstlineno, ()
    spaces = [each for each in state.args[:1] if isinstance(each, ItemType | NdItemType)]
    if not spaces or spaces[0].ndim == 1:
        return nothing
    methods: dict[str, str] = {}  # variables that hold methods of an item or a group
    read: dict[int, int] = {}
    is_written = False
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            value = getattr(statement, "value", None)
            is_written |= isinstance(statement, ir.SetItem | ir.StaticSetItem)
            if isinstance(statement, ir.Assign) and isinstance(value, ir.Expr):
                if value.op == "getattr" and _is_space(typemap[value.value.name]):
                    methods[statement.target.name] = value.attr
                    if "linear" in value.attr or value.attr == "get_sub_group":
                        return nothing
                    continue
                if value.op == "call" and value.func.name in methods:
                    if methods[value.func.name].endswith("_id"):
                        number = _number(state, value)
                        if number is None:
                            return nothing
                        read.setdefault(number, value.loc.line)
                    continue
            if isinstance(statement, ir.Assign) and isinstance(value, ir.Var | ir.Arg):
                continue  # another name of it
            if isinstance(statement, ir.Assign | ir.Return | ir.SetItem | ir.StaticSetItem) and any(
                _is_space(typemap.get(each.name))
                for each in statement.list_vars()
                if each is not getattr(statement, "target", None)
            ):
                return nothing  # A called function may read all of them.
    if not is_written:  # Atomic operations may all address one element on purpose.
        return nothing
    unread = tuple(each for each in range(spaces[0].ndim) if each not in read)
    return min(read.values(), default=state.func_id.firstlineno), unread


def _is_space(numba_type: Any) -> bool:
    return isinstance(numba_type, ItemType | NdItemType | GroupType)


def _number(state: Any, call: Any) -> int | None:
    """Return the dimension that a method is called with, if it is a literal."""
    given = [*call.args, *(each for _, each in call.kws)]
    kind = state.typemap[given[0].name] if len(given) == 1 else None
    return kind.literal_value if isinstance(kind, types.IntegerLiteral) else None
