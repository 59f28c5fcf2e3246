"""Random Tile programs with inputs: the whole grammar of contractions, and most functions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from interpreter import Refused, TooLarge, interpret

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
_COMMON = (
    *("float32", "int32", "float64", "int8", "uint8", "int64", "float32", "float32", "bool"),
    "float16",
)


class Maker:
    """Makes one program from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs: dict[str, Any] = {}
        self.header: list[str] = []
        self.lines: list[str] = []
        self.ranks: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.refused = False

    def values(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        kind = np.dtype(dtype).kind
        count = int(np.prod(shape))
        if kind == "b":
            flat = [self.random.random() < 0.5 for _ in range(count)]
        elif kind == "u":
            flat = [self.random.randint(0, 5) for _ in range(count)]
        elif kind == "i":
            flat = [self.random.randint(-5, 5) for _ in range(count)]
        else:
            flat = [self.random.randint(-8, 8) / 4 for _ in range(count)]
        return np.array(flat, dtype).reshape(shape)

    def add_input(self) -> None:
        name = "ABCD"[len(self.header)]
        if self.random.random() < 0.08:
            self.inputs[name] = self.random.choice([self.random.randint(1, 4), 0.5, 2.25])
            self.header.append(name)
            return
        rank = self.random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
        pool = list(self.sizes.values())
        shape = tuple(
            self.random.choice(pool)
            if pool and self.random.random() < 0.5
            else self.random.randint(1, 7 if rank < 3 else 4)
            for _ in range(rank)
        )
        dtype = self.random.choice(DTYPES if self.random.random() < 0.4 else _COMMON)
        self.inputs[name] = self.values(shape, dtype)
        names = []
        for size in shape:
            known = [each for each, other in self.sizes.items() if other == size]
            if known and self.random.random() < 0.5:
                names.append(self.random.choice(known))
            else:
                fresh = f"N{len(self.sizes)}"
                self.sizes[fresh] = size
                names.append(fresh)
        if self.random.random() < 0.1:
            self.header.append(name)
        else:
            self.header.append(f"{name}[{', '.join(names)}]")
        for size in names:  # sizes of a header left out are not names
            if not any(size in each for each in self.header):
                self.sizes.pop(size, None)
        self.ranks[name] = rank

    def size(self) -> str:
        known = list(self.sizes)
        if known and self.random.random() < 0.6:
            text = self.random.choice(known)
            kind = self.random.random()
            if kind < 0.12:
                text += f" + {self.random.randint(1, 2)}"
            elif kind < 0.2:
                text = f"({text} + 1) / 2"
            elif kind < 0.26:
                text += f" * {self.random.randint(1, 2)}"
            elif kind < 0.3:
                text = f"max({text}, {self.random.choice(known)})"
            return text
        return str(self.random.randint(1, 7))

    def index(self, variables: list[str], simple: float) -> str:
        pick = self.random.choice
        v = pick(variables)
        if self.random.random() < simple:
            return v
        u = pick(variables)
        n = self.random.randint(1, 3)
        c = pick([*self.sizes, "3", "2", "1"]) if self.sizes else "2"
        return pick(
            [
                f"{n}{v}",
                f"{n} * {v} + {u}",
                f"{v} + {n}",
                f"{v} - {n}",
                f"{c} - 1 - {v}",
                f"{v} + {u}",
                f"{v} - {u}",
                f"{v} / 2",
                f"({v} - 1) / {n}",
                f"{v} + {u} - 1",
                f"-{v} + {c}",
                f"{v} / 2 + {u} / 2",
                f"{n}",
                "0",
                f"{c} - {v} - {u}",
                f"({v} + {u}) / 2",
                f"2 * ({v} - {u}) + 1",
                f"{v} / 3 + {u}",
                f"({c} - 1) / 2 + {v}",
            ]
        )

    def contraction(self, name: str) -> None:
        tensors = list(self.ranks)
        if not tensors:
            return
        count = self.random.choice((1, 1, 1, 2, 2, 2, 3))
        operands = [self.random.choice(tensors) for _ in range(count)]
        variables = list("ijkl")[: self.random.choice((1, 2, 2, 3, 3, 4))]
        simple = self.random.choice((1.0, 0.8, 0.6, 0.3))
        refs = [
            f"{each}[{', '.join(self.index(variables, simple) for _ in range(self.ranks[each]))}]"
            for each in operands
        ]
        rank = self.random.choice((0, 1, 1, 2, 2, 3, 4))
        out = [self.index(variables, max(simple, 0.7)) for _ in range(rank)]
        body = refs[0]
        if count == 2:
            body += f" {self.random.choice('**++=').replace('=', '==')} {refs[1]}"
        elif count == 3:
            body += f" == {refs[1]} ? {refs[2]}"
        aggregation = self.random.choice("+++*><==")
        text = f"{name}[{', '.join(out)}"
        sizes = [self.size() for _ in range(rank)]
        text += f": {', '.join(sizes)}]" if rank else self.random.choice(("]", ":]"))
        text += f" = {aggregation}({body})"
        for _ in range(self.random.choice((0, 0, 0, 0, 1, 1, 2))):
            text += f", {self.index(variables, 0.3)} < {self.size()}"
        if self.random.random() < 0.1:
            text += " no_defract"
        if self.random.random() < 0.15 and len(self.header) < 4:
            extra = "ABCD"[len(self.header)]
            scope = {**self.sizes}
            try:
                shape = tuple(
                    int(eval(each.replace("/", "//"), {"max": max}, scope)) for each in sizes
                )
            except NameError:
                return
            dtypes = [
                self.inputs[each].dtype.name if each in self.inputs else "float32"
                for each in operands
            ]
            dtype = dtypes[0] if "==" not in body or count == 3 else "bool"
            self.inputs[extra] = self.values(shape, dtype)
            self.header.append(extra)
            text += f" default {extra}"
        self.lines.append(text + ";")
        self.ranks[name] = rank

    def expression(self, depth: int) -> str:
        pick = self.random.choice
        names = [*self.ranks, *[each for each in self.inputs if each not in self.ranks]]
        if depth == 0 or self.random.random() < 0.25:
            return pick([*names * 3, "2", "0.5", "1", "3.0", *self.sizes])
        a, b = (self.expression(depth - 1) for _ in range(2))
        kind = self.random.random()
        if kind < 0.4:
            return f"({a} {pick('+-*')} {b})"
        if kind < 0.5:
            return f"({a} {pick(['<', '>', '<=', '>=', '==', '!='])} {b})"
        if kind < 0.6:
            return f"({a} ? {b} : {self.expression(depth - 1)})"
        if kind < 0.68:
            return f"{pick(['max', 'min'])}({a}, {b})"
        if kind < 0.76:
            return f"{pick(['abs', 'relu', 'ident', 'neg'])}({a})"
        if kind < 0.84:
            return f"{pick(['tanh', 'sin', 'cos', 'atan', 'floor', 'ceil', 'round'])}({a})"
        if kind < 0.9:
            return f"({a} / {pick(['2', '3', '4.0', '0.5'])})"
        if kind < 0.94:
            return f"{pick(['as_int', 'as_float'])}({a}, {pick([16, 32, 64])})"
        if kind < 0.97:
            return f"(as_int({a}, 32) {pick(['&', '|', '^'])} as_int({b}, 32))"
        return f"-{a}"

    def source(self, outputs: list[str]) -> str:
        return (
            f"function ({', '.join(self.header)}) -> ({', '.join(outputs)}) "
            f"{{ {' '.join(self.lines)} }}"
        )

    def add_line(self, name: str) -> None:
        """A line that runs, or now and then one that is refused."""
        for _ in range(12):
            before = len(self.header), len(self.lines)
            if self.random.random() < 0.75 and self.ranks:
                self.contraction(name)
            else:
                self.lines.append(f"{name} = {self.expression(3)};")
            if len(self.lines) == before[1]:
                continue
            try:
                shape = interpret(self.source([name]), self.inputs)[name].shape
            except (Refused, TooLarge):
                if self.random.random() < 0.06:
                    self.refused = True
                    return
                for each in self.header[before[0] :]:
                    del self.inputs[each]
                del self.header[before[0] :], self.lines[before[1] :]
                self.ranks.pop(name, None)
                continue
            self.ranks[name] = len(shape)
            return

    def program(self) -> tuple[str, dict[str, Any]]:
        for _ in range(self.random.choice((1, 2, 2, 3))):
            self.add_input()
        for at in range(self.random.choice((1, 1, 2, 3))):
            if not self.refused:
                self.add_line(f"T{at}")
        if not self.lines:
            self.lines.append("T0 = 1;")
        outputs = [line[: line.index(" ")].partition("[")[0] for line in self.lines]
        return self.source(outputs), self.inputs


def program(seed: int) -> tuple[str, dict[str, Any]]:
    """The source and the inputs of a seed."""
    return Maker(seed).program()
