"""``dp.implement``: a user's own implementation of an operation for a kind of device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np

from dparray import config
from dparray._array.apply import astype_array
from dparray._array.assignment import assign
from dparray._array.ndarray import ndarray
from dparray._evaluate import implementations
from dparray._evaluate.implementations import Implementation
from dparray._functions.public import operation_of
from dparray._functions.user_functions import ElementwiseFunction, ReductionFunction
from dparray._graph.node import Scalar
from dparray._graph.reductions import Reduce
from dparray._layout import Layout
from dparray.device import describe_queue
from dparray.exceptions import ArgumentError, DTypeError, ExecutionPlacementError, ShapeError

__all__ = ["implement"]

Function = TypeVar("Function", bound=Callable[..., Any])

_TYPES = ("cpu", "gpu", "accelerator")


class ImplementationRegistry:
    """The implementation of an operation, made by :func:`implement`; a call sets its function."""

    def __init__(self, operation: Any, name: str, device_type: str | None, when: Any) -> None:
        self._operation, self._name = operation, name
        self._device_type, self._when = device_type, when
        self._own: Implementation | None = None

    def __repr__(self) -> str:
        return f"<{self._own.reason if self._own else f'no implementation of {self._name}'}>"

    def __call__(self, function: Function) -> Function:
        """Use a function for the operation from now on, and return it."""
        if not callable(function):
            raise ArgumentError(f"implement: expects a function, not {function!r}")
        self.remove()
        where = f" for {self._device_type} devices" * (self._device_type is not None)
        called = getattr(function, "__qualname__", repr(function))
        reason = f"{called} implements {self._name}{where}"
        compute = partial(_compute, function, f"{called}, which implements {self._name},")
        self._own = Implementation(compute, self._device_type, self._when, reason)
        before = implementations.registered.get(self._operation, ())
        implementations.set_for(self._operation, (*before, self._own))
        return function

    def remove(self) -> None:
        """Compute the operation without the function again, also where it is already pending."""
        before = implementations.registered.get(self._operation, ())
        if self._own in before:
            left = [each for each in before if each is not self._own]
            implementations.set_for(self._operation, left)
        self._own = None


def implement(
    operation: Callable[..., Any],
    *,
    device_type: str | None = None,
    when: Callable[..., bool] | None = None,
) -> ImplementationRegistry:
    """Give an operation one's own implementation for a kind of device.

    Plans and policies call it wherever they compute the operation. It takes arrays in the dtypes in
    which the operation computes, not broadcast, and Python scalars; a reduction also takes
    ``axis``, a tuple, and ``keepdims``. The result must have the operation's shape and dtype, on
    the same queue; it is copied, unless it is pending. Inside the function, operations have no
    implementations. It must not wait for other threads that use dparray, since they wait for it.
    While an implementation for CPU devices exists, small arrays there are computed later, as large
    ones are. Kernels and native loops of :func:`jit` do not use implementations.

    Args:
        operation: an element-wise function such as ``exp``, ``matmul``, or a reduction: ``sum``,
            ``prod``, ``max``, ``min``, ``all``, ``any``, ``argmax``, ``argmin``, ``mean``, ``var``.
            Also a function made by :func:`reduction`, or by :func:`elementwise` with one result.
        device_type: ``"cpu"``, ``"gpu"`` or ``"accelerator"``; all by default.
        when: a function of the operands that returns whether they are accepted. They have a
            ``shape`` and a ``dtype``; it is called once for each plan. The last accepting
            implementation is used.

    Returns:
        A decorator. Its method ``remove`` takes the last decorated function out of use.

    Raises:
        ArgumentError: the operation is not one of these, or the kind of device is unknown. Also if
            the function returns something else than an array, when the operation is computed.
        DTypeError, ShapeError, ExecutionPlacementError: the same for an array of another dtype,
            shape or queue.

    Example:
        >>> in_blocks = dp.implement(dp.matmul, when=lambda a, b: a.shape == (4, 2))
        >>> @in_blocks
        ... def product(a, b):
        ...     return dp.concatenate([a[:2] @ b, a[2:] @ b])
        >>> (dp.ones((4, 2)) @ dp.ones((2, 1))).ravel().tolist()
        [2.0, 2.0, 2.0, 2.0]
        >>> in_blocks.remove()
    """
    if device_type not in (None, *_TYPES):
        raise ArgumentError(
            f"implement: device_type must be one of {', '.join(map(repr, _TYPES))}, or None for "
            f"all devices; not {device_type!r}"
        )
    name = getattr(operation, "__name__", "")
    is_single = isinstance(operation, ElementwiseFunction) and operation.has_one_result
    is_own = is_single or isinstance(operation, ReductionFunction)
    row = operation if is_own else operation_of(operation)
    if row is None:
        raise ArgumentError(
            f"implement: {operation!r} is not an operation of plans; give an element-wise function "
            "such as dp.exp, dp.matmul, a reduction such as dp.sum, or a function made by "
            "dp.elementwise (with one result) or dp.reduction"
        )
    return ImplementationRegistry(row, name, device_type, when)


def _compute(
    function: Callable[..., Any],
    label: str,
    op: Any,
    signature: Sequence[np.dtype[Any]],
    given: Sequence[Layout | Scalar],
    output: Layout,
) -> None:
    """Call an implementation, and write its result to an array after checking it."""
    options: dict[str, Any] = {}
    if type(op) is Reduce:
        options = {"axis": op.axes, "keepdims": op.keepdims}
        x, *scalars = given
        if op.reduction.takes_correction:
            assert isinstance(x, Layout)
            count = prod([x.shape[axis] for axis in op.axes])
            options["correction"] = count - scalars[0].value  # type: ignore[union-attr]
        given = [x]
    values = [
        dtype.type(each.value).item()
        if isinstance(each, Scalar)
        else astype_array(ndarray._from_layout(*each), dtype, copy=False)
        for each, dtype in zip(given, signature, strict=False)
    ]
    out = ndarray._from_layout(*output)
    # An implementation runs on the queue of its operands, also under a placement policy.
    with config.override(implementations=False, placement="follow"):
        result = function(*values, **options)
        if not isinstance(result, ndarray):
            raise ArgumentError(
                f"{label} returned a {type(result).__name__}; return a dparray array, for example "
                "dp.asarray(result)"
            )
        if result.dtype != out.dtype:
            raise DTypeError(
                f"{label} returned {result.dtype}, not {out.dtype}; return "
                f"result.astype({out.dtype.name!r})"
            )
        if result.shape != out.shape:
            raise ShapeError(f"{label} returned the shape {result.shape}, not {out.shape}")
        if result.queue != out.queue:
            raise ExecutionPlacementError(
                f"{label} returned an array on {describe_queue(result.queue)}, not on "
                f"{describe_queue(out.queue)}; return result.to_device(x.queue)"
            )
        assign(out, result, label)
