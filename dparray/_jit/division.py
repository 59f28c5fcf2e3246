"""``prange`` loops of native code, divided into parts for threads.

A loop becomes a call that shares out its iterations (:mod:`dparray._jit.parts`), and a function
that runs a part of them. Each part has its own reduction variables, combined in the order of the
parts. Their number does not depend on the number of threads, so neither do sums.
"""

from __future__ import annotations

import ast
from typing import Any, cast

import numpy as np

from dparray._jit.casts import NUMPY, Casts
from dparray._jit.inference import UNKNOWN, WEAK_INT, Inference, Value, constant
from dparray._jit.native import LINE, with_lines
from dparray._jit.parts import LINE_SPACING, REDUCTION_PARTS
from dparray._jit.shared_loops import REORDERED, SHARE
from dparray._jit.source import assigned_names, at_line, copied, definition_of, used_names

#: How many elements the copies of an array that is a reduction variable have together, unless that
#: would be fewer than some copies.
_COPIED_ELEMENTS = 1 << 22
_MIN_COPIES = 16
SYMBOLS = {ast.Add: "+", ast.Sub: "+", ast.Mult: "*", ast.BitOr: "|", ast.BitXor: "^",
            ast.BitAnd: "&"}  # fmt: skip
IDENTITIES: dict[type, int] = {
    ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.BitOr: 0, ast.BitXor: 0, ast.BitAnd: -1
}  # fmt: skip


def divided(
    loop: Any, types: Inference, reduced: dict[str, Value]
) -> tuple[list[ast.stmt], ast.FunctionDef, list[Any], bool]:
    """Return the statements that replace a loop, the function of a part, the operations in that
    with dtypes that only Numba decides, and whether it stores lines.

    Args:
        loop: the :class:`dparray._jit.regions.ParallelRegion`.
        types: the types of the function around it.
        reduced: the types of its reduction variables.
    """
    mark = loop.line
    name = f"{loop.source.function.__name__}_line_{mark}_part"
    head: list[str] = []
    given: dict[str, Any] = {}  # the types of the arguments of a part
    assigned = assigned_names(loop.body)
    starts = []
    for axis, (_, arguments) in enumerate(loop.loops):
        start, stop, step = range_of(arguments)
        texts = [ast.unparse(each) for each in (start, step)]
        for at, (word, bound) in enumerate((("start", start), ("step", step))):
            names = used_names(bound)
            if _is_sum(bound) and not names & assigned:  # a part computes it, too
                given |= {each: types.variables.get(each, UNKNOWN) for each in names}
            else:
                texts[at] = f"__{word}{axis}_{mark}"
                head.append(f"{texts[at]} = {ast.unparse(bound)}")
                given[texts[at]] = WEAK_INT
        starts.append((texts[0], texts[1]))
        count = f"len(range({texts[0]}, {ast.unparse(stop)}, {texts[1]}))"
        head.append(f"__count{axis}_{mark} = {count}")
        if axis:
            given[f"__count{axis}_{mark}"] = WEAK_INT
    total = " * ".join(f"__count{axis}_{mark}" for axis in range(len(starts)))
    counts = [total, f"{REDUCTION_PARTS}"]
    counts += [
        f"max({_MIN_COPIES}, {_COPIED_ELEMENTS} // ({each}.size + 1))"
        for each, kind in reduced.items()
        if kind.ndim
    ]
    # These cannot raise, so their lines are not stored.
    types.variables |= {f"__count{axis}_{mark}": WEAK_INT for axis in range(len(starts))}
    types.variables |= {f"__parts_{mark}": WEAK_INT, "__p": WEAK_INT}
    parts = f"min({', '.join(counts)})" if reduced else "0"
    head.append(f"__parts_{mark} = {parts}")
    given |= {each: types.variables.get(each, UNKNOWN) for each in loop.captured}
    first: list[str] = []
    after: list[str] = []
    last: list[str] = []
    for each in loop.reductions:
        kind, partial = reduced[each.name], f"__{each.name}_{mark}"
        made = _reduction(each, kind, partial, f"__parts_{mark}")
        for statements, text in zip((head, first, last, after), made, strict=True):
            statements.append(text)
        given[partial] = types.variables[partial] = Value(kind.dtype, kind.ndim + 1)
        if each.op in ("min", "max") or (kind.ndim and not each.is_update):
            given[each.name] = kind
        else:
            del given[each.name]
    numbers = ["__part", "__first", "__last"]
    kinds = {**given, **dict.fromkeys(numbers, WEAK_INT)}
    floats = {each for each, kind in reduced.items() if kind.dtype.kind in "fc" and not kind.ndim}
    run = _parsed(first, mark)
    run += copied([*loop.functions.values()]) + _parsed([loop_over(loop, starts)], mark)
    inner: Any = run[-1]
    while not isinstance(inner.body[-1], ast.Pass):
        inner = inner.body[-1]
    inner.body[-1:] = copied(loop.body)
    definition = definition_of(name, [*numbers, *given], run + _parsed(last, mark))
    inferred = Inference(definition, kinds, {**types.names, NUMPY: np})
    has_lines = with_lines(definition, inferred)
    definition.body += _parsed([f"{LINE}[0] = 0"] if has_lines else [], mark)
    casts = Casts(inferred)
    part = _InPart(floats).visit(casts.visit(definition))
    passed = "".join(f"{each}, " for each in (*given, LINE)[: None if has_lines else -1])
    call = f"{SHARE}({name}, {total}, __parts_{mark}, ({passed}))"
    return _parsed([*head, call, *after], mark), part, casts.doubts, has_lines


def _is_sum(node: ast.expr) -> bool:
    """Return whether an expression is an integer, a name, or a sum or difference of these."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _is_sum(node.left) and _is_sum(node.right)
    return isinstance(node, ast.Name) or type(constant(node)) is int


def range_of(arguments: list[ast.expr]) -> tuple[ast.expr, ast.expr, ast.expr]:
    """Return start, stop and step of a range."""
    given = list(arguments)
    if len(given) == 1:
        given.insert(0, ast.Constant(0))
    return given[0], given[1], given[2] if len(given) == 3 else ast.Constant(1)


def loop_over(loop: Any, starts: list[tuple[str, str]]) -> str:
    """Return the loops over the iterations of a part, with ``pass`` for the body.

    The innermost loop counts from 0, and ``max`` keeps the first index from being negative, so that
    compilers leave out the checks for negative indices and vectorize.
    """
    mark, text, indent, rest = loop.line, "", "", ""
    begin, end = "__first", "__last"
    if len(starts) > 1:
        count = f"__count{len(starts) - 1}_{mark}"
        text = f"for __at in range((__last - 1) // {count} - __first // {count} + 1):\n"
        text += f" __row = max(__first // {count}, 0) + __at\n"
        indent, rest = " ", "__row"
        for axis in reversed(range(len(starts) - 1)):
            at = f"{rest} % __count{axis}_{mark}" if axis else rest
            text += f" {loop.loops[axis][0]} = {_index(*starts[axis], at)}\n"
            rest = f"({rest} // __count{axis}_{mark})"
        begin = f"__first - __row * {count}"
        end = f"min(__last - __row * {count}, {count})"
    text += f"{indent}__from = max({begin}, 0)\n"
    text += f"{indent}for __at in range({end} - __from):\n"
    value = _index(*starts[-1], "(__from + __at)")
    return f"{text}{indent} {loop.loops[-1][0]} = {value}\n{indent} pass"


def _index(start: str, step: str, position: str) -> str:
    """Return the value of a loop variable."""
    scaled = position if step == "1" else f"{position} * {step}"
    return scaled if start == "0" else f"{start} + {scaled}"


def _reduction(each: Any, kind: Value, partial: str, parts: str) -> tuple[str, str, str, str]:
    """Return the statements of a reduction variable before the loop, in a part before and after its
    iterations, and after the loop.
    """
    name, is_order = each.name, each.op in ("min", "max")
    dtype = f"{NUMPY}.{'bool_' if kind.dtype.kind == 'b' else kind.dtype.name}"
    value = "0" if is_order else repr(np.array(IDENTITIES[each.op]).astype(kind.dtype).item())
    shape = f"({parts},) + {name}.shape" if kind.ndim else f"({parts},)"
    made = f"{partial} = {NUMPY}.full({shape}, {dtype}({value}), {dtype})"
    convert = "" if kind.is_weak or kind.ndim else dtype
    if kind.ndim and each.is_update:
        start, end = f"{name} = {partial}[__part]", "pass"
    elif is_order:
        start, end = (f"{name} = {convert}({name})"), f"{partial}[__part] = {name}"
    else:
        start, end = f"{name} = {convert}({value})", f"{partial}[__part] = {name}"
        if kind.ndim:
            start = f"{name} = {NUMPY}.full({name}.shape, {dtype}({value}), {dtype})"
    if is_order:
        function = each.op if kind.is_weak else f"{NUMPY}.{each.op}imum"
        combined = f"{name} = {function}({name}, {partial}[__p])"
    elif kind.ndim and each.is_update:
        combined = f"{name} {SYMBOLS[each.op]}= {partial}[__p]"
    else:
        combined = f"{name} = {convert}({name} {SYMBOLS[each.op]} {partial}[__p])"
    return made, start, end, f"for __p in range({parts}): {combined}"


def _parsed(texts: list[str], line: int) -> list[ast.stmt]:
    """Return generated statements with the location of a line in the user's file."""
    body: list[ast.stmt] = at_line(ast.parse("\n".join(texts)), line).body
    return body


class _InPart(ast.NodeTransformer):
    """Lets the updates of reduction variables be reordered, so that loops are vectorized, and gives
    each part its own place for lines.
    """

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Replace ``total += value``."""
        target = node.target
        if not isinstance(target, ast.Name):
            return node
        left = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        value = self.visit_BinOp(ast.copy_location(ast.BinOp(left, node.op, node.value), node))
        if isinstance(value, ast.BinOp):
            return self.generic_visit(node)
        return ast.copy_location(ast.Assign([target], cast("ast.expr", value)), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replace the place of a line."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == LINE:
            index = ast.parse(f"{LINE_SPACING} * __part + {LINE_SPACING}", mode="eval").body
            node.slice = at_line(index, node.lineno)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace ``total + value``."""
        left = node.left
        if type(node.op) in REORDERED and isinstance(left, ast.Name) and left.id in self.names:
            function = ast.Name(REORDERED[type(node.op)], ast.Load())
            made = ast.Call(function, [left, node.right], [])
            return ast.fix_missing_locations(ast.copy_location(made, node))
        return self.generic_visit(node)
