"""Generated calls of NumPy's functions: arguments that both modules get, made of a seed.

A call is a function's name, arguments and keywords. Arrays among them are `Arr`: values and how
they lie in memory, from which each module makes its own array. A *recipe* says which arguments a
function takes, as text: one word for each argument; words with ``=`` are keywords that a call may
leave out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
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
#: Sizes of vectors: small ones, and both sides of what is handled in another way.
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 127, 129)
LIMITS = (8191, 8192, 8193, 9001, 20_000)
#: Functions whose results have as many elements as there are pairs: they get small arguments.
OF_PAIRS = frozenset(
    {"corrcoef", "cov", "diag", "diagflat", "ix_", "kron", "meshgrid", "outer", "vander"}
)
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)


@dataclass
class Arr:
    """An array as both modules make it.

    Attributes:
        values: of the base, C-contiguous.
        views: what is done to it: ``("T",)``, ``("F",)``, ``("index", index)``,
            ``("axes", axes)``, ``("broadcast", shape)``.
    """

    values: np.ndarray
    views: tuple[tuple[Any, ...], ...] = ()

    def make(self, xp: Any) -> tuple[Any, Any]:
        """The base, and the view of it."""
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
    """A call: ``name`` is a function's, ``.name`` a method's, ``operator.name`` an operator's."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    #: How dparray computes it: see `test_every_function.tier`.
    tier: str = ""

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        return f"{self.name}({', '.join(given)})" + (f"  # {self.tier}" if self.tier else "")


class Values:
    """Random values."""

    def __init__(self, random: Random) -> None:
        self.random = random
        #: Whether sizes lie on both sides of what is handled in another way.
        self.reaches_limits = True

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def one(self, options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def dtype(self, kinds: str = ALL) -> str:
        weighted = [k for k in kinds for _ in range({"f": 3, "i": 2}.get(k, 1))]
        return str(self.one(KINDS[self.one(weighted)]))

    def fill(self, shape: tuple[int, ...], dtype: str, plain: bool = False) -> np.ndarray:
        """Values of a dtype: small numbers, wide ones, extremes; ``plain`` ones are small."""
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
        """An array that may lie in memory in any way."""
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
        """A scalar: Python's, NumPy's, or an array of no dimensions."""
        dtype = self.dtype(kinds)
        value = self.fill((), dtype, self.chance(0.7))
        how = self.one(("python", "python", "numpy", "array"))
        if how == "array":
            return Arr(np.asarray(value, dtype))
        return np.asarray(value, dtype)[()] if how == "numpy" else np.asarray(value, dtype).item()

    def partner(self, shape: tuple[int, ...], kinds: str = ALL, dtype: str | None = None) -> Any:
        """What broadcasts with an array: an array, a scalar, or a list."""
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


def kinds_of(ufunc: np.ufunc) -> str:
    """The kinds of numbers that a ufunc takes."""
    found = {np.dtype(each[0]).kind for each in ufunc.types if each[0] not in "OMmgGSUV"}
    return "".join(
        kind for kind in ALL if kind in found | ({"b", "i", "u"} if "f" in found else set())
    )


# -- the words of recipes -------------------------------------------------------------------------


class Maker(Values):
    """Arguments by the words of recipes; what was made before decides what comes next."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.first: Any = None  # what the first array argument looks like to NumPy

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
        """An array of the shape and, if no kinds are given, the dtype of the first."""
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
        """Indices along the first axis."""
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
        """For take along an axis that comes last in the call: kept for `w_lastaxis`."""
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
        """Arrays that a function joins; by default they may differ in dtype."""
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
        """A dtype that the first array's values fit in by kind."""
        kind = self.first.dtype.kind
        return self.dtype({"b": ALL, "i": "ifc", "u": "iufc", "f": "fc", "c": "c"}[kind])

    def w_one(self, *words: str) -> Any:
        return {"None": None, "True": True, "False": False}.get(word := self.one(words), word)

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
        """A shape of as many elements."""
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
        """What ``delete`` and ``insert`` take, with the axis kept for ``lastaxis``."""
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
        """A basic or advanced index of the first array."""
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
        """The right partner of a product of matrices."""
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
        """An array with the last axis of the first."""
        n = self.first.shape[-1] if self.first.ndim else 1
        return self.array(kinds, shape=(*self.shape(self.one((0, 0, 1)), False), n), plain=True)

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


UFUNC = "dtype=dtype casting=one:same_kind:unsafe order=order"
REDUCED = "axis=axes keepdims=flag"

#: Recipes by function; ``!`` before a recipe: no `out=`.
RECIPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("all", "any"), (f"x {REDUCED} where=masks",)),
    **dict.fromkeys(
        ("max", "min", "amax", "amin", "nanmax", "nanmin"),
        (
            f"x::: {REDUCED}",
            f"x {REDUCED} initial=scalar:f",
            f"x:if {REDUCED} where=masks initial=int:-3:3",
        ),
    ),
    **dict.fromkeys(
        ("sum", "prod", "nansum", "nanprod"),
        (f"x {REDUCED} dtype=sumdtype initial=int:-2:3 where=masks",),
    ),
    **dict.fromkeys(("mean", "nanmean"), (f"x:{ALL}::full {REDUCED} dtype=dtype:fc where=masks",)),
    **dict.fromkeys(
        ("std", "var", "nanstd", "nanvar"),
        (
            f"x:{ALL}::full {REDUCED} ddof=int:0:2 where=masks",
            f"x:biuf::full {REDUCED} dtype=dtype:f",
        ),
    ),
    "ptp": (f"!x:iufc {REDUCED}",),
    "count_nonzero": (f"!x {REDUCED}",),
    **dict.fromkeys(
        ("argmax", "argmin", "nanargmax", "nanargmin"), ("x:biuf::full axis=axisn keepdims=flag",)
    ),
    **dict.fromkeys(
        ("cumsum", "cumprod", "nancumsum", "nancumprod"), ("x axis=axisn dtype=sumdtype",)
    ),
    **dict.fromkeys(
        ("cumulative_sum", "cumulative_prod"),
        ("!x axis=axis dtype=sumdtype include_initial=flag",),
    ),
    **dict.fromkeys(("median", "nanmedian"), (f"x:biuf::full {REDUCED}",)),
    **dict.fromkeys(
        ("percentile", "nanpercentile"),
        (
            f"!x:iuf::full q:100 {REDUCED} method=one:linear:lower:higher:nearest:midpoint:"
            "median_unbiased:inverted_cdf:hazen:weibull",
        ),
    ),
    **dict.fromkeys(
        ("quantile", "nanquantile"),
        (f"!x:iuf::full q {REDUCED} method=one:linear:lower:higher:nearest:midpoint",),
    ),
    "average": (
        "!x:iufc::full axis=axisn keepdims=flag returned=flag",
        "!x:iufc:1:full weights=weights returned=flag",
    ),
    "clip": ("x:iuf scalar:iuf scalar:iuf", "x:iuf like:iuf like:iuf", "x:iuf one:None scalar:if"),
    "around": ("x decimals=int:-2:3",),
    "round": ("x decimals=int:-2:3",),
    "angle": ("!x deg=flag",),
    **dict.fromkeys(("real", "imag", "iscomplex", "isreal", "sinc"), ("!x",)),
    "i0": ("!x:biuf",),
    **dict.fromkeys(("isneginf", "isposinf", "fix"), ("x:biuf",)),
    "nan_to_num": ("!x nan=float posinf=float neginf=float copy=flag",),
    "real_if_close": ("!x tol=int:2:100",),
    "unwrap": ("!x:if::full:plain axis=axis period=int:2:7 discont=int:1:4",),
    **dict.fromkeys(("isclose", "allclose"), ("!x like rtol=float atol=float equal_nan=flag",)),
    **dict.fromkeys(("array_equal",), ("!x same equal_nan=flag", "!x like")),
    "array_equiv": ("!x like",),
    "where": ("!x:b like like", "!x"),
    "nonzero": ("!x",),
    "flatnonzero": ("!x",),
    "argwhere": ("!x",),
    "select": ("!masksx choices2 default=scalar",),
    "extract": ("!x:b same2",),
    "compress": ("x:b:1 same2",),
    "take": ("x axisindex lastaxis mode=one:wrap:clip:raise",),
    "take_along_axis": ("!xnd alongindex lastaxis",),
    "put_along_axis": ("!xnd alongindex scalar:i lastaxis",),
    "choose": ("chooser choices mode=one:wrap:clip:raise",),
    "put": ("!x:::full flatindex scalar:i mode=one:wrap:clip:raise",),
    "place": ("!x mask vals",),
    "putmask": ("!x mask same", "!x mask scalar:bi"),
    "copyto": (
        "!x same where=masks",
        "!x scalar:bi where=masks",
        "!x like casting=one:unsafe:safe",
    ),
    "fill_diagonal": ("!x::2:full scalar:bi wrap=flag",),
    "sort": ("!x axis=axisn kind=one:quicksort:stable:mergesort:heapsort",),
    "argsort": ("!x axisn one:stable:mergesort",),
    "partitioned": (),
    "sort_complex": ("!x",),
    "lexsort": ("!(same 1)", "!(same 2) axis=axis"),
    "searchsorted": ("!sorted:iuf x:iuf side=one:left:right",),
    "digitize": ("!x:iuf sorted:if right=flag",),
    "bincount": ("!x:u:1:plain minlength=int:0:12",),
    "histogram": ("!x:iuf::full:plain bins=bins range=range density=flag",),
    "histogram_bin_edges": ("!x:iuf::full:plain bins=bins range=range",),
    "unique": (
        "!x return_index=flag return_inverse=flag return_counts=flag equal_nan=flag",
        "!x:iuf axis=axis return_index=flag return_counts=flag",
    ),
    **dict.fromkeys(
        ("unique_values", "unique_counts", "unique_inverse", "unique_all"), ("!x:biuf",)
    ),
    **dict.fromkeys(("union1d", "setxor1d", "setdiff1d"), ("!x:biuf like:biuf",)),
    "intersect1d": ("!x:iuf like:iuf return_indices=flag",),
    "isin": ("!x like invert=flag",),
    "reshape": ("!x reshape order=order:CFA",),
    "ravel": ("!x order=order",),
    ".flatten": ("!x order=order",),
    ".copy": ("!x order=order",),
    ".astype": ("!x dtype order=order",),
    ".tolist": ("!x",),
    ".fill": ("!x:::full scalar:bi",),
    ".conj": ("!x",),
    ".byteswap": ("!x",),
    ".nonzero": ("!x",),
    ".view": ("!x",),
    ".sort": ("!x axis=axis",),
    "astype": ("!x dtype copy=flag",),
    "copy": ("!x order=order",),
    "array": ("!x dtype=dtype order=order ndmin=int:0:4",),
    "asarray": ("!x dtype=dtype order=order",),
    "asfortranarray": ("!x",),
    "ascontiguousarray": ("!x",),
    "require": ("!x",),
    "transpose": ("!x permutation",),
    "permute_dims": ("!x permutation",),
    "moveaxis": ("!x axis axis",),
    "swapaxes": ("!x axis axis",),
    "rollaxis": ("!x axis",),
    "expand_dims": ("!x int:-2:2",),
    "squeeze": ("!x axis=axes",),
    "flip": ("!x axis=axes",),
    "flipud": ("!x",),
    "fliplr": ("!x",),
    "rot90": ("!x:::full k=int:-5:5",),
    "roll": ("!x shift axis=axes",),
    "repeat": ("!x repeats axis=axisn",),
    "tile": ("!x reps",),
    "resize": ("!x shape",),
    "broadcast_to": ("!x broadcast",),
    "broadcast_arrays": ("!x* like",),
    "atleast_1d": ("!x",),
    "atleast_2d": ("!x",),
    "atleast_3d": ("!x",),
    **dict.fromkeys(
        ("concatenate", "concat"),
        ("(joined) lastaxis dtype=dtype casting=one:unsafe:same_kind", "!(same) one:None"),
    ),
    "stack": ("(same) axis=axis dtype=dtype:fc",),
    **dict.fromkeys(("hstack", "vstack"), ("!(same) dtype=dtype:fc",)),
    **dict.fromkeys(("dstack", "column_stack"), ("!(same)",)),
    "block": ("!(same)",),
    "append": ("!x same axis=axisn",),
    "split": ("!x sections axis=axis",),
    "array_split": ("!x sections axis=axis",),
    **dict.fromkeys(("hsplit", "vsplit", "dsplit"), ("!x sections",)),
    "unstack": ("!x axis=axis",),
    "delete": ("!x deleted lastaxis",),
    "insert": ("!x deleted scalar:i lastaxis",),
    "pad": (
        "!x widths mode=one:constant:edge:reflect:symmetric:wrap:linear_ramp:maximum:mean:minimum",
        "!x widths constant_values=int:-3:5",
    ),
    "trim_zeros": ("!x::1 trim=one:fb:f:b",),
    "diff": ("!x n=int:0:3 axis=axis", "!x:iuf:1 prepend=int:-2:2 append=int:-2:2"),
    "ediff1d": ("!x:iufc to_end=int:-2:2",),
    "gradient": ("!x:iufc axis=axes edge_order=int:1:2", "!x:iufc:1 scalar:f"),
    "trapezoid": ("!x:iufc::full dx=float axis=axis",),
    "interp": ("!x:if sortedx fps left=float right=float",),
    "convolve": ("!x::1:full:plain vector mode=one:full:same:valid",),
    "correlate": ("!x::1:full:plain vector mode=one:full:same:valid",),
    **dict.fromkeys(
        ("matmul", "dot"),
        ("x::2:full:plain matrix", "x::3:full:plain matrix", "x::1:full:plain matrix"),
    ),
    "inner": ("!x:::full:plain rows",),
    "outer": ("x:::plain like",),
    "vdot": ("!x:::plain same",),
    "vecdot": ("!x:::full:plain rows",),
    "kron": ("!x:::plain vector", "!x::2:plain vector"),
    "tensordot": ("!x::2:full:plain matrix2 int:1:1",),
    "matvec": ("!x::2:full:plain rowsv",),
    "vecmat": ("!vectorrows x2",),
    "cross": ("!vectors3 vectors3",),
    "trace": ("x::2 offset=int:-2:2", "x::3 offset=int:-1:1 dtype=sumdtype"),
    "diagonal": ("!x::2 offset=int:-2:2", "!x::3 offset=int:-1:1"),
    "diag": ("!x::1 k=int:-2:2", "!x::2 k=int:-2:2"),
    "diagflat": ("!x k=int:-2:2",),
    "tril": ("!x::2 k=int:-2:2", "!x::3 k=int:-2:2"),
    "triu": ("!x::2 k=int:-2:2", "!x::3 k=int:-2:2"),
    "vander": ("!x::1:plain N=int:0:4 increasing=flag",),
    "cov": ("!x:iuf:2:full:plain rowvar=flag ddof=int:0:1",),
    "corrcoef": ("!x:f:2:full:plain rowvar=flag",),
    "packbits": ("!x:b axis=axisn bitorder=one:big:little",),
    "unpackbits": ("!bytes axis=axisn bitorder=one:big:little",),
    "unravel_index": ("!linear shape345 order=order:CF",),
    "ravel_multi_index": ("!multi shape345 order=order:CF mode=one:raise:wrap:clip",),
    "polyval": ("!x:ifc:1:full:plain x",),
    "polyadd": ("!x:ifc:1:full vector",),
    "polysub": ("!x:ifc:1:full vector",),
    "polymul": ("!x:ifc:1:full:plain vector",),
    "polyder": ("!x:ifc:1:full int:1:2",),
    "polyint": ("!x:ifc:1:full int:1:2",),
    "zeros": ("!shape dtype=dtype order=order:CF",),
    "ones": ("!shape dtype=dtype order=order:CF",),
    "full": ("!shape scalar dtype=dtype:c order=order:CF",),
    "empty": (),
    "zeros_like": ("!x dtype=dtype order=order shape=shape",),
    "ones_like": ("!x dtype=dtype order=order",),
    "full_like": ("!x int:0:1 dtype=dtype order=order",),
    "eye": ("!int:0:5 M=int:0:5 k=int:-2:2 dtype=dtype order=order:CF",),
    "identity": ("!int:0:5 dtype=dtype",),
    "tri": ("!int:0:5 M=int:0:5 k=int:-2:2 dtype=dtype",),
    "arange": ("!int:-3:9", "!int:-3:9 int:-3:20 int:1:3 dtype=dtype:if", "!float float"),
    "linspace": (
        "!scalar:if scalar:if num=int:0:9 endpoint=flag dtype=dtype:f",
        "!x:if::plain like:if num=int:1:9 axis=int:-1:0",
    ),
    "logspace": ("!int:-2:2 int:-2:3 num=int:0:9 base=int:2:4",),
    "geomspace": ("!int:1:9 int:1:9 num=int:0:9",),
    "indices": ("!shape23 sparse=flag",),
    "meshgrid": ("!*grids sparse=flag indexing=one:xy:ij",),
    "tril_indices": ("!int:0:5 k=int:-2:2",),
    "triu_indices": ("!int:0:5 k=int:-2:2",),
    "diag_indices": ("!int:0:5",),
    **dict.fromkeys(("bartlett", "blackman", "hamming", "hanning"), ("!int:0:17",)),
    "kaiser": ("!int:0:17 int:0:14",),
    **dict.fromkeys(("ndim", "shape", "size", "iscomplexobj", "isrealobj", "isfortran"), ("!x",)),
    "matrix_transpose": ("!x::3", "!x::2"),
    "result_type": ("!x like", "!x scalar"),
    "linalg.norm": ("!x::1:plain ord=one:None", "!x:f:2:full:plain axis=axisn keepdims=flag"),
    **dict.fromkeys(
        ("linalg.inv", "linalg.det", "linalg.slogdet", "linalg.pinv", "linalg.eigvals"),
        ("!square",),
    ),
    **dict.fromkeys(("linalg.cholesky", "linalg.eigvalsh"), ("!hermitian",)),
    "linalg.cond": ("!square",),
    "linalg.matrix_rank": ("!square",),
    "linalg.svdvals": ("!square",),
    "linalg.solve": ("!square rhs",),
    "linalg.matrix_power": ("!square int:-2:4",),
    "linalg.vector_norm": ("!x:fc::full:plain axis=axes keepdims=flag ord=int:1:3",),
    "linalg.matrix_norm": ("!x:fc:2:full:plain keepdims=flag", "!x:fc:3:full:plain keepdims=flag"),
    "linalg.multi_dot": ("!chain",),
    "linalg.trace": ("!x::3 offset=int:-1:1",),
    "linalg.diagonal": ("!x::3 offset=int:-1:1",),
    **dict.fromkeys(
        ("fft.fft", "fft.ifft", "fft.hfft", "fft.irfft"),
        ("!spectrum n=lengths axis=axis norm=one:backward:ortho:forward",),
    ),
    **dict.fromkeys(
        ("fft.rfft", "fft.ihfft"),
        ("!spectrum:biuf n=lengths axis=axis norm=one:backward:ortho:forward",),
    ),
    **dict.fromkeys(
        ("fft.fftn", "fft.ifftn", "fft.irfftn"), ("!spectrum norm=one:backward:ortho:forward",)
    ),
    "fft.rfftn": ("!spectrum:biuf norm=one:backward:ortho:forward",),
    **dict.fromkeys(("fft.fftshift", "fft.ifftshift"), ("!x:::full axes=axes",)),
    **dict.fromkeys(("fft.fftfreq", "fft.rfftfreq"), ("!int:1:20 d=float",)),
    "partition": ("!x:biuf:1:full kth",),
    "apply_over_axes": (),
    "getitem": ("!x subscript",),
    "setitem": ("!x subscript scalar:bi", "!x subscript fitting"),
    "einsum": (
        "!text:ij,jk->ik mat23 mat34",
        "!text:ij->ji x::2",
        "!text:ii->i mat33",
        "!text:ij,ij->i mat23 mat23",
        "!text:...i,i->... mat23 vec3",
        "!text:ij-> mat23",
    ),
}


class Words(Maker):
    """The remaining words."""

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


OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift"),
    *(
        "rshift",
        "lt",
        "le",
        "eq",
        "ne",
        "gt",
        "ge",
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
    ),
    *("imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift", "neg", "pos", "abs", "invert"),
)
ONE_OPERAND = frozenset({"neg", "pos", "abs", "invert"})
METHODS_OF_UFUNCS = ("add", "multiply", "maximum", "minimum", "logical_and", "bitwise_or")


def lookup(xp: Any, name: str) -> Callable[..., Any]:
    """The function of a call in a module."""
    if name.startswith("."):
        return lambda x, *args, **kwargs: getattr(x, name[1:])(*args, **kwargs)
    if name.startswith("operator."):
        return getattr(operator, name.removeprefix("operator."))
    if name == "getitem":
        return operator.getitem
    if name == "setitem":
        return operator.setitem
    for part in name.split("."):
        xp = getattr(xp, part)
    return xp


def ufuncs(module: Any) -> list[str]:
    """The names of ufuncs that both have."""
    return sorted(
        name
        for name in dir(np)
        if isinstance(getattr(np, name), np.ufunc)
        and getattr(np, name).signature is None
        and hasattr(module, name)
    )


def recipe_call(name: str, recipe: str, make: Words) -> Call:
    """A call by a recipe."""
    takes_out = not recipe.startswith("!")
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in recipe.removeprefix("!").split() if "(" not in recipe else _words(recipe):
        key, is_keyword, rest = word.partition("=")
        if is_keyword and ":" not in key and not key.startswith("("):
            if make.chance(0.35):
                kwargs[key] = make.make(rest)
        elif word.startswith("*"):
            args += make.make(word[1:])
        else:
            args.append(make.make(word.replace("x*", "x")))
    call = Call(name, args, kwargs)
    if takes_out and make.chance(0.12):
        _give_out(call, make)
    return call


def _words(recipe: str) -> list[str]:
    """Words of a recipe whose first is in parentheses."""
    head, _, rest = recipe.removeprefix("!").partition(")")
    return [head + ")", *rest.split()]


def ufunc_call(name: str, make: Words) -> Call:
    """A call of a ufunc."""
    ufunc = getattr(np, name)
    kinds = kinds_of(ufunc)
    if make.chance(0.03):
        kinds = ALL
    first = make.x(kinds)
    args: list[Any] = [first]
    if ufunc.nin == 2:
        args.append(make.partner(first.seen.shape, kinds, first.values.dtype.name))
        if make.chance(0.3):
            args.reverse()
    call = Call(name, args)
    if ufunc.nout == 1 and make.chance(0.15):
        call.kwargs["order"] = make.one("CFAK")
    if ufunc.nout == 1 and make.chance(0.1):
        call.kwargs["dtype"] = make.dtype()
        if make.chance(0.3):
            call.kwargs["casting"] = make.one(("unsafe", "same_kind", "safe"))
    if ufunc.nout == 1 and make.chance(0.12):
        _give_out(call, make)
        # NumPy 2.2 ends the process in `np.greater(unsigned, -4, out=..., where=...)`.
        ends = name in COMPARISONS and any(type(arg) is int for arg in call.args)
        if "out" in call.kwargs and make.chance(0.4) and not ends:
            call.kwargs["where"] = make.partner(call.kwargs["out"].seen.shape, "b")
    return call


def _give_out(call: Call, make: Words) -> None:
    """Add ``out=``, of the shape that NumPy's result has."""
    try:
        with np.errstate(all="ignore"):
            result = carry_out(np, call)[0]
    except Exception:
        return
    if isinstance(result, np.ndarray | np.generic) and result.dtype.kind in ALL:
        dtype = result.dtype.name if make.chance(0.7) else make.dtype()
        # NumPy's `choose` writes beside an `out` with gaps or steps backwards.
        has_views = call.name != "choose" or call.kwargs.get("mode", "raise") == "raise"
        out = make.array(shape=np.shape(result), dtype=dtype, plain=True, views=has_views)
        if not any(view[0] == "broadcast" for view in out.views):
            call.kwargs["out"] = out


def operator_call(name: str, make: Words) -> Call:
    """A call of an operator."""
    first = make.x()
    args: list[Any] = [first]
    if name not in ONE_OPERAND:
        args.append(make.partner(first.seen.shape, ALL, first.values.dtype.name))
        if make.chance(0.3) and not name.startswith("i"):
            args.reverse()
    return Call("operator." + name, args)


def method_of_ufunc_call(make: Words) -> Call:
    """``add.reduce`` and its kin."""
    name = make.one(METHODS_OF_UFUNCS)
    kinds = "biu" if name.startswith("bit") else "biuf"
    method = make.one(("reduce", "accumulate", "outer"))
    x = make.x(kinds, empty=False)
    if method == "outer":
        make.reaches_limits = False
        return Call(f"{name}.outer", [x, make.array(kinds, ndim=1)])
    kwargs = {"axis": make.axis()} if make.chance(0.7) else {}
    if method == "reduce" and make.chance(0.3):
        kwargs["keepdims"] = True
    return Call(f"{name}.{method}", [x], kwargs)


TIERS = ("",) * 13 + ("eager", "no host tier", "no host tier", "library", "library", "busy")
TIERS += ("fused",)


def generate(name: str, random: Random, tiers: tuple[str, ...] = TIERS) -> Call:
    """A call of a function."""
    make = Words(random)
    make.reaches_limits = name not in OF_PAIRS
    if name.startswith("operator."):
        call = operator_call(name.removeprefix("operator."), make)
    elif name == "method of a ufunc":
        call = method_of_ufunc_call(make)
    elif name in RECIPES:
        call = recipe_call(name, str(make.one(RECIPES[name])), make)
    else:
        call = ufunc_call(name, make)
    call.tier = str(make.one(tiers))
    is_method = name in RECIPES and hasattr(np.ndarray, name) and make.chance(0.2)
    if is_method and isinstance(call.args[0], Arr):
        call.name = "." + name
    return call


def names(module: Any) -> list[str]:
    """All functions that there are calls of."""
    return [
        *(name for name, recipes in RECIPES.items() if recipes),
        *ufuncs(module),
        *("operator." + name for name in OPERATORS),
        "method of a ufunc",
    ]


def build(xp: Any, value: Any, made: list[tuple[Any, Any]]) -> Any:
    """An argument as a module takes it; arrays are noted in ``made``."""
    if isinstance(value, Arr):
        made.append(value.make(xp))
        return made[-1][1]
    if isinstance(value, list | tuple):
        return type(value)(build(xp, part, made) for part in value)
    return value


def carry_out(xp: Any, call: Call) -> tuple[Any, list[tuple[Any, Any]]]:
    """The result, and the arrays that went in: base and view."""
    made: list[tuple[Any, Any]] = []
    args = build(xp, call.args, made)
    kwargs = {key: build(xp, value, made) for key, value in call.kwargs.items()}
    return lookup(xp, call.name)(*args, **kwargs), made
