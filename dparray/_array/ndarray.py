"""The array, and ``apply``: the way every elementwise operation takes.

An array is a layout (shape, strides, offset, dtype) over a block of USM memory that was allocated
on one queue. Views share the block.
"""

from __future__ import annotations

import contextlib
import math
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar

import numpy as np

from dparray import _dtypes, _hooks, _layout, config
from dparray._evaluate import evaluate, host
from dparray._evaluate import sample as _sample
from dparray._evaluate.schedule import MOST_LEAVES, MOST_WEIGHT
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import CONVERT, OPS, WHERE, Op
from dparray._graph.reductions import Reduce, Reduction
from dparray._graph.views import view_of
from dparray._layout import Layout
from dparray._placement import Placement, check_dtype, check_usm_type, common_placement
from dparray._runtime import access, device_facts, queues
from dparray._runtime.device_facts import computes_in_double
from dparray.device import Device, default_device, describe_queue
from dparray.exceptions import DparrayError, DTypeError, HostConversionError, ShapeError
from dparray.memory import blocks, copies, exchange, pool

if TYPE_CHECKING:
    import dpctl

    from dparray._array.methods import Methods
else:
    Methods = object

Function = TypeVar("Function", bound=Callable[..., Any])

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_NUMBERS = frozenset(np.dtype(name).char for name in _dtypes.NAMES) | {"q", "Q"}
#: More arrays than these are joined the long way, which looks at each once.
_MOST_JOINED = 64
_SEQUENCES = (list, tuple, range)
_HOST_TYPES = (np.ndarray, np.generic)
_WEAK_TYPES: dict[type, Any] = {bool: _dtypes.bool, int: int, float: float, complex: complex}


# -- operators ----------------------------------------------------------------------------------

Binary = Callable[["ndarray", Any], "ndarray"]
Unary = Callable[["ndarray"], "ndarray"]

# What the short way of small arrays looks at in every call; see "small arrays, at once" below.
_new = object.__new__
_array_type = np.ndarray
_working = queues.working
_options = vars(config)
_run_silently = host.run_silently
_REFUSALS = host.REFUSALS
_SCALARS = _dtypes.SCALARS


def _pair_operation(op: Op) -> Callable[[Any, Any], ndarray]:
    """An operation on two operands: of small arrays at once by the host, else :func:`_defer`."""
    compute = host.at_once(op)

    def operate(x1: Any, x2: Any) -> ndarray:
        if type(x1) is ndarray:
            place, first = x1, x1._on_host
            if type(x2) is ndarray:
                second = x2._on_host
                is_small = (
                    first is not None
                    and second is not None
                    and x2.sycl_queue is x1.sycl_queue
                    and x2.usm_type == x1.usm_type
                    and (first.shape == second.shape or _are_small_together(first, second))
                )
            else:
                second = x2
                is_small = first is not None and type(x2) in _SCALARS
        elif type(x2) is ndarray:
            place, first, second = x2, x1, x2._on_host
            is_small = second is not None and type(x1) in _SCALARS
        else:
            is_small = False
        if is_small and (
            (not _working and _options["host_tier"]) or host.is_ready(place.sycl_queue)
        ):
            try:
                values = _run_silently(compute, first, second)
            except _REFUSALS:
                values = host.call(compute, first, second)
                if values is None:
                    return _defer(op, (x1, x2), None)
            result = _new(ndarray)
            result._on_host = values if type(values) is _array_type else np.asarray(values)
            result._block = result._kernel_type = None
            result.sycl_queue = place.sycl_queue
            result.usm_type = place.usm_type
            return result
        return _defer(op, (x1, x2), None)

    return operate


def _single_operation(op: Op) -> Unary:
    """An operation on one operand: of a small array at once by the host, else :func:`_defer`."""
    compute = host.at_once(op)

    def operate(x: Any) -> ndarray:
        if (
            type(x) is ndarray
            and (seen := x._on_host) is not None
            and ((not _working and _options["host_tier"]) or host.is_ready(x.sycl_queue))
        ):
            try:
                values = _run_silently(compute, seen)
            except _REFUSALS:
                values = host.call(compute, seen)
                if values is None:
                    return _defer(op, (x,), None)
            result = _new(ndarray)
            result._on_host = values if type(values) is _array_type else np.asarray(values)
            result._block = result._kernel_type = None
            result.sycl_queue = x.sycl_queue
            result.usm_type = x.usm_type
            return result
        return _defer(op, (x,), None)

    return operate


#: Every operation as a function of its operands.
OPERATIONS: dict[Op, Callable[..., ndarray]] = {
    op: _single_operation(op) if op.arity == 1 else _pair_operation(op) for op in OPS.values()
}


def _binary_family(op: Op) -> tuple[Binary, Binary, Binary]:
    """The operator, its reflected form and its in-place form."""
    operate = OPERATIONS[op]
    compute = host.in_place(op)

    def reflected(self: ndarray, other: Any) -> ndarray:
        return operate(other, self)

    def in_place(self: ndarray, other: Any) -> ndarray:
        target = self._on_host
        if target is None or compute is None:
            return _defer(op, (self, other), self)
        if type(other) is ndarray:
            operand = other._on_host
            is_small = operand is not None and other.sycl_queue is self.sycl_queue
        else:
            operand = other
            is_small = type(other) in _SCALARS
        if is_small and _is_free_to_write(self):
            try:
                _run_silently(compute, target, operand, target)
            except _REFUSALS:
                if host.call(compute, target, operand, target) is None:
                    return _defer(op, (self, other), self)
            return self
        return _defer(op, (self, other), self)

    return operate, reflected, in_place


def _power_family() -> tuple[Binary, Binary, Binary]:
    """The operators of powers: NumPy's ``**`` squares masks in int8, its function in int64."""
    power, reflected, in_place = _binary_family(OPS["pow"])

    def power_or_square(self: ndarray, other: Any) -> ndarray:
        if type(other) in _dtypes.OF_NUMPY_SCALAR:
            other = _weaker_exponent(self.dtype.kind, other)
        if type(other) in (int, float) and other == 2 and self.dtype.kind == "b":
            return apply(OPS["square"], astype_array(self, _dtypes.int8))
        return power(self, other)

    return power_or_square, reflected, in_place


def _weaker_exponent(kind: str, exponent: Any) -> Any:
    """NumPy's scalar as the exponent of ``**``: weak where NumPy has a simpler operation for it.

    So ``x ** np.float64(2)`` is ``square(x)`` of the dtype of ``x``; the function ``pow`` promotes.
    """
    own = exponent.dtype.kind
    if own in "iu":
        is_simple = exponent == 2 or (kind in "fc" and exponent in (-1, 0, 1))
    else:
        simple = (-1.0, 0.0, 0.5, 1.0, 2.0) if kind in "fc" else (2.0,)
        is_simple = own == "f" and exponent in simple
    return exponent.item() if is_simple else exponent


def _kept(slot: str, make: Callable[[ndarray], Any]) -> Any:
    """A property that is made on first use and kept in a slot."""

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

    Made by the creation functions (:func:`dparray.asarray`, :func:`dparray.zeros`, ...), never
    directly. Operations run on :attr:`sycl_queue` and give arrays on the same queue; arrays on
    different queues do not mix (:class:`dparray.ExecutionPlacementError`). The values stay on the
    device until they are asked for: :meth:`asnumpy`, :meth:`item`, ``float(x)``, printing.

    Example:
        >>> import dparray as dp
        >>> x = dp.asarray([1.0, 2.0, 3.0], dtype="float32")
        >>> y = x * 2 + 1
        >>> y.asnumpy()
        array([3., 5., 7.], dtype=float32)
        >>> y.usm_type
        'device'
    """

    # What is made on first use has a property beside its slot. There is no `__getattr__`: with one,
    # the interpreter reads every slot ten times slower.
    __slots__ = (
        "__weakref__",
        "_alias",
        "_argument_kept",
        "_block",
        "_dtype",
        "_kernel_type",
        "_node_kept",
        "_offset",
        "_on_host",
        "_shape",
        "_size",
        "_strides",
        "_tensor_kept",
        "sycl_queue",
        "usm_type",
    )

    #: NumPy leaves mixed operations to us, so that they raise instead of copying to the host.
    __array_ufunc__ = None

    _alias: _Alias | None
    _block: Any
    _dtype: np.dtype[Any]
    _kernel_type: Any
    _node_kept: Node
    _offset: int
    #: What the host sees of a small array when the queue is idle: a view of its memory, or the
    #: values themselves (they own their data) if they are in no USM memory yet. ``None`` of a large
    #: array, of a pending one, and where the host may not touch the memory.
    _on_host: np.ndarray | None
    _shape: tuple[int, ...]
    _size: int
    _strides: tuple[int, ...]
    sycl_queue: dpctl.SyclQueue
    usm_type: str

    # From other modules, and no methods.
    flags: Any
    flat: Any
    _take_advanced: Callable[[Any], ndarray]
    _put_advanced: Callable[[Any, Any], None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(
            "dparray.ndarray is not made directly; use dp.asarray(...), dp.empty(...) or another "
            "creation function"
        )

    @classmethod
    def _from_layout(
        cls,
        block: Any,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> ndarray:
        """The one gate through which every array is made."""
        self = _new(cls)
        self._block = block
        self._offset = offset
        self._shape = shape
        self._strides = strides
        self._dtype = dtype
        self._size = prod(shape)
        self._kernel_type = None
        self.sycl_queue = block.queue
        self.usm_type = block.usm_type
        self._on_host = _seen_by_host(self)
        return self

    @classmethod
    def _pending(cls, node: Node) -> ndarray:
        """An array whose values are still an expression."""
        self = _new(cls)
        self._node_kept = node
        self._block = self._on_host = self._alias = self._kernel_type = None
        self._shape = node.shape
        self._dtype = node.dtype
        self._size = node.size
        self.sycl_queue = node.queue
        self.usm_type = node.usm_type
        return self

    @classmethod
    def _computed(cls, values: np.ndarray, queue: dpctl.SyclQueue, usm_type: str) -> ndarray:
        """An array of values that the host has computed and nobody else has.

        They go to USM memory when something needs them there.
        """
        self = _new(cls)
        self._on_host = values
        self._block = self._kernel_type = None
        self.sycl_queue = queue
        self.usm_type = usm_type
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents. Another shape of as many elements can be assigned where none is copied."""
        try:
            return self._shape
        except AttributeError:
            self._shape = shape = self._on_host.shape  # type: ignore[union-attr]
            return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        try:
            return self._dtype
        except AttributeError:
            self._dtype = dtype = self._on_host.dtype  # type: ignore[union-attr]
            return dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        try:
            return self._size
        except AttributeError:
            self._size = size = self._on_host.size  # type: ignore[union-attr]
            return size

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        try:
            return self._strides
        except AttributeError:
            _find_place(self)
            return self._strides

    @property
    def offset(self) -> int:
        """Bytes from the beginning of the block to the first element."""
        try:
            return self._offset
        except AttributeError:
            _find_place(self)
            return self._offset

    @property
    def block(self) -> Any:
        """The memory; to ask for it computes what is pending."""
        if self._block is None:
            _give_memory(self)
        return self._block

    @property
    def _node(self) -> Node:
        """The values as an operand of expressions."""
        try:
            return self._node_kept
        except AttributeError:
            self._node_kept = node = Node.leaf(layout_of(self), self.sycl_queue, self.usm_type)
            return node

    _argument = _kept("_argument_kept", lambda self: evaluate.argument_of(self))
    _tensor = _kept("_tensor_kept", lambda self: exchange.tensor_of(self))

    @property
    def is_pending(self) -> bool:
        """Whether the values are still an expression that nothing has asked for."""
        return self._on_host is None and self._node.layout is None

    @property
    def is_only_on_host(self) -> bool:
        """Whether the host has computed the values and nothing has needed them in USM memory."""
        return self._on_host is not None and self._on_host.base is None and self.size > 0

    # -- what it is -------------------------------------------------------------------------

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
        """The place where the array lives; ``other.to_device(x.device)`` moves another there."""
        return Device(self.sycl_queue)

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
        evaluate.share(self.block)
        return self._tensor.__sycl_usm_array_interface__

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array with 0 dimensions")
        return self.shape[0]

    # -- to the host ------------------------------------------------------------------------

    def asnumpy(self) -> np.ndarray:
        """The values as a new NumPy array; waits for the work before it on the queue.

        Example:
            >>> import dparray as dp
            >>> dp.arange(3, dtype="int32").asnumpy()
            array([0, 1, 2], dtype=int32)
        """
        values = self._on_host
        if values is not None and host.is_ready(self.sycl_queue):
            if _hooks.subscribers:
                _hooks.emit("copy", source=self.sycl_queue, target="host", nbytes=values.nbytes)
            return values.copy()
        return copies.copy_to_host(_readable(self))

    def item(self, *index: SupportsIndex) -> Any:
        """One element as a Python scalar; waits for the work before it on the queue.

        Raises:
            ShapeError: no index was given and the array has not exactly one element.
        """
        element = self
        if not index:
            seen = self._on_host
            if seen is not None and seen.size == 1 and _is_ready(self):
                return seen.item()
        else:
            element = self.reshape(-1)[index[0]] if len(index) == 1 else self[tuple(index)]
        if element.size != 1:
            raise ShapeError(
                f"item: only an array of one element becomes a scalar; this has shape "
                f"{self.shape}; "
                f"use x.item(i), or dp.asnumpy(x) for all of them"
            )
        values = element._on_host
        if values is not None and host.is_ready(element.sycl_queue):
            return values.item()
        return copies.copy_to_host(_readable(element)).item()

    def tolist(self) -> Any:
        """The values as nested Python lists; waits for the work before it on the queue."""
        return self.asnumpy().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth value of an array of shape {self.shape} is ambiguous; "
                f"use dp.any(x) or dp.all(x)"
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DTypeError(
                f"an array of dtype {self.dtype} cannot be an index; only integers can"
            )
        return operator.index(self.item())

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise HostConversionError(
            "a dparray array does not become a NumPy array by itself, because that copies from the "
            "device and waits; write dp.asnumpy(x)"
        )

    def __iter__(self) -> Iterator[ndarray]:
        if not self.shape:
            raise TypeError("iteration over an array with 0 dimensions")
        return (self[position] for position in range(self.shape[0]))

    def __hash__(self) -> int:
        if self.shape:
            raise TypeError(
                f"an array of shape {self.shape} is no key; write x.tobytes(), or tuple(x.tolist())"
            )
        return hash(self.item())

    # -- to other places ----------------------------------------------------------------------

    def to_device(
        self, device: Any, /, *, stream: None = None, copy: bool | None = None
    ) -> ndarray:
        """The array on another device or queue: the only way data move.

        Args:
            device: whatever :class:`dparray.Device` takes: a filter string, a device, a queue,
                another array's ``.device``.
            stream: only ``None``.
            copy: ``None`` copies if the queue differs; ``True`` always; ``False`` never, and
                raises where a copy would be needed.

        Returns:
            ``self`` if the queue is the same; otherwise a contiguous copy that shares nothing,
            of the same USM type. The copy is ordered with the work before and after it on both
            queues. Within one context it goes directly, otherwise through the host.

        Raises:
            DeviceError: there is no such device.
            ValueError: ``copy=False`` and the queue differs, or a stream was given.

        Example:
            >>> import dparray as dp
            >>> first, second = dp.Device("cpu").create_sub_devices(partition=1)
            >>> a, b = dp.ones(3, device=first), dp.ones(3, device=second)
            >>> (a + b.to_device(a.device)).asnumpy()
            array([2., 2., 2.])
        """
        if stream is not None:
            raise ValueError("to_device: streams are not supported; order work by queues")
        queue = Device(device).sycl_queue
        if queue == self.sycl_queue:
            return copy_of(self) if copy else self
        if copy is False:
            raise ValueError(
                f"to_device: copy=False, but the array is on {describe_queue(self.sycl_queue)} and "
                f"would have to be copied to {describe_queue(queue)}"
            )
        _dtypes.check_device(self.dtype, queue.sycl_device)
        return ndarray._from_layout(*copies.copy_to_queue(self, queue, self.usm_type))

    # -- elements -----------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> ndarray:
        seen = self._on_host
        if seen is not None and _is_plain(index):
            base = seen.base
            try:
                view = seen[index]
                if type(view) is not _array_type:  # integers select a scalar, which is a copy
                    if _is_ready(self):
                        values = np.asarray(seen[index])  # read once more: the queue is idle now
                        return ndarray._computed(values, self.sycl_queue, self.usm_type)
                    view = _NOTHING
                elif base is None:
                    seen, base = _shareable(self)
                    view = seen[index]
            except _REFUSALS:
                view = _NOTHING
            if view.base is base and view.size:
                return _sharing(self, view)
        if _layout.is_basic_index(index):
            view = self._view(*_layout.basic_index(self.shape, self.strides, self.offset, index))
            return view if view.shape or _has_ellipsis(index) else _element(view)
        return self._take_advanced(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._on_host is not None and _write_at_once(self, index, value):
            return
        if index is Ellipsis:
            self.block  # noqa: B018 - as below
            assign(self, value)
        elif _layout.is_basic_index(index):
            self.block  # noqa: B018 - a view of what is pending is not written
            assign(
                self._view(*_layout.basic_index(self.shape, self.strides, self.offset, index)),
                value,
            )
        else:
            self._put_advanced(index, value)

    def _view(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        dtype: np.dtype[Any] | None = None,
    ) -> ndarray:
        """Another array over the same block, or of the same pending values.

        Shape, strides and offset are those of a view of this array, as it says it lies in memory.
        """
        if not _has_memory(self):
            return _view_of_pending(self, shape, strides, offset, dtype)
        return ndarray._from_layout(
            self.block, offset, shape, strides, self.dtype if dtype is None else dtype
        )

    # -- operators ----------------------------------------------------------------------------

    __add__, __radd__, __iadd__ = _binary_family(OPS["add"])
    __sub__, __rsub__, __isub__ = _binary_family(OPS["subtract"])
    __mul__, __rmul__, __imul__ = _binary_family(OPS["multiply"])
    __truediv__, __rtruediv__, __itruediv__ = _binary_family(OPS["divide"])
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary_family(OPS["floor_divide"])
    __mod__, __rmod__, __imod__ = _binary_family(OPS["remainder"])
    __pow__, __rpow__, __ipow__ = _power_family()
    __and__, __rand__, __iand__ = _binary_family(OPS["bitwise_and"])
    __or__, __ror__, __ior__ = _binary_family(OPS["bitwise_or"])
    __xor__, __rxor__, __ixor__ = _binary_family(OPS["bitwise_xor"])
    __lshift__, __rlshift__, __ilshift__ = _binary_family(OPS["bitwise_left_shift"])
    __rshift__, __rrshift__, __irshift__ = _binary_family(OPS["bitwise_right_shift"])

    __lt__ = OPERATIONS[OPS["less"]]
    __le__ = OPERATIONS[OPS["less_equal"]]
    __gt__ = OPERATIONS[OPS["greater"]]
    __ge__ = OPERATIONS[OPS["greater_equal"]]
    __eq__ = OPERATIONS[OPS["equal"]]  # type: ignore[assignment]
    __ne__ = OPERATIONS[OPS["not_equal"]]  # type: ignore[assignment]

    __neg__ = OPERATIONS[OPS["negative"]]
    __pos__ = OPERATIONS[OPS["positive"]]
    __abs__ = OPERATIONS[OPS["abs"]]
    __invert__ = OPERATIONS[OPS["bitwise_invert"]]

    # -- shown --------------------------------------------------------------------------------

    def __repr__(self) -> str:
        options = np.get_printoptions()
        text = np.array2string(
            corner(self, options),
            separator=", ",
            prefix="array(",
            threshold=summary_threshold(self, options),
        )
        place = f"device='{self.device.filter_string}'"
        if self.device.is_sub_device or not self.device.is_canonical:
            place = f"device='{self.device}'"
        shape = f", shape={self.shape}" if not self.size and self.shape != (0,) else ""
        return f"array({text}{shape}, dtype={self.dtype}, {place}, usm_type='{self.usm_type}')"

    def __str__(self) -> str:
        if self.shape == ():
            return str(self.asnumpy()[()])
        options = np.get_printoptions()
        return np.array2string(corner(self, options), threshold=summary_threshold(self, options))

    def __format__(self, specification: str) -> str:
        if self.shape == () and specification:
            return format(self.item(), specification)
        return format(str(self), specification)


def summary_threshold(x: ndarray, options: Any) -> int:
    """NumPy's threshold, or one that makes it summarise the corner of a large array."""
    return 0 if x.size > options["threshold"] else int(options["threshold"])


def corner(x: ndarray, options: Any) -> np.ndarray:
    """The values that printing needs: all of a small array, the edges of a large one.

    An axis longer than both edges is cut to the edges and one element between them, which
    NumPy then prints as "...". A pending array stays pending.
    """
    edge = int(options["edgeitems"])
    if x.size <= options["threshold"]:
        return _sample.read(x._node, (slice(None),) * x.ndim)
    pieces: list[list[slice]] = [
        [slice(0, edge + 1), slice(extent - edge, extent)]
        if extent > 2 * edge + 1
        else [slice(None)]
        for extent in x.shape
    ]

    def gather(axis: int, index: tuple[slice, ...]) -> np.ndarray:
        if axis == x.ndim:
            return _sample.read(x._node, index)
        return np.concatenate(
            [gather(axis + 1, (*index, piece)) for piece in pieces[axis]], axis=axis
        )

    return gather(0, ())


# -- operands -----------------------------------------------------------------------------------


def as_method(function: Function) -> Function:
    """Make a public function a method of arrays too; the array is its first parameter."""
    setattr(ndarray, function.__name__, function)
    return function


def foreign_operand(function: str, name: str, value: Any) -> Exception:
    """The error for an operand that is neither an array nor a Python scalar."""
    if isinstance(value, np.ndarray):
        return HostConversionError(
            f"{function}: {name} is a NumPy array and the others are on a device; nothing is "
            f"copied there unasked: {name} = dp.asarray({name}, device=...)"
        )
    if hasattr(value, "__sycl_usm_array_interface__"):
        return HostConversionError(
            f"{function}: {name} is a {type(value).__module__}.{type(value).__name__}; "
            f"share its memory with {name} = dp.asarray({name})"
        )
    return HostConversionError(
        f"{function}: {name} of type {type(value).__name__} is neither an array nor a scalar; "
        f"convert it with dp.asarray({name})"
    )


def check_array(function: str, name: str, value: Any, place: Placement | None = None) -> ndarray:
    """``value`` itself if it is an array; a scalar or a sequence as one.

    Args:
        function: the public function.
        name: the parameter.
        value: what the user gave.
        place: where a new array goes; without it beside the arrays in a sequence, or on the default
            device.

    Raises:
        HostConversionError: it is something else, a NumPy array for example.
    """
    if isinstance(value, ndarray):
        return value
    if isinstance(value, bool | int | float | complex | np.generic):
        if place is None or place.usm_type == "device":
            return full_scalar(value, default_device().sycl_queue if place is None else place.queue)
        return from_host(np.asarray(value), *place)
    if isinstance(value, list | tuple | range):
        if place is None:
            inside = arrays_inside(name, value)
            place = (
                common_placement(function, inside)
                if inside
                else Placement(default_device().sycl_queue, "device")
            )
        return stack_nested(function, value, place)
    raise foreign_operand(function, name, value)


def check_arrays(function: str, *named: tuple[str, Any]) -> list[ndarray]:
    """Operands as arrays: scalars and sequences go beside the arrays among them.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        HostConversionError: an operand is a NumPy array, or nothing that holds numbers.
    """
    arrays = [each for each in named if isinstance(each[1], ndarray)]
    place = common_placement(function, arrays) if arrays else None
    return [check_array(function, name, value, place) for name, value in named]


def arrays_inside(name: str, sequence: Any) -> list[tuple[str, ndarray]]:
    """The arrays in nested sequences, named by their position."""
    found: list[tuple[str, ndarray]] = []
    if isinstance(sequence, range):
        return found
    for position, element in enumerate(sequence):
        if isinstance(element, ndarray):
            found.append((f"{name}[{position}]", element))
        elif isinstance(element, list | tuple):
            found += arrays_inside(f"{name}[{position}]", element)
    return found


def stack_nested(function: str, sequence: Any, placement: Placement) -> ndarray:
    """Nested sequences of arrays and scalars as one array."""
    if not arrays_inside("", sequence):
        return from_host(host_values(function, sequence, placement.queue), *placement)
    parts: list[Any] = []
    for element in sequence:
        if isinstance(element, list | tuple | range):
            parts.append(stack_nested(function, element, placement))
        elif isinstance(element, ndarray):
            parts.append(element)
        elif isinstance(element, bool | int | float | complex | np.generic):
            parts.append(from_host(np.asarray(element), *placement))
        else:
            raise foreign_operand(function, "an element", element)
    if len({part.shape for part in parts}) != 1:
        raise ShapeError(
            f"{function}: the elements have the shapes {[part.shape for part in parts]}; "
            f"they must be equal"
        )
    shape = (len(parts), *parts[0].shape)
    result = empty_on(placement, shape, _dtypes.promote([part.dtype for part in parts]))
    for position, part in enumerate(parts):
        result[position] = part
    return result


def host_values(function: str, obj: Any, queue: dpctl.SyclQueue) -> np.ndarray:
    """A host array of the values, with the device's default dtype where Python types decide."""
    try:
        values = np.asarray(obj)
    except ValueError as error:
        raise ShapeError(f"{function}: the sequences do not form an array: {error}") from None
    if values.dtype.kind not in "biufc":
        raise DTypeError(
            f"{function}: {type(obj).__name__} {obj!r:.60} holds no numbers (NumPy makes dtype "
            f"{values.dtype} of it); dtypes are {', '.join(_dtypes.NAMES)}"
        )
    if not isinstance(obj, _HOST_TYPES):
        return values.astype(_dtypes.fit_device(values.dtype, queue.sycl_device), copy=False)
    return values


def check_out(function: str, arrays: Sequence[tuple[str, ndarray]], out: Any) -> None:
    """Check before any work that ``out``, where given, is an array on the inputs' queue."""
    if out is not None:
        common_placement(function, [*arrays, ("out", _checked_out(function, out))])


def _checked_out(function: str, out: Any) -> ndarray:
    if isinstance(out, ndarray):
        return out
    raise HostConversionError(
        f"{function}: out must be an array to write into; got {out!r} of type {type(out).__name__}"
    )


def delivered(name: str, result: ndarray, out: ndarray | None) -> ndarray:
    """The result itself, or ``out`` with it; ``out`` is checked before it is written."""
    if out is None:
        return result
    if out.shape != result.shape:
        raise ShapeError(
            f"{name}: the result of shape {result.shape} does not fit out of {out.shape}"
        )
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise DTypeError(
            f"{name}: the result of dtype {result.dtype} does not fit out of dtype {out.dtype}"
        )
    assign(out, result, name)
    return out


def scalar_value(value: Any) -> Any:
    """A NumPy scalar as the Python scalar it stands for; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def empty_on(placement: Placement, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ndarray:
    """A new C-contiguous array in memory of the pool, values undefined."""
    return ndarray._from_layout(*blocks.allocate(placement.queue, placement.usm_type, shape, dtype))


def is_made_by_host(size: int, queue: dpctl.SyclQueue, usm_type: str) -> bool:
    """Whether few elements of a new array are made by the host at once."""
    return (
        size <= evaluate.HOST_ELEMENTS
        and _options["host_tier"]
        and host.COMPUTES_AT_ONCE
        and host.can_compute(queue, usm_type)
    )


def full_scalar(value: Any, queue: dpctl.SyclQueue, dtype: Any = None) -> ndarray:
    """A 0-dimensional array with the value of a Python or NumPy scalar."""
    if dtype is None:
        dtype = (
            value.dtype
            if isinstance(value, np.generic)
            else _dtypes.default_for_scalar(type(value), queue.sycl_device)
        )
    try:
        values = np.asarray(value, dtype)
    except OverflowError:
        raise OverflowError(f"{value} does not fit into {np.dtype(dtype)}") from None
    return from_host(values, queue, "device")


def copy_of(x: ndarray) -> ndarray:
    """A C-contiguous copy on the same queue; pending like any other operation."""
    small = call_at_once(_array_type.copy, x)
    if small is not None:
        return small
    placement = Placement(x.sycl_queue, x.usm_type)
    return operate(CONVERT, (x,), (x.dtype, x.dtype), x.shape, placement)


def astype_array(x: ndarray, dtype: np.dtype[Any], copy: bool = True) -> ndarray:
    """``x`` in another dtype; ``x`` itself if nothing changes and no copy is asked for."""
    if x.dtype == dtype and not copy:
        return x
    check_dtype(dtype, x.sycl_queue)
    small = call_at_once(_array_type.astype, x, dtype, "C")
    if small is not None:
        return small
    return operate(CONVERT, (x,), (dtype, dtype), x.shape, Placement(x.sycl_queue, x.usm_type))


def assign(target: ndarray, value: Any, function: str = "x[...] = value") -> None:
    """Write ``value`` into ``target``, broadcast and converted; checks come before any write."""
    if _write_at_once(target, Ellipsis, value):
        return
    value = scalar_value(value)
    if isinstance(value, list | tuple | range):
        place = Placement(target.sycl_queue, target.usm_type)
        common_placement(function, [("x", target), *arrays_inside("value", value)])
        value = stack_nested(function, value, place)
    if isinstance(value, bool | int | float | complex):
        value = checked_scalar(function, value, target.dtype)
        if target.size:
            evaluate.store(Scalar(value), layout_of(target))
        return
    if not isinstance(value, ndarray):
        raise foreign_operand(function, "value", value)
    common_placement(function, (("x", target), ("value", value)))
    shape = value.shape
    while len(shape) > target.ndim and shape[0] == 1:
        shape = shape[1:]
    if shape != value.shape:
        value = value._view(shape, value.strides[len(value.shape) - len(shape) :], value.offset)
    strides = _layout.broadcast_strides(function, shape, value.strides, target.shape)
    if value.dtype.kind == "c" and target.dtype.kind != "c":
        raise DTypeError(
            f"{function}: {value.dtype} does not fit into {target.dtype}; "
            f"take dp.real(value) or dp.abs(value) first"
        )
    if target.size:
        if shape != target.shape:
            value = value._view(target.shape, strides, value.offset)
        if config.lazy:
            evaluate.store(value._node, layout_of(target))
        else:
            placement = Placement(target.sycl_queue, target.usm_type)
            _write(CONVERT, (value,), (target.dtype, target.dtype), target, placement)


def _write(
    op: Op,
    operands: Sequence[Any],
    loop: tuple[np.dtype[Any], ...],
    out: ndarray,
    placement: Placement,
) -> None:
    """Write an operation that has been checked into an array of its shape or a larger one."""
    target = layout_of(out)
    if config.lazy or not evaluate.compute_known(op, operands, loop, out.shape, *placement, target):
        evaluate.store(_node_of(op, operands, loop, out.shape, placement), target, True)


def layout_of(x: ndarray) -> Layout:
    """Where the values of an array lie; computes them if they are pending."""
    return Layout(x.block, x.offset, x.shape, x.strides, x.dtype)


def checked_scalar(function: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """A Python scalar as one that ``dtype`` can hold.

    Raises:
        OverflowError: an integer outside the dtype's range.
        DTypeError: a complex number for a real dtype, NaN or infinity for an integer.
    """
    kind = dtype.kind
    if kind == "b":
        return bool(value)
    if isinstance(value, complex):
        if kind != "c":
            raise DTypeError(f"{function}: the complex number {value} does not fit into {dtype}")
        return value
    if kind in "iu":
        try:
            value = int(value)
        except (ValueError, OverflowError):
            raise DTypeError(f"{function}: {value} does not fit into {dtype}") from None
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(
                f"{function}: {value} does not fit into {dtype} ({limits.min} ... {limits.max})"
            )
        return value
    return float(value) if kind == "f" else complex(value)


def from_host(
    values: np.ndarray, queue: dpctl.SyclQueue, usm_type: str, dtype: Any = None
) -> ndarray:
    """A new array with the values of a host array.

    Raises:
        DTypeError: the host array's dtype is none that arrays have.
        UnsupportedDeviceError: the device cannot compute in the dtype.
    """
    target = check_dtype(_dtypes.as_dtype(values.dtype if dtype is None else dtype), queue)
    if values.dtype.kind not in "biufc":
        _dtypes.as_dtype(values.dtype)
    if is_made_by_host(values.size, queue, check_usm_type(usm_type)):
        if _hooks.subscribers:
            _hooks.emit("copy", source="host", target=queue, nbytes=values.size * target.itemsize)
        return ndarray._computed(np.array(values, target, order="C"), queue, usm_type)
    result = empty_on(Placement(queue, check_usm_type(usm_type)), values.shape, target)
    copies.copy_from_host(np.ascontiguousarray(values, target).reshape(values.shape), result)
    return result


# -- small arrays, at once ------------------------------------------------------------------------
#
# Few elements that the host can reach are computed on the calling thread when the line runs: NumPy
# is done before an expression would be noted down. The result is in no USM memory until something
# needs it there. Nothing is refused here: what is not plainly right goes the way of large arrays,
# where everything is checked.

_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})
_NOTHING = np.empty(0)


def _is_plain(index: Any) -> bool:
    """Whether an index is made of Python's integers and slices, of ``None`` and ``...``."""
    if type(index) is tuple:
        for entry in index:  # noqa: SIM110 - a generator would cost more than all the rest
            if type(entry) not in _BASIC:
                return False
        return True
    return type(index) in _BASIC


def _has_ellipsis(index: Any) -> bool:
    entries = index if type(index) is tuple else (index,)
    return any(entry is Ellipsis for entry in entries)


def _element(view: ndarray) -> ndarray:
    """A copy of what integers select: later writes to the array do not change it, as in NumPy."""
    seen = view._on_host
    if seen is not None and host.is_ready(view.sycl_queue):
        return ndarray._computed(seen.copy(), view.sycl_queue, view.usm_type)
    return copy_of(view)


def _seen_by_host(x: ndarray) -> np.ndarray | None:
    """What the host sees of an array that has memory."""
    if (
        x._size <= evaluate.HOST_ELEMENTS
        and _options["host_tier"]
        and host.COMPUTES_AT_ONCE
        and host.can_compute(x.sycl_queue, x.usm_type)
    ):
        return copies.host_view(x)
    return None


def _find_place(x: ndarray) -> None:
    """Fill in where in its block an array lies, or will lie."""
    seen = x._on_host
    if seen is not None and seen.base is not None:
        x._strides = seen.strides
        x._offset = seen.__array_interface__["data"][0] - x.block.pointer
        return
    alias = _living_alias(x) if seen is None else None
    if alias is not None and alias.view() is x:
        x.block  # noqa: B018 - it lies in another array's memory, where that is
        return
    x._offset = 0
    x._strides = _layout.contiguous_strides(x.shape, x.dtype.itemsize)


def _give_memory(x: ndarray) -> None:
    """Compute an array that is pending, or put values that the host has computed in memory."""
    values = x._on_host
    if values is None:
        with evaluate.lock:
            _give_pending_memory(x)
        return
    block = pool.allocate(x.sycl_queue, x.usm_type, values.nbytes)
    queues.wait_if_working(x.sycl_queue)  # whose work may still use that memory
    view: np.ndarray = np.ndarray(values.shape, values.dtype, block.host_bytes)
    view[...] = values
    with evaluate.lock:
        if x._on_host is values:  # no other thread has been here meanwhile
            x._offset, x._strides = 0, view.strides
            x._on_host, x._block = view, block


# -- views of pending arrays ----------------------------------------------------------------------
#
# A view of a pending array is an expression of its own: that of views of the leaves. The two arrays
# have the same values until one of them is written, so before anything can write to one, it gets
# memory, and they share it. One such view at a time: with a second, the memory is worth its cost.


class _Alias:
    """A pending array, a view of it, and where the view's elements lie in the array's memory."""

    __slots__ = ("offset", "strides", "view", "whole")

    def __init__(
        self, whole: ndarray, view: ndarray, strides: tuple[int, ...], offset: int
    ) -> None:
        self.whole = weakref.ref(whole)
        self.view = weakref.ref(view)
        self.strides = strides
        self.offset = offset


#: Of heavier expressions views are not made expressions of their own.
_MOST_VIEWED_WEIGHT = 64


def _has_memory(x: ndarray) -> bool:
    """Whether an array has been given memory; asks without giving it any."""
    return x._block is not None or x._on_host is not None


def _living_alias(x: ndarray) -> _Alias | None:
    """What a pending array shares its memory with, should one of them need it."""
    alias = x._alias
    if alias is not None and alias.whole() is not None and alias.view() is not None:
        return alias
    return None


def _view_of_pending(
    x: ndarray,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dtype: np.dtype[Any] | None,
) -> ndarray:
    """A view of an array that has no memory yet: pending too where that is possible."""
    if dtype is None:
        with evaluate.lock:
            node = x._node
            if node.layout is None and _living_alias(x) is None:
                view = _with_reduced_axes(node, shape)
                if view is None:
                    evaluate.compute_inner(node)
                    if node.weight <= _MOST_VIEWED_WEIGHT and node.layout is None:
                        view = view_of(node, shape, strides, offset)
                if view is not None:
                    result = ndarray._pending(_noted_inside(view))
                    x._alias = result._alias = _Alias(x, result, strides, offset)
                    return result
    return ndarray._from_layout(x.block, offset, shape, strides, dtype or x.dtype)


def _with_reduced_axes(node: Node, shape: tuple[int, ...]) -> Node | None:
    """A pending reduction, if a view of it shows the reduced axes, as in ``x.sum(1)[:, None]``."""
    op, size = node.op, node.size
    if not isinstance(op, Reduce) or op.merges or op.keepdims or size < 2:
        return None
    walked = node.operands[0]
    assert isinstance(walked, Node)
    if shape != _layout.reduced_shape(walked.shape, op.axes, True):
        return None
    op = op._replace(keepdims=True)
    return Node(op, node.operands, node.loop, shape, size, node.queue, node.usm_type)


def _noted_inside(node: Node) -> Node:
    """A new expression, all of it known to its operands; computed if it may not wait."""
    may_wait = True
    for inner in pending_order([node]):
        for operand in inner.operands:
            if type(operand) is Node:
                may_wait &= evaluate.note_reader(inner, operand)
    if not may_wait:
        evaluate.evaluate(node)
    return node


def _give_pending_memory(x: ndarray) -> None:
    """Compute a pending array, and bind the view of it that was pending to the memory."""
    alias = _living_alias(x)
    whole = alias.whole() if alias is not None else x
    assert whole is not None
    node = whole._node
    if node.layout is None:
        evaluate.evaluate(node)
    _bind(whole, node.layout.block, node.layout.offset, node.layout.strides)
    if alias is not None:
        view = alias.view()
        assert view is not None
        _bind(view, whole.block, whole.offset + alias.offset, alias.strides)
        del view._node_kept  # the expression of its own is of no use any more


def _bind(x: ndarray, block: Any, offset: int, strides: tuple[int, ...]) -> None:
    """Give a pending array its place in memory."""
    x._alias = None
    x._offset, x._strides = offset, strides
    x._block = block
    x._on_host = _seen_by_host(x)


def take_layout_of(x: ndarray, view: ndarray) -> None:
    """Let an array be what a view of the same memory is; other views of it stay as they are."""
    x._block, x._offset, x._dtype, x._size = view.block, view.offset, view.dtype, view.size
    x._shape, x._strides = view.shape, view.strides
    x._alias = x._kernel_type = None
    for name in ("_argument_kept", "_node_kept", "_tensor_kept"):
        with contextlib.suppress(AttributeError):
            delattr(x, name)
    x._on_host = _seen_by_host(x)


def _readable(x: ndarray) -> Any:
    """A layout to read the values from; a pending view does not make all of its array computed."""
    if _has_memory(x) or _living_alias(x) is None:
        return x
    evaluate.evaluate(x._node)
    return x._node.layout


def _formed_at_once(
    op: Op,
    operands: Sequence[Any],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    placement: Placement,
) -> ndarray | None:
    """A conversion or a choice, checked before; ``None`` if it is not for the host at once."""
    seen = []
    for operand in operands:
        if type(operand) is ndarray:
            operand = operand._on_host
            if operand is None:
                return None
        seen.append(operand)
    if prod(shape) > evaluate.HOST_ELEMENTS or not host.is_ready(placement.queue):
        return None
    return ndarray._computed(host.call(host.form, op, seen, dtype), *placement)


def call_at_once(function: Callable[..., Any], x: Any, *args: Any) -> ndarray | None:
    """A function of NumPy's of small arrays, or ``None`` if it is not for the host at once.

    The caller knows that the result is small too.

    Args:
        function: called with what the host sees of ``x`` and of the arrays among ``args``; makes a
            new array, or a scalar.
        x: whatever the user gave as the first array.
        *args: ``None`` comes back where NumPy does not take them.
    """
    if type(x) is not ndarray or x._on_host is None or not _is_ready(x):
        return None
    seen = []
    for arg in args:
        if type(arg) is ndarray:
            if arg.sycl_queue is not x.sycl_queue or arg.usm_type != x.usm_type:
                return None
            arg = arg._on_host
            if arg is None:
                return None
        elif isinstance(arg, _HOST_TYPES):
            return None
        seen.append(arg)
    values = host.call(function, x._on_host, *seen)
    if values is None:
        return None
    if type(values) is not _array_type:
        values = np.asarray(values)
    if values.dtype.char not in _NUMBERS:  # of a text or an object among the arguments
        return None
    if values.base is not None:  # NumPy has reshaped its result
        values = values.copy()
    return ndarray._computed(values, x.sycl_queue, x.usm_type)


def fold_at_once(fold: Callable[..., Any], x: Any, axis: Any, keepdims: Any) -> ndarray | None:
    """A reduction of a small array, or ``None`` if it is not for the host at once.

    Args:
        fold: a reduction of ``_tier_host``.
        x: whatever the user gave as the array.
        axis: as given by the user.
        keepdims: as given by the user.
    """
    if type(x) is not ndarray or (keepdims is not False and keepdims is not True):
        return None
    seen = x._on_host
    # NumPy takes the axes 0 and -1 of an array that has none.
    if seen is None or not _is_ready(x) or (axis is not None and not seen.ndim):
        return None
    try:
        values = _run_silently(fold, seen, axis, None, None, keepdims)
    except _REFUSALS:
        values = host.call(fold, seen, axis, None, None, keepdims)
        if values is None:
            return None
    if type(values) is not _array_type:
        values = np.asarray(values)
    elif values.base is not None:  # NumPy has reshaped its result
        values = values.copy()
    return ndarray._computed(values, x.sycl_queue, x.usm_type)


def join_at_once(function: Callable[..., Any], arrays: Any, *args: Any) -> ndarray | None:
    """A function of NumPy's of a sequence of small arrays, as :func:`call_at_once`."""
    if type(arrays) not in _SEQUENCES or not 0 < len(arrays) <= _MOST_JOINED:
        return None
    size = 0
    for x in arrays:
        if type(x) is not ndarray or x._on_host is None:
            return None
        size += x.size
    if size > evaluate.HOST_ELEMENTS:
        return None
    return call_at_once(lambda *parts: function(parts, *args), *arrays)


def broadcast_at_once(function: Callable[..., Any], x: Any, *args: Any) -> ndarray | None:
    """A function of NumPy's that broadcasts small arrays, as :func:`call_at_once`."""
    seen: list[np.ndarray] = []
    for operand in (x, *args):
        if type(operand) is ndarray:
            if operand._on_host is None:
                return None
            seen.append(operand._on_host)
    return call_at_once(function, x, *args) if _are_small_together(*seen) else None


def _are_small_together(*arrays: np.ndarray) -> bool:
    """Whether a result of the shape to which small arrays broadcast is small too."""
    if prod([array.size for array in arrays]) <= evaluate.HOST_ELEMENTS:
        return True
    if all(array.shape == arrays[0].shape for array in arrays):
        return True
    try:
        return np.broadcast(*arrays).size <= evaluate.HOST_ELEMENTS
    except ValueError:
        return False


def _is_ready(x: ndarray) -> bool:
    """Whether the host may touch the memory of a small array at once."""
    return (not _working and _options["host_tier"]) or host.is_ready(x.sycl_queue)


def _is_free_to_write(x: ndarray) -> bool:
    """Whether the host may write an array at once: it is idle, and nothing pending reads it."""
    if (_working or not _options["host_tier"]) and not host.is_ready(x.sycl_queue):
        return False
    return x._block is None or not x._block.readers


def view_at_once(x: ndarray, function: Callable[..., np.ndarray], *args: Any) -> ndarray | None:
    """A view of a small array; ``None`` if it is large, or what NumPy makes is no view of it.

    Args:
        x: the array.
        function: called with what the host sees of ``x``, and ``args``; may copy.
        *args: what NumPy does not take goes another way, as ever.
    """
    if x._on_host is None:
        return None
    seen, base = _shareable(x)
    try:
        view = function(seen, *args)
    except _REFUSALS:
        return None
    return _sharing(x, view) if view.base is base and view.size else None


def _shareable(x: ndarray) -> tuple[np.ndarray, Any]:
    """What the host sees of a small array and the base of it, which views share."""
    x.block  # noqa: B018 - views share memory, so there must be some
    seen = x._on_host
    return seen, seen.base  # type: ignore[union-attr,return-value]


def _sharing(x: ndarray, view: np.ndarray) -> ndarray:
    """An array over the memory of ``x``, of which the host sees ``view``."""
    result = _new(ndarray)
    result._on_host = view
    result._block = x._block
    result._kernel_type = None
    result.sycl_queue = x.sycl_queue
    result.usm_type = x.usm_type
    return result


def with_axes(x: ndarray, order: Sequence[int]) -> ndarray:
    """The view whose axis ``i`` is axis ``order[i]`` of ``x``; the others have extent 1."""
    if x._on_host is not None and len(order) == x._on_host.ndim:
        view = view_at_once(x, _array_type.transpose, order)
        if view is not None:
            return view
    shape, strides = x.shape, x.strides
    return x._view(
        tuple([shape[axis] for axis in order]), tuple([strides[axis] for axis in order]), x.offset
    )


def _write_at_once(x: ndarray, index: Any, value: Any) -> bool:
    """Write to a part of a small array; false if that is not done."""
    target = x._on_host
    if target is None or not _is_plain(index):
        return False
    dtype = target.dtype
    source: Any
    if type(value) is ndarray:
        source = value._on_host
        if source is None or value.sycl_queue is not x.sycl_queue:
            return False
        is_exact = source.dtype is dtype
        if not is_exact and source.dtype.kind == "c" and dtype.kind != "c":
            return False
    else:
        source = value
        kind = type(value)
        if kind is not float and kind is not int:
            return False
        is_exact = dtype.char == "d"
        if not is_exact and dtype.kind not in ("fc" if kind is float else "fciu"):
            return False
    if not _is_free_to_write(x):
        return False
    if not is_exact:  # the conversion may overflow
        return host.call(host.write, target, index, source) is not None
    try:
        target[index] = source
    except _REFUSALS:
        return False
    return True


# -- operations ---------------------------------------------------------------------------------


def apply(op: Op, *operands: Any, out: ndarray | None = None) -> ndarray:
    """Carry out an elementwise operation on arrays and scalars.

    Everything the user can get wrong is found here: placement, then dtypes, then shapes.

    Raises:
        ExecutionPlacementError: the arrays are on different queues.
        HostConversionError: an operand is a NumPy array or no array at all.
        DTypeError: the operation is not defined for the dtypes, or the result does not fit ``out``.
        ShapeError: the shapes do not broadcast, or not to ``out``.
    """
    return OPERATIONS[op](*operands) if out is None else _defer(op, operands, out)


def _defer(op: Op, operands: tuple[Any, ...], out: ndarray | None) -> ndarray:
    """Check an operation and make a pending array of it, or write it to ``out``."""
    arrays: list[tuple[str, ndarray]] = []
    keys: list[Any] = []
    values = list(operands)
    for name, value in zip(op.parameters, operands, strict=True):
        if isinstance(value, ndarray):
            arrays.append((name, value))
            keys.append(value.dtype)
        elif type(value) in _SEQUENCES:
            return apply(op, *beside(op.name, op.parameters, operands), out=out)
        elif (
            value is None
            and out is None
            and op.name in ("equal", "not_equal")
            and any(isinstance(operand, ndarray) for operand in operands)
        ):
            return _compare_out_of_range(op, operands, out)
        else:
            values[len(keys)], key = _scalar_operand(op, name, value)
            keys.append(key)
    if not arrays:
        queue = out.sycl_queue if out is not None else default_device().sycl_queue
        # Among themselves, NumPy's scalars keep their dtypes.
        for at in _typed_scalars(operands, queue.sycl_device) or [0]:
            value = operands[at]
            values[at] = full_scalar(value if isinstance(value, np.generic) else values[at], queue)
        return apply(op, *values, out=out)
    placed = arrays if out is None else [*arrays, ("out", _checked_out(op.name, out))]
    placement = common_placement(op.name, placed)
    if op.keeps_integers and keys[0].kind in "biu":
        loop: tuple[np.dtype[Any], ...] = (keys[0], keys[0])
    else:
        loop = _dtypes.resolve(op.ufunc, tuple(keys))
    shape = arrays[0][1].shape
    if len(arrays) > 1 and arrays[1][1].shape != shape:
        shape = _layout.broadcast_shapes(op.name, [array.shape for _, array in arrays])
    if not computes_in_double(placement.queue):
        device = placement.queue.sycl_device
        loop = tuple(_dtypes.fit_device(dtype, device) for dtype in loop)
    if len(arrays) < op.arity:
        for position, (value, dtype) in enumerate(zip(values, loop, strict=False)):
            if not isinstance(value, ndarray):
                if op.name in _COMPARISONS and dtype.kind in "iu" and not _fits(value, dtype):
                    return _compare_out_of_range(op, operands, out)
                values[position] = checked_scalar(op.name, value, dtype)
    if op.name == "pow" and loop[-1].kind == "i" and type(values[1]) is int and values[1] < 0:
        raise DTypeError(
            f"pow: an integer to the negative power {values[1]} is no integer; "
            f"convert first: x1.astype('float64')"
        )
    if op.name == "pow" and type(values[1]) in (int, float, complex) and loop[-1].kind in "iufc":
        op, values, loop = _simpler_power(op, values, loop)
    if op.name == "floor_divide" and loop[-1].kind == "f":
        quotient = _floored_quotient(values[0], values[1], loop, shape, placement)
        return quotient if out is None else apply(OPS["positive"], quotient, out=out)
    if out is None:
        return operate(op, values, loop, shape, placement)
    return operate_into(out, op, values, loop, shape, placement)


def operate_into(
    out: ndarray,
    op: Op,
    values: Sequence[Any],
    loop: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
) -> ndarray:
    """Write the result of an operation that has been checked into an array, as :func:`operate`.

    Raises:
        ShapeError, DTypeError: the result does not fit ``out``.
    """
    if _layout.broadcast_shapes(op.name, [shape, out.shape]) != out.shape:
        raise ShapeError(f"{op.name}: the result of shape {shape} does not fit out of {out.shape}")
    if not np.can_cast(loop[-1], out.dtype, "same_kind"):
        raise DTypeError(
            f"{op.name}: the result of dtype {loop[-1]} does not fit out of dtype {out.dtype}; "
            f"write out = out.astype('{loop[-1]}') first"
        )
    if (
        out.shape == shape
        and out.dtype == loop[-1]
        and out.is_pending
        and _living_alias(out) is None
    ):
        # Nobody else sees the memory that the pending value would get, so it need not exist.
        out._node_kept = _noted(
            _node_of(op, values, loop, shape, Placement(*placement[:1], out.usm_type))
        )
    elif out.size:
        _write(op, values, loop, out, placement)
    return out


def _typed_scalars(operands: Sequence[Any], device: Any) -> list[int]:
    """Where among the operands there are NumPy's scalars of dtypes that the device has."""
    return [
        at
        for at, value in enumerate(operands)
        if isinstance(value, np.generic) and _dtypes.fit_device(value.dtype, device) == value.dtype
    ]


def beside(function: str, names: Sequence[str], operands: Sequence[Any]) -> list[Any]:
    """Operands with sequences made arrays beside the arrays among them; scalars stay scalars."""
    named = list(zip(names, operands, strict=True))
    arrays = [each for each in named if isinstance(each[1], ndarray)]
    place = common_placement(function, arrays) if arrays else None
    return [
        check_array(function, name, value, place) if type(value) in _SEQUENCES else value
        for name, value in named
    ]


def operate(
    op: Op,
    operands: Sequence[Any],
    loop: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
) -> ndarray:
    """A new array for an operation that has been checked: pending, unless laziness is off.

    Args:
        op: the operation.
        operands: arrays and Python scalars.
        loop: the dtype each operand is converted to, then the result's.
        shape: the result's shape, to which the operands broadcast.
        placement: the operands' common placement.
    """
    if op is CONVERT or op is WHERE:
        result = _formed_at_once(op, operands, loop[-1], shape, placement)
        if result is not None:
            return result
    return _array_of(op, operands, loop, shape, placement)


def _array_of(
    op: Op | Reduce,
    operands: Sequence[Any],
    loop: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
) -> ndarray:
    """A new array for an operation or a reduction: pending, or computed where it may not wait."""
    if not config.lazy:
        layout = evaluate.compute_known(op, operands, loop, shape, *placement)
        if layout is not None:
            return ndarray._from_layout(*layout)
    return ndarray._pending(_noted(_node_of(op, operands, loop, shape, placement)))


def reduce_array(
    reduction: Reduction,
    x: ndarray,
    axes: tuple[int, ...],
    keepdims: bool,
    loop: np.dtype[Any],
    dtype: np.dtype[Any],
    *scalars: Any,
) -> ndarray:
    """A new array for a reduction that has been checked: pending, unless laziness is off.

    Args:
        reduction: which.
        x: the array, of at least one element.
        axes: the reduced axes, ascending.
        keepdims: whether the result has them, with extent 1.
        loop: the dtype that elements and scalars are converted to.
        dtype: the result's dtype.
        *scalars: the reduction's scalar operands.
    """
    op = Reduce(reduction, axes, keepdims)
    if reduction.has_library:
        small = call_at_once(lambda values: host.reduced(op, values, scalars, loop), x)
        if small is not None:
            return small
    shape = _layout.reduced_shape(x.shape, axes, keepdims)
    # Half precision is reduced in single precision, and rounded once.
    wide = np.dtype(np.float32) if loop.char == "e" else loop
    loops = (*[wide] * (1 + len(scalars)), dtype)
    placement = Placement(x.sycl_queue, x.usm_type)
    return _array_of(op, (x, *scalars), loops, shape, placement)


def choose_elements(function: str, condition: ndarray, x1: Any, x2: Any) -> ndarray:
    """Elements of ``x1`` where a mask is true, else of ``x2``; an array gives the dtype.

    The operands have been checked to be in one place, and are arrays of one dtype or scalars.
    """
    operands = (condition, x1, x2)
    arrays = [x for x in operands if isinstance(x, ndarray)]
    like = x1 if isinstance(x1, ndarray) else x2
    shape = _layout.broadcast_shapes(function, [x.shape for x in arrays])
    placement = common_placement(function, [(f"x{at}", x) for at, x in enumerate(arrays)])
    loop = (_dtypes.bool, like.dtype, like.dtype, like.dtype)
    return operate(WHERE, operands, loop, shape, placement)


def array_of_node(node: Node) -> ndarray:
    """A new array for an expression that nobody else has."""
    return ndarray._pending(_noted(node))


def _noted(node: Node) -> Node:
    """The node, known to its operands as a reader; computed at once where it may not wait."""
    may_wait = config.lazy
    for operand in node.operands:
        if type(operand) is Node:
            may_wait &= evaluate.note_reader(node, operand)
    if not may_wait:
        evaluate.evaluate(node)
    return node


def _scalar_operand(op: Op, name: str, value: Any) -> tuple[Any, Any]:
    """A scalar operand as a Python scalar, and how it takes part in promotion: NumPy's scalars by
    their dtypes, Python's by their kinds.
    """
    strong = _dtypes.OF_NUMPY_SCALAR.get(type(value))
    if strong is not None:
        return value.item(), strong
    weak = _WEAK_TYPES.get(type(value))
    if weak is None:
        if not isinstance(value, bool | int | float | complex):
            raise foreign_operand(op.name, name, value)
        weak = complex if isinstance(value, complex) else float if isinstance(value, float) else int
    return value, weak


def _node_of(
    op: Op | Reduce,
    operands: Sequence[Any],
    loop: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
) -> Node:
    """The node of an operation; operands that have grown too large are computed first."""
    parts = tuple(
        [operand._node if isinstance(operand, ndarray) else Scalar(operand) for operand in operands]
    )
    node = Node(op, parts, loop, shape, prod(shape), *placement)
    if node.weight > MOST_WEIGHT or node.leaves > MOST_LEAVES:
        node.recount()
    if node.weight > MOST_WEIGHT or node.leaves > MOST_LEAVES:
        evaluate.evaluate(*(part for part in parts if type(part) is Node))
        node = Node(op, parts, loop, shape, node.size, *placement)
    return node


def _simpler_power(
    op: Op, values: list[Any], loop: tuple[np.dtype[Any], ...]
) -> tuple[Op, list[Any], tuple[np.dtype[Any], ...]]:
    """A power with a constant exponent as the operation NumPy makes of it, where there is one."""
    simpler = host.SIMPLER_POWERS.get(values[1])
    if simpler is None or not isinstance(values[0], ndarray):
        return op, values, loop
    return simpler, values[:1], loop[::2]


def _floored_quotient(
    x1: Any,
    x2: Any,
    loop: tuple[np.dtype[Any], ...],
    shape: tuple[int, ...],
    placement: Placement,
) -> ndarray:
    """`x1 // x2` of floats: the quotient that goes with the remainder.

    `floor(x1 / x2)` is one too large where the division rounds up to an integer (1 // 0.1). With
    infinities and zeros it is what the standard asks for; there the remainder is no number.
    """
    x1, x2 = (
        x if isinstance(x, ndarray) else dtype.type(x)
        for x, dtype in zip((x1, x2), loop, strict=False)
    )
    quotient = apply(OPS["divide"], x1, x2)
    floored = apply(OPS["floor"], quotient)
    if not isinstance(x2, ndarray) and not math.isfinite(x2):
        return floored
    rest = apply(OPS["remainder"], x1, x2)
    whole = apply(OPS["round"], apply(OPS["divide"], apply(OPS["subtract"], x1, rest), x2))
    is_plain = apply(OPS["isfinite"], rest)
    if isinstance(x2, ndarray):
        is_plain = apply(OPS["logical_and"], is_plain, apply(OPS["isfinite"], x2))
    dtype = loop[-1]
    chosen = operate(
        WHERE, (is_plain, whole, floored), (_dtypes.bool, dtype, dtype, dtype), shape, placement
    )
    return apply(OPS["copysign"], chosen, quotient)


def _fits(value: Any, dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max)


def _compare_out_of_range(op: Op, operands: Sequence[Any], out: ndarray | None) -> ndarray:
    """A comparison with ``None`` or an integer beyond the dtype has one answer everywhere."""
    first_is_array = isinstance(operands[0], ndarray)
    x = operands[0] if first_is_array else operands[1]
    value = scalar_value(operands[1] if first_is_array else operands[0])
    sample, bound = (0, 1 if value is None or value > 0 else -1)
    answer = bool(op.ufunc(sample, bound) if first_is_array else op.ufunc(bound, sample))
    result = out
    if result is None:
        result = empty_on(Placement(x.sycl_queue, x.usm_type), x.shape, _dtypes.bool)
    assign(result, answer, op.name)
    return result


def call_library(
    name: str,
    function: Callable[..., Any],
    arrays: Sequence[tuple[str, Any]],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Let a function of dpnp.tensor work on arrays: check, hand over, take back.

    ``function`` is called with the arrays as tensors, then ``args`` and ``kwargs``; tensors it
    returns become arrays over the same memory. Its errors come out as ours.
    """
    common_placement(name, arrays)
    return evaluate.library_call(
        name, function, [array._tensor for _, array in arrays], args, kwargs, _from_tensor
    )


def call_numpy(function: Callable[..., Any], arrays: Sequence[ndarray], out: ndarray) -> bool:
    """Let NumPy compute in the memory of arrays on a CPU device; false on any other.

    For what a measurement found faster there. ``function`` is called with NumPy arrays over
    ``arrays`` and over ``out``, which it fills; whatever is pending on ``out`` is computed first.
    The calling thread waits for the queue's work before it.
    """
    if not (config.host_tier and device_facts.is_cpu(out.sycl_queue)):
        return False
    layouts = [layout_of(x) for x in (*arrays, out)]
    if access.holds:
        access.before_write(layouts[-1])
    evaluate.settle_readers(out.block)
    views = copies.host_views(out.sycl_queue, *layouts)
    if views is None:
        return False
    with np.errstate(all="ignore"):
        function(*views)
    return True


def numpy_views(*arrays: ndarray) -> list[np.ndarray] | None:
    """NumPy arrays over arrays on a CPU device with double precision, which NumPy computes in, to
    read from; ``None`` on any other device.

    The calling thread waits for the queue's work; the views are good until work is submitted.
    """
    queue = arrays[0].sycl_queue
    if not (config.host_tier and computes_in_double(queue)):
        return None
    seen = [view for x in arrays if (view := x._on_host) is not None]
    if len(seen) == len(arrays) and host.is_ready(queue):
        return seen
    return copies.host_views(queue, *map(layout_of, arrays))


def call_neighbour(
    name: str,
    function: Callable[..., Any],
    arrays: Sequence[tuple[str, Any]],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Let a function of dpnp itself work on arrays, which come to it as dpnp arrays over the same
    memory; otherwise as :func:`call_library`.
    """

    def on_dpnp_arrays(*operands: Any, **options: Any) -> Any:
        count = len(arrays)
        exchange.wait_for_host_tasks(arrays[0][1].sycl_queue)
        return function(*map(exchange.dpnp_array, operands[:count]), *operands[count:], **options)

    return call_library(name, on_dpnp_arrays, arrays, *args, **kwargs)


def call_either(
    name: str, function: Callable[..., Any], arrays: Sequence[tuple[str, ndarray]]
) -> Any:
    """Let NumPy (on a CPU device) or dpnp (on any other) compute what both have.

    ``function`` is called with the module, ``numpy`` or ``dpnp``, and the arrays in its own type;
    arrays it returns, alone or in a tuple or list, become ours on the common queue.
    """
    placement = common_placement(name, arrays)
    views = numpy_views(*(x for _, x in arrays))
    if views is None:
        return call_neighbour(name, lambda *operands: function(exchange.dpnp, *operands), arrays)
    try:
        with np.errstate(all="ignore"):
            results = function(np, *views)
    except (DparrayError, np.linalg.LinAlgError, IndexError):
        raise
    except ValueError as error:
        raise ShapeError(f"{name}: {error}") from None
    except TypeError as error:
        raise DTypeError(f"{name}: {error}") from None
    if isinstance(results, tuple | list):
        return type(results)(from_host(np.asarray(part), *placement) for part in results)
    return from_host(np.asarray(results), *placement)


def _from_tensor(tensor: Any) -> ndarray:
    return ndarray._from_layout(*exchange.layout_of_tensor(tensor))
