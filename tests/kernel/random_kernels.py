"""Random kernels, run on devices and compared with plain Python.

A kernel is text in the kernel language, generated from a seed: arithmetic of all types, branches
and loops, private and local arrays, vectors, barriers in loops, atomics, group and sub-group
algorithms, device functions and tuples. Ranges have one to three dimensions, with and without
groups. The reference is :func:`dp.simulate`, which shares no code with the compiler.

Run as a program, it compares any number of kernels: ``random_kernels.py --count 5000 --seed 0``. It
uses a new process for each 250 kernels, because compiled kernels stay in memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import linecache
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import dparray as dp
from dparray._driver import traits_of
from dparray._ir import interpreter
from dparray._simulator import language

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
_ATOMIC = ("int32", "int64", "uint32", "uint64")
_GROUPED = ((6,), (16,), (20,), (4, 3), (2, 8), (2, 3, 2))
_GROUPS = (1, 2, 3)
_IN_A_PROCESS = 250
_IS_CHILD = "DPARRAY_TEST_RANDOM_CHILD"
_SECONDS_OF_A_KERNEL = 120  # of CPU time, so that a loaded machine ends no process
_PLAIN = ((1,), (17,), (40,), (5, 6), (3, 2, 4))
_OUT = 5  # the position of "out" among the arguments
_SIMULATE = importlib.import_module("dparray._simulator.simulate")


class Case(NamedTuple):
    """A kernel with its arguments.

    Attributes:
        text: its module.
        index_space: the range.
        arguments: NumPy arrays, local accessors and numbers.
    """

    text: str
    index_space: Any
    arguments: tuple[Any, ...]


class _Writer:
    """Write the text of one kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.whole = ["linear"]
        self.real: list[str] = []
        self.changing: list[str] = []
        self.made = 0
        self.private: list[tuple[str, int, str]] = []

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def name(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # -- expressions ----------------------------------------------------------------------------

    def integer(self, depth: int = 2) -> str:
        """Return an expression of integers of any type."""
        if depth == 0 or self.random.random() < 0.2:
            if self.random.random() < 0.25:
                return f"np.int64({self.random.randint(-9, 99)})"
            return self.pick(self.whole)
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        kind = self.random.randrange(12)
        if kind < 5:
            return f"({a} {self.pick('+-*&|^')} {b})"
        if kind == 5:
            return f"({a} {self.pick(('//', '%'))} {self.random.randint(1, 9)})"
        if kind == 6:
            return f"({a} {self.pick(('<<', '>>'))} {self.random.randint(0, 9)})"
        if kind == 7:
            return f"{self.pick(('min', 'max'))}({a}, {b})"
        if kind == 8:
            return f"(np.int64({a}) if {self.condition(depth - 1)} else np.int64({b}))"
        if kind == 9:
            return _signed(f"np.{self.pick(INTEGERS)}(np.int64({a}))")
        if kind == 10 and self.functions:
            return f"{self.pick(self.functions)}({a}, {b})"
        return f"({self.pick(('-', '~'))}{a})"

    def condition(self, depth: int = 1) -> str:
        compared = f"{self.integer(depth)} {self.pick(('<', '<=', '==', '!=', '>'))} "
        text = compared + self.integer(depth)
        if self.random.random() < 0.2:
            text = f"({text}) {self.pick(('and', 'or'))} not ({self.integer(0)} > 3)"
        return f"({text})"

    def float(self, depth: int = 2) -> str:
        """Return a continuous expression of floats that stays small."""
        if depth == 0 or not self.real or self.random.random() < 0.2:
            if self.real and self.random.random() < 0.7:
                return self.pick(self.real)
            small = f"({self.integer(0)} & 7)"
            return f"{self.pick(('float', 'np.float32'))}({small})"
        a, b = self.float(depth - 1), self.float(depth - 1)
        kind = self.random.randrange(8)
        if kind < 2:
            return f"({a} {self.pick('+-')} {b})"
        if kind == 2:
            return f"({a} * 0.5)"
        if kind == 3:
            return f"math.{self.pick(('sin', 'cos', 'tanh', 'atan'))}({a})"
        if kind == 4:
            return f"math.sqrt(abs({a}) + 1)"
        if kind == 5:
            return f"{self.pick(('min', 'max'))}({a}, {b})"
        if kind == 6:
            return f"({a} if {self.condition()} else {b})"
        return f"({a} / (abs({b}) + 1))"

    def added(self, dtype: str) -> str:
        """Return what is added to an element of a dtype."""
        return f"np.{dtype}(np.int64({self.integer(1)}))"

    # -- statements -----------------------------------------------------------------------------

    def statements(self, depth: int, budget: int, *, uniform: bool) -> None:
        """Write some statements; ``uniform`` means that all work-items of a group execute them."""
        for _ in range(budget):
            self.statement(depth, uniform=uniform)

    def block(self, depth: int, *, uniform: bool) -> None:
        """Write an indented block; variables first assigned inside are not used outside."""
        known = list(self.whole), list(self.real), list(self.private)
        self.line(depth, "pass")
        self.statements(depth, self.random.randint(1, 2), uniform=uniform)
        self.whole, self.real, self.private = known

    def statement(self, depth: int, *, uniform: bool) -> None:
        kind = self.random.randrange(15)
        if depth > 3:
            kind %= 4
        if kind < 2:
            self.assign(depth, self.whole, "v", self.integer())
        elif kind == 2:
            self.assign(depth, self.real, "r", self.float())
        elif kind == 3:
            self.change(depth)
        elif kind == 4:
            self.line(depth, f"if {self.condition()}:")
            self.block(depth + 1, uniform=False)
            if self.random.random() < 0.6:
                self.line(depth, "else:")
                self.block(depth + 1, uniform=False)
        elif kind in (5, 6):
            name = self.name("k")
            self.line(depth, f"for {name} in range({self.random.randint(1, 4)}):")
            self.whole.append(name)
            self.change(depth + 1)
            self.block(depth + 1, uniform=uniform)
            self.whole.remove(name)
        elif kind == 7:
            self.loop(depth)
        elif kind == 8:
            self.private_array(depth)
        elif kind == 9:
            a, b, c = (self.name("v") for _ in range(3))
            self.line(depth, f"{a}, {b} = divmod({self.integer(1)}, {self.random.randint(1, 9)})")
            self.line(depth, f"{c} = (np.int64({a}), np.int64({b}), 5)[({self.integer(0)}) % 3]")
            self.whole += [a, b, c]
        elif kind == 10:
            value = f"({self.integer(1)}) & 15"
            index = f"({self.integer(0)}) % 4"
            operation = self.pick(("fetch_add", "fetch_max", "fetch_min", "fetch_xor", "fetch_or"))
            # Operations that change one element in any order are of one kind.
            place = ("fetch_add", "fetch_max", "fetch_min", "fetch_xor", "fetch_or")
            self.line(
                depth,
                f"dp.AtomicRef(counts, ({place.index(operation)}, {index})).{operation}({value})",
            )
        elif kind == 14:
            self.vector(depth)
        elif uniform:
            self.together(depth, kind)

    def assign(self, depth: int, known: list[str], letter: str, text: str) -> None:
        name = self.name(letter)
        self.line(depth, f"{name} = {text}")
        known.append(name)

    def change(self, depth: int) -> None:
        """Change a variable that is int64; others would become floats."""
        names = [name for name in self.whole if name in self.changing]
        if names:
            name = self.pick(names)
            self.line(depth, f"{name} = np.int64({name} + ({self.integer(1)}))")

    def loop(self, depth: int) -> None:
        name, total = self.name("n"), self.name("v")
        self.line(depth, f"{name} = 0")
        self.line(depth, f"{total} = np.int64({self.integer(1)})")
        self.line(depth, f"while {name} < {self.random.randint(2, 6)}:")
        self.line(depth + 1, f"{name} += 1")
        self.whole.append(name)
        self.line(depth + 1, f"if {self.condition()}:")
        self.line(depth + 2, self.pick(("break", "continue")))
        self.line(depth + 1, f"{total} = np.int64({total} * 3 + {self.integer(1)})")
        self.whole.append(total)
        self.changing.append(total)

    def private_array(self, depth: int) -> None:
        name, size = self.name("p"), self.random.randint(1, 5)
        dtype = self.pick(INTEGERS)
        self.line(depth, f"{name} = dp.PrivateArray({size}, np.{dtype}, True)")
        self.line(depth, f"{name}[({self.integer(1)}) % {size}] = np.int64({self.integer()})")
        self.line(depth, f"{name}[({self.integer(0)}) % {size}] += {self.added(dtype)}")
        element = f"{name}[({self.integer(0)}) % {size}]"
        self.assign(depth, self.whole, "v", _signed(element, dtype))

    def vector(self, depth: int) -> None:
        """Write computations with vectors, stored in a private array and loaded again."""
        width, dtype, other = self.pick((2, 3, 4, 8, 16)), self.pick(INTEGERS), self.pick(INTEGERS)
        first, second, memory = self.name("w"), self.name("w"), self.name("p")
        self.line(depth, f"{first} = dp.vec_full({width}, {self.integer(1)}, np.{dtype})")
        numbers = [
            f"np.{other}(np.int64({self.integer(1 if at < 2 else 0)}))" for at in range(width)
        ]
        self.line(depth, f"{second} = dp.vec({', '.join(numbers)}).astype(np.{dtype})")
        sign = self.pick(("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"))
        amount = f"({second} & 7)" if sign in ("<<", ">>") else second
        compared = f"{first} {self.pick(('<', '>=', '!='))} {self.integer(0)}"
        self.line(
            depth,
            f"{first} = dp.vec_where({compared}, min({first} {sign} {amount}, {second}), -{first})",
        )
        self.line(depth, f"{memory} = dp.PrivateArray({width + 2}, np.{self.pick(INTEGERS)}, True)")
        self.line(depth, f"dp.vec_store({memory}, ({self.integer(0)}) % 3, {first})")
        self.line(depth, f"{second} = dp.vec_load({memory}, 1, {width}).astype(np.{dtype})")
        index = f"({self.integer(0)}) % {width}"
        result = self.pick(
            (f"{second}[{index}]", f"{second}.sum()", f"max({first}, {second}).min()")
        )
        self.assign(depth, self.whole, "v", f"np.int64({result})")

    def together(self, depth: int, kind: int) -> None:
        """Write a collective operation of all work-items of a group."""
        value, name = f"np.{self.pick(INTEGERS)}(np.int64({self.integer(1)}))", self.name("v")
        group = self.pick(("group", "item.get_sub_group()"))
        if kind == 11:
            other = f"(mine + {self.random.randint(1, 5)}) % size"
            self.line(depth, f"local[mine] = np.int64({self.integer()})")
            self.line(depth, "dp.group_barrier(group)")
            self.line(depth, f"{name} = np.int64(local[{other}])")
            self.line(depth, "dp.group_barrier(group)")
        elif kind == 12:
            operation = self.pick(("add", "min", "max", "mul", "and", "or", "xor"))
            function = self.pick(
                ("reduce_over_group", "inclusive_scan_over_group", "exclusive_scan_over_group")
            )
            call = f'{function}({group}, {value}, "{operation}")'
            self.line(depth, f"{name} = np.int64(dp.{call})")
        else:
            call = self.pick(
                (
                    f"group_broadcast({group}, {value}, 0)",
                    f"shift_group_left(item.get_sub_group(), {value}, {self.random.randint(0, 4)})",
                    f"permute_group_by_xor(item.get_sub_group(), {value}, 1)",
                    f"reduce_over_group(item.get_group(), {value}, combine)",
                )
            )
            self.line(depth, f"{name} = np.int64(dp.{call})")
        self.whole.append(name)


def _signed(text: str, dtype: str = "") -> str:
    """Return a number whose type is no uint64, which has no common integer with signed ones."""
    return f"np.int64({text})" if (dtype or text.removeprefix("np.")).startswith("uint64") else text


def make_case(seed: int) -> Case:
    """Return the kernel of a seed."""
    writer = _Writer(seed)
    choice, numbers = writer.random, np.random.default_rng(seed)
    grouped = choice.random() < 0.6
    local = writer.pick(_GROUPED) if grouped else writer.pick(_PLAIN)
    size = tuple(extent * writer.pick(_GROUPS) for extent in local) if grouped else local
    ndim, total = len(size), int(np.prod(size))
    operator = writer.pick(("a if a > b else b", "a & b", "a + b"))
    head = [
        "import math",
        "import numpy as np",
        "import dparray as dp",
        "",
        "@dp.device_func",
        "def combine(a, b):",
        f"    return {operator}",
        "",
    ]
    for at in range(choice.randint(0, 2)):
        writer.whole, known = ["a", "b"], writer.whole
        head += ["@dp.device_func", f"def function{at}(a, b):"]
        if choice.random() < 0.5:
            head += [
                f"    if {writer.condition()}:",
                f"        return np.int64({writer.integer()})",
            ]
        head += [f"    return np.int64({writer.integer()})", ""]
        writer.whole = known
        writer.functions.append(f"function{at}")

    dtypes = [writer.pick(INTEGERS) for _ in range(2)] + [writer.pick(FLOATS)]
    arrays = []
    for dtype in dtypes:
        limits = (-40, 40) if np.dtype(dtype).kind != "u" else (0, 80)
        values = numbers.integers(*limits, size).astype(dtype)
        if choice.random() < 0.3:
            values = values[::-1]
        arrays.append(values)
    prefix = "get_global_id" if grouped else "get_id"
    ids = ", ".join(f"item.{prefix}({dimension})" for dimension in range(ndim))
    names = [
        "item",
        "x",
        "y",
        "z",
        "scalar",
        "counts",
        "out",
        "real",
        *(["local"] if grouped else []),
    ]
    writer.line(0, "@dp.kernel")
    writer.line(0, f"def random_kernel({', '.join(names)}):")
    writer.line(1, f"at = ({ids},)" if ndim == 1 else f"at = ({ids})")
    writer.line(1, f"linear = item.{'get_global_linear_id' if grouped else 'get_linear_id'}()")
    if grouped:
        writer.line(1, "group = item.get_group()")
        writer.line(1, "mine, size = item.get_local_linear_id(), item.get_local_linear_range()")
        writer.whole += ["mine", "size"]
    for name in ("x", "y"):
        element = f"{name}[at]"
        writer.assign(1, writer.whole, "v", _signed(element, dtypes["xy".index(name)]))
    writer.assign(1, writer.whole, "v", "np.int64(x[at])")
    writer.changing.append(writer.whole[-1])
    writer.assign(1, writer.real, "r", "z[at]")
    writer.line(1, "scalar = np.int64(scalar)")
    writer.whole.append("scalar")
    writer.statements(1, choice.randint(3, 9), uniform=grouped)
    for column in range(3):
        writer.line(1, f"out[{column}, linear] = np.int64({writer.integer(1)})")
    if grouped:
        writer.line(1, "out[3, linear] = item.get_sub_group().get_max_local_range()")
    writer.line(1, f"real[linear] = {writer.float(1)}")
    scalar = writer.pick((3, np.int8(-5), np.uint32(7), np.uint64(9)))
    arguments: list[Any] = [
        *arrays,
        scalar,
        np.zeros((5, 4), writer.pick(_ATOMIC)),
        np.zeros((3 + grouped, total), writer.pick(INTEGERS)),
        np.zeros(total, writer.pick(FLOATS[1:])),
    ]
    index_space: Any = dp.Range(*size)
    if grouped:
        index_space = dp.NdRange(size, local)
        arguments.append(dp.LocalAccessor(int(np.prod(local)), writer.pick(INTEGERS)))
    return Case("\n".join([*head, *writer.lines, ""]), index_space, tuple(arguments))


@contextmanager
def sub_groups_as_on(queue: Any) -> Iterator[None]:
    """Let simulations form sub-groups of the work-items of which a queue's device forms them.

    In groups of several dimensions SYCL's CPU device takes neighbors in the first dimension, as the
    simulator does, and other drivers take neighbors in the last one.
    """
    if traits_of(queue).driver == "sycl":
        yield
        return
    position, sub_group = language.position_in_sub_group, language.SimulatedSubGroup

    def consecutive(at: tuple[int, ...], size: tuple[int, ...], width: int) -> tuple[int, int]:
        return position((language.linear_index(at, size),), (math.prod(size),), width)

    def of_consecutive(item: Any, size: tuple[int, ...], width: int) -> Any:
        return sub_group(item, (math.prod(size),), width)

    sub_group_of = interpreter.sub_group_of

    def of_neighbors(at: Sequence[int], size: Sequence[int], width: int) -> Any:
        return sub_group_of((interpreter.linear(at, size),), (math.prod(size),), width)

    with (
        mock.patch.object(interpreter, "sub_group_of", of_neighbors),
        mock.patch.object(_SIMULATE, "position_in_sub_group", consecutive),
        mock.patch.object(language, "SimulatedSubGroup", of_consecutive),
    ):
        yield


def compare(case: Case, queue: Any = None) -> list[np.ndarray]:
    """Return the arrays that a device computes.

    Raises:
        AssertionError: a simulation computes others.
    """
    scope: dict[str, Any] = {"__name__": "random_kernel"}
    # Simulations read it: some of their numbers have the types of the annotations in the text.
    name = f"<random kernel {hash(case.text):x}>"
    linecache.cache[name] = (len(case.text), None, case.text.splitlines(keepends=True), name)
    exec(compile(case.text, name, "exec"), scope)
    kernel = scope["random_kernel"]
    wanted = [np.array(one) if isinstance(one, np.ndarray) else one for one in case.arguments]
    given = [
        dp.asarray(one, sycl_queue=queue) if isinstance(one, np.ndarray) else one
        for one in case.arguments
    ]
    dp.call_kernel(kernel, case.index_space, *given)
    # The device chooses the size of sub-groups; the kernel has written it to the last row of out.
    is_grouped = isinstance(case.index_space, dp.NdRange)
    length = int(given[_OUT].asnumpy()[-1, 0]) if is_grouped else 16
    with sub_groups_as_on(given[_OUT].queue):
        dp.simulate(kernel, case.index_space, *wanted, sub_group_size=length)
    results = [one.asnumpy() for one in given if isinstance(one, dp.ndarray)]
    references = [one for one in wanted if isinstance(one, np.ndarray)]
    for at, (found, expected) in enumerate(zip(results, references, strict=True)):
        message = f"array {at} of {case.index_space}"
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, 2e-3, 2e-3, err_msg=message)
        else:  # allclose compares large integers as floats
            np.testing.assert_array_equal(found, expected, message)
    return results


def compare_seeds(make: Callable[[int], Any], compare: Callable[[Any], None]) -> None:
    """Compare the kernels of consecutive seeds; report those that differ."""
    parser = argparse.ArgumentParser(description=compare_seeds.__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="start no new kernels after this time"
    )
    options = parser.parse_args()
    last, ends = options.seed + options.count, time.monotonic() + options.seconds
    if _IS_CHILD in os.environ:
        _compare_here(make, compare, range(options.seed, last))
        return
    wrong, done, first = [], 0, options.seed
    while first < last and time.monotonic() < ends:
        seeds = range(first, min(first + _IN_A_PROCESS, last))
        found, reached, status = _compare_in_a_process(seeds)
        wrong += found
        if status:  # the driver's compiler ended the process, or hung
            wrong.append(reached)
            print(f"--- seed {reached}: the process ended with {status}", flush=True)
        first = reached + 1
        done += len(range(seeds.start, first))
        print(f"{done} compared, {len(wrong)} differ", flush=True)
    print(f"{done} kernels from seed {options.seed}: {len(wrong)} differ {wrong}", flush=True)
    raise SystemExit(bool(wrong))


def _compare_here(make: Callable[[int], Any], compare: Callable[[Any], None], seeds: range) -> None:
    """Compare kernels; print a line ``SEED ok`` or ``SEED wrong`` for each to standard output."""
    import resource  # Windows, where other functions of this file are used, has no such module.

    faulthandler.register(signal.SIGXCPU, chain=True)  # prints the traceback, and the process ends
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    for seed in seeds:
        until = math.ceil(time.process_time()) + _SECONDS_OF_A_KERNEL
        resource.setrlimit(resource.RLIMIT_CPU, (until, most))
        faulthandler.dump_traceback_later(30 * _SECONDS_OF_A_KERNEL, exit=True)  # if it waits
        case = make(seed)
        result = "ok"
        try:
            compare(case)
        except Exception as error:
            result = "wrong"
            sys.stderr.write(f"--- seed {seed}: {type(error).__name__}: {error}\n{case.text}\n")
            sys.stderr.flush()
        print(seed, result, flush=True)


def _compare_in_a_process(seeds: range) -> tuple[list[int], int, int]:
    """Return the seeds that differ, the last seed that was started, and the exit status."""
    command = [sys.executable, sys.argv[0], "--count", str(len(seeds)), "--seed", str(seeds.start)]
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "DPARRAY_CACHE_DIR": empty, _IS_CHILD: "1"}
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    lines = [line.split() for line in run.stdout.splitlines() if line.endswith(("ok", "wrong"))]
    found = [int(seed) for seed, result in lines if result == "wrong"]
    reached = seeds.start + len(lines) - (run.returncode == 0)
    return found, reached, run.returncode


if __name__ == "__main__":
    compare_seeds(make_case, compare)
