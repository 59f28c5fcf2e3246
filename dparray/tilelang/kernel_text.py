"""Source of a contraction's kernel, with one work-item per output element, or per tile.

The source contains the structure: coefficients, the order of loops, dtypes. Sizes, offsets and
bounds are arguments, so that shapes of one class share a kernel. All index arithmetic has 64 bits.
A work-item writes only its own elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from dparray._codegen.values import Values, scalar_lines, scalar_parameters, store
from dparray._graph.contractions import RESULT, Tail
from dparray._layout import contiguous_strides
from dparray.tilelang import kernel_values as of
from dparray.tilelang.bounds import Box, Inequality, Level, interval
from dparray.tilelang.contraction import Contracted
from dparray.tilelang.valid_domain import Domain, Term
from dparray.tilelang.values import FLOAT16, DType

#: The maximum number of work-items of one launch, safely below the limit of drivers.
MAX_ITEMS = 1 << 30
#: The number of elements of a tile that a work-item keeps in registers.
_TILES = range(16, 3, -1)
#: The cost of the loads of a step in a tile's loop, in multiplications.
_STEP = 4
#: The number of floats in the longest vectors of CPUs.
VECTOR = 16
#: The maximum number of elements, and minimum number of points per element, for sharing elements.
_FEW_ELEMENTS = 1024
_MANY_POINTS = 4096
_SHARES = 1024
_LONG_LANES = 256
# The same on a device without groups, whose loops over the lanes have vectors if they are long.
_LONG_LOOP = 16
#: Smaller distances of elements are literals in the source: compilers then generate wide loads.
_MAX_LITERAL_DISTANCE = 32
#: The maximum number of work-items of a group along the second-last dimension.
MAX_ACROSS = 64
#: With at least this many work-items, further dimensions of the output are loops.
_ENOUGH_ITEMS = 1 << 14
#: Loops with at most this many steps have literal bounds: compilers then keep data in registers.
_MAX_LITERAL = 64
#: The maximum number of copies of the body of unrolled loops.
_MAX_COPIES = 12


class Text(NamedTuple):
    """A kernel and its launch parameters.

    Attributes:
        source: its source; the arguments are the operands, the default, the arrays of the tail, the
            output, the scalars of the tail, then numbers.
        numbers: the values of the numbers.
        items: the range.
        grouped: whether work-items form groups, over a range whose second-last size is rounded up.
        parts: if nonzero, the output has this many partial results along a last axis.
        is_tiled: whether a work-item computes several elements.
        takes_tail: whether it can apply further operations to each result.
    """

    source: str
    numbers: tuple[int, ...]
    items: tuple[int, ...]
    grouped: bool
    parts: int = 0
    is_tiled: bool = False
    takes_tail: bool = False


class Tile(NamedTuple):
    """Elements along one output dimension that one work-item computes."""

    dimension: int
    length: int


def text_of(
    contracted: Contracted,
    dtypes: Sequence[DType],
    strides: Sequence[Sequence[int]],
    tail: Tail | None = None,
    has_groups: bool = True,
) -> Text:
    """Return the kernel of a contraction with a valid set.

    Args:
        contracted: the contraction.
        dtypes: the dtypes of the operands, and last of the default if there is one.
        strides: their strides, in elements.
        tail: the operations on the results, which are stored as they are without it.
        has_groups: whether the device runs ranges in groups; others need few of them.
    """
    return Writer(contracted, dtypes, strides, has_groups=has_groups).text(tail)


class Writer:
    """Writes the source of a contraction; with ``is_alone=False`` for one element, not shared."""

    def __init__(
        self,
        contracted: Contracted,
        dtypes: Sequence[DType],
        strides: Sequence[Sequence[int]],
        is_alone: bool = True,
        has_groups: bool = True,
    ) -> None:
        assert contracted.domain is not None
        self.contracted = contracted
        self.domain = domain = contracted.domain
        self.dtypes = dtypes
        self.strides = strides
        self.numbers: dict[int, str] = {}
        self.lines: list[str] = []
        self.fixed: dict[int, Box] = {}  # the values of unrolled variables
        # The axes, by operand and copy of the tile, whose index may be outside of the operand.
        self.clamped: dict[tuple[int, int], list[int]] = {}
        self.depth = 1
        self.rank = len(domain.shape)
        self.lanes = lanes_of(domain.shape)
        self.parts, self.divided = parts_of(contracted, domain) if is_alone else (0, 0)
        self.has_flag = not domain.covers and (
            contracted.has_default or contracted.aggregation in "*><"
        )
        self.tile = None
        if is_alone and not self.parts:
            self.lanes, self.tile = tiled(domain, self.lanes, not self.has_flag)
        self.counts = 1 if self.tile is None else self.tile.length
        # A single short last dimension would make groups too small to be worth their start.
        self.grouped = False
        self.has_groups = has_groups
        self.unrolled = {} if self.parts else _unrolled(domain, self.counts, self.tile is not None)
        self.is_tile_an_id = False  # whether a work-item's id is the number of its tile

    # -- helpers -----------------------------------------------------------------------------

    def number(self, value: int) -> str:
        """Return an argument with a value; 0 is a literal."""
        if value == 0:
            return "0"
        return self.numbers.setdefault(value, f"n{len(self.numbers)}")

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("    " * self.depth + text)

    def sum(
        self, coefficients: Sequence[int], constant: int, skip: int = -1, shift: str = ""
    ) -> str:
        """Return the source of an affine form of the variables."""
        parts = []
        for w, a in enumerate(coefficients):
            if a and w != skip:
                parts.append(f"w{w}" if a == 1 else f"-w{w}" if a == -1 else f"{a} * w{w}")
        if constant or not parts:
            parts.append(self.number(constant))
        if shift:
            parts.append(shift)
        return " + ".join(parts)

    def subscript(self, operand: int, copy: int) -> str:
        """Return the subscript of an operand's element, for one copy of the tile."""
        clamped = self.clamped.get((operand, copy), [])
        factors, constant = [0] * self.domain.variables, 0
        parts = []
        for axis, (term, size, stride) in enumerate(self.axes_of(operand)):
            if axis in clamped:
                parts.append(self.times(f"y{operand}_{axis}_{copy}", stride))
            elif size > 1:  # otherwise the index is 0
                constant += term.constant * stride
                for index, a in enumerate(term.coefficients):
                    factors[index] += a * stride
        parts += [self.times(f"w{index}", factor) for index, factor in enumerate(factors) if factor]
        if constant or not parts:
            parts.append(self.number(constant))
        moved = self.tiled_variable()
        if copy and moved is not None and factors[moved]:
            # Literals are parts of the addresses in instructions, and occupy no registers.
            parts.append(str(copy * factors[moved]))
        return f"uint64({' + '.join(parts)})"

    def axes_of(self, operand: int) -> Iterator[tuple[Term, int, int]]:
        """Iterate over the index along each axis of an operand, its size, and its stride."""
        sizes = (size for _, size in self.contracted.space.operands[operand])
        return zip(self.domain.operands[operand], sizes, self.strides[operand], strict=True)

    def times(self, text: str, factor: int) -> str:
        """Return a product with a distance in memory."""
        if factor in (1, -1):
            return text if factor == 1 else f"-{text}"
        is_literal = abs(factor) <= _MAX_LITERAL_DISTANCE
        return f"{text} * {factor if is_literal else self.number(factor)}"

    def tiled_variable(self) -> int | None:
        """Return the variable that differs between the copies of a tile."""
        if self.tile is None:
            return None
        row = self.tile.dimension
        return next(index for index, solved in enumerate(self.domain.solved) if solved.row == row)

    @property
    def is_ragged(self) -> bool:
        """Return whether the last tile is partial."""
        return (
            self.tile is not None and self.domain.shape[self.tile.dimension] % self.tile.length > 0
        )

    # -- the kernel --------------------------------------------------------------------------

    def text(self, tail: Tail | None) -> Text:
        """Return the kernel."""
        items = self.indices()
        total = self.body_of_element()
        self.store(total, tail)
        operands = len(self.contracted.space.operands)
        names = [f"a{index}" for index in range(operands)]
        names += ["start"] if self.contracted.has_default else []
        arrays, scalars = ((), ()) if tail is None else (tail.arrays, tail.scalars)
        names += [*(f"b{index}" for index in range(len(arrays))), "out"]
        names += [name for name, _ in scalar_parameters(scalars)]
        names += self.numbers.values()
        head = [f"def tile_contraction(item, {', '.join(names)}):", *scalar_lines(scalars)]
        source = "\n".join([*head, *self.lines]) + "\n"
        is_tiled = self.tile is not None
        return Text(
            source,
            tuple(self.numbers),
            items,
            self.grouped,
            self.parts,
            is_tiled,
            is_tiled and not self.has_flag and self.contracted.dtype != FLOAT16,
        )

    def body_of_element(self) -> list[str]:
        """Emit the aggregation of an element's or a tile's points; return the totals' names."""
        conditions = self.solve()
        total = [f"sum{copy}" for copy in range(self.counts)]
        for name in total:
            self.line(f"{name} = {of.start(self.contracted.aggregation, self.contracted.dtype)}")
        if self.has_flag:
            self.line("seen = False")
        outside = self.depth
        if conditions:
            self.line(f"if {' and '.join(conditions)}:")
            self.depth += 1
        self.loops(total)
        self.depth = outside
        return total

    def indices(self) -> tuple[int, ...]:
        """Emit the computation of the output element's index; return the range."""
        extents = list(self.domain.shape)
        if self.parts:
            return self.indices_of_parts(extents)
        if self.tile is not None:
            axis = self.tile.dimension
            extents[axis] = -(-extents[axis] // self.tile.length)
        if not self.lanes:
            return (1,)
        lanes = prod(extents[axis] for axis in self.lanes)
        others = [axis for axis in range(self.rank) if axis not in self.lanes and extents[axis] > 1]
        for axis in range(self.rank):
            if axis not in self.lanes and extents[axis] <= 1:
                self.line(f"i{axis} = 0")
        if lanes > MAX_ITEMS:
            items = self.indices_of_cut_dimension(lanes, [extents[axis] for axis in others])
        else:
            items, across = (lanes,), -1
            # In groups, the second-last size is rounded up by less than a group.
            if len(others) > 1 and self.tile is not None:
                # Items that follow each other share what differs along the lanes, if possible.
                others.sort(key=lambda axis: _shares_vectors(self.domain, axis, self.lanes[-1]))
            if len(others) > 1 and lanes * (extents[others[-1]] + MAX_ACROSS) <= MAX_ITEMS:
                items = (extents[others[-1]], lanes)
                self.grouped = lanes < (_LONG_LANES if self.has_groups else _LONG_LOOP)
                if self.grouped:
                    self.line(f"if int64({self.id(1)}) >= {self.number(items[0])}:")
                    self.line("    return")
                self.is_tile_an_id = self.tile is not None and others[-1] == self.tile.dimension
                across = others.pop()
            if self.tile is not None and len(others) > 1:
                largest = max(others, key=lambda axis: extents[axis])
                if _ENOUGH_ITEMS <= extents[largest] * prod(items) <= MAX_ITEMS:
                    items = (extents[largest], *items)
                    self.walk(others, largest, extents)
                    others = []
            if others:
                rows = prod(extents[axis] for axis in others)
                launched = min(rows, MAX_ITEMS // prod(items))
                items = (launched, *items)
                if launched < rows:
                    end = self.number(rows)
                    self.line(f"for row in range(int64({self.id(0)}), {end}, {launched}):")
                    self.depth += 1
                    self.line("rest = row")
                else:
                    self.line(f"rest = int64({self.id(0)})")
                    if self.tile is not None and others == [self.tile.dimension]:
                        self.is_tile_an_id = True
            if across >= 0:
                self.line(f"i{across} = int64({self.id(len(items) - 2)})")
            self.line(f"lane = uint64({self.id(len(items) - 1)})")
        self.divide_lanes(extents)
        self.divide_rest(others, extents)
        if self.tile is not None:
            axis = self.tile.dimension
            self.begin_tile(axis, self.tile.length)
        return items

    def walk(self, dimensions: Sequence[int], by_items: int, extents: Sequence[int]) -> None:
        """Emit the index along one dimension from an id, and loops over the others.

        If an index is computed by divisions, drivers do not know that neighbors share it.
        """
        assert self.tile is not None
        for axis in dimensions:
            if axis != by_items:
                self.line(f"for u{axis} in range(0, {self.number(extents[axis])}):")
                self.depth += 1
                self.line(f"i{axis} = u{axis}")
        self.line(f"i{by_items} = int64({self.id(0)})")
        self.is_tile_an_id = self.is_tile_an_id or self.tile.dimension in dimensions

    def begin_tile(self, axis: int, length: int) -> None:
        """Emit the index of a tile's first element from the tile's number.

        The last tile begins earlier, and skips elements that the one before it writes. If the
        number is a work-item's id, only the id is compared, since CPU drivers then vectorize the
        rest. `max` is avoided, since drivers do not vectorize it, which takes 20 times as long.
        """
        extent = self.domain.shape[axis]
        if not self.is_ragged:
            self.line(f"i{axis} = i{axis} * {length}")
        elif self.is_tile_an_id:
            self.line(f"tile = i{axis}")
            cut = self.number(length - extent % length)
            self.line(f"is_last = tile >= {self.number(extent // length)}")
            self.line(f"i{axis} = tile * {length} - int64(is_last) * {cut}")
        else:
            self.line(f"i{axis} = i{axis} * {length}")
            end = f"i{axis} + {length}"
            self.line(
                f"cut = int64({end} > {self.number(extent)}) * ({end} - {self.number(extent)})"
            )
            self.line(f"i{axis} = i{axis} - cut")

    def is_own(self, copy: int) -> str:
        """Return the condition under which the last tile writes an element that no other does."""
        if not self.is_tile_an_id or self.tile is None:
            return f"cut <= {copy}"
        extent, length = self.domain.shape[self.tile.dimension], self.tile.length
        cut = self.number(length - extent % length)
        return f"tile < {self.number(extent // length)} or {cut} <= {copy}"

    def divide_lanes(self, extents: Sequence[int]) -> None:
        """Emit the indices along the lanes; all except the first are short."""
        rest = "lane"
        for axis in self.lanes[:0:-1]:
            self.line(f"q{axis} = {rest} // uint64({extents[axis]})")
            self.line(f"i{axis} = int64({rest} - q{axis} * uint64({extents[axis]}))")
            rest = f"q{axis}"
        self.line(f"i{self.lanes[0]} = int64({rest})")

    def divide_rest(self, dimensions: Sequence[int], extents: Sequence[int]) -> None:
        """Emit the indices along dimensions from their row-major position."""
        for axis in dimensions[:0:-1]:
            size = self.number(extents[axis])
            self.line(f"q{axis} = rest // {size}")
            self.line(f"i{axis} = rest - q{axis} * {size}")
            self.line(f"rest = q{axis}")
        if dimensions:
            self.line(f"i{dimensions[0]} = rest")

    def indices_of_parts(self, extents: list[int]) -> tuple[int, ...]:
        """Emit the indices if neighboring work-items share the points of an output element."""
        self.line("rest = int64(item.get_id(0))")
        self.line("part = int64(item.get_id(1))")
        self.divide_rest(range(self.rank), extents)
        return prod(extents), self.parts

    def id(self, dimension: int) -> str:
        """Return a work-item's index."""
        return f"item.get_{'global_' if self.grouped else ''}id({dimension})"

    def indices_of_cut_dimension(self, lanes: int, extents: list[int]) -> tuple[int, ...]:
        """Emit the indices if one dimension has more elements than a launch has work-items."""
        width = min(1 << 20, MAX_ITEMS)
        size = self.number(lanes)
        everything = lanes * prod(extents)
        self.line(f"first = int64(item.get_id(0)) * {width} + int64(item.get_id(1))")
        step = MAX_ITEMS // width
        rows = -(-everything // width)
        self.line(f"for at in range(first, {self.number(everything)}, {step * width}):")
        self.depth += 1
        self.line(f"rest = at // {size}")
        self.line(f"lane = uint64(at - rest * {size})")
        return min(rows, step), width

    def solve(self) -> list[str]:
        """Emit the solved variables; return the conditions of the element."""
        conditions: list[str] = []
        for variable, solved in enumerate(self.domain.solved):
            terms = " - ".join(
                [f"i{solved.row}"]
                + ([self.number(solved.constant)] if solved.constant else [])
                + [f"{a} * w{index}" for index, a in enumerate(solved.terms) if a]
            )
            if solved.divisor == 1:
                self.line(f"w{variable} = {terms}")
            else:
                self.line(f"r{variable} = {terms}")
                self.line(f"w{variable} = r{variable} // {solved.divisor}")
                conditions.append(f"w{variable} * {solved.divisor} == r{variable}")
        for check in self.domain.checks:
            conditions.append(f"i{check.row} == {self.sum(check.terms, check.constant)}")
        for guard in self.domain.guards:
            conditions.append(f"{self.sum(guard.coefficients, guard.constant)} >= 0")
        return conditions

    def bound(self, inequality: Inequality, variable: int) -> str:
        """Return the first or the last value of a variable by one inequality."""
        a = inequality.coefficients[variable]
        rest = self.sum(inequality.coefficients, inequality.constant, skip=variable)
        if a > 0:
            return f"-({rest})" if a == 1 else f"-(({rest}) // {a})"
        return f"{rest}" if a == -1 else f"({rest}) // {-a}"

    def loops(self, total: list[str], loop: int = 0) -> None:
        """Emit loops from a free variable inwards; short ones with constant bounds are unrolled."""
        if loop == len(self.domain.loops):
            if self.has_flag:
                self.line("seen = True")
            self.body(total)
            return
        variable = len(self.domain.solved) + loop
        level = self.domain.loops[loop]
        known, checks = _known_range(level)
        if loop in self.unrolled:
            for value in self.unrolled[loop]:
                self.line(f"w{variable} = {value}")
                self.fixed[variable] = Box(value, value)
                self.checked(total, loop, checks)
            del self.fixed[variable]
            return
        may_check = self.tile is not None or not checks
        if known is not None and len(known) <= _MAX_LITERAL and may_check and not self.parts:
            self.line(f"for w{variable} in range({known.start}, {known.stop}):")
            self.depth += 1
            self.checked(total, loop, checks)
            self.depth -= 1
            return
        pair = None if self.parts else _one_value(level, variable)
        if pair is not None:
            self.line(f"w{variable} = {self.bound(pair[1], variable)}")
            outside = self.depth
            others = [
                f"{self.sum(form.coefficients, form.constant)} >= 0"
                for form in (*level.lower, *level.upper)
                if form not in pair
            ]
            if others:
                self.line(f"if {' and '.join(others)}:")
                self.depth += 1
            self.loops(total, loop + 1)
            self.depth = outside
            return
        first = _nested("max", [self.bound(form, variable) for form in level.lower])
        last = _nested("min", [self.bound(form, variable) for form in level.upper])
        if self.parts and loop == self.divided:
            box = self.domain.boxes[variable]
            share = self.number(-(-(box.high - box.low + 1) // self.parts))
            self.line(f"begin = {self.number(box.low)} + part * {share}")
            first, last = f"max({first}, begin)", f"min({last}, begin + {share} - 1)"
            self.line(f"for w{variable} in range({first}, {last} + 1):")
        else:
            self.line(f"for w{variable} in range({first}, {last} + 1):")
        self.depth += 1
        self.loops(total, loop + 1)
        self.depth -= 1

    def checked(self, total: list[str], loop: int, checks: Sequence[Inequality]) -> None:
        """Emit the loops inside of a level, for the values that satisfy further conditions.

        Neighboring work-items share conditions on other variables than the tile's, which skip the
        values. Otherwise the copies outside of the domain compute with other elements, and are
        reset: conditions within the loops would take more time.
        """
        outside, moved = self.depth, self.tiled_variable()
        own = [form for form in checks if moved is not None and form.coefficients[moved]]
        shared = [
            f"{self.sum(form.coefficients, form.constant)} >= 0"
            for form in checks
            if form not in own and self.interval(form).low < 0
        ]
        if shared:
            self.line(f"if {' and '.join(shared)}:")
            self.depth += 1
        if moved is None or not own:
            self.loops(total, loop + 1)
            self.depth = outside
            return
        reset, before = [], dict(self.clamped)
        for copy, name in enumerate(total):
            conditions = [
                f"({self.sum(form.coefficients, form.constant + form.coefficients[moved] * copy)}"
                " >= 0)"
                for form in own
                if self.interval(form, copy).low < 0
            ]
            if conditions:
                reset.append(f"{name} = {name} if inside{loop}_{copy} else kept{loop}_{copy}")
                self.line(f"inside{loop}_{copy} = {' & '.join(conditions)}")
                self.line(f"kept{loop}_{copy} = {name}")
                self.clamp(copy, len(self.domain.solved) + loop, f"inside{loop}_{copy}")
        self.loops(total, loop + 1)
        self.clamped = before
        for line in reset:
            self.line(line)
        self.depth = outside

    def clamp(self, copy: int, last: int, condition: str) -> None:
        """Emit the indices of a copy that may be outside of operands: 0 unless it is inside.

        These are the indices whose variables, up to ``last``, are known here.
        """
        moved = self.tiled_variable()
        assert moved is not None
        for operand in range(len(self.domain.operands)):
            axes = self.clamped.get((operand, copy), [])
            for axis, (term, size, _) in enumerate(self.axes_of(operand)):
                low, high = self.interval(Inequality(*term), copy)
                is_known = not any(term.coefficients[last + 1 :]) and axis not in axes
                if term.coefficients[moved] and is_known and not 0 <= low <= high < size:
                    constant = term.constant + term.coefficients[moved] * copy
                    index = self.sum(term.coefficients, constant)
                    self.line(f"y{operand}_{axis}_{copy} = ({index}) if {condition} else 0")
                    axes = [*axes, axis]
            self.clamped[operand, copy] = axes

    def interval(self, inequality: Inequality, copy: int = 0) -> Box:
        """Return the range of the left side of an inequality, for a copy of the tile."""
        boxes = [self.fixed.get(index, box) for index, box in enumerate(self.domain.boxes)]
        moved, start = self.tiled_variable(), 0
        if moved is not None and self.tile is not None:
            low, high = boxes[moved]
            boxes[moved] = Box(low, high - self.tile.length + 1)  # of the first copy
            start = inequality.coefficients[moved] * copy
        low, high = interval(inequality, boxes, len(boxes))
        return Box(low + start, high + start)

    def body(self, total: list[str]) -> None:
        """Emit one point: loads, combination, and aggregation, for each copy of the tile."""
        contracted, moved = self.contracted, self.tiled_variable()
        dtype, compared = contracted.dtype, contracted.compared
        for copy, name in enumerate(total):
            values = []
            for index, terms in enumerate(self.domain.operands):
                varies = moved is not None and any(term.coefficients[moved] for term in terms)
                if copy == 0 or varies:
                    text = of.loaded(f"a{index}[{self.subscript(index, copy)}]", self.dtypes[index])
                    is_compared = contracted.combination in ("==", "?") and index < 2
                    wanted = compared if is_compared else dtype
                    self.line(f"x{index}_{copy} = {of.converted(text, self.dtypes[index], wanted)}")
                values.append(f"x{index}_{copy if varies else 0}")
            self.line(f"v{copy} = {self.value(values)}")
            aggregation, propagates = contracted.aggregation, contracted.propagates_nan
            total_now = of.accumulated(aggregation, name, f"v{copy}", dtype, propagates)
            self.line(f"{name} = {total_now}")

    def value(self, values: list[str]) -> str:
        """Return the combination of loaded operands."""
        contracted = self.contracted
        if contracted.combination == "":
            return values[0]
        if contracted.combination == "==":
            return f"int64({values[0]} == {values[1]})"
        if contracted.combination == "?":
            zero = f"{of.wide(contracted.dtype)}(0)"
            return f"{values[2]} if {values[0]} == {values[1]} else {zero}"
        return of.combined(contracted.combination, values[0], values[1], contracted.dtype)

    def store(self, total: list[str], tail: Tail | None) -> None:
        """Emit the stores of the results, after the operations of a tail."""
        dtype = self.contracted.dtype
        for copy, name in enumerate(total):
            subscript = self.output(copy, contiguous_strides(self.domain.shape, 1))
            text = of.stored(name, dtype)
            outside = self.depth
            if self.is_ragged and copy < self.counts - 1:
                self.line(f"if {self.is_own(copy)}:")
                self.depth += 1
            if tail is not None:
                self.line(f"{RESULT} = {text}")
                for line in self.lines_of(tail, copy):
                    self.line(line)
            elif not self.has_flag:
                self.line(f"out[{subscript}] = {text}")
            else:
                self.line("if seen:")
                self.line(f"    out[{subscript}] = {text}")
                self.line("else:")
                if self.contracted.has_default:
                    self.line(
                        f"    out[{subscript}] = start[{self.output(copy, self.strides[-1])}]"
                    )
                else:
                    zero = of.stored(f"{of.wide(dtype)}(0)", dtype)
                    self.line(f"    out[{subscript}] = {zero}")
            self.depth = outside

    def lines_of(self, tail: Tail, copy: int) -> list[str]:
        """Return the lines that apply a tail to one result and store it."""
        lines = [
            f"x{index} = b{index}[{self.output(copy, strides)}]"
            for index, (_, strides) in enumerate(tail.arrays)
        ]
        values = Values()
        values.emit(enumerate(tail.steps), lines, "")
        name, dtype = tail.result
        to = self.output(copy, tail.strides)
        return [*lines, *store("out", to, values.name(name), dtype, tail.dtype)]

    def output(self, copy: int, strides: Sequence[int]) -> str:
        """Return the offset of the output's element for some strides, for a copy of the tile."""
        shares = self.parts or 1
        extents = self.domain.shape
        walked = {f"i{axis}": strides[axis] for axis in range(self.rank) if extents[axis] > 1}
        along = [axis for axis in self.lanes if extents[axis] > 1]
        steps = [strides[axis] * extents[axis] for axis in along[1:]]
        if not self.parts and len(along) > 1 and steps == [strides[axis] for axis in along[:-1]]:
            # A single expression, since compilers do not recognize a sum of its parts.
            walked = {name: stride for name, stride in walked.items() if int(name[1:]) not in along}
            walked["int64(lane)"] = strides[along[-1]]
        texts = [self.times(name, stride * shares) for name, stride in walked.items() if stride]
        if copy and self.tile is not None:
            texts.append(self.times(str(copy), strides[self.tile.dimension]))
        texts += ["int64(part)"] if self.parts else []
        return f"uint64({' + '.join(texts) or '0'})"


def _one_value(level: Level, variable: int) -> tuple[Inequality, Inequality] | None:
    """Return the bounds between which a loop has one value for any earlier variables.

    From ``a * w <= r`` and ``a * w >= r - a + 1`` it follows that ``w`` is ``r // a``.
    """
    for high in level.upper:
        for low in level.lower:
            pairs = zip(low.coefficients, high.coefficients, strict=True)
            is_opposite = all(a == -b for a, b in pairs)
            if is_opposite and low.constant + high.constant == low.coefficients[variable] - 1:
                return low, high
    return None


def _nested(function: str, texts: list[str]) -> str:
    text = texts[0]
    for inner in texts[1:]:
        text = f"{function}({text}, {inner})"
    return text


def _unrolled(domain: Domain, copies: int, is_tiled: bool) -> dict[int, range]:
    """Return the unrolled loops, from the innermost, with their values."""
    loops: dict[int, range] = {}
    for loop in reversed(range(len(domain.loops))):
        known, checks = _known_range(domain.loops[loop])
        if known is None or (checks and not is_tiled):
            break
        copies *= len(known)
        if copies > _MAX_COPIES:
            break
        loops[loop] = known
    return loops


def _known_range(level: Level) -> tuple[range | None, list[Inequality]]:
    """Return the values of a loop by the bounds that depend on no other variable, and the others.

    Return ``None`` for the values if a side has no such bound.
    """
    alone = [
        [form for form in side if sum(map(bool, form.coefficients)) == 1]
        for side in (level.lower, level.upper)
    ]
    if not all(len(side) == 1 for side in alone):
        return None, []
    (low,), (high,) = alone
    up = next(a for a in low.coefficients if a)
    down = next(a for a in high.coefficients if a)
    checks = [form for form in (*level.lower, *level.upper) if form not in (low, high)]
    return range(-(low.constant // up), high.constant // -down + 1), checks


def lanes_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the output dimensions of neighboring work-items: enough to fill a vector."""
    lanes: list[int] = []
    for axis in reversed(range(len(shape))):
        if shape[axis] > 1 and prod(shape[lane] for lane in lanes) < VECTOR:
            lanes.append(axis)
    return tuple(lanes[::-1]) or tuple(range(len(shape))[-1:])


def parts_of(contracted: Contracted, domain: Domain) -> tuple[int, int]:
    """Return how many work-items share an output element's points, and by which loop; 0 for none.

    Used only if few elements have many points, and a share without points changes nothing.
    """
    elements = 1 << (prod(domain.shape) - 1).bit_length()
    if (
        elements > _FEW_ELEMENTS
        or domain.points < _MANY_POINTS
        or contracted.has_default
        or contracted.aggregation == "="
        or not (contracted.aggregation == "+" or domain.covers)
    ):
        return 0, 0
    sizes = [box.high - box.low + 1 for box in domain.boxes[len(domain.solved) :]]
    divided = max(range(len(sizes)), key=lambda part: (sizes[part], part))
    wanted = _SHARES // elements
    while wanted > sizes[divided] // 16:  # a power of two, so that shapes of a class share it
        wanted //= 2
    return (wanted if wanted >= VECTOR else 0), divided


def tiled(
    domain: Domain, lanes: tuple[int, ...], may_mask: bool
) -> tuple[tuple[int, ...], Tile | None]:
    """Return the lanes and a profitable tile, if there is one.

    Short rows, which do not fill a vector, are computed by one work-item each. With ``may_mask``
    the points of the elements of a tile may differ at the boundaries of operands.
    """
    if domain.points < 4 or len(domain.operands) < 2:
        return lanes, None
    shape = domain.shape
    if len(lanes) > 1 and is_tileable(domain, lanes[-1], may_mask):
        return lanes_of(shape[: lanes[-1]]), Tile(lanes[-1], shape[lanes[-1]])
    dimensions = [
        axis
        for axis, extent in enumerate(shape)
        if axis not in lanes and extent >= 4 and is_tileable(domain, axis, may_mask)
    ]
    if not dimensions:
        return lanes, None
    # The elements of a tile share a loaded vector if possible, and not only a loaded number.
    best = max(dimensions, key=lambda axis: (_shares_vectors(domain, axis, lanes[-1]), shape[axis]))
    return lanes, Tile(best, _length_of_tiles(shape[best]))


def _shares_vectors(domain: Domain, dimension: int, lane: int) -> bool:
    """Return whether elements along a dimension share an operand that differs along the lanes."""
    across, along = (
        next((index for index, solved in enumerate(domain.solved) if solved.row == row), None)
        for row in (dimension, lane)
    )
    return any(
        along is not None
        and any(term.coefficients[along] for term in terms)
        and not any(term.coefficients[across] for term in terms)  # type: ignore[index]
        for terms in domain.operands
    )


def _length_of_tiles(extent: int) -> int:
    """Return the length of tiles that takes the fewest steps; one that divides the extent wins."""

    def cost(length: int) -> int:
        return -(-extent // length) * (length + _STEP + (extent % length > 0))

    return min((length for length in _TILES if length <= extent), key=cost)


def is_tileable(domain: Domain, dimension: int, may_mask: bool) -> bool:
    """Return whether elements along a dimension have the same loops, and share an operand.

    With ``may_mask`` short loops are the same, whose values have conditions.
    """
    w = next((w for w, solved in enumerate(domain.solved) if solved.row == dimension), None)
    if w is None or domain.solved[w].divisor != 1 or any(domain.solved[w].terms):
        return False
    if any(other.terms[w] for other in domain.solved[w + 1 :]):
        return False
    if any(check.row == dimension or check.terms[w] for check in domain.checks):
        return False
    if any(form.coefficients[w] for form in domain.guards):
        return False
    for number, level in enumerate(domain.loops, len(domain.solved)):
        known, _ = _known_range(level)
        is_masked = may_mask and known is not None and len(known) <= _MAX_LITERAL
        is_masked &= _one_value(level, number) is None
        if not is_masked and any(form.coefficients[w] for form in (*level.lower, *level.upper)):
            return False
    return any(not any(t.coefficients[w] for t in terms) for terms in domain.operands)
