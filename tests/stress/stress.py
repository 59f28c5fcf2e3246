"""Run random programs for a given time: ``make stress ARGS="--minutes 60 --seed 1"``.

The runtime keeps each kernel until the process ends. So a process that has reached ``MAX_MEMORY``
starts a new one, which continues with the next seed and the kernels on disk. At the end a process
checks for other leaks: it repeats programs that no longer build kernels.

A program is a list of steps. A step refers to arrays by numbers modulo the number of arrays, so any
part of a program is a program, too. dparray and NumPy both execute each step, and the arrays are
compared at the end. A program that fails is reduced to the smallest part that fails.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import faulthandler
import gc
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Its random programs serve as steps here.
sys.path.append(str(Path(__file__).parents[1] / "tilelang"))
sys.path.append(str(Path(__file__).parents[1] / "evaluate"))

# The user's own cache is not damaged; a process that continues uses the previous one's folder.
if __name__ == "__main__" and "DPARRAY_SOAK_SO_FAR" not in os.environ:
    os.environ["DPARRAY_CACHE_DIR"] = tempfile.mkdtemp(prefix="dparray-stress-")

import dparray as dp
from dparray import _driver
from dparray._evaluate import background, evaluate

# isort: split
import test_lazy
import test_random_tile_programs

Step = tuple[str, tuple[int, ...]]
SIZES = (3, 1000, 9000, 70_000)
UNARY = ("sin", "cos", "abs", "negative", "square", "floor", "tanh")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "arctan2")


@dp.kernel
def scale(item: Any, x: Any, factor: Any) -> None:
    """Multiply an array by a number: a user's kernel."""
    i = item.get_id(0)
    x[i] = x[i] * factor + 1


def places() -> list[dp.Device]:
    """Return the default queue of the default device, a second one, and those of sub-devices."""
    device = dp.default_device()
    found = [device, device.new_queue()]
    if device.traits.units > 1:
        found += device.create_sub_devices(partition=1)[:2]
    return found


def driver() -> Any:
    """Return the driver of the default device."""
    return _driver.driver_of(dp.default_device().queue)


class Difference(Exception):
    """A result differs from NumPy's."""


class Run:
    """One program, executed by dparray and by NumPy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays: list[tuple[Any, np.ndarray]] = []
        self.places = places()

    def pick(self, number: int) -> tuple[Any, np.ndarray]:
        if not self.arrays:
            self.step("new", (number, 1, 0))
        return self.arrays[number % len(self.arrays)]

    def put(self, x: Any, values: np.ndarray) -> None:
        self.arrays.append((x, np.array(values)))
        if len(self.arrays) > 12:
            del self.arrays[0]

    def step(self, name: str, numbers: tuple[int, ...]) -> None:
        getattr(self, "do_" + name)(*numbers)

    def do_new(self, seed: int, size: int, place: int) -> None:
        values = np.random.default_rng(seed).normal(size=SIZES[size % len(SIZES)])
        usm_type = ("device", "shared", "host")[seed % 3]
        device = self.places[place % len(self.places)]
        self.put(dp.asarray(values, usm_type=usm_type, device=device), values)

    def do_unary(self, which: int, a: int, _: int) -> None:
        x, values = self.pick(a)
        name = UNARY[which % len(UNARY)]
        self.put(getattr(dp, name)(x), getattr(np, name)(values))

    def do_binary(self, which: int, a: int, b: int) -> None:
        (x, x_values), (y, y_values) = self.pick(a), self.pick(b)
        count = min(len(x_values), len(y_values))
        name = BINARY[which % len(BINARY)]
        y = y[:count].to_device(x.device)
        values = getattr(np, name)(x_values[:count], y_values[:count])
        self.put(getattr(dp, name)(x[:count], y), np.clip(values, -1e6, 1e6))
        x, values = self.arrays[-1]
        self.arrays[-1] = (dp.clip(x, -1e6, 1e6), values)

    def do_reduce(self, a: int, which: int, _: int) -> None:
        x, values = self.pick(a)
        name = ("sum", "max", "min", "mean")[which % 4]
        found, right = float(getattr(dp, name)(x)), float(getattr(np, name)(values))
        size = max(1.0, float(np.nansum(np.abs(values))))
        if not np.isclose(found, right, rtol=1e-6, atol=1e-6 * size, equal_nan=True):
            raise Difference(f"{name}: {found} is not {right}")

    def do_sort(self, a: int, which: int, _: int) -> None:
        x, values = self.pick(a)
        if which % 2:
            self.put(dp.sort(x), np.sort(values))
        else:
            self.put(dp.flip(x) + 0, np.flip(values) + 0)

    def do_write(self, a: int, b: int, step: int) -> None:
        x, values = self.pick(a)
        piece = slice(b % len(values), None, 1 + step % 3)
        x[piece] = b % 100
        values[piece] = b % 100

    def do_mask(self, a: int, _: int, __: int) -> None:
        x, values = self.pick(a)
        self.put(dp.where(x > 0, x, -1.0), np.where(values > 0, values, -1.0))

    def do_map(self, a: int, mode: int, b: int) -> None:
        x, values = self.pick(a)
        with x.map(("r", "rw", "w")[mode % 3]) as h:
            if mode % 3 == 0:
                np.testing.assert_allclose(h, values, rtol=1e-6, atol=1e-6)
            elif mode % 3 == 1:
                h += 1
                values += 1
            else:
                h[...] = b % 100
                values[...] = b % 100

    def do_move(self, a: int, place: int, _: int) -> None:
        x, values = self.pick(a)
        self.put(x.to_device(self.places[place % len(self.places)]) + 0, values + 0)

    def do_kernel(self, a: int, factor: int, _: int) -> None:
        x, values = self.pick(a)
        event = dp.call_kernel(scale, dp.Range(len(values)), x, (factor % 7) / 4)
        values[...] = values * ((factor % 7) / 4) + 1
        if factor % 2:
            event.then(lambda: None)

    def do_file(self, a: int, _: int, __: int) -> None:
        x, values = self.pick(a)
        path = self.folder / f"{threading.get_ident()}.npy"
        dp.save(path, x)
        self.put(dp.load(path).to_device(x.device), values)

    def do_profile(self, a: int, which: int, _: int) -> None:
        with dp.profile() as p:
            self.do_unary(which, a, 0)
            dp.eval(self.arrays[-1][0])
        str(p.plot().svg)

    def do_await(self, a: int, b: int, _: int) -> None:
        (x, x_values), (y, y_values) = self.pick(a), self.pick(b)

        async def both() -> list[Any]:
            return await asyncio.gather(wait_for(dp.tanh(x)), wait_for(dp.square(y)))

        async def wait_for(z: Any) -> Any:
            return await z

        found = asyncio.run(both())
        self.put(found[0], np.tanh(x_values))
        self.put(found[1], np.square(y_values))

    def do_tile(self, seed: int, more: int, _: int) -> None:
        said = test_random_tile_programs.difference(1000 * seed + more)
        if said is not None:
            raise Difference(f"Tile program {1000 * seed + more}: {said}")

    def do_lazy(self, seed: int, more: int, tier: int) -> None:
        random = np.random.default_rng((seed, more))
        kinds = [
            *(("binary", name) for name in test_lazy.BINARY),
            *(("unary", name) for name in test_lazy.UNARY),
            *(("view", name) for name in test_lazy.VIEWS),
            *(("write", name) for name in test_lazy.WRITES),
            *(("made", name) for name in test_lazy.MADE),
            *(("reduced", name) for name in test_lazy.REDUCED),
            ("read", ""),
        ]
        steps = [
            (kinds[random.integers(len(kinds))], *map(int, random.integers(0, 50, 2)))
            for _ in range(int(random.integers(1, 13)))
        ]
        test_lazy.check(steps, seed, ("host", "host, waiting", "library", "fused")[tier % 4])

    def do_no_memory_in_a_plan(self, a: int, seed: int, _: int) -> None:
        x, values = self.pick(a)
        y = dp.tanh(x) + 1
        z = y / dp.sum(y, keepdims=True)
        right = np.tanh(values) + 1
        previous = dp.memory.set_limit(1 << (8 + seed % 12))
        try:
            dp.eval(z)
        except dp.exceptions.MemoryError:
            pass
        finally:
            dp.memory.set_limit(previous)
        self.put(z, right / np.sum(right, keepdims=True))

    def do_no_memory(self, a: int, _: int, __: int) -> None:
        x, _values = self.pick(a)
        previous = dp.memory.set_limit(1 << 10)
        before = dp.memory.stats(x.device)
        try:
            dp.empty(1 << 22, device=x.device)
            # Free memory next to arrays in one allocation cannot be given back; new arrays reuse
            # it.
            now = dp.memory.stats(x.device)
            if now.misses > before.misses:
                raise Difference(f"memory beyond the limit was allocated: {before}, now {now}")
        except dp.exceptions.MemoryError:
            pass
        finally:
            dp.memory.set_limit(previous)

    def do_bad_cache(self, number: int, _: int, __: int) -> None:
        files = sorted(Path(os.environ["DPARRAY_CACHE_DIR"]).rglob("*.kernel"))
        if files:
            file = files[number % len(files)]
            data = file.read_bytes()
            file.write_bytes(data[: len(data) // 2])
        evaluate.forget()

    def do_bad_kernel(self, a: int, _: int, __: int) -> None:
        @dp.kernel
        def broken(item: Any, x: Any) -> None:
            x[item.get_id(0)] = x.nothing_of_this_name

        x, _values = self.pick(a)
        try:
            dp.call_kernel(broken, dp.Range(1), x)
            raise Difference("a kernel that does not compile was launched")
        except dp.exceptions.KernelError:
            pass

    def do_refused_module(self, a: int, number: int, _: int) -> None:
        """Let the driver refuse the module that the compiler made of a kernel."""

        @dp.kernel
        def refused(item: Any, x: Any) -> None:
            x[item.get_id(0)] = number + 0.25

        x, _values = self.pick(a)
        with_load = driver()
        load = with_load.load
        with_load.load = lambda queue, module, *others: load(queue, b"\0" * 64, *others)
        try:
            dp.call_kernel(refused, dp.Range(1), x)
            raise Difference("a module that the driver rejects was launched")
        except dp.KernelCompileError as error:
            if "refused" not in str(error):
                raise Difference(f"the kernel is not named: {error}") from error
        finally:
            with_load.load = load

    def check(self) -> None:
        for x, values in self.arrays:
            np.testing.assert_allclose(x.asnumpy(), values, rtol=1e-6, atol=1e-6)


RARE = {
    "no_memory": 0.2,
    "no_memory_in_a_plan": 0.2,
    "bad_cache": 0.05,
    "bad_kernel": 0.05,
    "refused_module": 0.02,
    "profile": 0.2,
    "file": 0.5,
    "await": 0.3,
    "tile": 0.3,
    "lazy": 0.3,
}
STEPS = tuple(name[3:] for name in vars(Run) if name.startswith("do_"))
WEIGHTS = np.array([RARE.get(name, 1.0) for name in STEPS]) / sum(
    RARE.get(name, 1.0) for name in STEPS
)
#: Steps that damage the cache of the running process.
DAMAGE = ("bad_cache",)
#: Steps that change the whole process, so that programs in concurrent threads do not have them.
ALONE = ("no_memory", "no_memory_in_a_plan", "bad_cache", "refused_module", "lazy")


def make_program(seed: int, alone: bool = True) -> list[Step]:
    """Return a random program."""
    random = np.random.default_rng(seed)
    names = random.choice(STEPS, size=int(random.integers(5, 40)), p=WEIGHTS)
    steps = [(str(name), tuple(map(int, random.integers(0, 1000, 3)))) for name in names]
    return [step for step in steps if alone or step[0] not in ALONE]


def failure(program: list[Step], folder: Path) -> str | None:
    """Return the error of a program, or ``None``."""
    try:
        run = Run(folder)
        for step in program:
            run.step(*step)
        run.check()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def shrink(program: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Return the smallest part of a program that still fails, leaving out large parts first."""
    size = len(program) // 2
    while size:
        start = 0
        while start < len(program):
            shorter = program[:start] + program[start + size :]
            if shorter and fails(shorter):
                program = shorter
            else:
                start += size
        size //= 2
    return program


#: Memory that the compiler and the driver keep until the process ends, for each kernel compiled or
#: loaded: the runtime does not free a program. A process has a kernel for each expression and
#: kernel of different structure, and these programs keep making new ones.
KERNEL_BYTES = 1_200_000
#: Additional memory for the fragments that hold free memory.
SLACK = 200e6
#: A process that uses more memory starts a new one.
MAX_MEMORY = 3.5e9
#: Number of recent programs to repeat, how often to repeat them, and the memory growth allowed from
#: the second repetition to the last. Steps that damage or refuse kernels are left out.
AGAIN, TIMES, AGAIN_SLACK = 20, 6, 8e6
BUILDING = ("bad_cache", "bad_kernel", "refused_module")


class Built:
    """Count the kernels that the driver has built or loaded."""

    def __init__(self) -> None:
        self.count = 0
        self._driver = driver()
        self._load = self._driver.load

    def __enter__(self) -> Built:
        self._driver.load = self._counted
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.load = self._load

    def _counted(self, *given: Any) -> Any:
        self.count += 1
        return self._load(*given)


def resident() -> int:
    """Return the resident memory of the process in bytes, after free memory has been given back."""
    gc.collect()
    dp.memory.release()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def left_in_use() -> int:
    """Return the bytes in use when no work is running; unread copies still hold their memory.

    Numba's errors of refused kernels hold memory, too, because their tracebacks refer to the
    kernels. So does the measurement before the first kernel that is compiled in the background.
    """
    background.wait()
    end = time.monotonic() + 5
    dp.synchronize()
    gc.collect()
    while (in_use := dp.memory.stats().in_use) and time.monotonic() < end:
        time.sleep(0.05)
    return in_use


def told(seed: int, part: list[Step], said: str, folder: Path) -> str:
    """Return the report of a failed program: its seed, the error, and the smallest program."""
    if failure(part, folder) is None:
        title, small = "it fails only beside others; the program:", part
    else:
        title = "the smallest program that shows it:"
        small = shrink(part, lambda each: failure(each, folder) is not None)
    return "\n".join([f"seed {seed}: {said}", title, *(f"  {step}" for step in small)])


@dataclass
class SoFar:
    """The totals of all processes."""

    count: int = 0
    steps: int = 0
    kernels: int = 0
    processes: int = 1
    seconds: float = 0.0


#: Threads count as hanging if they use less than this CPU time in this waiting time; others only
#: have a small share of a loaded machine. Beyond the third limit, of CPU time, they loop endlessly.
HUNG, PATIENCE, MAX_WORK = 0.25, 120, 600


def have_ended(workers: Sequence[threading.Thread]) -> bool:
    """Wait for threads; return False if they hang."""
    began = time.process_time()
    while time.process_time() - began < MAX_WORK:
        before = time.process_time()
        # short waits, because a process that is stopped for a while does not hang
        for _ in range(PATIENCE):
            for worker in workers:
                worker.join(1 / len(workers))
            if not any(worker.is_alive() for worker in workers):
                return True
        if time.process_time() - before < HUNG:
            return False
    return False


def stress(minutes: float, seed: int, threads: int = 3, so_far: SoFar | None = None) -> int:
    """Run programs, one after the other and concurrently; return the exit status."""
    done = so_far or SoFar()
    began = look = time.monotonic() - done.seconds
    end = began + 60 * minutes
    seen: list[tuple[int, int]] = []  # in bytes, and in kernels
    first = seed
    is_full = False
    with tempfile.TemporaryDirectory() as name, Built() as built:
        folder = Path(name)
        while time.monotonic() < end and not is_full:
            program = make_program(seed)
            text = failure(program, folder)
            together = [make_program(seed * 1000 + n, False) for n in range(threads)]
            texts: list[str | None] = [None] * threads
            workers = [
                threading.Thread(
                    target=lambda n, part, texts: texts.__setitem__(n, failure(part, folder)),
                    args=(n, part, texts),
                    daemon=True,
                )
                for n, part in enumerate(together)
            ]
            for worker in workers:
                worker.start()
            if not have_ended(workers):
                print(f"seed {seed}: threads hang")
                faulthandler.dump_traceback()
                return 1
            for part, said in zip([program, *together], [text, *texts], strict=True):
                if said is not None:
                    print(told(seed, part, said, folder), flush=True)
                    return 1
            done.count += 1 + threads
            done.steps += len(program) + sum(map(len, together))
            seed += 1
            now = time.monotonic()
            if now - look > 60 * minutes / 60:
                look = now
                seen.append((resident(), built.count))
                in_use = left_in_use()
                print(
                    f"{(now - began) / 60:.1f} min, seed {seed}: {done.count} programs, "
                    f"{done.steps} steps, {done.kernels + built.count} kernels, "
                    f"{seen[-1][0] / 1e6:.0f} MB resident, {in_use / 1e6:.1f} MB of arrays, "
                    f"{threading.active_count()} threads",
                    flush=True,
                )
                if in_use:
                    print("memory of deleted arrays is still in use")
                    return 1
                is_full = seen[-1][0] > MAX_MEMORY
        if grown(seen) or kept(range(max(first, seed - AGAIN), seed), folder, built):
            return 1
    done.kernels += built.count
    done.seconds = time.monotonic() - began
    if time.monotonic() < end:
        hand_over(seed, done)
    print(
        f"no error and no difference in {done.count} programs of {done.steps} steps, which built "
        f"{done.kernels} kernels in {done.processes} process{'es' * (done.processes > 1)}"
    )
    return 0


#: Where a process leaves the totals for its successor.
SO_FAR = "DPARRAY_SOAK_SO_FAR"


def hand_over(seed: int, done: SoFar) -> None:
    """Continue in a new process, which replaces this one."""
    done.processes += 1
    print(f"a new process continues at seed {seed}", flush=True)
    os.environ[SO_FAR] = json.dumps({"seed": seed, "done": asdict(done)})
    os.execv(sys.executable, [sys.executable, *sys.argv])


def kept(seeds: Sequence[int], folder: Path, built: Built) -> int:
    """Repeat programs that build no new kernel, and check whether memory or threads leak."""
    programs = [[step for step in make_program(seed) if step[0] not in BUILDING] for seed in seeds]
    held: list[int] = []
    for time_ in range(TIMES):
        if time_ == 2:
            before, running = built.count, _settled_threads()
        for seed, program in zip(seeds, programs, strict=True):
            said = failure(program, folder)
            if said is not None:
                print(told(seed, program, said, folder), flush=True)
                return 1
        held.append(resident())
    new, steps = built.count - before, sum(map(len, programs)) * (TIMES - 2)
    growth, more = held[-1] - held[1], _settled_threads() - running
    print(
        f"{growth / 1e6:+.1f} MB resident and {more:+} threads in {steps} steps that were run "
        f"before, with {new} new kernels",
        flush=True,
    )
    if growth > AGAIN_SLACK + new * KERNEL_BYTES or more > 2:
        print("memory or threads leak that no kernel explains")
        return 1
    return 0


def _settled_threads() -> int:
    """Return the number of threads once those that wait for events of a queue have ended."""
    time.sleep(2)
    return threading.active_count()


def grown(seen: list[tuple[int, int]]) -> int:
    """Return whether memory grew by more than the kernels explain, in the second half.

    During the first half, Numba and LLVM are loaded, and the driver builds dpnp's kernels for each
    dtype.
    """
    later = seen[len(seen) // 2 :]
    if not later:
        return 0
    nbytes, kernels = later[-1][0] - later[0][0], later[-1][1] - later[0][1]
    print(f"{nbytes / 1e6:+.0f} MB resident in the second half, and {kernels} new kernels")
    if nbytes > kernels * KERNEL_BYTES + SLACK:
        print(f"more than {KERNEL_BYTES / 1e6} MB a kernel and {SLACK / 1e6:.0f} MB: memory leaks")
        return 1
    return 0


#: Generated calls per process: compiled kernels stay in memory, some MB a second.
CALLS_OF_A_PROCESS = 3000


def generated_calls(count: int, seed: int) -> int:
    """Call every NumPy function with generated arguments; return 1 if a result differs.

    The processes share the driver's builds of dpnp's kernels, which take nine tenths of their time.
    """
    failed = 0
    kept = os.environ["DPARRAY_CACHE_DIR"]
    environment = os.environ | {"SYCL_CACHE_PERSISTENT": "1", "SYCL_CACHE_DIR": f"{kept}/sycl"}
    environment["SYCL_CACHE_MIN_DEVICE_IMAGE_SIZE"] = "0"
    for part, done in enumerate(range(0, count, CALLS_OF_A_PROCESS)):
        calls = min(CALLS_OF_A_PROCESS, count - done)
        code = "from tests.functions.test_every_function import many; "
        code += f"raise SystemExit(min(many({calls}, {seed + part}), 1))"
        done_by = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
        failed |= done_by.returncode != 0
    return failed


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--calls", type=int, help="instead, call every NumPy function this many times"
    )
    parser.add_argument("--device", help="the default device, as in --device host:cpu")
    arguments = parser.parse_args()
    if arguments.device:
        dp.set_default_device(arguments.device)
    if arguments.calls:
        return generated_calls(arguments.calls, arguments.seed % 100_000)
    carried = os.environ.pop(SO_FAR, None)
    if carried is not None:
        found = json.loads(carried)
        return stress(arguments.minutes, found["seed"], so_far=SoFar(**found["done"]))
    print(f"seed {arguments.seed}, {arguments.minutes} minutes", flush=True)
    return stress(arguments.minutes, arguments.seed)


if __name__ == "__main__":
    status = main()  # a process that starts its successor does not return
    shutil.rmtree(os.environ["DPARRAY_CACHE_DIR"], ignore_errors=True)
    sys.exit(status)
