"""Calls with traced arrays: the entry of the override, and both modes of recording."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._functions.user_functions import ElementwiseFunction, ReductionFunction
from dparray._jit.function import JitFunction
from dparray.exceptions import DTypeError, GradientError, ShapeError
from dparray.gradients import traced
from dparray.gradients.public import dp
from dparray.gradients.rows import Elementwise, Row, View, is_several
from dparray.gradients.tape import Call, Elements, matched, snapshot
from dparray.gradients.traced import (
    Level,
    Spec,
    Traced,
    alias,
    check,
    constants,
    innermost,
    is_float,
    is_of,
    leaves_of,
    lowered,
    stored,
    value_of,
)

#: The rows of functions, by the function.
ROWS: dict[Any, Row] = {}
#: Functions that are composed of others when operands are traced.
COMPOSED: dict[Any, Callable[..., Any]] = {}
#: The same for functions of Tile, by name: Tile is imported when it is first used.
COMPOSED_OF_TILE: dict[str, Callable[..., Any]] = {}
#: How functions that users make are called, by their class.
OF_CLASSES: dict[type, Callable[..., Any]] = {}
#: Functions whose results are integers, Booleans or descriptions, or do not depend on values.
CONSTANT: set[Any] = set()
#: Why functions without a rule have none, and what to write instead.
REASONS: dict[Any, str] = {}
#: Functions that write to their first argument.
WRITING: dict[Any, Callable[..., Any]] = {}
#: Rows of operations that are not functions: indexing, assignment, the safe product.
ROWS_BY_NAME: dict[str, Row] = {}


def call(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a public function of dparray with traced arrays among its arguments.

    Raises:
        GradientError: it has no rule, or the gradient would be lost.
    """
    out = options.get("out")
    if out is not None:
        return _into(function, args, options, out)
    if traced.recordings and function not in WRITING and not isinstance(function, JitFunction):
        level = innermost((args, options))
        if level is not None and level.recording is not None:
            return level.recording.call(function, args, options)
    if options:
        args, options = _by_position(function, args, options)
    row = ROWS.get(function)
    if row is not None:
        if "where" in options or "dtype" in options or "initial" in options:
            return _with_options(function, row, args, options)
        return apply(row, args, options)
    composed = COMPOSED.get(function)
    if composed is not None:
        if options:
            _check_options(function, composed, args, options)
        return composed(*args, **options)
    if function in CONSTANT:
        return function(*constants(list(args)), **constants(options))
    writing = WRITING.get(function)
    if writing is not None:
        if type(args[0]) is not Traced:
            raise _untraced_target(function)
        return writing(*args, **options)
    of_class = OF_CLASSES.get(type(function))
    if of_class is not None:
        return of_class(function, args, options)
    of_tile = COMPOSED_OF_TILE.get(getattr(function, "__name__", ""))
    if of_tile is not None:
        # The override has the function without its wrappers, as it is in another namespace.
        public = getattr(dp.tilelang, function.__name__)
        if inspect.unwrap(public) is inspect.unwrap(function):
            return of_tile(*args, **options)
    raise without_rule(function)


@functools.cache
def _positional(function: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Return name, default and whether it has no keyword, for the parameters by position."""
    parameter = inspect.Parameter
    by_position = (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a slot of the compiled module
        return ()
    return tuple(
        [
            (p.name, p.default, p.kind is parameter.POSITIONAL_ONLY)
            for p in parameters
            if p.kind in by_position
        ]
    )


def _by_position(
    function: Any, args: Sequence[Any], options: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Pass the options that follow the operands by position, as the override has them by name."""
    if isinstance(function, JitFunction | ElementwiseFunction | ReductionFunction):
        return args, options
    args, options = list(args), dict(options)
    rest = _positional(function)[len(args) :]
    named = [name for name, *_ in rest]
    while rest and any(name in options and only for name, _, only in rest):
        name, default, _ = rest[0]
        args.append(options.pop(name, default))
        rest = rest[1:]
    for name in named[len(named) - len(rest) :]:
        if name not in options or name in ("axis", "keepdims", "dtype", "where"):
            break
        args.append(options.pop(name))
    return args, options


def _check_options(
    function: Any, composed: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]
) -> None:
    """Raise if the composition of a function does not take an option."""
    try:
        inspect.signature(composed).bind(*args, **options)
    except TypeError:
        known = inspect.signature(composed).parameters
        other = [key for key in options if key not in known] or list(options)
        raise GradientError(
            f"{function.__name__}: {', '.join(other)}= has no derivative; omit it, or use "
            "dp.stop_gradient(x) on the operands"
        ) from None


def without_rule(function: Any) -> GradientError:
    """Return the error for a function without a rule."""
    name = getattr(function, "__name__", repr(function))
    for space in ("linalg", "fft", "special", "random"):
        if getattr(getattr(dp, space), name, None) is function:
            name = f"{space}.{name}"
    if isinstance(function, ReductionFunction):
        return GradientError(
            f"{name}: functions made by dp.reduction have no derivative; write "
            "it with dparray's functions, or give the derivative with dp.custom_gradient"
        )
    reason = REASONS.get(function, "")
    return GradientError(
        f"{name} has no derivative{': ' if reason else ''}{reason}; give one with "
        "dp.custom_gradient, or use dp.stop_gradient(x) on its operands"
    )


def _into(function: Any, args: Sequence[Any], options: dict[str, Any], out: Any) -> Any:
    """Call a function with ``out=``."""
    if type(out) is tuple and len(out) == 1:
        out = out[0]
    rest = {key: value for key, value in options.items() if key != "out"}
    if type(out) is Traced:
        mask = rest.pop("where", True)

        def result(old: Traced) -> Any:
            new = call(function, [old if x is out else x for x in args], rest)
            return new if mask is True else dp.where(mask, new, old)

        return write(out, result)
    raise _untraced_target(function)


def _untraced_target(function: Any) -> GradientError:
    """Return the error for a write into an array that is not differentiated."""
    name = function.__name__
    name = "x[key] = value" if name == "__setitem__" else name
    return GradientError(
        f"{name}: a differentiated value cannot be written into an array that is not "
        "differentiated (out=, a += x, a[i] = x); use the result (a = a + x), or create the array "
        "with dp.zeros_like(x, shape=...) of a differentiated x"
    )


_MASKED: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True}


def _converted(x: Any, dtype: Any) -> Any:
    """Return an array, or a list of arrays, in another dtype."""
    if type(x) in (list, tuple):
        return [_converted(each, dtype) for each in x]
    return dp.astype(x, dtype) if is_array(x) else x


def _with_options(function: Any, row: Row, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Handle ``dtype``, ``where`` and ``initial`` by other operations."""
    options = dict(options)
    dtype, where = options.pop("dtype", None), options.pop("where", True)
    initial = options.pop("initial", None)
    x, *others = args
    is_elementwise = isinstance(row, Elementwise)
    if dtype is not None:
        to = dp.dtype(dtype)
        x = _converted(x, to)
        if is_elementwise:
            others = [_converted(y, to) for y in others]
    name = row.name
    if is_elementwise:
        for option in ("casting", "order", "subok"):
            options.pop(option, None)
        result = apply(row, (x, *others), options)
        return result if where is True else dp.where(where, result, 0)
    if where is not True:
        if name == "mean":
            total = dp.sum(dp.where(where, x, 0), *others, **options)
            ones = dp.astype(dp.broadcast_to(where, x.shape), x.dtype)
            return total / dp.sum(ones, *others, **options)
        if name in ("max", "min") and initial is not None:
            x = dp.where(where, x, initial)
        elif name in ("sum", "prod"):
            x = dp.where(where, x, _MASKED[name])
        else:
            raise GradientError(
                f"{name}: where= has no derivative here; select the elements first: "
                f"dp.{name}(x[mask])"
            )
    result = apply(row, (x, *others), options)
    if initial is None:
        return result
    combine = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[name]
    return getattr(dp, combine)(result, initial)


def constant_operands(x: Any) -> bool:
    """Return whether an operator takes a value as its other operand."""
    scalar = isinstance(x, bool | int | float | complex | np.generic)
    return scalar or isinstance(x, ndarray | list | tuple)


def is_array(x: Any) -> bool:
    """Return whether a value is an array, traced or not."""
    return type(x) is Traced or isinstance(x, ndarray)


def elementwise(row: Elementwise, args: Sequence[Any]) -> Any:
    """Compute an element-wise operation without options, and record it, as :func:`apply` does."""
    level: Level | None = None
    for x in args:
        kind = type(x)
        if kind is Traced:
            if x._root is not None or not x._level.is_alive:
                check(x)
            own = x._level
            if level is None or own.depth > level.depth:
                level = own
        elif kind is list or kind is tuple:
            return _apply(row, args, {})
    if level is None:
        return row.compute(*args)
    if not level.is_tape:
        return _apply(row, args, {})
    parents, values = [], []
    places: tuple[int, ...] = ()
    for place, x in enumerate(args):
        if type(x) is Traced and x._level is level:
            parents.append(x._origin)
            places += (place,)
            values.append(x._value)
        else:
            values.append(x)
    answer = row.compute(*values)
    shape, dtype = answer.shape, answer.dtype
    if dtype.kind not in "fcV":
        return answer
    products, reads = row.at(places)
    are_alike = True
    kept = [None, None, None, answer if reads[3] else None]
    for place, x in enumerate(values):
        kind = type(x)
        if kind is ndarray or kind is Traced:
            if x.shape != shape or x.dtype != dtype:
                are_alike = False
            if reads[place]:
                kept[place] = x if _is_private(args[place], level) else snapshot(x)
        else:
            kept[place] = x
            if kind is not float and kind is not int:
                are_alike = False
    inputs = None if are_alike else [Spec(values[place]) for place in places]
    return Traced(answer, level, (Elements(parents, products, kept, answer, inputs), 0))


def _is_private(x: Any, level: Level) -> bool:
    """Return whether nobody else can write to the value that an operand has in a level.

    That holds for results of element-wise operations: values of traced arrays are never written.
    """
    if type(x) is not Traced or x._level is not level or x._root is not None:
        return False
    return type(x._origin[0]) is Elements


def apply(row: Row, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Compute an operation, and record it on the innermost level among its operands."""
    if type(row) is Elementwise and not options:
        return elementwise(row, args)
    return _apply(row, args, options)


def _apply(row: Row, args: Sequence[Any], options: dict[str, Any]) -> Any:
    level = innermost(args)
    if options and next(leaves_of(options.values()), None) is not None:
        raise GradientError(
            f"{row.name}: a keyword argument is differentiated; pass it by position, or use "
            "dp.stop_gradient(x)"
        )
    if level is None:
        return row.compute(*args, **options)
    if level.recording is not None:
        result = level.recording.call(row.compute, args, options)
        if row.is_view and type(result) is Traced:
            _note_view(row, args, options, result)
        return result
    operands = [lowered(x, level) for x in args]
    if row.compares:
        dp.eval(value_of(operands[0]))
    answer = row.compute(*operands, **options)
    if level.is_forward:
        result = _forward(row, level, args, operands, options, answer)
    else:
        result = _record(row, level, args, operands, options, answer)
    if row.is_view and type(result) is Traced:
        _note_view(row, args, options, result)
    return result


def _places(args: Sequence[Any], level: Level) -> list[tuple[Any, Any]]:
    """Return the places and origins of the operands of a level."""
    places: list[tuple[Any, Any]] = []
    for at, x in enumerate(args):
        if is_of(x, level):
            places.append((at, x._origin))
        elif type(x) in (list, tuple):
            places += [((at, n), y._origin) for n, y in enumerate(x) if is_of(y, level)]
    return places


def _record(
    row: Row, level: Level, args: Any, operands: Any, options: dict[str, Any], answer: Any
) -> Any:
    places = _places(args, level)
    node = Call(
        row, [origin for _, origin in places], [p for p, _ in places], operands, options, answer
    )
    answers = answer if is_several(answer) else (answer,)
    made = [Traced(x, level, (node, n)) if is_float(x) else x for n, x in enumerate(answers)]
    return gathered(answer, made) if is_several(answer) else made[0]


def _forward(
    row: Row, level: Level, args: Any, operands: Any, options: dict[str, Any], answer: Any
) -> Any:
    pushed = row.push(dict(_places(args, level)), answer, operands, options)
    if not is_several(answer):
        return with_tangent(answer, level, pushed)
    pushed = pushed or [None] * len(answer)
    return gathered(
        answer, [with_tangent(x, level, t) for x, t in zip(answer, pushed, strict=True)]
    )


def with_tangent(x: Any, level: Level, tangent: Any) -> Any:
    """Return a result of forward mode."""
    if not is_float(x):
        return x
    spec = Spec(x)
    return Traced(x, level, spec.zeros() if tangent is None else matched(tangent, spec, sums=False))


def gathered(like: Any, results: Sequence[Any]) -> Any:
    """Return several results in the class of others."""
    return type(like)(*results) if hasattr(like, "_fields") else type(like)(results)


# -- views ----------------------------------------------------------------------------------------


class Step:
    """How a view follows from another array.

    Attributes:
        row, args, options: the call.
        is_certain: whether the result is a view for all layouts of the array; `reshape` copies
            arrays that are not contiguous.
    """

    __slots__ = ("args", "is_certain", "options", "row")

    def __init__(self, row: View, args: Any, options: Any, is_certain: bool) -> None:
        self.row, self.args, self.options, self.is_certain = row, args, options, is_certain

    def apply(self, x: Traced) -> Traced:
        """Return the view of another value of the array."""
        return unseen(apply(self.row, (x, *self.args), self.options))

    def is_like(self, other: Step) -> bool:
        """Return whether two steps select the same elements."""
        return self.row is other.row and repr(self.args) == repr(other.args)


def unseen(x: Traced) -> Traced:
    """Return a result that is not a view."""
    x._root, x._steps = None, ()
    return x


def _note_view(row: Row, args: Sequence[Any], options: dict[str, Any], view: Traced) -> None:
    x = args[0]
    assert isinstance(row, View)
    if not row.makes_view(args):
        return
    root = x if x._root is None else x._root
    is_certain = row.name not in ("reshape", "ravel") or stored(x).flags.c_contiguous
    before = x._steps
    view._steps = (*before, Step(row, tuple(args[1:]), options, is_certain))
    view._root, view._version = root, root._version
    if not is_certain:
        root._uncertain = (*root._uncertain, weakref.ref(view))


def write(x: Traced, new: Callable[[Traced], Any], added: Any = None) -> Traced:
    """Rebind a traced array, or the array that it is a view of, to a new value.

    Args:
        x: the array.
        new: returns the new value from the old one.
        added: what the new value is more than the old one, if that is known.

    Raises:
        GradientError: it is not known whether another array shares the memory.
        ShapeError, DTypeError: the value does not fit.
    """
    check(x)
    root = x if x._root is None else x._root
    if root._level.recording is not None and root._origin < root._level.recording.inputs:
        raise GradientError(
            "jit: a derivative is recorded and replayed, but it writes to an argument; leave off "
            "dp.jit, or copy the argument first: x = x.copy()"
        )
    steps = x._steps
    doubtful = [view for ref in root._uncertain if (view := ref()) is not None]
    if any(not step.is_certain for step in steps) or any(view is not x for view in doubtful):
        raise GradientError(
            "an in-place statement on an array and its reshape: whether they share memory depends "
            "on the layout; copy one of them first: y = dp.reshape(x, shape).copy()"
        )
    bases = [alias(root)]
    for step in steps[:-1]:
        bases.append(step.apply(bases[-1]))
    is_added = is_array(added) and (added.shape, added.dtype) == (x.shape, x.dtype)
    if is_added and steps and steps[-1].row is ROWS_BY_NAME["getitem"]:
        # The cotangent of the base is that of the result, without zeros in place of the view.
        value = apply(ROWS_BY_NAME["additem"], (bases[-1], *steps[-1].args, added), {})
        steps = steps[:-1]
    else:
        value = _fitting(x, new(alias(x)))
    for base, step in zip(reversed(bases[: len(steps)]), reversed(steps), strict=True):
        value = step.row.write_back(base, value, *step.args, **step.options)
    root._value, root._level, root._origin = value._value, value._level, value._origin
    root._version += 1
    if x is not root:
        check(x)
    return x


def _fitting(x: Traced, value: Any) -> Traced:
    if value.shape != x.shape:
        raise ShapeError(
            f"an in-place statement: a result of shape {value.shape} does not fit into an array of "
            f"shape {x.shape}"
        )
    if value.dtype.kind == "c" and x.dtype.kind != "c":
        raise DTypeError(
            f"an in-place statement: {value.dtype} does not fit into {x.dtype}; take dp.real(value)"
        )
    if type(value) is not Traced:  # a constant
        value = apply(ROWS_BY_NAME["setitem"], (alias(x), ..., value), {})
    return value if value.dtype == x.dtype else dp.astype(value, x.dtype)
