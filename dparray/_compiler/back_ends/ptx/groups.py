"""Definitions of group functions: exchanges in a warp, scans, reductions and broadcasts.

A warp scans its values in five steps with ``shfl.sync``. A group does the same with one value for
each warp, which passes through 256 bytes of shared memory between two barriers.
"""

from __future__ import annotations

from dparray._compiler.back_ends.ptx.work_items import WARP, Launch

BITS = {"i8": 8, "i16": 16, "half": 16, "i32": 32, "float": 32, "i64": 64, "double": 64}
_INTRINSIC_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}
BARRIER = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
SCRATCH = f"@dparray.scratch = internal addrspace(3) global [{WARP} x i64] poison, align 8\n"

_COMBINED = {
    "IAdd": "add {type} %0, %1",
    "FAdd": "fadd {type} %0, %1",
    "SMin": "call {type} @llvm.smin.{suffix}({type} %0, {type} %1)",
    "SMax": "call {type} @llvm.smax.{suffix}({type} %0, {type} %1)",
    "UMin": "call {type} @llvm.umin.{suffix}({type} %0, {type} %1)",
    "UMax": "call {type} @llvm.umax.{suffix}({type} %0, {type} %1)",
    "FMin": "call {type} @llvm.minnum.{suffix}({type} %0, {type} %1)",
    "FMax": "call {type} @llvm.maxnum.{suffix}({type} %0, {type} %1)",
}


def _identity(operation: str, type_: str) -> str:
    """Return the value that changes no other."""
    if operation in ("SMin", "SMax"):
        largest = (1 << BITS[type_] - 1) - 1
        return str(largest if operation == "SMin" else -largest - 1)
    floats = {"FMin": "0x7FF0000000000000", "FMax": "0xFFF0000000000000", "FAdd": "-0.0"}
    return floats.get(operation) or ("-1" if operation == "UMin" else "0")


def _steps() -> str:
    lines, value = [], "%0"
    for step in (1, 2, 4, 8, 16):
        lines.append(
            f"  %from{step} = call {{type}} @dparray.up.{{type}}({{type}} {value}, i32 {step})\n"
            f"  %both{step} = call {{type}} @dparray.{{operation}}.{{type}}({{type}} %from{step}, "
            f"{{type}} {value})\n"
            f"  %has{step} = icmp uge i32 %lane, {step}\n"
            f"  %v{step} = select i1 %has{step}, {{type}} %both{step}, {{type}} {value}"
        )
        value = f"%v{step}"
    return "\n".join(lines)


# An inclusive scan over the lanes of a warp.
_SCAN = f"""  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
{_steps()}
  ret {{type}} %v16"""
# The value of the lane before, and the identity in the first lane.
_BEFORE = """  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %is_first = icmp eq i32 %lane, 0
  %previous = call {type} @dparray.up.{type}({type} %0, i32 1)
  %r = select i1 %is_first, {type} {identity}, {type} %previous
  ret {type} %r"""
# Parameters: the scope (3 for a sub-group), the operation (0 reduces, 1 and 2 are inclusive and
# exclusive scans), the value.
_ALGORITHM = """  %scanned = call {type} @dparray.scan.{operation}.{type}({type} %2)
  %before = call {type} @dparray.before.{operation}.{type}({type} %scanned)
  %last = call i32 @dparray.last_lane()
  %all = call {type} @dparray.idx.{type}({type} %scanned, i32 %last)
  %in_warp = icmp eq i32 %0, 3
  br i1 %in_warp, label %warp, label %group
warp:
  switch i32 %1, label %reduced [i32 1, label %inclusive i32 2, label %exclusive]
reduced:
  ret {type} %all
inclusive:
  ret {type} %scanned
exclusive:
  ret {type} %before
group:
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %linear = call i32 @dparray.linear_id()
  %warp_id = udiv i32 %linear, 32
  {barrier}
  %is_first = icmp eq i32 %lane, 0
  br i1 %is_first, label %write, label %written
write:
  %own = getelementptr {type}, ptr addrspace(3) @dparray.scratch, i32 %warp_id
  store {type} %all, ptr addrspace(3) %own
  br label %written
written:
  {barrier}
  %place = getelementptr {type}, ptr addrspace(3) @dparray.scratch, i32 %lane
  %word = load {type}, ptr addrspace(3) %place
  %count = call i32 @_Z18get_num_sub_groupsv()
  %has = icmp ult i32 %lane, %count
  %used = select i1 %has, {type} %word, {type} {identity}
  %words = call {type} @dparray.scan.{operation}.{type}({type} %used)
  %of_others = call {type} @dparray.before.{operation}.{type}({type} %words)
  %carry = call {type} @dparray.idx.{type}({type} %of_others, i32 %warp_id)
  %last_warp = sub i32 %count, 1
  %total = call {type} @dparray.idx.{type}({type} %words, i32 %last_warp)
  switch i32 %1, label %group_reduced
    [i32 1, label %group_inclusive i32 2, label %group_exclusive]
group_reduced:
  ret {type} %total
group_inclusive:
  %with_own = call {type} @dparray.{operation}.{type}({type} %carry, {type} %scanned)
  ret {type} %with_own
group_exclusive:
  %without_own = call {type} @dparray.{operation}.{type}({type} %carry, {type} %before)
  ret {type} %without_own"""
_LAST_LANE = """  %size = call i32 @_Z18get_sub_group_sizev()
  %r = sub i32 %size, 1
  ret i32 %r"""
_BROADCAST = """{wanted}
  %linear = call i32 @dparray.linear_id()
  {barrier}
  %is_source = icmp eq i32 %linear, %wanted
  br i1 %is_source, label %write, label %written
write:
  store {type} %1, ptr addrspace(3) @dparray.scratch
  br label %written
written:
  {barrier}
  %r = load {type}, ptr addrspace(3) @dparray.scratch
  ret {type} %r"""


def definition(name: str, parameters: list[str], launch: Launch) -> str | None:
    """Return the body of a function, or None for a name that is not here."""
    if name == "sub_group_shuffle":
        return _shuffle("idx", parameters[0])
    if name == "__spirv_GroupBroadcast":
        return _broadcast(parameters[1], parameters[2], launch.ndim)
    if name.startswith("__spirv_Group"):
        return _filled(_ALGORITHM, name.removeprefix("__spirv_Group"), parameters[2])
    if name == "dparray.last_lane":
        return _LAST_LANE
    _, *parts, type_ = name.split(".") if name.startswith("dparray.") else ("", "")
    if parts in (["up"], ["idx"]):
        return _shuffle(parts[0], type_)
    if parts and parts[-1] in _COMBINED:
        template = {"scan": _SCAN, "before": _BEFORE}.get(parts[0])
        return _filled(
            template or f"  %r = {_COMBINED[parts[-1]]}\n  ret {{type}} %r", parts[-1], type_
        )
    return None


def _filled(template: str, operation: str, type_: str) -> str:
    return template.format(
        type=type_,
        operation=operation,
        identity=_identity(operation, type_),
        suffix=_INTRINSIC_SUFFIX.get(type_, type_),
        barrier=BARRIER,
    )


def _shuffle(mode: str, type_: str) -> str:
    """Return the value of another lane, given by the second parameter, in words of 32 bits."""
    bits = BITS[type_]
    words = max(bits // 32, 1)
    whole = f"i{bits}"
    wide = f"i{32 * words}"
    lines = [f"  %bits = bitcast {type_} %0 to {whole}"]
    lines.append(f"  %wide = {'zext' if bits < 32 else 'bitcast'} {whole} %bits to {wide}")
    lines.append(f"  %vector = bitcast {wide} %wide to <{words} x i32>")
    vector, last = "poison", 0 if mode == "up" else WARP - 1
    for word in range(words):
        lines += [
            f"  %w{word} = extractelement <{words} x i32> %vector, i32 {word}",
            f"  %m{word} = call i32 @llvm.nvvm.shfl.sync.{mode}.i32"
            f"(i32 -1, i32 %w{word}, i32 %1, i32 {last})",
            f"  %i{word} = insertelement <{words} x i32> {vector}, i32 %m{word}, i32 {word}",
        ]
        vector = f"%i{word}"
    lines.append(f"  %moved = bitcast <{words} x i32> {vector} to {wide}")
    lines.append(f"  %narrow = {'trunc' if bits < 32 else 'bitcast'} {wide} %moved to {whole}")
    return "\n".join([*lines, f"  %r = bitcast {whole} %narrow to {type_}", f"  ret {type_} %r"])


def _broadcast(type_: str, identifier: str, ndim: int) -> str:
    """Return the value of the work-item with an id in its group, an integer or a vector."""
    if not identifier.startswith("<"):
        return _BROADCAST.format(
            wanted="  %wanted = trunc i64 %2 to i32", type=type_, barrier=BARRIER
        )
    lines, linear = [], "0"
    for dimension in range(int(identifier[1])):
        axis = "xyz"[ndim - 1 - dimension]
        lines += [
            f"  %e{axis} = extractelement {identifier} %2, i32 {dimension}",
            f"  %i{axis} = trunc i64 %e{axis} to i32",
            f"  %n{axis} = call i32 @llvm.nvvm.read.ptx.sreg.ntid.{axis}()",
            f"  %m{axis} = mul i32 {linear}, %n{axis}",
            f"  %l{axis} = add i32 %m{axis}, %i{axis}",
        ]
        linear = f"%l{axis}"
    wanted = "\n".join([*lines, f"  %wanted = add i32 {linear}, 0"])
    return _BROADCAST.format(wanted=wanted, type=type_, barrier=BARRIER)
