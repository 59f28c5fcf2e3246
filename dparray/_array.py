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

from dparray import (
    _dtypes,
    _evaluate,
    _hooks,
    _layout,
    _sample,
    _tier_host,
    _usm,
    config,
    memory,
)
from dparray._expr import Node, Scalar, pending_order, view_of
from dparray._ops import CONVERT, OPS, WHERE, Op
from dparray._placement import (
    Placement,
    check_usm_type,
    common_placement,
    computes_in_double,
)
from dparray._reduction_ops import Reduce, Reduction
from dparray._schedule import MOST_LEAVES, MOST_WEIGHT
from dparray._usm import Layout
from dparray.device import Device, default_device, describe_queue
from dparray.exceptions import DparrayError, DTypeError, HostConversionError, ShapeError

if TYPE_CHECKING:
    import dpctl

    from dparray._methods import Methods
else:
    Methods = object

Function = TypeVar("Function", bound=Callable[..., Any])

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_NUMBERS = frozenset(np.dtype(name).char for name in _dtypes.NAMES) | {"q", "Q"}
#: More arrays than these are joined the long way, which looks at each once.
_MOST_JOINED = 64
_SEQUENCES = (list, tuple, range)
_WEAK_TYPES: dict[type, Any] = {bool: _dtypes.bool, int: int, float: float, complex: complex}


# -- operators ----------------------------------------------------------------------------------

Binary = Callable[["ndarray", Any], "ndarray"]
Unary = Callable[["ndarray"], "ndarray"]


def _binary(op: Op) -> Binary:
    def operate(self: ndarray, other: Any) -> ndarray:
        result = _pair_at_once(op, self, other)
        return _defer(op, (self, other), None) if result is None else result

    return operate


def _binary_family(op: Op) -> tuple[Binary, Binary, Binary]:
    """The operator, its reflected form and its in-place form."""

    def reflected(self: ndarray, other: Any) -> ndarray:
        result = _pair_at_once(op, other, self)
        return _defer(op, (other, self), None) if result is None else result

    def in_place(self: ndarray, other: Any) -> ndarray:
        if _in_place_at_once(op, self, other):
            return self
        return _defer(op, (self, other), self)

    return _binary(op), reflected, in_place


def _unary(op: Op) -> Unary:
    return lambda self: apply(op, self)


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

    __slots__ = (
        "__weakref__",
        "_alias",
        "_argument",
        "_data_memory",
        "_kernel_type",
        "_node",
        "_on_host",
        "_shape",
        "_tensor",
        "block",
        "dtype",
        "offset",
        "size",
        "strides",
        "sycl_queue",
        "usm_type",
    )

    #: NumPy leaves mixed operations to us, so that they raise instead of copying to the host.
    __array_ufunc__ = None

    _alias: _Alias | None
    _argument: Any
    _data_memory: Any
    _kernel_type: Any
    _node: Node
    _on_host: np.ndarray | None
    _shape: tuple[int, ...]
    _tensor: Any
    block: Any
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    size: int
    strides: tuple[int, ...]
    sycl_queue: dpctl.SyclQueue
    usm_type: str

    if not TYPE_CHECKING:
        # `x.shape = ...` is checked (in _manipulation); reading stays in C.
        shape = property(operator.attrgetter("_shape"))

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
        self = object.__new__(cls)
        self.block = block
        self.offset = offset
        self._shape = shape
        self.strides = strides
        self.dtype = dtype
        self.size = prod(shape)
        self.sycl_queue = block.queue
        self.usm_type = block.usm_type
        if self.size > _evaluate.HOST_ELEMENTS:
            self._on_host = None
        return self

    @classmethod
    def _pending(cls, node: Node) -> ndarray:
        """An array whose values are still an expression."""
        self = object.__new__(cls)
        self._node = node
        self._on_host = None
        self._alias = None
        self._shape = node.shape
        self.dtype = node.dtype
        self.size = node.size
        self.sycl_queue = node.queue
        self.usm_type = node.usm_type
        return self

    @classmethod
    def _computed(cls, values: np.ndarray, queue: dpctl.SyclQueue, usm_type: str) -> ndarray:
        """An array of values that the host has computed and nobody else has.

        They go to USM memory when something needs them there.
        """
        self = object.__new__(cls)
        self._on_host = values
        self.sycl_queue = queue
        self.usm_type = usm_type
        return self

    def __getattr__(self, name: str) -> Any:
        """Fill in the slots that are made on first use; the memory is one of them.

        ``_on_host`` is what the host sees of a small array when the queue is idle: a view of its
        memory, or the values themselves (they own their data) if they are in no USM memory yet. It
        is ``None`` of a large array, of a pending one, and where the host may not touch the memory.
        """
        if name == "_on_host":
            self._on_host = view = _seen_by_host(self)
            return view
        if name == "_shape":
            self._shape = shape = self._on_host.shape  # type: ignore[union-attr]
            return shape
        if name == "dtype":
            self.dtype = dtype = self._on_host.dtype  # type: ignore[union-attr]
            return dtype
        if name == "size":
            self.size = size = self._on_host.size  # type: ignore[union-attr]
            return size
        if name == "block":
            _give_memory(self)
            return self.block
        if name == "_tensor":
            self._tensor = tensor = _usm.tensor_of(self)
            return tensor
        if name == "_node":
            self._node = node = Node.leaf(
                Layout(self.block, self.offset, self.shape, self.strides, self.dtype),
                self.sycl_queue,
                self.usm_type,
            )
            return node
        if name in ("strides", "offset"):
            _find_place(self)
            return self.strides if name == "strides" else self.offset
        if name == "_argument":
            self._argument = argument = _evaluate.argument_of(self)
            return argument
        if name == "_data_memory":
            self._data_memory = usm_memory = _usm.memory_at(self.block, self.offset)
            return usm_memory
        if name == "_kernel_type":
            self._kernel_type = None
            return None
        raise AttributeError(f"dparray.ndarray has no attribute {name!r}")

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
        _evaluate.share(self.block)
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
        if values is not None and _tier_host.is_ready(self.sycl_queue):
            if _hooks.subscribers:
                _hooks.emit("copy", source=self.sycl_queue, target="host", nbytes=values.nbytes)
            return values.copy()
        return _usm.copy_to_host(_readable(self))

    def item(self, *index: SupportsIndex) -> Any:
        """One element as a Python scalar; waits for the work before it on the queue.

        Raises:
            ShapeError: no index was given and the array has not exactly one element.
        """
        element = self
        if index:
            element = self.reshape(-1)[index[0]] if len(index) == 1 else self[tuple(index)]
        if element.size != 1:
            raise ShapeError(
                f"item: only an array of one element becomes a scalar; this has shape "
                f"{self.shape}; "
                f"use x.item(i), or dp.asnumpy(x) for all of them"
            )
        values = element._on_host
        if values is not None and _tier_host.is_ready(element.sycl_queue):
            return values.item()
        return _usm.copy_to_host(_readable(element)).item()

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

    __hash__ = None  # type: ignore[assignment]

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
        return ndarray._from_layout(*_usm.copy_to_queue(self, queue, self.usm_type))

    # -- elements -----------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> ndarray:
        if self._on_host is not None and (
            type(index) in _BASIC or (type(index) is tuple and _BASIC.issuperset(map(type, index)))
        ):
            view = _view_at_once(self, index)
            if view is not None:
                return view
        if _layout.is_basic_index(index):
            return self._view(*_layout.basic_index(self.shape, self.strides, self.offset, index))
        return self._take_advanced(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if (
            self._on_host is not None
            and (
                type(index) in _BASIC
                or (type(index) is tuple and _BASIC.issuperset(map(type, index)))
            )
            and _write_at_once(self, index, value)
        ):
            return
        if _layout.is_basic_index(index):
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
    __pow__, __rpow__, __ipow__ = _binary_family(OPS["pow"])
    __and__, __rand__, __iand__ = _binary_family(OPS["bitwise_and"])
    __or__, __ror__, __ior__ = _binary_family(OPS["bitwise_or"])
    __xor__, __rxor__, __ixor__ = _binary_family(OPS["bitwise_xor"])
    __lshift__, __rlshift__, __ilshift__ = _binary_family(OPS["bitwise_left_shift"])
    __rshift__, __rrshift__, __irshift__ = _binary_family(OPS["bitwise_right_shift"])

    __lt__ = _binary(OPS["less"])
    __le__ = _binary(OPS["less_equal"])
    __gt__ = _binary(OPS["greater"])
    __ge__ = _binary(OPS["greater_equal"])
    __eq__ = _binary(OPS["equal"])  # type: ignore[assignment]
    __ne__ = _binary(OPS["not_equal"])  # type: ignore[assignment]

    __neg__ = _unary(OPS["negative"])
    __pos__ = _unary(OPS["positive"])
    __abs__ = _unary(OPS["abs"])
    __invert__ = _unary(OPS["bitwise_invert"])

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
        assign(result[position], part, function)
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
    if not isinstance(obj, np.ndarray | np.generic):
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
    return ndarray._from_layout(*_usm.allocate(placement.queue, placement.usm_type, shape, dtype))


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
    result = empty_on(Placement(queue, "device"), (), dtype)
    _usm.copy_from_host(values, result)
    return result


def copy_of(x: ndarray) -> ndarray:
    """A C-contiguous copy on the same queue; pending like any other operation."""
    placement = Placement(x.sycl_queue, x.usm_type)
    return operate(CONVERT, (x,), (x.dtype, x.dtype), x.shape, placement)


def astype_array(x: ndarray, dtype: np.dtype[Any], copy: bool = True) -> ndarray:
    """``x`` in another dtype; ``x`` itself if nothing changes and no copy is asked for."""
    if x.dtype == dtype and not copy:
        return x
    _dtypes.check_device(dtype, x.sycl_queue.sycl_device)
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
            _evaluate.store(Scalar(value), layout_of(target))
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
        _evaluate.store(value._node, layout_of(target))


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
    target = _dtypes.as_dtype(values.dtype if dtype is None else dtype)
    _dtypes.check_device(target, queue.sycl_device)
    if values.dtype.kind not in "biufc":
        _dtypes.as_dtype(values.dtype)
    result = empty_on(Placement(queue, check_usm_type(usm_type)), values.shape, target)
    _usm.copy_from_host(np.ascontiguousarray(values, target).reshape(values.shape), result)
    return result


# -- small arrays, at once ------------------------------------------------------------------------
#
# Few elements that the host can reach are computed on the calling thread when the line runs: NumPy
# is done before an expression would be noted down. The result is in no USM memory until something
# needs it there. Nothing is refused here: what is not plainly right goes the way of large arrays,
# where everything is checked.

_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})
_SCALARS = frozenset({bool, int, float, complex})


def _seen_by_host(x: ndarray) -> np.ndarray | None:
    """What the host sees of an array that has memory."""
    if (
        x.size <= _evaluate.HOST_ELEMENTS
        and _tier_host.COMPUTES_AT_ONCE
        and _tier_host.can_compute(x.sycl_queue, x.usm_type)
    ):
        return _usm.host_view(x)
    return None


def _find_place(x: ndarray) -> None:
    """Fill in where in its block an array lies, or will lie."""
    seen = x._on_host
    if seen is not None and seen.base is not None:
        x.strides = seen.strides
        x.offset = seen.__array_interface__["data"][0] - x.block.pointer
        return
    alias = _living_alias(x) if seen is None else None
    if alias is not None and alias.view() is x:
        x.block  # noqa: B018 - it lies in another array's memory, where that is
        return
    x.offset = 0
    x.strides = _layout.contiguous_strides(x.shape, x.dtype.itemsize)


def _give_memory(x: ndarray) -> None:
    """Compute an array that is pending, or put values that the host has computed in memory."""
    values = x._on_host
    if values is None:
        with _evaluate.lock:
            _give_pending_memory(x)
        return
    block = memory.allocate(x.sycl_queue, x.usm_type, values.nbytes)
    _usm.wait_if_working(x.sycl_queue)  # whose work may still use that memory
    view: np.ndarray = np.ndarray(values.shape, values.dtype, block.host_bytes)
    view[...] = values
    with _evaluate.lock:
        if x._on_host is values:  # no other thread has been here meanwhile
            x.offset, x.strides = 0, view.strides
            x._on_host, x.block = view, block


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

_memory_slot: Any = ndarray.__dict__["block"]


def _has_memory(x: ndarray) -> bool:
    """Whether an array has been given memory; asks without giving it any."""
    try:
        _memory_slot.__get__(x)
    except AttributeError:
        return x._on_host is not None
    return True


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
        with _evaluate.lock:
            node = x._node
            if node.layout is None and _living_alias(x) is None:
                view = _with_reduced_axes(node, shape)
                if view is None:
                    _evaluate.compute_inner(node)
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
                may_wait &= _evaluate.note_reader(inner, operand)
    if not may_wait:
        _evaluate.evaluate(node)
    return node


def _give_pending_memory(x: ndarray) -> None:
    """Compute a pending array, and bind the view of it that was pending to the memory."""
    alias = _living_alias(x)
    whole = alias.whole() if alias is not None else x
    assert whole is not None
    node = whole._node
    if node.layout is None:
        _evaluate.evaluate(node)
    _bind(whole, node.layout.block, node.layout.offset, node.layout.strides)
    if alias is not None:
        view = alias.view()
        assert view is not None
        _bind(view, whole.block, whole.offset + alias.offset, alias.strides)
        del view._node  # the expression of its own is of no use any more


def _bind(x: ndarray, block: Any, offset: int, strides: tuple[int, ...]) -> None:
    """Give a pending array its place in memory."""
    x._alias = None
    x.offset, x.strides = offset, strides
    x.block = block
    if x.size <= _evaluate.HOST_ELEMENTS:
        del x._on_host


def take_layout_of(x: ndarray, view: ndarray) -> None:
    """Let an array be what a view of the same memory is; other views of it stay as they are."""
    x.block, x.offset, x.dtype, x.size = view.block, view.offset, view.dtype, view.size
    x._shape, x.strides = view.shape, view.strides
    kept = ("_alias", "_argument", "_data_memory", "_kernel_type", "_node", "_on_host", "_tensor")
    for name in kept:
        if name in ("_alias", "_on_host"):
            setattr(x, name, None)
        else:
            with contextlib.suppress(AttributeError):
                delattr(x, name)
    if x.size <= _evaluate.HOST_ELEMENTS:
        del x._on_host  # looked at again when it is asked for


def _readable(x: ndarray) -> Any:
    """A layout to read the values from; a pending view does not make all of its array computed."""
    if _has_memory(x) or _living_alias(x) is None:
        return x
    _evaluate.evaluate(x._node)
    return x._node.layout


def _pair_at_once(op: Op, x1: Any, x2: Any) -> ndarray | None:
    """An operation on two operands, or ``None`` if it is not for the host at once."""
    first: Any
    second: Any
    if type(x1) is ndarray:
        first, place = x1._on_host, x1
        if first is None:
            return None
        if type(x2) is ndarray:
            second = x2._on_host
            if (
                second is None
                or x2.sycl_queue is not x1.sycl_queue
                or x2.usm_type != x1.usm_type
                or not _is_small_pair(first, second)
            ):
                return None
        elif type(x2) in _SCALARS:
            second = x2
        else:
            return None
    elif type(x2) is ndarray and type(x1) in _SCALARS:
        first, second, place = x1, x2._on_host, x2
        if second is None:
            return None
    else:
        return None
    queue = place.sycl_queue
    if not _tier_host.is_ready(queue):
        return None
    if op is _POW and type(x2) in (int, float) and x2 in _SIMPLER_POWERS:
        if x1.dtype.kind != "f":
            return None
        values = _tier_host.compute(_SIMPLER_POWERS[x2], first)
    else:
        values = _tier_host.compute(op, first, second)
    return None if values is None else ndarray._computed(values, queue, place.usm_type)


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
    if prod(shape) > _evaluate.HOST_ELEMENTS or not _tier_host.is_ready(placement.queue):
        return None
    values = _tier_host.silence.run(_tier_host.form, op, seen, dtype)
    return ndarray._computed(values, *placement)


def call_at_once(function: Callable[..., Any], x: Any, *args: Any) -> ndarray | None:
    """A function of NumPy's of small arrays, or ``None`` if it is not for the host at once.

    The caller knows that the result is small too.

    Args:
        function: called with what the host sees of ``x`` and of the arrays among ``args``; makes a
            new array, or a scalar.
        x: whatever the user gave as the first array.
        *args: ``None`` comes back where NumPy does not take them.
    """
    if type(x) is not ndarray or x._on_host is None or not _tier_host.is_ready(x.sycl_queue):
        return None
    seen = []
    for arg in args:
        if type(arg) is ndarray:
            if arg.sycl_queue is not x.sycl_queue or arg.usm_type != x.usm_type:
                return None
            arg = arg._on_host
            if arg is None:
                return None
        elif isinstance(arg, np.ndarray | np.generic):
            return None
        seen.append(arg)
    try:
        values = _tier_host.silence.run(function, x._on_host, *seen)
    except (TypeError, ValueError, IndexError, OverflowError, RuntimeError, MemoryError):
        return None
    if type(values) is not np.ndarray:
        values = np.asarray(values)
    if values.dtype.char not in _NUMBERS:  # of a text or an object among the arguments
        return None
    if values.base is not None:  # NumPy has reshaped its result
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
    if size > _evaluate.HOST_ELEMENTS:
        return None
    return call_at_once(lambda *parts: function(parts, *args), *arrays)


def _is_small_pair(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the result of two small arrays is small too."""
    if first.shape == second.shape or first.size * second.size <= _evaluate.HOST_ELEMENTS:
        return True
    try:
        return np.broadcast(first, second).size <= _evaluate.HOST_ELEMENTS
    except ValueError:
        return False


def _one_at_once(op: Op, x: Any) -> ndarray | None:
    """An operation on one operand, or ``None`` if it is not for the host at once."""
    if type(x) is not ndarray or x._on_host is None or not _tier_host.is_ready(x.sycl_queue):
        return None
    values = _tier_host.compute(op, x._on_host)
    return None if values is None else ndarray._computed(values, x.sycl_queue, x.usm_type)


def _in_place_at_once(op: Op, x: ndarray, other: Any) -> bool:
    """Replace small ``x`` by an operation on it and another operand; false if that is not done."""
    target = x._on_host
    if target is None:
        return False
    if type(other) is ndarray:
        operand = other._on_host
        if operand is None or other.sycl_queue is not x.sycl_queue:
            return False
    elif type(other) in _SCALARS:
        operand = other
    else:
        return False
    if op is _POW or not _is_free_to_write(x, target):
        return False
    return _tier_host.compute(op, target, operand, target) is not None


def _is_free_to_write(x: ndarray, view: np.ndarray) -> bool:
    """Whether the host may write an array at once: it is idle, and nothing pending reads it."""
    return _tier_host.is_ready(x.sycl_queue) and (view.base is None or not x.block.readers)


def _view_at_once(x: ndarray, index: Any) -> ndarray | None:
    """The view that a basic index selects of a small array; ``None`` where NumPy refuses it."""
    seen = x._on_host
    if seen.base is None:  # type: ignore[union-attr]
        x.block  # noqa: B018 - views share memory, so there must be some
        seen = x._on_host
    try:
        view = seen[index]  # type: ignore[index]
        if type(view) is not np.ndarray:  # integers select a scalar
            view = seen[(*index, ...) if type(index) is tuple else (index, ...)]  # type: ignore[index]
    except IndexError:
        return None
    if not view.size:
        return None
    return _sharing(x, view)


def _sharing(x: ndarray, view: np.ndarray) -> ndarray:
    """An array over the memory of ``x``, of which the host sees ``view``."""
    result = object.__new__(ndarray)
    result._on_host = view
    result.block = x.block
    result.sycl_queue = x.sycl_queue
    result.usm_type = x.usm_type
    return result


def with_axes(x: ndarray, order: Sequence[int]) -> ndarray:
    """The view whose axis ``i`` is axis ``order[i]`` of ``x``; the others have extent 1."""
    seen = x._on_host
    if seen is not None and len(order) == seen.ndim and seen.size:
        if seen.base is None:
            x.block  # noqa: B018 - views share memory, so there must be some
            seen = x._on_host
        return _sharing(x, seen.transpose(order))  # type: ignore[union-attr]
    shape, strides = x.shape, x.strides
    return x._view(
        tuple([shape[axis] for axis in order]), tuple([strides[axis] for axis in order]), x.offset
    )


def _write_at_once(x: ndarray, index: Any, value: Any) -> bool:
    """Write to a part of a small array; false if that is not done."""
    target = x._on_host
    if target is None:
        return False
    kind = target.dtype.kind
    source: Any
    if type(value) is ndarray:
        source = value._on_host
        if (
            source is None
            or value.sycl_queue is not x.sycl_queue
            or (source.dtype.kind == "c" and kind != "c")
        ):
            return False
    elif type(value) is float or type(value) is int:
        if kind not in "fc" and not (kind in "iu" and type(value) is int):
            return False
        source = value
    else:
        return False
    if not _is_free_to_write(x, target):
        return False
    try:
        _tier_host.silence.run(operator.setitem, target, index, source)
    except (IndexError, ValueError, OverflowError, TypeError, RuntimeError):
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
    if out is None:
        result = _pair_at_once(op, *operands) if op.arity == 2 else _one_at_once(op, *operands)
        if result is not None:
            return result
    return _defer(op, operands, out)


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
        else:
            values[len(keys)], key = _weak_scalar(op, name, value)
            keys.append(key)
    if not arrays:
        queue = out.sycl_queue if out is not None else default_device().sycl_queue
        values[0] = full_scalar(values[0], queue)
        arrays.append((op.parameters[0], values[0]))
        keys[0] = values[0].dtype
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
    if op.name == "pow" and type(values[1]) in (int, float) and loop[-1].kind == "f":
        op, values, loop = _simpler_power(op, values, loop)
    if op.name == "floor_divide" and loop[-1].kind == "f":
        quotient = _floored_quotient(values[0], values[1], loop, shape, placement)
        return quotient if out is None else apply(OPS["positive"], quotient, out=out)
    if out is None:
        return operate(op, values, loop, shape, placement)
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
        out._node = _noted(
            _node_of(op, values, loop, shape, Placement(*placement[:1], out.usm_type))
        )
    elif out.size:
        target = layout_of(out)
        if config.lazy or not _evaluate.compute_known(
            op, values, loop, out.shape, *placement, target
        ):
            _evaluate.store(_node_of(op, values, loop, out.shape, placement), target, True)
    return out


def beside(function: str, names: Sequence[str], operands: Sequence[Any]) -> list[Any]:
    """Operands with sequences made arrays beside the arrays among them; scalars stay weak."""
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
        layout = _evaluate.compute_known(op, operands, loop, shape, *placement)
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
        small = call_at_once(lambda values: _tier_host.reduced(op, values, scalars, loop), x)
        if small is not None:
            return small
    shape = _layout.reduced_shape(x.shape, axes, keepdims)
    loops = (*[loop] * (1 + len(scalars)), dtype)
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
            may_wait &= _evaluate.note_reader(node, operand)
    if not may_wait:
        _evaluate.evaluate(node)
    return node


def _weak_scalar(op: Op, name: str, value: Any) -> tuple[Any, Any]:
    """A scalar operand as a Python scalar, and the kind by which it takes part in promotion."""
    value = scalar_value(value)
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
        _evaluate.evaluate(*(part for part in parts if type(part) is Node))
        node = Node(op, parts, loop, shape, node.size, *placement)
    return node


def _simpler_power(
    op: Op, values: list[Any], loop: tuple[np.dtype[Any], ...]
) -> tuple[Op, list[Any], tuple[np.dtype[Any], ...]]:
    """A power with a constant exponent as the operation NumPy makes of it, where there is one."""
    simpler = _SIMPLER_POWERS.get(values[1])
    if simpler is None or not isinstance(values[0], ndarray):
        return op, values, loop
    return simpler, values[:1], loop[::2]


_POW = OPS["pow"]
_SIMPLER_POWERS = {2: OPS["square"], 0.5: OPS["sqrt"], 1: OPS["positive"]}


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
    """A comparison with an integer that the array's dtype cannot hold has one answer everywhere."""
    first_is_array = isinstance(operands[0], ndarray)
    x = operands[0] if first_is_array else operands[1]
    value = scalar_value(operands[1] if first_is_array else operands[0])
    sample, bound = (0, 1 if value > 0 else -1)
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
    return _evaluate.library_call(
        name, function, [array._tensor for _, array in arrays], args, kwargs, _from_tensor
    )


def call_numpy(function: Callable[..., Any], arrays: Sequence[ndarray], out: ndarray) -> bool:
    """Let NumPy compute in the memory of arrays on a CPU device; false on any other.

    For what a measurement found faster there. ``function`` is called with NumPy arrays over
    ``arrays`` and over ``out``, which it fills; whatever is pending on ``out`` is computed first.
    The calling thread waits for the queue's work before it.
    """
    if not (config.host_tier and _usm.is_cpu(out.sycl_queue)):
        return False
    layouts = [layout_of(x) for x in (*arrays, out)]
    _evaluate.settle_readers(out.block)
    views = _usm.host_views(out.sycl_queue, *layouts)
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
    if not (config.host_tier and computes_in_double(arrays[0].sycl_queue)):
        return None
    return _usm.host_views(arrays[0].sycl_queue, *map(layout_of, arrays))


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
        _usm.wait_for_host_tasks(arrays[0][1].sycl_queue)
        return function(*map(_usm.dpnp_array, operands[:count]), *operands[count:], **options)

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
        return call_neighbour(name, lambda *operands: function(_usm.neighbour, *operands), arrays)
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
    return ndarray._from_layout(*_usm.layout_of_tensor(tensor))
