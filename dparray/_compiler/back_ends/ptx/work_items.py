"""Definitions of the functions that return ids and sizes of work-items, groups and sub-groups.

CUDA's dimension ``x`` varies fastest among the threads of a warp. It is the last dimension of a
range, as in DPC++, so that the work-items of a sub-group access neighboring elements of a C array.
"""

from __future__ import annotations

from typing import NamedTuple

WARP = 32
_INDICES = {
    "get_global_id": ("ctaid", "ntid", "tid"),
    "get_global_size": ("nctaid", "ntid"),
    "get_local_id": ("tid",),
    "get_local_size": ("ntid",),
    "get_group_id": ("ctaid",),
    "get_num_groups": ("nctaid",),
}
# Products of sizes fit 31 bits: a launch has fewer than 2**31 work-items in each dimension.
_COMBINED = {
    1: "  %r{d} = add i32 %a{d}, 0",
    2: "  %r{d} = mul nuw nsw i32 %a{d}, %b{d}",
    3: "  %m{d} = mul nuw nsw i32 %a{d}, %b{d}\n  %r{d} = add nuw nsw i32 %m{d}, %c{d}",
}
_REGISTER = "call i32 @llvm.nvvm.read.ptx.sreg.{}()"


class Launch(NamedTuple):
    """Properties of a kernel's launches that are known when it is compiled.

    Attributes:
        ndim: the number of dimensions of its range.
        whole_warps: whether the size of its groups is a multiple of 32.
    """

    ndim: int = 1
    whole_warps: bool = False


def definition(name: str, launch: Launch) -> str | None:
    """Return the body of a function, or None for a name that is not here."""
    if name in _INDICES:
        return _index(name, launch.ndim)
    if name == "dparray.linear_id":
        return _linear_id(launch.ndim)
    if name == "dparray.group_size":
        return _group_size(launch.ndim)
    if name == "get_sub_group_size" and launch.whole_warps:
        return f"  ret i32 {WARP}"  # a constant, so that loops over a sub-group are unrolled
    return _OF_SUB_GROUPS.get(name)


def _index(name: str, ndim: int) -> str:
    """Select by the dimension, which is nearly always a constant."""
    cases = " ".join(f"i32 {d}, label %d{d}" for d in range(ndim))
    lines = [f"  switch i32 %0, label %none [{cases}]"]
    for d in range(ndim):
        axis = "xyz"[ndim - 1 - d]
        lines.append(f"d{d}:")
        registers = _INDICES[name]
        for letter, register in zip("abc", registers, strict=False):
            lines.append(f"  %{letter}{d} = {_REGISTER.format(f'{register}.{axis}')}")
        lines.append(_COMBINED[len(registers)].format(d=d))
        lines += [f"  %w{d} = zext i32 %r{d} to i64", f"  ret i64 %w{d}"]
    return "\n".join([*lines, "none:", f"  ret i64 {0 if name.endswith('id') else 1}"])


def _linear_id(ndim: int) -> str:
    """Return a work-item's number in its group, the last dimension fastest: CUDA's order."""
    lines = [f"  %id = {_REGISTER.format('tid.' + 'xyz'[ndim - 1])}"]
    linear = "%id"
    for axis in "xyz"[: ndim - 1][::-1]:
        lines += [
            f"  %n{axis} = {_REGISTER.format(f'ntid.{axis}')}",
            f"  %t{axis} = {_REGISTER.format(f'tid.{axis}')}",
            f"  %m{axis} = mul nuw nsw i32 {linear}, %n{axis}",
            f"  %l{axis} = add nuw nsw i32 %m{axis}, %t{axis}",
        ]
        linear = f"%l{axis}"
    return "\n".join([*lines, f"  ret i32 {linear}"])


def _group_size(ndim: int) -> str:
    lines = [f"  %x = {_REGISTER.format('ntid.x')}"]
    size = "%x"
    for axis in "yz"[: ndim - 1]:
        lines += [
            f"  %{axis} = {_REGISTER.format(f'ntid.{axis}')}",
            f"  %m{axis} = mul nuw nsw i32 {size}, %{axis}",
        ]
        size = f"%m{axis}"
    return "\n".join([*lines, f"  ret i32 {size}"])


# %warpid is not used: the PTX manual calls it volatile. %laneid does not change.
_OF_SUB_GROUPS = {
    "get_sub_group_local_id": f"  %r = {_REGISTER.format('laneid')}\n  ret i32 %r",
    # The last warp of a group may have fewer threads.
    "get_sub_group_size": f"""  %size = call i32 @dparray.group_size()
  %linear = call i32 @dparray.linear_id()
  %first = and i32 %linear, {-WARP}
  %left = sub i32 %size, %first
  %r = call i32 @llvm.umin.i32(i32 %left, i32 {WARP})
  ret i32 %r""",
    "get_max_sub_group_size": f"  ret i32 {WARP}",
    "get_sub_group_id": f"""  %linear = call i32 @dparray.linear_id()
  %r = udiv i32 %linear, {WARP}
  ret i32 %r""",
    "get_num_sub_groups": f"""  %size = call i32 @dparray.group_size()
  %more = add i32 %size, {WARP - 1}
  %r = udiv i32 %more, {WARP}
  ret i32 %r""",
}
