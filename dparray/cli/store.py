"""Write the precompiled kernels that a wheel bundles: ``make kernels`` runs this file.

It runs the operations of most programs on arrays of each dtype, with an empty cache, and saves the
compiled kernels. The first programs run again on a device that passes for an NVIDIA GPU, and their
kernels are saved as PTX. User-defined kernels, and kernels for specific sizes, are not included.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dparray as dp
from dparray._compiler import store
from dparray._driver import declared
from dparray._driver.interface import Target
from dparray._evaluate import background, evaluate, limits
from dparray.algorithms import ranges
from dparray.cli import demo, warmup
from dparray.device import Device
from dparray.exceptions import DparrayError

_REAL = ("float32", "float64")
_WHOLE = ("int32", "int64", "uint8", "bool")
_SIZE = 300_000


def main() -> None:
    """Write the file, and print its size."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--output", type=Path, default=store.FILE, help="the file to write")
    arguments = parser.parse_args()
    make_warps_of_sub_groups()
    device = Device()
    kernels = recorded(_programs(device), device, store.TARGETS)
    gpu = as_nvidia_gpu(device)
    kernels |= recorded(_first_programs(gpu), gpu, (store.PTX,))
    store.write(kernels, arguments.output)
    size = arguments.output.stat().st_size / 2**20
    print(f"{len(kernels)} kernels, {size:.1f} MB: {arguments.output}")


def recorded(
    programs: Iterable[tuple[str, Callable[[], Any]]], device: Device, targets: tuple[Target, ...]
) -> dict[str, bytes]:
    """Run programs on a device; return their kernels for each target, by their keys in the file."""
    with (
        tempfile.TemporaryDirectory() as empty,
        _environment("DPARRAY_CACHE_DIR", empty),
        _environment("DPARRAY_KERNEL_STORE", ""),
        store.recorded(targets) as kernels,
    ):
        evaluate.forget()
        ranges.forget_kernels()
        for name, program in programs:
            if sys.stderr.isatty():
                print(f"\r\033[K{name}", end="", file=sys.stderr, flush=True)
            try:
                with limits.force("fused"):
                    dp.eval(*warmup.arrays_of(program()))
            except (DparrayError, TypeError, ValueError) as error:
                print(f"{name}: left out: {error!s:.100}", file=sys.stderr)
        background.wait()
        dp.synchronize(device)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        return dict(kernels)


def make_warps_of_sub_groups() -> None:
    """Let Intel's CPU driver, if nothing has used it yet, run sub-groups of 32 work-items.

    It runs the kernels of NVIDIA GPUs, too: wider sub-groups, which it chooses on some processors,
    would read and write beyond the ends of arrays.
    """
    os.environ["CL_CONFIG_CPU_VECTORIZER_MODE"] = "32"


def as_nvidia_gpu(device: Device) -> Device:
    """Return a queue of a device on which kernels get the forms that they have on NVIDIA GPUs.

    The device itself executes them: forms are chosen by traits, and kernels ask for the size of
    their sub-groups.
    """
    queue = device.new_queue().queue
    changes = {"kind": "gpu", "shares_memory": False, "sub_groups": (32,), "group": 1024}
    changes["loads_vectors"] = True
    sizes = {"units": 108, "threads": 64, "local_memory": 48 << 10}
    declared[queue] = replace(device.traits, **changes, **sizes)  # type: ignore[arg-type]
    return Device(queue)


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _first_programs(device: Device) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the programs of `dparray warmup` and the stages of `dparray demo`."""
    for dtype in _REAL:
        for name, program in warmup.programs(device, dtype):
            yield f"{dtype}, {name}", program
    yield "demo", lambda: demo.measure(demo.read(None), device)


def _programs(device: Device) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield from _first_programs(device)
    random = np.random.default_rng(0)
    for dtype in (*_REAL, *_WHOLE):
        host = (random.random(_SIZE) * 100).astype(dtype)
        x = dp.asarray(host, device=device)
        for name, of_vector in _OF_VECTORS.items():
            yield f"{dtype}, {name}", partial(of_vector, x)
        matrix = dp.reshape(x, (-1, 1000))
        for name, of_matrix in _OF_MATRICES.items():
            for axis in (0, 1):
                yield f"{dtype}, {name}, axis {axis}", partial(of_matrix, matrix, axis)
        if dtype in _REAL:
            for name in _SPECIAL:
                yield f"{dtype}, special.{name}", partial(getattr(dp.special, name), x / 100)


_OF_VECTORS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: (x + x, x * 2, x - 1, -x if x.dtype != bool else x),
    "sums": lambda x: [f(x) for f in (dp.sum, dp.max, dp.min, dp.mean, dp.argmax, dp.argmin)],
    "masks": lambda x: (x[x > 0], dp.nonzero(x)[0], dp.where(x > 1, x, 0)),
    "writing through a mask": lambda x: _masked(dp.asarray(x, copy=True)),
    "scans": lambda x: (dp.cumulative_sum(x), dp.cumulative_prod(x)),
    "sorting": lambda x: (dp.sort(x), dp.argsort(x), dp.unique(x)),
    "histograms": lambda x: (
        dp.histogram(x, bins=50)[0],
        dp.histogram(x, bins=50, range=(0.0, 1.0))[0],
    ),
    "selection": lambda x: (x[::2], x[dp.arange(0, x.size, 3, device=x.device)]),
    "places": lambda x: dp.searchsorted(dp.sort(x), x[:1000]),
}
_OF_MATRICES: dict[str, Callable[[Any, int], Any]] = {
    "reductions": lambda x, axis: [
        f(x, axis=axis) for f in (dp.sum, dp.max, dp.min, dp.mean, dp.argmax, dp.std, dp.var)
    ],
    "scans": lambda x, axis: dp.cumulative_sum(x, axis=axis),
    "logsumexp": lambda x, axis: dp.special.logsumexp(x, axis=axis),
}
_SPECIAL = ("erf", "erfinv", "gamma", "gammaln", "expit", "ndtr", "digamma", "i0", "j0")


def _masked(x: Any) -> Any:
    x[x > 1] = 1
    return x


if __name__ == "__main__":
    main()
