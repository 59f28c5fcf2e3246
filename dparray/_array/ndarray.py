"""The array: its state, its memory, and its views.

An array is a layout (shape, strides, offset, dtype) over a block of USM memory that was allocated
on one queue. Views share the block. It is in one of three states:

buffer              The values exist. They are in a block; or the fast path has computed them on the
                    host (`_block` is ``None``, `_host_view` owns them), and they get a block when
                    something needs one: memory of the pool costs more than a small operation.
lazy                There is an expression, `_node_kept`, and no memory.
view of a lazy      The same, and an `_alias` that says where the elements will be in the memory of
array               the array that it is a view of.

:func:`has_memory` is true of a buffer, :func:`living_alias` finds a view of a lazy array. States
change in one direction: evaluation makes buffers of the others.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dparray import _hooks, _layout, config
from dparray._driver import driver_of, sycl_queue_of, traits_of
from dparray._driver.interface import Queue
from dparray._evaluate import deferred_placement, dependents, evaluate, host, limits, writes
from dparray._graph.node import Node, pending_order
from dparray._graph.reductions import Reduce
from dparray._graph.views import view_of
from dparray._layout import Block, Layout
from dparray._runtime import queues
from dparray.device import Device
from dparray.memory import copies, pool
from dparray.memory.blocks import BorrowedBlock
from dparray.memory.libraries import library_of, usm
from dparray.memory.packed import PackedArray

if TYPE_CHECKING:
    import dpctl

    from dparray._array.methods import Methods
else:
    from dparray._array.fastpath import Base as Methods

Function = TypeVar("Function", bound=Callable[..., Any])

SEQUENCES = (list, tuple, range)
HOST_TYPES = (np.ndarray, np.generic)


new_object = object.__new__
config_values = vars(config)


def _kept(slot: str, make: Callable[[ndarray], Any]) -> Any:
    """Return a property whose value is computed at its first use, and stored in a slot."""

    def read(self: ndarray) -> Any:
        try:
            return getattr(self, slot)
        except AttributeError:
            value = make(self)
            setattr(self, slot, value)
            return value

    return property(read)


class ndarray(Methods):
    """An n-dimensional array in USM memory, bound to the queue it was allocated on.

    Made by the creation functions (:func:`dparray.asarray`, :func:`dparray.zeros`, ...), or
    uninitialized as in NumPy: ``dp.ndarray(shape, dtype=...)``. Operations run on
    :attr:`queue` and give arrays on the same queue; arrays on different queues do not mix
    (:class:`dparray.ExecutionPlacementError`). The values stay on the device until they are asked
    for: :meth:`asnumpy`, :meth:`item`, ``float(x)``, printing.

    Example:
        >>> x = dp.asarray([1.0, 2.0, 3.0], dtype="float32")
        >>> y = x * 2 + 1
        >>> y.asnumpy()
        array([3., 5., 7.], dtype=float32)
        >>> y.usm_type
        'device'
    """

    # Above NumPy's 0, below Dask's 11: Dask contracts by the class with the highest priority.
    __array_priority__ = 10.0

    # Slots that are filled on first use have a property beside them. There is no `__getattr__`:
    # with one, the interpreter reads every slot ten times slower.
    __slots__ = (
        "__weakref__",
        "_alias",
        "_block",
        "_dtype",
        "_host_view",
        "_library_array_kept",
        "_node_kept",
        "_offset",
        "_packed",
        "_shape",
        "_size",
        "_strides",
        "queue",
        "usm_type",
    )

    #: NumPy leaves mixed operations to us, so that they raise instead of copying to the host.
    __array_ufunc__ = None

    _alias: _Alias | None
    _block: Any
    _dtype: np.dtype[Any]
    _node_kept: Node
    _offset: int
    #: The values for the host to read when the queue is idle: a view of the memory, or the values
    #: themselves (they own their data) if they are in no USM memory yet. ``None`` of a pending
    #: array, of a large one before it is first indexed (:func:`host_view`), and where the host may
    #: not touch the memory.
    _host_view: np.ndarray | None
    #: The array as a kernel argument, after its first use as one (:func:`packed`).
    _packed: PackedArray | None
    _shape: tuple[int, ...]
    _size: int
    _strides: tuple[int, ...]
    queue: Queue
    usm_type: str

    # Attributes that other modules set; they are not methods.
    flags: Any
    flat: Any
    _take_advanced: Callable[[Any], ndarray]
    _put_advanced: Callable[[Any, Any], None]

    @classmethod
    def _new(
        cls, queue: Queue, usm_type: str, block: Block | None, host_view: Any = None
    ) -> ndarray:
        """Return a new array; `new_array` in `_fastpath.c` is the same, compiled.

        The three below call it, one for each way to a state: of a layout and of values on the host
        (a buffer), and of an expression (lazy, or a view of a lazy array).
        """
        self = new_object(cls)
        self.queue = queue
        self.usm_type = usm_type
        self._block = block
        self._host_view = host_view
        self._alias = self._packed = None
        return self

    @classmethod
    def _from_layout(
        cls,
        block: Block,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> ndarray:
        """Return a buffer: a layout over memory."""
        self = cls._new(block.queue, block.usm_type, block)
        self._offset = offset
        self._shape = shape
        self._strides = strides
        self._dtype = dtype
        self._size = prod(shape)
        self._host_view = _view_for_host(self)
        return self

    @classmethod
    def _from_host_value(cls, values: np.ndarray, queue: Queue, usm_type: str) -> ndarray:
        """Return a buffer of values that the host has computed, which no other array has.

        They go to USM memory when something needs them there.
        """
        return cls._new(queue, usm_type, None, values)

    @classmethod
    def _pending(cls, node: Node) -> ndarray:
        """Return a lazy array: its values are still an expression."""
        self = cls._new(node.queue, node.usm_type, None)
        self._node_kept = node
        node.array = weakref.ref(self)
        self._shape = node.shape
        self._dtype = node.dtype
        self._size = node.size
        if _hooks.subscribers:
            _hooks.emit("defer", array=self)
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape. Another shape with the same size can be assigned if that needs no copy."""
        try:
            return self._shape
        except AttributeError:
            self._shape = shape = self._host_view.shape  # type: ignore[union-attr]
            return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        try:
            return self._dtype
        except AttributeError:
            self._dtype = dtype = self._host_view.dtype  # type: ignore[union-attr]
            return dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        try:
            return self._size
        except AttributeError:
            self._size = size = self._host_view.size  # type: ignore[union-attr]
            return size

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighboring elements along each axis."""
        try:
            return self._strides
        except AttributeError:
            _locate(self)
            return self._strides

    @property
    def offset(self) -> int:
        """Bytes from the beginning of the block to the first element."""
        try:
            return self._offset
        except AttributeError:
            _locate(self)
            return self._offset

    @property
    def block(self) -> Any:
        """The memory; reading this property computes a pending array."""
        if self._block is None:
            _give_memory(self)
        return self._block

    @property
    def _node(self) -> Node:
        """The values as an operand of expressions."""
        try:
            return self._node_kept
        except AttributeError:
            self._node_kept = node = Node.leaf(materialize(self), self.queue, self.usm_type)
            return node

    _library_array = _kept(
        "_library_array_kept", lambda self: library_of(self.queue).array(materialize(self))
    )

    @property
    def is_pending(self) -> bool:
        """Whether the values are still an expression that has not been evaluated."""
        return self._host_view is None and self._node.layout is None

    @property
    def is_only_on_host(self) -> bool:
        """Whether the host has computed the values and they are not in USM memory yet."""
        return self._host_view is not None and self._host_view.base is None and self.size > 0

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> Device:
        """The device of the array; ``other.to_device(x.device)`` moves another array there."""
        return Device(self.queue)

    @property
    def sycl_queue(self) -> dpctl.SyclQueue:
        """The ``dpctl.SyclQueue``, of an array on a device of SYCL."""
        return sycl_queue_of(self, self.queue)

    @property
    def sycl_device(self) -> dpctl.SyclDevice:
        """The ``dpctl.SyclDevice`` of the queue."""
        return self.sycl_queue.sycl_device

    @property
    def sycl_context(self) -> dpctl.SyclContext:
        """The ``dpctl.SyclContext`` of the queue."""
        return self.sycl_queue.sycl_context

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        """The array for other USM libraries, over the same memory."""
        sycl_queue_of(self, self.queue)
        writes.share(self.block)
        interface: dict[str, Any] = self._library_array.__sycl_usm_array_interface__
        if _layout.shows_elements_twice(self.shape, self.strides):
            # A write would change several elements.
            interface["data"] = (interface["data"][0], True)
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for CuPy, PyTorch and other libraries of CUDA, over the same memory: version 3,
        with the stream that orders its work.
        """
        queue = self.queue
        if traits_of(queue).driver != "cuda":
            raise AttributeError(f"an array on {Device(queue)} is not in memory of CUDA")
        writes.share(self.block)
        driver = driver_of(queue)
        with driver.foreign_calls(queue):
            is_read_only = _layout.shows_elements_twice(self.shape, self.strides)
            return {
                "shape": self.shape,
                "typestr": self.dtype.str,
                "data": (self.block.pointer + self.offset, is_read_only),
                "strides": self.strides,
                "stream": driver.address_of(queue),
                "version": 3,
            }

    @property
    def __usm_ndarray__(self) -> Any:
        """The array for dpnp and dpnp.tensor, over the same memory and on the same queue object."""
        sycl_queue_of(self, self.queue)
        writes.share(self.block)
        return usm.own_tensor_of(materialize(self))

    @property
    def usm_data(self) -> Any:
        """The memory as a ``dpctl.memory`` object, whose first byte is that of the block.

        The first element is :attr:`offset` bytes further. Write there in order with the work on the
        queue: after ``dp.synchronize(x)``, or on the queue itself.
        """
        sycl_queue_of(self, self.queue)
        writes.share(self.block)
        return self.block.memory

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array with 0 dimensions")
        return self.shape[0]

    def _view(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        dtype: np.dtype[Any] | None = None,
    ) -> ndarray:
        """Another array over the same block, or of the same pending values.

        Shape, strides and offset belong to a view of this array, relative to its own layout.
        """
        if self._block is None and self._host_view is None:
            return _view_of_pending(self, shape, strides, offset, dtype)
        dtype = self.dtype if dtype is None else dtype
        return ndarray._from_layout(self._block or self.block, offset, shape, strides, dtype)


def as_method(function: Function) -> Function:
    """Make a public function a method of arrays too; the array is its first parameter."""
    setattr(ndarray, function.__name__, function)
    return function


def array_method(name: str) -> Callable[[Function], Function]:
    """Make a function the array method of a name; the array is its first parameter."""

    def attach(function: Function) -> Function:
        method: Any = function
        method.__name__, method.__qualname__ = name, f"ndarray.{name}"
        setattr(ndarray, name, method)
        return function

    return attach


def materialize(x: ndarray) -> Layout:
    """Return the layout of an array's values; computes them if they are pending."""
    if x._packed is not None:
        return x._packed.layout
    if x._block is None:
        _give_memory(x)
    try:
        return Layout(x._block, x._offset, x._shape, x._strides, x._dtype)
    except AttributeError:
        _fill_slots(x)
        return Layout(x._block, x._offset, x._shape, x._strides, x._dtype)


def packed(x: ndarray) -> PackedArray:
    """Return an array as a kernel argument, which the array keeps; computes it if it is pending."""
    if x._packed is None:
        x._packed = PackedArray(materialize(x))
    return x._packed


#
# Small arrays that the host can access are computed eagerly with NumPy, which costs less than a
# graph node. The result is in no USM memory until something needs it there. Nothing is refused
# here: anything unusual falls through to the lazy path, which does all checks.


def host_view(x: ndarray) -> np.ndarray | None:
    """Return the host's view of an array that is about to be indexed, if it is accessible."""
    if x._host_view is None and x._block is not None:
        x._host_view = _view_for_host(x, is_asked_for=True)
    return x._host_view


def _view_for_host(x: ndarray, is_asked_for: bool = False) -> np.ndarray | None:
    """Return the host's view of an array in memory; a large array gets it at the first use."""
    if (
        (is_asked_for or x._size * min(x._dtype.itemsize, 8) <= 8 * limits.host_elements)
        and config_values.get("host_tier", False)
        and host.COMPUTES_AT_ONCE
        and x._block.memory is not None
        # NumPy promotes bfloat16 by other rules; a call for each new array would cost time.
        and x._dtype.char != "E"  # type: ignore[comparison-overlap]
        and host.can_compute(x.queue, x.usm_type)
        # The fast path writes through the view without any check.
        and not (type(x._block) is BorrowedBlock and x._block.is_read_only)
    ):
        return copies.host_view(Layout(x._block, x._offset, x._shape, x._strides, x._dtype))
    return None


def _fill_slots(x: ndarray) -> None:
    """Set the layout of an array in memory from its host view."""
    seen: Any = x._host_view
    x._shape, x._strides, x._dtype, x._size = seen.shape, seen.strides, seen.dtype, seen.size
    x._offset = seen.__array_interface__["data"][0] - x._block.pointer


def _locate(x: ndarray) -> None:
    """Set the strides and the offset that an array has, or will have, in its block."""
    seen = x._host_view
    if seen is not None and seen.base is not None:
        _fill_slots(x)
        return
    alias = living_alias(x) if seen is None else None
    if alias is not None and alias.view() is x:
        _give_memory(x)  # It is part of another array, which determines its location.
        return
    x._offset = 0
    x._strides = x._node_kept.strides if seen is None else seen.strides


def _give_memory(x: ndarray) -> None:
    """Evaluate a pending array, or store host-computed values in USM memory."""
    values = x._host_view
    if values is None:
        with dependents.lock:
            _give_pending_memory(x)
        return
    block = pool.allocate(x.queue, x.usm_type, values.nbytes)
    queues.wait_to_write(block)  # There may have been another view before.
    view: np.ndarray = np.ndarray(values.shape, values.dtype, block.host_bytes, 0, values.strides)
    view[...] = values
    with dependents.lock:
        if x._host_view is values:  # No other thread has done this meanwhile.
            x._offset, x._strides = 0, view.strides
            x._host_view, x._block = view, block


# A view of a pending array is a separate expression over views of the leaves. The two arrays have
# the same values until one of them is written. Before the first write, the array gets memory, which
# both share. Only one such view is kept: a second one makes the memory worth its cost.


class _Alias:
    """A pending array, a view of it, and the position of the view in the array's memory."""

    __slots__ = ("offset", "strides", "view", "whole")

    def __init__(
        self, whole: ndarray, view: ndarray, strides: tuple[int, ...], offset: int
    ) -> None:
        self.whole = weakref.ref(whole)
        self.view = weakref.ref(view)
        self.strides = strides
        self.offset = offset


#: Views of more expensive expressions do not become separate expressions.
_MAX_VIEWED_COST = 64


def has_memory(x: ndarray) -> bool:
    """Return whether an array has memory, without allocating it."""
    return x._block is not None or x._host_view is not None


def living_alias(x: ndarray) -> _Alias | None:
    """Return the pair of a pending array and its view, if the array belongs to such a pair."""
    alias = x._alias
    if alias is not None and alias.whole() is not None and alias.view() is not None:
        return alias
    return None


def _was_viewed(x: ndarray) -> bool:
    """Return whether a pending array has or had a view, as in a loop over its rows."""
    alias = x._alias
    return alias is not None and (alias.whole() is x or living_alias(x) is not None)


def _view_of_pending(
    x: ndarray,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dtype: np.dtype[Any] | None,
) -> ndarray:
    """Return a view of an array without memory: pending too if possible."""
    if dtype is None:
        with dependents.lock:
            node = x._node
            if node.layout is None and not _was_viewed(x):
                view = _with_reduced_axes(node, shape)
                if view is None:
                    evaluate.compute_inner(node)
                    if node.cost <= _MAX_VIEWED_COST and node.layout is None:
                        view = view_of(node, shape, strides, offset)
                if view is not None:
                    if deferred_placement.nodes:
                        deferred_placement.note_as(node, view)
                    result = ndarray._pending(_registered(view))
                    x._alias = result._alias = _Alias(x, result, strides, offset)
                    return result
    give_memory(x)
    return ndarray._from_layout(x.block, offset, shape, strides, dtype or x.dtype)


def give_memory(x: ndarray) -> None:
    """Allocate memory for an array, since views will share it; its values are not needed yet."""
    with dependents.lock:
        if not has_memory(x):
            _give_pending_memory(x)


def _with_reduced_axes(node: Node, shape: tuple[int, ...]) -> Node | None:
    """Return a pending reduction with the reduced axes, for views like ``x.sum(1)[:, None]``."""
    op, size = node.op, node.size
    if not isinstance(op, Reduce) or op.merges or op.keepdims or size < 2:
        return None
    walked = node.operands[0]
    assert isinstance(walked, Node)
    if shape != _layout.reduced_shape(walked.shape, op.axes, True):
        return None
    op = op._replace(keepdims=True)
    return Node(op, node.operands, node.signature, shape, size, node.queue, node.usm_type)


def _registered(node: Node) -> Node:
    """Return a new expression, registered with its operands; computed immediately if an operand is
    in memory that is shared with another library.
    """
    may_wait = True
    for inner in pending_order([node]):
        for operand in inner.operands:
            if type(operand) is Node:
                may_wait &= dependents.add_dependent(inner, operand)
    if not may_wait:
        evaluate.evaluate(node)
    return node


def _give_pending_memory(x: ndarray) -> None:
    """Compute a pending array, and bind its pending view to the memory."""
    alias = x._alias
    whole, view = (None, None) if alias is None else (alias.whole(), alias.view())
    if whole is None or view is None:
        whole, view = x, None
    node = whole._node_kept
    if node.layout is None:
        evaluate.evaluate(node)
    layout = node.layout
    assert layout is not None
    if alias is not None and view is not None:
        # The view first: if an interrupt comes between the two, the node still leads to the memory.
        _bind(view, layout.block, layout.offset + alias.offset, alias.strides)
        del view._node_kept  # The view's separate expression is no longer needed.
    _bind(whole, layout.block, layout.offset, layout.strides)


def _bind(x: ndarray, block: Block, offset: int, strides: tuple[int, ...]) -> None:
    """Bind a pending array to its memory."""
    x._alias = None
    x._offset, x._strides = offset, strides
    x._block = block
    x._host_view = _view_for_host(x)


def take_layout_of(x: ndarray, view: ndarray) -> None:
    """Make an array the same as a view of the same memory; other views of it are unaffected."""
    x._block, x._offset, x._dtype, x._size = view.block, view.offset, view.dtype, view.size
    x._shape, x._strides = view.shape, view.strides
    x._alias = x._packed = None
    for name in ("_node_kept", "_library_array_kept"):
        with contextlib.suppress(AttributeError):
            delattr(x, name)
    x._host_view = _view_for_host(x)


def readable_layout(x: ndarray) -> Any:
    """Return a layout for reading; a pending view does not evaluate its whole array."""
    if x._block is not None or x._host_view is not None:
        return x
    if x._alias is None or living_alias(x) is None:
        with dependents.lock:
            _give_pending_memory(x)
    else:
        evaluate.evaluate(x._node)
    return x._node_kept.layout
