"""Kernels are compiled for a target, and the rules against a driver apply to its targets alone."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _driver
from dparray._compiler import compile, key, store
from dparray._compiler.abi import INTEL_CPU
from dparray._compiler.back_ends.spirv import client
from dparray._driver import traits_of
from dparray._driver.interface import Target
from dparray._driver.sycl import devices
from dparray._evaluate import evaluate
from tests.support import TARGET, force, launched

OTHER = Target("spirv64")
TYPES = ("item:1", "i8:1C")
TEXT = "def generated(item, x):\n    i = uint64(item.get_id(0))\n    x[i] = x[i] + 77\n"


def test_the_vendor_and_the_kind_of_a_device_decide_its_target() -> None:
    intel = "Intel(R) Corporation"
    assert traits_of(dp.Device("cpu").queue).target == TARGET == Target("spirv64", INTEL_CPU)
    for vendor, is_gpu, wanted in (
        (intel, False, TARGET),
        (intel, True, OTHER),
        ("AuthenticAMD", False, OTHER),
        ("GenuineIntel", False, OTHER),  # PoCL's
    ):
        device = SimpleNamespace(vendor=vendor, is_gpu=is_gpu)
        assert devices._target(device) == wanted


def test_only_modules_for_a_driver_have_what_its_rules_add() -> None:
    text = """
declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @k(ptr addrspace(1) %x, i64 %n) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %j = mul i64 %i, %i
  %c = icmp ult i64 %j, %n
  br i1 %c, label %body, label %end
body:
  %at = getelementptr i64, ptr addrspace(1) %x, i64 %j
  store i64 %i, ptr addrspace(1) %at
  br label %end
end:
  ret void
}
"""
    (ours, _), (others, _) = (client.optimised(text, target) for target in (TARGET, OTHER))
    assert "add_sat" in ours
    assert "add_sat" not in others


def test_targets_have_keys_of_their_own() -> None:
    def kernel(item: Any, x: Any) -> None:
        x[item.get_id(0)] = 1

    for make, given in (
        (key.kernel_key, kernel),
        (key.text_key, TEXT),
        (key.stored_text_key, TEXT),
    ):
        assert len({make(given, TYPES, {}, target) for target in (TARGET, OTHER)}) == 2


def test_files_of_another_back_end_do_not_change_a_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "_compiler"
    for name in ("_compiler", "_language", "_ir"):
        shutil.copytree(Path(key.__file__).parents[1] / name, tmp_path / name)
    monkeypatch.setattr(key, "_FOLDER", folder)
    monkeypatch.setattr(key, "_LANGUAGE", (tmp_path / "_language", tmp_path / "_ir"))

    def digests() -> list[str]:
        return [key._our_files.__wrapped__(name) for name in ("spirv64", "ptx")]

    before = digests()
    for file, changed in (
        ("back_ends/ptx/rules.py", [False, True]),
        ("back_ends/spirv/intel_cpu/loops.py", [True, False]),
        ("back_ends/helper_process.py", [True, True]),
        ("llvm.py", [True, True]),
        ("../_language/source.py", [True, True]),
        ("../_ir/types.py", [True, True]),
    ):
        (folder / file).write_text("CHANGED = 1\n")
        now = digests()
        assert [new != old for new, old in zip(now, before, strict=True)] == changed
        before = now


@pytest.fixture
def with_other_target() -> Iterator[Any]:
    """Return a second queue whose device is said to have another driver."""
    traits = traits_of(dp.Device("cpu").queue)
    queue = import_module("dpctl").SyclQueue("cpu")
    _driver.declared[queue] = dataclasses.replace(traits, target=OTHER)
    yield queue
    del _driver.declared[queue]
    traits_of.cache_clear()
    evaluate.forget()


def test_a_kernel_function_is_compiled_for_each_target(with_other_target: Any) -> None:
    @dp.kernel
    def add(item: dp.Item, x: Any) -> None:
        i = item.get_id(0)
        x[i] = x[i] + 1

    x = dp.zeros(8, device="cpu")
    y = dp.zeros(8, sycl_queue=with_other_target)
    with launched() as launches:
        for each in (x, y, x, y):
            dp.call_kernel(add, dp.Range(8), each)
    assert [launch.kernel.target for launch in launches] == [TARGET, OTHER] * 2
    assert len({id(launch.kernel) for launch in launches}) == 2
    assert x.tolist() == y.tolist() == [2.0] * 8
    assert len(add.signatures) == len(add.inspect_llvm()) == len(add.device_info("cpu")) == 1


def test_an_expression_is_compiled_for_each_target(with_other_target: Any) -> None:
    host = np.arange(1000, dtype=np.float32)
    with force("fused"), launched() as launches:
        for options in ({"device": "cpu"}, {"sycl_queue": with_other_target}):
            x = dp.asarray(host, **options)
            np.testing.assert_array_equal((x * 3 + x).asnumpy(), host * 3 + host)
    assert [launch.kernel.target for launch in launches] == [TARGET, OTHER]


def test_a_module_for_another_driver_is_not_built() -> None:
    kernel = compile.compile_generated(TEXT, TYPES, {}, OTHER)
    with pytest.raises(AssertionError, match="another driver"):
        kernel.built_for(dp.Device("cpu").queue)


def test_the_store_has_its_kernels_for_each_target() -> None:
    compile.forget()
    with store.recorded() as kernels:
        compile.obtain_generated(TEXT.replace("77", "78"), TYPES, {}, TARGET)
    assert len(kernels) == len(store.TARGETS) == 2
    assert {re.search(rb'"target": (.*?)\]', each)[1] for each in kernels.values()} == {
        b'["spirv64", "intel-cpu"',
        b'["spirv64", ""',
    }
