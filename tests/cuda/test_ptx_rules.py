"""Rules for constructs that LLVM 22 miscompiles for NVPTX; each test fails without its rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from llvmlite import binding

from dparray._compiler.back_ends.ptx import worker
from tests.cuda.ptx_emulator import Memory, Module

_KERNEL = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out) {{
  %id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %pa = getelementptr {of_a}, ptr addrspace(1) %a, i32 %id
  %pb = getelementptr i64, ptr addrspace(1) %b, i32 %id
  %po = getelementptr {result}, ptr addrspace(1) %out, i32 %id
  %x = load {of_a}, ptr addrspace(1) %pa
  %n = load i64, ptr addrspace(1) %pb
{body}
  store {result} %r, ptr addrspace(1) %po
  ret void
}}
"""
_AMOUNTS = [0, 1, 8, 15, 16, 31, 32, 63, 64, 256, 1 << 16, 1 << 32, (1 << 32) + 5, 1 << 63]
_AMOUNTS = np.array(_AMOUNTS, "u8")


def compiled(text: str, rule: Callable[[str], str]) -> Module:
    """Return a module, optimized as by the helper, with a rule instead of all rules."""
    head = worker.head_of(binding, ())
    module = binding.parse_assembly(head + text)
    machine = worker._machine(binding)
    worker.optimise(binding, machine, module)
    return Module(machine.emit_assembly(binding.parse_assembly(rule(str(module)))))


def run(module: Module, a: np.ndarray, b: np.ndarray, result: str) -> np.ndarray:
    memory = Memory()
    given = [memory.put(each) for each in (a, b, np.zeros(b.size, result))]
    module.launch("k", (1,), (b.size,), given, memory)
    return memory.get(given[-1], result, b.size)


_SHIFTS = {"shl": lambda x, n: x << n, "lshr": lambda x, n: x >> n}


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("name", _SHIFTS)
def test_guards_of_shifts_are_kept(name: str, bits: int) -> None:
    body = f"""  %is_near = icmp ult i64 %n, {bits}
  %low = {"trunc" if bits < 64 else "bitcast"} i64 %n to i{bits}
  %s = {name} i{bits} %x, %low
  %r = select i1 %is_near, i{bits} %s, i{bits} 0"""
    text = _KERNEL.format(of_a=f"i{bits}", result=f"i{bits}", body=body)
    dtype = f"u{bits // 8}"
    a = np.full(_AMOUNTS.size, 0x8765432112345677 & ((1 << bits) - 1), dtype)
    wanted = [
        _SHIFTS[name](int(x), int(n)) % (1 << bits) if n < bits else 0
        for x, n in zip(a, _AMOUNTS, strict=True)
    ]
    ruled = run(compiled(text, worker.writable), a, _AMOUNTS, dtype)
    np.testing.assert_array_equal(ruled, np.array(wanted, dtype))
    without = run(compiled(text, str), a, _AMOUNTS, dtype)
    assert (without != ruled).any() == (bits >= 32)  # LLVM extends narrow amounts


@pytest.mark.parametrize(("bits", "wide"), [(32, 64), (16, 32)])
def test_sign_bits_are_extended_with_their_sign(bits: int, wide: int) -> None:
    body = f"""  %s = shl nsw i{bits} %x, {bits - 1}
  %r = sext i{bits} %s to i{wide}"""
    text = _KERNEL.format(of_a=f"i{bits}", result=f"i{wide}", body=body)
    a = np.array([0, -1] * 4, f"i{bits // 8}")  # other values overflow
    wanted = np.where(a == 0, 0, -(1 << (bits - 1)))
    ruled = run(compiled(text, worker.writable), a, np.zeros(8, "i8"), f"i{wide // 8}")
    np.testing.assert_array_equal(ruled, wanted)
    assert (run(compiled(text, str), a, np.zeros(8, "i8"), f"i{wide // 8}") != wanted).any()
