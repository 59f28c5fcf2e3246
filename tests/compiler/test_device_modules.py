"""Modules for devices other than the CPU: without printed doubles, and built in another process."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dpctl.program import SyclProgramCompilationError

import dparray as dp
from dparray._compiler.back_ends.spirv.words import (
    instructions,
    module_of,
    needs,
    without_printed_doubles,
)
from dparray._driver.sycl import modules, trial_build
from tests.support import observed


@dp.kernel
def prints(item: dp.Item, x: Any) -> None:
    i = item.get_id(0)
    if i == 0:
        print("first", i, x[i], x[i] > 0)


@dp.kernel
def prints_and_doubles(item: dp.Item, x: Any) -> None:
    i = item.get_id(0)
    x[i] = x[i] * 0.1
    print(x[i])


def compiled_of(kernel: Any) -> bytes:
    found: list[bytes] = []

    def note(event: str, **told: Any) -> None:
        if event == "launch":
            found.append(told["kernel"].module)

    with observed(note):
        dp.call_kernel(kernel, dp.Range(1), dp.zeros(1, dtype="float32"))
    return found[-1]


def test_a_kernel_that_prints_float32_needs_no_float64() -> None:
    spirv = compiled_of(prints)
    assert needs(spirv) == {"fp64"}
    changed = without_printed_doubles(spirv)
    assert changed is not None
    assert not needs(changed)
    validator = Path(sys.prefix, "bin/spirv-val")
    if validator.exists():
        done = subprocess.run([validator, "-"], input=changed, capture_output=True)
        assert done.returncode == 0, done.stderr


def test_a_constant_may_equal_the_id_of_a_double() -> None:
    spirv = compiled_of(prints)
    constant, convert = 43, 115
    every = list(instructions(spirv))
    converted = next(operands[1] for code, operands in every if code == convert)
    equal = [(c, (*o[:2], converted) if c == constant else o) for c, o in every]
    assert without_printed_doubles(module_of(struct.unpack_from("<5I", spirv), equal)) is not None


def test_other_doubles_raise_with_a_suggested_fix(pretend: Any) -> None:
    assert without_printed_doubles(compiled_of(prints_and_doubles)) is None
    pretend(lacks=["fp64"])
    with pytest.raises(dp.UnsupportedDeviceError, match=r"write np\.float32\(i\)"):
        dp.call_kernel(prints_and_doubles, dp.Range(4), dp.ones(4, dtype="float32"))


_CHILD = """
import json, sys
sys.stdin.buffer.read()
sys.stdout.buffer.write({begun!r} + {answer!r})
sys.stdout.buffer.flush()
sys.exit({status})
"""


def built_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, begun: bytes, answer: bytes, status: int
) -> bytes | None:
    script = tmp_path / "child.py"
    script.write_text(_CHILD.format(begun=begun, answer=answer, status=status))
    monkeypatch.setattr(trial_build, "__file__", str(script))
    return modules._built_apart(dp.Device("cpu").sycl_queue, b"module", "")


@pytest.mark.parametrize("status", [1, 0])
def test_a_crash_of_the_compiler_is_an_exception(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int
) -> None:
    with pytest.raises(SyclProgramCompilationError, match="compiler crashed on it"):
        built_apart(monkeypatch, tmp_path, trial_build.BEGUN, b"", status)


def test_a_refusal_without_a_log_has_the_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = b'{"status": -5, "log": ""}\n'
    with pytest.raises(SyclProgramCompilationError, match="CL_OUT_OF_RESOURCES"):
        built_apart(monkeypatch, tmp_path, trial_build.BEGUN, answer, 0)
    answer = b'{"status": -11, "log": "undefined symbol"}\n'
    with pytest.raises(SyclProgramCompilationError, match="undefined symbol"):
        built_apart(monkeypatch, tmp_path, trial_build.BEGUN, answer, 0)


def test_a_binary_comes_back_and_no_process_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = b'{"status": 0, "log": ""}\n\0binary\n'
    found = built_apart(monkeypatch, tmp_path, trial_build.BEGUN, answer, 0)
    assert found == b"\0binary\n"
    assert built_apart(monkeypatch, tmp_path, b"", b"", 1) is None
    answer = b'{"status": -1000, "log": ""}\n'
    assert built_apart(monkeypatch, tmp_path, b"", answer, 0) is None
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    assert modules._built_apart(dp.Device("cpu").sycl_queue, b"module", "") is None


def test_the_device_is_found_by_its_names_alone() -> None:
    head = '{"library": "libOpenCL.so.1", "platform": "none", "device": "", "version": "", '
    done = subprocess.run(
        [sys.executable, trial_build.__file__],
        input=(head + '"options": ""}\n').encode(),
        capture_output=True,
        env={"LD_LIBRARY_PATH": str(Path(sys.prefix, "lib"))},
    )
    assert done.stdout.startswith(b'{"status": -1000'), done.stderr
