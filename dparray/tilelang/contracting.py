"""Computation of contractions: as array operations, on the host, or by a separate kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from dparray import _placement, config
from dparray._array.allocation import from_host, is_made_by_host
from dparray._array.apply import astype_array, copy_of
from dparray._array.dispatch import host_views
from dparray._array.ndarray import ndarray
from dparray._array.nodes import array_of_node, index_along
from dparray._driver import traits_of
from dparray._evaluate import evaluate, limits
from dparray._functions import elementwise as ew
from dparray._functions import reductions
from dparray._functions.creation import zeros
from dparray._functions.manipulation import permute_dims, reshape
from dparray._functions.products import matmul
from dparray._graph.contractions import (
    Contraction,
    ContractionLaunch,
    ContractionStructure,
    Tail,
    contraction,
)
from dparray._graph.node import Node, Scalar
from dparray._graph.reductions import REDUCTION_COST
from dparray._layout import contiguous_strides
from dparray._placement import Placement
from dparray.tilelang.contraction import Contracted
from dparray.tilelang.contraction_expression import expression_of
from dparray.tilelang.enumerated_points import Points, enumerated, linear
from dparray.tilelang.kernel_text import MAX_ACROSS, Text, text_of
from dparray.tilelang.recognised import Aligned, Operations, aligned, line_up, product
from dparray.tilelang.values import BOOL, FLOAT32, FLOAT64, INT64, DType

#: The maximum number of points of contractions that the host computes, if it can.
MAX_HOST_POINTS = 16_384

Computed = Callable[..., ndarray]
Strides = tuple[tuple[int, ...], ...]

_OPERATIONS = Operations(permute_dims, reshape, matmul, copy_of)


def lowered(contracted: Contracted, operands: Sequence[Any]) -> Lowered:
    """Return the plan of a contraction of arrays, or of literals as 0-d arrays.

    Args:
        contracted: the contraction.
        operands: tensors or literals with ``dtype``; the default is last, if there is one.
    """
    dtypes = [each.dtype for each in operands]
    if contracted.domain is None:
        return Lowered(contracted, dtypes, "nothing", None)
    found = aligned(contracted, dtypes)
    if found is not None:
        return Lowered(contracted, dtypes, found.kind, found)
    return Lowered(contracted, dtypes, "kernel", None)


class Lowered:
    """A contraction ready to be computed.

    Attributes:
        kind: ``"map"``, ``"reduction"``, ``"product"`` (array operations), ``"kernel"`` (a separate
            kernel, or host loops if it is small), ``"nothing"`` (no element is written).
        is_small: whether it has few enough points for the host.
    """

    def __init__(
        self,
        contracted: Contracted,
        dtypes: Sequence[DType],
        kind: str,
        alignment: Aligned | None,
    ) -> None:
        self.contracted = contracted
        self.dtypes = dtypes
        self.kind = kind
        self.alignment = alignment
        self.shape = tuple(size for _, size in contracted.space.output)
        self._texts: dict[tuple[Strides, Tail | None, bool], Text] = {}
        self._on_host: _HostPlan | None = None
        self._operations: dict[Any, tuple[Contraction, tuple[int, ...], tuple[int, ...]]] = {}
        domain = contracted.domain
        self._points = 0 if domain is None else prod(self.shape) * max(1, domain.points)
        self.is_small = self._points <= MAX_HOST_POINTS

    @property
    def is_view(self) -> bool:
        """Whether the result may be a view of an operand."""
        return self.kind == "map" and not self.contracted.combination

    def __call__(self, placement: Placement, *arrays: ndarray) -> ndarray:
        """Compute the result from the arrays of its operands."""
        if self.kind == "nothing":
            if self.contracted.has_default:
                return copy_of(arrays[-1])
            return zeros(
                self.shape,
                self.contracted.dtype,
                sycl_queue=placement.queue,
                usm_type=placement.usm_type,
            )
        if self.alignment is None:
            return self.general(placement, arrays)
        return self.as_arrays(self.alignment, arrays)

    # -- array operations --------------------------------------------------------------------

    def as_arrays(self, each: Aligned, arrays: Sequence[ndarray]) -> ndarray:
        """Compute it by array operations, which stay pending."""
        contracted = self.contracted
        if each.kind == "product":
            result = product(_OPERATIONS, each, arrays[0], arrays[1])
        else:
            count = len(each.order)
            lined = [
                line_up(_OPERATIONS, x, axes, count)
                for x, axes in zip(arrays, each.axes, strict=False)
            ]
            if each.kind == "map":
                result = _combined(ew, _as_array, contracted, lined)
                if ignores_nan(contracted):
                    result = _without_nan(ew, contracted.aggregation, result)
            else:
                result = self.reduced_in_memory_order(lined, each.kept)
        return result if result.shape == self.shape else reshape(result, self.shape)

    def reduced_in_memory_order(self, lined: Sequence[ndarray], kept: int) -> ndarray:
        """Return the combination reduced over all axes except the first, in memory order."""
        largest = max(lined, key=lambda x: x.size)
        steps = largest._node.strides
        order = sorted(range(len(steps)), key=lambda axis: -abs(steps[axis]))
        if order != sorted(order):
            lined = [permute_dims(x, order) for x in lined]
        inner = tuple(at for at, axis in enumerate(order) if axis >= kept)
        contracted = self.contracted
        result = reduced(
            contracted.aggregation,
            _combined(ew, _as_array, contracted, lined),
            inner,
            contracted.dtype,
            contracted.propagates_nan,
        )
        now = [axis for axis in order if axis < kept]
        if now != sorted(now):
            result = copy_of(permute_dims(result, [now.index(axis) for axis in range(kept)]))
        return result

    # -- the general case --------------------------------------------------------------------

    def general(self, placement: Placement, arrays: Sequence[ndarray]) -> ndarray:
        """Compute it on the host if it is small, else by a kernel."""
        if self.is_for_host(placement):
            views = host_views("contraction", *arrays)
            if views is not None:
                plan = self.host_plan()
                if plan is not None:
                    values = plan(views).reshape(self.shape)
                    return from_host(values, placement.queue, placement.usm_type)
        return self.pending(arrays)

    def is_for_host(self, placement: Placement) -> bool:
        """Return whether it is small, and the host can access the memory."""
        return (
            self.is_small
            and config.host_tier
            and is_made_by_host(prod(self.shape), placement.queue, placement.usm_type)
        )

    def host_plan(self) -> _HostPlan | None:
        """Return the points for the host; ``None`` if there are too many."""
        if self._on_host is None:
            domain = self.contracted.domain
            assert domain is not None
            points = enumerated(domain, MAX_HOST_POINTS)
            if points is None:
                return None
            self._on_host = _HostPlan(self.contracted, points)
        return self._on_host

    @cached_property
    def text(self) -> Text:
        """Return the kernel's source, for contiguous arrays."""
        return self.text_for(self._contiguous)

    @cached_property
    def _contiguous(self) -> Strides:
        """Return the strides of contiguous operands."""
        shapes = [tuple(size for _, size in one) for one in self.contracted.space.operands]
        if self.contracted.has_default:
            shapes.append(self.shape)
        return tuple(
            contiguous_strides(shape, dtype.itemsize)
            for shape, dtype in zip(shapes, self.dtypes, strict=True)
        )

    def text_for(self, strides: Strides, tail: Tail | None = None, has_groups: bool = True) -> Text:
        """Return the kernel's source, for operands with strides in bytes."""
        found = self._texts.get((strides, tail, has_groups))
        if found is None:
            steps = _in_elements(strides, self.dtypes)
            found = text_of(self.contracted, self.dtypes, steps, tail, has_groups)
            self._texts[strides, tail, has_groups] = found
        return found

    @cached_property
    def _shape_in_kernel(self) -> tuple[int, ...]:
        """Return the shape of the kernel's output, with partial results along a last axis."""
        return (*self.shape, self.text.parts) if self.text.parts else self.shape

    def _whole(self, result: ndarray) -> ndarray:
        """Return the result from the kernel's output."""
        if not self.text.parts:
            return result
        contracted = self.contracted
        last = (len(self.shape),)
        return reduced(
            contracted.aggregation, result, last, contracted.dtype, contracted.propagates_nan
        )

    def launch(self, queue: Any, tail: Tail | None, strides: Strides) -> ContractionLaunch:
        """Return the launch of its kernel, for operands with strides in bytes."""
        text = self.text_for(strides, tail, traits_of(queue).has_groups)
        arrays = [dtype.str for dtype in self.dtypes]
        scalars: tuple[str, ...] = ()
        output = self.contracted.dtype.str
        if tail is not None:
            arrays += [dtype for dtype, _ in tail.arrays]
            scalars, output = tail.scalars, tail.dtype
        structure = ContractionStructure(
            text.source,
            (*arrays, output),
            scalars,
            len(text.numbers),
            len(text.items),
            text.grouped,
        )
        return ContractionLaunch(structure, text.numbers, *_range_on(queue, text))

    # -- pending -----------------------------------------------------------------------------

    def pending(self, arrays: Sequence[ndarray]) -> ndarray:
        """Return it as a pending value, which is fused with later operations if useful."""
        nodes = [x._node for x in arrays]
        if not _placement.in_force:
            # They need memory anyway; their work begins while the next operations are recorded.
            whole = nodes[: len(self.contracted.space.operands)]
            late = [node for node in whole if node.layout is None and node.cost >= REDUCTION_COST]
            if late:
                evaluate.evaluate(*late)
        op, axes, numbers = self._operation(tuple(node.strides for node in nodes))
        queue, usm_type, shape = nodes[0].queue, nodes[0].usm_type, self._shape_in_kernel
        placement = Placement(queue, arrays[0].usm_type)
        operands: tuple[Node | Scalar, ...] = (
            *nodes,
            *(index_along(placement, shape, axis) for axis in axes),
            *map(Scalar, numbers),
        )
        signature = (*self.dtypes, *[INT64] * (len(axes) + len(numbers)), self.contracted.dtype)
        node = Node(op, operands, signature, shape, prod(shape), queue, usm_type)
        return self._whole(array_of_node(node))

    def _operation(self, strides: Strides) -> tuple[Contraction, tuple[int, ...], tuple[int, ...]]:
        """Return the operation for operands with strides in bytes, its axes, and its numbers."""
        found = self._operations.get(strides)
        if found is None:
            count = len(self.contracted.space.operands)
            text = ""
            axes: tuple[int, ...] = ()
            numbers: tuple[int, ...] = ()
            if not self.text.parts and not self.text.is_tiled:
                text, axes, numbers = expression_of(
                    self.contracted, self.dtypes, _in_elements(strides[:count], self.dtypes)
                )
            op = contraction(
                "contraction",
                self.contracted.text,
                count,
                "a contraction with no other operation in its kernel: " + self.contracted.text,
                lambda _: -(-self._points // prod(self._shape_in_kernel)),
                expression=text,
                launch=lambda queue, tail: self.launch(queue, tail, strides),
                takes_tail=self.text.takes_tail,
                shape=self._shape_in_kernel,
            )
            found = self._operations[strides] = op, axes, numbers
        return found


def _in_elements(strides: Strides, dtypes: Sequence[DType]) -> Strides:
    """Return strides in elements."""
    return tuple(
        tuple(each // dtype.itemsize for each in one)
        for one, dtype in zip(strides, dtypes, strict=False)
    )


def _range_on(queue: Any, text: Text) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the range of a kernel, in groups as large as the queue's device supports."""
    if not text.grouped:
        return text.items, None
    most = min(traits_of(queue).group, 2048)
    *rows, across, lanes = text.items
    along = max(each for each in range(1, lanes + 1) if lanes % each == 0 and each <= most)
    width = max(1, min(MAX_ACROSS, most // along, across))
    whole = -(-across // width) * width
    return (*rows, whole, lanes), (*[1] * len(rows), width, along)


def merged(x: ndarray, shape: tuple[int, ...]) -> ndarray:
    """Return a contraction with merged axes, which is pending as before."""
    node = x._node
    if node.layout is not None or type(node.op) is not Contraction or not node.op.takes_tail:
        return reshape(x, shape)
    attributes = shape, node.size, node.queue, node.usm_type
    return array_of_node(Node(node.op, node.operands, node.signature, *attributes))


# -- the host ------------------------------------------------------------------------------------


class _HostPlan:
    """The valid points of a small contraction, as indices of its operands."""

    def __init__(self, contracted: Contracted, points: Points) -> None:
        domain = contracted.domain
        assert domain is not None
        self.contracted = contracted
        shapes = [tuple(size for _, size in one) for one in contracted.space.operands]
        self.positions = [linear(domain, at, shape, points) for at, shape in enumerate(shapes)]
        self.written = np.flatnonzero(points.counts)
        self.starts = np.cumsum(points.counts)[self.written] - points.counts[self.written]
        self.elements = len(points.counts)
        self.is_single = bool((points.counts <= 1).all())

    def __call__(self, views: Sequence[np.ndarray]) -> np.ndarray:
        contracted = self.contracted
        with np.errstate(all="ignore"):
            parts = [
                view.reshape(-1)[position]
                for view, position in zip(views, self.positions, strict=False)
            ]
            values = _combined(np, _as_host_array, contracted, parts)
            if ignores_nan(contracted):
                values = _without_nan(np, contracted.aggregation, values)
            if not self.is_single:
                values = _folded(contracted.aggregation, values, self.starts, contracted.dtype)
        if len(self.written) == self.elements:
            return values
        if contracted.has_default:
            result = views[-1].reshape(-1).copy()
        else:
            result = np.zeros(self.elements, contracted.dtype)
        result[self.written] = values
        return result


#: The conversions of values to a dtype, for arrays and on the host.
_as_array = partial(astype_array, copy=False)
_as_host_array = partial(np.ndarray.astype, copy=False)


def _combined(
    xp: Any, cast: Callable[..., Any], contracted: Contracted, operands: Sequence[Any]
) -> Any:
    """Return the combination of operands that broadcast, by the functions of ``xp``."""
    dtype, combination = contracted.dtype, contracted.combination
    if combination in ("==", "?"):
        equal = xp.equal(*(cast(x, contracted.compared) for x in operands[:2]))
        if combination == "==":
            return equal
        return cast(xp.where(equal, cast(operands[2], dtype), 0), dtype)
    values = [cast(x, dtype) for x in operands]
    if not combination:
        return values[0]
    if dtype == BOOL:
        return (xp.logical_and if combination == "*" else xp.logical_or)(*values)
    return (xp.multiply if combination == "*" else xp.add)(*values)


def _folded(aggregation: str, values: np.ndarray, starts: np.ndarray, dtype: DType) -> np.ndarray:
    if not len(starts):
        return values[:0]
    if dtype == BOOL:
        fold = np.logical_or if aggregation in "+>" else np.logical_and
        return fold.reduceat(values, starts)
    if aggregation in "><":
        return (np.maximum if aggregation == ">" else np.minimum).reduceat(values, starts)
    return (np.add if aggregation == "+" else np.multiply).reduceat(values, starts, dtype=dtype)


def ignores_nan(contracted: Contracted) -> bool:
    """Return whether a contraction is a maximum or minimum of floats that ignores NaN."""
    is_extreme = contracted.aggregation in "><" and contracted.dtype.kind == "f"
    return is_extreme and not contracted.propagates_nan


def _without_nan(xp: Any, aggregation: str, x: Any) -> Any:
    """Return values with NaN replaced by the initial value of a maximum or minimum."""
    worst = -math.inf if aggregation == ">" else math.inf
    return xp.where(xp.equal(x, x), x, worst)


def reduced(
    aggregation: str,
    x: ndarray,
    axes: tuple[int, ...],
    dtype: DType,
    propagates_nan: bool = False,
) -> ndarray:
    """Return an aggregation of array elements along axes; the accumulator has the dtype."""
    if dtype == BOOL:
        return (reductions.any if aggregation in "+>" else reductions.all)(x, axis=axes)
    if aggregation == "+":
        return reductions.sum(x, axis=axes, dtype=dtype)
    if aggregation == "*":
        return reductions.prod(x, axis=axes, dtype=dtype)
    if propagates_nan:
        return (reductions.max if aggregation == ">" else reductions.min)(x, axis=axes)
    if dtype in (FLOAT32, FLOAT64) and x.size > limits.host_elements:
        name = "fmax" if aggregation == ">" else "fmin"
        return reductions.reduce_over(name, x, axes, dtype, None, False)
    if dtype.kind == "f":
        x = _without_nan(ew, aggregation, x)
    return (reductions.max if aggregation == ">" else reductions.min)(x, axis=axes)
