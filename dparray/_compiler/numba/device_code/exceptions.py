"""Operations that raise in Python: device code rejects them, or defines a result.

A work-item has no caller to raise an exception to. Numba's code would silently end it and lose its
results, and at a barrier those of its group. So nothing in a kernel ends a work-item. A fault that
the compiler can see is a compile error. A fault that occurs only at run time has a defined result,
and ``dp.config.debug`` and the simulator report it:

- a range or a slice whose step is 0 is empty;
- an index outside a tuple selects its first item;
- unpacking an array of a different length leaves the extra names undefined.

All other Numba code that may raise is rejected (:func:`_refuse`), unless LLVM proves that it is
unreachable. Only a kernel's option ``debug=True``, with which Numba checks bounds, still ends a
work-item before it accesses memory outside its arrays.

Loaded by ``_compiler.numba.device_code``.
"""

from __future__ import annotations

import operator
import re
import sys
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.core import ir as numba_ir
from numba.core.errors import TypingError
from numba.core.imputils import RefType, Registry, iternext_impl
from numba.core.lowering import Lower
from numba.core.typeinfer import CallConstraint
from numba.cpython import slicing, tupleobj

from dparray._compiler.numba.checks import OF_A_DIMENSION
from dparray._compiler.numba.diagnosis import MAY_RAISE
from dparray._compiler.numba.target import CallConv, TypingContext
from dparray._compiler.numba.types import GroupType, ItemType, NdItemType, SubGroupType
from dparray.kernel_api import LocalArray, PrivateArray

_registry = Registry()


def install(target_context: Any) -> None:
    """Register with the target everything that the import of this module did not."""
    target_context.install_registry(_registry)


# --- rejected constant arguments -----------------------------------------------------------------

#: The queries of a dimension, by type.
SPACES = (GroupType, ItemType, NdItemType, SubGroupType)
_ZERO_STEPS = {range: "the step of a range", slice: "the step of a slice"}


def _checked_arguments(function: Any, arguments: Any, keywords: Any) -> Any:
    """Return the arguments of a call; raise if a constant is not a valid dimension or step."""
    called = getattr(function, "typing_key", None)
    if called in (LocalArray, PrivateArray):
        _check_extents(called.__name__, keywords.get("shape", *arguments[:1]))
    elif called in (range, slice):
        _check_bounds(called, arguments)
        if len(arguments) == 3:
            check_step(called, arguments[2])
    elif isinstance(function, types.BoundFunction) and isinstance(function.this, SPACES):
        _check_dimension(function, (*arguments, *keywords.values()))
    return arguments


TypingContext.call_rules.append(_checked_arguments)


def _check_extents(what: str, shape: Any) -> None:
    extents = shape if isinstance(shape, types.BaseTuple) else (shape,)
    for extent in extents:
        if getattr(extent, "literal_value", 1) <= 0:
            raise TypingError(f"a size of a {what} must be positive; got {extent.literal_value}")


def _check_bounds(of: Any, bounds: Any) -> None:
    for bound in bounds:
        if isinstance(bound, types.Float | types.Complex):
            raise TypingError(f"the bounds of a {of.__name__} are integers; got {bound}")


def check_step(of: Any, step: Any) -> None:
    """Raise if the step of a ``range`` or a ``slice`` is a constant 0."""
    if isinstance(step, types.IntegerLiteral) and step.literal_value == 0:
        raise TypingError(f"{_ZERO_STEPS[of]} is not 0")


def _check_dimension(function: Any, arguments: Any) -> None:
    method = function.typing_key[1] if isinstance(function.typing_key, tuple) else ""
    if (
        len(arguments) == 1
        and OF_A_DIMENSION.fullmatch(str(method))
        and not _is_for_any_dimensions()
    ):
        check_dimension(function.this, arguments[0])


def _is_for_any_dimensions() -> bool:
    """Return whether the function being typed queries the number of dimensions itself."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code is not CallConstraint.resolve.__code__:
        frame = frame.f_back
    typeinfer = frame.f_locals.get("typeinfer")
    return typeinfer is not None and any(
        assignment.value.op == "getattr" and assignment.value.attr == "dimensions"
        for block in typeinfer.func_ir.blocks.values()
        for assignment in block.find_insts(numba_ir.Assign)
        if isinstance(assignment.value, numba_ir.Expr)
    )


def check_dimension(space: Any, dimension: Any) -> None:
    """Raise if a constant is not a dimension of an item or a group."""
    number = getattr(dimension, "literal_value", 0)
    if isinstance(number, int) and not 0 <= number < space.ndim:
        has = "only dimension 0" if space.ndim == 1 else f"dimensions 0 to {space.ndim - 1}"
        raise TypingError(f"the range of this kernel has {has}; got dimension {number}")


# --- exceptions -----------------------------------------------------------------------------------

_NEVER_REACHED = "tuple index out of range"  # The code below gives tuples valid indices.
_GUARDS = ("range() arg 3 must not be zero", "slice step cannot be zero")  # likewise
_BOUNDS = "index is out of bounds"

_return_exception = CallConv.return_user_exc


def _return_no_exception(
    self: Any,
    builder: Any,
    exception: Any,
    arguments: Any = None,
    loc: Any = None,
    func_name: Any = None,
) -> None:
    """Continue where Numba would return an exception to the caller, or reject the kernel."""
    message = str(arguments[0]) if arguments else ""
    if message == _BOUNDS:
        _return_exception(self, builder, exception, arguments, loc, func_name)
    elif message == _NEVER_REACHED:
        builder.unreachable()
    elif message not in _GUARDS and not _is_unpacking():
        _refuse(builder, f"{exception.__name__}: {message}" if message else exception.__name__)


CallConv.return_user_exc = _return_no_exception


def _is_unpacking() -> bool:
    """Return whether this call counts the items in an assignment to several names."""
    return sys._getframe(3).f_code is Lower.lower_expr.__code__


def _refuse(builder: Any, what: str) -> None:
    """Call a function that no device has, so that the kernel is rejected unless LLVM removes the
    call.
    """
    frame, location = sys._getframe(1), ""
    while frame is not None:
        if frame.f_code is Lower.lower_inst.__code__:  # The outermost function is the user's.
            loc = frame.f_locals["self"].loc
            location = f"File {loc.filename.rpartition('/')[2]}, line {loc.line}: "
        frame = frame.f_back  # type: ignore[assignment]
    name = re.sub(r"[^ -~]|[\"\\]", "?", f"{MAY_RAISE}{location}it may raise {what}")
    code = builder.function.function_type.return_type
    refused = cgutils.get_or_insert_function(builder.module, ir.FunctionType(code, []), name)
    refused.calling_convention = "spir_func"
    builder.ret(builder.call(refused, []))


# --- empty ranges and slices ----------------------------------------------------------------------


def _range(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    state = cgutils.create_struct_proxy(signature.return_type)(context, builder)
    start, stop, step = arguments
    is_zero = builder.icmp_unsigned("==", step, step.type(0))
    state.start = start
    state.stop = builder.select(is_zero, start, stop)
    state.step = builder.select(is_zero, step.type(1), step)
    return state._getvalue()


for _kind in (types.int32, types.int64, types.uint64):
    _registry.lower(range, _kind, _kind, _kind)(_range)


@_registry.lower(slice, types.VarArg(types.Any))
def _slice(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    made = slicing.slice_constructor_impl(context, builder, signature, arguments)
    if not signature.return_type.has_step:
        return made
    parts = context.make_helper(builder, signature.return_type, made)
    step = parts.step
    is_zero = builder.icmp_unsigned("==", step, step.type(0))
    parts.start = builder.select(is_zero, step.type(0), parts.start)
    parts.stop = builder.select(is_zero, step.type(0), parts.stop)
    parts.step = builder.select(is_zero, step.type(1), step)
    return parts._getvalue()


# --- items of tuples ------------------------------------------------------------------------------


def _item_of_tuple(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    items, index = arguments
    (kind, index_kind), count = signature.args, len(signature.args[0])
    if not count:
        return tupleobj.getitem_unituple(context, builder, signature, arguments)
    # The back end does not support phis of structs; structs in memory are split.
    place = cgutils.alloca_once(builder, context.get_value_type(kind.dtype))
    blocks = [builder.append_basic_block("item") for _ in range(count)]
    end = builder.append_basic_block("item.end")
    choice = builder.switch(index, blocks[0])
    for at, block in enumerate(blocks):
        choice.add_case(at, block)
        if index_kind.signed:  # indices from -count to -1 count from the end
            choice.add_case(at - count, block)
        with builder.goto_block(block):
            builder.store(builder.extract_value(items, at), place)
            builder.branch(end)
    builder.position_at_end(end)
    return builder.load(place)


for _tuple in (types.UniTuple, types.NamedUniTuple):
    for _kind in (types.intp, types.uintp):
        _registry.lower(operator.getitem, _tuple, _kind)(_item_of_tuple)


@_registry.lower("iternext", types.UniTupleIter)
@iternext_impl(RefType.BORROWED)
def _next_of_tuple(context: Any, builder: Any, signature: Any, arguments: Any, result: Any) -> None:
    (kind,) = signature.args
    iterator = context.make_helper(builder, kind, value=arguments[0])
    items = kind.container
    index = builder.load(iterator.index)
    is_valid = builder.icmp_signed("<", index, index.type(items.count))
    result.set_valid(is_valid)
    with builder.if_then(is_valid):
        item_of = typing.signature(kind.yield_type, items, types.intp)
        result.yield_(_item_of_tuple(context, builder, item_of, (iterator.tuple, index)))
        builder.store(builder.add(index, index.type(1), flags=["nsw"]), iterator.index)
