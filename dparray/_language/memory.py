"""Arrays, their elements and parts, as ops of the IR."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dparray._ir.instructions import Op
from dparray._ir.types import BOOL, F16, F32, I64, PRIVATE, U64, Pointer, Type, of_dtype
from dparray._language import prelude
from dparray._language.advice import Notes
from dparray._language.errors import NOT_AN_ELEMENT, Refusal
from dparray._language.numbers import Numbers
from dparray._language.values import (
    NONE,
    Array,
    Complex,
    Constant,
    Item,
    Method,
    Number,
    Range,
    Slice,
    Tuple,
    are_arrays,
    are_tuples,
    array_name,
    described,
    entries_of,
    is_number,
    type_name,
)

#: The index that takes all of an axis.
WHOLE = Slice(NONE, NONE, NONE)


class Memory(Numbers):
    """The part of the front end for arrays, and for items of other values.

    Attributes:
        relied: the parameters that indices rely on not to be negative.
        notes: what the kernel is warned of.
        is_in_kernel: whether a statement of the kernel is being translated, not of a function.
    """

    relied: set[Op]
    notes: Notes
    is_in_kernel: bool

    # -- addresses --------------------------------------------------------------------------------

    def strides(self, array: Array) -> tuple[Number, ...]:
        """Return the strides of an array in bytes."""
        if array.strides is not None:
            return array.strides
        strides: list[Number] = []
        size: Any = Constant(array.itemsize)
        for extent in reversed(array.shape):
            strides.insert(0, self.number(size))
            size = self.made("mul", I64, size, extent)
        return tuple(strides)

    def position(self, index: Any, extent: Number, node: ast.AST | None = None) -> Number:
        """Return an index that counts from the start: negative ones count from the end."""
        self.check_index(index, node)
        if isinstance(index, Constant):
            if index.value >= 0:
                return self.to(index, I64)
            return self.made("add", I64, extent, index)
        if self.is_natural(index):
            self.relied |= index.relies
            return self.to(index, I64)
        start = self.to(index, I64)
        negative = self.op("lt", BOOL, start.op, self.constant(0, I64))
        from_end = self.op("add", I64, start.op, extent.op)
        return Number(self.op("select", I64, negative, from_end, start.op))

    def check_index(self, index: Any, node: ast.AST | None) -> None:
        """Refuse an index that is not an integer."""
        if isinstance(index, Item):
            raise Refusal("an index is an integer: item.get_id(0), not the item itself", node)
        kind = self.type_of(index)
        if kind.kind == "b":
            raise Refusal(
                "an index must be an integer, and this one is a Boolean: convert it with int(...)",
                node,
            )
        if kind.is_float or kind.lanes > 1:
            raise Refusal(
                f"an index is an integer, and this one is {type_name(kind)}: convert it with "
                "int(...)",
                node,
            )

    def address(self, array: Array, index: Any, node: ast.AST | None = None) -> Op:
        """Return the address of an element."""
        parts = entries_of(index)
        if len(parts) > len(array.shape):
            self.refuse_indices(array, parts, node)
        if len(parts) != len(array.shape) or any(_is_partial(part) for part in parts):
            raise Refusal(
                f"what is accessed here is a part of {array_name(array)}, {NOT_AN_ELEMENT}", node
            )
        positions = [
            self.position(part, extent, node)
            for part, extent in zip(parts, array.shape, strict=True)
        ]
        positions = self.checked(array, parts, positions, node)
        return self.address_of(array, positions)

    def refuse_indices(self, array: Array, parts: Sequence[Any], node: ast.AST | None) -> None:
        count = len(array.shape)
        if count == 0:
            raise Refusal("an array without dimensions has one element, x[()]", node)
        raise Refusal(
            f"too many indices for {array_name(array)}: it takes {count}, and {len(parts)} are "
            "given: write one for each dimension",
            node,
        )

    def address_of(self, array: Array, positions: Sequence[Number]) -> Op:
        """Return the address at the positions of the first axes."""
        if not positions:
            return array.pointer
        kind = array.pointer.type
        if array.strides is not None:
            distance: Op | None = None
            for position, stride in zip(positions, array.strides, strict=False):
                step = self.op("mul", I64, position.op, stride.op)
                distance = step if distance is None else self.op("add", I64, distance, step)
            assert distance is not None
            return self.op("offset", kind, array.pointer, distance, attribute="bytes")
        number = positions[0].op
        for position, extent in zip(positions[1:], array.shape[1:], strict=False):
            number = self.op("add", I64, self.op("mul", I64, number, extent.op), position.op)
        for extent in array.shape[len(positions) :]:
            number = self.op("mul", I64, number, extent.op)
        if array.is_complex:
            number = self.op("mul", I64, number, self.constant(2, I64))
        return self.op("offset", kind, array.pointer, number)

    def address_of_run(self, array: Array, index: Any, count: int, node: ast.AST) -> Op:
        """Return the address of an element, with others after it along the last axis."""
        return self.address(array, index, node)

    def along(self, array: Array, address: Op, count: int) -> list[Op]:
        """Return the addresses of elements along the last axis, from one on."""
        assert array.strides is not None
        places = []
        for number in range(count):
            step = self.op("mul", I64, array.strides[-1].op, self.constant(number, I64))
            places.append(self.op("offset", address.type, address, step, attribute="bytes"))
        return places

    # -- checks, for kernels that are launched under `dp.config.debug` ----------------------------

    def guarded(self, address: Op, translate: Callable[[], Any], otherwise: Any = NONE) -> Any:
        """Translate an access to an address, unless it is outside of its array."""
        raise NotImplementedError

    def checked(
        self, array: Array, parts: Sequence[Any], positions: list[Number], node: ast.AST | None
    ) -> list[Number]:
        """Return positions that are inside of an array."""
        raise NotImplementedError

    def checked_view(
        self, array: Array, parts: Sequence[Any], starts: list[Number], node: ast.AST
    ) -> list[Number]:
        """Return where a part of an array starts, inside of it."""
        raise NotImplementedError

    def check_item(self, index: Any, position: Number, count: int, node: ast.AST) -> None:
        """Report an index outside of a tuple."""
        raise NotImplementedError

    def check_step(self, step: Any, node: ast.AST) -> None:
        """Report a step of 0."""
        raise NotImplementedError

    # -- elements ---------------------------------------------------------------------------------

    def read(self, array: Array, address: Op) -> Any:
        """Return the element at an address."""
        if array.is_complex:
            parts = [self.op("load", array.element, each) for each in self.parts_of(address)]
            return Complex(*map(Number, parts))
        return self.loaded(Number(self.op("load", array.element, address)))

    def parts_of(self, address: Op) -> tuple[Op, Op]:
        """Return the addresses of the parts of a complex number."""
        return address, self.op("offset", address.type, address, self.constant(1, I64))

    def loaded(self, value: Number) -> Number:
        """Return what was read from memory; a float16 is computed with as a float32."""
        is_half = value.type.scalar == F16
        return self.to(value, F32._replace(lanes=value.type.lanes)) if is_half else value

    def write(self, array: Array, address: Op, value: Any, node: ast.AST | None = None) -> None:
        """Write an element."""
        if array.is_readonly:
            raise Refusal(
                "the array that is written here is read-only: it repeats elements "
                "(dp.broadcast_to), or its owner forbids writes. Launch the kernel on a copy, "
                "dp.asarray(x, copy=True)",
                node,
            )
        if isinstance(value, Array):
            raise Refusal(f"what is assigned is {array_name(value)}, {NOT_AN_ELEMENT}", node)
        if array.is_complex:
            self.notes.writes = True
            self.guarded(address, functools.partial(self.write_complex, array, address, value))
            return
        if isinstance(value, Complex):
            raise Refusal(
                f"a {described(value)} does not fit into {array_name(array)}: write its .real or "
                ".imag, or take a complex array",
                node,
            )
        self.note_cut(self.type_of(value), array, node)
        number = self.to(value, array.element).op
        self.guarded(address, lambda: self.op("store", None, address, number) and NONE)

    def write_complex(self, array: Array, address: Op, value: Any) -> None:
        """Write a complex number."""
        whole = self.complex(value)
        for place, part in zip(self.parts_of(address), (whole.real, whole.imag), strict=True):
            self.op("store", None, place, self.to(part, array.element).op)

    def note_cut(self, kind: Type, array: Array, node: ast.AST | None) -> None:
        """Record that a float is written into an array of integers, for a warning."""
        self.notes.writes = True
        if kind.is_float and array.element.is_integer and self.is_in_kernel:
            text = (
                f"{kind.scalar.name} is written into an array of {array.element.name}, which drops "
                "the fraction; write int(...), or use an array of floats"
            )
            self.notes.cuts.add((self.notes.line, text))

    def element(self, owner: Any, index: Any, node: ast.AST) -> Any:
        """Return ``owner[index]``."""
        if isinstance(owner, Constant) and isinstance(owner.value, tuple | str):
            owner = Tuple(tuple(self.known(each) for each in owner.value))
        if isinstance(owner, Constant) and isinstance(owner.value, dict):
            return self.known(owner.value[index.value])
        if isinstance(owner, Tuple):
            return self.item(owner, index, node)
        if isinstance(owner, Number) and owner.type.lanes > 1:
            return self.element_of_vector(owner, index, node)
        if is_number(owner) or isinstance(owner, Complex):
            name = described(owner) if not isinstance(owner, Constant) else self.type_of(owner).name
            raise Refusal(
                f"what is indexed is one {name}, which has no elements: leave the index out, or "
                "pass an array",
                node,
            )
        if not isinstance(owner, Array):
            raise Refusal(f"{described(owner)} has no elements", node)
        parts = entries_of(index)
        for part in parts:
            if isinstance(part, Array):
                raise Refusal(f"an index is {array_name(part)}, {NOT_AN_ELEMENT}", node)
        if parts == (Constant(...),):
            raise Refusal(
                "an index that is ... alone is not available in a kernel: leave it out", node
            )
        if len(parts) < len(owner.shape) or any(_is_partial(part) for part in parts):
            return self.view(owner, parts, node)
        value = self.read(owner, self.address(owner, index, node))
        if self.is_noted_double(value):
            self.notes.computes_double(f"an element that it reads is {described(value)}")
        return value

    def is_noted_double(self, value: Any) -> bool:
        """Return whether a value is the kernel's first float64, which its advice names."""
        if self.notes.double is not None and self.notes.double[0] <= self.notes.line:
            return False
        part = value.real if isinstance(value, Complex) else value
        if not isinstance(part, Number):
            return False
        return (part.type.kind, part.type.bits) == ("f", 64) and self.is_in_kernel

    def element_of_vector(self, owner: Number, index: Any, node: ast.AST) -> Number:
        count = owner.type.lanes
        self.check_index(index, node)
        if isinstance(index, Constant):
            if not -count <= index.value < count:
                raise Refusal(f"vec: the index is below {count}; got {index.value}", node)
            return self.lane(owner, index.value % count)
        position = self.item_position(index, count, node)
        return Number(self.op("extract", owner.type.scalar, owner.op, position.op))

    def item_position(self, index: Any, count: int, node: ast.AST) -> Number:
        """Return the position of an item; an index outside selects the first item."""
        position = self.position(index, self.number(Constant(count)), node)
        self.check_item(index, position, count, node)
        unsigned = self.to(position, U64).op
        inside = self.op("lt", BOOL, unsigned, self.constant(count, U64))
        return Number(self.op("select", I64, inside, position.op, self.constant(0, I64)))

    def item(self, owner: Tuple, index: Any, node: ast.AST) -> Any:
        """Return an item of a tuple, or a part of it."""
        count = len(owner.items)
        if isinstance(index, Slice):
            bounds = [index.first, index.stop, index.step]
            if not all(isinstance(each, Constant) for each in bounds):
                raise Refusal("a slice of a tuple takes constants", node)
            return Tuple(owner.items[slice(*(each.value for each in bounds))])
        self.check_index(index, node)
        if isinstance(index, Constant):
            if not -count <= index.value < count:
                raise Refusal(
                    f"a tuple of {count} has no item {index.value}: its items are 0 to {count - 1}",
                    node,
                )
            return owner.items[index.value]
        return self.item_at_run_time(owner, index, node)

    def item_at_run_time(self, owner: Tuple, index: Any, node: ast.AST) -> Any:
        """Return the item of a tuple at an index that is computed: from a table in memory."""
        position = self.item_position(index, len(owner.items), node)
        return self.chosen(owner.items, position, node)

    def chosen(self, items: Sequence[Any], position: Number, node: ast.AST) -> Any:
        """Return one of several values of one type."""
        first = items[0]
        kinds = {self.type_of(each) for each in items if is_number(each)}
        if len(kinds) == 1 and all(map(is_number, items)):
            return self.chosen_number(items, kinds.pop(), position)
        if all(isinstance(each, Complex) for each in items):
            parts = ([each.real for each in items], [each.imag for each in items])
            return Complex(*(self.chosen(each, position, node) for each in parts))
        if are_tuples(items):
            columns = zip(*(each.items for each in items), strict=True)
            return Tuple(tuple(self.chosen(each, position, node) for each in columns), first.kind)
        if are_arrays(items):
            return self.chosen_array(items, position)
        raise Refusal(
            "a tuple of several types takes constant indices only, and no loop: make all of "
            "its elements one type",
            node,
        )

    def chosen_number(self, items: Sequence[Any], kind: Type, position: Number) -> Number:
        count = len(items)
        alignment = kind.size if kind.lanes > 1 else None
        memory = self.op("allocate", Pointer(kind.scalar, PRIVATE), attribute=count * kind.lanes)
        for number, each in enumerate(items):
            place = self.op("offset", memory.type, memory, self.constant(number * kind.lanes, I64))
            self.op("store", None, place, self.to(each, kind).op, attribute=alignment)
        start = position.op
        if kind.lanes > 1:
            start = self.op("mul", I64, start, self.constant(kind.lanes, I64))
        place = self.op("offset", memory.type, memory, start)
        return Number(self.op("load", kind, place, attribute=alignment))

    def chosen_array(self, items: Sequence[Array], position: Number) -> Array:
        has_strides = any(each.strides is not None for each in items)
        rows = []
        for each in items:
            strides = self.strides(each) if has_strides else ()
            rows.append((each.pointer, *(part.op for part in (*each.shape, *strides))))
        parts = list(rows[-1])
        for number, row in reversed(list(enumerate(rows[:-1]))):
            is_here = self.op("eq", BOOL, position.op, self.constant(number, I64))
            parts = [
                own if own is other else self.op("select", own.type, is_here, own, other)
                for own, other in zip(row, parts, strict=True)
            ]
        pointer, *numbers = parts
        sizes = [Number(each, is_natural=True) for each in numbers[: len(items[0].shape)]]
        own_strides = tuple(Number(each) for each in numbers[len(sizes) :])
        return Array(
            pointer,
            tuple(sizes),
            own_strides if has_strides else None,
            any(each.is_readonly for each in items),
            items[0].is_complex,
        )

    # -- parts ------------------------------------------------------------------------------------

    def view(self, array: Array, parts: Sequence[Any], node: ast.AST) -> Array:
        """Return a part of an array."""
        parts = self.with_all_axes(array, parts, node)
        whole = self.strides(array)
        axes = iter(zip(array.shape, whole, strict=True))
        shape: list[Number] = []
        strides: list[Number] = []
        starts: list[Number] = []
        is_packed = array.strides is None
        for part in parts:
            if part == NONE:
                shape.append(self.number(Constant(1)))
                strides.append(self.number(Constant(0)))
                is_packed = False
                continue
            extent, stride = next(axes)
            if not isinstance(part, Slice):
                starts.append(self.position(part, extent, node))
                # Rows of a packed array are packed.
                is_packed = is_packed and not shape
                continue
            start, extent, stride = self.sliced(part, extent, stride, node)
            # The first of the axes that stay may be shortened without gaps.
            is_first = not shape
            is_packed = is_packed and _is_dense(part) and (is_first or part == WHOLE)
            starts.append(start)
            shape.append(extent)
            strides.append(stride)
        starts = self.checked_view(array, parts, starts, node)
        pointer = self.address_of(array, starts)
        kept = None if is_packed else tuple(strides)
        cut = [part if isinstance(part, Slice) else part == NONE for part in parts]
        flags = array.is_readonly, array.is_complex
        return Array(pointer, tuple(shape), kept, *flags, (*array.cut, *cut))

    def with_all_axes(self, array: Array, parts: Sequence[Any], node: ast.AST) -> list[Any]:
        """Return an index with a part for each axis."""
        own = [part for part in parts if part not in (NONE, Constant(...))]
        if len(own) > len(array.shape):
            self.refuse_indices(array, own, node)
        missing = [WHOLE] * (len(array.shape) - len(own))
        dots = [number for number, part in enumerate(parts) if part == Constant(...)]
        if not dots:
            return [*parts, *missing]
        first = dots[0]
        if len(dots) > 1:
            raise Refusal("an index has one ... at most", node)
        return [*parts[:first], *missing, *parts[first + 1 :]]

    def sliced(
        self, part: Slice, extent: Number, stride: Number, node: ast.AST
    ) -> tuple[Number, Number, Number]:
        """Return the start, the size and the stride of a part of an axis."""
        if part == WHOLE:
            return self.number(Constant(0)), extent, stride
        for bound in (part.first, part.stop, part.step):
            if bound != NONE and not self.type_of(bound).is_integer:
                raise Refusal(
                    f"the bounds of a slice are integers, and one is {self.type_of(bound).name}: "
                    "convert it with int(...)",
                    node,
                )
        step = Constant(1) if part.step == NONE else part.step
        if step == Constant(0) or (isinstance(step, Constant) and step.value == 0):
            raise Refusal(
                "the step of a slice is not 0: it would have no items, and Python raises "
                "ValueError",
                node,
            )
        self.check_step(step, part.node or node)
        bounds = [part.first, part.stop, step]
        limits = [each if isinstance(each, Constant) else self.to(each, I64) for each in bounds]
        is_plain = isinstance(step, Constant) and step.value == 1
        function = prelude.clipped if is_plain else prelude.clipped_by_step
        if is_plain:
            limits.pop()
            limits = [
                Constant(0) if limits[0] == NONE else limits[0],
                extent if limits[1] == NONE else limits[1],
            ]
        pair = self.call(Constant(function), [*limits, extent], {}, node)
        start, count = (self.to(each, I64) for each in pair.items)
        if not is_plain:
            stride = self.made("mul", I64, stride, self.to(step, I64))
        return start, Number(count.op, is_natural=True), stride

    # -- attributes -------------------------------------------------------------------------------

    def attribute(self, owner: Any, name: str, node: ast.AST) -> Any:
        """Return ``owner.name`` of a value that is known at run time only."""
        if isinstance(owner, Array):
            value = self.attribute_of_array(owner, name)
        elif isinstance(owner, Number):
            value = self.attribute_of_number(owner, name)
        elif isinstance(owner, Complex) and name in ("real", "imag"):
            value = getattr(owner, name)
        elif isinstance(owner, Tuple) and name in getattr(owner.kind, "_fields", ()):
            value = owner.items[owner.kind._fields.index(name)]
        elif isinstance(owner, Item):
            value = self.attribute_of_item(owner, name)
        else:
            value = None
        if value is not None:
            return value
        self.check_method(owner, name, node)
        return Method(owner, name)

    def check_method(self, owner: Any, name: str, node: ast.AST) -> None:
        """Refuse a method that a value does not have."""
        raise NotImplementedError

    def attribute_of_item(self, owner: Item, name: str) -> Any:
        raise NotImplementedError

    def attribute_of_array(self, owner: Array, name: str) -> Any:
        if name == "shape":
            return self.python(Tuple(owner.shape))
        if name == "strides":
            return self.python(Tuple(self.strides(owner)))
        if name == "ndim":
            return Constant(len(owner.shape), True)
        if name == "itemsize":
            return Constant(owner.itemsize, True)
        if name == "dtype":
            return Constant(dtype_of(owner.element, owner.is_complex))
        if name in ("size", "nbytes"):
            size: Any = Constant(1 if name == "size" else owner.itemsize, True)
            for extent in owner.shape:
                size = (
                    extent
                    if size == Constant(1, True)
                    else self.made("mul", I64, size, extent, True)
                )
            return self.python(size)
        if name == "T" and len(owner.shape) < 2:
            return owner
        if name == "T":
            strides = tuple(reversed(self.strides(owner)))
            shape = tuple(reversed(owner.shape))
            return Array(owner.pointer, shape, strides, owner.is_readonly, owner.is_complex)
        return None

    def attribute_of_number(self, owner: Number, name: str) -> Any:
        kind = owner.type
        if kind.lanes > 1 and name in "xyzw" and "xyzw".index(name) < kind.lanes:
            return self.lane(owner, "xyzw".index(name))
        if name == "dtype":
            return Constant(kind.dtype)
        if kind.lanes == 1 and name == "real":
            return owner
        if kind.lanes == 1 and name == "imag":
            return self.to(Constant(0), kind)
        return None

    # -- what other parts of the front end provide -------------------------------------------------

    def known(self, value: Any) -> Any:
        raise NotImplementedError

    def items_of(self, value: Any, node: ast.AST) -> list[Any]:
        """Return the items of a value whose number is known at compile time."""
        if isinstance(value, Tuple):
            return list(value.items)
        if isinstance(value, Constant) and isinstance(value.value, tuple):
            return [self.known(each) for each in value.value]
        if isinstance(value, Number) and value.type.lanes > 1:
            return [self.lane(value, lane) for lane in range(value.type.lanes)]
        if isinstance(value, Range):
            bounds = (value.first, value.stop, value.step)
            if all(isinstance(each, Constant) for each in bounds):
                return [Constant(each) for each in range(*(each.value for each in bounds))]
        if isinstance(value, Array | Range):
            what = array_name(value) if isinstance(value, Array) else "a range"
            raise Refusal(
                f"how many items {what} has is known while the kernel runs: take its items in a "
                "loop, by an index",
                node,
            )
        raise Refusal(f"{described(value)} has no items", node)


def _is_partial(part: Any) -> bool:
    """Return whether a part of an index does not select one position."""
    return isinstance(part, Slice) or part in (NONE, Constant(...))


def _is_dense(part: Slice) -> bool:
    """Return whether a slice takes elements side by side."""
    return part.step == NONE or (isinstance(part.step, Constant) and part.step.value == 1)


def dtype_of(kind: Type, is_complex: bool) -> np.dtype[Any]:
    """Return the dtype of elements that are numbers of a type, or pairs of such numbers."""
    return np.dtype(f"complex{2 * kind.bits}") if is_complex else kind.dtype


def element_type(dtype: Any) -> tuple[Any, bool]:
    """Return the type of the numbers in memory for a dtype, and whether elements are pairs.

    Raises:
        KeyError: kernels have no such elements.
    """
    kind = np.dtype(dtype)
    if kind.kind == "c":
        return of_dtype(f"float{kind.itemsize * 4}"), True
    return of_dtype(kind), False
