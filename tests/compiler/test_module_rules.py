"""No module of the library contains code that a driver's compiler handles wrongly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dparray._compiler.abi import INTEL_CPU
from dparray._compiler.back_ends.spirv import client, rules
from tests.compiler.module_rules import faults


def writable(text: str) -> str:
    """Return a module's text as Intel's CPU driver gets it."""
    return rules.writable(text, INTEL_CPU)


ROOT = Path(__file__).resolve().parents[2]

_LOOP = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %x, i64 %n) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %q, %loop ]
  %a = phi i64 [ 1, %entry ], [ {next}, %loop ]
  %b = phi i64 [ 2, %entry ], [ %s, %loop ]
  %s = add i64 %a, %k
  %q = add i64 %k, 1
  %more = icmp {order} i64 {side}, %n
  br i1 %more, label %loop, label %end
end:
  store i64 {out}, ptr addrspace(1) %x
  ret void
}}
"""


@pytest.mark.parametrize(
    ("next", "order", "side", "out", "fault"),
    [
        ("%s", "sle", "%q", "%k", "leaves a loop"),
        ("%s", "ule", "%q", "%s", "leaves a loop"),
        ("%s", "ne", "%q", "%k", "leaves a loop"),
        ("%s", "ne", "%q", "%q", ""),
        ("%s", "sle", "%q", "%n", ""),
        ("%s", "sle", "%s", "%n", ""),
        ("%b", "ne", "%q", "%n", "the next value of the phi"),
        ("%b", "ne", "%s", "%n", ""),
    ],
)
def test_loops_that_a_driver_spoils_are_found_and_are_hidden(
    next: str, order: str, side: str, out: str, fault: str
) -> None:
    text = _LOOP.format(next=next, order=order, side=side, out=out)
    found = faults(client.emit(text))
    assert bool(found) == bool(fault)
    assert all(fault in each for each in found)
    assert not faults(client.emit(writable(text)))


_NESTED = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %x, i64 %n, i64 %v) {{
entry:
  br label %outer
outer:
  %k = phi i64 [ 0, %entry ], [ %p, %more ]
  %a = phi i64 [ 0, %entry ], [ {carried}, %more ]
  %s = xor i64 %k, %v
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %q, %inner ]
  %c = phi i64 [ %s, %outer ], [ %d, %inner ]
  %d = add i64 %c, %a
  %q = add i64 %j, 1
  %again = icmp ne i64 %q, %n
  br i1 %again, label %inner, label %more
more:
  %p = add i64 %k, 1
  %b = add i64 %a, 5
  %next = icmp ne i64 %p, %n
  br i1 %next, label %outer, label %end
end:
  store i64 {out}, ptr addrspace(1) %x
  ret void
}}
"""


@pytest.mark.parametrize(
    ("carried", "out", "is_fault"),
    [("%b", "%d", True), ("%b", "%b", False), ("%d", "%d", False), ("%b", "%p", False)],
)
def test_values_of_inner_loops_are_not_computed_behind_outer_loops(
    carried: str, out: str, is_fault: bool
) -> None:
    text = _NESTED.format(carried=carried, out=out)
    found = [each for each in faults(client.emit(text)) if "tells the steps" in each]
    assert bool(found) == is_fault
    assert not faults(client.emit(writable(text)))


_IN_TWO_LOOPS = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %x, i64 %n) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %j, %last ]
  %s = phi i64 [ 1, %entry ], [ %w, %last ]
  %j = add i64 %i, 3
  %none = icmp eq i64 %j, %n
  br i1 %none, label %last, label %inner
inner:
  %k = phi i64 [ %n, %outer ], [ %q, %next ]
  %t = phi i64 [ %s, %outer ], [ %u, %next ]
  %q = add i64 %k, -1
  %v = add i64 %t, %j
  %early = icmp ugt i64 %j, %v
  br i1 %early, label %end, label %next
next:
  %u = add i64 %v, %t
  %more = icmp sgt i64 %q, 1
  br i1 %more, label %inner, label %last
last:
  %w = phi i64 [ %s, %outer ], [ %u, %next ]
  %again = icmp slt i64 %j, %n
  br i1 %again, label %outer, label %end
end:
  %r = phi i64 [ %t, %inner ], [ %w, %last ]
  store i64 %r, ptr addrspace(1) %x
  ret void
}
"""


def test_a_condition_that_ends_two_loops_is_hidden_in_both() -> None:
    # One side of it changes only in the outer loop.
    assert any("tells the steps" in each for each in faults(client.emit(_IN_TWO_LOOPS)))
    written = writable(_IN_TWO_LOOPS)
    assert not faults(client.emit(written)), written


_FIXED = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %x, i64 %n, ptr addrspace(1) %y) {{
entry:
  %v = load i64, ptr addrspace(1) %y
  %c = icmp slt i64 %v, 9
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %q, %next ]
  %a = load i64, ptr addrspace(1) %x
  {decision}
  store i64 %b, ptr addrspace(1) %x
  %low = icmp slt i64 %a, %k
  br i1 %low, label %{exit}, label %next
next:
  %q = add i64 %k, 1
  %more = icmp ne i64 %q, %a
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


@pytest.mark.parametrize(
    ("decision", "exit", "is_fault"),
    [
        ("%b = select i1 %c, i64 %k, i64 7", "end", True),
        ("%b = select i1 %c, i64 %k, i64 7", "next", False),
        ("%d = icmp slt i64 %n, 9\n  %b = select i1 %d, i64 %k, i64 7", "next", False),
        ("%d = icmp slt i64 %k, 9\n  %b = select i1 %d, i64 %k, i64 7", "end", False),
        (
            "%d = icmp slt i64 %k, 7\n  %e = and i1 %c, %d\n  %b = select i1 %e, i64 1, i64 7",
            "end",
            True,
        ),
    ],
)
def test_conditions_that_are_fixed_in_loops_are_found_and_are_hidden(
    decision: str, exit: str, is_fault: bool
) -> None:
    text = _FIXED.format(decision=decision, exit=exit)
    found = [each for each in faults(client.emit(text)) if "is fixed" in each]
    assert bool(found) == is_fault
    assert not faults(client.emit(writable(text)))


_CHOSEN = """
target triple = "spirv64-unknown-unknown"
declare spir_func i64 @_Z12get_group_idj(i32)
declare spir_func i64 @_Z12get_local_idj(i32)
define spir_kernel void @k(ptr addrspace(1) %x, i64 %n) {{
entry:
  %group = call spir_func i64 @_Z12get_group_idj(i32 0)
  %lane = call spir_func i64 @_Z12get_local_idj(i32 0)
  %v = load i64, ptr addrspace(1) %x
  %is_one = icmp eq i64 {before}, 1
  br i1 %is_one, label %one, label %begin
one:
  br label %begin
begin:
  %most = phi i64 [ %n, %entry ], [ 7, %one ]
  br label %loop
loop:
  %k = phi i64 [ 0, %begin ], [ %q, %loop ]
  %a = phi i64 [ 1, %begin ], [ %b, %loop ]
  %q = add i64 %k, 1
  %is_low = icmp slt i64 %k, {inside}
  %b = {next}
  %product = mul i64 %q, %lane
  %more = icmp slt i64 %q, {end}
  br i1 %more, label %loop, label %done
done:
  %sum = add i64 %a, %b
  store i64 %sum, ptr addrspace(1) %x
  ret void
}}
"""


@pytest.mark.parametrize("next", ["select i1 %is_low, i64 %a, i64 3", "zext i1 %is_low to i64"])
@pytest.mark.parametrize(
    ("before", "inside", "end", "is_hidden"),
    [
        ("%group", "%n", "%n", False),
        ("%group", "%most", "%n", False),
        ("%lane", "%n", "%n", False),
        ("%lane", "%most", "%n", True),
        ("%group", "%lane", "%n", True),
        ("%group", "%v", "%n", True),
        ("%group", "%n", "%v", True),
        ("%group", "%n", "%product", True),
    ],
)
def test_starts_are_hidden_only_in_loops_that_depend_on_the_work_item(
    before: str, inside: str, end: str, is_hidden: bool, next: str
) -> None:
    text = _CHOSEN.format(before=before, inside=inside, end=end, next=next)
    found = [each for each in faults(client.emit(text)) if "begins as a known" in each]
    assert bool(found) == is_hidden
    written = writable(text)
    assert ("%dparray.start." in written) == is_hidden
    assert not faults(client.emit(written))


_EXCHANGED = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y) {
entry:
  %v = load i64, ptr addrspace(1) %y
  %c = icmp slt i64 %v, 9
  br label %loop
loop:
  %a = phi i64 [ 1, %entry ], [ %b, %loop ]
  %b = phi i64 [ 2, %entry ], [ %chosen, %loop ]
  %chosen = select i1 %c, i64 %a, i64 %v
  store i64 %a, ptr addrspace(1) %y
  %n = load i64, ptr addrspace(1) %x
  %more = icmp ne i64 %n, 3
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def test_a_condition_that_chooses_an_exchanged_number_is_hidden() -> None:
    # The number that the loop carries is hidden first, as one that may be another of its numbers.
    written = writable(_EXCHANGED)
    assert "%dparray.next." in written
    assert "%dparray.fixed." in written
    assert not faults(client.emit(written))


_CARRIES = """
target triple = "spirv64-unknown-unknown"
define spir_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y) {{
entry:
  %v = load i64, ptr addrspace(1) %y
  %c = icmp slt i64 %v, 9
  br label %loop
loop:
  %k = phi {carried} [ {first}, %entry ], [ {next}, %loop ]
  %a = load i64, ptr addrspace(1) %x
  %b = select i1 %c, i64 %a, i64 7
  store i64 %b, ptr addrspace(1) %x
  {use}
  %more = icmp ne i64 %a, 3
  br i1 %more, label %loop, label %end
end:
  %d = select i1 %c, i64 5, i64 6
  store i64 %d, ptr addrspace(1) %x
  ret void
}}
"""


@pytest.mark.parametrize(
    ("carried", "first", "next"),
    [
        ("i1", "true", "%more"),
        ("i8", "1", "7"),
        ("half", "0.0", "1.0"),
        ("float", "0.0", "1.0"),
        ("double", "0.0", "1.0"),
    ],
)
def test_conditions_are_hidden_in_loops_that_carry_other_types(
    carried: str, first: str, next: str
) -> None:
    use = f"store {carried} %k, ptr addrspace(1) %y"
    if carried == "i1":
        use = "%u = zext i1 %k to i64\n  store i64 %u, ptr addrspace(1) %y"
    text = _CARRIES.format(carried=carried, first=first, next=next, use=use)
    assert any("is fixed" in each for each in faults(client.emit(text)))
    assert not faults(client.emit(writable(text)))


_BEGIN = """
import numpy as np
import dparray as dp
from dparray import _hooks, tilelang
from dparray._evaluate import limits
from tests.compiler.module_rules import faults

wrong, count = [], 0
def look(event, kernel=None, **values):
    global count
    if event == "compile":
        count += 1
        wrong.extend(f"{kernel.name}: {fault}" for fault in faults(kernel.module))
_hooks.subscribe(look)
"""
_END = """
dp.synchronize()
assert count > 15, count
assert not wrong, wrong
"""
_LIBRARY = """
x = dp.asarray(np.random.default_rng(0).random((64, 48)), dtype="float32")
i = dp.asarray(np.arange(3072).reshape(64, 48) % 97)
small = i.astype("int8") % 5
a = dp.algorithms
with limits.force("fused"):
    for compute in (
        lambda: x.sum(), lambda: x.sum(axis=0), lambda: x.sum(axis=1), lambda: x.var(axis=1),
        lambda: i.sum(axis=1), lambda: i.max(axis=0), lambda: i.argmax(axis=1),
        lambda: small ** small, lambda: i // (i + 1) + i % 7, lambda: dp.special.erf(x) * x,
        lambda: x.T + 1, lambda: x[1:] - x[:-1], lambda: dp.exp(x) / dp.exp(x).sum(axis=1)[:, None],
    ):
        compute().asnumpy()
a.pairwise_distance(x, x)
a.convolve_dense(x, x[:5, :5])
a.convolve_separable(x, x[0, :5])
a.kmeans_assign(x, x[:4])
a.inclusive_scan(i.reshape(-1))
a.exclusive_scan(i.reshape(-1))
a.compact(i.reshape(-1), i.reshape(-1) > 3)
a.stable_argsort(i.reshape(-1))
a.segmented_reduce(x.reshape(-1), dp.asarray([0, 10, 3072]))
dp.histogram(x, bins=8)
dp.random.normal(size=100)
"""
# Published programs, and random ones.
_TILE = """
from test_random_tile_programs import difference
from test_tile_programs import VECTORS, array_of

dp.config.host_tier = False
tilelang.contracting.MAX_HOST_POINTS = -1
for vector in VECTORS:
    inputs = {name: dp.asarray(array_of(each)) for name, each in vector["inputs"].items()}
    results = tilelang.function(vector["source"])(**inputs)
    dp.eval(*results if isinstance(results, tuple) else (results,))
with limits.force("fused"):
    assert not any(map(difference, range(1000, 1006)))
"""


_PRIVATE = """
target triple = "spirv64-unknown-unknown"
declare void @llvm.lifetime.start.p0(ptr)
define spir_kernel void @k(ptr addrspace(1) %x, i64 %n) {{
  %p = alloca [4 x i64]
  {mark}
  %at = getelementptr i64, ptr %p, i64 %n
  %v = load i64, ptr %at
  store i64 %v, ptr addrspace(1) %x
  ret void
}}
"""


@pytest.mark.parametrize("mark", ["", "call void @llvm.lifetime.start.p0(ptr %p)"])
def test_private_memory_without_a_lifetime_is_found(mark: str) -> None:
    """Intel's CPU driver reads values of other work-items from such memory."""
    found = faults(client.emit(_PRIVATE.format(mark=mark)))
    assert [each.partition("%")[0] for each in found] == (
        [] if mark else ["the lifetime of the private memory "]
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", [_LIBRARY, _TILE], ids=["library", "tile"])
def test_no_module_of_the_library_breaks_a_rule(text: str, tmp_path: Path) -> None:
    # A new process with an empty cache, so that all kernels are compiled.
    environment = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join((str(ROOT), str(ROOT / "tests" / "tilelang"))),
        DPARRAY_CACHE_DIR=str(tmp_path),
        DPARRAY_KERNEL_STORE="",
        DPARRAY_BACKGROUND_COMPILE="0",
    )
    command = [sys.executable, "-c", _BEGIN + text + _END]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
