"""The parts of ``hardware.py`` that measure: costs of launches, and times beside other libraries.

All candidates of a case are timed in turns, in one process, so that a change of the clock affects
all of them. Each result is checked against NumPy's first. Times are of many calls and one wait.
"""

from __future__ import annotations

import ctypes
import importlib.util
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_ROUNDS = 7
_BATCH = 3e-3  # seconds of one candidate's batch
_STEP = 1021
_TOLERANCES = {2: 2e-2, 4: 2e-4, 8: 1e-9}


class Candidate(NamedTuple):
    """A call that submits work, a function that waits for it, and one that reads its result.

    ``stream`` is the handle of the stream that runs it, 0 if it is not known.
    """

    call: Callable[[], Any]
    wait: Callable[[], Any]
    read: Callable[[Any], np.ndarray]
    stream: int = 0


_HELD = 0.5  # seconds that a stream is held at most
_may_go = threading.Event()
_in_time: list[bool] = []


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _hold(_: int) -> None:
    _in_time.append(_may_go.wait(_HELD))


def device_time(candidate: Candidate, count: int = 10) -> float | None:
    """Return the microseconds of a call on the device, or ``None`` if it waits for its work.

    The stream is held while the host submits the calls, so that the device does not wait for it.
    """
    from cuda.bindings import driver

    def do(answer: tuple[Any, ...]) -> Any:
        if int(answer[0]):
            raise RuntimeError(answer[0].name)
        return answer[1] if len(answer) > 1 else None

    candidate.wait()
    do(driver.cuCtxSetCurrent(do(driver.cuDevicePrimaryCtxRetain(0))))
    first, last = (do(driver.cuEventCreate(0)) for _ in range(2))
    _may_go.clear()
    holds = driver.cuLaunchHostFunc(candidate.stream, driver.CUhostFn(_of(_hold)), 0)
    if holds[0] != driver.CUresult.CUDA_ERROR_NOT_SUPPORTED:  # by the stand-in
        do(holds)
    do(driver.cuEventRecord(first, candidate.stream))
    for _ in range(count):
        candidate.call()
    do(driver.cuEventRecord(last, candidate.stream))
    _may_go.set()
    do(driver.cuEventSynchronize(last))
    milliseconds = float(do(driver.cuEventElapsedTime(first, last)))
    return milliseconds * 1e3 / count if all(_in_time[-1:]) else None


def _of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def measured(candidates: dict[str, Candidate], rounds: int = _ROUNDS) -> dict[str, float]:
    """Return the median microseconds of a call of each candidate."""
    counts, seconds = {}, {name: [] for name in candidates}
    for name, each in candidates.items():
        for _ in range(3):
            each.call()
        each.wait()
        start = time.perf_counter()
        each.call()
        each.wait()
        once = max(1e-6, time.perf_counter() - start)
        counts[name] = max(1, min(300, int(_BATCH / once)))
    for _ in range(rounds):
        for name, each in candidates.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                each.call()
            each.wait()
            seconds[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(each) * 1e6 for name, each in seconds.items()}


# --- libraries ------------------------------------------------------------------------------------


class Library(NamedTuple):
    """A library with NumPy's functions: ``wrap`` prepares a function for repeated calls."""

    name: str
    module: Any
    put: Callable[[np.ndarray], Any]
    wait: Callable[[], Any]
    read: Callable[[Any], np.ndarray]
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
    stream: int = 0


def _same(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _dparray() -> Library:
    import dparray as dp

    device = dp.Device("cuda:0")

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arrays: Any) -> Any:
            result = function(*arrays)
            dp.eval(result)
            return result

        return call

    return Library(
        "dparray",
        dp,
        lambda values: dp.asarray(values, device=device),
        device.wait,
        lambda result: result.asnumpy(),
        wrap,
        int(device.queue.handle),
    )


def _dparray_jit() -> Library:
    import dparray as dp

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled = dp.jit(function)

        def call(*arrays: Any) -> Any:
            result = compiled(*arrays)
            dp.eval(result)
            return result

        return call

    return _dparray()._replace(name="dparray jit", wrap=wrap)


def _cupy() -> Library:
    import cupy

    stream = cupy.cuda.get_current_stream()
    cupy.zeros(1)
    return Library("cupy", cupy, cupy.asarray, stream.synchronize, cupy.asnumpy, _same, stream.ptr)


def _torch() -> Library:
    import torch

    def put(values: np.ndarray) -> Any:
        return torch.from_numpy(values.copy()).cuda()

    put(np.zeros(1))
    return Library(
        "torch",
        torch,
        put,
        torch.cuda.synchronize,
        lambda result: result.cpu().numpy(),
        _same,
        torch.cuda.current_stream().cuda_stream,
    )


def _torch_compiled() -> Library:
    import torch

    return _torch()._replace(name="torch.compile", wrap=lambda each: torch.compile(each))


def _jax() -> Library:
    import jax
    import jax.numpy

    jax.config.update("jax_enable_x64", True)
    last: list[Any] = []

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled = jax.jit(function)

        def call(*arrays: Any) -> Any:
            last[:] = [compiled(*arrays)]
            return last[0]

        return call

    return Library(
        "jax",
        jax.numpy,
        jax.device_put,
        lambda: last and jax.block_until_ready(last[0]),
        np.asarray,
        wrap,
    )


_MAKERS = {
    "dparray": (_dparray, "dparray"),
    "dparray jit": (_dparray_jit, "dparray"),
    "cupy": (_cupy, "cupy"),
    "torch": (_torch, "torch"),
    "torch.compile": (_torch_compiled, "torch"),
    "jax": (_jax, "jax"),
}


def libraries(results: Any, options: Any) -> list[Library]:
    """Return the libraries that are installed and reach the device."""
    found = []
    for name, (make, module) in _MAKERS.items():
        if options.libraries and name not in options.libraries:
            continue
        if importlib.util.find_spec(module) is None or (options.standin and module != "dparray"):
            results[f"library {name}"] = "not measured"
            continue
        try:
            found.append(make())
        except Exception as error:
            results[f"library {name}"] = f"{type(error).__name__}: {error}"[:300]
    return found


# --- cases ----------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A computation: ``function(module)`` returns a function of the arrays."""

    name: str
    function: Callable[[Any], Callable[..., Any]]
    arrays: tuple[np.ndarray, ...]
    moved: int  # bytes that must be read and written
    others: Callable[..., dict[str, Candidate]] | None = None
    step: int = 1  # of an element-wise computation, one of N elements is compared
    waits: bool = False  # whether the host waits for a result, such as a length


def _black_scholes(xp: Any) -> Callable[..., Any]:
    def normal(x: Any) -> Any:
        k = 1 / (1 + 0.2316419 * abs(x))
        tail = k * (
            0.31938153
            + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
        tail = 0.39894228 * xp.exp(-0.5 * x * x) * tail
        return xp.where(x > 0, 1 - tail, tail)

    def price(s: Any, k: Any, t: Any) -> Any:
        scale = 0.2 * xp.sqrt(t)
        d1 = (xp.log(s / k) + 0.12 * t) / scale
        return s * normal(d1) - k * xp.exp(-0.1 * t) * normal(d1 - scale)

    return price


def _time_step(xp: Any) -> Callable[..., Any]:
    """Ten small operations, each of which reads the one before."""

    def step(u: Any, v: Any) -> Any:
        for _ in range(5):
            u, v = u + 0.01 * v, v - 0.01 * u
        return u

    return step


def _stencil_2d(xp: Any) -> Callable[..., Any]:
    return lambda x: 0.25 * (x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1])


def _stencil_3d(xp: Any) -> Callable[..., Any]:
    inner = slice(1, -1)

    def step(x: Any) -> Any:
        return x[inner, inner, inner] + 0.1 * (
            x[2:, inner, inner]
            + x[:-2, inner, inner]
            + x[inner, 2:, inner]
            + x[inner, :-2, inner]
            + x[inner, inner, 2:]
            + x[inner, inner, :-2]
            - 6 * x[inner, inner, inner]
        )

    return step


def _softmax(xp: Any) -> Callable[..., Any]:
    def softmax(x: Any) -> Any:
        e = xp.exp(x - (xp.amax(x, axis=1) if hasattr(xp, "amax") else xp.max(x, axis=1))[:, None])
        return e / xp.sum(e, axis=1)[:, None]

    return softmax


def _chain(xp: Any) -> Callable[..., Any]:
    return lambda x, y: x * y + x - y * 2


def cases(size: int, side: int, cube: int) -> list[Case]:
    """Return the cases, for vectors, squares and cubes of these sizes."""
    generator = np.random.default_rng(1)

    def vector(dtype: str, count: int = size) -> np.ndarray:
        return (generator.random(count, np.float32) + 0.5).astype(dtype)

    found = []
    for dtype in ("float32", "float64", "float16"):
        bytes_of = size * np.dtype(dtype).itemsize
        two, three = ((vector(dtype),) * count for count in (2, 3))
        found.append(Case(f"chain {dtype}", _chain, two, 3 * bytes_of, _other_chains, _STEP))
        found.append(
            Case(f"Black-Scholes {dtype}", _black_scholes, three, 4 * bytes_of, step=_STEP)
        )
    x = vector("float32")
    square = vector("float32", side * side).reshape(side, side)
    block = vector("float32", cube**3).reshape(cube, cube, cube)
    small = vector("float32", min(size, 10_000))
    product = vector("float32", 1024 * 1024 if side > 1024 else 4096).reshape(-1, 1024)
    product = product[:, :64].copy() if side <= 1024 else product
    found += [
        Case("copy", _copy, (x,), 2 * x.nbytes, step=_STEP),
        Case("sum", lambda xp: lambda x: xp.sum(x), (x,), x.nbytes),
        Case(
            "row norms",
            lambda xp: lambda x: xp.sqrt(xp.sum(x * x, axis=1)),
            (square,),
            square.nbytes,
        ),
        Case("softmax", _softmax, (square,), 2 * square.nbytes, _other_softmax),
        Case("column sums", lambda xp: lambda x: xp.sum(x, axis=0), (square,), square.nbytes),
        Case("2-D stencil by slices", _stencil_2d, (square,), 2 * square.nbytes, _other_stencils),
        Case("3-D stencil by slices", _stencil_3d, (block,), 2 * block.nbytes),
        Case(
            "cumulative sum",
            lambda xp: lambda x: getattr(xp, "cumulative_sum", xp.cumsum)(x, axis=0),
            (x,),
            2 * x.nbytes,
        ),
        Case("exclusive scan", _scan, (x,), 2 * x.nbytes),
        Case("histogram", _histogram, (x,), x.nbytes, waits=True),
        Case("mask", lambda xp: lambda x: x[x > 1], (x,), 2 * x.nbytes, waits=True),
        Case("sort", _sort, (x,), 2 * x.nbytes),
        Case("matmul", lambda xp: lambda x: x @ x.T, (product,), 2 * product.nbytes),
        Case("transposition", _transposition, (square,), 2 * square.nbytes),
        Case("time step of 10 operations", _time_step, (small, small), 3 * small.nbytes),
    ]
    return found


def _copy(xp: Any) -> Callable[..., Any]:
    return lambda x: x.clone() if xp.__name__ == "torch" else x.copy()


def _scan(xp: Any) -> Callable[..., Any]:
    if xp.__name__ == "dparray":
        from dparray import algorithms

        return lambda x: algorithms.exclusive_scan(x)
    if xp.__name__ == "jax.numpy":
        return lambda x: xp.cumsum(x) - x
    return lambda x: xp.cumsum(x, axis=0) - x


def _histogram(xp: Any) -> Callable[..., Any]:
    if xp.__name__ == "torch":
        return lambda x: xp.histc(x, 100, 0.5, 1.5)
    return lambda x: xp.histogram(x, bins=100, range=(0.5, 1.5))[0]


def _sort(xp: Any) -> Callable[..., Any]:
    if xp.__name__ == "torch":
        return lambda x: xp.sort(x).values
    return lambda x: xp.sort(x)


def _transposition(xp: Any) -> Callable[..., Any]:
    if xp.__name__ == "torch":
        return lambda x: x.T.contiguous()
    return lambda x: xp.asarray(x.T, copy=True) + 0 if xp.__name__.startswith("jax") else x.T.copy()


# --- kernels of other libraries -------------------------------------------------------------------


if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # type: ignore[attr-defined]  # numba-cuda asks for it


def _threads(count: int) -> tuple[int, int]:
    return -(-count // 256), 256


def _other_chains(x: np.ndarray, y: np.ndarray) -> dict[str, Candidate]:
    """The chain as a kernel of dparray, numba-cuda and Triton."""
    found = {"dparray kernel": _kernel_chain(x, y)}
    if importlib.util.find_spec("numba_cuda") is not None:
        from numba import cuda

        @cuda.jit
        def chain(a: Any, b: Any, out: Any) -> None:
            i = cuda.grid(1)
            if i < a.size:
                out[i] = a[i] * b[i] + a[i] - b[i] * a.dtype.type(2)

        if x.dtype != np.float16:
            a, b = cuda.to_device(x), cuda.to_device(y)
            out = cuda.device_array_like(a)
            found["numba-cuda"] = Candidate(
                lambda: (chain[_threads(x.size)](a, b, out), out)[1],
                cuda.synchronize,
                lambda result: result.copy_to_host(),
            )
    if importlib.util.find_spec("triton") is not None and importlib.util.find_spec("torch"):
        import torch

        from tests.cuda import hardware_triton

        a, b = (torch.from_numpy(each.copy()).cuda() for each in (x, y))
        out = torch.empty_like(a)
        found["triton"] = Candidate(
            lambda: hardware_triton.chain(a, b, out),
            torch.cuda.synchronize,
            lambda result: result.cpu().numpy(),
            torch.cuda.current_stream().cuda_stream,
        )
    return found


def _kernel_chain(x: np.ndarray, y: np.ndarray) -> Candidate:
    import dparray as dp

    @dp.kernel
    def chain(item: Any, a: Any, b: Any, out: Any) -> None:
        i = item.get_id(0)
        out[i] = a[i] * b[i] + a[i] - b[i] * a.dtype.type(2)

    device = dp.Device("cuda:0")
    a, b = (dp.asarray(each, device=device) for each in (x, y))
    out = dp.empty_like(a)

    def call() -> Any:
        dp.call_kernel(chain, dp.Range(x.size), a, b, out)
        return out

    stream = int(device.queue.handle)
    return Candidate(call, device.wait, lambda result: result.asnumpy(), stream)


def _other_softmax(x: np.ndarray) -> dict[str, Candidate]:
    if importlib.util.find_spec("triton") is None or importlib.util.find_spec("torch") is None:
        return {}
    import torch

    from tests.cuda import hardware_triton

    a = torch.from_numpy(x.copy()).cuda()
    out = torch.empty_like(a)

    def read(result: Any) -> np.ndarray:
        return np.asarray(result.cpu().numpy())

    wait, stream = torch.cuda.synchronize, torch.cuda.current_stream().cuda_stream
    return {
        "triton": Candidate(lambda: hardware_triton.softmax(a, out), wait, read, stream),
        "torch softmax": Candidate(lambda: torch.softmax(a, 1), wait, read, stream),
    }


def _other_stencils(x: np.ndarray) -> dict[str, Candidate]:
    """The 2-D stencil as a kernel of dparray and of numba-cuda."""
    import dparray as dp

    @dp.kernel
    def stencil(item: Any, a: Any, out: Any) -> None:
        i, j = item.get_id(0), item.get_id(1)
        out[i, j] = a.dtype.type(0.25) * (
            a[i + 1, j + 2] + a[i + 1, j] + a[i + 2, j + 1] + a[i, j + 1]
        )

    device = dp.Device("cuda:0")
    a = dp.asarray(x, device=device)
    out = dp.empty((x.shape[0] - 2, x.shape[1] - 2), dtype=x.dtype, device=device)

    def call() -> Any:
        dp.call_kernel(stencil, dp.Range(*out.shape), a, out)
        return out

    stream = int(device.queue.handle)
    found = {
        "dparray kernel": Candidate(call, device.wait, lambda result: result.asnumpy(), stream)
    }
    if importlib.util.find_spec("numba_cuda") is not None:
        from numba import cuda

        @cuda.jit
        def by_numba(a: Any, out: Any) -> None:
            j, i = cuda.grid(2)
            if i < out.shape[0] and j < out.shape[1]:
                out[i, j] = np.float32(0.25) * (
                    a[i + 1, j + 2] + a[i + 1, j] + a[i + 2, j + 1] + a[i, j + 1]
                )

        b = cuda.to_device(x)
        target = cuda.device_array((x.shape[0] - 2, x.shape[1] - 2), x.dtype)
        grid = (-(-target.shape[1] // 32), -(-target.shape[0] // 8))
        found["numba-cuda"] = Candidate(
            lambda: (by_numba[grid, (32, 8)](b, target), target)[1],
            cuda.synchronize,
            lambda result: result.copy_to_host(),
        )
    return found


# --- the parts ------------------------------------------------------------------------------------


def times(results: Any, options: Any) -> None:
    """Time all cases with all libraries."""
    sizes = (3000, 48, 12) if options.tiny else (1 << 25, 6144, 320)
    found = libraries(results, options)
    for case in cases(*sizes):
        results.attempt(case.name, _timed, case, found, options)


def _timed(case: Case, found: list[Library], options: Any) -> dict[str, Any]:
    wanted = case.function(np)(*(each[:: case.step] for each in case.arrays))
    candidates, errors = {}, {}
    for each in found:
        if each.name == "dparray jit" and case.function(np).__name__ == "<lambda>":
            continue  # it compiles functions of several statements
        function = each.wrap(case.function(each.module))
        arrays = [each.put(values) for values in case.arrays]
        candidates[each.name] = Candidate(
            lambda function=function, arrays=arrays: function(*arrays),
            each.wait,
            each.read,
            each.stream,
        )
    if case.others is not None:
        try:
            candidates |= case.others(*case.arrays)
        except Exception as error:
            errors["others"] = f"{type(error).__name__}: {error}"[:300]
    for name, each in list(candidates.items()):
        try:
            result = each.call()
            each.wait()
            _compare(
                each.read(result)[:: case.step] if case.step > 1 else each.read(result), wanted
            )
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {error}"[:300]
            del candidates[name]
    rows: dict[str, Any] = measured(candidates, 2 if options.tiny else _ROUNDS)
    on_device = {}
    for name, each in candidates.items():
        if name != "jax" and not case.waits and (found_time := device_time(each)):
            on_device[name] = found_time
    if "dparray" in on_device:
        rows["dparray GB/s"] = case.moved / on_device["dparray"] / 1e3
    return {**rows, "on the device": on_device, **({"errors": errors} if errors else {})}


def _compare(found: np.ndarray, wanted: Any) -> None:
    wanted = np.asarray(wanted)
    tolerance = _TOLERANCES[min(wanted.dtype.itemsize, found.dtype.itemsize)]
    np.testing.assert_allclose(
        found.astype("f8"), wanted.astype("f8"), rtol=tolerance, atol=tolerance * 10
    )


def launches(results: Any, options: Any) -> None:
    """Time the submission of work: launches of kernels, small expressions, copies of a number."""
    import dparray as dp

    device = dp.Device("cuda:0")
    x = dp.zeros(256, dtype="float32", device=device)

    @dp.kernel
    def nothing(item: Any, x: Any) -> None:
        x[item.get_id(0)] += 1

    calls: dict[str, Callable[[], Any]] = {
        "call_kernel": lambda: dp.call_kernel(nothing, dp.Range(256), x),
        "x + 1": lambda: dp.eval(x + 1),
        "x * x + x": lambda: dp.eval(x * x + x),
        "sum": lambda: dp.eval(x.sum()),
        "float(x[3])": lambda: float(x[3]),
        "asnumpy": lambda: x.asnumpy(),
        "empty": lambda: dp.empty(256, dtype="float32", device=device),
    }
    for name, call in calls.items():
        candidate = Candidate(call, device.wait, np.asarray)
        results.attempt(name, measured, {"us": candidate}, 2 if options.tiny else _ROUNDS)
