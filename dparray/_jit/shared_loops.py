"""Share the parts of a parallel loop in native code out to threads, and check their stacks."""

from __future__ import annotations

import ast
import functools
import importlib
from typing import Any

SHARE = "__share__"
#: The names of operators that may be reordered, by the class of the operator.
REORDERED = {ast.Add: "__plus__", ast.Sub: "__minus__", ast.Mult: "__times__"}
#: The errors of parts that Numba could not compile, the innermost first.
refusals: list[Exception] = []
_SYMBOL, _STACK_SYMBOL = "dparray_share_parts", "dparray_has_stack"


def _plus(x: Any, y: Any) -> Any:
    return x + y


def _minus(x: Any, y: Any) -> Any:
    return x - y


def _times(x: Any, y: Any) -> Any:
    return x * y


@functools.cache
def stack_check(address: int) -> Any:
    """Return a function for native code: 0 if the calling thread has little stack left.

    Args:
        address: of the C function that it calls.
    """
    types = importlib.import_module("numba").types
    importlib.import_module("llvmlite.binding").add_symbol(_STACK_SYMBOL, address)
    return types.ExternalFunction(_STACK_SYMBOL, types.int32())


@functools.cache
def sharing(address: int) -> dict[str, Any]:
    """Return the functions that generated code calls for parallel loops, by name.

    ``SHARE`` takes the compiled function of a part, the number of iterations, and the number of
    parts, where 0 is one that suits the threads. The last argument is a tuple of more arguments of
    the part, which come after its number and the first and the end of its iterations. An exception
    in a part leaves the call.

    The operators are for the updates of reductions. Loops with them are vectorized.

    Args:
        address: of the C function that shares out.
    """
    ir = importlib.import_module("llvmlite.ir")
    binding = importlib.import_module("llvmlite.binding")
    cgutils = importlib.import_module("numba.core.cgutils")
    numba = importlib.import_module("numba")
    types = numba.types
    intrinsic = importlib.import_module("numba.extending").intrinsic
    binding.add_symbol(_SYMBOL, address)
    pointer, word, status_type = cgutils.voidptr_t, ir.IntType(64), ir.IntType(32)

    @intrinsic
    def share(typing: Any, part: Any, total: Any, parts: Any, arguments: Any) -> Any:
        given = types.int64, types.int64, types.int64, *arguments.types
        try:
            called = part.get_call_type(typing, given, {})
        except Exception as error:  # Numba reports only that this call has no valid type.
            refusals.append(error)
            raise

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            compiled = part.dispatcher.overloads[called.args]
            context.add_linking_libs([compiled.library])
            packed = values[3]
            kind = ir.FunctionType(status_type, [pointer, pointer.as_pointer(), *[word] * 3])
            name = f"{compiled.fndesc.mangled_name}_part"
            function = ir.Function(builder.module, kind, builder.module.get_unique_name(name))
            function.linkage = "internal"
            inner = ir.IRBuilder(function.append_basic_block())
            data, error, *numbers = function.args
            place = inner.bitcast(data, packed.type.as_pointer())
            items = cgutils.unpack_tuple(inner, inner.load(place))
            for at, kind in enumerate(arguments):
                if isinstance(kind, types.Array):
                    # The caller keeps the array. Threads would slow each other down by counting
                    # its references, which each slice does.
                    array = context.make_array(kind)(context, inner, items[at])
                    array.meminfo = ir.Constant(array.meminfo.type, None)
                    items[at] = array._getvalue()
            status, _ = context.call_internal_no_propagate(
                inner, compiled.fndesc, called, [*numbers, *items]
            )
            inner.store(inner.bitcast(status.excinfoptr, pointer), error)
            zero = ir.Constant(status_type, 0)
            inner.ret(inner.select(status.is_error, status.code, zero))

            place = cgutils.alloca_once_value(builder, packed)
            error = cgutils.alloca_once_value(builder, ir.Constant(pointer, None))
            kind = ir.FunctionType(
                status_type, [pointer, pointer, word, word, pointer.as_pointer()]
            )
            share_parts = cgutils.get_or_insert_function(builder.module, kind, _SYMBOL)
            code = builder.call(
                share_parts,
                [builder.bitcast(function, pointer), builder.bitcast(place, pointer),
                 *values[1:3], error],
            )  # fmt: skip
            with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, zero)):
                found = builder.bitcast(builder.load(error), status.excinfoptr.type)
                failed = context.call_conv._get_return_status(builder, code, found)
                context.call_conv.return_status_propagate(builder, failed)
            return context.get_dummy_value()

        return types.none(part, types.int64, types.int64, arguments), generate

    reordered = numba.njit(fastmath={"reassoc", "nsz"})
    operators = {ast.Add: _plus, ast.Sub: _minus, ast.Mult: _times}
    return {SHARE: share} | {REORDERED[op]: reordered(each) for op, each in operators.items()}
