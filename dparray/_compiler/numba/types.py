"""Numba types for the values in kernels, and their layouts.

An array has the members of Numba's own arrays, with a pointer into its address space, so that
Numba's code for views, indices and slices also handles device arrays. An item of a ``Range``
contains the requested range, since the launched one may be rounded up. Other items and groups have
no members: their numbers are built-in variables of the device.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import (
    DataModel,
    FloatModel,
    OpaqueModel,
    PrimitiveModel,
    StructModel,
)
from numba.core.errors import TypingError
from numba.core.typeconv import Conversion

from dparray._type_keys import text_of
from dparray.kernel_api import AddressSpace

PRIVATE = int(AddressSpace.PRIVATE)
GLOBAL = int(AddressSpace.GLOBAL)
CONSTANT = int(AddressSpace.CONSTANT)
LOCAL = int(AddressSpace.LOCAL)

_MAX_DIMENSIONS = 3


class DeviceArray(types.Array):
    """An array in device memory: global, local to a group, or private to a work-item."""

    def __init__(
        self,
        dtype: Any,
        ndim: int,
        layout: str = "C",
        addrspace: int = GLOBAL,
        readonly: bool = False,
        aligned: bool = True,
    ) -> None:
        self.addrspace = addrspace
        where = AddressSpace(addrspace).name.lower()
        kind = "readonly array" if readonly else "array"
        name = f"{where} {kind}({dtype}, {ndim}d, {layout})"
        super().__init__(dtype, ndim, layout, readonly=readonly, name=name, aligned=aligned)

    @property
    def key(self) -> tuple[Any, ...]:
        """The parts that distinguish types."""
        return (*super().key, self.addrspace)

    @property
    def as_array(self) -> DeviceArray:
        """The type itself, which Numba queries on all array-like types."""
        return self

    @property
    def mangling_args(self) -> tuple[str, list[Any]]:
        """The spelling in mangled function names."""
        args = [self.dtype, self.ndim, self.layout, self.addrspace, not self.mutable]
        return type(self).__name__, args

    def copy(
        self,
        dtype: Any = None,
        ndim: int | None = None,
        layout: str | None = None,
        readonly: bool | None = None,
    ) -> DeviceArray:
        """Return the type with some parts changed, in the same memory."""
        return DeviceArray(
            self.dtype if dtype is None else dtype,
            self.ndim if ndim is None else ndim,
            self.layout if layout is None else layout,
            self.addrspace,
            readonly=(not self.mutable) if readonly is None else readonly,
            aligned=self.aligned,
        )

    def unify(self, typingctx: Any, other: Any) -> DeviceArray | None:
        """Return the common type of two arrays; for different layouts, that of any strides."""
        if not self._is_like(other):
            return None
        return self.copy(
            layout=self.layout if self.layout == other.layout else "A",
            readonly=not (self.mutable and other.mutable),
        )

    def can_convert_to(self, typingctx: Any, other: Any) -> Any:
        """Return whether it can be used as an array of the other type."""
        if (
            self._is_like(other)
            and other.layout in ("A", self.layout)
            and (self.mutable or not other.mutable)
        ):
            return Conversion.safe
        return None

    def _is_like(self, other: Any) -> bool:
        return (
            isinstance(other, DeviceArray)
            and (other.dtype, other.ndim) == (self.dtype, self.ndim)
            and other.addrspace == self.addrspace
        )


def local_array(dtype: Any, ndim: int) -> DeviceArray:
    """Return the type of a local accessor."""
    return DeviceArray(dtype, ndim, "C", LOCAL)


class _SpaceType(types.Type):
    """An item or a group of a range with some dimensions."""

    label = ""

    def __init__(self, ndim: int, how: str = "") -> None:
        if not 1 <= ndim <= _MAX_DIMENSIONS:
            raise TypingError(f"{self.label}: must have 1, 2 or 3 dimensions; got {ndim}")
        self.ndim = ndim
        super().__init__(name=f"{self.label}<{ndim}>{how}")

    @property
    def mangling_args(self) -> tuple[str, list[Any]]:
        """The spelling in mangled function names."""
        return type(self).__name__, [self.ndim]


class ItemType(_SpaceType):
    """``Item``: a work-item of a ``Range``, which may be launched in pieces."""

    label = "Item"

    def __init__(self, ndim: int, in_pieces: bool = False) -> None:
        super().__init__(ndim, " in pieces" if in_pieces else "")
        self.in_pieces = in_pieces

    @property
    def mangling_args(self) -> tuple[str, list[Any]]:
        """The spelling in mangled function names."""
        return type(self).__name__, [self.ndim, self.in_pieces]


class NdItemType(_SpaceType):
    """``NdItem``: a work-item of an ``NdRange``."""

    label = "NdItem"


class GroupType(_SpaceType):
    """``Group``: the work-group of an ``NdItem``."""

    label = "Group"


class SubGroupType(_SpaceType):
    """``SubGroup``: the sub-group of an ``NdItem``, which is always one-dimensional."""

    label = "SubGroup"


class ConstantType(types.Type):
    """The type of a parameter whose value is compiled into the kernel; a launch passes nothing."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(name=f"constant {text_of(value)}")


class AtomicRefType(types.Type):
    """``AtomicRef``: an element that several work-items update."""

    def __init__(
        self, dtype: Any, memory_order: int, memory_scope: int, address_space: int
    ) -> None:
        self.dtype = dtype
        self.memory_order = memory_order
        self.memory_scope = memory_scope
        self.address_space = address_space
        parts = f"{dtype}, order {memory_order}, scope {memory_scope}, space {address_space}"
        super().__init__(name=f"AtomicRef<{parts}>")


class VectorType(types.Type):
    """``vec``: a few numbers in registers."""

    def __init__(self, dtype: Any, width: int) -> None:
        self.dtype = dtype
        self.width = width
        super().__init__(name=f"vec({dtype}, {width})")

    @property
    def mangling_args(self) -> tuple[str, list[Any]]:
        """The spelling in mangled function names."""
        return type(self).__name__, [self.dtype, self.width]


# --- layouts --------------------------------------------------------------------------------------


class _ArrayModel(StructModel):
    def __init__(self, manager: Any, numba_type: DeviceArray) -> None:
        dimensions = numba_type.ndim
        members = [
            # Devices do not count references, but Numba's code for arrays names both members.
            ("meminfo", types.MemInfoPointer(numba_type.dtype)),
            ("parent", types.pyobject),
            ("nitems", types.intp),
            ("itemsize", types.intp),
            ("data", types.CPointer(numba_type.dtype, addrspace=numba_type.addrspace)),
            ("shape", types.UniTuple(types.intp, dimensions)),
            ("strides", types.UniTuple(types.intp, dimensions)),
        ]
        super().__init__(manager, numba_type, members)


class _PointerModel(PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        element = manager.lookup(numba_type.dtype).get_data_type()
        super().__init__(manager, numba_type, element.as_pointer(numba_type.addrspace or PRIVATE))


class _HalfModel(DataModel):
    """The layout of float16: stored as 16 bits, and computed as float32 that is rounded to them."""

    def get_value_type(self) -> Any:
        return ir.FloatType()

    def get_data_type(self) -> Any:
        return ir.HalfType()

    def as_data(self, builder: Any, value: Any) -> Any:
        return builder.fptrunc(value, ir.HalfType())

    def from_data(self, builder: Any, value: Any) -> Any:
        return builder.fpext(value, ir.FloatType())

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    get_argument_type = get_return_type = get_value_type
    from_argument = as_return = from_return = as_argument


class _SpaceModel(StructModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, [])


class _ItemModel(StructModel):
    def __init__(self, manager: Any, numba_type: ItemType) -> None:
        extents = types.UniTuple(types.int64, numba_type.ndim)
        # For a piece; and for a range in pieces, its size and the start of the piece.
        names = ("extents", "whole", "offset") if numba_type.in_pieces else ("extents",)
        super().__init__(manager, numba_type, [(name, extents) for name in names])


class _ReferenceModel(PrimitiveModel):
    def __init__(self, manager: Any, numba_type: AtomicRefType) -> None:
        element = manager.lookup(numba_type.dtype).get_data_type()
        super().__init__(manager, numba_type, element.as_pointer(numba_type.address_space))


class _VectorModel(PrimitiveModel):
    def __init__(self, manager: Any, numba_type: VectorType) -> None:
        element = manager.lookup(numba_type.dtype).get_value_type()
        super().__init__(manager, numba_type, ir.VectorType(element, numba_type.width))


def _float_model(manager: Any, numba_type: Any) -> Any:
    return (_HalfModel if numba_type.bitwidth == 16 else FloatModel)(manager, numba_type)


def data_models() -> Any:
    """Return the layouts of all types that kernels use."""
    manager = default_manager.copy()
    for numba_type, model in (
        (DeviceArray, _ArrayModel),
        (types.CPointer, _PointerModel),
        (ItemType, _ItemModel),
        (NdItemType, _SpaceModel),
        (GroupType, _SpaceModel),
        (SubGroupType, _SpaceModel),
        (ConstantType, _SpaceModel),
        (types.Float, _float_model),
        (AtomicRefType, _ReferenceModel),
        (VectorType, _VectorModel),
        # A string literal is also a variable before it becomes part of a format.
        (types.UnicodeType, OpaqueModel),
    ):
        manager.register(numba_type, model)
    return manager
