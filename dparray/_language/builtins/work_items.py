"""Items and groups: ids, sizes, barriers and fences."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dparray import kernel_api as api
from dparray._ir.types import BOOL, I64
from dparray._language.builtins.memory import ORDERS, SCOPES, changed
from dparray._language.builtins.registry import HANDLERS, handles
from dparray._language.errors import Refusal, method_problem
from dparray._language.values import NONE, Constant, Item, Number, described, is_number
from dparray.kernel_api import MemoryOrder, MemoryScope, work_items

WRONG_FENCE = (
    "atomic_fence takes an order and a scope, as in dp.atomic_fence(dp.MemoryOrder.ACQ_REL, "
    "dp.MemoryScope.DEVICE), and group_barrier a group and perhaps a scope, as in "
    "dp.group_barrier(item.get_group(), dp.MemoryScope.WORK_GROUP)"
)
_INDICES = {
    ("NdItem", "get_global_id"): "global_id",
    ("NdItem", "get_local_id"): "local_id",
    ("NdItem", "get_global_range"): "global_size",
    ("NdItem", "get_local_range"): "local_size",
    ("Group", "get_group_id"): "group_id",
    ("Group", "get_group_range"): "group_count",
    ("Group", "get_local_range"): "local_size",
}
_LANES = {
    "get_local_id": "sub_group_local_id",
    "get_local_range": "sub_group_size",
    "get_max_local_range": "sub_group_max_size",
    "get_group_id": "sub_group_id",
    "get_group_range": "sub_group_count",
    "get_local_linear_id": "sub_group_local_id",
    "get_group_linear_id": "sub_group_id",
    "get_local_linear_range": "sub_group_size",
    "get_group_linear_range": "sub_group_count",
}
_LINEAR_IDS = {
    ("NdItem", "get_global_linear_id"): ("get_global_id", "get_global_range"),
    ("NdItem", "get_local_linear_id"): ("get_local_id", "get_local_range"),
    ("Group", "get_group_linear_id"): ("get_group_id", "get_group_range"),
    ("Item", "get_linear_id"): ("get_id", "get_range"),
}
_LINEAR_RANGES = {
    ("NdItem", "get_global_linear_range"): "get_global_range",
    ("NdItem", "get_local_linear_range"): "get_local_range",
    ("Group", "get_group_linear_range"): "get_group_range",
    ("Group", "get_local_linear_range"): "get_local_range",
    ("Item", "get_linear_range"): "get_range",
}
_OF_A_DIMENSION = {*_INDICES, ("Item", "get_id"), ("Item", "get_range")}


def method(
    front: Any,
    item: Item,
    name: str,
    node: Any,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> Any:
    """Translate a method of an item or a group."""
    values = [*arguments, *named.values()]
    if item.kind == "SubGroup" and name in _LANES:
        return front.python(_of_sub_group(front, name, values, node))
    if (item.kind, name) in _OF_A_DIMENSION:
        if len(values) != 1 or set(named) - {"dim"}:
            raise Refusal(
                f"item.{name} requires a dimension: item.{name}(0), the number of a dimension "
                "of the range",
                node,
            )
        return front.python(_of_a_dimension(front, item, name, values[0], node))
    if not values:
        if "linear" in name or name == "get_sub_group":
            front.notes.reads_all = True
        if item.kind == "NdItem" and name == "get_group":
            return Item("Group", item.dimensions)
        if item.kind == "NdItem" and name == "get_sub_group":
            return Item("SubGroup", 1)
        if (item.kind, name) in _LINEAR_IDS:
            return front.python(linear_id(front, item, *_LINEAR_IDS[item.kind, name], node))
        if (item.kind, name) in _LINEAR_RANGES:
            return front.python(linear_range(front, item, _LINEAR_RANGES[item.kind, name], node))
    raise Refusal(method_problem(item.kind, name), node)


def _of_sub_group(front: Any, name: str, values: Sequence[Any], node: Any) -> Number:
    if values:
        raise Refusal(
            f"a sub-group has one dimension: item.get_sub_group().{name}() has no argument", node
        )
    return front.index(_LANES[name], 0)


def _of_a_dimension(front: Any, item: Item, name: str, dim: Any, node: Any) -> Number:
    if not is_number(dim) or not front.type_of(dim).is_integer:
        raise Refusal(f"item.{name} requires a dimension: an integer; got {described(dim)}", node)
    is_id = name.endswith("_id")
    if isinstance(dim, Constant):
        if is_id:
            front.notes.reads(dim.value)
        return _of_dimension(front, item, name, dim.value, node)
    front.notes.reads_all |= is_id
    front.check_dimension(dim, item.dimensions, node)
    result = _of_dimension(front, item, name, 0, node)
    for dimension in range(1, item.dimensions):
        is_this = front.compare(ast.Eq, dim, Constant(dimension), node)
        other = _of_dimension(front, item, name, dimension, node)
        op = front.op("select", I64, is_this.op, other.op, result.op)
        result = Number(op, is_natural=True)
    return result


def _of_dimension(front: Any, item: Item, name: str, dimension: int, node: Any) -> Number:
    count = item.dimensions
    if not 0 <= dimension < count:
        has = "only dimension 0" if count == 1 else f"dimensions 0 to {count - 1}"
        raise Refusal(
            f"the range of this kernel has {has}; got dimension {dimension}. Use an existing "
            "dimension, or launch over a range with more dimensions",
            node,
        )
    if item.kind == "Item":
        if name == "get_range":
            return item.range[dimension]
        own = front.index("global_id", dimension)
        return front.made("add", I64, own, item.offset[dimension], True) if item.offset else own
    return front.index(_INDICES[item.kind, name], dimension)


def linear_id(front: Any, item: Item, ids: str, sizes: str, node: Any) -> Number:
    """Return an id as one number, the last dimension fastest."""
    result = _of_dimension(front, item, ids, 0, node)
    for dimension in range(1, item.dimensions):
        size = _of_dimension(front, item, sizes, dimension, node)
        own = _of_dimension(front, item, ids, dimension, node)
        result = front.made("add", I64, front.made("mul", I64, result, size, True), own, True)
    return result


def linear_range(front: Any, item: Item, sizes: str, node: Any) -> Number:
    """Return the product of the sizes."""
    result = _of_dimension(front, item, sizes, 0, node)
    for dimension in range(1, item.dimensions):
        size = _of_dimension(front, item, sizes, dimension, node)
        result = front.made("mul", I64, result, size, True)
    return result


def row_major_id(front: Any, group: Item) -> Number:
    """Return the number of a work-item in its group."""
    item = Item("NdItem", group.dimensions)
    return linear_id(front, item, "get_local_id", "get_local_range", None)


def leader(front: Any, group: Item) -> Number:
    """Return whether a work-item is the first of its group or sub-group."""
    if group.kind == "SubGroup":
        mine = front.index("sub_group_local_id", 0)
    else:
        mine = row_major_id(front, group)
    return Number(front.op("eq", BOOL, mine.op, front.constant(0, I64)))


# --- barriers and fences --------------------------------------------------------------------------


@handles(api.group_barrier)
def _barrier(
    front: Any, node: Any, group: Any, fence_scope: Any = Constant(MemoryScope.WORK_GROUP)
) -> Constant:
    if not isinstance(group, Item) or group.kind not in ("Group", "SubGroup"):
        raise Refusal(
            "group_barrier takes item.get_group() of an NdItem: launch over an NdRange", node
        )
    waits = "sub_group" if group.kind == "SubGroup" else "work_group"
    scope = _member(fence_scope, SCOPES, MemoryScope, node)
    front.op("barrier", None, attribute=(waits, scope))
    return NONE


@handles(api.atomic_fence)
def _fence(front: Any, node: Any, memory_order: Any, memory_scope: Any) -> Constant:
    order = _member(memory_order, ORDERS, MemoryOrder, node)
    scope = _member(memory_scope, SCOPES, MemoryScope, node)
    front.op("fence", None, attribute=(scope, order))
    return NONE


def _member(value: Any, words: Mapping[Any, str], enumeration: Any, node: Any) -> str:
    if not isinstance(value, Constant) or not isinstance(value.value, int):
        raise Refusal(WRONG_FENCE, node)
    try:
        return words[enumeration(value.value)]
    except ValueError:
        raise Refusal(WRONG_FENCE, node) from None


# --- kernels without an item ----------------------------------------------------------------------
# They ask for an implicit item of three dimensions. Dimensions that a range lacks have one
# work-item.


def _asked(kind: str, name: str, front: Any, node: Any, dim: Any = Constant(0)) -> Number:
    return _of_a_dimension(front, Item(kind, 3), name, dim, node)


for _function, _kind, _name in (
    (work_items.get_global_id, "NdItem", "get_global_id"),
    (work_items.get_local_id, "NdItem", "get_local_id"),
    (work_items.get_global_size, "NdItem", "get_global_range"),
    (work_items.get_local_size, "NdItem", "get_local_range"),
    (work_items.get_group_id, "Group", "get_group_id"),
    (work_items.get_num_groups, "Group", "get_group_range"),
):
    HANDLERS[_function] = partial(_asked, _kind, _name)


@handles(work_items.barrier)
def _group_barrier(front: Any, node: Any, flags: Any = None) -> Constant:
    return _barrier(front, node, Item("Group", 3))


@handles(work_items.sub_group_barrier)
def _sub_group_barrier(front: Any, node: Any) -> Constant:
    return _barrier(front, node, Item("SubGroup", 1))


@handles(work_items.mem_fence)
def _memory_fence(front: Any, node: Any, flags: Any = None) -> Constant:
    scope = Constant(MemoryScope.WORK_GROUP)
    return _fence(front, node, Constant(MemoryOrder.ACQ_REL), scope)


HANDLERS[work_items.add_atomically] = partial(changed, "fetch_add")
HANDLERS[work_items.sub_atomically] = partial(changed, "fetch_sub")
