"""The public functions: transformations of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dparray._array.ndarray import ndarray
from dparray._array.operands import class_name
from dparray.exceptions import GradientError
from dparray.gradients.calls import is_array, with_tangent
from dparray.gradients.public import dp
from dparray.gradients.replay import Replayed
from dparray.gradients.rows import pushed
from dparray.gradients.tape import as_large, backward, matched
from dparray.gradients.traced import (
    Level,
    Node,
    Origin,
    Spec,
    Traced,
    alias,
    check,
    constants,
    innermost,
    is_float,
    is_of,
    lowered,
    value_of,
)
from dparray.gradients.trees import Structure, flatten, leaves_like, mapped, unflatten

Function = Callable[..., Any]


class Inputs:
    """The traced arguments of a call.

    Attributes:
        arguments: all arguments, with traced arrays for those that are differentiated.
        origins: the origins of the traced arrays.
        specs: their shapes, dtypes and placements.
        structure: that of a list of the differentiated arguments.
    """

    def __init__(
        self, name: str, level: Level, arguments: Sequence[Any], numbers: Sequence[int]
    ) -> None:
        self.arguments = list(arguments)
        self.origins: list[Origin] = []
        self.specs: list[Spec] = []
        self.structure = flatten([arguments[number] for number in numbers])[1]
        for number in numbers:
            leaves, structure = flatten(arguments[number])
            if not leaves:
                raise GradientError(f"{name}: argument {number} has no arrays")
            traced = [self._traced(name, level, x, number) for x in leaves]
            self.arguments[number] = unflatten(structure, traced)

    def _traced(self, name: str, level: Level, x: Any, number: int) -> Traced:
        x = differentiable(name, x, f"argument {number}")
        spec = Spec(x)
        origin = (Node([], [spec]), 0)
        self.origins.append(origin)
        self.specs.append(spec)
        return Traced(alias(x) if type(x) is Traced else x, level, origin)

    def cotangents(self, roots: Sequence[tuple[Origin, Any]]) -> list[Any]:
        """Return those of all inputs, zeros where the results do not depend on one."""
        pulled = backward(roots, self.origins)
        return [s.zeros() if g is None else g for g, s in zip(pulled, self.specs, strict=True)]


def differentiable(name: str, x: Any, what: str) -> Any:
    """Return an argument as an array of floats; a Python float becomes one.

    Raises:
        GradientError: it is neither.
    """
    if isinstance(x, float | complex | np.inexact):
        return dp.asarray(x)
    if isinstance(x, ndarray) and type(x) is not ndarray:
        x = dp.asarray(x)
    if type(x) not in (ndarray, Traced):
        raise GradientError(
            f"{name}: {what} is a {type(x).__module__}.{type(x).__qualname__}, which has no "
            "gradient; pass an array of floats, or choose other arguments with argnums"
        )
    if x.dtype.kind in "biu":
        raise GradientError(
            f"{name}: {what} has dtype {x.dtype}, which has no gradient; pass "
            "x.astype('float32'), or choose other arguments with argnums"
        )
    return x


def _numbers(name: str, argnums: Any, arguments: Sequence[Any]) -> list[int]:
    """Return the positions of the differentiated arguments, counted from the front."""
    numbers = list(argnums) if isinstance(argnums, Sequence | range) else [argnums]
    if not all(isinstance(number, int | np.integer) for number in numbers):
        raise GradientError(f"{name}: argnums must be an integer or several, not {argnums!r}")
    count = len(arguments)
    for number in numbers:
        if not -count <= number < count:
            raise GradientError(
                f"{name}: argnums has {number}, but the call has {count} positional arguments"
            )
    positions = [int(number) % count for number in numbers]
    if len(set(positions)) < len(positions):
        raise GradientError(f"{name}: argnums={argnums!r} has an argument twice")
    return positions


def _outside(x: Any, level: Level) -> Any:
    """Return a result as the caller of a transformation sees it."""
    if type(x) is not Traced:
        return x
    check(x)
    if x._level is not level:
        return x
    # An argument itself, or a view, would share its memory with the caller's array.
    is_shared = level.is_forward or x._root is not None or type(x._origin[0]) is Node
    return x._value.copy() if is_shared else x._value


def _with_aux(name: str, result: Any) -> tuple[Any, Any]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise GradientError(f"{name}: with has_aux=True the function must return (value, aux)")
    return result


def value_and_grad(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that returns the value of ``f`` and its gradient.

    Args:
        f: a function of arrays that returns an array of shape ``()``. Arguments may be tuples,
            lists, dicts and dataclasses of arrays.
        argnums: the positions of the arguments to differentiate by.
        has_aux: whether ``f`` returns a pair of its value and anything else, which is returned
            unchanged: ``((value, aux), gradient)``.

    Returns:
        A function of the same arguments. The gradient has the structure of the argument, or is a
        tuple for several; its arrays have the shapes, dtypes, queues and USM types of the
        argument's. For complex arguments it is ``d/d(real) + 1j * d/d(imaginary)``.

    Raises:
        GradientError: when called, if an argument is not an array of floats, the value is not a
            scalar, or ``f`` calls a function without a derivative.

    Example:
        >>> f = dp.value_and_grad(lambda x: dp.sum(x**2))
        >>> value, gradient = f(dp.asarray([1.0, 2.0]))
        >>> float(value), gradient.tolist()
        (5.0, [2.0, 4.0])
    """
    return _value_and_grad("value_and_grad", f, argnums, has_aux)


def _value_and_grad(
    name: str, f: Function, argnums: int | Sequence[int], has_aux: bool
) -> Callable[..., tuple[Any, Any]]:
    @functools.wraps(f)
    def value_and_gradient(*arguments: Any, **options: Any) -> tuple[Any, Any]:
        with Level() as level:
            inputs = Inputs(name, level, arguments, _numbers(name, argnums, arguments))
            result, aux = f(*inputs.arguments, **options), None
            if has_aux:
                result, aux = _with_aux(name, result)
                aux = mapped(lambda x: _outside(x, level), aux)
            value = _outside(result, level)
            _check_scalar(name, value)
            roots = []
            if is_of(result, level):
                roots = [(result._origin, dp.ones_like(constants(value)))]
            leaves = inputs.cotangents(roots)
        gradient = _by_argument(inputs.structure, leaves, argnums)
        return ((value, aux) if has_aux else value), gradient

    return replayable(value_and_gradient)


def replayable(derivative: Function) -> Function:
    """Return a function that ``dp.jit`` records and replays; its code only Python can run."""

    def jit() -> Replayed:
        return Replayed(derivative)

    # Other decorators copy the attributes of what they decorate, so `dp.jit` compares the function.
    jit.of = derivative  # type: ignore[attr-defined]
    derivative.__dparray_jit__ = jit  # type: ignore[attr-defined]
    return derivative


def _check_scalar(name: str, value: Any) -> None:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return
    if not is_array(value):
        raise GradientError(
            f"{name}: the function returned a {type(value).__name__}; it must return one float"
        )
    if value.shape != ():
        raise GradientError(
            f"{name}: the function returned an array of shape {value.shape}, but only a scalar has "
            "a gradient; sum it: dp.sum(y), or use dp.vjp(f, x) or dp.jacobian(f)"
        )
    if value.dtype.kind == "c":
        raise GradientError(
            f"{name}: the function returned a complex number, which has no gradient; return "
            "dp.real(y), dp.imag(y) or dp.abs(y)"
        )
    _check_float(name, value)


def _check_float(name: str, y: Any) -> None:
    if y.dtype.kind in "biu":
        raise GradientError(
            f"{name}: the function returned an array of dtype {y.dtype}, whose derivative is zero "
            "everywhere; return floats"
        )


def grad(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradient of ``f``; see :func:`value_and_grad`.

    Example:
        >>> gradient = dp.grad(lambda x: dp.sum(dp.sin(x)))
        >>> gradient(dp.zeros(2)).tolist()
        [1.0, 1.0]
    """
    both = _value_and_grad("grad", f, argnums, has_aux)

    @functools.wraps(f)
    def gradient(*arguments: Any, **options: Any) -> Any:
        value, found = both(*arguments, **options)
        return (found, value[1]) if has_aux else found

    return replayable(gradient)


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``f(*primals)``, and the function from its cotangent to those of the arguments.

    Args:
        f: a function of arrays, or trees of them, that returns arrays or trees of them.
        *primals: its arguments, all of which are differentiated.
        has_aux: whether ``f`` returns a pair of its value and anything else, which becomes a third
            result.

    Returns:
        The value, and a function that takes a cotangent of the structure and shapes of the value
        and returns a tuple with a cotangent for each argument. It may be called repeatedly.

    Raises:
        GradientError: as for :func:`value_and_grad`; also for a cotangent of another shape.

    Example:
        >>> y, pull = dp.vjp(lambda x: x * x, dp.asarray([1.0, 2.0]))
        >>> pull(dp.asarray([1.0, 10.0]))[0].tolist()
        [2.0, 40.0]
    """
    with Level() as level:
        inputs = Inputs("vjp", level, primals, range(len(primals)))
        result, aux = f(*inputs.arguments), None
        if has_aux:
            result, aux = _with_aux("vjp", result)
            aux = mapped(lambda x: _copied(_outside(x, level)), aux)
        outs, structure = flatten(result)
        # The tape reads results, so the caller gets copies.
        values = [_copied(_result("vjp", x, level, inputs.specs)) for x in outs]
        origins = [x._origin if is_of(x, level) else None for x in outs]
    value = unflatten(structure, values)
    specs = mapped(Spec, value)

    def pull(cotangent: Any) -> tuple[Any, ...]:
        """Return the cotangents of the operands."""
        gs = _tangents("vjp", "cotangent", "result", cotangent, specs)
        roots = [(origin, g) for origin, g in zip(origins, gs, strict=True) if origin is not None]
        return tuple(unflatten(inputs.structure, inputs.cotangents(roots)))

    return (value, pull, aux) if has_aux else (value, pull)


def _result(name: str, x: Any, level: Level, inputs: Sequence[Any]) -> Any:
    """Return a leaf of a result as an array outside of a level; a number becomes one."""
    x = _outside(x, level)
    if isinstance(x, bool | int | float | complex | np.generic):
        x = dp.asarray(x, sycl_queue=inputs[0].queue if inputs else None)
    if not is_array(x):
        raise GradientError(
            f"{name}: the function returned a {type(x).__name__}; it must return arrays"
        )
    return x


def _copied(x: Any) -> Any:
    return x.copy() if is_array(x) else x


def _tangents(name: str, what: str, of: str, given: Any, like: Any) -> list[Any]:
    """Return tangents or cotangents as arrays, in the order of the values that they belong to.

    Raises:
        GradientError: they do not fit the values.
    """
    specs = flatten(like)[0]
    count = len(flatten(given)[0])
    if count != len(specs):
        raise GradientError(f"{name}: {count} {what}s for {len(specs)} {of}s")
    try:
        leaves = list(leaves_like(given, like))
    except ValueError:
        raise GradientError(
            f"{name}: the {what}s must be in tuples, lists and dicts like the {of}s"
        ) from None
    made = []
    for leaf, x in zip(leaves, specs, strict=True):
        t = _fitting(name, what, of, leaf, x)
        if t.dtype.kind == "c" and x.dtype.kind != "c":
            raise GradientError(f"{name}: a {what} is complex, its {of} is not; take dp.real(t)")
        made.append(matched(t, x))
    return made


def _fitting(name: str, what: str, of: str, t: Any, x: Spec) -> Any:
    """Return a tangent or cotangent as an array; check that it fits the value it belongs to."""
    if isinstance(t, int | float | complex | np.inexact):
        t = dp.asarray(t, sycl_queue=x.queue)
    if not is_array(t):
        raise GradientError(
            f"{name}: a {what} is a {class_name(t)}; it must be an array: dp.asarray(t)"
        )
    if t.shape != x.shape:
        raise GradientError(f"{name}: a {what} has shape {t.shape}, its {of} {x.shape}")
    if t.queue != x.queue:
        raise dp.exceptions.ExecutionPlacementError(
            f"{name}: a {what} is on another queue than its {of}; copy it: t.to_device(x.queue)"
        )
    return t


def jvp(
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Return ``f(*primals)`` and its derivative along tangents, in forward mode.

    Args:
        f: a function of arrays, or trees of them, that returns arrays or trees of them.
        primals: a tuple of its arguments, all of which are differentiated.
        tangents: the direction, in the structure and shapes of the arguments.
        has_aux: whether ``f`` returns a pair of its value and anything else, which becomes a third
            result.

    Raises:
        GradientError: as for :func:`vjp`.

    Example:
        >>> x = dp.asarray([1.0, 2.0])
        >>> y, slope = dp.jvp(lambda x: x * x, (x,), (dp.ones(2),))
        >>> slope.tolist()
        [2.0, 4.0]
    """
    return _jvp("jvp", f, primals, tangents, has_aux)


def _jvp(name: str, f: Function, primals: Any, tangents: Any, has_aux: bool) -> tuple[Any, ...]:
    if not (isinstance(primals, tuple | list) and isinstance(tangents, tuple | list)):
        raise GradientError(f"{name}: primals and tangents must be tuples: dp.jvp(f, (x,), (t,))")
    points, structure = flatten(tuple(primals))
    points = [differentiable(name, x, "a primal") for x in points]
    like = unflatten(structure, map(Spec, points))
    directions = _tangents(name, "tangent", "primal", tuple(tangents), like)
    with Level(is_forward=True) as level:
        arguments = []
        for x, t in zip(points, directions, strict=True):
            point = alias(x) if type(x) is Traced else x
            t = alias(t) if type(t) is Traced else t.copy()
            arguments.append(with_tangent(point, level, t))
        result, aux = f(*unflatten(structure, arguments)), None
        if has_aux:
            result, aux = _with_aux(name, result)
            aux = mapped(lambda x: _outside(x, level), aux)
        outs, of_result = flatten(result)
        values = [_result(name, x, level, points) for x in outs]
        moved = [
            x._origin if is_of(x, level) else _zeros(v) for x, v in zip(outs, values, strict=True)
        ]
    both = unflatten(of_result, values), unflatten(of_result, moved)
    return (*both, aux) if has_aux else both


def _zeros(x: Any) -> Any:
    return dp.zeros_like(constants(x))


def linearize(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return ``f(*primals)``, and its derivative there as a function of tangents.

    The function is called once; each call of the derivative runs its linear part only. With
    ``has_aux=True`` the function returns a pair, whose second part becomes a third result.

    Example:
        >>> y, slope = dp.linearize(lambda x: x**3, dp.asarray([1.0, 2.0]))
        >>> slope(dp.ones(2)).tolist(), slope(dp.full(2, 2.0)).tolist()
        ([3.0, 12.0], [6.0, 24.0])
    """
    value, pull, *aux = vjp(f, *primals, has_aux=has_aux)
    outs, structure = flatten(value)
    with Level() as level:
        inputs = Inputs("linearize", level, [[dp.zeros_like(constants(x)) for x in outs]], (0,))
        pulled = pull(unflatten(structure, inputs.arguments[0]))
        origins = [x._origin if is_of(x, level) else None for x in flatten(pulled)[0]]
    specs = mapped(Spec, pulled)

    def derivative(*tangents: Any) -> Any:
        ts = _tangents("linearize", "tangent", "argument", tangents, specs)
        roots = [(origin, t) for origin, t in zip(origins, ts, strict=True) if origin is not None]
        return unflatten(structure, inputs.cotangents(roots))

    return (value, derivative, *aux)


def jacobian(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of ``f``.

    It has the shape of the result followed by that of the argument. For trees it has the structure
    of the result, with that of the argument instead of each array. It takes a
    backward pass for each element of the result, or a forward pass for each element of the
    argument if these are fewer.

    Args:
        f: a function of arrays, or trees of them.
        argnums: the positions of the arguments to differentiate by.
        has_aux: whether ``f`` returns a pair of its value and anything else, which is returned
            with the Jacobian.

    Example:
        >>> J = dp.jacobian(lambda x: dp.stack([x[0] * x[1], x[1] ** 2]))
        >>> J(dp.asarray([2.0, 3.0])).tolist()
        [[3.0, 2.0], [0.0, 6.0]]
    """

    @functools.wraps(f)
    def derivative(*arguments: Any, **options: Any) -> Any:
        of_chosen, points, structure = _of_chosen("jacobian", f, argnums, arguments, options)
        rows, of_result, aux = _jacobian(of_chosen, points, structure, has_aux)
        made = unflatten(of_result, [_by_argument(structure, row, argnums) for row in rows])
        return (made, *aux) if has_aux else made

    return replayable(derivative)


def _of_chosen(
    name: str, f: Function, argnums: Any, arguments: Sequence[Any], options: dict[str, Any]
) -> tuple[Function, list[Any], Structure]:
    """Return a function of the differentiated arguments, their leaves and their structure."""
    numbers = _numbers(name, argnums, arguments)

    def of_chosen(*chosen: Any) -> Any:
        given = list(arguments)
        for number, x in zip(numbers, chosen, strict=True):
            given[number] = x
        return f(*given, **options)

    points, structure = flatten([arguments[number] for number in numbers])
    return of_chosen, [differentiable(name, x, "an argument") for x in points], structure


def _by_argument(structure: Structure, leaves: Sequence[Any], argnums: Any) -> Any:
    """Return values of the differentiated arguments: of one, or a tuple for several."""
    trees = unflatten(structure, leaves)
    return trees[0] if isinstance(argnums, int | np.integer) else tuple(trees)


def _jacobian(
    f: Function, points: list[Any], structure: Structure, has_aux: bool
) -> tuple[list[Any], Structure, list[Any]]:
    """Return the derivatives of each result by each argument, and the auxiliary result, if any."""
    value, pull, *aux = vjp(f, *unflatten(structure, points), has_aux=has_aux)
    outs, of_result = flatten(value)
    for y in outs:
        _check_float("jacobian", y)
    if sum(x.size for x in points) < sum(y.size for y in outs):
        return (_by_columns("jacobian", f, points, structure, has_aux)[0], of_result, aux)
    rows = []
    for number, y in enumerate(outs):
        units = [unflatten(of_result, gs) for gs in _units(outs, number)]
        parts = [flatten(pull(gs))[0] for gs in units]
        rows.append(
            [_stacked([part[at] for part in parts], 0, y, x) for at, x in enumerate(points)]
        )
    return rows, of_result, aux


def _by_columns(
    name: str, f: Function, points: list[Any], structure: Structure, has_aux: bool
) -> tuple[list[Any], list[Any]]:
    """Return the derivatives of each result by each argument in forward mode."""

    def moved(tangents: list[Any]) -> tuple[Any, ...]:
        primals = unflatten(structure, points)
        return _jvp(name, f, primals, unflatten(structure, tangents), has_aux)

    columns: list[list[Any]] = [[] for _ in points]
    result: tuple[Any, ...] | None = None
    for number, column in enumerate(columns):
        for tangents in _units(points, number):
            result = moved(tangents)
            column.append(flatten(result[1])[0])
    # Arguments without elements have no directions.
    value, _, *aux = result or moved(list(map(_zeros, points)))
    rows = [
        [
            _stacked([t[at] for t in column], -1, y, x)
            for column, x in zip(columns, points, strict=True)
        ]
        for at, y in enumerate(flatten(value)[0])
    ]
    return rows, aux


def _units(arrays: Sequence[Any], number: int) -> Iterator[list[Any]]:
    """Yield the directions of all elements of one of several arrays."""
    for at in range(arrays[number].size):
        yield [_unit(at, x) if i == number else _zeros(x) for i, x in enumerate(arrays)]


def _stacked(parts: list[Any], axis: int, y: Any, x: Any) -> Any:
    shape = (*y.shape, *x.shape)
    if not parts:
        return dp.zeros_like(constants(y), shape=shape)
    return dp.reshape(dp.stack(parts, axis=axis), shape)


def _unit(at: int, like: Any) -> Any:
    """Return zeros like an array, with a one at a position of the flattened array."""
    spec = Spec(like)
    made = spec.reshaped((like.size,)).zeros()
    made[at] = 1
    return dp.reshape(made, like.shape)


def hessian(
    f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the Hessian of ``f``, forward over reverse.

    Args:
        f: a function as for :func:`grad`.
        argnums: the positions of the arguments to differentiate by.
        has_aux: whether ``f`` returns a pair of its value and anything else, which is returned
            with the Hessian.

    Example:
        >>> H = dp.hessian(lambda x: x[0] ** 2 * x[1])
        >>> H(dp.asarray([1.0, 2.0])).tolist()
        [[4.0, 2.0], [2.0, 0.0]]
    """
    gradient = grad(f, argnums, has_aux)

    @functools.wraps(f)
    def derivative(*arguments: Any, **options: Any) -> Any:
        of_chosen, points, structure = _of_chosen("hessian", gradient, argnums, arguments, options)
        rows, aux = _by_columns("hessian", of_chosen, points, structure, has_aux)
        made = [_by_argument(structure, row, argnums) for row in rows]
        made = _by_argument(structure, made, argnums)
        return (made, *aux) if has_aux else made

    return replayable(derivative)


def hvp(f: Function, primals: Sequence[Any] | Any, tangents: Sequence[Any] | Any) -> Any:
    """Return the product of the Hessian of ``f`` and a vector, without the Hessian.

    Args:
        f: a function as for :func:`grad`, of one argument.
        primals: the argument.
        tangents: the vector, in the structure and shapes of the argument.

    Example:
        >>> dp.hvp(lambda x: dp.sum(x**3), dp.asarray([1.0, 2.0]), dp.ones(2)).tolist()
        [6.0, 12.0]
    """
    return _jvp("hvp", grad(f), (primals,), (tangents,), has_aux=False)[1]


def stop_gradient(x: Any) -> Any:
    """Return an array, or a tree of arrays, as constants, whose values may leave the device.

    Example:
        >>> dp.grad(lambda x: x * dp.stop_gradient(x))(3.0).item()
        3.0
    """
    return mapped(lambda leaf: constants(leaf).copy() if type(leaf) is Traced else leaf, x)


def custom_gradient(f: Function) -> Function:
    """Give a function its own derivative; a decorator.

    The function returns its value and a rule: a function that takes the cotangent of the value and
    returns the cotangent of each argument, a tuple if there are several; ``None`` stands for zero.
    Forward mode transposes the rule. Keyword arguments are constants.

    Raises:
        GradientError: the rule returns another number of cotangents or another shape; the function
            uses a differentiated array that is not an argument.

    Example:
        >>> @dp.custom_gradient
        ... def clipped(x):
        ...     return x, lambda g: dp.clip(g, -1.0, 1.0)
        >>> dp.grad(lambda x: dp.sum(5 * clipped(x)))(dp.ones(2)).tolist()
        [1.0, 1.0]
    """

    @functools.wraps(f)
    def with_rule(*arguments: Any, **options: Any) -> Any:
        flat, structure = flatten(arguments)
        level = innermost(flat)
        if level is None or level.recording is not None:
            return _value_and_rule(f, f(*arguments, **options))[0]
        places = [i for i, x in enumerate(flat) if is_of(x, level)]
        values = [_snapshot(x, level) for x in flat]
        result, rule = _value_and_rule(f, f(*unflatten(structure, values), **options))
        outs, of_result = flatten(result)
        _check_captured(f, outs, level)

        def transposed(gs: list[Any]) -> list[Any]:
            given = rule(unflatten(of_result, gs))
            given = given if isinstance(given, tuple) else (given,)
            if len(given) != len(arguments):
                raise GradientError(
                    f"{_name(f)}: its rule returned {len(given)} cotangents for "
                    f"{len(arguments)} arguments"
                )
            return _cotangents_of(f, given, arguments, values, places)

        made = recorded(level, flat, places, outs, transposed)
        return unflatten(of_result, made)

    return with_rule


class Own(Node):
    """A recorded call with a rule of its own."""

    __slots__ = ("_rule",)

    def __init__(self, parents: Sequence[Origin], outs: Sequence[Any], rule: Function) -> None:
        super().__init__(parents, [Spec(y) for y in outs])
        self._rule = rule

    def pull(self, cotangents: list[Any]) -> Sequence[Any]:
        """Return the cotangents of the operands."""
        return self._rule(list(map(as_large, cotangents, self.specs)))


def _value_and_rule(f: Function, result: Any) -> tuple[Any, Function]:
    if not (isinstance(result, tuple) and len(result) == 2 and callable(result[1])):
        raise GradientError(
            f"{_name(f)}: a function of dp.custom_gradient must return (value, rule), where the "
            "rule is a function of the cotangent"
        )
    return result


def _name(f: Function) -> str:
    return getattr(f, "__name__", "the function")


def _snapshot(x: Any, level: Level) -> Any:
    """Return an argument for a user's function, which may write to it."""
    x = lowered(x, level)
    return alias(x) if type(x) is Traced else _copied(x)


def _check_captured(f: Function, outs: Sequence[Any], level: Level) -> None:
    for y in outs:
        if not is_array(y):
            raise GradientError(f"{_name(f)}: returned a {type(y).__name__}; it must be an array")
        if is_of(y, level):
            raise GradientError(
                f"{_name(f)}: uses a differentiated array that is not an argument; pass it as one"
            )


def _cotangents_of(
    f: Function, given: Any, arguments: Any, values: Sequence[Any], places: Sequence[int]
) -> list[Any]:
    leaves: list[Any] = []
    for g, argument in zip(given, arguments, strict=True):
        try:
            leaves += [None] * len(flatten(argument)[0]) if g is None else leaves_like(g, argument)
        except ValueError:
            raise GradientError(
                f"{_name(f)}: its rule must return a cotangent in tuples, lists and dicts like the "
                "argument"
            ) from None
    made = []
    for place in places:
        g, x = leaves[place], Spec(values[place])
        if g is not None:
            g = matched(_fitting(_name(f), "cotangent", "argument", g, x), x)
        made.append(g)
    return made


def recorded(
    level: Level,
    inputs: Sequence[Any],
    places: Sequence[int],
    outs: Sequence[Any],
    pulled: Function,
) -> list[Any]:
    """Record a call with a rule of its own; return its results as traced arrays.

    Args:
        level: the transformation.
        inputs: the arguments.
        places: those that are differentiated.
        outs: the values of the results in the transformation.
        pulled: returns the cotangents of the differentiated arguments from those of the results.
    """
    origins = [inputs[place]._origin for place in places]
    if level.is_forward:
        tangents = pushed(pulled, outs, origins)
        return [with_tangent(y, level, t) for y, t in zip(outs, tangents, strict=True)]
    node = Own(origins, outs, pulled)
    return [Traced(y, level, (node, n)) if is_float(y) else y for n, y in enumerate(outs)]


def checkpoint(f: Function) -> Function:
    """Return a function that keeps its arguments alone for the backward pass; a decorator.

    The backward pass calls the function again, instead of keeping what it computed: less memory for
    more time.

    Raises:
        GradientError: the function uses a differentiated array that is not an argument.

    Example:
        >>> layer = dp.checkpoint(lambda x: dp.tanh(dp.cumsum(x)))
        >>> dp.grad(lambda x: dp.sum(layer(layer(x))))(dp.zeros(3)).tolist()
        [6.0, 3.0, 1.0]
    """

    @functools.wraps(f)
    def recomputed(*arguments: Any, **options: Any) -> Any:
        flat, structure = flatten(arguments)
        level = innermost(flat)
        if level is None or not level.is_tape:
            return f(*arguments, **options)
        places = [i for i, x in enumerate(flat) if is_of(x, level)]
        values = [_snapshot(x, level) for x in flat]
        outs, of_result = flatten(f(*unflatten(structure, values), **options))
        _check_captured(f, outs, level)
        # Pending, the results would keep what is to be dropped.
        dp.eval(*[y for y in map(value_of, outs) if isinstance(y, ndarray)])

        def again(*chosen: Any) -> Any:
            given = list(values)
            for place, x in zip(places, chosen, strict=True):
                given[place] = x
            return flatten(f(*unflatten(structure, given), **options))[0]

        def pulled(gs: list[Any]) -> Sequence[Any]:
            dp.eval(*gs)
            gs = [s.zeros() if g is None else g for g, s in zip(gs, specs, strict=True)]
            cotangents = vjp(again, *[values[place] for place in places])[1](gs)
            dp.eval(*cotangents)
            return cotangents

        specs = [Spec(y) for y in outs]
        return unflatten(of_result, recorded(level, flat, places, outs, pulled))

    return recomputed
