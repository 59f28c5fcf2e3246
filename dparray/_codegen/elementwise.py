"""Expression to kernel source: pure, deterministic, and no SYCL package in sight.

:func:`linearize` turns pending nodes into a :class:`Program`: a list of steps, arrays and scalars
numbered by first use. Its structure is the key of everything compiled: neither shapes nor scalar
values are in it. :func:`source_of` writes the text of the kernel for a structure; the same
structure gives the same bytes.

A kernel has one work-item for each element. Where all arrays are contiguous, the item's id is the
index. Otherwise each array has its strides (in elements) as arguments and the range has two
dimensions: the last collapsed one, along which the device loads vectors, and all others together,
taken apart by division once a row. Where the last is short, the range has one dimension and every
item divides; vectors then run across rows. The range is rounded up and the items beyond the end do
nothing, because a driver has no good work-group size for, say, a prime range. Indices are unsigned,
so that a negative stride is its two's complement and no check for negative indices is compiled.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen.half import half, half_bits, half_value
from dparray._codegen.integer_power import integer_power
from dparray._codegen.result_kind import of_kind
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import PARTED, Op
from dparray._layout import broadcast_strides, is_contiguous
from dparray.config import Tuning

# Dtypes a kernel may compute in.
_KERNEL_CHARS = frozenset(np.typecodes["AllInteger"] + "?efdFD")

# The range is rounded up to multiples of these.
RANGE_MULTIPLE = 4096
ROW_MULTIPLE = 16

# Shorter rows are not worth a dimension of the range of their own.
SHORTEST_ROW = 64

# Kernel parameters are limited to about a kilobyte on some devices; an array takes 40 bytes.
MOST_ARRAYS = 20

# Kernels are named for their operations, in so many characters.
LONGEST_NAME = 48


# The dtype, in a structure, of an array whose elements are their own positions: no memory is read.
POSITIONS = "positions"


class Structure(NamedTuple):
    """What decides the text of a kernel.

    Attributes:
        steps: for each operation its name, the template, the operands (``"a0"`` an array, ``"s0"``
            a scalar, ``"t0"`` an earlier step) with their dtypes, the operand dtypes of the loop,
            and the result's dtype.
        arrays: dtype, or :data:`POSITIONS`, and index class of each input array. The class has one
            letter for each collapsed dimension: ``"c"`` alone for contiguous, else ``"0"``
            (broadcast), ``"1"`` (adjacent elements), ``"s"`` (a stride argument) or the letter of a
            constant stride.
        scalars: dtype of each scalar.
        outputs: the step, dtype and index class of each output.
        dimensions: the number of collapsed dimensions.
        has_rows: the range has two dimensions.
        elements: how many elements a work-item computes, a range apart; along the first dimension.
    """

    steps: tuple[Any, ...]
    arrays: tuple[tuple[str, str], ...]
    scalars: tuple[str, ...]
    outputs: tuple[tuple[str, str, str], ...]
    dimensions: int
    has_rows: bool
    elements: int = 1


class Plan(NamedTuple):
    """What follows from the form of an expression: its operations, dtypes and layouts.

    Attributes:
        structure: what decides the text of the kernel.
        numbers: the arguments after the scalars, in the order of :func:`parameters_of`.
        global_range, local_range: the range.
    """

    structure: Structure
    numbers: tuple[Any, ...]
    global_range: tuple[int, ...]
    local_range: tuple[int, ...] | None


class Program(NamedTuple):
    """A plan, and the arrays and scalars it is applied to."""

    structure: Structure
    numbers: tuple[Any, ...]
    global_range: tuple[int, ...]
    local_range: tuple[int, ...] | None
    arrays: list[Any]
    scalars: list[Any]


def can_generate(node: Node) -> bool:
    """Whether a kernel can compute this node from its operands."""
    op = node.op
    if not isinstance(op, Op) or not op.expression or node.dtype.char not in _KERNEL_CHARS:
        return False
    kinds = op.kinds
    for operand, dtype in zip(node.operands, node.loop, strict=False):
        if dtype.kind not in kinds or (dtype.char == "e" and not op.takes_half):
            return False
        if type(operand) is Node and not is_convertible(operand.dtype, dtype):
            return False
    return True


def is_convertible(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a kernel can make values of one dtype such of another."""
    return dtype.kind != "c" or wanted.kind in "cb"


def _range_of(
    has_rows: bool, extents: Sequence[int], size: int, tuning: Tuning
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The global and the local range of the kernel for ``size`` elements."""
    local = tuning.local_size
    if has_rows:
        row = extents[-1]
        items, multiple = -(-size // row // tuning.elements), local or ROW_MULTIPLE
        local_range = None if local is None else (1, local)
        return (items, -(-row // multiple) * multiple), local_range
    items = -(-size // tuning.elements)
    multiple = local or min(RANGE_MULTIPLE, 1 << (items - 1).bit_length())
    return (-(-items // multiple) * multiple,), None if local is None else (local,)


def can_store(value: Node | Scalar, dtype: np.dtype[Any]) -> bool:
    """Whether a kernel can write this value to memory of ``dtype``."""
    return type(value) is Scalar or is_convertible(value.dtype, dtype)  # type: ignore[union-attr]


# Plans by the form they follow from: a call that has been made before with arrays of the same
# layouts costs a look-up.
_plans: dict[Any, Plan] = {}
_MOST_PLANS = 4096


def remember(plans: dict[Any, Any], form: Any, plan: Any) -> None:
    """Keep a plan; all are dropped when there are many."""
    if len(plans) >= _MOST_PLANS:
        plans.clear()
    plans[form] = plan


def linearize(
    order: Sequence[Node],
    outputs: Sequence[tuple[Node | Scalar, Any]],
    shape: tuple[int, ...],
    tuning: Tuning,
) -> Program:
    """Number the parts of an expression by first use.

    Args:
        order: the pending nodes, operands before users.
        outputs: the node to be stored and the layout it goes to, for each output.
        shape: the shape of the iteration; all leaves broadcast to it.
        tuning: of the device.
    """
    numbering = Numbering(order, [(value, layout.dtype) for value, layout in outputs])
    form = (
        numbering.form,
        shape,
        tuning,
        *[(layout.shape, layout.strides) for _, layout in outputs],
    )
    plan = _plans.get(form)
    if plan is None:
        plan = _plan_of(numbering, [layout for _, layout in outputs], shape, tuning)
        remember(_plans, form, plan)
    return Program(*plan, numbering.in_memory, numbering.scalars)


def _plan_of(
    numbering: Numbering, targets: Sequence[Any], shape: tuple[int, ...], tuning: Tuning
) -> Plan:
    layouts = [*numbering.arrays, *targets]
    extents, strides, classes = collapse(layouts, shape)
    count = len(numbering.arrays)
    steps, scalars, stored = numbering.described()
    structure = Structure(
        steps,
        tuple(
            (dtype_read(layout), cls) for layout, cls in zip(layouts[:count], classes, strict=False)
        ),
        scalars,
        tuple(
            (name, layout.dtype.str, cls)
            for (name, _), layout, cls in zip(stored, targets, classes[count:], strict=True)
        ),
        len(extents),
        len(extents) > 1 and extents[-1] >= SHORTEST_ROW,
        tuning.elements,
    )
    size = math.prod(shape)
    numbers = [size, *extents[1:], *(stride for each in strides for stride in each)]
    return Plan(
        structure,
        tuple(map(ctypes.c_uint64, numbers)),
        *_range_of(structure.has_rows, extents, size, tuning),
    )


def dtype_read(layout: Any) -> str:
    """What a structure says of the dtype of an array that is read."""
    return POSITIONS if layout.block.memory is None else str(layout.dtype.str)


class Numbering:
    """The parts of an expression, numbered by first use.

    Attributes:
        form: everything that the numbers follow from, and all that a plan needs: operations,
            dtypes, which operand is which, and the layouts of the arrays. Hashable.
        arrays: the layouts of the leaves, each once.
        in_memory: those of them that are kernel arguments.
        scalars: kernel arguments.

    Args:
        order: the pending nodes, operands before users.
        outputs: the values to be stored, and the dtypes they get there.
        spread: ids of nodes whose leaves are seen through ``view``, a function from a layout to
            another over the same memory.
        view: see there.
    """

    def __init__(
        self,
        order: Sequence[Node],
        outputs: Sequence[tuple[Node | Scalar, np.dtype[Any]]],
        spread: Collection[int] = (),
        view: Callable[[Any], Any] = lambda layout: layout,
    ) -> None:
        arrays: list[Any] = []
        scalars: list[Any] = []
        numbers: dict[int, int] = {}  # of arrays from 0 on, of steps from -1 on downwards
        places: dict[Any, int] = {}
        form: list[Any] = []
        step = 0
        stored = tuple([value for value, _ in outputs]), tuple([dtype for _, dtype in outputs])
        for node in (*order, None):
            operands, loop = stored if node is None else (node.operands, node.loop)
            is_spread = bool(spread) and id(node) in spread
            form.append(loop)
            for position, operand in enumerate(operands):
                if type(operand) is Scalar:
                    scalars += scalar_arguments(operand.value, loop[position])
                    form.append(None)
                    continue
                is_viewed = is_spread and operand.layout is not None  # type: ignore[union-attr]
                key = ~id(operand) if is_viewed else id(operand)
                number = numbers.get(key)
                if number is None:
                    layout = operand.layout  # type: ignore[union-attr]
                    layout = view(layout) if is_viewed else layout
                    block, offset, shape, strides, dtype = layout
                    place = (offset, id(block), shape, strides, dtype)
                    number = places.setdefault(place, len(arrays))
                    if number == len(arrays):
                        arrays.append(layout)
                        form.append((dtype, shape, strides, block.memory is None))
                    numbers[key] = number
                form.append(number)
            if node is not None:
                form.append(node.op)
                step -= 1
                numbers[id(node)] = step
        self.arrays = arrays
        self.in_memory = [layout for layout in arrays if layout.block.memory is not None]
        self.scalars = scalars
        self.form = tuple(form)
        self._order = order
        self._outputs = outputs
        self._numbers = numbers
        self._spread = spread

    def described(self) -> tuple[tuple[Any, ...], tuple[str, ...], list[tuple[str, str]]]:
        """What :class:`Structure` says of the parts.

        Returns:
            The steps; the dtypes of the scalars; for each output the reference and its dtype.
        """
        scalars: list[str] = []

        def reference(
            operand: Node | Scalar, loop: np.dtype[Any], user: Node | None = None
        ) -> tuple[str, str]:
            if type(operand) is Scalar:
                scalars.append(loop.str)
                return f"s{len(scalars) - 1}", loop.str
            number = self._numbers.get(~id(operand)) if id(user) in self._spread else None
            if number is None:
                number = self._numbers[id(operand)]
            name = f"a{number}" if number >= 0 else f"t{-number - 1}"
            return name, operand.dtype.str  # type: ignore[union-attr]

        steps = []
        for node in self._order:
            op = node.op
            assert op is not None
            references = tuple(
                reference(operand, loop, node)
                for operand, loop in zip(node.operands, node.loop, strict=False)
            )
            text = op.expression_on("".join(dtype.kind for dtype in node.loop[:-1]))
            loop = tuple(dtype.str for dtype in node.loop[:-1])
            steps.append((op.name, text, references, loop, node.dtype.str))
        stored = [reference(value, dtype) for value, dtype in self._outputs]
        return tuple(steps), tuple(scalars), stored


def element_strides(layouts: Sequence[Any], shape: tuple[int, ...]) -> list[list[int]]:
    """The strides of each layout, broadcast to ``shape``, in elements."""
    walked = []
    for layout in layouts:
        itemsize = layout.dtype.itemsize
        strides = broadcast_strides("expression", layout.shape, layout.strides, shape)
        walked.append([stride // itemsize for stride in strides])
    return walked


def merge_axes(
    axes: Iterable[int], shape: tuple[int, ...], walked: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Extents and strides over some axes, neighbours made one where every layout allows it."""
    extents: list[int] = []
    columns: list[list[int]] = [[] for _ in walked]
    for axis in axes:
        extent = shape[axis]
        if extent == 1:
            continue
        if extents and all(
            column[-1] == strides[axis] * extent
            for column, strides in zip(columns, walked, strict=True)
        ):
            extents[-1] *= extent
            for column, strides in zip(columns, walked, strict=True):
                column[-1] = strides[axis]
        else:
            extents.append(extent)
            for column, strides in zip(columns, walked, strict=True):
                column.append(strides[axis])
    if not extents:
        return [1], [[0] for _ in walked]
    return extents, columns


# Strides of the innermost dimension that are constants of a kernel, and their letters: devices load
# and store vectors of such elements, and single elements where the stride is an argument (measured:
# a fifth of the speed for 2).
_CONSTANT_STRIDES = {-1: "m", 2: "2", 3: "3", 4: "4"}
_STRIDES_OF_LETTERS = {letter: stride for stride, letter in _CONSTANT_STRIDES.items()}


def letters_of(column: Sequence[int], constant: int = 0) -> str:
    """The index class of a column of strides; ``"u"`` stands for a constant that is known."""
    known = {constant: "u"} | {0: "0", 1: "1"}
    outer = [known.get(stride, "s") for stride in column[:-1]]
    inner = [(_CONSTANT_STRIDES | known).get(stride, "s") for stride in column[-1:]]
    return "".join(outer + inner)


def stride_arguments(column: Sequence[int], constant: int = 0) -> tuple[int, ...]:
    """The strides that are kernel arguments: those that :func:`letters_of` calls ``"s"``."""
    letters = letters_of(column, constant)
    return tuple(stride for stride, letter in zip(column, letters, strict=True) if letter == "s")


def index_terms(letters: str, index: str, stride: str, constant: int = 0) -> str:
    """The sum that is an element's index, of indices called ``index``; empty if all are ``"0"``.

    Args:
        letters: as of :func:`letters_of`, with ``constant``.
        stride: what the arguments that are strides are called, before their number.
    """
    terms = []
    for dimension, letter in enumerate(letters):
        name = f"{index}{dimension}"
        if letter == "1":
            terms.append(name)
        elif letter == "s":
            terms.append(f"{name} * {stride}{letters[:dimension].count('s')}")
        elif letter != "0":
            known = constant if letter == "u" else _STRIDES_OF_LETTERS[letter]
            terms.append(f"{name} * uint64({known % 2**64})")
    return " + ".join(terms)


def collapse(
    layouts: Sequence[Any], shape: tuple[int, ...]
) -> tuple[tuple[int, ...], list[tuple[int, ...]], list[str]]:
    """The fewest dimensions in which all layouts can be walked, with their strides in elements.

    Returns:
        Extents of the collapsed dimensions; the stride arguments of each layout; its class.
    """
    if all(
        layout.shape == shape and is_contiguous(shape, layout.strides, layout.dtype.itemsize)
        for layout in layouts
    ):
        size = 1
        for extent in shape:
            size *= extent
        return (size,), [()] * len(layouts), ["c"] * len(layouts)
    extents, columns = merge_axes(range(len(shape)), shape, element_strides(layouts, shape))
    expected: list[int] = []
    step = 1
    for extent in reversed(extents):
        expected.append(step)
        step *= extent
    expected.reverse()
    classes = []
    arguments: list[tuple[int, ...]] = []
    for column in columns:
        if column == expected:
            classes.append("c")
            arguments.append(())
            continue
        classes.append(letters_of(column))
        arguments.append(stride_arguments(column))
    return tuple(extents), arguments, classes


TYPE_NAMES = {
    np.dtype(name).str: name
    for name in (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
}
BOOL = np.dtype(np.bool_).str
HALF = np.dtype(np.float16).str
# How a value is converted: to half precision by rounding, which leaves a float32.
CONVERSIONS = TYPE_NAMES | {HALF: "half"}
INT64 = np.dtype(np.int64).str
# dpctl takes no 8- and 16-bit integers as kernel arguments: they travel as 32-bit ones.
_NARROW = frozenset({BOOL, *(np.dtype(code).str for code in ("i1", "i2", "u1", "u2"))})
_CTYPES: dict[np.dtype[Any], Any] = {
    np.dtype(dtype): ctypes.c_int32
    if dtype in _NARROW
    else np.ctypeslib.as_ctypes_type(np.dtype(dtype))
    for dtype in (BOOL, *TYPE_NAMES)
    if np.dtype(dtype).kind != "c"
} | {np.dtype(HALF): lambda value: ctypes.c_float(float(np.float16(value)))}
_PARTS = {np.dtype(np.complex64): ctypes.c_float, np.dtype(np.complex128): ctypes.c_double}
_PART_NAMES = {
    np.dtype(np.complex64).str: "float32",
    np.dtype(np.complex128).str: "float64",
}
_NAMESPACE: dict[str, Any] = {
    "math": math,
    "half": half,
    "half_bits": half_bits,
    "half_value": half_value,
    "integer_power": integer_power,
    "of_kind": of_kind,
    **{name: getattr(np, name) for name in TYPE_NAMES.values()},
}


def scalar_arguments(value: Any, dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """The kernel arguments that carry a scalar of a dtype: one, or two of a complex number."""
    make = _CTYPES.get(dtype)
    if make is not None:
        return (make(value),)
    part = _PARTS[dtype]
    number = complex(value)
    return part(number.real), part(number.imag)


def converted_text(text: str, dtype: str, wanted: str) -> str:
    if dtype == wanted:
        return text
    if wanted == BOOL:
        if dtype in _PART_NAMES:
            return f"(({text}_real != 0) | ({text}_imag != 0))"
        return f"({text} != 0)"
    return f"{CONVERSIONS[wanted]}({text})"


class Parts(NamedTuple):
    """A complex value as the texts of its parts; in a template, ``{0}`` is the whole of it.

    In kernels, complex values are pairs of floats named ``x_real`` and ``x_imag``, and their memory
    is that of floats: the vectorizer of Intel's CPU driver crashes on loops over complex numbers.
    """

    real: str
    imag: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}(complex({self.real}, {self.imag}))"

    def __format__(self, specification: str) -> str:
        return str(self)


def parts_of(name: str, dtype: str, wanted: str) -> Parts:
    """A named value as a complex one of a dtype."""
    part = _PART_NAMES[wanted]
    if dtype not in _PART_NAMES:
        real = converted_text(name, dtype, np.dtype(part).str)
        return Parts(real, f"{part}(0)", TYPE_NAMES[wanted])
    real, imag = f"{name}_real", f"{name}_imag"
    if dtype != wanted:
        real, imag = f"{part}({real})", f"{part}({imag})"
    return Parts(real, imag, TYPE_NAMES[wanted])


def store(array: str, index: str, name: str, dtype: str, wanted: str) -> list[str]:
    """The lines that write a named value to an element of an array of the dtype ``wanted``."""
    if wanted == HALF:
        return [f"{array}[{index}] = half_bits({name})"]
    if wanted not in _PART_NAMES:
        return [f"{array}[{index}] = {converted_text(name, dtype, wanted)}"]
    value = parts_of(name, dtype, wanted)
    first, second = _part_indices(index)
    return [f"{array}[{first}] = {value.real}", f"{array}[{second}] = {value.imag}"]


def _part_indices(index: str) -> tuple[str, str]:
    return f"uint64(2) * ({index})", f"uint64(2) * ({index}) + uint64(1)"


def _index(cls: str, name: str) -> str:
    return "i" if cls == "c" else index_terms(cls, "i", f"{name}_s") or "zero"


def array_parameters(arrays: Iterable[tuple[str, ...]]) -> list[tuple[str, str]]:
    """Name and type key of the parameters that are the arrays in memory."""
    return [
        (f"a{number}", array_key(dtype))
        for number, (dtype, *_) in enumerate(arrays)
        if dtype != POSITIONS
    ]


def load(number: int, dtype: str, index: str) -> list[str]:
    """The lines that load an element of an array."""
    if dtype == POSITIONS:
        return [f"x{number} = int64({index})"]
    if dtype == HALF:
        return [f"x{number} = half_value(a{number}[{index}])"]
    if dtype in _PART_NAMES:
        first, second = _part_indices(index)
        return [f"x{number}_real = a{number}[{first}]", f"x{number}_imag = a{number}[{second}]"]
    return [f"x{number} = a{number}[{index}]"]


def scalar_parameters(scalars: Sequence[str]) -> list[tuple[str, str]]:
    """Name and type key of the parameters that carry the scalars."""
    parameters: list[tuple[str, str]] = []
    for number, dtype in enumerate(scalars):
        if dtype in _NARROW:
            parameters.append((f"p{number}", "i4"))
        elif dtype in _PART_NAMES:
            part = type_key(_PART_NAMES[dtype])
            parameters += [(f"s{number}_real", part), (f"s{number}_imag", part)]
        else:
            parameters.append((f"s{number}", type_key(dtype)))
    return parameters


def scalar_lines(scalars: Sequence[str]) -> list[str]:
    """The lines that give each narrow scalar its own dtype."""
    return [
        f"    s{number} = "
        + (f"p{number} != 0" if dtype == BOOL else f"{TYPE_NAMES[dtype]}(p{number})")
        for number, dtype in enumerate(scalars)
        if dtype in _NARROW
    ]


def array_key(dtype: str) -> str:
    """The type key of an array of a dtype as kernels see it, contiguous.

    Half precision is seen as its bits, complex numbers as their parts.
    """
    dtype = _PART_NAMES.get(dtype, dtype)
    return f"{'u2' if dtype == HALF else type_key(dtype)}:1C"


def type_key(dtype: str) -> str:
    """The type key of a value of a dtype as a kernel computes with it."""
    dtype = np.dtype(np.float32).str if dtype == HALF else dtype
    return f"{np.dtype(dtype).kind}{np.dtype(dtype).itemsize}"


def parameters_of(structure: Structure) -> tuple[tuple[str, str], ...]:
    """Name and type key of each kernel parameter after the item, in order.

    Inputs, outputs, scalars; then the number of elements, extents of all dimensions but the first,
    and strides.
    """
    parameters = array_parameters(structure.arrays)
    parameters += [
        (f"out{number}", array_key(dtype)) for number, (_, dtype, _) in enumerate(structure.outputs)
    ]
    parameters += scalar_parameters(structure.scalars)
    parameters += [("size", "u8")]
    parameters += [(f"n{dimension}", "u8") for dimension in range(1, structure.dimensions)]
    for prefix, classes in (
        ("a", [cls for _, cls in structure.arrays]),
        ("out", [cls for _, _, cls in structure.outputs]),
    ):
        for number, cls in enumerate(classes):
            parameters += [
                (f"{prefix}{number}_s{position}", "u8") for position in range(cls.count("s"))
            ]
    return tuple(parameters)


def types_of(structure: Structure) -> tuple[str, ...]:
    """The type keys of the kernel's parameters after the item."""
    return tuple(key for _, key in parameters_of(structure))


def source_of(structure: Structure) -> str:
    """The text of the kernel for a structure."""
    names = ", ".join(name for name, _ in parameters_of(structure))
    lines = [f"def {kernel_name(structure.steps)}(item, {names}):"]
    classes = [cls for _, cls in structure.arrays] + [cls for _, _, cls in structure.outputs]
    last = structure.dimensions - 1
    inner = "    "
    start = "i" if structure.elements == 1 else "start"
    lines.append(f"    {start} = uint64(item.get_id(0))")
    if structure.has_rows:
        lines.append(f"    i{last} = uint64(item.get_id(1))")
        lines += [f"    if i{last} >= n{last}:", "        return"]
    if structure.elements > 1:
        lines.append("    items = uint64(item.get_range(0))")
        lines.append(f"    for turn in range({structure.elements}):")
        inner = "        "
        lines.append(f"{inner}i = start + uint64(turn) * items")
    if not structure.has_rows or structure.elements > 1:
        extent = f"size // n{last}" if structure.has_rows else "size"
        lines += [f"{inner}if i >= {extent}:", f"{inner}    return"]
    body: list[str] = []
    if any(cls != "c" for cls in classes):
        rest = "i"
        for dimension in range(last - structure.has_rows, 0, -1):
            body.append(f"q{dimension} = {rest} // n{dimension}")
            body.append(f"i{dimension} = {rest} - q{dimension} * n{dimension}")
            rest = f"q{dimension}"
        body.append(f"i0 = {rest}")
        if any(set(cls) == {"0"} for cls in classes):
            body.append("zero = uint64(0)")
    if structure.has_rows and "c" in classes:
        body.append(f"i = i * n{last} + i{last}")
    lines += [inner + line for line in body]
    lines += [inner + line.strip() for line in scalar_lines(structure.scalars)]
    for number, (dtype, cls) in enumerate(structure.arrays):
        lines += [inner + line for line in load(number, dtype, _index(cls, f"a{number}"))]
    values = Values()
    values.emit(enumerate(structure.steps), lines, inner)
    for number, (name, dtype, cls) in enumerate(structure.outputs):
        index, text = _index(cls, f"out{number}"), values.name(name)
        stored = store(f"out{number}", index, text, dtype_of(structure, name), dtype)
        lines += [inner + line for line in stored]
    return "\n".join(lines) + "\n"


def kernel_name(steps: Sequence[Any], last: str = "") -> str:
    """The name of the kernel of some steps: its operations, as far as they fit."""
    words = ["fused", *(step[0] for step in steps), *([last] if last else [])]
    name = "_".join(words)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME].rpartition('_')[0]}_etc"


@lru_cache(maxsize=32)
def _words(dtype: str) -> dict[str, str]:
    """What the templates of :class:`dparray._graph.ops.Op` may say of the operands' dtype."""
    if dtype == HALF:  # computed in single precision, and rounded afterwards
        return _words(np.dtype(np.float32).str)
    kind = np.dtype(dtype)
    words = {"T": TYPE_NAMES.get(dtype, ""), "bits": str(8 * kind.itemsize)}
    if kind.kind == "c":
        words["T"], words["C"] = _PART_NAMES[dtype], words["T"]
    if kind.kind in "iu":
        words["U"] = f"uint{words['bits']}"
    if kind.kind in "fc":
        words["most"] = str(math.floor(math.log(np.finfo(kind).max)))
        words["whole"] = f"{words['T']}({float(2 ** np.finfo(kind).nmant)!r})"
    return words


class Values:
    """The names of the values computed so far, in one block of a kernel's text.

    Args:
        outer: what is known before the block.
    """

    def __init__(self, outer: Values | None = None) -> None:
        self._known: dict[str, str] = dict(outer._known) if outer else {}
        self._names: dict[str, str] = dict(outer._names) if outer else {}

    def name(self, reference: str) -> str:
        """The name of the value of a reference (``"a0"``, ``"s0"``, ``"t0"``)."""
        known = self._names.get(reference)
        return known or (f"x{reference[1:]}" if reference[0] == "a" else reference)

    def emit(self, steps: Iterable[tuple[int, Any]], lines: list[str], indent: str) -> None:
        """Append the lines that compute numbered steps, each expression once."""
        for number, (_, template, references, loop, result) in steps:
            own = f"t{number}"
            converted: list[Any] = []
            for place, ((name, dtype), wanted) in enumerate(zip(references, loop, strict=True)):
                if wanted in _PART_NAMES:
                    converted.append(parts_of(self.name(name), dtype, wanted))
                    continue
                text = converted_text(self.name(name), dtype, wanted)
                if dtype != wanted:
                    text = self._named(text, f"c{number}_{place}", lines, indent)
                converted.append(text)
            words = {"t": f"{own}_", **_words(loop[0])}
            *parts, text = (line.format(*converted, **words) for line in template.split("\n"))
            lines += [indent + part for part in parts]
            if result in _PART_NAMES:
                self._names[own] = self._named_parts(text, own, _PART_NAMES[result], lines, indent)
                continue
            if result != BOOL:
                text = f"{CONVERSIONS[result]}({text})"
            self._names[own] = self._named(text, own, lines, indent)

    def _named(self, text: str, name: str, lines: list[str], indent: str) -> str:
        if text not in self._known:
            self._known[text] = name
            lines.append(f"{indent}{name} = {text}")
        return self._known[text]

    def _named_parts(self, text: str, name: str, part: str, lines: list[str], indent: str) -> str:
        """The same of a complex value: the texts of its parts, or that of a call."""
        if text not in self._known:
            self._known[text] = name
            real, _, imag = text.partition(PARTED)
            if not imag:
                lines.append(f"{indent}{name}_value = {text}")
                real, imag = f"{name}_value.real", f"{name}_value.imag"
            lines.append(f"{indent}{name}_real = {part}({real})")
            lines.append(f"{indent}{name}_imag = {part}({imag})")
        return self._known[text]


def function_of(source: str, names: Mapping[str, Any] = MappingProxyType({})) -> Callable[..., Any]:
    """The generated text as a Python function, as the kernel compiler takes it.

    ``names`` are further ones that it refers to.
    """
    scope = {**_NAMESPACE, **names}
    exec(compile(source, "<dparray fused kernel>", "exec"), scope)
    return scope[source[len("def ") : source.index("(")]]


def functions_of(order: Iterable[Node]) -> dict[str, Any]:
    """The device functions that elementwise operations call, by name."""
    return {
        name: function
        for node in order
        if isinstance(node.op, Op)
        for name, function in node.op.functions.items()
    }


def dtype_of(structure: Any, name: str) -> str:
    number = int(name[1:])
    if name[0] == "t":
        return str(structure.steps[number][4])
    if name[0] != "a":
        return str(structure.scalars[number])
    dtype = structure.arrays[number][0]
    return INT64 if dtype == POSITIONS else str(dtype)
