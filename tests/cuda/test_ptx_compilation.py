"""Modules are compiled to PTX in a helper process, which errors of LLVM end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from dparray._codegen import elementwise
from dparray._compiler import compile as compiler
from dparray._compiler.back_ends.ptx import client
from dparray._compiler.back_ends.ptx.translation import dimensions_of
from dparray._compiler.targets import DIMENSIONS, EmissionError, back_end
from dparray._driver.interface import Target
from dparray._graph.node import Node
from dparray._layout import contiguous_strides
from dparray.exceptions import KernelCompileError, KernelError
from tests.codegen import test_generated_source as golden
from tests.cuda import packages
from tests.cuda.ptx_emulator import Memory, Module

_ID = "declare spir_func i64 @_Z13get_global_idj(i32) nounwind memory(none)\n"
_SCALE = (
    _ID
    + """define spir_kernel void @kernel_scale(ptr addrspace(1) %x, float %s, float %t) {
entry:
  %id = call spir_func i64 @_Z13get_global_idj(i32 0)
  %p = getelementptr float, ptr addrspace(1) %x, i64 %id
  %v = load float, ptr addrspace(1) %p
  %m = fmul float %v, %s
  %r = fadd float %m, %t
  store float %r, ptr addrspace(1) %p
  ret void
}
"""
)
_EXP = _SCALE.replace("fmul float %v, %s", "call spir_func float @_Z3expf(float %v)") + (
    "declare spir_func float @_Z3expf(float)\n"
)
# NVPTX has no instruction for LLVM's own logarithm.
_UNSELECTABLE = _EXP.replace("spir_func float @_Z3expf", "float @llvm.log.f32")


def run(text: bytes, entry: str, block: tuple[int, ...], *arguments: object) -> np.ndarray:
    """Run a kernel whose first argument is an array; return it afterward."""
    memory = Memory()
    x, *rest = arguments
    assert isinstance(x, np.ndarray)
    address = memory.put(x)
    Module(text).launch(entry, (1,), block, [address, *rest], memory, shared=256)
    return memory.get(address, x.dtype, x.size)


def test_a_kernel_is_written_for_all_gpus_from_sm_75_on() -> None:
    llvm, written = client.compile(_SCALE)
    assert ".target sm_75" in written.decode()
    assert "define ptx_kernel void @kernel_scale" in llvm
    x = np.arange(32, dtype="f4")
    found = run(written, "kernel_scale", (32,), x, np.float32(3), np.float32(1))
    np.testing.assert_array_equal(found, x * np.float32(3) + np.float32(1))
    for processor in packages.PROCESSORS:
        assert packages.assembled(written, processor).spilled == 0


@pytest.mark.parametrize("contract", [False, True])
def test_products_and_sums_are_fused_only_if_that_is_allowed(contract: bool) -> None:
    _, written = client.compile(_SCALE, contract=contract)
    assert ("fma.rn.f32" in written.decode()) == contract
    assert ("mul.rn.f32" in written.decode()) != contract


def test_the_last_dimension_is_that_of_neighboring_threads() -> None:
    text = (
        _ID
        + """define spir_kernel void @kernel_ids(ptr addrspace(1) %x) {
entry:
  %row = call spir_func i64 @_Z13get_global_idj(i32 0)
  %column = call spir_func i64 @_Z13get_global_idj(i32 1)
  %beyond = call spir_func i64 @_Z13get_global_idj(i32 2)
  %m = mul i64 %row, 5
  %at = add i64 %m, %column
  %p = getelementptr i64, ptr addrspace(1) %x, i64 %at
  %w = mul i64 %row, 100
  %v = add i64 %w, %column
  %r = add i64 %v, %beyond
  store i64 %r, ptr addrspace(1) %p
  ret void
}
"""
    )
    _, written = client.compile(text, ndim=2)
    found = run(written, "kernel_ids", (5, 3), np.zeros(15, "i8"))  # x = 5 is the last dimension
    np.testing.assert_array_equal(found.reshape(3, 5), 100 * np.arange(3)[:, None] + np.arange(5))


def test_local_memory_is_passed_as_an_offset() -> None:
    text = """define spir_kernel void @kernel_local(
ptr addrspace(1) %x, ptr addrspace(3) %a, i32 %n, ptr addrspace(3) %b) {
  store i32 %n, ptr addrspace(3) %b
  store i32 7, ptr addrspace(3) %a
  %v = load i32, ptr addrspace(3) %b
  store i32 %v, ptr addrspace(1) %x
  ret void
}
""".replace("(\n", "(")
    _, written = client.compile(text)
    arguments = np.zeros(1, "i4"), np.int64(0), np.int32(5), np.int64(16)
    assert run(written, "kernel_local", (1,), *arguments)[0] == 5
    arguments = np.zeros(1, "i4"), np.int64(16), np.int32(5), np.int64(16)
    assert run(written, "kernel_local", (1,), *arguments)[0] == 7


def test_static_local_memory_has_a_limit() -> None:
    text = """@dparray_local_array = internal addrspace(3) global [{count} x i32] undef
define spir_kernel void @kernel_large(ptr addrspace(1) %x, i64 %at) {{
  %p = getelementptr i32, ptr addrspace(3) @dparray_local_array, i64 %at
  store i32 1, ptr addrspace(3) %p
  %v = load i32, ptr addrspace(3) @dparray_local_array
  store i32 %v, ptr addrspace(1) %x
  ret void
}}
"""
    client.compile(text.format(count=12_288))
    with pytest.raises(EmissionError, match=r"take 49156 bytes.* allow 49152.*LocalAccessor"):
        client.compile(text.format(count=12_289))


def test_a_missing_libdevice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "libdevice_path", lambda: "")
    with pytest.raises(KernelCompileError, match="pip install nvidia-nvvm"):
        client.compile(_EXP)


def test_libdevice_is_linked(libdevice: None) -> None:
    x = np.linspace(-5, 5, 32, dtype="f4")
    _, written = client.compile(_EXP)
    found = run(written, "kernel_scale", (32,), x, np.float32(0), np.float32(0))
    np.testing.assert_allclose(found, np.exp(x), rtol=3e-7)
    assert b"call" not in written


@pytest.mark.parametrize(("dtype", "kind"), [("f2", "half"), ("f4", "float"), ("f8", "double")])
def test_remainders_are_exact(libdevice: None, dtype: str, kind: str) -> None:
    text = _SCALE.replace("float %s, float %t", "ptr addrspace(1) %y").replace("float", kind)
    text = text.replace("%m =", f"%q = getelementptr {kind}, ptr addrspace(1) %y, i64 %id\n  %m =")
    text = text.replace(f"fmul {kind} %v, %s", f"load {kind}, ptr addrspace(1) %q")
    text = text.replace(f"%r = fadd {kind} %m, %t", f'%"r.1" = frem {kind} %v, %m')
    _, written = client.compile(text.replace(f"store {kind} %r", f'store {kind} %"r.1"'))
    x = np.array([5.5, -7, 6e4, 3e4, np.inf, 1, np.finfo(dtype).max], dtype)
    if dtype != "f2":
        x[3] = 576784302080
    y = np.array([2, 3, 7, 4.268839, np.inf, np.inf, 3]).astype(dtype)
    memory = Memory()
    addresses = [memory.put(x), memory.put(y)]
    Module(written).launch("kernel_scale", (1,), (len(x),), addresses, memory)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(memory.get(addresses[0], x.dtype, x.size), np.fmod(x, y))


def test_modules_that_are_not_llvm_ir_are_rejected() -> None:
    with pytest.raises(EmissionError, match=r"parsing error\n<string>:\d+:\d+: error: load"):
        client.compile(_SCALE.replace("load float", "load %unknown"))
    with pytest.raises(KernelCompileError, match="no entry point"):
        client.compile(_ID)


def test_llvm_may_end_the_helper(capfd: pytest.CaptureFixture[str]) -> None:
    client.start()
    process = client.helper.process
    assert process is not None
    with pytest.raises(EmissionError, match="flog"):
        client.compile(_UNSELECTABLE)
    assert process.returncode == 1
    assert capfd.readouterr().err == ""
    assert client.compile(_SCALE) == client.compile(_SCALE)


def test_a_helper_that_was_killed_starts_again() -> None:
    first = client.compile(_SCALE)
    process = client.helper.process
    assert process is not None
    process.kill()
    process.wait()
    assert client.compile(_SCALE) == first


def test_a_helper_that_is_killed_again_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = client.helper.exchange

    def kill(request: bytes) -> tuple[int, bytes]:
        assert client.helper.process is not None
        os.kill(client.helper.process.pid, signal.SIGKILL)
        return exchange(request)

    monkeypatch.setattr(client.helper, "exchange", kill)
    with pytest.raises(KernelError, match=r"PTX ended twice.*exit status -9"):
        client.compile(_SCALE)


def test_an_interrupt_ends_the_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    client.start()
    process = client.helper.process
    assert process is not None

    def interrupt(request: bytes) -> tuple[int, bytes]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(client.helper, "exchange", interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.compile(_SCALE)
    assert process.returncode == -signal.SIGKILL
    assert client.compile(_SCALE)


@pytest.mark.process
def test_forks_have_their_own_helper() -> None:
    script = f"""
import os
from dparray._compiler.back_ends.ptx import client
text = {_SCALE!r}
first = client.compile(text)
owner = client.helper.process.pid
if not (child := os.fork()):
    assert client.helper.process is None
    assert client.compile(text) == first
    assert client.helper.process.pid != owner
    client.helper.end()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert client.compile(text) == first
assert client.helper.process.pid == owner
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_is_the_back_end_of_a_target() -> None:
    target = Target("ptx")
    compiler = back_end(target)
    compiler.start()
    llvm, written = compiler.optimised(_SCALE, target, True)
    assert (llvm, written) == client.compile(_SCALE, contract=True)
    assert compiler.needs(written) == set()
    assert compiler.without_float64(written) == written
    assert compiler.readable(llvm, written).startswith("//\n// Generated by LLVM NVPTX")


@pytest.mark.parametrize(
    ("text", "ndim"),
    [
        (_SCALE, 1),
        (_SCALE.replace("j(i32 0)", "j(i32 2)"), 3),
        (_SCALE + DIMENSIONS.format(2), 2),
        (_SCALE.replace("i32 0", "i32 %d"), 1),
    ],
)
def test_the_dimensions_of_a_range_are_found_in_the_text(text: str, ndim: int) -> None:
    assert dimensions_of(text) == ndim


def _chain(dtype: str) -> tuple[str, tuple[str, ...]]:
    """Return source and types of ``x * y + x - y * 2``, of as many elements as vectors need."""
    size = (elementwise.MIN_IN_VECTORS,)
    x, y = golden.leaf("x", size, dtype), golden.leaf("y", size, dtype)
    total = golden.node("add", golden.node("multiply", x, y, dtype=dtype), x, dtype=dtype)
    twice = golden.node("multiply", y, 2, dtype=dtype)
    last = golden.node("subtract", total, twice, dtype=dtype)
    source = golden.elementwise(last, is_gpu=True, has_vectors=True)
    return source, golden.TYPES[source]


@pytest.mark.parametrize(
    ("dtype", "access"), [("u1", "v2.b32"), ("i2", "v4.b32"), ("f2", "v4.b32"), ("f4", "v2.b32")]
)
def test_consecutive_elements_are_loaded_by_one_instruction(dtype: str, access: str) -> None:
    _, written = client.compile(compiler.generated_module(*_chain(dtype))[1])
    assert written.count(f"ld.global.{access}".encode()) == 2
    assert written.count(f"st.global.{access}".encode()) == 1
    for processor in packages.PROCESSORS:
        assert packages.assembled(written, processor).spilled == 0


def _slices(dtype: str, places: list[tuple[int, ...]], sizes: tuple[int, ...]) -> str:
    """Return source of the sum of views of one array that begin at some places."""
    strides = contiguous_strides(sizes, np.dtype(dtype).itemsize)
    shape = tuple(size - 2 for size in sizes)
    parts = [
        Node.leaf(
            golden.FakeLayout(
                golden.FakeBlock("x"), int(np.dot(place, strides)), shape, strides, np.dtype(dtype)
            ),
            None,
            "device",
        )
        for place in places
    ]
    total = parts[0]
    for part in parts[1:]:
        total = golden.node("add", total, part, dtype=dtype)
    value = total if len(parts) > 1 else golden.node("multiply", total, 2, dtype=dtype)
    out = golden.layout("out", shape, dtype, strides)
    return golden.elementwise(value, out=out, is_gpu=True, has_vectors=True)


def _sum_of(count: int, dtype: str) -> str:
    leaves = [golden.leaf(f"x{at}", (elementwise.MIN_IN_VECTORS,), dtype) for at in range(count)]
    value = golden.node("multiply", leaves[0], 2, dtype=dtype)
    for leaf in leaves[1:]:
        value = golden.node("add", value, leaf, dtype=dtype)
    return golden.elementwise(value, is_gpu=True, has_vectors=True)


def _turned(dtype: str) -> str:
    size = np.dtype(dtype).itemsize
    side = golden.layout("x", (1000, 1000), dtype, (size, 1000 * size))
    turned, whole = Node.leaf(side, None, "device"), golden.leaf("y", (1000, 1000), dtype)
    value = golden.node("add", turned, whole, dtype=dtype)
    return golden.elementwise(value, is_gpu=True, has_vectors=True)


_CROSS = [(0, 1), (2, 1), (1, 0), (1, 2), (1, 1)]
_STAR = [*((each, 1, 1) for each in (0, 2)), *((1, *each) for each in _CROSS)]
_WIDTHS = re.compile(rb"(ld|st)\.global(?:\.v(\d))?\.\w(\d+)")


@pytest.mark.parametrize(
    ("source", "nbytes", "registers"),
    [
        *((lambda n=n, t=t: _sum_of(n, t), 16, 40) for n in (1, 2, 3) for t in ("u1", "f2", "f4")),
        *((lambda n=n, t=t: _sum_of(n, t), 16, 40) for n in (1, 2) for t in ("f8", "c8", "c16")),
        *((lambda t=t: _slices(t, [(1, 1)], (1000, 1026)), 16, 40) for t in ("u1", "f2", "f4")),
        # Each element is loaded by as many work-items as there are places.
        *((lambda t=t: _slices(t, _CROSS, (1000, 1026)), 32 * 5, 48) for t in ("f2", "f4", "f8")),
        *((lambda t=t: _turned(t), 16 * np.dtype(t).itemsize, 64) for t in ("f2", "f4", "f8")),
        (lambda: _slices("f4", _STAR, (100, 100, 386)), 32 * 7, 64),
    ],
)
def test_work_items_load_sixteen_bytes_before_they_store(
    source: Callable[[], str], nbytes: int, registers: int
) -> None:
    text = source()
    _, written = client.compile(compiler.generated_module(text, golden.TYPES[text])[1])
    loaded = 0
    for kind, lanes, bits in _WIDTHS.findall(written):
        if kind == b"st":
            break
        loaded += int(lanes or 1) * int(bits) // 8
    assert loaded >= nbytes
    usage = packages.assembled(written, packages.PROCESSORS[-1])
    assert usage.spilled == usage.stack == 0
    assert usage.registers <= registers


@pytest.mark.parametrize(("dtype", "rows"), [("f4", 8), ("f8", 4), ("i4", 8)])
def test_machine_code_of_columns_loads_several_rows_before_it_adds(dtype: str, rows: int) -> None:
    machine = golden.GPU._replace(loads_vectors=True, bytes_in_flight=16)
    leaf = golden.leaf("a", (1024, 1024), dtype)
    text = golden.reduction(golden.reduced(leaf, (0,), "sum", dtype), machine=machine)
    _, written = client.compile(compiler.generated_module(text, golden.TYPES[text])[1])
    assert packages.assembled(written, packages.PROCESSORS[-1]).spilled == 0
    names = "|".join(each[:3] for each in packages.machine_code(written))
    assert "|".join(["LDG"] * rows) in re.sub(r"\|(?!LDG|FADD?|DAD|STG|BRA)[A-Z0-9]+", "", names)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_machine_code_of_columns_loads_vectors_of_several_rows(dtype: str) -> None:
    text = golden.column_sums_by_vectors(dtype)
    _, written = client.compile(compiler.generated_module(text, golden.TYPES[text])[1])
    usage = packages.assembled(written, packages.PROCESSORS[-1])
    assert usage.spilled == usage.stack == 0
    assert usage.registers <= 48
    names = packages.machine_code(written)
    loads = [at for at, name in enumerate(names) if name == "LDG.E.128"]
    assert len(loads) in (8, 16)  # two trips
    # Some additions of the first rows may come before the last loads.
    between = names[loads[0] : loads[5]]
    assert sum(name.startswith(("FADD", "DADD", "IADD3")) for name in between) <= 24


def test_machine_code_of_a_stencil_loads_before_it_stores() -> None:
    text = _slices("f4", _CROSS, (1000, 1026))
    _, written = client.compile(compiler.generated_module(text, golden.TYPES[text])[1])
    loads = [0]  # between two stores: the elements of a tile that is not whole come one by one
    for name in packages.machine_code(written):
        loads[-1] += name.startswith("LDG")
        if name.startswith("STG"):
            loads.append(0)
    assert max(loads) == 40


@pytest.mark.parametrize("length", [1000, 1024, 8192, 32768])
@pytest.mark.parametrize(
    ("form", "instructions", "merges", "registers"),
    [(golden.softmax_of_rows_on_a_gpu, 28, 300, 56), (golden.normalized_rows, 26, 600, 72)],
)
def test_machine_code_of_rows_in_registers_reads_them_once(
    form: Callable[..., str], instructions: int, merges: int, registers: int, length: int
) -> None:
    text = form(length, golden.NVIDIA)
    held = len(re.findall(r"^    x0_\d+ = a0\[", text, re.M))
    assert held == -(-length // (32 if length <= 1024 else min(1024, length // 16)))
    _, written = client.compile(compiler.generated_module(text, golden.TYPES[text])[1])
    usage = packages.assembled(written, packages.PROCESSORS[-1])
    assert usage.spilled == usage.stack == 0
    assert usage.registers <= registers
    names = packages.machine_code(written)
    assert sum(name.startswith("LDG") for name in names) == held
    stores = [at for at, name in enumerate(names) if name.startswith("STG")]
    # The first stores are those of products with an inverse; divisions come after them.
    assert stores[held - 1 - (length % held > 0)] <= instructions * held + merges
