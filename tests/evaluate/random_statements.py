"""Run random slice statements, copies, joins and conversions, and compare with NumPy.

    python tests/evaluate/random_statements.py --device host:cpu --seed 1 --count 100

The process has the options of a user who sets none, except for the device and an empty cache.
``--device cuda:0`` is the stand-in for NVIDIA's driver. Arrays are above the sizes that the host
computes immediately. All values are small integers, so that results are exact in every dtype.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from tests.environment import without_options

SHAPES = ((120_000,), (300, 400), (400, 300), (130, 7, 130), (3, 40_000), (20_000, 6))
DTYPES = ("float64", "float32", "int64", "int32", "int16", "uint8", "float16", "bool")


def values(rng: random.Random) -> np.ndarray:
    """Return an array of random values, whose memory is in C or Fortran order."""
    generator = np.random.default_rng(rng.randrange(1 << 30))
    array = generator.integers(0, 100, rng.choice(SHAPES)).astype(rng.choice(DTYPES))
    return np.asfortranarray(array) if rng.random() < 0.3 else array


def index(rng: random.Random, size: int) -> slice:
    """Return a slice of an axis that leaves at least one element."""
    step = rng.choice((1, 1, 1, 2, 3, -1, -1, -2))
    low = rng.choice((0, 0, min(1, size - 1), rng.randrange(size)))
    high = rng.randint(low + 1, size) if rng.random() < 0.4 else size
    return slice(low, high, step) if step > 0 else slice(high - 1, low - 1 if low else None, step)


def view(rng: random.Random, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """Return a function that returns a random view of an array of a shape."""
    cut = tuple(index(rng, size) for size in shape)
    axes = list(range(len(shape)))
    rng.shuffle(axes)
    kind = rng.randrange(4)
    if kind == 0:
        return lambda x: x[cut]
    if kind == 1:
        return lambda x: x.transpose(axes)
    if kind == 2:
        return lambda x: x.transpose(axes)[tuple(cut[axis] for axis in axes)]
    return lambda x: x


def layouts(rng: random.Random, shape: tuple[int, ...]) -> Callable[[Any, Any], Any]:
    """Return a function of NumPy or dparray and an array, which copies, joins or converts it."""
    axis, count = rng.randrange(len(shape)), rng.randint(1, 9)
    dtype, order = rng.choice(DTYPES), rng.choice("CFAK")
    return rng.choice(
        (
            lambda xp, x: x.copy(order),
            lambda xp, x: x.astype(dtype),
            lambda xp, x: x.astype(dtype, order=order),
            lambda xp, x: x.reshape(-1),
            lambda xp, x: x.reshape(-1, order="F"),
            lambda xp, x: x.ravel(),
            lambda xp, x: xp.concatenate([x, x], axis=axis),
            lambda xp, x: xp.concatenate([x, xp.flip(x, axis)], axis=axis),
            lambda xp, x: xp.stack([x, x], axis=axis),
            lambda xp, x: xp.tile(x, 2),
            lambda xp, x: xp.repeat(x, 2, axis=axis),
            lambda xp, x: xp.roll(x, count, axis=axis),
            lambda xp, x: xp.roll(x, count),
            lambda xp, x: xp.flip(x),
            lambda xp, x: xp.pad(x, count),
            lambda xp, x: xp.where(x > 50, x, 0),
            lambda xp, x: xp.maximum(x, x[::-1]),
            lambda xp, x: xp.rot90(x) if x.ndim > 1 else x,
            lambda xp, x: xp.ascontiguousarray(x),
            lambda xp, x: xp.asfortranarray(x),
            lambda xp, x: xp.array(x, order=order),
            lambda xp, x: xp.take(x, xp.asarray([0, count % x.shape[axis]]), axis=axis),
            lambda xp, x: x[x > 50],
            lambda xp, x: x.astype("complex64").real,
            lambda xp, x: xp.broadcast_to(x[:1], x.shape).copy(),
            lambda xp, x: pickle.loads(pickle.dumps(x)),
        )
    )


def write(rng: random.Random, shape: tuple[int, ...]) -> Callable[[Any, Any], None]:
    """Return a function of NumPy or dparray and an array, which writes some of its elements."""
    cut = tuple(index(rng, size) for size in shape)
    axis, number, dtype = rng.randrange(len(shape)), rng.randint(0, 9), rng.choice(DTYPES)

    def assign(xp: Any, x: Any) -> None:
        x[cut] = number

    def assign_array(xp: Any, x: Any) -> None:
        part = x[cut]
        x[cut] = xp.ones(part.shape, dtype) * number

    def assign_transposed(xp: Any, x: Any) -> None:
        part = x[cut]
        x[cut] = xp.full(part.shape[::-1], number, dtype).T

    def assign_itself(xp: Any, x: Any) -> None:
        x[cut] = xp.flip(x[cut], axis)

    def move(xp: Any, x: Any) -> None:
        if x.shape[0] > 1:
            x[1:] = x[:-1]

    def in_place(xp: Any, x: Any) -> None:
        x[cut] *= x[cut] > 50
        x *= x[:1] >= 0

    def by_mask(xp: Any, x: Any) -> None:
        x[x > 50] = number

    def a_row(xp: Any, x: Any) -> None:
        x[...] = x[-1:]

    return rng.choice(
        (assign, assign_array, assign_transposed, assign_itself, move, in_place, by_mask, a_row)
    )


def run(seed: int, xp: Any, to_array: Callable[[np.ndarray], Any]) -> list[Any]:
    """Run the program of a seed with NumPy or dparray; return its arrays."""
    rng = random.Random(seed)
    host = values(rng)
    x = to_array(view(rng, host.shape)(host.copy(order="K")))
    results = [x]
    for _ in range(rng.randint(2, 5)):
        x = view(rng, x.shape)(x)
        if rng.random() < 0.5:
            write(rng, x.shape)(xp, x)
        if rng.random() < 0.7 and x.size < 300_000:
            x = layouts(rng, x.shape)(xp, x)
        results.append(x)
        if x.size == 0:
            break
    return results


def main() -> None:
    """Run programs, and end with status 1 if one differs from NumPy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--no-host-tier", action="store_true")
    options = parser.parse_args()
    without_options()
    if options.device:
        os.environ["DPARRAY_DEVICE"] = options.device
    if options.device.startswith("cuda"):
        from tests.cuda import cupy_standin, standin

        standin.install()
        cupy_standin.install()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPARRAY_CACHE_DIR"] = folder
        import dparray as dp

        dp.config.host_tier = not options.no_host_tier
        wrong = 0
        for seed in range(options.seed, options.seed + options.count):
            wanted = run(seed, np, lambda array: array)
            print(f"seed {seed}", end=" ", flush=True)  # that of an error
            found = [dp.asnumpy(x) for x in run(seed, dp, dp.asarray)]
            for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
                if one.dtype != other.dtype or not np.array_equal(one, other):
                    print(f"array {number} differs from NumPy's")
                    wrong += 1
        print(f"\n{options.count} programs on {dp.default_device()}, {wrong} differences")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
