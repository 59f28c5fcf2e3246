"""Random kernels whose gradients are compared with finite differences.

Run as a program, it compares any number of kernels, 20 in a process, because a driver's compiler
may end it: ``python tests/gradients/random_kernels.py --count 2000 --seed 0``.
"""

from __future__ import annotations

import argparse
import linecache
import random
import subprocess
import sys
from typing import Any

import numpy as np

import dparray as dp

_ITEMS, _IN_A_PROCESS = 9, 20
_FUNCTIONS = ("math.sin", "math.cos", "math.tanh", "math.atan", "abs")


class _Writer:
    """Writes the text of one kernel of x, with elements of its own, y and z, which all read."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["@dp.kernel", "def k(item, x, y, z, n, out):", "    i = item.get_id(0)"]
        self.is_loop = seed % 2 == 0
        self.indices = ["i"]
        self.made = 0

    def expression(self, names: list[str], depth: int = 3) -> str:
        pick = self.random.choice
        kind = self.random.randrange(10) if depth else self.random.randrange(2)
        if kind == 0 and names:
            return pick(names)
        if kind < 2:
            index = pick(self.indices)
            texts = ("x[i]", f"y[{index} % 5]", f"z[{index} % 3, i % 2]", f"y[({index} + i) % 5]")
            return pick((*texts, "x[i - 1]", "0.3", f"p[{index} % 4]"))
        a, b = self.expression(names, depth - 1), self.expression(names, depth - 1)
        texts = (f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"{pick(_FUNCTIONS)}({a})")
        texts += (f"({a} / (1 + {b} * {b}))", f"math.sqrt({a} * {a} + 1)", f"max({a}, {b})")
        return pick((*texts, f"({a} if {self.condition()} else {b})"))

    def condition(self) -> str:
        index, number = self.random.choice(self.indices), self.random.randrange(5)
        texts = (f"{index} > {number}", f"{index} % 2 == {number % 2}", f"x[i] > 0.{number}")
        return self.random.choice((*texts, f"y[{index} % 5] < 0.{number}"))

    def statements(self, names: list[str], indent: str, depth: int, in_loop: bool) -> None:
        names = list(names)
        for _ in range(self.random.randint(1, 4)):
            self.made += 1
            kind = self.random.randrange(9)
            if kind < 3 or not names:
                names.append(f"v{self.made}")
                self.lines.append(f"{indent}{names[-1]} = {self.expression(names[:-1])}")
            elif kind < 5 or not depth:
                name = self.random.choice((*names, f"p[{self.random.choice(self.indices)} % 4]"))
                value = self.expression(names)
                self.lines.append(f"{indent}{name} = math.tanh({name} + {value})")
            elif kind < 6 and in_loop:
                jump = self.random.choice(("break", "continue"))
                self.lines += [f"{indent}if {self.condition()}:", f"{indent}    {jump}"]
            elif kind < 7:
                self.lines.append(f"{indent}if {self.condition()}:")
                self.statements(names, indent + "    ", depth - 1, in_loop)
                if self.random.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.statements(names, indent + "    ", depth - 1, in_loop)
            else:
                index = f"j{self.made}"
                stop = self.random.choice(("3", "20", "n", "i", "1, n", "n, 0, -1"))
                self.lines.append(f"{indent}for {index} in range({stop}):")
                self.indices.append(index)
                self.statements(names, indent + "    ", depth - 1, True)
                self.indices.remove(index)

    def text(self) -> str:
        self.lines.append("    s, t = x[i], y[i % 5]")
        self.lines.append("    p = dp.PrivateArray(4, x.dtype, fill_zeros=True)")
        self.statements(["s", "t"], "    ", 3, False)
        self.lines.append("    out[i] = s * t + s + p[0]")
        if self.is_loop:
            head = ["@dp.jit", "def k(_, x, y, z, n):", "    out = dp.empty_like(x)"]
            body = [f"    {line}" for line in self.lines[3:]]
            self.lines = [*head, "    for i in dp.prange(x.size):", *body, "    return out"]
        return "\n".join([*self.lines, ""])


def compare(seed: int) -> None:
    """Compare the gradient of a random kernel with finite differences."""
    text, name = _Writer(seed).text(), f"<random gradient {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope: dict[str, Any] = {"dp": dp, "math": __import__("math")}
    exec(compile(text, name, "exec"), scope)
    f = dp.differentiable(scope["k"], out="x") if seed % 2 else scope["k"]
    numbers = np.random.default_rng(seed)
    # No number is so near to one in a condition that a difference changes the branch.
    arguments = [
        (np.floor(numbers.normal(0, 10, shape)) + numbers.uniform(0.1, 0.9, shape)) / 10
        for shape in (_ITEMS, 5, (3, 2))
    ]
    along = [numbers.normal(size=x.shape) for x in arguments]
    weights = dp.asarray(numbers.uniform(0.5, 1.5, _ITEMS))

    def total(*inputs: Any) -> Any:
        return dp.sum(f(_ITEMS, *inputs, 4) * weights)

    def moved(step: float) -> float:
        pairs = zip(arguments, along, strict=True)
        return float(total(*[dp.asarray(x + step * d) for x, d in pairs]))

    gradients = dp.grad(total, (0, 1, 2))(*map(dp.asarray, arguments))
    found = sum(float(np.sum(g.asnumpy() * d)) for g, d in zip(gradients, along, strict=True))
    expected = (moved(1e-6) - moved(-1e-6)) / 2e-6
    assert np.isclose(found, expected, rtol=1e-5, atol=1e-6), (seed, found, expected, text)
    primals, tangents = [*map(dp.asarray, arguments)], [*map(dp.asarray, along)]
    gradient = dp.grad(lambda *inputs: total(*inputs) ** 2, (0, 1, 2))
    try:
        _, pushed = dp.jvp(total, primals, tangents)
        _, second = dp.jvp(gradient, primals, tangents)
    except dp.GradientError as error:
        if "only its first derivative" not in str(error):
            raise
        return
    assert np.isclose(float(pushed), found), (seed, float(pushed), found, text)
    steps = [
        [dp.asarray(x + s * d) for x, d in zip(arguments, along, strict=True)]
        for s in (1e-5, -1e-5)
    ]
    pairs = zip(*[gradient(*each) for each in steps], second, strict=True)
    for high, low, own in pairs:
        expected = ((high - low) / 2e-5).asnumpy()
        near = 1e-6 * (1 + np.max(np.abs(expected)))
        assert np.allclose(own.asnumpy(), expected, 1e-4, near), (seed, own, expected, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.count)
    if given.count <= _IN_A_PROCESS:
        for seed in seeds:
            print(seed, flush=True)
            compare(seed)
        return
    for part in (seeds[at : at + _IN_A_PROCESS] for at in range(0, given.count, _IN_A_PROCESS)):
        command = [sys.executable, __file__, "--count", str(len(part)), "--seed", str(part[0])]
        run = subprocess.run(command, capture_output=True, text=True)
        failed = f"{run.stdout.split()[-1:]} {run.stderr[-1500:]}" if run.returncode else "right"
        print(f"{part[0]} to {part[-1]}: {failed}", flush=True)


if __name__ == "__main__":
    main()
