"""Arguments of generated calls: arrays, scalars and options, derived from a seed.

Arrays are represented by `Arr`: values and a memory layout, from which each module creates its own
array. `Words` creates an argument from a word of a recipe (`generated_calls.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

Random = np.random.Generator

BOOL, SIGNED, UNSIGNED = ("bool",), ("int8", "int16", "int32", "int64"), ()
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS, COMPLEX = ("float16", "float32", "float64"), ("complex64", "complex128")
KINDS = {"b": BOOL, "i": SIGNED, "u": UNSIGNED, "f": FLOATS, "c": COMPLEX}
ALL = "biufc"
#: Sizes of vectors: small ones, and both sides of the limits of other code paths.
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 127, 129)
LIMITS = (8191, 8192, 8193, 9001, 20_000)
#: The meanings of some words of recipes.
OPTION_OF = {"None": None, "True": True, "False": False, "inf": np.inf, "-inf": -np.inf}
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)


@dataclass
class Arr:
    """A description of an array, from which both modules create it.

    Attributes:
        values: of the base, C-contiguous.
        views: operations applied to it: ``("T",)``, ``("F",)``, ``("index", index)``,
            ``("axes", axes)``, ``("broadcast", shape)``.
    """

    values: np.ndarray
    views: tuple[tuple[Any, ...], ...] = ()

    def make(self, xp: Any) -> tuple[Any, Any]:
        """Return the base, and the view of it."""
        values = np.array(self.values)
        base = values if xp is np else xp.asarray(values)
        x = base
        for what, *how in self.views:
            if what == "F":
                base = x = xp.asarray(base, order="F")
            elif what == "T":
                x = x.T
            elif what == "axes":
                x = xp.permute_dims(x, how[0])
            elif what == "broadcast":
                x = xp.broadcast_to(x, how[0])
            else:
                x = x[how[0]]
        return base, x

    @property
    def seen(self) -> np.ndarray:
        return self.make(np)[1]

    def __repr__(self) -> str:
        text = np.array2string(self.values, separator=", ", threshold=40).replace("\n", "")
        text = f"Arr(np.array({text}, '{self.values.dtype}').reshape{self.values.shape}"
        return text + (f", {self.views})" if self.views else ")")


@dataclass
class Call:
    """A call: ``name`` is a function, ``.name`` a method, ``operator.name`` an operator."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    #: The backend that dparray uses: see `test_every_function.tier`.
    tier: str = ""

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        return f"{self.name}({', '.join(given)})" + (f"  # {self.tier}" if self.tier else "")


class Values:
    """Generate random values."""

    def __init__(self, random: Random) -> None:
        self.random = random
        #: Whether sizes lie on both sides of the limits of other code paths.
        self.reaches_limits = True

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def one(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def dtype(self, kinds: str = ALL) -> str:
        weighted = [k for k in kinds for _ in range({"f": 3, "i": 2}.get(k, 1))]
        return str(self.one(KINDS[self.one(weighted)]))

    def fill(self, shape: tuple[int, ...], dtype: str, plain: bool = False) -> np.ndarray:
        """Return values of a dtype: small, large or extreme numbers; ``plain`` ones are small."""
        random, kind = self.random, np.dtype(dtype).kind
        if kind == "b":
            return random.random(shape) < 0.5
        if kind in "iu":
            info = np.iinfo(dtype)
            low, high = max(info.min, -9), 10
            values = random.integers(low, high, shape).astype(dtype)
            if not plain and self.chance(0.3):
                values = random.integers(info.min, info.max, shape, dtype, endpoint=True)
                values = np.asarray(values, dtype)
                values[random.random(shape) < 0.2] = info.min
                values[random.random(shape) < 0.2] = info.max
            return values
        if kind == "c":
            part = "float32" if dtype == "complex64" else "float64"
            real, imaginary = self.fill(shape, part, True), self.fill(shape, part, True)
            return np.asarray(real + 1j * imaginary, dtype)
        if self.chance(0.5):
            values = random.integers(-6, 7, shape) / 2
        else:
            values = random.normal(size=shape)
        values = np.asarray(values, "float64")
        if not plain and self.chance(0.25):
            values[random.random(shape) < 0.3] = self.one(SPECIAL)
        if not plain and self.chance(0.1):
            values = values * (10.0 ** random.integers(-4, 4, shape))
        return values.astype(dtype)

    def shape(self, ndim: int | None = None, empty: bool = True) -> tuple[int, ...]:
        if ndim is None:
            ndim = int(self.one((0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4)))
        if ndim == 1:
            sizes = LIMITS if self.chance(0.06) and self.reaches_limits else SIZES
            found: tuple[int, ...] = (int(self.one(sizes)),)
        elif ndim == 2 and self.chance(0.05) and self.reaches_limits:
            found = tuple(
                map(int, self.one(((91, 91), (3, 3001), (3001, 3), (64, 128), (129, 64))))
            )
        else:
            low = 0 if self.chance(0.1) else 1
            found = tuple(int(n) for n in self.random.integers(low, 6, ndim))
        return found if empty else tuple(max(n, 1) for n in found)

    def array(
        self,
        kinds: str = ALL,
        shape: tuple[int, ...] | None = None,
        ndim: int | None = None,
        dtype: str | None = None,
        empty: bool = True,
        plain: bool = False,
        views: bool = True,
    ) -> Arr:
        """Return an array with any memory layout."""
        dtype = dtype or self.dtype(kinds)
        if shape is None:
            shape = self.shape(ndim, empty)
        random = self.random
        how = self.one(("plain",) * 5 + ("F", "T", "step", "reverse", "offset", "axes", "spread"))
        if not shape or not views or how == "plain":
            return Arr(self.fill(shape, dtype, plain))
        if how == "F":
            return Arr(self.fill(shape, dtype, plain), (("F",),))
        if how == "T":
            return Arr(self.fill(shape[::-1], dtype, plain), (("T",),))
        if how == "axes":
            axes = tuple(int(n) for n in random.permutation(len(shape)))
            base = tuple(shape[axes.index(n)] for n in range(len(shape)))
            return Arr(self.fill(base, dtype, plain), (("axes", axes),))
        if how == "spread":
            if 0 in shape:
                return Arr(self.fill(shape, dtype, plain))
            base = tuple(1 if self.chance(0.5) else n for n in shape)
            return Arr(self.fill(base, dtype, plain), (("broadcast", shape),))
        base_shape, index = list(shape), [slice(None)] * len(shape)
        axis = int(random.integers(len(shape)))
        if how == "step":
            step = int(self.one((2, 3)))
            base_shape[axis] = shape[axis] * step
            index[axis] = slice(None, None, step)
        elif how == "reverse":
            index[axis] = slice(None, None, -1)
        else:
            base_shape[axis] = shape[axis] + 2
            index[axis] = slice(1, shape[axis] + 1)
        return Arr(self.fill(tuple(base_shape), dtype, plain), (("index", tuple(index)),))

    def scalar(self, kinds: str = ALL) -> Any:
        """Return a scalar: Python's, NumPy's, or a 0-dimensional array."""
        dtype = self.dtype(kinds)
        value = self.fill((), dtype, self.chance(0.7))
        how = self.one(("python", "python", "numpy", "array"))
        if how == "array":
            return Arr(np.asarray(value, dtype))
        return np.asarray(value, dtype)[()] if how == "numpy" else np.asarray(value, dtype).item()

    def partner(self, shape: tuple[int, ...], kinds: str = ALL, dtype: str | None = None) -> Any:
        """Return an operand that broadcasts with an array: an array, a scalar, or a list."""
        how = self.one(("same", "same", "axis", "suffix", "scalar", "scalar", "list"))
        if how == "scalar":
            return self.scalar(kinds)
        if how == "suffix":
            shape = shape[int(self.random.integers(len(shape) + 1)) :]
        elif how == "axis":
            shape = tuple(1 if self.chance(0.4) else n for n in shape)
        if how == "list" and np.prod(shape) < 50:
            dtypes = [
                name
                for kind in kinds
                for name in {"i": ("int64",), "f": ("float64",)}.get(kind, ())
            ]
            return self.fill(shape, self.one((*dtypes, "bool")), True).tolist()
        same = self.dtype(kinds) if dtype is None or self.chance(0.6) else dtype
        return self.array(shape=shape, dtype=same)


# -- the words of recipes -------------------------------------------------------------------------


class Words(Values):
    """Create arguments from the words of recipes; earlier arguments decide about later ones."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.first: Any = None  # the first array argument, as NumPy sees it

    def x(self, kinds: str = ALL, ndim: int | None = None, **how: Any) -> Arr:
        found = self.array(kinds, ndim=ndim, **how)
        if self.first is None:
            self.first = found.seen
        return found

    def axis(self) -> Any:
        ndim = self.first.ndim
        if self.chance(0.03):
            return ndim
        return int(self.random.integers(-ndim, ndim)) if ndim else self.one((0, -1))

    def axes(self) -> Any:
        ndim = self.first.ndim
        if ndim and self.chance(0.4):
            count = int(self.random.integers(0, ndim + 1))
            chosen = self.random.permutation(ndim)[:count]
            return tuple(int(n) - (ndim if self.chance(0.3) else 0) for n in chosen)
        return None if self.chance(0.2) else self.axis()

    def make(self, word: str) -> Any:
        if word.startswith("("):  # a sequence of arrays that may be joined
            return self.sequence(word[1:-1])
        name, _, detail = word.partition(":")
        return getattr(self, "w_" + name)(*detail.split(":") if detail else ())

    # words: arrays

    def w_x(self, kinds: str = ALL, ndim: str = "", *marks: str) -> Any:
        return self.x(
            kinds or ALL,
            int(ndim) if ndim else None,
            empty="full" not in marks,
            plain="plain" in marks,
        )

    def w_like(self, kinds: str = ALL) -> Any:
        return self.partner(self.first.shape, kinds, self.first.dtype.name)

    def w_same(self, kinds: str = "") -> Any:
        """Return an array of the shape and, if no kinds are given, the dtype of the first."""
        dtype = self.dtype(kinds) if kinds else self.first.dtype.name
        return self.array(shape=self.first.shape, dtype=dtype)

    def w_mask(self) -> Any:
        return self.array(shape=self.first.shape, dtype="bool")

    def w_masks(self) -> Any:
        return self.partner(self.first.shape, "b") if self.chance(0.5) else self.w_mask()

    def w_square(self, kinds: str = "fc") -> Any:
        n = int(self.random.integers(1, 6))
        stack = self.one(((), (), (2,), (3, 1)))
        dtype = self.dtype(kinds)
        if dtype == "float16":
            dtype = "float32"
        values = self.random.normal(size=(*stack, n, n)) + 3 * np.eye(n)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * self.random.normal(size=values.shape)
        found = Arr(values.astype(dtype), (("F",),) if self.chance(0.2) else ())
        self.first = self.first if self.first is not None else found.seen
        return found

    def w_hermitian(self) -> Any:
        found = self.w_square()
        values = found.values
        found.values = values + np.conj(np.swapaxes(values, -1, -2)) + 6 * np.eye(values.shape[-1])
        found.values = found.values.astype(values.dtype)
        self.first = found.seen
        return found

    def w_sorted(self, kinds: str = "if") -> Any:
        found = self.array(kinds, ndim=1, plain=True, views=False)
        found.values.sort()
        self.first = self.first if self.first is not None else found.seen
        return found

    def w_index(self, low: str = "-", count: str = "") -> Any:
        """Return indices along the first axis."""
        n = self.first.shape[0] if self.first.ndim else 1
        return self.index(n, low == "-")

    def index(self, n: int, negative: bool = True) -> Any:
        if n == 0:
            return self.array(shape=(0,), dtype="int64")
        shape = self.shape(self.one((0, 1, 1, 2)))
        dtype = self.one(("int64", "int32", "uint8", "int8")) if n < 100 else "int64"
        low = -n if negative and dtype[0] == "i" else 0
        values = self.random.integers(low, n, shape).astype(dtype)
        how = self.one(("array", "array", "list", "int"))
        if how == "list" and values.size:
            return values.tolist()
        if how == "int":
            return int(self.random.integers(low, n))
        return Arr(values)

    def w_flatindex(self) -> Any:
        return self.index(self.first.size)

    def w_axisindex(self) -> Any:
        """Return indices along an axis; the axis comes last in the call, as `w_lastaxis`."""
        self.chosen = self.axis() if self.first.ndim and not self.chance(0.3) else None
        n = self.first.size
        if self.chosen is not None and -self.first.ndim <= self.chosen < self.first.ndim:
            n = self.first.shape[self.chosen]
        return self.index(n)

    def w_lastaxis(self) -> Any:
        return self.chosen

    def w_alongindex(self) -> Any:
        self.chosen = int(self.random.integers(-self.first.ndim, self.first.ndim))
        shape = list(self.first.shape)
        n = shape[self.chosen]
        shape[self.chosen] = int(self.random.integers(0, 4)) if n else 0
        return Arr(self.random.integers(-n, n, shape) if n else np.zeros(shape, int))

    def w_choices(self) -> Any:
        return [self.array(shape=(3,)) for _ in range(3)]

    def w_chooser(self) -> Any:
        found = Arr(self.random.integers(0, 3, self.one(((3,), (2, 3), (2, 1)))))
        self.first = found.seen
        return found

    def sequence(self, kind: str) -> Any:
        """Return arrays that a function joins; by default they may differ in dtype."""
        kind, _, detail = kind.partition(" ")
        ndim = int(detail) if detail else int(self.one((1, 2, 2, 3)))
        shape = list(self.shape(ndim))
        first = self.array(shape=tuple(shape), views=True)
        self.first = first.seen
        self.chosen = int(self.random.integers(-ndim, ndim)) if ndim else 0
        parts = [first]
        for _ in range(int(self.random.integers(0, 3))):
            if kind == "joined" and ndim:
                shape[self.chosen] = int(self.random.integers(0, 4))
            same = first.values.dtype.name if self.chance(0.5) else self.dtype()
            parts.append(self.array(shape=tuple(shape), dtype=same))
        if self.chance(0.2) and first.seen.size < 50:
            parts.append(
                first.seen.astype("int64").tolist()
                if first.seen.dtype.kind in "iub" and first.seen.dtype.name != "uint64"
                else first
            )
        return tuple(parts) if self.chance(0.5) else parts

    # words: numbers and options

    def w_scalar(self, kinds: str = ALL) -> Any:
        return self.scalar(kinds)

    def w_int(self, low: str, high: str) -> Any:
        value = int(self.random.integers(int(low), int(high) + 1))
        return np.int64(value) if self.chance(0.1) else value

    def w_float(self) -> Any:
        value = float(np.round(self.random.normal() * 4, 2))
        return np.float32(value) if self.chance(0.1) else value

    def w_flag(self) -> Any:
        return self.chance(0.5)

    def w_dtype(self, kinds: str = ALL) -> Any:
        return self.dtype(kinds)

    def w_sumdtype(self) -> Any:
        """Return a dtype whose kind can hold the first array's values."""
        kind = self.first.dtype.kind
        return self.dtype({"b": ALL, "i": "ifc", "u": "iufc", "f": "fc", "c": "c"}[kind])

    def w_one(self, *words: str) -> Any:
        return OPTION_OF.get(word := self.one(words), word)

    def w_number(self, *words: str) -> Any:
        word = self.one(words)
        return int(word) if word.lstrip("-").isdigit() else float(word)

    def w_axis(self) -> Any:
        return self.axis()

    def w_axisn(self) -> Any:
        return None if self.chance(0.15) else self.axis()

    def w_axes(self) -> Any:
        return self.axes()

    def w_permutation(self) -> Any:
        if self.chance(0.15):
            return None
        return tuple(int(n) for n in self.random.permutation(self.first.ndim))

    def w_order(self, words: str = "CFAK") -> Any:
        return self.one(words)

    def w_shape(self) -> Any:
        shape = self.shape(empty=True)
        shape = tuple(min(n, 40) for n in shape)
        return shape[0] if len(shape) == 1 and self.chance(0.5) else shape

    def w_reshape(self) -> Any:
        """Return a shape with the same number of elements."""
        size, shape = self.first.size, []
        for factor in (2, 3, 5, 7):
            while size and size % factor == 0 and len(shape) < 4 and self.chance(0.7):
                shape.append(factor)
                size //= factor
        shape.append(size)
        shape = [shape[int(n)] for n in self.random.permutation(len(shape))]
        if self.chance(0.3) and 0 not in shape:
            shape[int(self.random.integers(len(shape)))] = -1
        return -1 if self.chance(0.1) else tuple(shape)

    def w_broadcast(self) -> Any:
        shape = tuple(3 if n == 1 else n for n in self.first.shape)
        return (2, *shape) if self.chance(0.5) else shape

    def w_sections(self) -> Any:
        if self.chance(0.5):
            return int(self.random.integers(1, 4))
        return sorted(int(n) for n in self.random.integers(0, 6, int(self.random.integers(0, 4))))

    def w_q(self, scale: str = "1") -> Any:
        q = np.round(self.random.random(self.one(((), (), (2,), (3,)))), 2) * float(scale)
        if q.ndim == 0:
            return float(q)
        return q.tolist() if self.chance(0.5) else Arr(q)

    def w_weights(self) -> Any:
        return Arr(
            self.random.integers(1, 5, self.first.shape).astype(self.one(("int64", "float64")))
        )

    def w_shift(self) -> Any:
        return int(self.random.integers(-7, 8))

    def w_widths(self) -> Any:
        ndim = self.first.ndim
        how = self.one(("one", "pair", "each"))
        if how == "one":
            return int(self.random.integers(0, 4))
        if how == "pair":
            return tuple(int(n) for n in self.random.integers(0, 4, 2))
        return [tuple(int(n) for n in self.random.integers(0, 4, 2)) for _ in range(ndim)]

    def w_range(self) -> Any:
        low = float(np.round(self.random.normal() * 3, 1))
        return (low, low + float(self.one((0.5, 3.0, 10.0))))

    def w_bins(self) -> Any:
        if self.chance(0.6):
            return int(self.random.integers(1, 12))
        edges = np.unique(np.round(self.random.normal(size=5) * 3, 1))
        return edges.tolist() if len(edges) > 1 else 3

    def w_kth(self) -> Any:
        n = self.first.shape[-1] if self.first.ndim else 1
        return int(self.random.integers(-n, n)) if n else 0

    def w_repeats(self) -> Any:
        return int(self.random.integers(0, 4))

    def w_reps(self) -> Any:
        if self.chance(0.5):
            return int(self.random.integers(0, 3))
        return tuple(int(n) for n in self.random.integers(0, 3, int(self.random.integers(0, 4))))

    def w_deleted(self) -> Any:
        """Return an argument of ``delete`` or ``insert``; the axis is kept for ``lastaxis``."""
        self.chosen = self.axis() if self.first.ndim and not self.chance(0.3) else None
        n = self.first.size
        if self.chosen is not None and -self.first.ndim <= self.chosen < self.first.ndim:
            n = self.first.shape[self.chosen]
        how = self.one(("int", "list", "slice", "array"))
        if how == "slice":
            return slice(*sorted(int(k) for k in self.random.integers(0, n + 1, 2)))
        if n == 0:
            return []
        if how == "int":
            return int(self.random.integers(-n, n))
        chosen = self.random.integers(-n, n, int(self.random.integers(0, 4)))
        return chosen.tolist() if how == "list" else Arr(chosen)

    def w_subscript(self) -> Any:
        """Return a basic or advanced index of the first array."""
        parts: list[Any] = []
        advanced = self.chance(0.4)
        for n in self.first.shape[: int(self.random.integers(0, self.first.ndim + 1))]:
            how = self.one(
                ("int", "slice", "slice", "none") + (("array", "list") if advanced else ())
            )
            if how == "int" and n:
                parts.append(int(self.random.integers(-n, n)))
            elif how in ("array", "list") and n:
                values = self.random.integers(-n, n, self.one(((3,), (3,), (1,), (2, 3))))
                parts.append(Arr(values) if how == "array" else values.tolist())
            else:
                a, b = (int(k) for k in self.random.integers(-n - 1, n + 2, 2))
                parts.append(slice(a, b, self.one((None, 1, 2, -1))))
            if how == "none":
                parts.append(None)
        if self.chance(0.2):
            parts.insert(int(self.random.integers(len(parts) + 1)), Ellipsis)
        if self.chance(0.1) and self.first.ndim:
            return self.array(shape=self.first.shape, dtype="bool")
        return parts[0] if len(parts) == 1 and self.chance(0.5) else tuple(parts)

    def w_subscript_value(self) -> Any:
        return self.w_subscript()

    def w_conditions(self) -> Any:
        return [self.array(shape=self.first.shape, dtype="bool") for _ in range(2)]

    def w_choicelist(self) -> Any:
        dtype = self.dtype()
        return [self.partner(self.first.shape, dtype=dtype) for _ in range(2)]

    def w_functions(self) -> Any:
        return [self.w_int("-3", "3"), self.w_int("-3", "3"), self.w_int("-3", "3")]

    def w_grids(self) -> Any:
        return [self.array(ndim=1) for _ in range(int(self.random.integers(1, 4)))]

    def w_matrix(self, kinds: str = ALL) -> Any:
        """Return the right operand of a matrix product."""
        shape = self.first.shape
        if len(shape) == 0:
            return self.array(kinds, shape=())
        n, k = shape[-1], int(self.random.integers(1, 5))
        how = self.one(("vector", "matrix", "matrix", "stack"))
        if how == "vector":
            return self.array(kinds, shape=(n,), plain=True)
        if how == "matrix" or len(shape) < 3:
            return self.array(kinds, shape=(n, k), plain=True)
        return self.array(kinds, shape=(*shape[:-2], n, k), plain=True)

    def w_rows(self, kinds: str = ALL) -> Any:
        """Return an array with the last axis of the first."""
        n = self.first.shape[-1] if self.first.ndim else 1
        lines = self.shape(self.one((0, 0, 1)), False)
        lines = tuple(min(each, 4) for each in lines) if n in LIMITS else lines
        return self.array(kinds, shape=(*lines, n), plain=True)

    def w_rhs(self) -> Any:
        n = self.first.shape[-1]
        dtype = self.first.dtype.name
        if self.chance(0.5):
            return self.array(shape=(n,), dtype=dtype, plain=True)
        return self.array(
            shape=(*self.first.shape[:-1], int(self.random.integers(1, 4))), dtype=dtype, plain=True
        )

    def w_spectrum(self, kinds: str = ALL) -> Any:
        found = self.array(kinds, ndim=int(self.one((1, 1, 2, 3))), empty=False, plain=True)
        self.first = found.seen
        return found

    def w_lengths(self) -> Any:
        return int(self.random.integers(1, 12))

    def w_xnd(self) -> Any:
        return self.x(ndim=int(self.one((1, 2, 3))))

    def w_vals(self) -> Any:
        return self.array(shape=(int(self.random.integers(1, 4)),), dtype=self.first.dtype.name)

    def w_same2(self) -> Any:
        return self.array(shape=self.first.shape)

    def w_masksx(self) -> Any:
        shape = self.shape()
        self.first = np.empty(shape)
        return [self.array(shape=shape, dtype="bool") for _ in range(2)]

    def w_choices2(self) -> Any:
        return [self.array(shape=self.first.shape) for _ in range(2)]

    def w_sortedx(self) -> Any:
        self.chosen = int(self.random.integers(1, 9))
        return Arr(np.unique(np.round(self.random.normal(size=20) * 3, 2))[: self.chosen])

    def w_fps(self) -> Any:
        return self.array("if", shape=(self.chosen,), plain=True)

    def w_vector(self) -> Any:
        return self.array(shape=(int(self.random.integers(1, 9)),), plain=True)

    def w_matrix2(self) -> Any:
        return self.array(shape=(self.first.shape[-1], 3), plain=True)

    def w_rowsv(self) -> Any:
        return self.array(shape=(self.first.shape[-1],), plain=True)

    def w_vectorrows(self) -> Any:
        found = self.array(shape=(int(self.random.integers(1, 6)),), plain=True)
        self.first = found.seen
        return found

    def w_x2(self) -> Any:
        return self.array(shape=(self.first.shape[0], 4), plain=True)

    def w_vectors3(self) -> Any:
        return self.array("iufc", shape=(*self.one(((), (2,))), 3), plain=True)

    def w_bytes(self) -> Any:
        return self.x(dtype="uint8", ndim=int(self.one((1, 2))))

    def w_somebytes(self) -> Any:
        """Return some bytes; NumPy 2.4's `unpackbits` of no bytes returns uninitialized bits."""
        return self.x(dtype="uint8", ndim=int(self.one((1, 2))), empty=False)

    def w_linear(self) -> Any:
        return Arr(self.random.integers(0, 60, self.shape(self.one((1, 2)))))

    def w_multi(self) -> Any:
        shape = self.shape(self.one((1, 2)))
        return tuple(Arr(self.random.integers(0, n, shape)) for n in (3, 4, 5))

    def w_shape345(self) -> Any:
        return (3, 4, 5)

    def w_shape23(self) -> Any:
        return self.one(((2, 3), (4,), (1, 0, 2), (2, 3, 4)))

    def w_chain(self) -> Any:
        sizes = self.random.integers(1, 6, 5)
        return [self.array("fc", shape=(int(a), int(b)), plain=True) for a, b in pairwise(sizes)]

    def w_fitting(self) -> Any:
        return self.array(shape=(), dtype=self.first.dtype.name)

    def w_text(self, *words: str) -> Any:
        return ":".join(words)

    def w_mat23(self) -> Any:
        return self.array(shape=(2, 3), plain=True)

    def w_mat34(self) -> Any:
        return self.array(shape=(3, 4), plain=True)

    def w_mat33(self) -> Any:
        return self.array(shape=(3, 3), plain=True)

    def w_vec3(self) -> Any:
        return self.array(shape=(3,), plain=True)

    # words: arguments that match earlier ones

    def w_keptaxes(self) -> Any:
        self.chosen = self.axes()
        return self.chosen

    def w_keptaxis(self) -> Any:
        self.chosen = self.axis()
        return self.chosen

    def w_meanof(self) -> Any:
        """Return the means along the axes that were chosen."""
        try:
            with np.errstate(all="ignore"):
                return Arr(np.mean(self.first, axis=self.chosen, keepdims=True))
        except Exception:
            return 0.0

    def w_conditionfor(self) -> Any:
        """Return a condition along an axis of the array that follows as `w_kept`."""
        self.kept = self.x()
        self.chosen = self.axis()
        n = (
            self.first.shape[self.chosen]
            if -self.first.ndim <= self.chosen < self.first.ndim
            else 1
        )
        n = max(n - int(self.one((0, 0, 1))), 0)
        return self.array("b", shape=(n,))

    def w_kept(self) -> Any:
        return self.kept

    def w_sorterof(self) -> Any:
        return Arr(np.argsort(self.first, kind="stable"))

    def w_uniq(self, kinds: str = "iuf") -> Any:
        """Return a vector without repeated elements, in any order."""
        found = self.array(kinds, ndim=1, plain=True, views=False)
        found.values = self.random.permutation(np.unique(found.values))
        if self.first is None:
            self.first = found.seen
        return found

    def w_axesof(self, count: str) -> Any:
        """Return some axes of the first array."""
        ndim = self.first.ndim
        chosen = self.random.permutation(ndim)[: int(count)]
        return tuple(int(n) - (ndim if self.chance(0.3) else 0) for n in chosen)

    def w_along(self, kinds: str = "if") -> Any:
        """Return a vector as long as the last axis of the first array."""
        n = self.first.shape[-1] if self.first.ndim else 1
        return self.array(kinds, shape=(n,), plain=True)

    def w_steps(self) -> Any:
        """Return coordinates along the first array, which is a vector."""
        steps = self.random.integers(1, 4, self.first.size)
        return Arr(np.cumsum(steps).astype(self.one(("int64", "float64", "float32", "uint8"))))

    def w_counts(self) -> Any:
        """Return how often each column of the first array counts."""
        return Arr(self.random.integers(1, 4, self.first.shape[-1:]))

    def w_chances(self) -> Any:
        return Arr(np.round(self.random.random(self.first.shape[-1:]) + 0.1, 2))

    def w_squares(self) -> Any:
        """Return a matrix of the shape of the first."""
        return self.array(shape=self.first.shape, plain=True)

    def w_threefold(self) -> Any:
        return self.x(shape=(3, 3), plain=True)

    def w_axespairs(self) -> Any:
        return [self.one(((-2, -1), (-1, -2), (0, 1), (1, 0))) for _ in range(3)]

    def w_vectors(self, axis: str = "0") -> Any:
        """Return vectors of three numbers along an axis."""
        shape = [2, 4]
        shape.insert(int(axis), 3)
        return self.array("iufc", shape=tuple(shape), plain=True)

    def w_stats(self) -> Any:
        how = self.one(("one", "pair"))
        return int(self.random.integers(1, 4)) if how == "one" else (1, 2)

    def w_ends(self) -> Any:
        return self.one((0, 3, (1, 4), -2))

    def w_inserted(self) -> Any:
        """Return values for positions along the axis that was chosen."""
        if self.chosen is None:
            return self.array(shape=(), plain=True)
        shape = list(self.first.shape)
        if not -len(shape) <= self.chosen < len(shape):
            return self.scalar("i")
        shape[self.chosen] = 1
        return self.array(shape=tuple(shape), plain=True)

    def w_part(self) -> Any:
        """Return an array to prepend or append to the first array, a vector."""
        return self.array(shape=(int(self.random.integers(0, 4)),), plain=True)

    def w_pairs(self) -> Any:
        """Return points, with the number of coordinates that a histogram has dimensions."""
        n = int(self.one((3, 20, 300)))
        self.first = np.empty(n)
        return self.array("if", shape=(n, int(self.one((1, 2, 3)))), plain=True)

    def w_points(self) -> Any:
        n = int(self.one((3, 20, 300)))
        return self.x("if", shape=(n,), plain=True)

    def w_dims(self) -> Any:
        return tuple(int(self.one((1, 3, 4, 1, 3))) for _ in range(int(self.random.integers(0, 4))))

    def w_dtypes(self) -> Any:
        """Return a dtype, or an array of it."""
        return self.dtype() if self.chance(0.6) else self.array(plain=True)

    def w_kindname(self) -> Any:
        return self.one(
            ("bool", "integral", "signed integer", "real floating", "numeric", "nokind")
        )

    def w_numbers(self) -> Any:
        """Return a list of Python numbers."""
        values = self.fill((int(self.random.integers(0, 6)),), self.one(("int64", "float64")), True)
        return values.tolist()

    def w_bytestring(self, dtype: str) -> Any:
        count = int(self.random.integers(0, 6))
        return self.fill((count,), dtype, True).tobytes() + b"x" * int(self.one((0, 0, 1)))

    def w_vectorslist(self) -> Any:
        return [self.array("biu", ndim=1) for _ in range(int(self.random.integers(1, 4)))]

    def w_tensors(self) -> Any:
        """Return an invertible tensor of shape (2, 3, 6) or (4, 2, 2)."""
        shape, self.chosen = self.one((((2, 3, 6), 2), ((4, 2, 2), 1)))
        values = self.random.normal(size=(int(np.prod(shape)) // 6, 6)) if shape[-1] == 6 else None
        if values is None:
            values = self.random.normal(size=(4, 4)) + 3 * np.eye(4)
        else:
            values = values + 3 * np.eye(6)
        found = Arr(values.reshape(shape).astype(self.one(("float32", "float64"))))
        self.first = found.seen
        return found

    def w_tensorrhs(self) -> Any:
        shape = self.first.shape[:2] if self.first.shape[-1] == 6 else self.first.shape[:1]
        return self.array("f", shape=shape, dtype=self.first.dtype.name, plain=True)

    def w_tall(self) -> Any:
        """Return a matrix of full rank, or a stack of such matrices."""
        rows, columns = (int(n) for n in self.random.integers(1, 6, 2))
        stack = self.one(((), (), (2,)))
        dtype = self.one(("float32", "float64", "complex64", "complex128", "int64"))
        values = self.random.normal(size=(*stack, rows, columns))
        for n in range(min(rows, columns)):
            values[..., n, n] += 9 + n
        found = Arr(values.astype(dtype), (("F",),) if self.chance(0.2) else ())
        self.first = found.seen
        return found

    def w_tallone(self) -> Any:
        found = self.w_tall()
        if found.values.ndim > 2:
            found.values = found.values[0]
            self.first = found.seen
        return found

    def w_lstsqrhs(self) -> Any:
        rows = self.first.shape[0]
        shape = (rows,) if self.chance(0.5) else (rows, int(self.random.integers(1, 4)))
        return self.array("f", shape=shape, dtype="float64", plain=True)

    def w_ranges(self, count: str) -> Any:
        return [self.w_range() for _ in range(int(count))]

    def w_axesvecdot(self) -> Any:
        return [(self.one((0, -1, 1)),), (self.one((0, -1, 1)),), ()]

    def w_axesmatvec(self) -> Any:
        return [self.one(((-2, -1), (1, 0))), (self.one((0, 1)),), (self.one((0, 1)),)]

    def w_axesvecmat(self) -> Any:
        return [(self.one((0, 1)),), self.one(((-2, -1), (1, 0))), (self.one((0, 1)),)]

    def w_turnedtensors(self) -> Any:
        """Return a tensor whose first axis is moved last for solving; `w_kept` is the right
        side.
        """
        values = (self.random.normal(size=(4, 4)) + 3 * np.eye(4)).reshape(2, 2, 4)
        self.chosen = (0,)
        self.kept = self.array("f", shape=(2, 2), plain=True, dtype="float64")
        found = Arr(np.ascontiguousarray(np.moveaxis(values, -1, 0)))
        self.first = found.seen
        return found

    def w_places(self) -> Any:
        """Return positions in the first array, a vector: one, or a vector of them."""
        n = self.first.size
        values = self.random.integers(-n, n, int(self.random.integers(0, 4)))
        return self.one((values.tolist(), Arr(values), int(self.random.integers(-n, n))))

    def w_singles(self) -> Any:
        """Return a vector of single or double precision."""
        return self.x(ndim=1, dtype=self.one(("float32", "float64")), empty=False, plain=True)

    def w_sizes(self) -> Any:
        return tuple(int(n) for n in self.random.integers(1, 7, int(self.random.integers(1, 3))))

    def w_polynomial(self) -> Any:
        """Return coefficients of a polynomial with well separated roots."""
        roots = self.random.permutation(np.arange(-4, 5))[: int(self.random.integers(0, 5))]
        values = np.poly(roots) * float(self.one((1, 2, -3)))
        return Arr(np.atleast_1d(values).astype(self.one(("float64", "int64", "float32"))))

    def w_text2(self) -> Any:
        values = self.fill((int(self.random.integers(0, 5)),), "int64", True)
        return ",".join(map(str, values.tolist()))

    def w_pairsofaxes(self) -> Any:
        return self.one((1, 2, ([0], [1]), ([1, 0], [0, 1]), (0, 1)))

    def w_pairof(self, first: str, second: str) -> Any:
        return [int(first), int(second)]

    def w_mat(self, rows: str, columns: str, kinds: str) -> Any:
        return self.array(kinds, shape=(int(rows), int(columns)), plain=True)

    def w_squarex(self) -> Any:
        n = int(self.random.integers(0, 5))
        return self.x(shape=(n,) * int(self.one((2, 3))))

    def w_numpyscalar(self) -> Any:
        dtype = self.dtype()
        return np.asarray(self.fill((), dtype))[()]

    def w_dtypeobject(self) -> Any:
        return np.dtype(self.dtype())

    def w_flatitem(self) -> Any:
        size = self.first.size
        if self.chance(0.5) and self.first.ndim:
            return tuple(int(self.random.integers(-n, n)) for n in self.first.shape)
        return int(self.random.integers(-size - 1, size + 1))
