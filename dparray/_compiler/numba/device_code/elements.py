"""Elements of arrays, and array shapes.

Numba copies an array to private memory to read its members, and LLVM removes the copy again: an
element of a matrix costs 45 lines of IR. Here the members are read in place.

Loaded by ``_compiler.numba.device_code``; importing it registers the implementations.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, types
from numba.np import arrayobj

from dparray._compiler.numba.target import registry
from dparray._compiler.numba.types import DeviceArray


def _place(context: Any, builder: Any, array: Any, value: Any, kind: Any, index: Any) -> Any:
    """Return the pointer to an element; ``None`` if the index selects more, or is checked."""
    if isinstance(kind, types.BaseTuple):
        kinds = kind.types
    else:
        kinds = (kind,)
    if context.enable_boundscheck or len(kinds) != array.ndim or array.ndim == 0:
        return None
    if not all(isinstance(each, types.Integer) for each in kinds):
        return None
    indices = (
        cgutils.unpack_tuple(builder, index, count=len(kinds))
        if isinstance(kind, types.BaseTuple)
        else [index]
    )
    model = context.data_model_manager[array]
    extents = cgutils.unpack_tuple(builder, model.get(builder, value, "shape"), array.ndim)
    strides = []
    if array.layout == "A":
        strides = cgutils.unpack_tuple(builder, model.get(builder, value, "strides"), array.ndim)
    fixed = [
        arrayobj.fix_integer_index(context, builder, *each)
        for each in zip(kinds, indices, extents, strict=True)
    ]
    data = model.get(builder, value, "data")
    return cgutils.get_item_pointer2(context, builder, data, extents, strides, array.layout, fixed)


@registry.lower(operator.getitem, DeviceArray, types.BaseTuple)
@registry.lower(operator.getitem, DeviceArray, types.Integer)
def _get(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, kind = signature.args
    if any(isinstance(part, types.Array) for part in getattr(kind, "types", ())):
        raise NotImplementedError("an array cannot index an array in a kernel; write a loop")
    place = _place(context, builder, array, arguments[0], kind, arguments[1])
    if place is not None:
        return arrayobj.load_item(context, builder, array, place)
    if isinstance(kind, types.BaseTuple):
        return arrayobj.getitem_array_tuple(context, builder, signature, arguments)
    return arrayobj.getitem_arraynd_intp(context, builder, signature, arguments)


@registry.lower(operator.setitem, DeviceArray, types.Any, types.Any)
def _set(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, kind, number = signature.args
    place = _place(context, builder, array, arguments[0], kind, arguments[1])
    if place is None:
        return arrayobj.setitem_array(context, builder, signature, arguments)
    value = context.cast(builder, arguments[2], number, array.dtype)
    arrayobj.store_item(context, builder, array, value, place)
    return None


@registry.lower_getattr(DeviceArray, "shape")
def _shape(context: Any, builder: Any, array: Any, value: Any) -> Any:
    return context.data_model_manager[array].get(builder, value, "shape")
