"""Definitions of atomic operations. All work-items of a group run on one thread."""

from __future__ import annotations

from dparray._compiler.abi import UPDATES

_EXTREMES = {
    "max": "smax",
    "min": "smin",
    "umax": "umax",
    "umin": "umin",
    "fmax": "maxnum",
    "fmin": "minnum",
}
_SUFFIXES = {"half": "f16", "float": "f32", "double": "f64"}
_BYTES = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


def definition(name: str, is_local: bool, result: str, parameters: tuple[str, ...]) -> str | None:
    """Return the body of an atomic operation, ``None`` if there is none of the name.

    Args:
        name: the name after ``__spirv_Atomic``.
        is_local: whether it is on local memory.
        result, parameters: LLVM types; the address, the scope, the order, and further ones.
    """
    last, value = len(parameters) - 1, parameters[-1]
    if name in UPDATES:
        if is_local:
            return _plain(UPDATES[name], value, last)
        return (
            f"  %r = atomicrmw {UPDATES[name]} ptr %0, {value} %{last} acq_rel\n  ret {result} %r"
        )
    if name == "Load":
        align = _BYTES[result]
        return f"  %r = load atomic {result}, ptr %0 acquire, align {align}\n  ret {result} %r"
    if name == "Store":
        align = _BYTES[value]
        return f"  store atomic {value} %{last}, ptr %0 release, align {align}\n  ret void"
    if name == "CompareExchange":
        return (
            f"  %p = cmpxchg ptr %0, {result} %5, {result} %4 acq_rel acquire\n"
            f"  %r = extractvalue {{ {result}, i1 }} %p, 0\n  ret {result} %r"
        )
    return None


def _plain(operation: str, type_: str, last: int) -> str:
    """Return an update of local memory, which only the thread of the group sees.

    Its accesses are volatile: other accesses of work-items are taken to be unordered.
    """
    if operation in _EXTREMES:
        suffix = _SUFFIXES.get(type_, type_)
        call = f"@llvm.{_EXTREMES[operation]}.{suffix}({type_} %old, {type_} %{last})"
        new = f"call {type_} {call}"
    elif operation == "xchg":
        new = f"bitcast {type_} %{last} to {type_}"
    else:
        new = f"{operation} {type_} %old, %{last}"
    return (
        f"  %old = load volatile {type_}, ptr %0\n  %new = {new}\n"
        f"  store volatile {type_} %new, ptr %0\n  ret {type_} %old"
    )
