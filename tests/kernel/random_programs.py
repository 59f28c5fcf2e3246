"""Random kernels that look like programs, compared with plain Python.

They have nested ``while`` and ``for`` loops with ``break``, ``continue`` and early ``return``,
swaps, values carried from step to step, private arrays and device functions. With groups, they also
have barriers, group functions and sub-group functions in uniform control flow. The last dimension
of ranges has every remainder modulo 16 and 64, for which a driver has a separate remainder kernel.

Programs without groups are compared with the kernel function itself, run in Python with NumPy's
numbers. Programs with groups are compared with :func:`dp.simulate`.

Run as a program, it compares any number of kernels: ``random_programs.py --count 1000 --seed 0``.
"""

from __future__ import annotations

import linecache
import random
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dparray as dp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if it is run as a program
from tests.compiler.module_rules import faults
from tests.kernel.random_kernels import sub_groups_as_on

_FIRST, _LAST = 20, 20  # the work-items that are compared with plain Python
_ROWS = 4  # of the output: the values of variables at the end of the kernel
_VARIABLES = ("a", "b", "c", "d")
_NARROW = ("np.int8", "np.int16", "np.int32", "np.uint8", "np.uint16", "np.uint32")
_REALS = ("f", "g")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SHIFTS = ("lshift", "rshift")


class Case(NamedTuple):
    """A kernel and the range over which it is launched.

    Attributes:
        text: its module.
        index_space: the range.
        counts: an array of loop counts, one number for each work-item.
        values: another array of numbers.
        local: the length of the local memory of a group, or 0 without groups.
        has_reals: whether it has float variables, and an array for their values.
    """

    text: str
    index_space: Any
    counts: np.ndarray
    values: np.ndarray
    local: int
    has_reals: bool = False


class _Writer:
    """Write the text of one kernel.

    Attributes:
        is_plain: every number is an int64, and there are no groups.
        total: how many work-items there are.
    """

    def __init__(self, seed: int, types: Sequence[str]) -> None:
        self.random = random.Random(seed)
        self.is_grouped = self.random.random() < 0.4
        self.is_plain = not self.is_grouped and self.random.random() < 0.6
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.types = dict.fromkeys(_VARIABLES, "")
        if not self.is_plain:
            for name in _VARIABLES:
                if self.random.random() < 0.4:
                    self.types[name] = self.pick(types)
        self.readable = [*_VARIABLES, "m", "v", "i"]
        self.made = 0
        self.has_private = False
        self.total = 0
        self.result = "return"  # how the program ends early
        self.has_uint64 = "np.uint64" in types
        self.is_unsigned = False  # whether a statement is computed in uint64

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # -- expressions ---------------------------------------------------------------------------

    def atom(self) -> str:
        name = self.pick((*self.readable, *self.readable, str(self.random.randint(0, 7))))
        return self.read(name)

    def read(self, name: str) -> str:
        """Return a variable or a literal; uint64 and signed integers have no common integer."""
        if self.is_unsigned:
            return f"np.uint64(np.int64({name}))"
        return f"np.int64({name})" if self.types.get(name) == "np.uint64" else name

    def value(self, depth: int = 1) -> str:
        """Return an integer expression."""
        if depth == 0 or self.chance(0.25):
            return str(self.atom())
        a, b = self.value(depth - 1), self.value(depth - 1)
        number = self.random.randint(2, 7)
        choices = [
            *(f"({a} + {b})",) * 5,
            *(f"({a} - {b})",) * 3,
            *(f"({a} * {number})", f"({a} ^ {b})", f"({a} & {b})", f"({a} | {number})"),
            *(f"({a} // {number})", f"({a} % {number})", f"({a} >> 1)", f"({a} << 1)"),
            f"({a} if {self.condition()} else {b})" if self.is_plain else f"min({a}, {number})",
            f"max({a}, {b})" if self.is_plain else f"(-{a})",
        ]
        if self.functions:
            choices += [self.read(f"{self.pick(self.functions)}({a}, {b})")] * 2
        if self.has_private:
            choices += [self.read(f"p[({a}) & 3]")] * 2
        return str(self.pick(choices))

    def condition(self) -> str:
        is_unsigned, self.is_unsigned = self.is_unsigned, False
        text = self.test()
        self.is_unsigned = is_unsigned
        return text

    def test(self) -> str:
        order = self.pick(("<", "<=", ">", ">=", "==", "!="))
        text = f"{self.atom()} {order} {self.atom()}"
        if self.chance(0.3):
            bits, order = self.pick((1, 2, 3, 4)), self.pick(("==", "!="))
            text = f"({self.atom()} + {self.atom()}) & {bits} {order} 0"
        if self.chance(0.15):
            text = f"{text} {self.pick(('and', 'or'))} {self.atom()} != {self.atom()}"
        return text

    # -- statements ----------------------------------------------------------------------------

    def assign(self, depth: int, name: str, text: str) -> None:
        kind = self.types.get(name, "")
        if kind or not self.is_plain:
            text = f"{kind}(np.int64({text}))" if kind else f"np.int64({text})"
        self.line(depth, f"{name} = {text}")

    def step(self, depth: int) -> None:
        """Write a simple statement."""
        self.is_unsigned = not self.is_plain and self.has_uint64 and self.chance(0.15)
        self.statement(depth)
        self.is_unsigned = False

    def statement(self, depth: int) -> None:
        name, other, third = self.random.sample(_VARIABLES, 3)
        same = self.types[name] == self.types[other] == self.types[third]
        kind = self.random.randrange(9)
        if kind == 0 and self.types[name] == self.types[other]:
            self.line(depth, f"{name}, {other} = {other}, {name}")
        elif kind == 1 and self.types[name] == self.types[other]:
            cast = self.types[name] or ("" if self.is_plain else "np.int64")
            self.line(depth, f"{name}, {other} = {other}, {cast}({name} + {other})")
        elif kind == 2 and same:
            self.line(depth, f"{name}, {other}, {third} = {other}, {third}, {name}")
        elif kind == 3:
            self.assign(depth, name, other)
            self.assign(depth, other, self.value())
        elif kind == 4 and self.has_private:
            self.line(depth, f"p[({self.value(0)}) & 3] += {self.value(0)}")
        elif kind < 7:
            self.assign(depth, name, f"{self.read(name)} + {self.value(0)}")
        else:
            self.assign(depth, name, self.value(2))

    def block(self, depth: int, loops: int, *, in_loop: str, uniform: bool) -> None:
        """Write a few statements.

        Args:
            depth: the indentation.
            loops: the remaining depth of nested loops.
            in_loop: "" outside of loops; "break" where a loop may be left; "continue" where it
                must go on, because all work-items of a group meet in its condition.
            uniform: all work-items of a group execute the block.
        """
        known = list(self.readable)  # names defined in a block are not read after it
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.45 or depth > 6:
                self.step(depth)
            elif kind < 0.6:
                self.line(depth, f"if {self.condition()}:")
                self.block(depth + 1, 0, in_loop=in_loop, uniform=False)
                if self.chance(0.4):
                    self.line(depth, "else:")
                    self.block(depth + 1, 0, in_loop=in_loop, uniform=False)
                if in_loop == "continue":  # some work-items may have continued
                    uniform = False
            elif kind < 0.72 and in_loop:
                self.line(depth, f"if {self.condition()}:")
                if self.chance(0.4):
                    self.step(depth + 1)
                ways = ["continue"] if in_loop == "continue" else ["break", "break", "continue"]
                if in_loop == "break" and not self.is_grouped and self.chance(0.15):
                    self.leave(depth + 1)
                else:
                    self.line(depth + 1, self.pick(ways))
                if in_loop == "continue":
                    uniform = False
            elif kind < 0.82 and uniform and self.is_grouped:
                self.together(depth)
            elif loops:
                self.loop(depth, loops - 1, uniform=uniform)
            else:
                self.step(depth)
        if depth > 1:
            self.readable = known

    def leave(self, depth: int) -> None:
        """End the program early."""
        if self.result == "return":
            self.line(depth, f"out[0, i] = {self.value(0)}")
        self.line(depth, self.result)

    def loop(self, depth: int, loops: int, *, uniform: bool) -> None:
        """Write a loop of one of the usual forms, of at most about 40 steps."""
        if uniform and self.is_grouped and self.chance(0.7):
            self.group_loop(depth, loops)
            return
        k = self.name("k")
        outer = loops >= 1 and depth <= 2
        last = "m" if outer or self.chance(0.3) else "(m & 3)"
        step = self.pick((1, 1, 1, 2, 3))
        kind = self.random.randrange(9)
        first, update = "0", f"{k} += {step}"
        if kind == 0:
            head = f"while {k} < {last}:"
        elif kind == 1:
            head = f"while {k} <= {last}:"
        elif kind in (2, 3):
            head = "while True:"
        elif kind == 4:
            first, head, update = last, f"while {k} > 0:", f"{k} -= {step}"
        elif kind == 5:
            head = f"for {k} in range({last}):"
        elif kind == 6:
            head = f"for {k} in range({self.random.randint(-3, 3)}, {last}, {step}):"
        elif kind == 7:
            head = f"for {k} in range({self.random.randint(5, 30)}):"
        else:
            head = f"for {k} in range({last}, -1, -{step}):"
        is_for = head.startswith("for")
        if not is_for:
            self.line(depth, f"{k} = {first}" if self.is_plain else f"{k} = np.int64({first})")
        self.line(depth, head)
        inner = depth + 1
        is_first = self.chance(0.6)
        if not is_for and is_first:
            self.line(inner, update)
        if head == "while True:":
            self.line(inner, f"if {k} {self.pick(('>', '>='))} {last}:")
            self.line(inner + 1, "break")
        elif kind == 7:
            self.line(inner, f"if {k} >= {last}:")
            self.line(inner + 1, "break")
        if not is_for and not is_first:
            # Before any ``continue``.
            self.line(inner, update)
        self.readable.append(k)
        self.step(inner)
        self.block(inner, loops, in_loop="break", uniform=False)
        if is_for:
            self.readable.remove(k)  # a loop of no steps does not define it

    def group_loop(self, depth: int, loops: int) -> None:
        """Write a loop with the same number of steps for all work-items of a group."""
        k = self.name("k")
        group = self.pick(("group", "group", "sub_group"))
        kind = self.random.randrange(4)
        inner = depth + 1
        if kind == 0:
            self.line(depth, f"{k} = np.int64(0)")
            self.line(depth, f"while dp.any_of_group({group}, {k} < (m & 3)):")
            self.line(inner, f"{k} += 1")
        elif kind == 1:
            self.line(depth, f"{k} = np.int64(0)")
            self.line(depth, f"while {k} < {self.random.randint(1, 4)}:")
            if self.chance(0.6):
                self.together(inner)
            self.line(inner, f"{k} += 1")
        elif kind == 2:
            self.line(depth, f"for {k} in range({self.random.randint(1, 4)}):")
            self.together(inner)
        else:
            self.line(depth, f"{k} = np.int64(0)")
            self.line(depth, "while True:")
            self.line(inner, f"{k} += 1")
            self.line(inner, f"if not dp.any_of_group({group}, {k} <= (m & 3)):")
            self.line(inner + 1, "break")
        self.readable.append(k)
        meets = group == "group" or kind in (1, 2)
        self.block(inner, min(loops, 1), in_loop="continue", uniform=meets)
        if kind == 2:
            self.readable.remove(k)

    def together(self, depth: int) -> None:
        """Write a collective statement of all work-items of a group."""
        name = self.pick(_VARIABLES)
        group = self.pick(("group", "group", "sub_group"))
        value = self.value(0)
        kind = self.random.randrange(6)
        if kind < 2:
            self.line(depth, f"local[mine] = {value}")
            self.line(depth, "dp.group_barrier(group)")
            self.assign(depth, name, f"local[(mine + {self.random.randint(1, 5)}) % size]")
            self.line(depth, "dp.group_barrier(group)")
        elif kind == 2:
            function = self.pick(
                ("reduce_over_group", "inclusive_scan_over_group", "exclusive_scan_over_group")
            )
            operation = self.pick(("add", "max", "xor"))
            self.assign(depth, name, f'dp.{function}({group}, np.int64({value}), "{operation}")')
        elif kind == 3:
            predicate = self.pick(("any", "all", "none"))
            self.line(depth, f"if dp.{predicate}_of_group({group}, {self.condition()}):")
            self.step(depth + 1)
        elif kind == 4:
            self.assign(depth, name, f"dp.group_broadcast({group}, np.int64({value}), 0)")
        else:
            self.assign(depth, name, f"dp.permute_group_by_xor(sub_group, np.int64({value}), 1)")

    def function(self, at: int) -> list[str]:
        """Write a device function with a loop and early returns."""
        kept = self.lines, self.readable, self.result, self.types, self.is_grouped, self.functions
        self.lines, self.readable, self.functions = [], ["a", "b", "m", "c", "d"], []
        self.types, self.is_grouped = dict.fromkeys(_VARIABLES, ""), False
        cast = "" if self.is_plain else "np.int64"
        self.result = f"return {cast}(a)"
        self.line(0, f"def function{at}(a, b):")
        for text in ("m = b & 15", "c = a ^ b", "d = 1"):
            name, value = text.split(" = ")
            self.line(1, f"{name} = {cast}({value})")
        if not self.is_plain:
            self.line(1, "a, b = np.int64(a), np.int64(b)")
        self.loop(1, 0, uniform=False)
        self.line(1, f"return {cast}({self.pick(self.readable)})")
        lines = ["@dp.device_func", *self.lines, ""]
        self.lines, self.readable, self.result, self.types, self.is_grouped, self.functions = kept
        self.functions.append(f"function{at}")
        return lines


class _WideWriter(_Writer):
    """Writes programs without groups, with floats, memory in loops and narrow counters."""

    def __init__(self, seed: int, types: Sequence[str]) -> None:
        super().__init__(seed, types)
        self.is_grouped = False

    @property
    def has_arguments(self) -> bool:
        """Whether the next line is in the kernel, which has arrays and floats."""
        return self.result == "return"

    def condition(self) -> str:
        if self.has_arguments and self.chance(0.2):
            other = self.pick((*_REALS, "0.0", "100.0"))
            return f"{self.pick(_REALS)} {self.pick(('<', '<=', '>', '>='))} {other}"
        return super().condition()

    def step(self, depth: int) -> None:
        kind = self.random.randrange(10) if self.has_arguments else 0
        one, other = self.random.sample(_REALS, 2)
        if kind < 4:
            super().step(depth)
        elif kind < 8:
            text = self.pick(
                (
                    f"{one} = {one} + np.float64({self.atom()})",
                    f"{one}, {other} = {other}, {one} + {other}",
                    f"{one} = {one} * 0.5 + {other}",
                    f"{one} = {other} * 1.25 - {one}",
                    f"{one} = {one} if {one} > {other} else {other}",
                    f"{one}, {other} = {other}, {one}",
                )
            )
            self.line(depth, text)
        elif kind == 8:
            row, order = self.random.randrange(_ROWS), self.pick(("=", "+=", "+="))
            self.line(depth, f"out[{row}, i] {order} {self.value(1)}")
        else:
            array = self.pick(("n", "x"))
            place = f"(({self.value(0)}) & 15) % {self.total}"
            self.assign(depth, self.pick(_VARIABLES), f"{array}[{place}]")

    def loop(self, depth: int, loops: int, *, uniform: bool) -> None:
        start, name = len(self.lines), f"k{self.made + 1}"
        super().loop(depth, loops, uniform=uniform)
        first = self.lines[start].strip()
        if self.is_plain or self.chance(0.6) or not first.startswith(f"{name} = "):
            return
        goes_down = "0" not in first.split(" = ")[1]
        kind = self.pick(_NARROW[:3] if goes_down else _NARROW)
        for at, line in enumerate(self.lines[start:], start):
            if line.strip() == first:
                value = first.split(" = ")[1].removeprefix("np.int64")
                self.lines[at] = line.replace(first, f"{name} = {kind}({value})")
            elif line.strip().startswith((f"{name} += ", f"{name} -= ")):
                changed = line.strip().replace("= ", "").split(" ", 1)[1]
                self.lines[at] = line.replace(
                    line.strip(), f"{name} = {kind}({name} {changed[0]} {changed[1:]})"
                )


def _sizes(writer: _Writer, seed: int) -> tuple[Any, int, int]:
    """Return the range, its number of work-items, and the number of work-items of a group."""
    last = seed % 64 + 1 + writer.pick((0, 0, 0, 64))
    before = writer.pick(((), (), (), (1,), (2,), (3,), (2, 2), (3, 1)))
    if not writer.is_grouped:
        size = (*before, last)
        return dp.Range(*size), int(np.prod(size)), 0
    group_last = writer.pick([each for each in range(1, 33) if last % each == 0])
    local = (*(writer.pick([each for each in (1, 2, 3) if n % each == 0]) for n in before),)
    local = (*local, group_last)
    size = (*before, last)
    return dp.NdRange(size, local), int(np.prod(size)), int(np.prod(local))


def make_case(seed: int, *, with_uint64: bool = True, is_wide: bool = False) -> Case:
    """Return the program of a seed.

    Args:
        seed: a number.
        with_uint64: whether there are uint64 variables and arrays, too.
        is_wide: whether it has floats, memory in loops and narrow counters, and no groups.
    """
    types = (*_NARROW, "np.uint64") if with_uint64 else _NARROW
    writer = (_WideWriter if is_wide else _Writer)(seed, types)
    index_space, total, group = _sizes(writer, seed)
    writer.total = total
    head = ["import numpy as np", "import dparray as dp", ""]
    for at in range(writer.random.randint(0, 2)):
        head += writer.function(at)
    writer.line(0, "@dp.kernel")
    more = ", local" * bool(group) + ", real" * is_wide
    writer.line(0, f"def program(item, n, x, out{more}):")
    writer.line(1, f"i = item.{'get_global_linear_id' if group else 'get_linear_id'}()")
    if group:
        writer.line(1, "group, sub_group = item.get_group(), item.get_sub_group()")
        writer.line(1, "mine, size = item.get_local_linear_id(), item.get_local_linear_range()")
        writer.readable.append("mine")
    writer.line(1, "m = n[i]" if writer.is_plain else "m = np.int64(n[i])")
    writer.line(1, "v = x[i]")
    for at, name in enumerate(_VARIABLES):
        writer.assign(1, name, writer.pick((str(at), "v", "i", "m")))
    if is_wide:
        writer.line(1, "f, g = np.float64(v), np.float64(m) * 0.75")
    if writer.chance(0.3):
        writer.has_private = True
        writer.line(1, "p = dp.PrivateArray(4, np.int64, True)")
    writer.block(1, 2, in_loop="", uniform=bool(group))
    writer.loop(1, 1, uniform=bool(group))
    if writer.chance(0.3) and not group:
        writer.line(1, f"if {writer.condition()}:")
        writer.leave(2)
    writer.block(1, 2, in_loop="", uniform=bool(group))
    for row, name in enumerate(_VARIABLES):
        writer.line(1, f"out[{row}, i] {'+=' if is_wide else '='} {name}")
    if group:
        writer.line(1, f"out[{_ROWS}, i] = sub_group.get_max_local_range()")
    if is_wide:
        writer.line(1, "real[0, i], real[1, i] = f, g")
    numbers = np.random.default_rng(seed)
    most = writer.pick((4, 12, 30))
    counts = numbers.integers(-1, most, total).astype("int64")
    dtype = "int64" if writer.is_plain else writer.pick(types)[3:]
    values = numbers.integers(0, 50, total).astype(dtype)
    if dtype == "uint64":
        writer.lines[writer.lines.index("    v = x[i]")] = "    v = np.int64(x[i])"
    text = "\n".join([*head, *writer.lines, ""])
    return Case(text, index_space, counts, values, group, is_wide)


# --- plain Python -----------------------------------------------------------------------------


class _Item(NamedTuple):
    """A work-item's item, with the methods that programs without groups use."""

    number: int

    def get_linear_id(self) -> int:
        return self.number


class _Stub:
    """Stands for dparray in programs without groups."""

    kernel = device_func = staticmethod(lambda function: function)
    PrivateArray = staticmethod(lambda size, dtype, zero: np.zeros(size, dtype))


def _computed_plainly(case: Case, numbers: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the outputs of a program without groups, whose kernel function is run in Python.

    Args:
        case: the program.
        numbers: the linear ids of the work-items to run; the output of the others is 0.
    """
    text = case.text.replace("import dparray as dp\n", "")
    # A variable of a kernel has one type; Python's own functions return one of their arguments.
    scope: dict[str, Any] = {"dp": _Stub, "min": np.minimum, "max": np.maximum}
    exec(compile(text, "<plain program>", "exec"), scope)
    out = np.zeros((_ROWS, case.counts.size), "int64")
    real = np.zeros((len(_REALS), case.counts.size))
    arguments = [case.counts, case.values, out, *[real] * case.has_reals]
    with np.errstate(all="ignore"):
        for number in numbers:
            scope["program"](_Item(number), *arguments)
    return out, real


def _compared(case: Case) -> list[int]:
    """Return the linear ids of the work-items to compare: plain Python takes too long for all.

    A driver runs a separate kernel for the last work-items, and one kernel for all others.
    """
    count = case.counts.size
    return [*range(min(_FIRST, count)), *range(max(_FIRST, count - _LAST), count)]


def compare(case: Case, queue: Any = None) -> None:
    """Raise ``AssertionError`` unless a device and plain Python agree."""
    name = f"<random program {hash(case.text):x}>"
    linecache.cache[name] = (len(case.text), None, case.text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"__name__": "random_program"}
    exec(compile(case.text, name, "exec"), scope)
    kernel = scope["program"]
    local = [dp.LocalAccessor(case.local, np.int64)] if case.local else []
    shape = (_ROWS + 1, case.counts.size)  # the last row: the lengths of sub-groups
    found = dp.zeros(shape, dtype="int64", sycl_queue=queue)
    real = dp.zeros((len(_REALS), case.counts.size), dtype="float64", sycl_queue=queue)
    given = [dp.asarray(one, sycl_queue=queue) for one in (case.counts, case.values)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.exceptions.KernelTypeWarning)
        arguments = (*given, found, *local, *[real] * case.has_reals)
        dp.call_kernel(kernel, case.index_space, *arguments)
    for compiled in kernel._kernels.values():
        assert compiled.target.name != "spirv64" or not faults(compiled.module)
    given_rows = found.asnumpy()
    if case.local:
        wanted = np.zeros(shape, "int64")
        length = int(given_rows[_ROWS].max())
        with np.errstate(all="ignore"), sub_groups_as_on(found.queue):
            arguments = (case.counts, case.values, wanted, *local)
            dp.simulate(kernel, case.index_space, *arguments, sub_group_size=length)
        np.testing.assert_array_equal(given_rows[:_ROWS], wanted[:_ROWS], f"{case.index_space}")
        return
    items = _compared(case)
    try:
        whole, reals = _computed_plainly(case, items)
    except OverflowError:
        return  # A Python integer of the program has more than 64 bits, where a kernel's wraps.
    for one, other in ((given_rows[:_ROWS], whole), (real.asnumpy(), reals)):
        np.testing.assert_array_equal(one[:, items], other[:, items], f"{case.index_space}")


if __name__ == "__main__":
    from random_kernels import compare_seeds  # in the folder of this program

    compare_seeds(make_case, compare)
