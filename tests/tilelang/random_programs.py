"""Random Tile programs with inputs, which cover the whole grammar and every function."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from interpreter import Const, Refused, TooLarge, run

from dparray.tilelang.parser import parse

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
_COMMON = (
    *("float32", "int32", "float64", "int8", "uint8", "int64", "float32", "float32", "bool"),
    "float16",
)
_INPUTS = (("A", "#a", "In_0"), ("B", "B'", "#i"), ("C", "#c", "C1"), ("D",), ("E",))
_INDICES = ("i", "j", "k", "l", "$N", "x'", "kk_2", "t0")
_MATHEMATICS = (
    *("tanh", "sin", "cos", "atan", "floor", "ceil", "round", "exp", "log", "sqrt", "tan"),
    *("sinh", "cosh", "asin", "acos", "sigmoid"),
)


class Maker:
    """Generate one program from a seed.

    Attributes:
        inputs: by name, as passed to the program.
        values: the values of all names, computed by the interpreter as lines are added.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.header: list[str] = []
        self.lines: list[str] = []
        self.assigned: list[str] = []
        self.has_floats = self.random.random() < 0.93  # the others have extreme integers
        self.is_refused = False

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # -- inputs ------------------------------------------------------------------------------

    def elements(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        kind, count = np.dtype(dtype).kind, math.prod(shape)
        number: Callable[[], Any]
        if kind == "b":
            number = lambda: self.chance(0.5)  # noqa: E731
        elif kind in "iu":
            least = 0 if kind == "u" else -5
            number = lambda: self.random.randint(least, 5)  # noqa: E731
            if not self.has_floats:
                limits = np.iinfo(dtype)
                ends = (limits.min, limits.max, limits.max - 1, limits.max // 3, 1, 2)
                number = lambda: self.random.choice(ends)  # noqa: E731
        else:
            number = lambda: self.random.randint(-8, 8) / 4  # noqa: E731
            if self.chance(0.06):
                number = lambda: self.random.choice((math.nan, math.inf, -math.inf, -0.0, 1.5))  # noqa: E731
        return np.array([number() for _ in range(count)], dtype).reshape(shape)

    def dtype(self) -> str:
        found = self.random.choice(DTYPES if self.chance(0.4) else _COMMON)
        return found if self.has_floats or not found.startswith("float") else "int32"

    def add_input(self) -> None:
        spelled = self.random.choice(_INPUTS[len(self.header)])
        name = spelled.lstrip("#")
        if self.chance(0.1):
            number = self.random.choice([self.random.randint(-2, 4), 0.5, 2.25])
            self.inputs[name] = number if self.has_floats else self.random.randint(0, 3)
            self.values[name] = Const(self.inputs[name])
            self.header.append(spelled + self.random.choice(("", "", "[]", "[ ]")))
            return
        rank = self.random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
        pool = self.known_sizes()
        shape = tuple(
            self.random.choice(list(pool.values()))
            if pool and self.chance(0.5)
            else 0
            if self.chance(0.01)
            else self.random.randint(1, 7 if rank < 3 else 4)
            for _ in range(rank)
        )
        self.inputs[name] = self.values[name] = self.elements(shape, self.dtype())
        if self.chance(0.1):
            self.header.append(spelled)
            return
        texts = []
        for at, size in enumerate(shape):
            same = [
                key
                for key, other in self.known_sizes().items()
                if other == size and key.lstrip("#") not in self.inputs
            ]
            if same and self.chance(0.5):
                texts.append(self.random.choice(same))
            else:
                text = f"{self.random.choice(('N', 'M', '#n', 'Size_'))}{len(self.values)}{at}"
                self.values[text.lstrip("#")] = Const(size)
                texts.append(text)
        self.header.append(f"{spelled}[{', '.join(texts)}]")

    def spelled(self, name: str) -> str:
        return name if name[0].isupper() and self.chance(0.97) else f"#{name}"

    def known_sizes(self, least: int = 0) -> dict[str, int]:
        """Return the names of integers that may be sizes."""
        return {
            self.spelled(name): each.value
            for name, each in self.values.items()
            if isinstance(each, Const) and isinstance(each.value, int) and least <= each.value < 10
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the possible operands of a contraction: tensors, and constants of rank 0."""
        found = {n: each for n, each in self.values.items() if isinstance(each, np.ndarray)}
        if self.chance(0.1):
            found |= {n: np.zeros(()) for n, each in self.values.items() if isinstance(each, Const)}
        return {self.spelled(name): each for name, each in found.items() if each.ndim < 5}

    # -- sizes and indices -------------------------------------------------------------------

    def size(self) -> str:
        known = list(self.known_sizes())
        if not known or self.chance(0.35):
            return str(self.random.randint(1, 7))
        a, b = self.random.choice(known), self.random.choice(known)
        n = self.random.randint(1, 3)
        if self.chance(0.6):
            return a
        return self.random.choice(
            (
                *(f"{a} + {n}", f"{a} - {n}", f"({a} + 1) / 2", f"({a} - 1) / {n}", f"{a} * {n}"),
                *(f"max({a}, {b})", f"min({a}, {b})", f"abs({a} - {b})", f"mod({a}, {n}) + 1"),
                *(f"broadcast({a}, 1)", f"match({a}, {a})", f"ident({a})", f"-({n} - {a} - 2)"),
                *(f"({a} < {b} ? {a} : {b})", f"cond({a} == {b}, {n}, {a})", f"{a} + {b} / {n}"),
                *(f"{a} + ({a} >= {b})", f"ceil({a})", f"recip(1) + {a}", f"{a} + assert_one({n})"),
            )
        )

    def constant(self) -> str:
        """Return an integer in an index expression."""
        known = list(self.known_sizes())
        return self.random.choice([*known, "1", "2", "3"] if known else ["1", "2"])

    def index(self, variables: list[str], simple: float) -> str:
        pick = self.random.choice
        v, u = pick(variables), pick(variables)
        if self.chance(simple):
            return v
        if self.chance(0.15):
            return self.affine(variables, 3)
        n, c = self.random.randint(1, 3), self.constant()
        return pick(
            (
                *(f"{n}{v}" if v[0] != "$" else v, f"{n} * {v} + {u}", f"{v} + {n}", f"{v} - {n}"),
                *(f"{c} - 1 - {v}", f"{v} + {u}", f"{v} - {u}", f"{v} / 2", f"({v} - 1) / {n}"),
                *(f"{v} + {u} - 1", f"-{v} + {c}", f"{v} / 2 + {u} / 2", f"{n}", "0"),
                *(f"{c} - {v} - {u}", f"({v} + {u}) / 2", f"2 * ({v} - {u}) + 1", f"{v} / 3 + {u}"),
                *(f"({c} - 1) / 2 + {v}", f"{c} * {v} + {u}", f"{v} * {n} - {u} * {c}"),
            )
        )

    def affine(self, variables: list[str], depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.2:
            return self.random.choice(variables)
        if kind < 0.35:
            return self.constant()
        inner = self.affine(variables, depth - 1)
        if kind < 0.45:
            return f"-{inner}" if self.chance(0.5) else f"-({inner})"
        if kind < 0.55:
            return f"({inner}) * {self.constant()}"
        if kind < 0.6:
            return f"({self.constant()} - 1) * ({inner})"
        if kind < 0.7:
            return f"({inner}) / {self.constant()}"
        return f"{inner} {self.random.choice('+-')} {self.affine(variables, depth - 1)}"

    # -- statements --------------------------------------------------------------------------

    def contraction(self, spelled: str) -> str | None:
        tensors = self.tensors()
        if not tensors:
            return None
        count = self.random.choice((1, 1, 1, 2, 2, 2, 3))
        operands = [self.random.choice(list(tensors)) for _ in range(count)]
        variables = self.random.sample(_INDICES, self.random.choice((1, 2, 2, 3, 3, 4)))
        simple = self.random.choice((1.0, 0.8, 0.6, 0.3))
        refs = [
            f"{each}[{', '.join(self.index(variables, simple) for _ in tensors[each].shape)}]"
            for each in operands
        ]
        rank = self.random.choice((0, 1, 1, 2, 2, 3, 4))
        out = [self.index(variables, max(simple, 0.7)) for _ in range(rank)]
        body = refs[0]
        if count == 2:
            body += f" {self.random.choice(('*', '*', '+', '=='))} {refs[1]}"
        elif count == 3:
            body += f" == {refs[1]} ? {refs[2]}"
        text = f"{spelled}[{', '.join(out)}"
        text += f": {', '.join(self.size() for _ in out)}]" if rank else self.random.choice("]:")
        text = text if text.endswith("]") else f"{text}]"
        text += f" = {self.random.choice('+++*><==')}({body})"
        for _ in range(self.random.choice((0, 0, 0, 0, 1, 1, 2))):
            text += f", {self.index(variables, 0.3)} < {self.size()}"
        if self.chance(0.15) and len(self.header) < 5:
            default = self.default_of(spelled, text)
            if default is not None:
                suffixes = [f" default {default}", *[" no_defract"] * self.chance(0.2)]
                self.random.shuffle(suffixes)
                return text + "".join(suffixes)
        return text + " no_defract" * self.chance(0.1)

    def default_of(self, spelled: str, text: str) -> str | None:
        """Return a tensor of a contraction's shape and dtype: an existing one, or an input."""
        try:
            like = self.found(spelled.lstrip("#"), text)
        except (Refused, TooLarge):
            return None
        for name, each in self.values.items():
            if isinstance(each, np.ndarray) and (each.shape, each.dtype) == (
                like.shape,
                like.dtype,
            ):
                return self.spelled(name)
        given = f"D{len(self.header)}"
        self.inputs[given] = self.values[given] = self.elements(like.shape, like.dtype.name)
        self.header.append(given)
        return given

    def expression(self, depth: int) -> str:
        pick = self.random.choice
        names = [
            self.spelled(name)
            for name, each in self.values.items()
            for _ in range(1 if isinstance(each, Const) else 4)
        ]
        literals = ("2", "1", "3", *(("0.5", "3.0", "2e0", "15e-1") if self.has_floats else ()))
        if depth == 0 or self.chance(0.22):
            return pick(names if names and self.chance(0.75) else literals)
        a, b = (self.expression(depth - 1) for _ in range(2))
        kind = self.random.random()
        if kind < 0.36:
            return f"({a} {pick('+-*')} {b})"
        if kind < 0.4:
            return f"{a} {pick('+-*')} {b}"
        if kind < 0.48:
            return f"({a} {pick(('<', '>', '<=', '>=', '==', '!='))} {b})"
        if kind < 0.56:
            c = self.expression(depth - 1)
            return f"cond({a}, {b}, {c})" if self.chance(0.3) else f"({a} ? {b} : {c})"
        if kind < 0.63:
            return f"{pick(('max', 'min'))}({a}, {b})"
        if kind < 0.7:
            return f"{pick(('abs', 'relu', 'ident', 'neg', 'recip', '$abs', '#neg'))}({a})"
        if kind < 0.78 and self.has_floats:
            return f"{pick(_MATHEMATICS)}({a})" if self.chance(0.9) else f"pow({a}, {b})"
        if kind < 0.82:
            return f"({a} / {pick(('2', '3', '-2', *(('4.0', '0.5') if self.has_floats else ())))})"
        if kind < 0.84:
            return f"{a} / {b}"
        if kind < 0.88:
            to = pick(("as_int", "as_uint", *(("as_float",) if self.has_floats else ())))
            return f"{to}({a}, {pick((8, 16, 32, 64) if to != 'as_float' else (16, 32, 64))})"
        if kind < 0.9:
            return f"as_bool({a}, 1)"
        if kind < 0.94:
            return f"(as_int({a}, 32) {pick('&|^')} as_int({b}, {pick((8, 32, 64))}))"
        if kind < 0.96:
            return (
                f"(as_{pick(('int', 'uint'))}({a}, 32) {pick(('<<', '>>'))} (as_int({b}, 8) & 7))"
            )
        if kind < 0.97:
            return f"~as_int({a}, {pick((8, 16, 32, 64))})"
        if kind < 0.98:
            return self.moved() or a
        return f"-{a}"

    def moved(self) -> str | None:
        """Write a function that moves or creates data."""
        pick = self.random.choice
        arrays = {n: e for n, e in self.values.items() if isinstance(e, np.ndarray)}
        if not arrays:
            return None
        name = pick(list(arrays))
        each, text = arrays[name], self.spelled(name)
        other = self.spelled(pick(list(arrays)))
        indices = [
            self.spelled(n) for n, e in arrays.items() if e.dtype == np.int32 and e.size
        ] or [f"as_int({text}, 32)"]
        kind = self.random.random()
        if kind < 0.25:
            return f"reshape({', '.join([text, *map(str, self.factors(each.size))])})"
        if kind < 0.35 and each.ndim:
            return f"index({text}, {self.random.randrange(each.ndim)})"
        if kind < 0.4:
            return f"shape({text})"
        if kind < 0.65:
            return f"gather({text}, {pick([*indices * 2, f'as_int({other}, 32)', '1'])})"
        if kind < 0.85:
            by = [*indices, f"as_int({text}, 32)", f"index({text}, 0)"]
            by += [
                self.spelled(n)
                for n, e in arrays.items()
                if e.dtype == np.int32 and e.shape == each.shape[: e.ndim]
            ] * 5
            return f"scatter({text}, {pick(by)}, {other})"
        if kind < 0.9 and each.ndim == 2 and self.has_floats:
            log = pick(("", "log"))
            return f"builtin_{log}softmax({text}, {each.shape[0]}, {each.shape[1]})"
        if kind < 0.95 and self.has_floats:
            return f"builtin_binary_crossentropy(sigmoid({text}), {other}, 3)"
        return f"reverse_grad({text}, 2.0)"

    def factors(self, count: int) -> list[int]:
        found = []
        while count > 1 and len(found) < 3:
            factor = self.random.choice([n for n in range(1, count + 1) if count % n == 0])
            found.append(factor)
            count //= factor
        found = [*found, count] if count != 1 or self.chance(0.3) else found
        self.random.shuffle(found)
        return found

    def group(self) -> str:
        """Write tuples, their members, and random numbers, which are a pair."""
        pick = self.random.choice
        groups = [name for name, each in self.values.items() if isinstance(each, tuple)]
        if groups and self.chance(0.8):
            name = pick(groups)
            count = len(self.values[name])
            kind = self.random.random()
            if kind < 0.6:
                return f"element({self.spelled(name)}, {self.random.randrange(count)})"
            return f"{self.spelled(name)} {pick('+*')} {pick([self.spelled(name), '2'])}"
        if self.chance(0.1) and "S" not in self.values and len(self.header) < 5:
            words = np.array([self.random.getrandbits(32) for _ in range(3 * 2048)], np.uint32)
            self.inputs["S"] = self.values["S"] = words.reshape(3, 2048)
            self.header.append("S")
        if "S" in self.values:
            sizes = self.random.choice(("", ", 3", ", 2, 3", ", 30, 70", ", 1, 4, 2"))
            return f"{pick(('', 'prng_state', 'prng_value'))}(prng_step(S{sizes}))"
        return f"tuple({', '.join(self.expression(1) for _ in range(self.random.randint(1, 3)))})"

    def numbers(self) -> str:
        """Write a line of constants."""
        if self.chance(0.15):
            return f"assert_fine({self.size()} {self.random.choice(('<', '>=', '!='))} 3)"
        if self.chance(0.15) and self.has_floats:
            return f"{self.size()} {self.random.choice('*/+')} {self.random.choice(('0.5', '1e1'))}"
        return self.size()

    # -- the program -------------------------------------------------------------------------

    def source(self, outputs: list[str]) -> str:
        return (
            f"function ({', '.join(self.header)}) -> ({', '.join(outputs)}) "
            f"{{ {' '.join(self.lines)} }}"
        )

    def found(self, name: str, line: str) -> Any:
        """Append a line, and return its value.

        Raises:
            Refused, TooLarge: by the interpreter.
        """
        before = ", ".join(self.header)
        text = f"function ({before}) -> (X) {{ {' '.join([*self.lines, line])}; }}"
        known = {each: self.values[each] for each in self.assigned}
        return run(parse(text), self.inputs, known)[name]

    def add_line(self, at: int) -> None:
        """Append a valid line, or occasionally one that raises an error."""
        spelled = f"{self.random.choice(('T', 'T', 'T', '#t', 'Out_'))}{at}{self.quote()}"
        name = spelled.lstrip("#")
        for _ in range(12):
            header, inputs = list(self.header), dict(self.inputs)
            values = dict(self.values)
            kind = self.random.random()
            text = self.contraction(spelled) if kind < 0.6 else None
            if text is None:
                value = (
                    self.expression(3)
                    if kind < 0.8
                    else self.numbers()
                    if kind < 0.87
                    else self.group()
                    if kind < 0.9
                    else self.moved()
                )
                text = None if value is None else f"{spelled} = {value}"
            if text is None:
                continue
            try:
                self.values[name] = self.found(name, text)
            except (Refused, TooLarge) as problem:
                if isinstance(problem, Refused) and self.chance(0.06):
                    self.is_refused = True
                else:
                    self.header, self.inputs, self.values = header, inputs, values
                    continue
            note = self.random.choice(("[[note]] ", "[[pid(one, Two)]] ", "[[a(b)]] [[c]] "))
            self.lines.append(f"{note * self.chance(0.06)}{text};")
            self.assigned.append(name)
            return

    def quote(self) -> str:
        return "'" * self.chance(0.05)

    def program(self) -> tuple[str, dict[str, Any]]:
        for _ in range(self.random.choice((0, 1, 1, 2, 2, 2, 2, 3, 3))):
            self.add_input()
        for at in range(self.random.choice((1, 1, 2, 3, 4))):
            if not self.is_refused:
                self.add_line(at)
        outputs = [name for name in self.assigned if not isinstance(self.values.get(name), tuple)]
        if not outputs:
            self.lines.append("Last = 1;")
            outputs = ["Last"]
        self.random.shuffle(outputs)
        if self.chance(0.3) and not self.is_refused:
            outputs = outputs[: self.random.randint(1, len(outputs))]
        source = self.source([self.spelled(name) for name in outputs])
        if self.chance(0.15):
            source = self.spaced(source)
        return source, self.inputs

    def spaced(self, source: str) -> str:
        """Return the same tokens with different whitespace between them."""
        if self.chance(0.5):
            return re.sub(" ", lambda _: self.random.choice((" ", "\n", "\t ", "\r\n")), source)
        return re.sub(r"(?<![\w'=]) | (?![\w#$=])", "", source)


def program(seed: int) -> tuple[str, dict[str, Any]]:
    """Return the source and the inputs of a seed."""
    return Maker(seed).program()
