"""Kernel source for element-wise expressions: pure and deterministic, without a SYCL package.

:func:`linearize` converts pending nodes to a :class:`Program`: a list of steps, arrays and scalars,
numbered by first use. Its structure is the cache key of compiled kernels and contains neither
shapes nor scalar values. :func:`source_of` generates the source for a structure; the same structure
always gives the same bytes.

A kernel has one work-item per element. If all arrays are contiguous, the work-item's id is the
index. Otherwise the strides of each array (in elements) are arguments, and the range has two
dimensions: the last collapsed dimension, along which the device loads vectors, and all others
together, which are divided once per row. If the last dimension is short, the range has one
dimension and every work-item divides; vectors then extend across rows. For fewer than 2**31
elements, division is a multiplication and a shift (:func:`reciprocal`), since processors have no
vector division of integers. If an array is read across its rows, a work-item computes a block of
elements (:class:`Block`), so that cache lines are read once; if small elements are broadcast, it
stores all their copies. Short rows of small elements are processed in strips, so that a work-item
divides its index once for many elements. The range is rounded up and the work-items beyond the end
do nothing, because drivers have no good work-group size for, say, a prime range. Indices are
unsigned, so that a negative stride is its two's complement and no check for negative indices is
compiled. On some GPUs, a work-item computes several elements (:func:`_elements_of`), and loads all
that it reads before it stores: memory is fast only if many loads are in flight. Those of contiguous
arrays are consecutive and loaded as a vector, others are a tile (:func:`_tile_of`).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dparray._codegen.indexing import (
    bounded,
    bounds_test,
    collapse,
    division,
    element_strides,
    fits_32_bits,
    in_memory_order,
    index_terms,
    jumping,
    letters_of,
    merge_axes,
    stride_arguments,
    stride_names,
)
from dparray._codegen.steps import ScalarUse, Steps
from dparray._codegen.values import (
    POSITIONS,
    TYPE_NAMES,
    Values,
    array_key,
    array_parameters,
    dtype_of,
    dtype_read,
    is_convertible,
    kernel_name,
    load,
    scalar_lines,
    scalar_parameters,
    store,
)
from dparray._graph.assembly import Bounds, Jumps
from dparray._graph.node import Node, Scalar
from dparray._graph.ops import Op
from dparray._language.intrinsics import (
    bfloat16,
    bfloat16_bits,
    bfloat16_value,
    fused_multiply_add,
    half,
    half_bits,
    half_value,
    integer_power,
    is_aligned,
    load_vector,
    multiply_add_32,
    new_vector,
    of_kind,
    store_vector,
)
from dparray._language.source import TEXT
from dparray._layout import Layout
from dparray.config import Tuning
from dparray.kernel_api import AtomicRef, MemoryOrder, MemoryScope, group_barrier, select_from_group

# Dtypes that a kernel can compute in; "E" is bfloat16.
_KERNEL_CHARS = frozenset(np.typecodes["AllInteger"] + "?eEfdFD")

# The range is rounded up to multiples of these sizes.
RANGE_MULTIPLE = 4096
ROW_MULTIPLE = 16

# Shorter rows are not worth their own dimension of the range. For stored elements of at most this
# many bytes, the division takes longer than the store, so rows are worthwhile from one vector.
SHORTEST_ROW, SHORTEST_SMALL_ROW, SMALL_ELEMENT = 64, 16, 2

# Strips of short rows have at least this many elements, but not a multiple of the second number:
# processors compare 12 bits of addresses and mistake a load from one strip for a store to another.
SHORTEST_STRIP, ALIKE = 512, 256
# A work-item computes one element in each of this many strips, in about this many source steps. The
# driver unrolls them; it does not vectorize loops that are not unrolled.
MAX_STRIPS, MIN_STRIPS, MAX_STEPS_IN_STRIPS = 16, 4, 48

# The number of adjacent elements that a work-item computes if arrays are traversed across their
# rows: a cache line, which is then read once. Smaller arrays fit in the nearest caches.
BLOCK = 16
MIN_IN_BLOCKS = 1 << 15
# Where work-items load vectors, they load this many elements of a long block together.
LOADED_IN_BLOCK = 8

# The number of elements that a work-item loads as a vector, by the size of the largest in bytes.
# On an H100, 8 elements of a float16 chain took 0.66 of the time of one for each work-item, and 2
# of a float32 chain 0.90; 4 were not faster. Smaller arrays would leave compute units idle.
VECTOR_LENGTHS = {1: 8, 2: 8, 4: 2}
MIN_IN_VECTORS = 1 << 18
# A work-item has fewer elements if all of them together take more steps.
MAX_STEPS_IN_VECTORS = 64
# The rows of a tile if a stencil reads at least this number of neighboring places.
MIN_NEIGHBORS, ROWS_OF_NEIGHBORS = 3, 2
MAX_TILE_ROWS = 8
# At most this part of the work-items have fewer columns than the others.
MAX_PARTIAL = 1 / 8

# Kernel parameters are limited to about a kilobyte on some devices; an array uses 40 bytes.
MAX_ARRAYS = 20


class Block(NamedTuple):
    """The elements of a work-item if an array is contiguous along another dimension.

    Attributes:
        across: the dimension of neighboring work-items.
        along: the dimension that a work-item traverses.
        length: the maximum number of its elements along that dimension.
        is_whole: whether they are all elements along that dimension.
    """

    across: int
    along: int
    length: int
    is_whole: bool

    @property
    def whole_row(self) -> int:
        """The length of the last dimension if a work-item computes all of it, else 0.

        A stride that equals it is a constant of the kernel, so that the device stores vectors.
        """
        return self.length if self.is_whole and self.along > self.across else 0


class Structure(NamedTuple):
    """The structure of a kernel: everything that determines its source.

    Attributes:
        steps: for each operation its name, the template, the operands with their dtypes, the
            operand dtypes of the loop, and the dtype of the result. ``"a0"`` is an array,
            ``"s0"`` a scalar, ``"t0"`` an earlier step.
        arrays: the dtype, or :data:`POSITIONS`, and the index class of each input array. The class
            is ``"c"`` for contiguous arrays, else one letter per collapsed dimension. ``"0"``
            means broadcast, ``"1"`` adjacent elements, ``"s"`` a stride argument. ``"j"`` is
            another one, and a jump from an index on; ``"p"`` another one, and zero outside of
            bounds; ``"q"`` the same for adjacent elements. Others are letters of constant strides.
        scalars: the dtype of each scalar.
        outputs: the step, dtype and index class of each output.
        dimensions: the number of collapsed dimensions.
        has_rows: whether the range has two dimensions.
        elements: the elements of a work-item, one range apart, along the first dimension.
        multiplies: whether indices are divided by multiplication with reciprocals.
        block: the block that a work-item computes instead of one element; the range then has two
            dimensions, of which the second is ``block.across``.
        strips: a strip, of several short rows, is one row of the range, and a work-item computes
            the elements at one position in this many strips; 0 if unused.
        is_narrow: whether indices are computed in 32 bits, which GPUs multiply by one instruction.
        vector: the consecutive elements that a work-item loads and stores as vectors; else 0.
        tile: the rows and columns that a work-item computes instead of one element. Columns are a
            range apart; so are rows if the range has one dimension. Rows of a block, and strips,
            are elements that are loaded together.
    """

    steps: tuple[Any, ...]
    arrays: tuple[tuple[str, str], ...]
    scalars: tuple[str, ...]
    outputs: tuple[tuple[str, str, str], ...]
    dimensions: int
    has_rows: bool
    elements: int = 1
    multiplies: bool = False
    block: Block | None = None
    strips: int = 0
    is_narrow: bool = False
    vector: int = 0
    tile: tuple[int, int] = (1, 1)

    @property
    def counts_lines(self) -> bool:
        """Whether the number of rows is a parameter, since tiles may reach beyond the last one."""
        return self.has_rows and self.tile[0] > 1 and not (self.block or self.strips)


class Program(NamedTuple):
    """A kernel of element-wise operations, and the arrays and scalars of its launch.

    Attributes:
        structure: determines the source of the kernel.
        numbers: the arguments after the scalars, in the order of :func:`parameters_of`.
        global_range, local_range: the range of the launch.
        arrays: the layouts of the input arrays.
        scalars: the scalars in the order of the parameters.
    """

    structure: Structure
    numbers: tuple[Any, ...]
    global_range: tuple[int, ...]
    local_range: tuple[int, ...] | None
    arrays: list[Any]
    scalars: list[ScalarUse]


def can_generate(node: Node) -> bool:
    """Return whether a kernel can compute this node from its operands."""
    op = node.op
    if not isinstance(op, Op) or not op.expression or node.dtype.char not in _KERNEL_CHARS:
        return False
    kinds = op.kinds
    for operand, dtype in zip(node.operands, node.signature, strict=False):
        if dtype.kind not in kinds or (dtype.char == "e" and not op.takes_half):
            return False
        if type(operand) is Node and not is_convertible(operand.dtype, dtype):
            return False
    return True


def _range_of(
    structure: Structure, extents: Sequence[int], size: int, tuning: Tuning
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the global and the local range of the kernel for ``size`` elements."""
    local, (rows, columns) = tuning.local_size, structure.tile
    if structure.has_rows:
        row, lines = extents[-1], size // extents[-1]
        return _range_of_rows(-(-lines // rows // tuning.elements), -(-row // columns), tuning)
    items = -(-size // (rows * tuning.elements))
    multiple = local or min(RANGE_MULTIPLE, 1 << (items - 1).bit_length())
    return (-(-items // multiple) * multiple,), None if local is None else (local,)


def _range_of_rows(
    items: int, row: int, tuning: Tuning
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the global and the local range of a kernel with rows of work-items."""
    multiple = tuning.local_size or ROW_MULTIPLE
    local_range = None if tuning.local_size is None else (1, tuning.local_size)
    return (items, -(-row // multiple) * multiple), local_range


_MAX_MULTIPLIED = 1 << 31


def reciprocal(divisor: int) -> tuple[int, int]:
    """Return factor and shift such that ``i * factor >> shift == i // divisor`` for i < 2**31.

    The product stays below 2**63. Granlund and Montgomery, Division by Invariant Integers using
    Multiplication, 1994.
    """
    shift = 31 + (divisor - 1).bit_length()
    return -(-(1 << shift) // divisor), shift


def _elements_of(
    arrays: Sequence[Any],
    columns: Sequence[Sequence[int]],
    targets: Sequence[Any],
    steps: int,
    nbytes: int,
) -> tuple[int, bool]:
    """Return how many elements have that many bytes of loads, and whether they are neighbors'.

    Views with the same strides that are not contiguous count once: as in a stencil, neighboring
    work-items load the same elements.

    Args:
        arrays: the layouts of the inputs.
        columns: their strides along the collapsed dimensions, in elements.
        targets: the layouts of the outputs.
        steps: the operations.
        nbytes: the wanted bytes of loads in flight.
    """
    loaded: dict[Any, int] = {}
    for number, (layout, column) in enumerate(zip(arrays, columns, strict=True)):
        if dtype_read(layout) != POSITIONS and column[-1]:
            key = (layout.dtype, *column) if len(column) > 1 else number
            loaded[key] = loaded.get(key, 0) + 1
    sizes = [
        key[0].itemsize if type(key) is tuple else arrays[key].dtype.itemsize for key in loaded
    ]
    count, one = 1, sum(sizes) or max(layout.dtype.itemsize for layout in targets)
    while count * one < nbytes:
        count *= 2
    if len(columns[0] if columns else (1,)) == 1:
        stored = [each for each in arrays if dtype_read(each) != POSITIONS]
        largest = max(each.dtype.itemsize for each in (*stored, *targets))
        count = max(count, VECTOR_LENGTHS.get(largest, 1))
    while count * steps > MAX_STEPS_IN_VECTORS and count > 1:
        count //= 2
    return count, max(loaded.values(), default=0) >= MIN_NEIGHBORS


def _tile_of(
    extents: Sequence[int], count: int, has_neighbors: bool, has_rows: bool, steps: int
) -> tuple[int, int]:
    """Return the rows and columns of a work-item's tile of about ``count`` elements."""
    if not has_rows:
        return count, 1
    row, lines = extents[-1], math.prod(extents[:-1])
    rows, columns = 1, count
    if has_neighbors and ROWS_OF_NEIGHBORS * count * steps <= MAX_STEPS_IN_VECTORS:
        rows = ROWS_OF_NEIGHBORS
    while columns > 1:
        width = -(-row // (columns * ROW_MULTIPLE)) * ROW_MULTIPLE
        if width * columns - row <= MAX_PARTIAL * width:
            break
        rows, columns = min(2 * rows, MAX_TILE_ROWS), columns // 2
    while rows > 1 and lines < rows * BLOCK:
        rows //= 2
    return rows, columns


def _is_small(targets: Sequence[Any]) -> bool:
    """Return whether computing the index of an element takes longer than storing it."""
    return max(layout.dtype.itemsize for layout in targets) <= SMALL_ELEMENT


def _block_of(
    extents: Sequence[int], columns: Sequence[Sequence[int]], is_small: bool
) -> Block | None:
    """Return the blocks of work-items if arrays are read across the order of other arrays.

    Args:
        extents: the lengths of the dimensions; outputs are contiguous along the last.
        columns: the strides of the inputs, in elements.
        is_small: whether small elements are stored.
    """
    last = len(extents) - 1
    if last == 0 or math.prod(extents) < MIN_IN_BLOCKS:
        return None
    steps = [[abs(stride) or math.inf for stride in column] for column in columns]
    if extents[last] < SHORTEST_ROW:
        across, along = last - 1, last
        row = extents[last]
        is_repeated = is_small and row <= BLOCK and not any(column[last] for column in columns)
        is_turned = is_repeated or any(
            (row < BLOCK and 0 < step[across] < step[along] < math.inf)
            # rows whose elements are far apart
            or 4 * row * step[along] < step[across] < math.inf
            for step in steps
        )
        if extents[across] < SHORTEST_ROW or not is_turned:
            return None
    else:
        across = last
        turned = [step.index(min(step)) for step in steps if min(step) < step[last] < math.inf]
        if not turned:
            return None
        along = turned[0]
    extent = extents[along]
    return Block(across, along, min(extent, BLOCK), extent <= BLOCK)


def _strips_of(
    extents: Sequence[int],
    classes: Sequence[str],
    written: Sequence[str],
    is_small: bool,
    steps: int,
    tuning: Tuning,
) -> tuple[int, int]:
    """Return how many strips of how many short rows a work-item processes; none if unsuitable.

    Args:
        extents: the lengths of the dimensions.
        classes, written: the index classes of the inputs and outputs.
        is_small: whether small elements are stored.
        steps: the operations.
        tuning: the tuning of the device.
    """
    strips = min(MAX_STRIPS, MAX_STEPS_IN_STRIPS // steps)
    row = extents[-1]
    # Rows that fill vectors become a dimension of the range if strips would gather bytes.
    is_gathered = not all(cls[0] in "c0" for cls in classes)
    longest = SHORTEST_SMALL_ROW if is_gathered else SHORTEST_ROW
    if len(extents) != 2 or row >= longest or not is_small or set(written) != {"c"}:
        return 0, 0
    fewest = math.lcm(row, tuning.local_size or ROW_MULTIPLE)
    width = fewest * -(-SHORTEST_STRIP // fewest)
    width += fewest * (width % ALIKE == 0)
    is_worth = math.prod(extents) >= max(MIN_IN_BLOCKS, width * strips)
    is_worth &= strips >= MIN_STRIPS and tuning.elements == 1
    return (strips, width // row) if is_worth else (0, 0)


def _range_of_strips(
    extents: Sequence[int], strips: int, rows: int, tuning: Tuning
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the global and the local range of a kernel that processes short rows in strips."""
    return _range_of_rows(extents[0] // (rows * strips), rows * extents[1], tuning)


def _range_of_blocks(
    extents: Sequence[int], block: Block, tuning: Tuning
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the global and the local range of a kernel whose work-items compute blocks."""
    row, along = extents[block.across], extents[block.along]
    rest = math.prod(extents) // row // along
    return _range_of_rows(rest * -(-along // block.length), row, tuning)


def _divided(structure: Structure) -> range:
    """Return the dimensions by whose lengths every work-item divides, the last one first."""
    return range(structure.dimensions - 1 - structure.has_rows, 0, -1)


def linearize(
    order: Sequence[Node],
    outputs: Sequence[tuple[Node | Scalar, Any]],
    shape: tuple[int, ...],
    tuning: Tuning,
    is_gpu: bool = False,
    axes: tuple[int, ...] | None = None,
    jumps: Mapping[Layout, Jumps] = MappingProxyType({}),
    has_vectors: bool = False,
    bounds: Mapping[Layout, tuple[Layout, Bounds]] = MappingProxyType({}),
) -> Program:
    """Number the parts of an expression by first use.

    Args:
        order: the pending nodes, operands before users.
        outputs: the node to store and the layout to store it in, for each output.
        shape: the shape of the iteration, to which all leaves broadcast.
        tuning: the tuning of the device.
        is_gpu: whether the device is a GPU.
        axes: for a cell of a larger expression: all axes, from the slowest to the fastest one. The
            kernel then depends on the length of none of them, so that it computes all cells.
        jumps: the jumps of inputs of such a cell, along all axes.
        has_vectors: whether work-items load vectors of consecutive elements.
        bounds: the own layouts of extended inputs of such a cell, and their bounds along all axes.
    """
    parts = Steps(order, [(value, layout.dtype) for value, layout in outputs])
    targets = [layout for _, layout in outputs]
    layouts: Sequence[Layout] = [*parts.arrays, *targets]
    walked = shape
    if axes is None:
        walked, layouts = in_memory_order(shape, layouts, targets)
        extents, strides, classes = collapse(layouts, walked)
    else:
        extents = tuple([shape[axis] for axis in axes])
        columns = [[column[axis] for axis in axes] for column in element_strides(layouts, shape)]
        strides, classes = list(map(stride_arguments, columns)), list(map(letters_of, columns))
        for number, layout in enumerate(parts.arrays):
            if layout in bounds:
                inside = [bounds[layout][1][axis] for axis in axes]
                classes[number], strides[number] = bounded(columns[number], inside)
                continue
            along = [jumps[layout][axis] for axis in axes]
            classes[number], strides[number] = jumping(columns[number], along)
    count, is_small = len(parts.arrays), _is_small(targets)
    shortest_row = SHORTEST_SMALL_ROW if is_small else SHORTEST_ROW
    block, is_narrow = None, False
    if len(extents) > 1 and (is_gpu or tuning.elements == 1):
        if axes is None:
            _, columns = merge_axes(range(len(walked)), walked, element_strides(layouts, walked))
        farthest = max((abs(jump) for own in jumps.values() for _, jump in own), default=0)
        work_items = math.prod(extents) + farthest + (1 << 20)
        is_narrow = is_gpu and fits_32_bits(extents, columns, work_items)
    if axes is None and len(extents) > 1 and tuning.elements == 1:
        block = _block_of(extents, columns[:count], is_small)
        if block is not None:
            row = block.whole_row
            strides = [stride_arguments(column, row) for column in columns]
            classes = [letters_of(column, row) for column in columns]
    size, strips, rows, vector, tile = math.prod(shape), 0, 0, 0, (1, 1)
    steps = max(1, len(parts.steps))
    if axes is None and block is None:
        read, written = classes[:count], classes[count:]
        strips, rows = _strips_of(extents, read, written, is_small, steps, tuning)
    has_rows = len(extents) > 1 and (
        block is not None or rows > 0 or axes is not None or extents[-1] >= shortest_row
    )
    has_several = has_vectors and tuning.elements == 1 and tuning.bytes_in_flight > 1
    if axes is None and not (block or rows) and has_several and size >= MIN_IN_VECTORS:
        _, columns = merge_axes(range(len(walked)), walked, element_strides(layouts, walked))
        nbytes = tuning.bytes_in_flight
        many, has_neighbors = _elements_of(parts.arrays, columns[:count], targets, steps, nbytes)
        if set(classes) == {"c"} and not any(each.dtype.kind == "c" for each in layouts):
            vector = many if many > 1 else 0
        tile = _tile_of(extents, many, has_neighbors, has_rows, steps)
    if rows and has_several and size >= MIN_IN_VECTORS:
        tile = (strips, 1)
    if block is not None and has_several and size >= MIN_IN_VECTORS:
        together = max(1, min(block.length, MAX_STEPS_IN_VECTORS // steps))
        if not block.is_whole:
            together = min(LOADED_IN_BLOCK, 1 << (together.bit_length() - 1))
        tile = (together, 1)
    structure = Structure(
        parts.steps,
        tuple(
            (dtype_read(layout), cls)
            for layout, cls in zip(parts.arrays, classes[:count], strict=True)
        ),
        parts.scalar_dtypes,
        tuple(
            (name, layout.dtype.str, cls)
            for (name, _), layout, cls in zip(parts.outputs, targets, classes[count:], strict=True)
        ),
        len(extents),
        has_rows,
        tuning.elements,
        len(extents) > 1 and not (block or rows or is_narrow) and size < _MAX_MULTIPLIED,
        block,
        strips,
        is_narrow,
        vector,
        tile,
    )
    numbers = [size, *extents[block is None :]]
    if structure.multiplies:
        for dimension in _divided(structure):
            numbers += reciprocal(extents[dimension])
    if structure.counts_lines:
        numbers.append(math.prod(extents[:-1]))
    if rows:
        blocks = extents[0] // (rows * strips)
        rest = -(-extents[0] // rows) - blocks * strips
        numbers += (*reciprocal(extents[1]), rows, blocks, -(-rest // blocks))
    numbers += (stride for each in strides for stride in each)
    return Program(
        structure,
        tuple(map(ctypes.c_uint64, numbers)),
        *(
            _range_of_blocks(extents, block, tuning)
            if block is not None
            else _range_of_strips(extents, strips, rows, tuning)
            if rows
            else _range_of(structure, extents, size, tuning)
        ),
        [bounds[each][0] if each in bounds else each for each in parts.in_memory],
        parts.scalars,
    )


#: The global names that the source of kernels refers to.
NAMESPACE: dict[str, Any] = {
    "AtomicRef": AtomicRef,
    "MemoryOrder": MemoryOrder,
    "MemoryScope": MemoryScope,
    "fused_multiply_add": fused_multiply_add,
    "group_barrier": group_barrier,
    "math": math,
    "select_from_group": select_from_group,
    "bfloat16": bfloat16,
    "bfloat16_bits": bfloat16_bits,
    "bfloat16_value": bfloat16_value,
    "half": half,
    "half_bits": half_bits,
    "half_value": half_value,
    "integer_power": integer_power,
    "is_aligned": is_aligned,
    "load_vector": load_vector,
    "multiply_add_32": multiply_add_32,
    "new_vector": new_vector,
    "of_kind": of_kind,
    "store_vector": store_vector,
    **{name: getattr(np, name) for name in TYPE_NAMES.values()},
}


def _index(structure: Structure, cls: str, name: str) -> str:
    row = structure.block.whole_row if structure.block is not None else 0
    if cls == "c":
        return "i"
    return index_terms(cls, "i", f"{name}_s", row, structure.is_narrow) or "zero"


def parameters_of(structure: Structure) -> tuple[tuple[str, str], ...]:
    """Return name and type key of each kernel parameter after the item, in order.

    Inputs, outputs, scalars; then the number of elements, the lengths of all dimensions except the
    first (which blocks include), their reciprocals, the strip parameters, and strides.
    """
    parameters = array_parameters(structure.arrays)
    parameters += [
        (f"out{number}", array_key(dtype)) for number, (_, dtype, _) in enumerate(structure.outputs)
    ]
    parameters += scalar_parameters(structure.scalars)
    parameters += [("size", "u8")]
    parameters += [
        (f"n{dimension}", "u8")
        for dimension in range(structure.block is None, structure.dimensions)
    ]
    if structure.multiplies:
        for dimension in _divided(structure):
            parameters += [(f"m{dimension}", "u8"), (f"h{dimension}", "u8")]
    if structure.counts_lines:
        parameters.append(("lines", "u8"))
    if structure.strips:
        parameters += [
            ("m1", "u8"),
            ("h1", "u8"),
            ("rows", "u8"),
            ("blocks", "u8"),
            ("turns", "i8"),
        ]
    for prefix, classes in (
        ("a", [cls for _, cls in structure.arrays]),
        ("out", [cls for _, _, cls in structure.outputs]),
    ):
        for number, cls in enumerate(classes):
            parameters += [(name, "u8") for name in stride_names(cls, f"{prefix}{number}_s")]
    return tuple(parameters)


def types_of(structure: Structure) -> tuple[str, ...]:
    """Return the type keys of the kernel's parameters after the item."""
    return tuple(key for _, key in parameters_of(structure))


def source_of(structure: Structure) -> str:
    """Return the source of the kernel for a structure."""
    names = ", ".join(name for name, _ in parameters_of(structure))
    lines = [f"def {kernel_name(structure.steps)}(item, {names}):"]
    if structure.strips:
        lines += _strips(structure)
    elif structure.vector:
        lines += _vectors(structure)
    elif structure.block is not None and structure.tile[0] > 1:
        lines += _block(structure, structure.block)
    elif structure.tile != (1, 1):
        lines += _tile(structure)
    else:
        inner, body = _position(structure, classes_of(structure))
        lines += body
        lines += [inner + line for line in element(structure)]
    return "\n".join(lines) + "\n"


def classes_of(structure: Structure) -> list[str]:
    """Return the index classes of the inputs, then of the outputs."""
    return [cls for _, cls in structure.arrays] + [cls for _, _, cls in structure.outputs]


def element(
    structure: Structure, names: Mapping[str, str] | None = None, loaded: Collection[int] = ()
) -> list[str]:
    """Return the lines that load, compute and store an element.

    Args:
        structure: the structure of the kernel.
        names: the indices of arrays by name, if they are already computed.
        loaded: the numbers of the arrays whose element is already loaded.
    """

    def index(name: str, cls: str) -> str:
        return _index(structure, cls, name) if names is None else names[name]

    lines = [line.strip() for line in scalar_lines(structure.scalars)]
    for number, (dtype, cls) in enumerate(structure.arrays):
        if number in loaded:
            continue
        test = bounds_test(cls, "i", f"a{number}_s")
        lines += load(number, dtype, index(f"a{number}", cls), test=test)
    values = Values()
    values.emit(enumerate(structure.steps), lines, "")
    for number, (name, dtype, cls) in enumerate(structure.outputs):
        text = values.name(name)
        lines += store(
            f"out{number}", index(f"out{number}", cls), text, dtype_of(structure, name), dtype
        )
    return lines


def _position(structure: Structure, classes: Sequence[str]) -> tuple[str, list[str]]:
    """Return the indentation of the element computation, and the lines that compute its index."""
    if structure.block is not None:
        return _position_in_block(structure, structure.block, classes)
    lines = []
    last = structure.dimensions - 1
    inner = "    "
    start = "i" if structure.elements == 1 else "start"
    lines.append(f"    {start} = uint64(item.get_id(0))")
    if structure.has_rows:
        lines.append(f"    i{last} = uint64(item.get_id(1))")
        lines += [f"    if int64(i{last}) >= int64(n{last}):", "        return"]
    if structure.elements > 1:
        lines.append("    items = uint64(item.get_range(0))")
        lines.append(f"    for turn in range({structure.elements}):")
        inner = "        "
        lines.append(f"{inner}i = start + uint64(turn) * items")
    if not structure.has_rows or structure.elements > 1:
        extent = f"size // n{last}" if structure.has_rows else "size"
        lines += [f"{inner}if int64(i) >= int64({extent}):", f"{inner}    return"]
    return inner, lines + [inner + line for line in indices(structure, classes)]


def _vectors(structure: Structure) -> list[str]:
    """Return the body of a kernel whose work-items load consecutive elements as vectors.

    If an array does not begin at the address of a vector, the elements of a work-item are a range
    apart, so that neighboring work-items access neighboring elements.
    """
    count = structure.vector
    loads = [
        f"v{number} = load_vector(a{number}, i, {count})"
        for number, (dtype, _) in enumerate(structure.arrays)
        if dtype != POSITIONS
    ]
    arrays = [name for name, key in parameters_of(structure) if ":" in key]
    outputs = range(len(structure.outputs))
    lines = [line.strip() for line in scalar_lines(structure.scalars)] + loads
    lines += [f"w{number} = new_vector(out{number}, {count})" for number in outputs]
    for place in range(count):
        for number, (dtype, _) in enumerate(structure.arrays):
            index = f"i + uint64({place})" if dtype == POSITIONS else str(place)
            lines += load(number, dtype, index, f"v{number}")
        values = Values()
        values.emit(enumerate(structure.steps), lines, "")
        for number, (name, dtype, _) in enumerate(structure.outputs):
            text = values.name(name)
            lines += store(f"w{number}", str(place), text, dtype_of(structure, name), dtype)
    lines += [f"store_vector(out{number}, i, w{number})" for number in outputs]
    return [
        "    i = uint64(item.get_id(0))",
        f"    if {' and '.join(f'is_aligned({name}, {count})' for name in arrays)}:",
        f"        i = i * uint64({count})",
        f"        if int64(i + uint64({count - 1})) < int64(size):",
        *("            " + line for line in lines),
        "            return",
        "        for turn in range(int64(size) - int64(i)):",
        *("            " + line for line in element(structure)),
        "            i = i + uint64(1)",
        "        return",
        *_tile(structure),
    ]


def _tile(structure: Structure) -> list[str]:
    """Return the body of a kernel whose work-items load all elements of a tile before they store.

    A load after a store would wait for it, because arrays may overlap for all the compiler knows.
    """
    (rows, columns), last = structure.tile, structure.dimensions - 1
    if structure.has_rows:
        lines = [
            f"top = uint64(item.get_id(0)) * uint64({rows})",
            "left = uint64(item.get_id(1))",
            "width = uint64(item.get_range(1))",
        ]
        place = ["i = top + uint64({0})", f"i{last} = left + uint64({{1}}) * width"]
        tests = [f"int64(i{last}) < int64(n{last})"]
        tests += ["int64(i) < int64(lines)"] if structure.counts_lines else []
    else:
        lines = ["start = uint64(item.get_id(0))", "step = uint64(item.get_range(0))"]
        place, tests = ["i = start + uint64({0}) * step"], ["int64(i) < int64(size)"]
    classes = classes_of(structure)
    inside: list[str] = []
    stores: list[str] = []
    for row in range(rows):
        for column in range(columns):
            inside += [line.format(row, column) for line in place]
            inside += [] if column else _indices_of_line(structure, classes)
            inside += _whole_index(structure, classes)
            inside += _with_stores_later(structure, stores)
    test = f"if {' and '.join(tests)}:"
    single = [*(line.format("row", "column") for line in place), test]
    single += ["    " + line for line in indices(structure, classes) + element(structure)]
    lines += [line.format(rows - 1, columns - 1) for line in place]
    lines += [test, *("    " + line for line in inside + stores), "    return"]
    lines += [f"for row in range({rows}):", f"    for column in range({columns}):"]
    lines += ["        " + line for line in single]
    return ["    " + line for line in lines]


def _block(structure: Structure, block: Block) -> list[str]:
    """Return the body of a kernel whose work-items load several elements of a block before they
    store.
    """
    _, position = _position_in_block(structure, block, classes_of(structure))
    count, index = structure.tile[0], f"i{block.along}"
    start = "" if block.is_whole else "begin + "
    stores: list[str] = []
    part = [f"for part in range({block.length // count}):"]
    for number in range(count):
        part.append(f"    {index} = {start}uint64(part * {count} + {number})")
        part += ["    " + line for line in _with_stores_later(structure, stores)]
    part += ["    " + line for line in stores]
    *lines, loop, step = position
    if block.is_whole:
        loop = f"    for turn in range({block.length // count * count}, {block.length}):"
    else:
        part = [f"if int64(left) == {block.length}:", *("    " + line for line in part)]
        part.append("    return")
    lines += ["    " + line for line in part]
    return [*lines, loop, step, *("        " + line for line in element(structure))]


def _with_stores_later(structure: Structure, stores: list[str], *names: Any) -> list[str]:
    """Return the lines that load and compute an element; append those that store it.

    ``names`` are arguments of :func:`element`.
    """
    lines = []
    for line in element(structure, *names):
        target, is_store, value = line.partition("] = ")
        if is_store:
            array, _, index = target.partition("[")
            number = len(stores)
            lines += [f"w{number} = {value}", f"at{number} = {index}"]
            stores.append(f"{array}[at{number}] = w{number}")
        else:
            lines.append(line)
    return lines


def _strips(structure: Structure) -> list[str]:
    """Return the body of a kernel that processes short rows in strips.

    All strips of a block are complete, so no masks are needed: bytes gathered under a mask are each
    loaded behind a branch. The rest follows after the last block.
    """
    names = [f"a{number}" for number in range(len(structure.arrays))]
    names += [f"out{number}" for number in range(len(structure.outputs))]
    walks = dict(zip(names, classes_of(structure), strict=True))
    same = [number for number, (_, cls) in enumerate(structure.arrays) if cls[0] == "0"]
    lines = [
        "block = uint64(item.get_id(0))",
        "place = uint64(item.get_id(1))",
        "i0 = (place * m1) >> h1",
        "i1 = place - i0 * n1",
        "width = rows * n1",
    ]
    index_of = dict.fromkeys(names, "strip * width + place")
    for name, cls in walks.items():
        if cls != "c":
            # The part of the index that differs between neighbors is the same in all strips.
            lines.append(f"{name}_place = {index_terms(cls, 'i', f'{name}_s') or 'uint64(0)'}")
            step = index_terms(cls[0], "i", f"{name}_s").replace("i0", "rows")
            lines += [f"{name}_step = {step}"] if step else []
            index_of[name] = f"strip * {name}_step + {name}_place" if step else f"{name}_place"
    for number in same:
        lines += load(number, structure.arrays[number][0], index_of[f"a{number}"])
    body = element(structure, index_of, same)
    count = structure.strips
    if structure.tile[0] > 1:
        stores: list[str] = []
        for number in range(count):
            lines.append(f"strip = block * uint64({count}) + uint64({number})")
            lines += _with_stores_later(structure, stores, index_of, same)
        lines += stores
    else:
        lines += [
            f"for turn in range({count}):",
            f"    strip = block * uint64({count}) + uint64(turn)",
            *["    " + line for line in body],
        ]
    lines += [
        "for turn in range(turns):",
        f"    strip = blocks * (uint64({count}) + uint64(turn)) + block",
        "    if int64(strip * width + place) < int64(size):",
        *["        " + line for line in body],
    ]
    return ["    " + line for line in lines]


def indices(structure: Structure, classes: Sequence[str]) -> list[str]:
    """Return the lines that divide the index of an element, for arrays of some index classes."""
    return _indices_of_line(structure, classes) + _whole_index(structure, classes)


def _indices_of_line(structure: Structure, classes: Sequence[str]) -> list[str]:
    body: list[str] = []
    if any(cls != "c" for cls in classes):
        rest = "i"
        for dimension in _divided(structure):
            quotient = f"q{dimension}"
            body += division(rest, f"n{dimension}", quotient, f"i{dimension}", structure.is_narrow)
            if structure.multiplies:
                body[-2] = f"{quotient} = ({rest} * m{dimension}) >> h{dimension}"
            rest = quotient
        body.append(f"i0 = {rest}")
        if any(set(cls) == {"0"} for cls in classes):
            body.append("zero = uint64(0)")
    return body


def _whole_index(structure: Structure, classes: Sequence[str]) -> list[str]:
    last = structure.dimensions - 1
    if not structure.has_rows or "c" not in classes:
        return []
    if structure.is_narrow:
        return [f"i = multiply_add_32(i, n{last}, i{last})"]
    return [f"i = i * n{last} + i{last}"]


def _position_in_block(
    structure: Structure, block: Block, classes: Sequence[str]
) -> tuple[str, list[str]]:
    """Return these lines for a work-item that computes a block along one dimension."""
    across, along = block.across, block.along
    rest = "i"
    body = [
        "i = uint64(item.get_id(0))",
        f"i{across} = uint64(item.get_id(1))",
        f"if int64(i{across}) >= int64(n{across}):",
        "    return",
    ]
    if not block.is_whole:
        added, length = block.length - 1, block.length
        body.append(f"blocks = (n{along} + uint64({added})) // uint64({length})")
    others = [
        dimension
        for dimension in range(structure.dimensions)
        if dimension != across and not (block.is_whole and dimension == along)
    ]
    for dimension in reversed(others):
        name, extent = f"i{dimension}", f"n{dimension}"
        if dimension == along:
            name, extent = "begin", "blocks"
        if dimension == others[0]:
            body.append(f"{name} = {rest}")
        else:
            body += division(rest, extent, f"q{dimension}", name, structure.is_narrow)
            rest = f"q{dimension}"
    if any(set(cls) == {"0"} for cls in classes):
        body.append("zero = uint64(0)")
    if block.is_whole:
        body.append(f"for turn in range({block.length}):")
        body.append(f"    i{along} = uint64(turn)")
    else:
        body += [
            f"begin = begin * uint64({block.length})",
            f"left = n{along} - begin",
            f"left = left if left < uint64({block.length}) else uint64({block.length})",
            "for turn in range(int64(left)):",
            f"    i{along} = begin + uint64(turn)",
        ]
    return "        ", ["    " + line for line in body]


def function_of(source: str, names: Mapping[str, Any] = MappingProxyType({})) -> Callable[..., Any]:
    """Compile generated source to a Python function for the kernel compiler.

    ``names`` are more global names that the source refers to.
    """
    scope = {**NAMESPACE, **names, TEXT: source, "__name__": __name__}
    exec(compile(source, "<dparray fused kernel>", "exec"), scope)
    return scope[source[len("def ") : source.index("(")]]


def functions_of(order: Iterable[Node]) -> dict[str, Any]:
    """Return the device functions that element-wise operations call, by name."""
    return {
        name: function
        for node in order
        if isinstance(node.op, Op)
        for name, function in node.op.functions.items()
    }
