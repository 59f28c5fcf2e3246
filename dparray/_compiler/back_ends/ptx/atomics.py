"""Definitions of atomic operations, fences and barriers.

Scopes and orders are arguments in SPIR-V and parts of the instruction in LLVM IR. They are
constants in nearly all calls, so one of the branches remains. Without a constant, the branches
choose at run time.
"""

from __future__ import annotations

from dparray._compiler.abi import UPDATES
from dparray._compiler.back_ends.ptx.groups import BARRIER, BITS

_SCOPES = {"system": "", "device": ' syncscope("device")', "block": ' syncscope("block")'}
_ORDERS = {0: "monotonic", 2: "acquire", 4: "release", 8: "acq_rel", 16: "seq_cst"}
_READING = {"release": "monotonic", "acq_rel": "acquire"}
_WRITING = {"acquire": "monotonic", "acq_rel": "release"}
# The scopes 0 and 1 are the system and the device, the others at most the work-group. CUDA's
# barrier of a block orders the accesses of its threads, also those to global memory.
_FENCES = """  switch i32 %{scope}, label %narrow [i32 0, label %system i32 1, label %device]
system:
  call void @llvm.nvvm.membar.sys()
  br label %ordered
device:
  call void @llvm.nvvm.membar.gl()
  br label %ordered
narrow:
  {narrow}
ordered:
"""
_FENCE = (
    _FENCES.format(scope=0, narrow="call void @llvm.nvvm.membar.cta()\n  br label %ordered")
    + "  ret void"
)
_BARRIER = (
    _FENCES.format(scope=1, narrow="br label %ordered")
    + f"""  %of_warp = icmp eq i32 %0, 3
  br i1 %of_warp, label %warp, label %group
warp:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
group:
  {BARRIER}
  ret void"""
)


def definition(name: str, result: str, parameters: list[str]) -> str | None:
    """Return the body of a function, or None for a name that is not here."""
    if name == "__spirv_ControlBarrier":
        return _BARRIER
    if name == "__spirv_MemoryBarrier":
        return _FENCE
    if name.startswith("__spirv_Atomic"):
        return _atomic(name.removeprefix("__spirv_Atomic"), result, parameters)
    return None


def _atomic(name: str, result: str, parameters: list[str]) -> str | None:
    """Parameters: the address, the scope, the order, and further ones of each operation."""
    lines = [
        "  %order = and i32 %2, 30",
        "  switch i32 %1, label %block [i32 0, label %system i32 1, label %device]",
    ]
    for scope, written in _SCOPES.items():
        cases = " ".join(f"i32 {bits}, label %{scope}{bits}" for bits in _ORDERS if bits)
        lines += [f"{scope}:", f"  switch i32 %order, label %{scope}0 [{cases}]"]
        for bits, order in _ORDERS.items():
            operation = _operation(name, result, parameters, written, order)
            if operation is None:
                return None
            lines.append(f"{scope}{bits}:")
            at = f"{scope}{bits}"
            lines.append(operation.format(at=at))
            lines.append("  ret void" if result == "void" else f"  ret {result} %r.{at}")
    return "\n".join(lines)


def _operation(name: str, result: str, parameters: list[str], scope: str, order: str) -> str | None:
    pointer = f"{parameters[0]} %0"
    if name in UPDATES:
        update = f"  %r.{{at}} = atomicrmw {UPDATES[name]} {pointer}, {result} %3{scope} monotonic"
        return _ordered(update, scope, order)
    if name == "Load":
        order, size = _READING.get(order, order), BITS[result] // 8
        return f"  %r.{{at}} = load atomic {result}, {pointer}{scope} {order}, align {size}"
    if name == "Store":
        order, size = _WRITING.get(order, order), BITS[parameters[3]] // 8
        return f"  store atomic {parameters[3]} %3, {pointer}{scope} {order}, align {size}"
    if name == "CompareExchange":  # the order of a failure, the new and the expected value follow
        monotonic = f"{scope} monotonic monotonic"
        update = (
            f"  %p.{{at}} = cmpxchg {pointer}, {result} %5, {result} %4{monotonic}\n"
            f"  %r.{{at}} = extractvalue {{{{ {result}, i1 }}}} %p.{{at}}, 0"
        )
        return _ordered(update, scope, order)
    return None


def _ordered(update: str, scope: str, order: str) -> str:
    """Return an update with the fences of its order, which LLVM does not write for NVIDIA GPUs."""
    before = {"release": "release", "acq_rel": "release", "seq_cst": "seq_cst"}.get(order)
    after = {"acquire": "acquire", "acq_rel": "acquire", "seq_cst": "seq_cst"}.get(order)
    lines = [f"  fence{scope} {before}"] if before else []
    lines += [update, *([f"  fence{scope} {after}"] if after else [])]
    return "\n".join(lines)
