"""Operations and values: programs composed from Tile functions, under PlaidML's names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dparray._array.assignment import assign
from dparray._evaluate import evaluate
from dparray.exceptions import PlaidMLError, TileError
from dparray.plaidml.devices import Context, Device, DType, Tensor
from dparray.plaidml.functions import Function
from dparray.tilelang.function import TileFunction
from dparray.tilelang.invocation import Invocation


class LogicError(PlaidMLError):
    """Raised for operations and values that do not fit together."""


class Shape(NamedTuple):
    """The type and the sizes of a value; an unknown size is ``None``."""

    dtype: DType
    dims: tuple[Any, ...]

    @property
    def ndims(self) -> int:
        """The number of dimensions."""
        return len(self.dims)


def common_dtype(*dtypes: DType) -> DType:
    """Return the type that can represent the values of all types. Booleans are weakest; floats
    are at least twice as wide as the integers with which they are combined.
    """
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = _common(found, dtype)
    return found


def _common(a: DType, b: DType) -> DType:
    if DType.BOOLEAN in (a, b):
        return b if a is DType.BOOLEAN else a
    kinds = {a >> 4, b >> 4}
    bits = [8 << (each & 3) for each in (a, b)]
    if len(kinds) == 1:
        return max(a, b)
    if 3 in kinds:
        float_bits, other = bits if a >> 4 == 3 else bits[::-1]
        return DType[f"FLOAT{min(64, max(float_bits, 2 * other))}"]
    wide = 2 * (bits[0] if a >> 4 == 2 else bits[1])
    if wide > 64:
        return DType.FLOAT64
    return DType[f"INT{max(wide, bits[0] if a >> 4 == 1 else bits[1])}"]


Operator = Callable[["Value", Any], "Value"]


def _operators(text: str, neutral: int | None = None) -> tuple[Operator, Operator]:
    """Return the methods for an operator with the value on its left, and on its right.

    An operation with the number ``neutral`` is the value itself.
    """

    def operate(self: Value, other: Any) -> Value:
        return self if _is(other, neutral) else binary_op(self, other, text)

    def reflected(self: Value, other: Any) -> Value:
        return self if _is(other, neutral) else binary_op(other, self, text)

    return operate, reflected


def _is(value: Any, number: int | None) -> bool:
    return isinstance(value, int | float) and value == number


class Value:
    """A tensor that is computed when its operations are composed and run.

    Attributes:
        shape: a :class:`Shape`.
        name: for messages.
    """

    def __init__(
        self,
        shape: Shape,
        source: tuple[Operation, str] | None = None,
        var: Any = None,
        name: str = "",
    ) -> None:
        self.shape = shape
        self.source = source
        self.var = var
        self.name = name

    @classmethod
    def from_ndims(cls, ndims: int, dtype: DType = DType.FLOAT32, name: str = "") -> Value:
        """Create an input of a given rank."""
        return cls(Shape(dtype, (None,) * ndims), name=name)

    @classmethod
    def from_dimensions(
        cls, dimensions: Sequence[int | None], dtype: DType = DType.FLOAT32, name: str = ""
    ) -> Value:
        """Create an input of given sizes; ``None`` allows any size."""
        return cls(Shape(dtype, tuple(dimensions)), name=name)

    @classmethod
    def from_var(
        cls, var: Any, dimensions: Sequence[Any], dtype: DType = DType.FLOAT32, name: str = ""
    ) -> Value:
        """Create a value from a tensor or a number."""
        if isinstance(var, Tensor):
            dtype = var.shape.dtype
        return cls(Shape(dtype, tuple(dimensions)), var=var, name=name)

    @classmethod
    def from_python_value(cls, value: Any, name: str = "") -> Value:
        """Convert a number to a value; return a value unchanged."""
        if isinstance(value, Value):
            return value
        if isinstance(value, bool | int):
            return cls(Shape(DType.INT32, ()), var=int(value), name=name)
        if isinstance(value, float):
            return cls(Shape(DType.FLOAT32, ()), var=value, name=name)
        raise LogicError(f"{value!r} of type {type(value).__name__} is not a value; give a number")

    __add__, __radd__ = _operators("L + R", neutral=0)
    __sub__, _ = _operators("L - R", neutral=0)
    _, __rsub__ = _operators("L - R")
    __mul__, __rmul__ = _operators("L * R", neutral=1)
    __truediv__, _ = _operators("L / R", neutral=1)
    _, __rtruediv__ = _operators("L / R")
    __floordiv__, __rfloordiv__ = _operators("floor(L / R)")
    __and__, _ = _operators("L & R")
    __or__, _ = _operators("L | R")
    __xor__, _ = _operators("L ^ R")
    __lshift__, _ = _operators("L << R")
    __rshift__, _ = _operators("L >> R")
    __lt__, _ = _operators("L < R")
    __le__, _ = _operators("L <= R")
    __gt__, _ = _operators("L > R")
    __ge__, _ = _operators("L >= R")

    def __neg__(self) -> Value:
        return unary_op(self, "-I")

    def __invert__(self) -> Value:
        return unary_op(self, "~I")

    def __abs__(self) -> Value:
        return unary_op(self, "abs(I)")

    def __getitem__(self, key: Any) -> Value:
        return _sliced(self, key if isinstance(key, tuple) else (key,))

    def __repr__(self) -> str:
        return f"<plaidml value {self.name or self.shape}>"


class Operation:
    """One Tile function applied to values.

    Args:
        code: the program.
        inputs: pairs of the name of an input and its value, or a number.
        outputs: pairs of the name of an output and its :class:`Shape`.
        name: for messages.

    Raises:
        LogicError: the names are not those of the program.
        TileError: the program is ill-formed.
    """

    def __init__(
        self,
        code: str,
        inputs: Iterable[tuple[str, Any]],
        outputs: Iterable[tuple[str, Shape]],
        name: str | None = None,
        side_effects: Any = None,
    ) -> None:
        self.function_of_arrays = TileFunction(code)
        self.name = name or type(self).__name__
        self.inputs = {key: Value.from_python_value(each) for key, each in inputs}
        self.side_effects = side_effects or []
        shapes = dict(outputs)
        for kind, given, wanted in (
            ("inputs", list(self.inputs), list(self.function_of_arrays.inputs)),
            ("outputs", list(shapes), list(self.function_of_arrays.outputs)),
        ):
            if sorted(given) != sorted(wanted):
                raise LogicError(
                    f"{self.name}: the {kind} are {', '.join(given)}, those of the program "
                    f"{', '.join(wanted)}; give each by its name"
                )
        self.outputs = {key: Value(shape, (self, key), name=key) for key, shape in shapes.items()}

    @property
    def output_tuple(self) -> tuple[Value, ...]:
        """The outputs, in order."""
        return tuple(self.outputs.values())

    def sole_output(self) -> Value:
        """Return the only output.

        Raises:
            LogicError: there are several.
        """
        if len(self.outputs) != 1:
            raise LogicError(f"{self.name} has {len(self.outputs)} outputs; take one by its name")
        return next(iter(self.outputs.values()))

    @classmethod
    def function(cls, *args: Any, **kwargs: Any) -> Any:
        """Create an operation, and return its output or a tuple of outputs."""
        result = cls(*args, **kwargs)
        return result.sole_output() if len(result.outputs) == 1 else result.output_tuple


def value_of(
    code: str, inputs: Iterable[tuple[str, Any]], shape: Shape, name: str | None = None
) -> Value:
    """Return the output ``O`` of a program as a value."""
    return Operation(code, inputs, [("O", shape)], name).sole_output()


def unary_op(value: Any, text: str, name: str | None = None) -> Value:
    """Return an elementwise operation on ``I``: ``unary_op(v, 'exp(I)')``."""
    given = Value.from_python_value(value)
    return value_of(f"function (I) -> (O) {{ O = {text}; }}", [("I", given)], given.shape, name)


def binary_op(
    left: Any, right: Any, text: str, dtype: DType | None = None, name: str | None = None
) -> Value:
    """Return an elementwise operation on ``L`` and ``R``: ``binary_op(a, b, 'L + R')``."""
    a, b = Value.from_python_value(left), Value.from_python_value(right)
    kind = dtype or common_dtype(a.shape.dtype, b.shape.dtype)
    dims = list(a.shape.dims if a.shape.ndims >= b.shape.ndims else b.shape.dims)
    for own in (a.shape.dims, b.shape.dims):
        for axis, size in enumerate(own, len(dims) - len(own)):
            if dims[axis] == 1 or (dims[axis] is None and size != 1):
                dims[axis] = size
    return value_of(
        f"function (L, R) -> (O) {{ O = {text}; }}",
        [("L", a), ("R", b)],
        Shape(kind, tuple(dims)),
        name,
    )


def written(indices: Sequence[str], sizes: Sequence[Any]) -> str:
    """Return the indices and sizes of a contraction's output, for its brackets."""
    return f"{', '.join(indices)} : {', '.join(map(str, sizes))}" if indices else ""


def _sliced(value: Value, key: tuple[Any, ...]) -> Value:
    """Return integers and slices with positive or negative steps, and their sizes."""
    dims = value.shape.dims
    if len(key) > len(dims) or any(not isinstance(size, int) for size in dims):
        raise LogicError(f"{key} of a value of {dims}; slices need known sizes, and no more axes")
    read: list[str] = []
    kept: list[str] = []
    sizes: list[int] = []
    for axis, size in enumerate(dims):
        part = key[axis] if axis < len(key) else slice(None)
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            read.append(
                f"{start} + {step} * i{axis}" if step > 0 else f"{start} - {-step} * i{axis}"
            )
            kept.append(f"i{axis}")
            sizes.append(len(range(start, stop, step)))
        else:
            if not -size <= part < size:
                raise IndexError(f"the index {part} is outside of an axis of {size}")
            read.append(str(part % size))
    names = ", ".join(f"N{axis}" for axis in range(len(dims)))
    head = written(kept, sizes)
    return value_of(
        f"function (I[{names}]) -> (O) {{ O[{head}] = =(I[{', '.join(read)}]); }}",
        [("I", value)],
        Shape(value.shape.dtype, tuple(sizes)),
        "slice",
    )


def compose(
    ctx: Context,
    dev: Device,
    inputs: Sequence[tuple[str, Value]],
    outputs: Sequence[tuple[str, Value]],
    updates: Sequence[tuple[Value, Value]] | None = None,
) -> Function:
    """Compose all operations that the outputs need into one function.

    Args:
        ctx, dev: where it will run.
        inputs: pairs of a name and a value without a source.
        outputs: pairs of a name and a value.
        updates: pairs of a value that is a tensor and its new value, written after the computation.

    Returns:
        A :class:`Function`; tensors among the values are bound to it.

    Raises:
        LogicError: a value is needed that is no input and that nothing computes.
    """
    ctx.check()
    dev.check()
    return _Composer(inputs).function(outputs, updates or ())


def load_function(ctx: Context, dev: Device, filename: str) -> Function:
    """Return the function that :meth:`Function.save` wrote.

    Raises:
        LogicError: the file is damaged.
        TileError: the program in it is ill-formed.
    """
    ctx.check()
    dev.check()
    text = Path(filename).read_text()
    if not text.startswith(COMPOSED):
        return Function(text)
    composed = ComposedFunction.from_text(text)
    return Function(composed.source, tile=composed)


class _Composer:
    """Orders the operations that values depend on."""

    def __init__(self, inputs: Sequence[tuple[str, Value]]) -> None:
        self.header = [name for name, _ in inputs]
        self.slots: dict[int, str] = {id(value): name for name, value in inputs}
        self.kept: list[Value] = [value for _, value in inputs]
        self.steps: list[Step] = []
        self.bound: dict[str, Tensor] = {}

    def function(
        self, outputs: Sequence[tuple[str, Value]], updates: Sequence[tuple[Value, Value]]
    ) -> Function:
        results = {name: self.slot_of(value) for name, value in outputs}
        updated: dict[str, Tensor] = {}
        for number, (old, new) in enumerate(updates):
            if not isinstance(old.var, Tensor):
                raise LogicError("an updated value must be a tensor; create it by from_var")
            results[f"Update_{number}"] = self.slot_of(new)
            updated[f"Update_{number}"] = old.var
        composed = ComposedFunction((*self.header, *self.bound), self.steps, results)
        return Function(composed.source, tile=composed, bound=self.bound, updated=updated)

    def slot_of(self, value: Value) -> Any:
        """Return the slot of a value when the operations run; return a number unchanged."""
        if id(value) not in self.slots:
            self.kept.append(value)
            if value.source is not None:
                operation, key = value.source
                self.add(operation)
                return self.slots[id(operation.outputs[key])]
            if isinstance(value.var, Tensor):
                name = f"Bound_{len(self.bound)}"
                self.bound[name] = value.var
                self.slots[id(value)] = name
            elif value.var is not None:
                return value.var
            else:
                raise LogicError(f"{value!r} is needed, but is neither an input nor computed")
        return self.slots[id(value)]

    def add(self, operation: Operation) -> None:
        """Add an operation after the operations that it depends on."""
        function = operation.function_of_arrays
        given = [self.slot_of(operation.inputs[name]) for name in function.inputs]
        result = [f"{len(self.steps)}.{name}" for name in function.outputs]
        for name, slot in zip(function.outputs, result, strict=True):
            self.slots[id(operation.outputs[name])] = slot
        declared = [
            (each.shape.dtype.name, tuple(_size(size) for size in each.shape.dims))
            for each in (operation.outputs[name] for name in function.outputs)
        ]
        self.steps.append(Step(operation.name, function, given, result, declared))


class Step(NamedTuple):
    """A Tile function in a composed one.

    Attributes:
        name: of the operation, for messages.
        function: the function.
        given: for each input the slot that holds it, or a number.
        made: the slots of the outputs.
        declared: for each output the name of its type, and its sizes, ``None`` if not known.
    """

    name: str
    function: TileFunction
    given: list[Any]
    made: list[str]
    declared: list[tuple[str, tuple[int | None, ...]]]

    def check(self, shapes: Iterable[tuple[int, ...]]) -> None:
        """Raise if outputs have other sizes than the operation declared.

        Raises:
            LogicError: they have.
        """
        outputs = zip(self.function.outputs, self.declared, shapes, strict=True)
        for output, (kind, wanted), found in outputs:
            if len(found) != len(wanted) or any(
                size is not None and size != own for size, own in zip(wanted, found, strict=True)
            ):
                raise LogicError(
                    f"{self.name}: the output {output} has shape {tuple(found)}, declared was "
                    f"{wanted}; declare tile.Shape(DType.{kind}, {tuple(found)}), or None for "
                    "sizes that vary"
                )


def _size(size: Any) -> int | None:
    return size if isinstance(size, int) else None


#: The first line of a file with a composed function, which distinguishes it from a Tile program.
COMPOSED = "// functions in sequence, of dparray.plaidml, version 1\n"


class ComposedFunction:
    """Tile functions in sequence; their element-wise operations are fused, also across functions.

    Attributes:
        inputs, outputs: names.
        source: the texts of the functions.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        steps: Sequence[Step],
        results: dict[str, Any],
    ) -> None:
        self.inputs = tuple(inputs)
        self.outputs = tuple(results)
        self.source = "\n".join(step.function.source for step in steps)
        self._steps = tuple(steps)
        self._results = results

    def text(self) -> str:
        """Return a text from which :meth:`from_text` restores the function."""
        steps = [
            {"source": step.function.source, **step._asdict(), "function": None}
            for step in self._steps
        ]
        content = {"inputs": self.inputs, "steps": steps, "results": self._results}
        return COMPOSED + json.dumps(content, indent=1)

    @classmethod
    def from_text(cls, text: str) -> ComposedFunction:
        """Restore a function from the text that :attr:`text` returned.

        Raises:
            LogicError: it is not such a text.
            TileError: a program in it is ill-formed.
        """
        try:
            content = json.loads(text.removeprefix(COMPOSED))
            steps = [
                Step(
                    each["name"],
                    TileFunction(each["source"]),
                    list(each["given"]),
                    list(each["made"]),
                    [(kind, tuple(sizes)) for kind, sizes in each["declared"]],
                )
                for each in content["steps"]
            ]
            results = dict(content["results"])
            slots = set(content["inputs"])
            for step in steps:
                _check_slots(step.given, slots)
                slots.update(step.made)
            _check_slots(results.values(), slots)
            return cls([*content["inputs"]], steps, results)
        except TileError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise LogicError(
                f"load_function: the file is damaged ({error!r}); save the function again"
            ) from None

    def infer(self, *values: Any) -> dict[str, Any]:
        """Return shapes and dtypes of the outputs."""
        slots = dict(zip(self.inputs, values, strict=True))
        for step in self._steps:
            found = step.function.infer(*[_taken(slots, each) for each in step.given])
            step.check([shape for shape, _ in found.values()])
            slots.update(zip(step.made, found.values(), strict=True))
        results = {name: _taken(slots, result) for name, result in self._results.items()}
        return {
            name: (result.shape, result.dtype) if hasattr(result, "dtype") else result
            for name, result in results.items()
        }

    def submitted(self, *values: Any, out: Mapping[str, Any], device: Any = None) -> Any:
        """Compute the outputs, and write them to arrays."""
        slots = dict(zip(self.inputs, values, strict=True))
        for step in self._steps:
            result = step.function(*[_taken(slots, each) for each in step.given], device=device)
            results = result if isinstance(result, tuple) else (result,)
            step.check([each.shape for each in results])
            slots.update(zip(step.made, results, strict=True))
        found = {name: _taken(slots, each) for name, each in self._results.items()}
        for name, target in out.items():
            if (found[name].shape, found[name].dtype) != (target.shape, target.dtype):
                raise LogicError(
                    f"the output {name} has shape {found[name].shape} and dtype "
                    f"{found[name].dtype}, its tensor {target.shape} and {target.dtype}"
                )
        evaluate.evaluate(*(each._node for each in found.values() if each.is_pending))
        for name, target in out.items():
            assign(target, found[name], "plaidml.run")
        return Invocation(tuple(out), tuple(out.values()))


def _check_slots(wanted: Iterable[Any], slots: set[str]) -> None:
    for each in wanted:
        if isinstance(each, str) and each not in slots:
            raise ValueError(f"{each} is computed by no step")


def _taken(slots: dict[str, Any], each: Any) -> Any:
    return slots[each] if isinstance(each, str) else each
