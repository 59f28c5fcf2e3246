"""Statements that write slices, in any order: later reads see all of them, as in NumPy.

Each program is text, run once with NumPy and once with dparray. Numbers stay whole and small, so
that every backend gives equal results to the last bit.
"""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._layout import are_apart
from tests.support import force, launched

SHAPES = [(9, 12), (40, 50), (300, 400), (7, 8, 9), (40, 30, 50), (70_000,)]


class Statements:
    """Generate programs on arrays ``a``, ``b`` and ``c`` of one shape."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.shape = self.draw.choice(SHAPES)
        self.held = 0

    def slices(self, extents: tuple[int, ...]) -> str:
        """Return a random slice of that shape."""
        parts = []
        for extent, whole in zip(extents, self.shape, strict=True):
            room = whole - extent
            if room and extent * 2 <= whole and self.draw.random() < 0.2:
                step = self.draw.choice([2, -2])
                first = self.draw.randrange(whole - 2 * extent + 1)
                if step < 0:
                    last = first + 2 * extent - 2
                    end = last - 2 * extent
                    parts.append(f"{last}:{end if end >= 0 else None}:-2")
                else:
                    parts.append(f"{first}:{first + 2 * extent - 1}:2")
            else:
                first = self.draw.randrange(room + 1)
                parts.append(f"{first}:{first + extent}")
        return ", ".join(parts)

    def extents(self) -> tuple[int, ...]:
        """Return the size of a slice along an axis: an edge, an inner part, or all."""
        kind = self.draw.randrange(4)
        if kind == 0:
            return self.shape
        if kind == 1:
            axis = self.draw.randrange(len(self.shape))
            return tuple(1 if at == axis else n for at, n in enumerate(self.shape))
        return tuple(max(n - self.draw.choice([1, 2, n // 2]), 1) for n in self.shape)

    def name(self) -> str:
        return self.draw.choice("abc")

    def value(self, extents: tuple[int, ...]) -> str:
        terms = []
        for _ in range(self.draw.choice([1, 1, 2, 3, 5])):
            kind = self.draw.randrange(6)
            if kind == 0:
                terms.append(str(self.draw.randrange(5)))
            elif kind == 1:
                terms.append(f"{self.name()}.max()")
            elif kind == 2 and self.held:
                terms.append(f"m.abs(t{self.draw.randrange(self.held)}.ravel()[1])")
            else:
                terms.append(f"{self.name()}[{self.slices(extents)}]")
        return " + ".join(terms)

    def statement(self) -> str:
        extents = self.extents()
        at = f"{self.name()}[{self.slices(extents)}]"
        kind = self.draw.randrange(12)
        if kind <= 4:
            return f"{at} = {self.value(extents)}"
        if kind <= 6:
            return f"{at} {self.draw.choice(['+=', '-='])} {self.value(extents)}"
        if kind == 7:
            self.held += 1
            return f"t{self.held - 1} = {self.name()}[{self.slices(extents)}] - 1"
        if kind == 8 and self.held:
            return f"t{self.draw.randrange(self.held)} += 1"
        if kind == 9:
            self.held += 1
            return f"t{self.held - 1} = {at}"  # a view
        if kind == 10:
            return f"m.add({self.name()}, {self.name()}, out={self.name()})"
        return f"float({self.name()}.ravel()[{self.draw.randrange(20)}])"

    def program(self, count: int) -> str:
        lines = []
        for step in range(count):
            lines.append(self.statement())
            if step % 3 == 2:
                lines += [f"{name} %= 7" for name in "abc"]
        return "\n".join(lines)


def run(program: str, module: Any, arrays: list[Any]) -> dict[str, Any]:
    names = {"m": module, **dict(zip("abc", arrays, strict=True))}
    exec(program, names)
    return {name: value for name, value in names.items() if name[0] in "abct"}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sample(4)
def test_random_statements_are_those_of_numpy(queue: Any, seed: int) -> None:
    statements = Statements(seed)
    theirs = [np.random.default_rng(at).integers(0, 7, statements.shape) * 1.0 for at in range(3)]
    ours = [dp.asarray(each, sycl_queue=queue) for each in theirs]
    for _ in range(2):
        statements.held = 0
        program = statements.program(8)
        tier = statements.draw.choice([None, None, "fused", "host", "library"])
        with force(tier) if tier else nullcontext():
            found = run(program, dp, ours)
            wanted = run(program, np, theirs)
            for name, value in wanted.items():
                np.testing.assert_array_equal(found[name].asnumpy(), value, f"{name}\n{program}")


class Stores(Statements):
    """Programs of stores only: nothing is read before their end."""

    def value(self, extents: tuple[int, ...]) -> str:
        terms = [
            f"{self.name()}[{self.slices(extents)}]" for _ in range(self.draw.choice([1, 1, 2, 3]))
        ]
        return " + ".join([*terms, str(self.draw.randrange(5))])

    def statement(self) -> str:
        if self.draw.randrange(5) == 0:
            return f"{self.name()}[...] = {self.name()} * 2 + {self.name()}"
        extents = self.extents()
        at = f"{self.name()}[{self.slices(extents)}]"
        if self.draw.randrange(3) == 0:
            return f"{at} = {self.draw.randrange(9)}"
        return f"{at} {self.draw.choice(['=', '=', '+=', '-='])} {self.value(extents)}"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("fused")
def test_random_stores_are_those_of_numpy(queue: Any, seed: int) -> None:
    program = Stores(seed)
    dtypes = ["float64", "float32", "float64"]
    theirs = [
        np.random.default_rng(at).integers(0, 7, program.shape).astype(dtype)
        for at, dtype in enumerate(dtypes)
    ]
    ours = [dp.asarray(each, sycl_queue=queue) for each in theirs]
    text = program.program(8)
    for _ in range(2):
        found, wanted = run(text, dp, ours), run(text, np, theirs)
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name].asnumpy(), value, f"{name}\n{text}")


def test_views_known_to_be_disjoint_are_disjoint() -> None:
    draw = random.Random(7)

    def index(extent: int) -> slice:
        first = draw.randrange(extent)
        return draw.choice(
            [
                slice(first, first + 1),
                slice(first, draw.randrange(first, extent) + 1),
                slice(first, None, 2),
                slice(None, None, -1),
            ]
        )

    seen = 0
    for _ in range(3000):
        whole = np.empty([draw.randrange(1, 9) for _ in range(draw.randrange(1, 4))])
        start = whole.ctypes.data
        views = [whole[tuple(map(index, whole.shape))] for _ in range(2)]
        if draw.random() < 0.2:
            views[0] = views[0].T
        places = [(v.ctypes.data - start, v.shape, v.strides, v.itemsize) for v in views]
        if are_apart(*places):
            seen += 1
            assert not np.shares_memory(*views), places
    assert seen > 1000


@pytest.mark.usefixtures("fused")
def test_an_update_of_a_slice_is_one_launch() -> None:
    x, y = dp.ones((300, 400)), dp.ones((300, 400))

    def step() -> None:
        y[:-1] -= x[1:] - x[:-1]  # an expression that reads x and is computed
        x[1:] -= 0.5 * (y[1:] - y[:-1])

    step()
    dp.synchronize(x)
    with launched() as launches:
        step()
        step()
    assert len(launches) == 4


@pytest.mark.usefixtures("fused")
def test_a_value_that_is_read_later_is_that_before_the_store() -> None:
    x, y = dp.asarray(np.arange(60_000.0)), dp.ones(60_000)
    of_x, of_y = x[1:] * 2, y[1:] * 3
    x[1:] -= of_x + of_y
    y[1:] = 7
    wanted = np.arange(60_000.0)
    np.testing.assert_array_equal(of_x.asnumpy(), wanted[1:] * 2)
    np.testing.assert_array_equal(of_y.asnumpy(), np.full(59_999, 3.0))
    wanted[1:] -= wanted[1:] * 2 + 3
    np.testing.assert_array_equal(x.asnumpy(), wanted)


def test_libraries_see_statements_before_them(queue: Any) -> None:
    """This includes functions that wait only for the queue, as dpnp's general eigenvalues do."""
    generator = np.random.default_rng(4)
    y = dp.empty((2, 2), sycl_queue=queue)
    with dp.config.override(host_tier=False), force("fused"):
        for _ in range(20):
            values = generator.random((2, 2)) + 4 * np.eye(2)
            x = dp.asarray(values, sycl_queue=queue)
            y[:] = x * 1
            found = np.sort_complex(dp.linalg.eigvals(y).asnumpy())
            np.testing.assert_allclose(found, np.sort_complex(np.linalg.eigvals(values)))
