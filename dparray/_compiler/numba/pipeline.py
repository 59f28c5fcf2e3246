"""The pipeline from a function to LLVM IR: Numba's passes, omitted passes, and dparray's."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from types import ModuleType, NoneType
from typing import Any

import numpy as np
from numba.core import config, errors, event, ir, types
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.ir_utils import (
    GuardException,
    enforce_no_dels,
    fixup_var_define_in_scope,
    get_definition,
    guard,
    require,
)
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonRewrites,
)
from numba.core.untyped_passes import DeadBranchPrune, FixupArgs, InlineClosureLikes

from dparray._compiler.numba.advice import find_advice
from dparray._compiler.numba.formatted_prints import print_formatted
from dparray._compiler.numba.offsets import find_offsets
from dparray._compiler.numba.passes import change
from dparray._compiler.numba.types import ConstantType
from dparray._language.constants import plain
from dparray._language.scalar_functions import scalar_function
from dparray.kernel_api import LocalArray, PrivateArray

TARGET = "dparray"


# --- omitted passes -------------------------------------------------------------------------------
# A tenth of the time was spent in passes that have no effect here.


@register_pass(mutates_CFG=True, analysis_only=False)
class _InlineClosures(InlineClosureLikes):
    """Numba's pass, for functions with inner functions, lists or its other targets only."""

    _name = "dparray_inline_closures"

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        if any(_may_be_inlined(each) for block in blocks.values() for each in block.body):
            return bool(super().run_pass(state))
        fixup_var_define_in_scope(blocks)
        return True


_INLINED = frozenset({"make_function", "build_list"})
_INLINED_BY_NAME = frozenset({"reduce", "stencil", "list"})


def _may_be_inlined(statement: Any) -> bool:
    value = getattr(statement, "value", None)
    if isinstance(value, ir.Expr):
        is_named = value.op == "getattr" and value.attr in _INLINED_BY_NAME
        return is_named or value.op in _INLINED
    if isinstance(value, ir.Global | ir.FreeVar):
        referred = value.value
        name = getattr(referred, "__name__", value.name)
        return name in _INLINED_BY_NAME or isinstance(referred, list)
    return False


@register_pass(mutates_CFG=True, analysis_only=False)
class _RewriteTyped(NopythonRewrites):
    """Numba's pass, for functions that compute arrays or have strings; it rewrites nothing else."""

    _name = "dparray_rewrite_typed"

    def run_pass(self, state: Any) -> bool:
        typemap = state.typemap
        if any(isinstance(each, types.StringLiteral) for each in typemap.values()) or any(
            isinstance(typemap[each.target.name], types.Array)
            for block in state.func_ir.blocks.values()
            for each in block.find_insts(ir.Assign)
            if isinstance(each.value, ir.Expr) and each.value.op in _COMPUTING
        ):
            return bool(super().run_pass(state))
        return False


_COMPUTING = frozenset({"unary", "binop", "inplace_binop", "call"})
_INSTEAD: dict[Any, Any] = {InlineClosureLikes: _InlineClosures, NopythonRewrites: _RewriteTyped}
for _theirs, _ours in _INSTEAD.items():
    _ours._name = _theirs._name  # the name in messages


class _Passes(PassManager):
    """Numba's passes, without the events that Numba sends for each pass."""

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:
        is_told = event._registered.get("numba:run_pass") or config.DEBUG
        if is_told or self._print_after or self._print_before or self._print_wrap:
            super()._runPass(index, pss, internal_state)
            return
        pss.analysis = self._analysis
        with errors.new_error_context("Pass {name}", name=pss.name()):
            pss.run_initialization(internal_state)
            pss.run_pass(internal_state)
            pss.run_finalizer(internal_state)
        if isinstance(pss, FunctionPass):
            enforce_no_dels(internal_state.func_ir)


# --- dparray's passes -----------------------------------------------------------------------------


@register_pass(mutates_CFG=True, analysis_only=False)
class _Backend(NoPythonBackend):
    """The last pass, which registers the function under a key."""

    _name = "dparray_backend"

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        key = object()
        state.cr = state.cr._replace(entry_point=key)
        state.targetctx.insert_user_function(key, state.cr.fndesc, [state.cr.library])
        return True


@change()
def _place_constants(state: Any) -> bool:
    """Replace the arguments of constant parameters by their values."""
    placed = False
    for block in state.func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            argument = statement.value
            constant = state.args[argument.index] if isinstance(argument, ir.Arg) else None
            if isinstance(constant, ConstantType):
                placed = True
                # Numba treats tuples and types as constants if they are globals.
                if isinstance(constant.value, tuple | type):
                    statement.value = ir.Global(argument.name, constant.value, argument.loc)
                else:
                    statement.value = ir.Const(constant.value, argument.loc)
    return placed


@change()
def _plain_constants(state: Any) -> bool:
    """Replace instances of number subclasses and members of enumerations by plain numbers, and
    scalar functions of NumPy by those of the kernel language.

    Numba would write their printed form into the module, and does not treat members of an
    ``IntFlag`` as numbers.
    """
    blocks = state.func_ir.blocks.values()
    changed = False
    known: dict[str, Any] = {}  # the values of variables with a single definition
    for statement in (each for block in blocks for each in block.find_insts(ir.Assign)):
        value = statement.value
        if isinstance(value, ir.Global | ir.FreeVar | ir.Const):
            number = scalar_function(value.value) or plain(value.value)
            if statement.target.is_temp:
                known[statement.target.name] = value.value
            if number is not value.value:
                value.value = number
                changed = True
        elif isinstance(value, ir.Expr) and value.op == "getattr":
            owner = known.get(value.value.name)
            if not isinstance(owner, ModuleType | enum.Enum | enum.EnumMeta):
                continue
            member = known[statement.target.name] = getattr(owner, value.attr, None)
            function, number = scalar_function(member), plain(member)
            # Members of a plain Enum are not numbers, and Numba handles numbers in modules.
            if function is not None:
                statement.value = ir.Global(value.attr, function, value.loc)
                changed = True
                continue
            if isinstance(owner, ModuleType):
                if number is member:
                    continue
            elif not isinstance(number, int | float | complex | np.generic):
                continue
            statement.value = ir.Const(number, value.loc)
            changed = True
    return changed


_SHAPED = (LocalArray, PrivateArray)
_FOLDED = (abs, int, len, max, min)


@change()
def _fold_shapes(state: Any) -> bool:
    """Replace the shapes of private and local arrays that are computed from constants."""
    func_ir, folded = state.func_ir, False
    for block in func_ir.blocks.values():
        for statement in list(block.find_insts(ir.Assign)):
            call = statement.value
            if not isinstance(call, ir.Expr) or call.op != "call":
                continue
            if guard(_constant, func_ir, call.func) not in _SHAPED:
                continue
            named = dict(call.kws)
            argument = named.get("shape", *call.args[:1])
            value = guard(_constant, func_ir, argument)
            if not isinstance(value, int | tuple):
                continue
            # A new variable: the old one may have other uses, and would become a literal there.
            shape = block.scope.redefine("$dparray_shape", call.loc)
            kind = ir.Global if isinstance(value, tuple) else ir.Const
            constant = (shape.name, value) if isinstance(value, tuple) else (value,)
            assignment = ir.Assign(kind(*constant, call.loc), shape, call.loc)
            block.body.insert(block.body.index(statement), assignment)
            call.args = [shape if each is argument else each for each in call.args]
            call.kws = [(name, shape if each is argument else each) for name, each in call.kws]
            folded = True
    return folded


def _constant(func_ir: Any, variable: Any) -> Any:
    """Return the value of a variable that is assigned once, and computed from constants.

    Raises:
        GuardException: it is not.
    """
    value = get_definition(func_ir, variable)

    def of(each: Any) -> Any:
        return _constant(func_ir, each)

    if isinstance(value, ir.Const | ir.Global | ir.FreeVar):
        return plain(value.value)
    require(isinstance(value, ir.Expr))
    try:
        if value.op == "getattr":
            owner = of(value.value)
            require(isinstance(owner, ModuleType | enum.Enum | enum.EnumMeta))
            return plain(getattr(owner, value.attr))
        if value.op == "build_tuple":
            return tuple(map(of, value.items))
        if value.op == "getitem":
            return of(value.value)[of(value.index)]
        if value.op in ("binop", "inplace_binop"):
            return value.fn(of(value.lhs), of(value.rhs))
        if value.op == "unary":
            return value.fn(of(value.value))
        require(value.op == "call" and not value.kws)
        function = of(value.func)
        require(function in _FOLDED)
        return function(*map(of, value.args))
    except (AttributeError, TypeError, ArithmeticError, ValueError, LookupError):
        raise GuardException from None


@change(mutates_blocks=True)
def _leave_out_assertions(state: Any) -> bool:
    """Remove assertions, as ``python -O`` does; the ``dp.config.debug`` version checks them."""
    blocks = state.func_ir.blocks
    failing = {label for label, block in blocks.items() if _is_assertion(block)}
    if not failing:
        return False
    for block in blocks.values():
        end = block.body[-1]
        if isinstance(end, ir.Branch) and end.truebr in failing:
            block.body[-1] = ir.Jump(end.falsebr, end.loc)
        elif isinstance(end, ir.Branch) and end.falsebr in failing:
            block.body[-1] = ir.Jump(end.truebr, end.loc)
    for label in compute_cfg_from_blocks(blocks).dead_nodes():
        del blocks[label]
    if any(_is_assertion(block) for block in blocks.values()):
        raise errors.TypingError("an assertion always fails")
    return True


def _is_assertion(block: Any) -> bool:
    """Return whether a block begins to raise ``AssertionError``, the only one `refusal` permits."""
    return any(
        isinstance(each.value, ir.Global | ir.Const) and each.value.value is AssertionError
        for each in block.find_insts(ir.Assign)
    )


# --- conditions of loops --------------------------------------------------------------------------
# CPython compiles the condition of a ``while`` twice: at the start of the loop, the target of
# ``continue``, and at the end of its body. For ``while True`` it creates two positions, one of them
# empty. Either way, one loop becomes two: work-items that ``continue`` and those that do not would
# call a group function in the condition at two places, or in another order, and the behavior of a
# divergent group is undefined.


def _in_order(statements: Sequence[Any]) -> list[Any]:
    """Return statements with the assignments to phis ordered by stack position.

    Numba stores the phis of a block in a set, so their order is arbitrary; all precede its end.
    """

    def place(statement: Any) -> int:
        target = statement.target.name if isinstance(statement, ir.Assign) else ""
        return int(target.rpartition(".")[2]) if target.startswith("$phi") else -1

    (*rest, last) = statements
    return [*sorted(rest, key=place), last]


class _Likeness:
    """Return whether statements are copies of others, except for names of temporary variables."""

    def __init__(self, blocks: dict[int, Any]) -> None:
        self.blocks = blocks
        self.names: dict[str, str] = {}
        self.pairs: set[tuple[int, int]] = set()

    def are_alike(self, first: Sequence[Any], second: Sequence[Any]) -> bool:
        return len(first) == len(second) and all(
            a.loc.line == b.loc.line and self._are_alike(a, b)
            for a, b in zip(_in_order(first), _in_order(second), strict=True)
        )

    def _are_alike(self, a: Any, b: Any) -> bool:
        if type(a) is not type(b):
            return False
        if isinstance(a, ir.Var):
            return self.names.get(a.name, a.name) == b.name
        if isinstance(a, tuple | list):
            return len(a) == len(b) and all(map(self._are_alike, a, b))
        if isinstance(a, ir.Assign):
            if not self._are_alike(a.value, b.value):
                return False
            if a.target.name.startswith("$") and b.target.name.startswith("$"):
                self.names[a.target.name] = b.target.name
                return True
            return bool(a.target.name == b.target.name)
        if isinstance(a, ir.Expr):
            mine, other = dict(a._kws), dict(b._kws)
            return (
                a.op == b.op
                and mine.keys() == other.keys()
                and all(self._are_alike(mine[key], other[key]) for key in mine)
            )
        if isinstance(a, ir.Const | ir.Global | ir.FreeVar):
            return self._are_alike(a.value, b.value)
        if isinstance(a, ir.Branch):
            return (
                self._are_alike(a.cond, b.cond)
                and self._go_alike(a.truebr, b.truebr)
                and self._go_alike(a.falsebr, b.falsebr)
            )
        if isinstance(a, ir.Jump):
            return self._go_alike(a.target, b.target)
        if isinstance(a, ir.Return):
            return self._are_alike(a.value, b.value)
        if isinstance(a, int | float | str | complex | NoneType):
            return bool(a == b)
        return a is b

    def _go_alike(self, first: int, second: int) -> bool:
        first, second = (_destination(self.blocks, label) for label in (first, second))
        if first == second or (first, second) in self.pairs:
            return True
        self.pairs.add((first, second))
        return self.are_alike(self.blocks[first].body, self.blocks[second].body)


def _calls(body: Sequence[Any]) -> bool:
    """Return whether statements call anything except ``bool``, which Numba puts before branches."""
    truths = {
        each.target.name
        for each in body
        if isinstance(each, ir.Assign)
        and isinstance(each.value, ir.Global)
        and each.value.value is bool
    }
    return any(
        isinstance(each, ir.Assign)
        and isinstance(each.value, ir.Expr)
        and each.value.op == "call"
        and each.value.func.name not in truths
        for each in body
    )


def _destination(blocks: dict[int, Any], label: int) -> int:
    """Return the label of the first nonempty block on the path from a block.

    From Python 3.12 on, an empty block is between the copy of a condition and the loop's body.
    """
    passed: set[int] = set()
    while label not in passed:
        passed.add(label)
        (*rest, last) = blocks[label].body
        if rest or not isinstance(last, ir.Jump):
            break
        label = last.target
    return label


def _starts(blocks: dict[int, Any]) -> set[int]:
    """Return the labels to which loops jump back."""
    return {
        target
        for label, block in blocks.items()
        for target in block.terminator.get_targets()
        if target <= label
    }


def _skip_empty_starts(blocks: dict[int, Any]) -> bool:
    """Redirect jumps to an empty block to its successor, if loops begin with it."""
    instead = {}
    for start in _starts(blocks):
        (*rest, last) = blocks[start].body
        if not rest and isinstance(last, ir.Jump) and last.target != start:
            instead[start] = last.target
    for block in blocks.values():
        last = block.terminator
        if any(target in instead for target in last.get_targets()):
            block.body[-1] = _retargeted(last, instead)
    return bool(instead)


def _retargeted(last: Any, instead: dict[int, int]) -> Any:
    if isinstance(last, ir.Jump):
        return ir.Jump(instead.get(last.target, last.target), last.loc)
    targets = (instead.get(each, each) for each in (last.truebr, last.falsebr))
    return ir.Branch(last.cond, *targets, last.loc)


@change(mutates_blocks=True)
def _merge_conditions(state: Any) -> bool:
    """Redirect the end of a loop's body to the original of its copied condition."""
    blocks = state.func_ir.blocks
    merged = _skip_empty_starts(blocks)
    continued = _starts(blocks)
    for start in sorted(continued):
        condition = blocks[start].body
        for label, block in blocks.items():
            at = len(block.body) - len(condition)
            if label <= start or at < 0 or not isinstance(block.terminator, ir.Branch):
                continue
            likeness = _Likeness(blocks)
            if not likeness.are_alike(condition, block.body[at:]):
                continue
            # Blocks are in program order: those in between belong to the loop.
            last = max([label, *(copied for _, copied in likeness.pairs)])
            if any(_calls(blocks[each].body) for each in blocks if start <= each <= last):
                block.body[at:] = [ir.Jump(start, block.terminator.loc)]
                merged = True
    if merged:
        for label in compute_cfg_from_blocks(blocks).dead_nodes():
            del blocks[label]
    return merged


class Pipeline(CompilerBase):
    """The pipeline from a function to LLVM IR; the last pass registers it for its callers."""

    last: Any = _Backend
    finds: Any = ()

    def define_pipelines(self) -> list[Any]:
        steps = _Passes(TARGET)
        for part in (
            DefaultPassBuilder.define_untyped_pipeline(self.state),
            DefaultPassBuilder.define_typed_pipeline(self.state),
        ):
            steps.passes += [(_INSTEAD.get(step, step), what) for step, what in part.passes]
        steps.add_pass_after(_leave_out_assertions, FixupArgs)
        steps.add_pass_after(_merge_conditions, FixupArgs)
        # Strings in assertions and dead branches are no error.
        steps.add_pass_after(print_formatted, DeadBranchPrune)
        steps.add_pass_after(_place_constants, _leave_out_assertions)
        steps.add_pass_after(_plain_constants, _place_constants)
        steps.add_pass_after(_fold_shapes, _plain_constants)
        for find in self.finds:
            steps.add_pass(find, "analyze")
        steps.add_pass(IRLegalization, "ensure that the IR is legal")
        steps.add_pass(NativeLowering, "lower to LLVM IR")
        steps.add_pass(self.last, "finish")
        steps.finalize()
        return [steps]


class KernelPipeline(Pipeline):
    """The pipeline for kernels, which nothing calls, so they are not registered."""

    last = NoPythonBackend
    finds: Any = (find_advice, find_offsets)
