"""Write what happens between two regions: group functions, as loops over the values of work-items.

Each work-item has stored its value, and for a broadcast or shuffle the number of another work-item.
"""

from __future__ import annotations

from collections.abc import Callable

from dparray._driver.host.analysis import is_of_sub_group
from dparray._driver.host.plan import Plan, spelled
from dparray._driver.host.reading import Call, Unsupported

_REDUCE, _INCLUSIVE, _EXCLUSIVE = "0", "1", "2"
_COMBINED = {
    "IAdd": "add",
    "FAdd": "fadd",
    "IMulKHR": "mul",
    "FMulKHR": "fmul",
    "BitwiseAndKHR": "and",
    "BitwiseOrKHR": "or",
    "BitwiseXorKHR": "xor",
}
_EXTREMES = {
    "SMax": "smax",
    "SMin": "smin",
    "UMax": "umax",
    "UMin": "umin",
    "FMax": "maxnum",
    "FMin": "minnum",
}
_SUFFIXES = {"float": "f32", "double": "f64", "half": "f16"}
_INFINITIES = {
    "half": ("0xH7C00", "0xHFC00"),
    "float": ("0x7FF0000000000000", "0xFFF0000000000000"),
    "double": ("0x7FF0000000000000", "0xFFF0000000000000"),
}


def between(plan: Plan, after: str, number: int, needs: set[str]) -> list[str]:
    """Return the instructions of a group function, from label ``pre`` to label ``begin``.

    Args:
        plan: the regions.
        after: the block behind the call.
        number: the number of its region.
        needs: the declarations of LLVM's functions, which are added.

    Raises:
        Unsupported: there is no such function.
    """
    call, name = plan.function.joint[after]
    end = f"  br label %begin{number}"
    if not name or name not in plan.slots:
        return [end]
    own, is_uniform = spelled(name), plan.slots[name][1]

    def put(value: str, index: str, at: str) -> list[str]:
        if is_uniform:
            return [f"  store {call.kind} {value}, ptr %u.{own}"]
        return [
            f"  {at} = getelementptr {call.kind}, ptr %c.{own}, i64 {index}",
            f"  store {call.kind} {value}, ptr {at}",
        ]

    if call.name in ("sub_group_shuffle", "__spirv_GroupBroadcast"):
        return _moved(call, own, plan, number, put)
    return _combined(call, own, plan, number, put, needs)


_Put = Callable[[str, str, str], list[str]]


def _if_here(plan: Plan, k: int, index: str, name: str, end: str) -> list[str]:
    """Go to a block if a work-item takes part, otherwise to its end."""
    if not plan.function.is_scheduled:
        return [f"  br label %{name}{k}", f"{name}{k}:"]
    return [
        f"  %{name}p{k} = getelementptr i32, ptr %dp.pc, i64 {index}",
        f"  %{name}w{k} = load i32, ptr %{name}p{k}",
        f"  %{name}h{k} = icmp eq i32 %{name}w{k}, {k}",
        f"  br i1 %{name}h{k}, label %{name}{k}, label %{end}{k}",
        f"{name}{k}:",
    ]


def _moved(call: Call, own: str, plan: Plan, k: int, put: _Put) -> list[str]:
    """Give each work-item the value of another one of its sub-group or group."""
    first = -plan.function.lanes if is_of_sub_group(call) else 0
    return [
        f"  br label %act{k}",
        f"act{k}:",
        f"  %ai{k} = phi i64 [ 0, %pre{k} ], [ %an{k}, %next{k} ]",
        *_if_here(plan, k, f"%ai{k}", "here", "next"),
        f"  %al{k} = getelementptr i64, ptr %ln.{own}, i64 %ai{k}",
        f"  %av{k} = load i64, ptr %al{k}",
        f"  %ab{k} = and i64 %ai{k}, {first}",
        f"  %aw{k} = add i64 %ab{k}, %av{k}",
        f"  %ax{k} = icmp ult i64 %aw{k}, %dp.count",
        f"  %ay{k} = select i1 %ax{k}, i64 %aw{k}, i64 %ai{k}",
        f"  %ap{k} = getelementptr {call.kind}, ptr %in.{own}, i64 %ay{k}",
        f"  %ar{k} = load {call.kind}, ptr %ap{k}",
        *put(f"%ar{k}", f"%ai{k}", f"%aq{k}"),
        f"  br label %next{k}",
        f"next{k}:",
        f"  %an{k} = add i64 %ai{k}, 1",
        f"  %am{k} = icmp ult i64 %an{k}, %dp.count",
        f"  br i1 %am{k}, label %act{k}, label %begin{k}",
    ]


def _operation(operation: str, kind: str, k: int, needs: set[str]) -> str:
    if operation in _COMBINED:
        return f"{_COMBINED[operation]} {kind} %acc{k}, %v{k}"
    if operation not in _EXTREMES:
        raise Unsupported(f"the group function {operation}")
    called = f"llvm.{_EXTREMES[operation]}.{_SUFFIXES.get(kind, kind)}"
    needs.add(f"declare {kind} @{called}({kind}, {kind})")
    return f"call {kind} @{called}({kind} %acc{k}, {kind} %v{k})"


def _identity(operation: str, kind: str) -> str:
    """Return the value that changes no other."""
    if operation in ("SMax", "SMin"):
        largest = (1 << int(kind[1:]) - 1) - 1
        return str(-largest - 1 if operation == "SMax" else largest)
    if operation in ("FMax", "FMin"):
        return _INFINITIES[kind][operation == "FMax"]
    return {
        "FAdd": "-0.0",
        "IMulKHR": "1",
        "FMulKHR": "1.0",
        "BitwiseAndKHR": "-1",
        "UMin": "-1",
    }.get(operation, "0")


def _combined(call: Call, own: str, plan: Plan, k: int, put: _Put, needs: set[str]) -> list[str]:
    """Reduce or scan the values of each group or sub-group."""
    step = str(plan.function.lanes) if is_of_sub_group(call) else "%dp.count"
    kind, mode = call.kind, call.arguments[1]
    operation = call.name.removeprefix("__spirv_Group")
    lines = [
        f"  br label %gr{k}",
        f"gr{k}:",
        f"  %g{k} = phi i64 [ 0, %pre{k} ], [ %ge{k}, %gw{k} ]",
        f"  %gh{k} = add i64 %g{k}, {step}",
        f"  %ge{k} = call i64 @llvm.umin.i64(i64 %gh{k}, i64 %dp.count)",
        f"  br label %act{k}",
        f"act{k}:",
        f"  %i{k} = phi i64 [ %g{k}, %gr{k} ], [ %in{k}, %next{k} ]",
        f"  %acc{k} = phi {kind} [ {_identity(operation, kind)}, %gr{k} ], [ %an{k}, %next{k} ]",
        *_if_here(plan, k, f"%i{k}", "here", "next"),
        f"  %vp{k} = getelementptr {kind}, ptr %in.{own}, i64 %i{k}",
        f"  %v{k} = load {kind}, ptr %vp{k}",
        f"  %ao{k} = {_operation(operation, kind, k, needs)}",
    ]
    if mode == _INCLUSIVE:
        lines += put(f"%ao{k}", f"%i{k}", f"%vq{k}")
    elif mode == _EXCLUSIVE:
        before = f"%acc{k}"
        if operation == "FAdd":  # The identity is -0, but the sum of nothing is 0.
            before = f"%az{k}"
            lines.append(f"  {before} = fadd {kind} %acc{k}, 0.0")
        lines += put(before, f"%i{k}", f"%vq{k}")
    absent = f", [ %acc{k}, %act{k} ]" if plan.function.is_scheduled else ""
    lines += [
        f"  br label %next{k}",
        f"next{k}:",
        f"  %an{k} = phi {kind} [ %ao{k}, %here{k} ]{absent}",
        f"  %in{k} = add i64 %i{k}, 1",
        f"  %im{k} = icmp ult i64 %in{k}, %ge{k}",
        f"  br i1 %im{k}, label %act{k}, label %{'wr' if mode == _REDUCE else 'gw'}{k}",
    ]
    if mode == _REDUCE:
        lines += [
            f"wr{k}:",
            f"  %j{k} = phi i64 [ %g{k}, %next{k} ], [ %jn{k}, %written{k} ]",
            *_if_here(plan, k, f"%j{k}", "mine", "written"),
            *put(f"%an{k}", f"%j{k}", f"%vq{k}"),
            f"  br label %written{k}",
            f"written{k}:",
            f"  %jn{k} = add i64 %j{k}, 1",
            f"  %jm{k} = icmp ult i64 %jn{k}, %ge{k}",
            f"  br i1 %jm{k}, label %wr{k}, label %gw{k}",
        ]
    return [
        *lines,
        f"gw{k}:",
        f"  %gm{k} = icmp ult i64 %ge{k}, %dp.count",
        f"  br i1 %gm{k}, label %gr{k}, label %begin{k}",
    ]
