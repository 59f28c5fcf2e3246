"""The table of reductions: one row describes how elements are reduced to a result.

A kernel folds elements into *accumulators*, one or several values, in any order and by several
work-items in parallel, and merges accumulators until one set is left for each result. Kernels pass
partial results of a reduction to each other as accumulators in memory.

The texts are lines of a kernel's Python, with these fields:

- ``{A}``: the dtype of the accumulators, which is the operand's (``int32`` for Booleans);
- ``{v}``: an element in it; ``{j}``: its index among the reduced ones;
- ``{lowest}``, ``{highest}``: the limits of the dtype; ``{nan}``: its NaN if it has one;
- ``{t}``: a prefix for other names;
- ``{name}``: an accumulator for each of the row's names; ``{name_}``: that of the other set in a
  merge;
- ``{s0}``: a scalar operand; the name of a function: the name of its device function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: The cost of a reduction in an expression, in additions: few of them stay pending together, since
#: each may hold a large array.
REDUCTION_COST = 64

#: The growth of accumulators between two settlements: the factor, and the maximum number of
#: elements.
GROWTH = 8
MAX_UNSETTLED = 128


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction.

    Attributes:
        name: the public function's name.
        accumulators: the names of the accumulators, with dtypes other than ``{A}``.
        identity: the neutral value of each accumulator in a merge.
        lifted: the value of each accumulator for a single element.
        merge: merges the other set of accumulators into this one.
        result: computes the result from the accumulators and the scalar operands.
        fold: folds element number ``{n}`` (an integer from 0) into a set of accumulators. It may
            use names that ``begin`` sets. Empty if lifting and merging is as good.
        begin: initializes the variables of ``fold``; ``{first}`` is the first element of the
            work-item.
        end: converts the variables of ``fold``, after ``{count}`` elements, to accumulators.
            Element ``{n}`` has the global index ``first + uint64({n} * {copies} + {copy}) * step``.
        settle: changes the representation of accumulators, not their value, to keep rounding errors
            small. They are settled as they grow (:data:`GROWTH`), each time after ``end``, and
            before they leave their work-item and their group.
        finish: sets names that ``result`` uses.
        scalars: the number of scalar operands.
        functions: device functions that the lines call, by name.
        has_library: whether NumPy and the libraries have the function under its name.
        takes_dtype: whether their function accepts the dtype to compute in.
        takes_correction: whether the scalar operand is the number of elements minus a correction,
            which their function accepts.
        cost: the cost of one element in NumPy's function, in additions.
        made_by: the function of :func:`dparray.reduction` that made it.
        of_narrow: the same reduction of integers of up to 16 bits in wider numbers, for so few
            elements per work-item that their sum fits in 32 bits.
        of_many: the same reduction of floats in blocks, for many elements per work-item.
    """

    name: str
    accumulators: Mapping[str, str]
    identity: tuple[str, ...]
    lifted: tuple[str, ...]
    merge: tuple[str, ...]
    result: str = "{acc}"
    fold: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    scalars: int = 0
    functions: Mapping[str, Any] = field(default_factory=dict)
    has_library: bool = True
    takes_dtype: bool = False
    takes_correction: bool = False
    cost: int = 1
    made_by: Any = None
    of_narrow: Reduction | None = None
    of_many: Reduction | None = None

    @property
    def is_positional(self) -> bool:
        """Whether the index of an element among all reduced elements matters."""
        return any("{j}" in text for text in self.lifted)

    @property
    def begins_with_element(self) -> bool:
        """Whether ``begin`` needs the first element."""
        return any("{first}" in line for line in self.begin)


class Reduce(NamedTuple):
    """The operation of a reduction node.

    Attributes:
        reduction: the table row.
        axes: the reduced axes of the operand, ascending.
        keepdims: whether the result has the reduced axes, with length 1.
        merges: whether the operands are accumulators of another kernel instead of elements.
    """

    reduction: Reduction
    axes: tuple[int, ...]
    keepdims: bool
    merges: bool = False

    @property
    def cost(self) -> int:
        """The cost in additions."""
        return REDUCTION_COST

    @property
    def name(self) -> str:
        """The name of the reduction."""
        return self.reduction.name

    def expression_on(self, kinds: str) -> tuple[Reduction, bool]:
        """Return the part that determines the source of a kernel."""
        return self.reduction, self.merges


def _plain(name: str, identity: str, value: str, lifted: str = "{v}", **more: Any) -> Reduction:
    """Create a row with one accumulator."""
    return Reduction(
        name, {"acc": ""}, (identity,), (lifted,), ("{acc} = {A}(" + value + ")",), **more
    )


def _sum(name: str, **more: Any) -> Reduction:
    """Create a sum; narrow integers are summed in 32 bits, which fit twice as many in a vector.

    Many floats are summed in blocks, whose sums are added, so that rounding errors stay small.
    """
    narrow: dict[str, Any] = {
        "begin": ("{acc}_part = int32(0)",),
        "fold": ("{acc}_part = int32({acc}_part + int32({v}))",),
        "end": ("{acc} = {A}({acc}_part)",),
    }
    in_blocks: dict[str, Any] = {
        "begin": ("{acc} = {A}(0)", "{acc}_part = {A}(0)"),
        "fold": ("{acc}_part = {A}({acc}_part + {v})",),
        "end": ("{acc} = {A}({acc} + {acc}_part)",),
        "settle": ("{acc}_part = {A}(0)",),
    }
    value = "{acc} + {acc_}"
    more["of_narrow"] = _plain(name, "{A}(0)", value, **narrow, **more)
    more["of_many"] = _plain(name, "{A}(0)", value, **in_blocks, **more)
    return _plain(name, "{A}(0)", value, **more)


def combination(name: str, combine: Any, kind: str, made_by: Any = None) -> Reduction:
    """Return a reduction by a device function of two values; the scalar operand is its identity.

    ``kind`` is that of the elements: integers require a function that returns integers.
    """
    call = "{combine}({acc}, {acc_})"
    if kind == "b":
        call = "of_kind({combine}({acc} != 0, {acc_} != 0), 'b') != 0"
    elif kind != "f":
        call = f"of_kind({call}, 'i')"
    return _plain(
        name,
        "{A}({s0})",
        call,
        result="{acc} != 0" if kind == "b" else "{acc}",
        scalars=1,
        functions={"combine": combine},
        has_library=False,
        made_by=made_by,
    )


def _extreme(name: str, sign: str) -> Reduction:
    """Create the maximum or minimum; NaN if an element is NaN.

    Elements are compared once each, without regard to NaN, and NaN is detected separately:
    processors do both faster than a comparison that handles NaN.
    """
    end = "{lowest}" if sign == ">" else "{highest}"
    return _plain(
        name,
        end,
        "{acc_} if ({acc_} " + sign + " {acc}) | ({acc_} != {acc_}) else {acc}",
        fold=(
            "{acc} = {v} if {v} " + sign + " {acc} else {acc}",
            "{acc}_odd = {acc}_odd | ({v} != {v})",
        ),
        begin=("{acc} = " + end, "{acc}_odd = False"),
        end=("{acc} = {nan} if {acc}_odd else {acc}",),
    )


def _number(name: str, sign: str) -> Reduction:
    """Create the maximum or minimum ignoring NaN; for NaN alone the limit of the dtype."""
    end = "{lowest}" if sign == ">" else "{highest}"
    value = "{acc_} if {acc_} " + sign + " {acc} else {acc}"
    return _plain(name, end, value, has_library=False)


def _arg_extreme(name: str, sign: str) -> Reduction:
    """Create the index of the first maximum or minimum, or of the first NaN."""
    end = "{lowest}" if sign == ">" else "{highest}"
    is_nan = "({best_} != {best_}) & ({best} == {best})"
    is_same = "({best_} == {best}) | (({best_} != {best_}) & ({best} != {best}))"
    return Reduction(
        name,
        {"best": "", "at": "int64"},
        (end, "int64(9223372036854775807)"),
        ("{v}", "int64({j})"),
        (
            "{t}w = ({best_} " + sign + " {best}) | (" + is_nan + ")",
            "{t}w = {t}w | ((" + is_same + ") & ({at_} < {at}))",
            "{at} = {at_} if {t}w else {at}",
            "{best} = {best_} if {t}w else {best}",
        ),
        "{at}",
        # The number of a trip is equal in neighboring work-items, so no vector of wide integers is
        # needed.
        (
            "{t}w = ({v} " + sign + " {best}) | (({v} != {v}) & ({best} == {best}))",
            "{at}_n = int32({n}) if {t}w else {at}_n",
            "{best} = {v} if {t}w else {best}",
        ),
        ("{best} = " + end, "{at}_n = int32(0)"),
        ("{at} = int64(first + uint64({at}_n * {copies} + {copy}) * step)",),
    )


#: Sums of distances are scaled by this factor, so that finite elements do not overflow them.
_SMALLER, _LARGER = "{A}(2.0**-30)", "{A}(2.0**30)"

# The variance by the shifted sums of T. Chan, G. Golub and R. LeVeque ("Algorithms for computing
# the sample variance: analysis and recommendations", 1983), shifted again as the mean becomes
# better known. Accumulators hold the sums of `d` and of `d * d` over the distances `d = x - centre`
# of `weight` elements. Since they can be expressed about any center, they merge without a division.
# Settled accumulators have the mean as their center, as far as it can be represented; the rest
# stays in the sum.
#
# With `S`, the sum of squares about the mean, the squares are `S + weight * (centre - mean)**2`.
# Subtracting the second term multiplies their relative error by `squares / S`. If the center is the
# mean of `k` of the `weight` elements, that is at most `weight / k`, since (Cauchy's inequality) `S
# >= k * (centre - mean)**2 / (1 - k / weight)`. For any elements it is at most `GROWTH` in a
# work-item, near 1 if that has many elements, and at most the number of lanes where a group merges.
# The error is small, as no sum is longer than `MAX_UNSETTLED` and sums of sums are short. Equal
# elements have no distance from the first: their variance is exactly 0.
#
# The elements are halved, so that distances are finite. The sum of the distances is infinite or NaN
# only for non-finite elements, so their variance is NaN, as in NumPy, and infinite for finite
# elements that are too far apart.
_VARIANCE = Reduction(
    "var",
    {"centre": "", "sum": "", "squares": "", "weight": ""},
    ("{A}(0)", "{A}(0)", "{A}(0)", "{A}(0)"),
    ("{v} * {A}(0.5)", "{A}(0)", "{A}(0)", "{A}(1)"),
    (
        # Without conditions, which are slow to compile: an empty set takes the other's center.
        "{t}d = {centre_} - {centre}",
        "{centre} = {centre} + {t}d * {A}({weight} == 0)",
        "{t}d = {t}d * {A}(({weight} > 0) & ({weight_} > 0))",
        "{t}s = {sum_} + {t}d * ({weight_} * " + _SMALLER + ")",
        "{squares} = {squares} + ({squares_} + {t}d * " + _LARGER + " * ({t}s + {sum_}))",
        "{sum} = {sum} + {t}s",
        "{weight} = {weight} + {weight_}",
    ),
    "{t}v / {s0} * {A}(4)",
    fold=(
        "{t}d = {v} * {A}(0.5) - {centre}",
        "{sum} = {sum} + {t}d * " + _SMALLER,
        "{squares}_part = {squares}_part + {t}d * {t}d",
    ),
    begin=(
        "{centre} = {first} * {A}(0.5)",
        "{sum} = {A}(0)",
        "{squares} = {A}(0)",
        "{squares}_part = {A}(0)",
        "{weight} = {A}(0)",
    ),
    end=(
        "{squares} = {squares} + {squares}_part",
        "{squares}_part = {A}(0)",
        "{weight} = {A}({count})",
    ),
    settle=(
        "{t}c = {centre} + {sum} * (" + _LARGER + " / ({weight} + {A}({weight} == 0)))",
        "{t}d = {t}c - {centre}",
        "{t}s = {sum} - {t}d * ({weight} * " + _SMALLER + ")",
        "{squares} = {squares} - {t}d * " + _LARGER + " * ({sum} + {t}s)",
        "{sum} = {t}s",
        "{centre} = {t}c",
    ),
    finish=(
        "{t}v = {squares} - {sum} * " + _LARGER + " * ({sum} * (" + _LARGER + " / {weight}))",
        "{t}v = {t}v if {t}v == {t}v else {highest}",
        "{t}v = {t}v if {t}v > 0 else {A}(0)",
        "{t}v = {t}v + ({sum} - {sum})",
    ),
    scalars=1,
    takes_dtype=True,
    takes_correction=True,
    cost=4,
)

REDUCTIONS: dict[str, Reduction] = {
    row.name: row
    for row in (
        _sum("sum", takes_dtype=True),
        _plain("prod", "{A}(1)", "{acc} * {acc_}", takes_dtype=True),
        _extreme("max", ">"),
        _extreme("min", "<"),
        _number("fmax", ">"),
        _number("fmin", "<"),
        _plain("all", "{A}(1)", "{acc} & {acc_}", result="{acc} != 0"),
        # Measured: a conditional takes 0.75 of the time of `|` on the numbers 0 and 1.
        _plain(
            "any",
            "{A}(0)",
            "{acc} | {acc_}",
            result="{acc} != 0",
            begin=("{acc} = {A}(0)",),
            fold=("{acc} = {A}(1) if {v} != 0 else {acc}",),
        ),
        _sum("mean", result="{acc} / {s0}", scalars=1, takes_dtype=True),
        _VARIANCE,
        _arg_extreme("argmax", ">"),
        _arg_extreme("argmin", "<"),
    )
}
