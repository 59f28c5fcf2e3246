"""Random functions: statements, slices, loops, ``prange``, reductions and branches.

Each runs compiled on dparray arrays and uncompiled on NumPy arrays. To run more than the suite:

    python tests/jit/random_functions.py FIRST_SEED COUNT
"""

from __future__ import annotations

import linecache
import random
import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dparray as dp
from dparray._language import arrays as arrays_of_language

_DTYPES = ("float64", "float64", "float32", "int64", "int32", "uint8", "int8", "int16", "uint32")
#: Small sizes, and sizes on both sides of the limits between native code, vectorized loops and
#: drivers.
_SIZES = (2, 7, 40, 2, 7, 40, 2, 7, 40, 150, 1200, 12_000)


class _Writer:
    """Write one function of two vectors, a matrix and a number."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["def f(x, y, m, k):", "    s = 0.0", "    c = 0"]
        #: Whether iterations of a ``prange`` loop depend on each other.
        self.is_dependent = False

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def element(self, at: str) -> str:
        """Return an expression of numbers that is exact in every dtype."""
        first = self.pick(f"x[{at}]", f"y[{at}]", "k", "2", f"x[{at} - 1]")
        second = self.pick(f"x[{at}]", f"y[{at}]", "3", "k")
        return f"({first} {self.pick('+', '-', '*')} {second}) % 7"

    def array(self) -> str:
        """Return an expression of whole arrays of one size."""
        first = self.pick("x[1:]", "y[:-1]", "x[:-1]", "y[1:]", "x[:0:-1]")
        second = self.pick("x[:-1]", "y[1:]", "k", "2", self.pick("y[:1]", "x[-1:]", "y[0:2][1:]"))
        return f"({first} {self.pick('+', '-', '*')} {second}) % 5"

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def statement(self, depth: int) -> None:
        """Write one statement, with its body."""
        kind = self.pick("slice", "augmented", "loop", "prange", "sum", "branch", "time", "carry",
                         "rows", "wraps")  # fmt: skip
        if kind == "slice":
            self.add(depth, f"{self.pick('x', 'y')}[{self.pick('1:', ':-1')}] = {self.array()}")
        elif kind == "augmented":
            self.add(depth, f"{self.pick('x', 'y')}[1:] += {self.pick('x[:-1]', 'y[1:]', '1')}")
            self.add(depth, "x %= 11")
            self.add(depth, "y %= 13")
        elif kind == "loop":
            self.add(depth, "for i in range(1, x.shape[0]):")
            self.add(depth + 1, f"{self.pick('x', 'y')}[i] = {self.element('i')}")
        elif kind == "prange":
            self.add(depth, f"for i in dp.prange(1, x.shape[0], {self.pick('1', '2', '3')}):")
            self.add(depth + 1, f"if {self.pick('x', 'y')}[i] > {self.pick('2', 'k')}:")
            self.add(depth + 2, "continue")
            own = self.pick("x[i]", "y[i]")
            self.add(depth + 1, f"{own} = ({own} * 2 + {self.pick('i', 'k', '1')}) % 9")
        elif kind == "sum":
            self.add(depth, "for i in dp.prange(x.shape[0]):")
            self.add(depth + 1, f"s += {self.pick('x[i]', 'y[i] * 2', 'x[i] + y[i]')}")
            self.add(depth + 1, f"if y[i] > {self.pick('1', '3')}:")
            self.add(depth + 2, "c += 1")
            if self.random.random() < 0.2:
                read = self.pick("x[i] = c", "y[i] += c % 2", "s = max(s, c)", "y[c] = 1", "c = i")
                # An assignment that comes first would leave the iterations independent.
                place = len(self.lines) - (0 if read == "c = i" else self.random.choice((0, 3)))
                self.lines.insert(place, "    " * (depth + 1) + read)
                self.is_dependent = True
        elif kind == "rows":
            row, other = self.pick("0", "1", "-1"), self.pick("0", "1")
            self.add(
                depth,
                self.pick(
                    f"m[{row}, 1:] = m[{other}, {self.pick(':0:-1', ':-1', '1:')}]",
                    f"m[{self.pick('1:', ':-1')}] = m[{self.pick('1:', ':-1', '-2::-1')}]",
                    f"m[1:, :-1] {self.pick('', '+', '-')}= m[:-1, {self.pick('1:', ':0:-1')}]",
                    f"np.add(m[{row}, :-1], {self.pick('k', 'm[0, 1:]')}, m[{row}, 1:])",
                    f"m[:, {row}] = m[:, {other}]",
                ),
            )
        elif kind == "wraps":  # comparisons and quotients of results that may overflow
            at = self.pick("", "[i]")
            first, second = self.pick(f"x{at}", "2", "k"), self.pick(f"x{at}", f"y{at}")
            made = f"({first} {self.pick('+', '-', '*')} {second})"
            made = self.pick(f"{made} // 3", f"{made} % 5", f"({made} < x{at}) * 2")
            if at:
                self.add(depth, f"for i in {self.pick('dp.prange', 'range')}(x.shape[0]):")
            self.add(depth + bool(at), f"y{at or '[:]'} = ({made}) % 4")
        elif kind == "branch":
            self.add(depth, f"if {self.pick('k > 2', 'c < 3', 'x.shape[0] > 20')}:")
            self.add(depth + 1, f"{self.pick('x', 'y')}[0] = {self.pick('1', 'k', 'c % 5')}")
            self.add(depth, "else:")
            self.add(depth + 1, "y[-1] = 4")
        elif kind == "time":
            self.add(depth, f"for _ in range({self.pick('0', '1', '3')}):")
            self.add(depth + 1, "x[1:] = (x[:-1] + y[1:]) % 6")
        else:
            self.add(depth, "t = 0")
            self.add(depth, "for i in range(x.shape[0]):")
            self.add(depth + 1, "t = (t + int(x[i]) * 3) % 17")
            self.add(depth, "c = (c + t) % 19")

    def text(self) -> str:
        for _ in range(self.random.randint(1, 5)):
            self.statement(1)
        self.add(1, self.pick("return s, c", "return x * 2, s", "return y[1:], c", "return c"))
        return "\n".join(self.lines) + "\n"


def check(seed: int) -> None:
    """Compare one function, compiled and uncompiled; dependent iterations must be refused.

    Raises:
        AssertionError: they differ; the message contains the source.
    """
    writer = _Writer(seed)
    text = writer.text()
    name = f"<random function {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"dp": dp, "np": np}
    exec(compile(text, name, "exec"), space)
    generator = random.Random(seed)
    size = generator.choice(_SIZES)
    dtypes = [np.dtype(generator.choice(_DTYPES)) for _ in range(2)]
    random_numbers = np.random.default_rng(seed)
    hosts = [random_numbers.integers(0, 9, size).astype(dtype) for dtype in dtypes]
    hosts.append(random_numbers.integers(0, 9, (5, size)).astype(dtypes[0]))
    if all(dtype.kind in "iu" and dtype.itemsize < 8 for dtype in dtypes) and seed % 2:
        for host in hosts:  # sums of floats would depend on their order
            limits = np.iinfo(host.dtype)
            host[...] = random_numbers.choice([limits.min, limits.max, 1, 100], host.shape)
    arrays = [dp.asarray(host) for host in hosts]
    number = generator.choice((1, 3, 5))
    compiled = dp.jit(cache=False)(space["f"])
    if writer.is_dependent:
        with pytest.raises(dp.exceptions.KernelCompileError, match="prange loop"):
            compiled(*arrays, number)
        assert all((x.asnumpy() == host).all() for x, host in zip(arrays, hosts, strict=True))
        return
    # In a quarter of the functions threads share all statements, as on larger arrays.
    minimum = 0 if seed % 4 == 0 else arrays_of_language.MIN_SHARED_ELEMENTS
    try:
        with np.errstate(all="ignore"):
            wanted = space["f"](*hosts, number)
    except (TypeError, OverflowError):  # floats cannot be added to integers in place
        return
    try:
        with mock.patch.object(arrays_of_language, "MIN_SHARED_ELEMENTS", minimum):
            found = compiled(*arrays, number)
        for one, other in zip(_flat(found, *arrays), _flat(wanted, *hosts), strict=True):
            np.testing.assert_array_equal(np.asarray(_host(one)), np.asarray(other))
            if isinstance(other, np.ndarray):
                assert one.dtype == other.dtype
    except Exception as error:
        raise AssertionError(f"seed {seed}, {[h.dtype.name for h in hosts]}\n{text}") from error


def _flat(result: Any, *arrays: Any) -> list[Any]:
    return [*(result if isinstance(result, tuple) else (result,)), *arrays]


def _host(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, dp.ndarray) else value


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    failures = 0
    for each in range(first, first + count):
        try:
            check(each)
        except AssertionError as error:
            failures += 1
            print(error, "\n", repr(error.__cause__)[:600])
    print(f"{count} functions, {failures} differ")
