"""Random kernels with conditions, compared with plain Python: which work-items execute which code.

Each has a few early returns, branches and loops. Their conditions are computed from ids and
numbers, in integers of all types. If a driver skips work-items or runs them several times, their
element has a wrong sum. The reference is :func:`dp.simulate`.

Run as a program, it compares any number of kernels: ``random_conditions.py --count 1000``.
"""

from __future__ import annotations

import linecache
import random
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import dparray as dp

_TYPES = (
    *("np.int64",) * 4,
    *("np.int32",) * 3,
    *("np.int16", "np.int8", "np.uint8", "np.uint16", "np.uint32", "np.uint64"),
)
_SCALARS = (int, int, int, int, np.int32, np.int16, np.uint32)
_ORDERS = ("<", ">", "<=", ">=") * 2 + ("==", "!=")
_LAUNCHES = 4


class Launch(NamedTuple):
    """A range, and the numbers passed to a kernel."""

    index_space: Any
    n: Any
    m: Any


class Case(NamedTuple):
    """A kernel's text, and its launches."""

    text: str
    launches: tuple[Launch, ...]


class _Writer:
    """Write the text of one kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        # nearly all comparisons use only ids, which drivers turn into bounds
        self.of_ids_alone = seed % 2 == 1
        self.ndim = self.pick((1, 1, 1, 2, 2))
        self.type = self.pick(_TYPES)
        self.scalar = self.pick(_SCALARS)
        self.is_grouped = self.random.random() < 0.5

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def computed(self, names: Sequence[str], depth: int) -> str:
        """Return an integer expression of ids and numbers."""
        if depth == 0 or self.random.random() < 0.15:
            return self.pick((*names, *names, *names, "n", "m", str(self.random.randint(0, 9))))
        a, b = self.computed(names, depth - 1), self.computed(names, depth - 1)
        number = self.random.randint(2, 4)
        return self.pick(
            (
                *(f"({a} - {b})",) * 5,
                *(f"({a} + {b})",) * 4,
                *(f"({a} {operator} {number})" for operator in ("*", "^", "<<", ">>", "//", "%")),
                *(f"({a} & {4 * number - 1})", f"(-{a})", f"(~{a})", f"abs({a})"),
                *(f"min({a}, {b})", f"max({a}, {b})"),
                f"({a} if {a} {self.pick(_ORDERS)} {self.pick(names)} else {b})",
            )
        )

    def side(self, names: Sequence[str]) -> str:
        depth = self.pick((0, 0, 0, 0, 1) if self.of_ids_alone else (0, 0, 1, 1, 2))
        text = self.computed(names, depth)
        is_cast = self.random.random() < (0.1 if self.of_ids_alone else 0.6)
        return f"{self.type}(np.int64({text}))" if is_cast else text

    def condition(self, names: Sequence[str]) -> str:
        text = f"{self.side(names)} {self.pick(_ORDERS)} {self.side(names)}"
        if self.random.random() < 0.25:
            text = f"({text}) {self.pick(('and', 'or'))} ({self.condition(names)})"
        return text

    def text(self) -> str:
        get, of = (
            ("get_global_id", "get_global_range") if self.is_grouped else ("get_id", "get_range")
        )
        lines, names = ["def kernel(item, out, n, m):"], list("ij"[: self.ndim])
        for dimension, name in enumerate(names):
            number = f"item.{get}({dimension})"
            if self.random.random() < 0.3:
                number = f"{self.type}({number})"
                if self.type == "np.uint64":  # It has no common integer with n.
                    number = f"np.int64({number})"
            lines.append(f"    {name} = {number}")
        if self.is_grouped and self.random.random() < 0.4:
            lines.append(
                "    local, group = item.get_local_id(0), item.get_group().get_group_id(0)"
            )
            names += ["local", "group"]
        row = f"item.{get}(0)"
        at = row if self.ndim == 1 else f"{row} * item.{of}(1) + item.{get}(1)"
        lines += [f"    at = {at}", "    tag = 1"]
        for place in range(self.random.randint(1, 4)):
            lines += [f"    {line}" for line in self.statement(names, f"k{place}")]
        return "\n".join([*lines, "    out[at] += tag", ""])

    def statement(self, names: list[str], counter: str) -> list[str]:
        kind = self.random.random()
        if kind < 0.5:
            return [f"if {self.condition(names)}:", "    return"]
        if kind < 0.6:
            return [f"if {self.condition(names)}:", f"    tag += {self.random.randint(2, 9)}"]
        inner = self.condition([*names, counter])
        leave = f"        {self.pick(('break', 'return'))}"
        first, last, step = self.pick(names), self.pick("nm"), self.random.randint(1, 3)
        if kind < 0.7:
            return [
                f"{counter} = np.int64({first})",
                f"while {counter} < {last}:",
                f"    if {inner}:",
                leave,
                "    tag += 1000",
                f"    {counter} += {step}",
            ]
        if kind < 0.85:
            if not self.type.startswith("np.u") and self.scalar is not np.uint32:
                first = self.pick((first, f"max({self.computed(names, 1)}, -40)"))
                last = self.pick((last, f"min({self.computed(names, 1)}, 60)"))
            return [
                f"for {counter} in range(np.int64({first}), np.int64({last}), {step}):",
                f"    if {inner}:",
                leave,
                f"    tag += {counter} & 3",
            ]
        return [
            f"if {self.condition(names)}:",
            f"    if {self.condition(names)}:",
            "        return",
            "    tag += 100",
        ]

    def launch(self) -> Launch:
        choices = ((1, 4, 8, 16, 7),) if self.ndim == 1 else ((1, 2, 4), (1, 3, 8))
        if self.is_grouped:
            local = tuple(map(self.pick, choices))
            size = tuple(extent * self.random.randint(1, 5) for extent in local)
            index_space: Any = dp.NdRange(size, local)
        else:
            choices = ((1, 3, 8, 13, 64, 200),) if self.ndim == 1 else ((1, 3, 9), (1, 5, 17))
            size = tuple(map(self.pick, choices))
            index_space = dp.Range(*size)
        n = self.pick((0, 1, 2, -3, size[0], size[0] - 1, size[0] // 2, size[0] + 3, 7))
        m = self.pick((0, 1, 3, size[-1], size[-1] // 2, -2, 5))
        if self.scalar is np.uint32:
            n, m = abs(n), abs(m)
        return Launch(index_space, self.scalar(n), self.scalar(m))


def make_case(seed: int) -> Case:
    """Return the kernel of a seed."""
    writer = _Writer(seed)
    return Case(writer.text(), tuple(writer.launch() for _ in range(_LAUNCHES)))


def compare(case: Case, queue: Any = None) -> None:
    """Raise ``AssertionError`` unless a device and a simulation agree."""
    name = f"<random conditions {hash(case.text)}>"
    linecache.cache[name] = (len(case.text), None, case.text.splitlines(True), name)
    scope: dict[str, Any] = {"np": np}
    exec(compile(case.text, name, "exec"), scope)
    kernel = dp.kernel(scope["kernel"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.exceptions.KernelTypeWarning)
        for index_space, n, m in case.launches:
            size = int(np.prod(getattr(index_space, "global_range", index_space)))
            found, wanted = dp.zeros(size, dtype="int64", sycl_queue=queue), np.zeros(size, "int64")
            dp.call_kernel(kernel, index_space, found, n, m)
            dp.simulate(kernel, index_space, wanted, n, m)
            message = f"{index_space}, n = {n!r}, m = {m!r}\n{case.text}"
            np.testing.assert_array_equal(found.asnumpy(), wanted, err_msg=message)


if __name__ == "__main__":
    from random_kernels import compare_seeds  # in the folder of this program

    compare_seeds(make_case, compare)
