"""Bundled PTX, which another device has recorded, is used by CUDA's devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._compiler import store
from dparray._evaluate import evaluate, limits
from dparray.algorithms import ranges
from dparray.cli import store as command
from tests.cuda import packages
from tests.cuda.standin import StandIn
from tests.support import observed

HOST = np.random.default_rng(3).random((300, 200)).astype(np.float32)


def programs(device: dp.Device) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield programs of different kinds of kernels, which return an array."""
    x = dp.asarray(HOST, device=device)
    yield "arithmetic", lambda: x * 2 + dp.exp(x)
    yield "columns", lambda: dp.sum(x, axis=0)
    yield "all elements", lambda: dp.sum(x)
    yield "rows", lambda: (x - dp.mean(x, axis=1, keepdims=True)) / dp.std(x, axis=1)[:, None]
    yield "a transposed copy", lambda: dp.asarray(x.T, copy=True, order="C")
    yield "a kernel of the collection", lambda: dp.algorithms.inclusive_scan(x.reshape(-1))
    yield "random numbers", lambda: dp.random.default_rng(1, device=device).random(1000)


def test_bundled_ptx_is_not_compiled(
    driver: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packages.need_libdevice()
    recording = command.as_nvidia_gpu(dp.Device("cpu"))
    kernels = command.recorded(programs(recording), recording, (store.PTX,))
    store.write(kernels, tmp_path / "test.store")
    monkeypatch.setenv("DPARRAY_KERNEL_STORE", str(tmp_path / "test.store"))
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path))
    evaluate.forget()
    ranges.forget_kernels()
    origins: list[tuple[str, str]] = []

    def note(event: str, **values: Any) -> None:
        if event == "compile":
            origins.append((values["kernel"].name, values["origin"]))

    with observed(note), limits.force("fused"):
        found = {name: program().asnumpy() for name, program in programs(dp.Device("cuda:0"))}
    assert {origin for _, origin in origins} == {"disk"}, origins
    assert len(origins) >= 9, origins  # a scan takes three kernels
    np.testing.assert_allclose(found["arithmetic"], HOST * 2 + np.exp(HOST), 1e-6)
    np.testing.assert_allclose(found["all elements"], HOST.sum(dtype="f8"), 1e-6)
