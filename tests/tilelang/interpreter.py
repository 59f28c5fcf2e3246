"""A slow interpreter of Tile programs: a literal implementation of the language's rules in NumPy.

It shares only the parser with dparray. Index sets are found by trying every point of a box, and
functions are computed one by one in the dtype that the rules define.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from dparray.tilelang.parser import parse
from dparray.tilelang.tile_syntax import Assignment, Call, Index, Name, Number

REACH = 5000
MAX_POINTS = 300_000


class Refused(Exception):
    """The program is ill-formed; the message has the reason."""


class TooLarge(Exception):
    """The box is too large to try, or the language leaves a value undefined."""


class Const:
    def __init__(self, value: Any) -> None:
        self.value = value


def interpret(
    source: str, inputs: dict[str, Any], known: dict[str, Any] | None = None
) -> dict[str, np.ndarray]:
    """Return the outputs of a program, as arrays."""
    program = parse(source)
    env = run(program, inputs, known or {})
    for name in program.outputs:
        if name.name not in env:
            raise Refused("name")
        if isinstance(env[name.name], tuple):
            raise Refused("type")
    return {name.name: tensor(env[name.name]) for name in program.outputs}


def run(program: Any, inputs: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return the values of all names: arrays, constants, and tuples of them.

    Args:
        program: the tree.
        inputs: arrays and numbers.
        known: values of names that were computed before.
    """
    env: dict[str, Any] = {}
    for given in program.inputs:
        value = inputs[given.name.name]
        env[given.name.name] = value if isinstance(value, np.ndarray) else Const(value)
        if given.sizes is not None:
            shape = value.shape if isinstance(value, np.ndarray) else ()
            if len(shape) != len(given.sizes):
                raise Refused("shape")
            for size, found in zip(given.sizes, shape, strict=True):
                if size.name in env and env[size.name].value != found:
                    raise Refused("size")
                env[size.name] = Const(found)
    for statement in program.statements:
        name = statement.name.name
        if name in env:
            raise Refused("name")
        if name in known:
            env[name] = known[name]
        elif isinstance(statement, Assignment):
            env[name] = evaluate(statement.value, env)
        else:
            env[name] = contract(statement, env)
    return env


def tensor(value: Any) -> np.ndarray:
    if isinstance(value, tuple):
        raise Refused("type")
    if isinstance(value, Const):
        dtype = np.float32 if isinstance(value.value, float) else np.int32
        if dtype == np.int32 and not -(2**31) <= value.value < 2**31:
            raise TooLarge
        with np.errstate(all="ignore"):
            return np.asarray(value.value).astype(dtype)
    return value


# -- contractions ----------------------------------------------------------------------------------


def affine(expression: Any, env: dict[str, Any]) -> tuple[dict[str, Fraction], Fraction]:
    if isinstance(expression, Number):
        return {}, Fraction(expression.value)
    if isinstance(expression, Name):
        return {}, Fraction(whole(env[expression.name]))
    if isinstance(expression, Index):
        return {expression.name: Fraction(1)}, Fraction(0)
    parts = [affine(each, env) for each in expression.operands]
    if expression.function == "neg":
        parts = [({}, Fraction(0)), parts[0]]
    (a, c), (b, d) = parts
    if expression.function in ("+", "-", "neg"):
        sign = 1 if expression.function == "+" else -1
        names = {**a, **b}
        return {
            n: a.get(n, Fraction(0)) + sign * b.get(n, Fraction(0)) for n in names
        }, c + sign * d
    if expression.function == "*":
        if a and b:
            raise Refused("index")
        factor, form = (d, (a, c)) if a else (c, (b, d))
    else:
        if b or d == 0:
            raise Refused("index")
        factor, form = 1 / d, (a, c)
    return {n: x * factor for n, x in form[0].items()}, form[1] * factor


def size_of(expression: Any, env: dict[str, Any]) -> int:
    return whole(evaluate(expression, env), 0)


def contract(statement: Any, env: dict[str, Any]) -> np.ndarray:
    sizes = tuple(size_of(each, env) for each in statement.sizes or ())
    operands = [tensor(env[each.name.name]) for each in statement.operands]
    for each, one in zip(statement.operands, operands, strict=True):
        if len(each.indices) != one.ndim:
            raise Refused("shape")
    limits = [(affine(i, env), s) for i, s in zip(statement.indices, sizes, strict=True)]
    for each, one in zip(statement.operands, operands, strict=True):
        limits += [(affine(i, env), s) for i, s in zip(each.indices, one.shape, strict=True)]
    names = sorted({n for (form, _), _ in limits for n in form})
    for each in statement.constraints:
        form = affine(each.value, env)
        if set(form[0]) - set(names):
            raise Refused("index")
        limits.append((form, size_of(each.bound, env)))
    matrix = [[float(form.get(n, 0)) for n in names] for (form, _), _ in limits]
    if names and np.linalg.matrix_rank(np.array(matrix)) < len(names):
        raise Refused("index")
    dtypes = [each.dtype for each in operands]
    if statement.combination == "==":
        dtype = np.dtype(bool)
    else:
        dtype = common(*dtypes)
    start = None
    if statement.default is not None:
        start = tensor(env[statement.default.name])
        if start.shape != sizes:
            raise Refused("shape")
        if start.dtype != dtype:
            raise Refused("type")
    result = np.zeros(sizes, dtype) if start is None else start.copy()
    if 0 in sizes:
        return result
    if any(0 in one.shape for one in operands):
        return result
    points = valid(names, limits)
    if not len(points):
        raise Refused("index")
    seen: dict[tuple[int, ...], Any] = {}

    def at_points(expressions: Any) -> list[tuple[int, ...]]:
        forms = [scaled(names, affine(each, env), points) for each in expressions]
        columns = [(total // scale).tolist() for scale, total in forms]
        return list(zip(*columns, strict=True)) if columns else [()] * len(points)

    reads = [at_points(each.indices) for each in statement.operands]
    for number, where in enumerate(at_points(statement.indices)):
        taken = [one[read[number]] for one, read in zip(operands, reads, strict=True)]
        got = combine(statement.combination, taken, dtype)
        if where not in seen:
            first = got
            if statement.aggregation in "><" and dtype.kind == "f" and np.isnan(got):
                first = dtype.type(-np.inf if statement.aggregation == ">" else np.inf)
            seen[where] = first
        elif statement.aggregation == "=":
            raise Refused("index")
        else:
            seen[where] = aggregate(statement.aggregation, seen[where], got, dtype)
    for where, got in seen.items():
        result[where] = got
    return result


def valid(names: list[str], limits: list[Any]) -> np.ndarray:
    """Return every point of a box where all forms are integers from 0 up to their size.

    The result has a row for each point and a column for each name. Points grow by a name at a time.
    Points that no values of the remaining names can complete are left out.
    """
    low = dict.fromkeys(names, -REACH)
    high = dict.fromkeys(names, REACH)
    narrower = True
    while narrower:
        narrower = False
        for (form, constant), size in limits:
            for n, a in form.items():
                if not a:
                    continue
                rest = [(form[m] * low[m], form[m] * high[m]) for m in form if m != n]
                least = constant + sum(min(each) for each in rest)
                most = constant + sum(max(each) for each in rest)
                ends = sorted([(0 - most) / a, (size - 1 - least) / a])
                box = max(low[n], math.ceil(ends[0])), min(high[n], math.floor(ends[1]))
                narrower |= box != (low[n], high[n])
                low[n], high[n] = box
                if low[n] > high[n]:
                    return np.zeros((0, len(names)), np.int64)
    if any(low[n] == -REACH or high[n] == REACH for n in names):
        raise TooLarge
    points = np.zeros((1, 0), np.int64)
    for at, n in enumerate(names):
        values = np.arange(low[n], high[n] + 1)
        if len(points) * len(values) > MAX_POINTS:
            raise TooLarge
        last = np.tile(values, len(points))
        points = np.column_stack([np.repeat(points, len(values), axis=0), last])
        for limit in limits:
            points = points[can_hold(names, limit, points, names[at + 1 :], low, high)]
    for (_, constant), size in limits if not names else ():
        if constant.denominator != 1 or not 0 <= constant < size:
            return points[:0]
    return points


def can_hold(
    names: list[str], limit: Any, points: np.ndarray, rest: list[str], low: Any, high: Any
) -> np.ndarray:
    """Return whether a form may still become an integer in range, given the remaining names."""
    (form, constant), size = limit
    scale, total = scaled(names, (form, constant), points)
    ends = [
        sorted((int(form[m] * scale) * low[m], int(form[m] * scale) * high[m]))
        for m in rest
        if form.get(m)
    ]
    good = (total + sum(e[1] for e in ends) >= 0) & (total + sum(e[0] for e in ends) < size * scale)
    return good if ends else good & (total % scale == 0)


def scaled(
    names: list[str], form: tuple[dict[str, Fraction], Fraction], points: np.ndarray
) -> tuple[int, np.ndarray]:
    """Return the common denominator of a form, and its numerators at points of the first names."""
    scale = math.lcm(form[1].denominator, *(a.denominator for a in form[0].values()))
    total = np.full(len(points), int(form[1] * scale))
    for n, column in zip(names, points.T, strict=False):
        total = total + int(form[0].get(n, 0) * scale) * column
    return scale, total


def combine(sign: str, taken: list[Any], dtype: Any) -> Any:
    if sign in ("==", "?"):
        shared = common(taken[0].dtype, taken[1].dtype)
        equal = cast(taken[0], shared) == cast(taken[1], shared)
        if sign == "==":
            return np.bool_(equal)
        return cast(taken[2], dtype) if equal else dtype.type(0)
    parts = [cast(each, dtype) for each in taken]
    if sign == "":
        return parts[0]
    return arithmetic(sign, *parts)


def aggregate(sign: str, total: Any, got: Any, dtype: Any) -> Any:
    if sign in "+*":
        return arithmetic(sign, total, got)
    if sign == ">":
        return got if got > total else total
    return got if got < total else total


# -- expressions -----------------------------------------------------------------------------------


def common(*dtypes: Any) -> Any:
    found = dtypes[0]
    for each in dtypes[1:]:
        if (found.kind == "f") != (each.kind == "f"):
            found = found if found.kind == "f" else each
        elif each.itemsize > found.itemsize:
            found = each
    return found


def cast(x: Any, dtype: Any) -> Any:
    if x.dtype.kind == "f" and dtype.kind in "iu":
        limits, wide = np.iinfo(dtype), x.astype(np.float64)
        if not np.all((wide > float(limits.min) - 1) & (wide < float(limits.max))):
            raise TooLarge
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def arithmetic(sign: str, a: Any, b: Any) -> Any:
    """Compute with operands of one dtype, in that dtype."""
    dtype = a.dtype
    with np.errstate(all="ignore"):
        if dtype == np.bool_:
            if sign == "/" and not np.all(b):
                raise TooLarge
            x, y = a.astype(np.int64), b.astype(np.int64)
            done = {"+": x + y, "-": x - y, "*": x * y, "/": x}[sign]
            return np.asarray(done != 0)[()] if np.ndim(done) == 0 else done != 0
        if sign == "/" and dtype.kind in "iu":
            if np.any(b == 0):
                raise TooLarge
            safe = np.where(b == 0, dtype.type(1), b).astype(dtype)
            if dtype.kind == "u":
                return np.asarray(a // safe, dtype)[()]
            size = [
                abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
                for x, y in zip(*map(np.ravel, np.broadcast_arrays(a, safe)), strict=True)
            ]
            shape = np.broadcast_shapes(np.shape(a), np.shape(safe))
            return np.array(size, object).astype(np.int64).astype(dtype).reshape(shape)[()]
        function = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[sign]
        return function(a, b, dtype=dtype)


COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}
MATH = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda x: np.trunc(x) + np.where(np.abs(x - np.trunc(x)) >= 0.5, np.sign(x), 0),
}


def trunc(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))
    if b == 0:
        raise Refused("type")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def constant(name: str, values: list[Any]) -> Any:
    a, b = values[0], values[-1]
    table = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: trunc(a, b),
        "neg": lambda: -a,
        "max": lambda: b if a < b else a,
        "min": lambda: a if a < b else b,
        "abs": lambda: abs(a),
        "?": lambda: values[1] if a else values[2],
        "cond": lambda: values[1] if a else values[2],
        "ident": lambda: a,
        "floor": lambda: math.floor(a) if math.isfinite(a) else a,
        "ceil": lambda: math.ceil(a) if math.isfinite(a) else a,
        "relu": lambda: 0.0 if a < 0 else float(a),
        "mod": lambda: a - b * trunc(a, b),
        "recip": lambda: trunc(1, a),
        **{sign: (lambda f=f: int(f(a, b))) for sign, f in COMPARE.items()},
    }
    if name.startswith("assert_"):
        if not a:
            raise Refused("shape")
        return Const(a)
    if name in ("broadcast", "match"):
        if a != b and (name == "match" or 1 not in (a, b)):
            raise Refused("shape")
        return Const(b if a == 1 else a)
    if name not in table:
        raise Refused("type")
    if name == "mod" and any(isinstance(each, float) for each in values):
        raise Refused("type")
    done = table[name]()
    kinds = values[1:] if name in ("?", "cond") else values
    is_float = any(isinstance(each, float) for each in kinds) or name == "relu"
    is_float = is_float and name not in COMPARE
    return Const(float(done) if is_float else int(done))


def evaluate(expression: Any, env: dict[str, Any]) -> Any:
    if isinstance(expression, Number):
        return Const(expression.value)
    if isinstance(expression, Name):
        return env[expression.name]
    if isinstance(expression, Index):
        raise Refused("index")
    assert isinstance(expression, Call)
    name = expression.function
    return apply(name, [evaluate(each, env) for each in expression.operands])


def apply(name: str, operands: list[Any]) -> Any:
    if name == "tuple":
        return tuple(operands)
    if name in ("element", "prng_state", "prng_value"):
        if not isinstance(operands[0], tuple):
            raise Refused("type")
        at = whole(operands[1]) if name == "element" else int(name == "prng_value")
        if not 0 <= at < len(operands[0]):
            raise Refused("type")
        return operands[0][at]
    counts = {len(each) for each in operands if isinstance(each, tuple)}
    if len(counts) > 1:
        raise Refused("type")
    if counts:
        return tuple(
            apply(name, [each[at] if isinstance(each, tuple) else each for each in operands])
            for at in range(counts.pop())
        )
    if all(isinstance(each, Const) for each in operands):
        return constant(name, [each.value for each in operands])
    return function(name, operands)


def whole(value: Any, least: int | None = None) -> int:
    if not isinstance(value, Const) or isinstance(value.value, float):
        raise Refused("type")
    if least is not None and value.value < least:
        raise Refused("shape")
    return value.value


def function(name: str, operands: list[Any]) -> Any:
    if name in ("?", "cond"):
        condition, first, second = operands
        shapes = [tensor(each).shape for each in operands]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise Refused("shape") from None
        first, second = tensor(first), tensor(second)
        dtype = common(first.dtype, second.dtype)
        test = condition.value if isinstance(condition, Const) else condition
        return np.where(np.asarray(test) != 0, cast(first, dtype), cast(second, dtype))
    if name == "max":
        return function("?", [function("<", operands), operands[1], operands[0]])
    if name == "min":
        return function("?", [function("<", operands), operands[0], operands[1]])
    if name == "relu":
        return function("?", [function("<", [operands[0], Const(0.0)]), Const(0.0), operands[0]])
    if name == "sigmoid":
        power = function("exp", [function("neg", operands)])
        return function("/", [Const(1.0), function("+", [Const(1.0), power])])
    if name == "recip":
        return function("/", [Const(1), operands[0]])
    if name == "abs":
        x = operands[0]
        return function("?", [function("<", [x, Const(0)]), function("neg", [x]), x])
    if name in ("as_float", "as_int", "as_uint"):
        width = whole(operands[1])
        if width not in ((16, 32, 64) if name == "as_float" else (8, 16, 32, 64)):
            raise Refused("type")
        return cast(tensor(operands[0]), np.dtype(f"{name[3:]}{width}"))
    if name == "as_bool":
        return np.asarray(operands[0] != 0)
    is_moving = name in ("index", "shape", "reshape", "prng_step") or "builtin_" in name
    if is_moving and not isinstance(operands[0], np.ndarray):
        raise Refused("type")
    if name == "index":
        if not 0 <= whole(operands[1]) < operands[0].ndim:
            raise Refused("shape")
        return np.indices(operands[0].shape)[operands[1].value].astype(np.int32)
    if name == "shape":
        return np.array(operands[0].shape, np.int32)
    if name == "reshape":
        shape = tuple(whole(each, 0) for each in operands[1:])
        if math.prod(shape) != operands[0].size:
            raise Refused("shape")
        return operands[0].reshape(shape)
    if name == "gather":
        data, where = operands[0], tensor(operands[1])
        if not isinstance(data, np.ndarray) or where.dtype != np.int32:
            raise Refused("type")
        if not data.ndim or (not len(data) and where.size):
            raise Refused("shape")
        return data[np.clip(where, 0, max(len(data) - 1, 0))] if where.size else data[where]
    if name == "scatter":
        values, where, like = operands
        where = tensor(where)
        if not isinstance(values, np.ndarray) or not isinstance(like, np.ndarray):
            raise Refused("type")
        if where.dtype != np.int32:
            raise Refused("type")
        if not like.ndim or values.shape[: where.ndim] != where.shape:
            raise Refused("shape")
        if not len(like) and values.size:
            raise Refused("shape")
        result = np.zeros((len(like), *values.shape[where.ndim :]), values.dtype)
        for at in itertools.product(*map(range, where.shape)) if values.size else ():
            row = min(max(int(where[at]), 0), len(like) - 1)
            result[row] = arithmetic("+", result[row], values[at])
        return result
    if name in ("ident", "reverse_grad"):
        return operands[0]
    if name == "prng_step":
        return prng_step(operands[0], tuple(whole(each, 0) for each in operands[1:]))
    if name in ("builtin_softmax", "builtin_logsoftmax"):
        return softmax(operands[0], [whole(each, 0) for each in operands[1:]], "log" in name)
    if name == "builtin_binary_crossentropy":
        p, t = operands[:2]
        first = apply("*", [apply("neg", [t]), apply("log", [p])])
        rest = [apply("-", [Const(1), each]) for each in (t, p)]
        return apply("-", [first, apply("*", [rest[0], apply("log", [rest[1]])])])
    given = [tensor(each) for each in operands]
    dtype = common(*(each.dtype for each in given))
    if name in MATH or name == "pow":
        try:
            np.broadcast_shapes(*(each.shape for each in given))
        except ValueError:
            raise Refused("shape") from None
        if dtype.kind != "f":
            dtype = np.dtype(np.float32)
        given = [cast(each, dtype) for each in given]
        with np.errstate(all="ignore"):
            done = (np.power if name == "pow" else MATH[name])(*given)
        return np.asarray(done, dtype)
    given = [cast(each, dtype) for each in given]
    if name == "neg":
        return given[0] if dtype == np.bool_ else np.negative(given[0])
    if name == "~":
        if dtype.kind == "f":
            raise Refused("type")
        return np.invert(given[0])
    try:
        np.broadcast_shapes(*(each.shape for each in given))
    except ValueError:
        raise Refused("shape") from None
    if name in COMPARE:
        return np.asarray(COMPARE[name](*given))
    if name in "+-*/":
        return np.asarray(arithmetic(name, *given))
    if dtype.kind == "f":
        raise Refused("type")
    if dtype == np.bool_:
        x, y = (each.astype(np.int64) for each in given)
        done = {"&": x & y, "|": x | y, "^": x ^ y, "<<": x << y, ">>": x >> y}[name]
        return np.asarray(done != 0)
    if name in ("<<", ">>") and not np.all((given[1] >= 0) & (given[1] < 8 * dtype.itemsize)):
        raise TooLarge
    table = {
        "&": np.bitwise_and,
        "|": np.bitwise_or,
        "^": np.bitwise_xor,
        "<<": np.left_shift,
        ">>": np.right_shift,
    }
    return np.asarray(table[name](*given))


def softmax(x: np.ndarray, sizes: list[int], is_log: bool) -> np.ndarray:
    if x.ndim != 2 or list(x.shape) != sizes:
        raise Refused("shape")
    dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)
    if not x.size:
        return x.astype(dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        wide = wide - wide.max(1, keepdims=True)
        powers = np.exp(wide)
        total = powers.sum(1, keepdims=True)
        return (wide - np.log(total) if is_log else powers / total).astype(dtype)


def prng_step(state: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    if state.dtype != np.uint32:
        raise Refused("type")
    if state.shape != (3, 2048):
        raise Refused("shape")
    count = math.prod(shape)
    after = [[int(x) for x in row] for row in state]
    values = np.zeros(count, np.float32)
    word = 0xFFFFFFFF
    for at in range(count):
        stream = at % 2048
        s1, s2, s3 = (row[stream] for row in after)
        s1 = (((s1 & 4294967294) << 12) & word) ^ ((((s1 << 13) & word) ^ s1) >> 19)
        s2 = (((s2 & 4294967288) << 4) & word) ^ ((((s2 << 2) & word) ^ s2) >> 25)
        s3 = (((s3 & 4294967280) << 17) & word) ^ ((((s3 << 3) & word) ^ s3) >> 11)
        for row, s in zip(after, (s1, s2, s3), strict=True):
            row[stream] = s
        values[at] = np.float32(s1 ^ s2 ^ s3) / np.float32(2**32)
    return np.array(after, np.uint32), values.reshape(shape)
