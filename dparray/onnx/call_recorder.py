"""Record the calls that a model makes on device arrays, and replay them.

The implementations of operators compute with :class:`Traced` values. A first pass through a model
computes as usual and records every call whose arguments depend on an input; the calls are then
compiled into one straight-line Python function, the plan. Sizes and attributes are constants of the
plan, so a replay does not look at nodes: it makes the calls, and dparray defers and fuses them as
in array code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray._array.operands import OVERRIDE, public_function
from dparray._graph.ops import OPS
from dparray.onnx import functions as dp
from dparray.onnx.plan import Line, Plan

#: Larger plans are not recorded: loops would make them grow without bound.
MAX_CALLS = 20_000

#: Functions whose one-element operands may be scalars, which need no device memory.
_ELEMENTWISE = {
    *("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "where"),
    *("equal", "not_equal", "greater", "less", "greater_equal", "less_equal"),
    *("floor_divide", "remainder", "fmod"),
}
_SPECIAL = ("erf", "expit")
#: Other functions that only record operations and read no values on the host.
_DEFERRED = ("convolve", "convolved")
#: Functions whose result may be a view of their first argument.
_VIEWS = (dp.reshape, dp.transpose, dp.broadcast_to, dp.expand_dims, operator.getitem)


def is_array(x: Any) -> bool:
    """Return whether a value is an array of dparray, or a differentiated one."""
    return isinstance(x, dp.ndarray) or hasattr(type(x), OVERRIDE)


def is_differentiated(x: Any) -> bool:
    """Return whether a value within a model is a differentiated array."""
    return isinstance(x, Traced) and hasattr(type(x.value), OVERRIDE)


class NeedsHostValue(Exception):
    """Raised if an operator reads an input on the host; the pass is repeated with it there."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(sorted(names))
        self.names = names


class Traced:
    """A device array within a model: its value, and its name in the plan.

    Permuted axes are a view, which is made when something needs it: operations on the results of
    convolutions do not.

    Attributes:
        value: the array.
        name: its variable in the plan, or None for a constant.
        sources: the inputs of the model that it depends on.
        shares: whether it shares the memory of an input or a constant, as a view does.
    """

    __slots__ = ("_name", "_untransposed", "_value", "recorder", "shares", "sources")
    __array_ufunc__ = None  # makes NumPy's operators defer to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        recorder: Recorder,
        value: Any,
        name: str | None = None,
        sources: Any = frozenset(),
        shares: bool = False,
    ) -> None:
        self.recorder, self._value, self._name = recorder, value, name
        self.sources, self.shares = sources, shares
        self._untransposed: tuple[Traced, tuple[int, ...]] | None = None

    dtype = property(lambda self: self._any.dtype)
    ndim = property(lambda self: self._any.ndim)
    size = property(lambda self: self._any.size)

    @property
    def _any(self) -> Any:
        """The array, or the array whose axes it permutes."""
        if self._value is None and self._untransposed is not None:
            return self._untransposed[0].value
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        given: tuple[int, ...] = self._any.shape
        if self._value is not None or self._untransposed is None:
            return given
        return tuple(given[axis] for axis in self._untransposed[1])

    @property
    def value(self) -> Any:
        """The array."""
        self._make_view()
        return self._value

    @property
    def name(self) -> str | None:
        """The variable in the plan, or None for a constant."""
        self._make_view()
        return self._name

    def _make_view(self) -> None:
        """Permute the axes, unless that is done."""
        if self._value is None and self._untransposed is not None:
            result: Traced = self.recorder.call(dp.transpose, *self._untransposed)
            self._value, self._name = result.value, result.name

    def _fix_order(self) -> None:
        """Permute the axes now, for a value that is not part of a convolution's result."""
        self._make_view()
        self._untransposed = None

    @property
    def T(self) -> Traced:
        """The transposed array."""
        return self.transpose(range(self.ndim)[::-1])

    def transpose(self, *axes: Any) -> Traced:
        """Permute the axes; a permutation of a permuted array starts from the original."""
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(int(axis) % self.ndim for axis in axes)
        start = self
        if self._untransposed is not None:
            start, inner = self._untransposed
            order = tuple(inner[axis] for axis in order)
        if order == tuple(range(start.ndim)):
            return start
        result = Traced(self.recorder, None, None, start.sources, start.shares)
        result._untransposed = (start, order)
        return result

    def reshape(self, *shape: Any) -> Traced:
        """Return the elements in another shape."""
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if tuple(shape) == self.shape:
            return self
        result: Traced = self.recorder.call(dp.reshape, self, tuple(shape))
        return result

    def astype(self, dtype: Any, copy: bool = True) -> Traced:
        """Convert to a dtype; return the array itself if it has that dtype."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        result: Traced = self.recorder.call(_astype, self, dtype)
        return result

    def __getitem__(self, index: Any) -> Traced:
        result: Traced = self.recorder.call(operator.getitem, self, index)
        return result


def _astype(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


def _operators() -> None:
    """Define the operators of arrays for `Traced`."""
    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
        "floordiv": "floor_divide", "mod": "remainder", "and": "logical_and", "or": "logical_or",
        "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
        "ne": "not_equal", "matmul": "matmul",
    }  # fmt: skip
    for name, call in (("abs", dp.abs), ("neg", dp.negative)):
        setattr(Traced, f"__{name}__", lambda x, f=call: x.recorder.call(f, x))
    for name, function in names.items():
        call = getattr(dp, function)
        setattr(Traced, f"__{name}__", lambda x, y, f=call: x.recorder.call(f, x, y))
        setattr(Traced, f"__r{name}__", lambda x, y, f=call: x.recorder.call(f, y, x))


_operators()


class Recorder:
    """Computes with `Traced` values and records the calls.

    It replaces the module in operators: ``recorder.add(x, y)`` is ``dp.add``, recorded.

    Attributes:
        is_recording: False after a value was read that the plan cannot know.
        label: the number of the node whose calls are recorded.
        calls: the names of the called functions by label, for `explain`.
    """

    def __init__(self, device: Any, placed: dict[int, tuple[Any, Any]], sources: Any = ()) -> None:
        self.device, self.placed = device, placed
        self.is_recording, self.label = True, -1
        self.lines: list[Line] = []
        self.calls: dict[int, list[str]] = {}
        self.constants: list[Any] = []
        self._number = 0
        self._pinnable = frozenset(sources)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(dp.special if name in _SPECIAL else dp, name)

        def call(*arguments: Any, **named: Any) -> Any:
            return self.call(function, *arguments, **named)

        setattr(self, name, call)
        return call

    def input(self, name: str, value: Any) -> Traced:
        """Return a value for the plan's next argument, ``name``."""
        traced = Traced(self, value, f"t{self._number}", frozenset((name,)), True)
        self._number += 1
        return traced

    def place(self, x: Any) -> Any:
        """Copy a host array to the device, once."""
        if isinstance(x, Traced) or x is None:
            return x
        entry = self.placed.get(id(x))
        if entry is None or entry[0] is not x:
            # The entry keeps the host array alive, so that its id stays unique.
            entry = self.placed[id(x)] = (x, dp.asarray(np.asarray(x), device=self.device))
        return Traced(self, entry[1], shares=True)

    def read(self, x: Traced) -> Any:
        """Return a value on the host; the plan is then valid for these values only."""
        if x.name is not None:
            if self.is_recording and x.sources and x.sources <= self._pinnable:
                raise NeedsHostValue(x.sources)
            self.is_recording = False
        return x.value.asnumpy()

    def transpose(self, x: Any, axes: Any = None) -> Any:
        """Permute the axes."""
        self.calls.setdefault(self.label, []).append("transpose")
        return self.place(x).transpose(range(x.ndim)[::-1] if axes is None else axes)

    def reshape(self, x: Any, shape: Any) -> Any:
        """Return the elements in another shape."""
        return self.place(x).reshape(shape)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call ``function`` on the values, and record it if they depend on an input."""
        return self._call(function, arguments, named, False)

    def call_each_time(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``function`` and record it, although its arguments may be constants."""
        return self._call(function, arguments, {}, True)

    def _call(self, function: Any, arguments: Any, named: Any, always: bool) -> Any:
        sources: set[str] = set()
        name = getattr(function, "__name__", "")
        is_elementwise = name in _ELEMENTWISE
        maps = is_elementwise or name in OPS or name in _SPECIAL or function is _astype
        if not named and maps:
            ordered = _in_order_of_memory(arguments)
            if ordered is not None:
                arguments, order = ordered
                made = self._call(function, arguments, named, always)
                return made.transpose(order) if isinstance(made, Traced) else made
        # A constant of one element is a scalar, unless it adds axes to the result.
        rank = -1
        if is_elementwise:
            wide = (x.ndim for x in arguments if isinstance(x, Traced) or np.size(x) != 1)
            rank = max(wide, default=-1)
        dtypes = [each.dtype for each in arguments if is_elementwise and isinstance(each, Traced)]
        names: list[str] = []  # This closure must not keep the values alive.
        first = arguments[0] if arguments else None
        shares = function in _VIEWS and isinstance(first, Traced) and first.shares

        is_any_differentiated = False

        def plain(x: Any) -> Any:
            """Return the value of an argument, and collect the names of variables in it."""
            nonlocal is_any_differentiated
            if isinstance(x, Traced):
                is_any_differentiated |= is_differentiated(x)
                sources.update(x.sources)
                if x.name is not None:
                    names.append(x.name)
                return x.value
            if isinstance(x, np.ndarray):
                if x.ndim > 0 and not (x.size == 1 and x.ndim <= rank):
                    return self.place(x).value
                x = x.reshape(())[()]
            if isinstance(x, np.floating) and x.dtype in dtypes:
                return x.item()  # It has the same meaning with fewer checks.
            if type(x) in (tuple, list):
                return type(x)(map(plain, x))
            return x

        values = plain(tuple(arguments))
        keywords = {key: plain(value) for key, value in named.items()}
        if is_any_differentiated:  # only public functions look for them in sequences
            function = public_function(function)
        result = function(*values, **keywords)
        if not names and not always:
            return _wrapped(result, lambda value: Traced(self, value, shares=shares))

        results: list[str] = []

        def fresh(value: Any) -> Traced:
            name = f"t{self._number}"
            self._number += 1
            results.append(name)
            return Traced(self, value, name, frozenset(sources), shares)

        made = _wrapped(result, fresh)
        if self.is_recording:
            given = [self._written(x, y) for x, y in zip(arguments, values, strict=True)]
            given += [f"{k}={self._written(named[k], keywords[k])}" for k in named]
            left = results[0] if is_array(result) else f"[{', '.join(results)}]"
            text = f"{left} = {self._constant(function)}({', '.join(given)})"
            defers = (maps or name in _DEFERRED) and not always
            self.lines.append(Line(self.label, tuple(results), text, frozenset(names), defers))
            self.calls.setdefault(self.label, []).append(getattr(function, "__name__", "call"))
            if len(self.lines) > MAX_CALLS:
                self.is_recording = False
        return made

    def _written(self, given: Any, value: Any) -> str:
        """Return the source of an argument in the plan: a variable or a constant."""
        if isinstance(given, Traced) and given.name is not None:
            return given.name
        if type(given) is tuple and any(map(_varies, given)):
            inner = [self._written(x, y) for x, y in zip(given, value, strict=True)]
            return f"({', '.join(inner)},)"
        if type(given) is list and any(map(_varies, given)):
            inner = [self._written(x, y) for x, y in zip(given, value, strict=True)]
            return f"[{', '.join(inner)}]"
        return self._constant(value)

    def _constant(self, value: Any) -> str:
        for number, known in enumerate(self.constants[-40:], max(0, len(self.constants) - 40)):
            if known is value:
                return f"c{number}"
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    def plan(self, inputs: list[Traced], outputs: list[Any]) -> Plan:
        """Return the recorded calls as a function from the inputs to the outputs."""
        returned = [
            x.name if isinstance(x, Traced) and x.name else self._constant(value_of(x))
            for x in outputs
        ]
        return Plan([x.name or "" for x in inputs], self.lines, returned, self.constants)


def _in_order_of_memory(arguments: Sequence[Any]) -> tuple[tuple[Any, ...], Any] | None:
    """Return the operands before their common permutation, and it; ``None`` without one.

    The transposed results of convolutions stay channels-last, so that the operations that follow
    are computed with them.
    """
    known = {x._untransposed[1] for x in arguments if isinstance(x, Traced) and x._untransposed}
    if len(known) != 1:
        return None
    (order,) = known
    inverse = tuple(np.argsort(order))
    found: list[Any] = []
    for x in arguments:
        if isinstance(x, Traced) and x._untransposed is not None:
            found.append(x._untransposed[0])
        elif np.ndim(x) == 0:
            found.append(x)
        elif isinstance(x, Traced) and x.name is not None:
            return None  # It has a different order in memory.
        elif x.ndim <= len(order):
            wide = x.reshape((*(1,) * (len(order) - x.ndim), *x.shape))
            result = wide.transpose(inverse)
            if isinstance(result, Traced):
                result._fix_order()  # Otherwise the next call would permute it again.
            found.append(result)
        else:
            return None
    return tuple(found), order


def _varies(x: Any) -> bool:
    if isinstance(x, Traced):
        return x.name is not None
    return type(x) in (tuple, list) and any(map(_varies, x))


def value_of(x: Any) -> Any:
    """Return a value without its name in the plan."""
    if isinstance(x, Traced):
        return x.value
    return [value_of(each) for each in x] if isinstance(x, list) else x


def _wrapped(result: Any, wrap: Callable[[Any], Any]) -> Any:
    if is_array(result):
        return wrap(result)
    if isinstance(result, tuple | list):
        return tuple(_wrapped(each, wrap) for each in result)
    return result
