"""Functions that move or create data, such as reshape, gather, scatter, index and prng."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from dparray.tilelang.elementwise import (
    FUNCTIONS,
    PRNG_COLUMNS,
    Function,
    binary,
    integer,
    mathematics,
    shape_of,
    sizes_of,
)
from dparray.tilelang.tile_syntax import Call
from dparray.tilelang.values import (
    FLOAT32,
    INT32,
    UINT32,
    Builder,
    Constant,
    Group,
    Literal,
    Tensor,
    Unknown,
    Value,
    floatx,
    shown,
)


def _tensor(builder: Builder, call: Call, value: Value, at: int = 0) -> Tensor:
    """Return an operand, which must be a tensor."""
    if isinstance(value, Unknown):
        return Tensor(None, None)
    if not isinstance(value, Tensor):
        kind = "a tuple" if isinstance(value, Group) else "a number"
        raise builder.type_error(
            call.operands[at].position,
            f"{call.function} of {kind}",
            "it takes a tensor",
        )
    return value


def reshape(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``reshape(T, s1, ...)``: the elements in row-major order, in another shape."""
    given = _tensor(builder, call, operands[0])
    shape = sizes_of(builder, call, operands[1:])
    if given.shape is not None and None not in given.shape and None not in shape:
        count, wanted = prod(given.shape), prod(shape)  # type: ignore[arg-type]
        if count != wanted:
            raise builder.shape_error(
                call.position,
                f"reshape of {given.shape}, which has {count} elements, to {shape}, "
                f"which has {wanted}",
                "reshape keeps the number of elements",
            )
    return builder.emit("reshape", [given], shape, given.dtype)


def index(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``index(T, n)``: each element's coordinate on axis ``n``, in the shape of ``T``."""
    given = _tensor(builder, call, operands[0])
    axis = integer(builder, operands[1], call, "the axis")
    if axis is not None and given.shape is not None and not 0 <= axis < len(given.shape):
        raise builder.shape_error(
            call.operands[1].position,
            f"axis {axis} of a tensor of rank {len(given.shape)}",
            f"axes count from 0 to {len(given.shape) - 1}"
            if given.shape
            else "a tensor of rank 0 has no axis",
        )
    return builder.emit("index", [], given.shape, INT32, axis)


def shape(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``shape(T)``: a vector of the sizes of ``T``."""
    given = _tensor(builder, call, operands[0])
    count = None if given.shape is None else len(given.shape)
    return builder.emit("values", [], (count,), INT32, given.shape)


def _check_indices(builder: Builder, call: Call, value: Value) -> Tensor | Literal:
    if isinstance(value, Unknown):
        return Tensor(None, None)
    if isinstance(value, Group):
        raise builder.type_error(
            call.operands[1].position, f"{call.function} by a tuple", "use a tensor"
        )
    given = builder.operand(value, call.operands[1].position)
    if given.dtype is not None and given.dtype != INT32:
        raise builder.type_error(
            call.operands[1].position,
            f"the indices of {call.function} are {given.dtype}",
            "they are int32; convert with as_int(I, 32)",
        )
    return given


def gather(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``gather(D, I)``: ``D[clamp(I[i...]), ...]`` at ``[i..., ...]``."""
    data = _tensor(builder, call, operands[0])
    indices = _check_indices(builder, call, operands[1])
    where = shape_of(indices)
    if data.shape is not None and not data.shape:
        raise builder.shape_error(
            call.operands[0].position,
            "gather from a tensor of rank 0",
            "it takes rows: the data has rank 1 or more",
        )
    result = None if where is None or data.shape is None else (*where, *data.shape[1:])
    if data.shape is not None and data.shape[0] == 0 and where is not None and 0 not in where:
        raise builder.shape_error(
            call.operands[0].position,
            f"gather from {data.shape}, which has no row",
            "the data has one row at least",
        )
    return builder.emit("gather", [data, indices], result, data.dtype)


def scatter(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``scatter(E, I, V)``: each ``E[i...]`` added at row ``clamp(I[i...])`` of zeros."""
    values = _tensor(builder, call, operands[0])
    indices = _check_indices(builder, call, operands[1])
    size = _tensor(builder, call, operands[2], 2)
    where = shape_of(indices)
    if size.shape is not None and not size.shape:
        raise builder.shape_error(
            call.operands[2].position,
            "scatter to the size of a tensor of rank 0",
            "the third argument has rank 1 or more; its first size is the result's",
        )
    if where is None or values.shape is None or size.shape is None:
        return Tensor(None, values.dtype)
    if len(values.shape) < len(where) or any(
        None not in (one, other) and one != other
        for one, other in zip(values.shape, where, strict=False)
    ):
        raise builder.shape_error(
            call.position,
            f"scatter of {shown(values.shape)} by indices of {shown(where)}",
            "the shape of the values begins with that of the indices",
        )
    if size.shape[0] == 0 and 0 not in values.shape:
        raise builder.shape_error(
            call.operands[2].position,
            "scatter to no row",
            "the third argument has one row at least",
        )
    result = (size.shape[0], *values.shape[len(where) :])
    return builder.emit("scatter", [values, indices], result, values.dtype)


def group(builder: Builder, call: Call, operands: Sequence[Value]) -> Value:
    """Return ``tuple(a, ...)``."""
    return Group(tuple(operands))


def element(builder: Builder, call: Call, operands: Sequence[Value]) -> Value:
    """Return ``element(t, n)``: a member of a tuple."""
    given = operands[0]
    if isinstance(given, Unknown):
        return given
    if not isinstance(given, Group):
        raise builder.type_error(
            call.operands[0].position,
            "element of what is not a tuple",
            "tuples are made by tuple(A, B)",
        )
    at = integer(builder, operands[1], call, "the position")
    if at is None:
        return Unknown()
    if not 0 <= at < len(given.members):
        raise builder.type_error(
            call.operands[1].position,
            f"member {at} of a tuple of {len(given.members)}",
            f"members count from 0 to {len(given.members) - 1}",
        )
    member: Value = given.members[at]
    return member


def prng_step(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``prng_step(S, s1, ...)``: the next state, and uniform numbers of a shape."""
    state = _tensor(builder, call, operands[0])
    wanted = (3, PRNG_COLUMNS)
    if state.dtype is not None and state.dtype != UINT32:
        raise builder.type_error(
            call.operands[0].position,
            f"a state of {state.dtype}",
            "the state of prng_step is uint32",
        )
    if state.shape is not None and (
        len(state.shape) != 2
        or any(size not in (None, want) for size, want in zip(state.shape, wanted, strict=True))
    ):
        raise builder.shape_error(
            call.operands[0].position,
            f"a state of shape {shown(state.shape)}",
            f"the state of prng_step has shape {wanted}",
        )
    shape = sizes_of(builder, call, operands[1:])
    following = builder.emit("prng_state", [state], wanted, UINT32, shape)
    numbers = builder.emit("prng_value", [state], shape, FLOAT32)
    return Group((following, numbers))


def prng_part(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``prng_state(p)``, ``prng_value(p)``: one of the two results of a step."""
    given = operands[0]
    if isinstance(given, Unknown):
        return Tensor(None, UINT32 if call.function == "prng_state" else FLOAT32)
    if not isinstance(given, Group) or len(given.members) != 2:
        raise builder.type_error(
            call.position,
            f"{call.function} of what is not a step",
            "it takes the result of prng_step(S, sizes)",
        )
    member: Value = given.members[call.function == "prng_value"]
    return member


def softmax(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``builtin_softmax(X, R, C)`` or its logarithm: along rows, largest subtracted."""
    given = _tensor(builder, call, operands[0])
    sizes = sizes_of(builder, call, operands[1:])
    if given.shape is not None and (
        len(given.shape) != 2
        or any(None not in (a, b) and a != b for a, b in zip(given.shape, sizes, strict=True))
    ):
        raise builder.shape_error(
            call.position,
            f"{call.function} of {shown(given.shape)} as {shown(sizes)}",
            "it takes a tensor of rank 2 and its two sizes",
        )
    ready = given
    if given.dtype is not None and given.dtype.kind != "f":
        cast = builder.cast(given, floatx())
        assert isinstance(cast, Tensor)
        ready = cast
    return builder.emit(call.function, [ready], given.shape, ready.dtype)


def cross_entropy(builder: Builder, call: Call, operands: Sequence[Any]) -> Value:
    """Return ``builtin_binary_crossentropy(P, T, n)``: ``-T*log(P) - (1-T)*log(1-P)``."""
    p, t = operands[:2]
    one = Constant(1, False)

    def of(function: str, *values: Any) -> Any:
        rule = mathematics if function == "log" else binary
        return rule(builder, Call(function, call.operands, call.position), values)

    def minus(value: Any) -> Any:
        return FUNCTIONS["neg"].rule(builder, Call("neg", (), call.position), (value,))

    first = of("*", minus(t), of("log", p))
    return of("-", first, of("*", of("-", one, t), of("log", of("-", one, p))))


FUNCTIONS.update(
    {
        "reshape": Function(1, 99, reshape, 1),
        "index": Function(2, 2, index, 1),
        "shape": Function(1, 1, shape),
        "gather": Function(2, 2, gather),
        "scatter": Function(3, 3, scatter),
        "tuple": Function(1, 999, group),
        "element": Function(2, 2, element, 1),
        "prng_step": Function(1, 99, prng_step, 1),
        "prng_state": Function(1, 1, prng_part),
        "prng_value": Function(1, 1, prng_part),
        "builtin_softmax": Function(3, 3, softmax, 1),
        "builtin_logsoftmax": Function(3, 3, softmax, 1),
        "builtin_binary_crossentropy": Function(3, 3, cross_entropy, 2),
    }
)
