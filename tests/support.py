"""Helpers of several folders: values, comparisons, observed events, one backend for all work.

A backend is forced with :func:`force`, or for a whole file by a fixture of ``conftest.py``:
``pytestmark = pytest.mark.usefixtures("fused")`` (generated kernels) or ``"executor"`` (each test
twice, with and without the host's fast path for small arrays). Both use one switch; no test patches
the limits themselves.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest

import dparray as dp
from dparray import _driver, _hooks, _placement
from dparray._array import allocation
from dparray._array.fastpath import module as compiled_module
from dparray._array.ndarray import materialize
from dparray._compiler.abi import INTEL_CPU
from dparray._compiler.back_ends.spirv import client
from dparray._compiler.compile import forget as forget_kernels
from dparray._driver import traits_of
from dparray._driver.interface import Target, Traits
from dparray._driver.sycl.prepare import find_driver as find_driver
from dparray._dtypes import NAMES as DTYPES
from dparray._evaluate import host, tuning
from dparray._evaluate.background import wait as wait_for_compiler
from dparray._evaluate.evaluate import forget as forget_plans
from dparray._evaluate.limits import force
from dparray._graph.ops import OPS
from dparray._runtime.event import Event
from dparray.device import queue_of
from dparray.memory import copies

__all__ = [  # of the package
    "DTYPES",  # the names of all dtypes
    "OPS",  # the table of element-wise operations
    "compiled_module",  # None if it is not built
    "force",
    "forget_kernels",
    "forget_plans",
    "wait_for_compiler",
]

#: The target of the CPU device.
TARGET = Target("spirv64", INTEL_CPU)


_texts = itertools.count()


def execute(text: str, scope: dict[str, Any]) -> dict[str, Any]:
    """Execute a text whose lines tracebacks and compilers can read; return its names."""
    name = f"<text {next(_texts)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), scope)
    return scope


def examples(count: int) -> int:
    """Return how many examples hypothesis draws for a test: ``count`` with ``--all``.

    The default is an eighth of the count, but at least 4. ``DPARRAY_TEST_EXAMPLES`` sets the number
    for all tests.
    """
    chosen = os.environ.get("DPARRAY_TEST_EXAMPLES")
    if chosen:
        return int(chosen)
    return count if "DPARRAY_TEST_ALL" in os.environ else max(4, count // 8)


def names_in(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def values(shape: Any, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Return numbers from -1 to 1, or integers from 0 to 6."""
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return generator.uniform(-1, 1, shape).astype(dtype)
    return generator.integers(0, 7, shape).astype(dtype)


def normal(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Return normally distributed numbers, which differ for each shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def counts(shape: Any, dtype: str, below: int = 3, seed: int = 0) -> np.ndarray:
    """Return random integers from 0 to ``below`` - 1, whose sums are exact in every dtype."""
    return np.random.default_rng(seed).integers(0, below, shape).astype(dtype)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """Return an array whose elements all differ."""
    return np.arange(prod(shape), dtype="int32").reshape(shape)


def on_device(value: Any) -> Any:
    """Convert NumPy arrays to dparray's, also inside of tuples and lists."""
    if isinstance(value, tuple | list):
        return type(value)(on_device(each) for each in value)
    return dp.asarray(value) if isinstance(value, np.ndarray) else value


def same(found: Any, wanted: Any, tolerance: float = 1e-5, atol: float | None = None) -> None:
    """Assert that a dparray array has NumPy's dtype, shape and values.

    ``tolerance`` is relative, and also absolute unless ``atol`` is given. Integers must be equal.
    """
    wanted = np.asarray(wanted)
    assert isinstance(found, dp.ndarray)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found.asnumpy(), wanted)
        return
    absolute = tolerance if atol is None else atol
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=tolerance, atol=absolute)


class Launch(NamedTuple):
    """The launch of a kernel, and its work-items along each dimension."""

    kernel: Any
    global_range: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return the kernel's name."""
        return str(self.kernel.name)


@contextmanager
def observed(note: Callable[..., Any]) -> Iterator[None]:
    """Call ``note(event, **values)`` for every event of the library inside the block."""
    unsubscribe = _hooks.subscribe(note)
    try:
        yield
    finally:
        unsubscribe()


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count each event; compilations and launches also by kernel: ``"launch add"``."""
    events: Counter[str] = Counter()

    def note(event: str, **values: Any) -> None:
        events[event] += 1
        if event in ("compile", "launch"):
            events[f"{event} {values['kernel'].name}"] += 1

    with observed(note):
        yield events


@contextmanager
def launched() -> Iterator[list[Launch]]:
    """Record the launches of kernels inside the block, in order."""
    launches: list[Launch] = []

    def note(event: str, **values: Any) -> None:
        if event == "launch":
            launches.append(Launch(values["kernel"], values["global_range"]))

    with observed(note):
        yield launches


def kernels_of(compute: Callable[[], Any]) -> list[str]:
    """Return the names of the kernels that a computation launches."""
    with launched() as launches:
        compute()
    return [launch.name for launch in launches]


def run_in_threads(work: Callable[[int], Any], count: int = 8) -> list[Any]:
    """Call ``work(number)`` in several threads; return their results, or raise the first error."""
    results: list[Any] = [None] * count
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def body(number: int) -> None:
        try:
            start.wait()
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]
    return results


def lowered_modules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the modules compiled until the end of the test, as text before LLVM's passes."""
    found: list[str] = []
    optimised = client.optimised

    def noted(text: str, *rest: Any) -> tuple[str, bytes]:
        found.append(text)
        return optimised(text, *rest)

    monkeypatch.setattr(client, "optimised", noted)
    return found


def forced(executor: str) -> AbstractContextManager[None]:
    """Force ``"fused"``, ``"library"`` or ``"host"`` for everything that the backend can compute.

    ``"host"`` leaves the choice as it is: the host computes small arrays.
    """
    return nullcontext() if executor == "host" else force(executor)


def runs_loops_on_host() -> bool:
    """Return whether ``dp.jit`` runs loops over elements on the host, as on a CPU device."""
    return traits_of(queue_of(None)).shares_memory


def forget_traits() -> None:
    """Drop what was decided by the traits of devices."""
    traits_of.cache_clear()
    _placement.check_dtype.cache_clear()
    host.can_compute.cache_clear()
    tuning.device_type.cache_clear()
    tuning._machine.cache_clear()
    allocation._usual[:] = None, None
    _hooks.option_was_set("plans")


@contextmanager
def pretending() -> Iterator[Callable[..., None]]:
    """Yield a function that lets devices report other traits.

    Its arguments: ``only``, which tells for a queue whether it is changed (by default, each is);
    ``lacks``, aspects that are missing; and fields of ``Traits``.
    """

    def pretend(
        only: Callable[[Any], bool] = lambda queue: True, lacks: Iterable[str] = (), **changes: Any
    ) -> None:
        before = _driver.read_traits

        @functools.cache
        def changed(device: Traits) -> Traits:
            return replace(device, aspects=device.aspects - set(lacks), **changes)

        patch.setattr(
            _driver,
            "read_traits",
            lambda queue: changed(before(queue)) if only(queue) else before(queue),
        )
        forget_traits()

    with pytest.MonkeyPatch.context() as patch:
        yield pretend
    forget_traits()


def leave_out_radix_sort(set_attribute: Callable[[Any, str, Any], object]) -> None:
    """Make dpnp sort 8-bit and 16-bit keys by merging where the CPU device is treated as a GPU.

    Twice in some forty runs of the suite, Intel's CPU driver (2026.2) ended the process or never
    returned while it compiled dpnp's radix sort. On a CPU dparray does not use it.
    """
    import dpnp.tensor._sorting as sorting

    set_attribute(sorting, "_get_radixsort_impl_fn", sorting._get_mergesort_impl_fn)
    set_attribute(sorting, "_get_radixargsort_impl_fn", sorting._get_mergeargsort_impl_fn)


@dp.kernel
def _hold(item: Any, gate: Any, x: Any, y: Any) -> None:
    # It ends by itself, so that a test whose host waits for it fails instead of hanging.
    for _ in range(3_000_000_000):  # takes several seconds
        if dp.AtomicRef(gate, 0).load() != 0:
            break
    x[item.get_id(0)] = y[item.get_id(0)] + 1


def launch_held(queue: Any, x: Any, y: Any) -> tuple[Event, np.ndarray]:
    """Launch a kernel that writes the first element of ``x`` and reads that of ``y``.

    Return its gate. The kernel runs until the gate is 1.
    """
    gate = dp.asarray(np.ones(1, np.int32), sycl_queue=queue)
    seen = copies.host_view(materialize(gate))
    dp.call_kernel(_hold, dp.Range(1), gate, x, y).wait()  # compile, build and load it first
    seen[0] = 0
    return dp.call_kernel(_hold, dp.Range(1), gate, x, y), seen


@contextmanager
def held(queue: Any, x: Any, y: Any) -> Iterator[Event]:
    """Keep a kernel running that writes the first element of ``x`` and reads that of ``y``."""
    event, seen = launch_held(queue, x, y)
    try:
        yield event
        assert not event.done, "the host has waited for memory that it does not touch"
    finally:
        seen[0] = 1
        event.wait()


def until(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """Wait until the result of ``condition`` is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds} seconds"
        time.sleep(0.01)
    return found


class Waiting:
    """A call in a separate thread, which is expected to wait."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._begun = threading.Event()
        self._result: list[Any] = []
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()
        assert self._begun.wait(120)

    def _run(self, call: Callable[[], Any]) -> None:
        self._begun.set()
        self._result.append(call())

    @property
    def is_done(self) -> bool:
        self._thread.join(0.05)
        return not self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self._result[0]
