"""Kernels in the disk cache: invalid bytes raise an error that counts as a cache miss."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from dparray._compiler.kernel import Kernel

MISSES = (ValueError, KeyError, TypeError, RecursionError)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


ENTRY = b"kernel\0\0"
SPIRV = (
    words(0x07230203, 0x10000, 0, 9, 0)
    + words(2 << 16 | 17, 6)
    + words(5 << 16 | 15, 6, 1)
    + ENTRY
    + words(5 << 16 | 54, 1, 2, 0, 3)
)
HEAD = {
    "entry": "kernel",
    "name": "k",
    "types": ["f8:1C"],
    "seconds": 0.5,
    "build_options": "",
    "module": len(SPIRV),
    "target": ["spirv64", "intel-cpu"],
    "needs": ["fp64"],
    "advice": [[[3, "cut"]], 2, [1], "line 4"],
}
LLVM = zlib.compress(b"define void @kernel()")


def entry(**changes: Any) -> bytes:
    return json.dumps({**HEAD, **changes}).encode() + b"\n" + SPIRV + LLVM


def test_the_entry_is_read() -> None:
    kernel = Kernel.from_bytes(entry())
    assert (kernel.entry, kernel.module, kernel.origin) == ("kernel", SPIRV, "disk")
    assert (kernel.target, kernel.needs) == (("spirv64", "intel-cpu"), {"fp64"})
    assert kernel.llvm == "define void @kernel()"
    assert kernel.advice == (((3, "cut"),), 2, (1,), "line 4")
    again = Kernel.from_bytes(kernel.to_bytes())
    assert (again.module, again.advice) == (SPIRV, kernel.advice)


@pytest.mark.parametrize(
    "changes",
    [
        {"entry": "another"},
        {"entry": ""},
        {"entry": None},
        {"entry": ["kernel"]},
        {"module": 0},
        {"module": -4},
        {"module": 10**9},
        {"module": len(SPIRV) - 4},
        {"module": len(SPIRV) + 2},
        {"module": "64"},
        {"module": float(len(SPIRV))},
        {"module": None},
        {"advice": None},
        {"advice": [[], 0, []]},
        {"advice": [3, 0, [], ""]},
        {"advice": [[[1]], 0, [], ""]},
        {"advice": [[], "0", [], ""]},
        {"advice": [[], 0, ["1"], ""]},
        {"advice": [[], 0, [], 1]},
        {"target": ["spirv64"] * 3},
        {"target": [1]},
        {"needs": 1},
        {"needs": [1]},
        {"types": 3},
        {"types": "f8"},
        {"types": [1]},
        {"seconds": "x"},
        {"build_options": None},
        {"name": 3},
    ],
)
def test_wrong_fields_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(MISSES):
        Kernel.from_bytes(entry(**changes))


@pytest.mark.parametrize("name", HEAD)
def test_missing_fields_are_refused(name: str) -> None:
    head = {field: value for field, value in HEAD.items() if field != name}
    with pytest.raises(MISSES):
        Kernel.from_bytes(json.dumps(head).encode() + b"\n" + SPIRV + LLVM)


@pytest.mark.parametrize("text", [b"", b"\n", b"[]\n", b"3\n", b"{}\n", b"[" * 100_000, b"\xff\n"])
def test_other_bytes_raise(text: bytes) -> None:
    with pytest.raises(MISSES):
        Kernel.from_bytes(text)


def test_any_bytes_are_a_kernel_or_a_miss() -> None:
    random = np.random.default_rng(3)
    whole = entry()
    for _ in range(3000):
        damaged = bytearray(whole)
        for position in random.integers(0, len(whole), random.integers(1, 6)):
            damaged[position] = random.integers(0, 256)
        try:
            kernel = Kernel.from_bytes(bytes(damaged))
        except MISSES:
            continue
        assert kernel.entry.encode() in kernel.module
