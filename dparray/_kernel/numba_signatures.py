"""Signatures in Numba's types, as programs for numba-dpex write them.

Only such programs import this module, and with it Numba.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.sigutils import normalize_signature
from numba.np import numpy_support

from dparray import _type_keys
from dparray._type_keys import TypeKey
from dparray.exceptions import KernelArgumentError
from dparray.kernel_api import AddressSpace

GLOBAL = int(AddressSpace.GLOBAL)
LOCAL = int(AddressSpace.LOCAL)
_MAX_DIMENSIONS = 3


class DeviceArray(types.Array):
    """An array in device memory: global, or local to a group."""

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


def local_array(dtype: Any, ndim: int) -> DeviceArray:
    """Return the type of a local accessor."""
    return DeviceArray(dtype, ndim, "C", LOCAL)


class _SpaceType(types.Type):
    """An item or a group of a range with some dimensions."""

    label = ""

    def __init__(self, ndim: int) -> None:
        if not 1 <= ndim <= _MAX_DIMENSIONS:
            raise TypingError(f"{self.label}: must have 1, 2 or 3 dimensions; got {ndim}")
        self.ndim = ndim
        super().__init__(name=f"{self.label}<{ndim}>")


class ItemType(_SpaceType):
    """``Item``: a work-item of a ``Range``."""

    label = "Item"


class NdItemType(_SpaceType):
    """``NdItem``: a work-item of an ``NdRange``."""

    label = "NdItem"


class GroupType(_SpaceType):
    """``Group``: the work-group of an ``NdItem``."""

    label = "Group"


_ITEMS = {"item": ItemType, "nditem": NdItemType}


def keys_of_signatures(signatures: Any) -> list[tuple[str, ...]]:
    """Return the type keys, item first, of a signature in Numba's types or of a list of them.

    Raises:
        KernelArgumentError: a type that kernels do not support, or a signature with a return type.
    """
    given = signatures if isinstance(signatures, list) else [signatures]
    return [_keys_of_signature(signature) for signature in given]


def _keys_of_signature(signature: Any) -> tuple[str, ...]:
    try:
        arguments, result = normalize_signature(signature)
    except Exception as error:
        raise KernelArgumentError(
            f"kernel: {signature!r} is neither a function nor a signature: {error}"
        ) from error
    if result is not None and result != types.void:
        raise KernelArgumentError(f"kernel: a kernel returns nothing; the signature says {result}")
    return tuple(map(_key_of_type, arguments))


def _key_of_type(numba_type: Any) -> str:
    """Return the type key of a Numba type."""
    for kind, cls in _ITEMS.items():
        if isinstance(numba_type, cls):
            return str(TypeKey(kind, "", numba_type.ndim))
    try:
        dtype = numpy_support.as_dtype(getattr(numba_type, "dtype", numba_type))
        code = _type_keys.code_of(dtype)
    except NotImplementedError:
        raise KernelArgumentError(f"kernel: a kernel cannot take a {numba_type}") from None
    if isinstance(numba_type, DeviceArray):
        if numba_type.addrspace == LOCAL:
            return str(TypeKey("local", code, numba_type.ndim))
        order = numba_type.layout if numba_type.mutable else "R"
        return str(TypeKey("array", code, numba_type.ndim, order))
    if isinstance(numba_type, types.Array):
        raise KernelArgumentError(
            f"kernel: {numba_type} is an array of the host; a signature takes "
            "numba_dpex.USMNdArray(ndim, layout, dtype)"
        )
    return code
