"""The stages one after another: run on the device, timed, and checked against NumPy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dparray as dp
from dparray._array.ndarray import ndarray
from dparray.cli.demo import pipeline, reference
from dparray.device import Device

#: Runs that are not timed go on for this long: until the library has met each expression often
#: enough to compile one kernel for it, and memory and caches are as they will be.
WARM_UP_SECONDS = 0.3

#: NumPy's runs are long and vary little, so fewer of them do.
NUMPY_RUNS = 3


@dataclass(frozen=True)
class Settings:
    """Settings of the pipeline."""

    device: Device
    usm_type: str
    colours: int
    iterations: int
    sigma: float
    runs: int


@dataclass(frozen=True)
class Measurement:
    """A stage as it ran.

    Attributes:
        stage: its name.
        means: what it is made of.
        queue: where its result is, which is where it ran.
        usm_type: of its result.
        first: seconds of the first run, in which kernels are compiled or read from the cache.
        seconds: median of the runs on the device after warming up.
        numpy_seconds: median of the runs in NumPy; ``None`` for a copy.
        difference: the largest difference of the two results.
        tolerance: the largest difference that is put down to rounding.
        result: NumPy arrays, for the picture.
    """

    stage: str
    means: str
    queue: Any
    usm_type: str
    first: float
    seconds: float
    numpy_seconds: float | None
    difference: float
    tolerance: float
    result: tuple[np.ndarray, ...]

    @property
    def agrees(self) -> bool:
        """Whether the results are equal within the tolerance; never if one has a NaN."""
        return self.difference <= self.tolerance


#: Texts of the progress bar for each stage, in this order.
STEPS = ("first run", "warm runs", "NumPy", "check")
STAGES = ("copy", "luminance", "gradient", "blur", "quantise")


def measure(
    rgb: np.ndarray, settings: Settings, step: Callable[[str, str], None]
) -> Iterator[Measurement]:
    """Run the stages; yields what came of each.

    Args:
        rgb: shape (height, width, 3), uint8.
        settings: where and how.
        step: told the stage and the step that begins now.
    """
    place: dict[str, Any] = {"device": settings.device, "usm_type": settings.usm_type}
    host_planes = np.ascontiguousarray(rgb.transpose(2, 0, 1), np.float32)
    host_weights = reference.gaussian(settings.sigma)
    host_colours = reference.starting_colours(host_planes, settings.colours)
    run = _Runner(settings.runs, step)

    copied = run(
        "copy",
        "host to device",
        lambda: dp.asarray(host_planes, **place),
        lambda: host_planes,
        _largest,
        tolerance=0.0,
        is_copy=True,
    )
    yield copied
    planes = dp.asarray(host_planes, **place)
    weights = dp.asarray(host_weights, **place)
    colours = dp.asarray(host_colours, **place)

    light = run(
        "luminance",
        "array functions",
        lambda: pipeline.luminance(planes),
        lambda: reference.luminance(host_planes),
        _largest,
        tolerance=1e-5,
    )
    yield light
    lightness = pipeline.luminance(planes)
    yield run(
        "gradient",
        "array functions",
        lambda: pipeline.gradient(lightness),
        lambda: reference.gradient(light.result[0]),
        _largest,
        tolerance=1e-5,
    )
    yield run(
        "blur",
        "kernel, local memory",
        lambda: pipeline.blur(planes, weights),
        lambda: reference.blur(host_planes, host_weights),
        _largest,
        tolerance=0.01,
    )
    yield run(
        "quantise",
        f"kernels, {settings.iterations} rounds",
        lambda: pipeline.quantise(planes, colours, settings.iterations),
        lambda: reference.quantise(host_planes, host_colours, settings.iterations),
        lambda found, expected: _palette_difference(host_planes, found, expected),
        tolerance=0.25,
    )


class _Runner:
    """Runs one stage after another, all with the same number of runs."""

    def __init__(self, runs: int, step: Callable[[str, str], None]) -> None:
        self.runs = runs
        self.step = step

    def __call__(
        self,
        stage: str,
        means: str,
        on_device: Callable[[], Any],
        in_numpy: Callable[[], Any],
        difference: Callable[[tuple[np.ndarray, ...], tuple[np.ndarray, ...]], float],
        *,
        tolerance: float,
        is_copy: bool = False,
    ) -> Measurement:
        self.step(stage, STEPS[0])
        first, arrays = _timed(on_device)
        self.step(stage, STEPS[1])
        warm = time.perf_counter() + WARM_UP_SECONDS
        while time.perf_counter() < warm:
            _timed(on_device)
        seconds = statistics.median(_timed(on_device)[0] for _ in range(self.runs))
        self.step(stage, STEPS[2])
        expected = _as_tuple(in_numpy())
        numpy_seconds = None
        if not is_copy:
            numpy_seconds = statistics.median(
                _timed(in_numpy)[0] for _ in range(min(self.runs, NUMPY_RUNS))
            )
        self.step(stage, STEPS[3])
        found = tuple(dp.asnumpy(array) for array in arrays)
        return Measurement(
            stage,
            means,
            arrays[0].sycl_queue,
            arrays[0].usm_type,
            first,
            seconds,
            numpy_seconds,
            difference(found, expected),
            tolerance,
            found,
        )


def _timed(function: Callable[[], Any]) -> tuple[float, tuple[Any, ...]]:
    """Seconds until the results are there, on the device too, and the results."""
    start = time.perf_counter()
    results = _as_tuple(function())
    for result in results:
        if isinstance(result, ndarray):
            dp.synchronize(result)
    return time.perf_counter() - start, results


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _largest(found: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> float:
    if found[0].shape != expected[0].shape:
        return float("nan")
    return float(np.max(np.abs(found[0] - expected[0]), initial=0.0))


def _palette_difference(
    planes: np.ndarray, found: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]
) -> float:
    """The larger of two: how far a colour is from NumPy's, and how much farther one of the two
    results is from a pixel than the other.

    The numbers of the colours are not compared: a pixel that lies between two colours may have
    either, which is a large difference in the picture and none in its quality.
    """

    def distances(palette: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.sqrt(np.sum((planes - palette[labels].transpose(2, 0, 1)) ** 2, axis=0))

    if any(f.shape != e.shape for f, e in zip(found, expected, strict=True)):
        return float("nan")
    if found[1].min() < 0 or found[1].max() >= len(found[0]):
        return float("inf")
    moved = np.max(np.abs(found[0] - expected[0]))
    return float(max(moved, np.max(np.abs(distances(*found) - distances(*expected)))))
