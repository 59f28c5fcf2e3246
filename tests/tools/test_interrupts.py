"""Ctrl-C ends long work, and later work runs as if it had never been started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _hooks
from dparray._functions import io
from tests.support import until

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("heeds_interrupts")]


def interrupted(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a separate process group, which it interrupts by itself."""
    environment = os.environ | {
        "DPARRAY_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
    }
    run = subprocess.run(
        [sys.executable, "-c", PRELUDE + script],
        env=environment,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    return run


PRELUDE = """
import os, random, signal, subprocess, time
from contextlib import contextmanager
import numpy as np
import dparray as dp

signal.signal(signal.SIGINT, signal.default_int_handler)

@contextmanager
def interrupt_after(seconds):
    # As a terminal does it: the whole process group gets the signal. No thread of this process
    # sends it: in the callbacks by which a thread ends Python only tells of an interrupt.
    command = f"read go; sleep {seconds}; kill -INT 0"
    killer = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE)
    try:
        os.write(killer.stdin.fileno(), b"go\\n")
        yield
        killer.wait()
        time.sleep(1)  # it may come a moment later
    except KeyboardInterrupt:
        print("interrupted")
    killer.communicate()
"""

COMPILING = """
random = random.Random(0)
x = dp.linspace(0, 1, 200_000, dtype="float32")
host = x.asnumpy()
names = ["sin", "cos", "exp", "sqrt", "tanh", "log1p", "expm1", "abs", "square"]
for _ in range(12):
    chain = random.sample(names, 5)

    def apply(xp, x):
        for name in chain:
            x = getattr(xp, name)(x * xp.float32(0.5) if xp is np else x * 0.5)
        return x

    y = apply(dp, x)
    with interrupt_after(random.uniform(0, 0.2)):
        dp.eval(y)
        dp.sum(y * 3).item()
    np.testing.assert_allclose(y.asnumpy(), apply(np, host), rtol=1e-5, atol=1e-6)
"""


@pytest.mark.slow
def test_compiling_can_be_interrupted_and_done_again(tmp_path: Path) -> None:
    run = interrupted(COMPILING, tmp_path)
    assert run.stdout.split() == ["interrupted"] * 12
    assert run.stderr == ""
    assert {path.name for path in tmp_path.iterdir()} == {"cache"}  # no other files are left


LOOPS = """
x, row = dp.linspace(0, 1, 300_000), dp.linspace(0, 1, 60)
m = dp.asarray(np.random.default_rng(0).random((300, 300)))
dp.eval(x)

def expressions():
    y = x * 2 + x

def slices():
    m[1:-1, 1:-1] = m[:-2, 1:-1] * 0.5 + m[2:, 1:-1] * 0.5

def a_bit_of_all():
    y = row * 2 + x[3]
    z = dp.sort(x[:100])
    return float(dp.sum(x)), z.asnumpy()

for step in (expressions, slices, a_bit_of_all):
    step()
    for _ in range(5):
        with interrupt_after(random.uniform(0.02, 0.05)):
            end = time.monotonic() + 2
            while time.monotonic() < end:
                step()
"""


def test_loops_over_arrays_can_be_interrupted(tmp_path: Path) -> None:
    """Arrays are deleted in them all the time, and an interrupt in a ``__del__`` would be lost."""
    run = interrupted(LOOPS, tmp_path)
    assert run.stdout.split() == ["interrupted"] * 15
    assert run.stderr == ""


ENDLESS = """
import signal, sys, time
import numpy as np
import dparray as dp
import dpctl

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))

@dp.kernel
def endless(item, x):
    i = item.get_id(0)
    while x[0] > -5.0:
        x[i] += 1

def interrupted(action):
    start = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        action()
    except KeyboardInterrupt:
        assert time.monotonic() - start < 20, action
    else:
        raise AssertionError(f"{action} was not interrupted")
"""

WAITS = """
@dp.kernel
def fill(item, x, out):
    out[item.get_id(0)] = x[0]

z, several = dp.ones(3), dp.ones(30)
x = dp.ones(1)
event = dp.call_kernel(endless, dp.Range(1), x)
dp.call_kernel(fill, dp.Range(1_000_000), x, dp.empty(1_000_000))  # memory to release later
waits = {
    "event.wait()": event.wait,
    "x[0].item()": lambda: x[0].item(),
    "float(x.sum())": lambda: float(x.sum()),
    "bool": lambda: bool((x > 0).all()),
    "dp.synchronize()": dp.synchronize,
    "dp.synchronize(x)": lambda: dp.synchronize(x),
    "x.device.wait()": lambda: x.device.wait(),
    "print(x)": lambda: print(x),
    "map": lambda: x.map("r").__enter__(),
    "asnumpy": lambda: x.asnumpy(),
    "an expression": lambda: (x * 2 + 1).asnumpy(),
    "tolist": lambda: x.tolist(),
    "nonzero": lambda: dp.nonzero(x),
    "mask": lambda: x[x > 0],
    "unique": lambda: dp.unique(x),
    "sort": lambda: dp.sort(x).asnumpy(),
    "matmul": lambda: (x[:, None] @ x[None]).asnumpy(),
    "fft": lambda: dp.fft.fft(x).asnumpy(),
    "from_dlpack": lambda: np.from_dlpack(x),
    "a write by the host": lambda: x.__setitem__(slice(None), np.zeros(1)),
    "save": lambda: dp.save("x.npy", x),
    "dp.memory.release()": dp.memory.release,
}
for wait in waits.values():
    interrupted(wait)
np.testing.assert_array_equal((z + 1).asnumpy(), [2, 2, 2])  # the queue of a kernel without end
sys.exit(7)
"""

OTHER_QUEUE = """
x = dp.ones(1)
event = dp.call_kernel(endless, dp.Range(1), x)
interrupted(event.wait)
y = dp.linspace(0, 1, 200_000, sycl_queue=dpctl.SyclQueue())
assert float((y * 2 + y).sum()) > 0
sys.exit(7)
"""


def run_alone(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ENDLESS + script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_every_wait_for_a_kernel_that_never_ends_can_be_interrupted(tmp_path: Path) -> None:
    """Arrays of the same queue stay usable, and the process ends with its status."""
    done = run_alone(WAITS, tmp_path)
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.slow
def test_another_queue_works_during_a_kernel_that_never_ends(tmp_path: Path) -> None:
    done = run_alone(OTHER_QUEUE, tmp_path)
    assert (done.returncode, done.stderr) == (7, "")


ANOTHER_INTERRUPT = """
from dparray._driver.sycl import exits
exits.forget_at_exit = lambda: signal.raise_signal(signal.SIGINT)
sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("items", "end", "status", "told"),
    [
        (1, "sys.exit(3)", 3, "still runs after 2 s"),
        (5000, "sys.exit(3)", 3, "still runs after 2 s"),
        (5000, "raise ValueError", 1, "still runs after 2 s"),
        (5000, "interrupted(x.asnumpy)", 0, ""),
        (5000, ANOTHER_INTERRUPT, -signal.SIGINT, "still runs after 2 s"),
    ],
)
def test_a_process_ends_though_a_kernel_does_not(
    items: int, end: str, status: int, told: str, tmp_path: Path
) -> None:
    done = run_alone(
        f"x = dp.ones({items})\ndp.call_kernel(endless, dp.Range({items}), x)\n{end}\n", tmp_path
    )
    assert done.returncode == status, done.stderr
    assert told in done.stderr


LATE = """
@dp.kernel
def late(item, x, n):
    for k in range(n):
        x[0] += 1.0
    print("the end")

x = dp.ones(1)
dp.call_kernel(late, dp.Range(1), x, 30_000_000)
"""


def test_a_process_waits_for_a_kernel_that_ends_soon(tmp_path: Path) -> None:
    done = run_alone(LATE, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the end" in done.stdout


COMPILES = """
source = "def large(item, x):\\n    i = item.get_id(0)\\n" + "".join(
    f"    x[i] = x[i] * {n}.5 + dp_sin(x[i])\\n" for n in range(300)
)
import linecache, math
linecache.cache["large.py"] = (len(source), None, source.splitlines(True), "large.py")
names = {"dp_sin": math.sin}
exec(compile(source, "large.py", "exec"), names)
large = dp.kernel(names["large"])
x = dp.ones(3)
start = time.monotonic()
interrupted(lambda: large[dp.Range(3)](x))
left = time.monotonic()
large[dp.Range(3)](x).wait()
assert left - start < time.monotonic() - left  # it waits for most of the compilation
assert x.asnumpy().shape == (3,)
"""


@pytest.mark.slow
def test_a_compilation_is_left_at_an_interrupt_and_found_later(tmp_path: Path) -> None:
    done = run_alone(COMPILES, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


# -- files ----------------------------------------------------------------------------------------


@pytest.fixture
def small_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io, "BUFFER_BYTES", 4000)


WRITERS = {
    "x.npy": dp.save,
    "x.npz": lambda path, x: dp.savez(path, small=dp.ones(3), x=x),
    "compressed.npz": dp.savez_compressed,
    "x.bin": lambda path, x: x.tofile(path),
    "x.txt": dp.savetxt,
    "x.txt.gz": dp.savetxt,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("is_there", [False, True])
def test_a_save_that_is_interrupted_leaves_the_file_as_it_was(
    name: str,
    is_there: bool,
    tmp_path: Path,
    small_buffer: None,
) -> None:
    path, write = tmp_path / name, WRITERS[name]
    old, new = dp.arange(10.0), dp.arange(3000.0)
    if is_there:
        write(path, old)
    before = path.read_bytes() if is_there else None
    reads = []

    def interrupt(event: str, **values: object) -> None:
        reads.append(event)
        if event == "copy" and len(reads) > (0 if ".txt" in name else 2):
            raise KeyboardInterrupt

    unsubscribe = _hooks.subscribe(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            write(path, new)
    finally:
        unsubscribe()
    assert (path.read_bytes() if path.exists() else None) == before
    assert [*tmp_path.iterdir()] == [path] * is_there
    write(path, new)
    assert path.read_bytes() != before
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("write", [dp.save, dp.savez], ids=["npy", "npz"])
def test_saves_and_loads_tell_of_their_progress(
    write: Any, tmp_path: Path, small_buffer: None
) -> None:
    seen: list[tuple[str, int, int]] = []
    unsubscribe = _hooks.subscribe(
        lambda event, **values: seen.append(tuple(values.values())) if event == "progress" else None
    )
    x = dp.arange(2000.0)
    path = tmp_path / f"x.{'npy' if write is dp.save else 'npz'}"
    name = "x.npy" if write is dp.save else "arr_0"
    try:
        write(path, x)
        loaded = dp.load(path)
        loaded = loaded if write is dp.save else loaded["arr_0"]
    finally:
        unsubscribe()
    np.testing.assert_array_equal(loaded.asnumpy(), x.asnumpy())
    steps = [4000, 8000, 12000, 16000]
    assert seen == [(f"{verb} {name}", n, 16000) for verb in ("save", "load") for n in steps]


def test_a_file_keeps_its_permissions_and_what_links_to_it_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "x.npy", tmp_path / "link.npy"
    dp.save(path, dp.ones(2))
    path.chmod(0o640)
    link.symlink_to(path)
    dp.save(link, dp.zeros(3))
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert dp.load(path).shape == (3,)


def test_a_pipe_is_written_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe.npy"
    os.mkfifo(path)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as reader:
        dp.save(path, dp.ones(2))
        assert reader.stdout is not None
        assert reader.stdout.read().startswith(b"\x93NUMPY")
    assert path.is_fifo()


def test_a_file_in_no_folder_is_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "none" / "x.npy"
    with pytest.raises(FileNotFoundError) as caught:
        dp.save(path, dp.ones(2))
    assert caught.value.filename == str(path)


SAVING = """
x = dp.full(40_000_000, 1.5)
dp.save("x.npy", dp.zeros(3))
for seconds in (0.02, 0.05, 0.1):
    with interrupt_after(seconds):
        dp.save("x.npy", x)
        dp.load("x.npy")
    assert dp.load("x.npy").shape in ((3,), (40_000_000,))
    with interrupt_after(seconds):
        for _ in range(20):
            x.asnumpy()
with interrupt_after(0.1):
    while True:
        dp.save("x.npy", x)
assert float(dp.sum(x)) == 60_000_000
"""


@pytest.mark.slow
def test_saving_and_copying_can_be_interrupted_and_done_again(tmp_path: Path) -> None:
    run = interrupted(SAVING, tmp_path)
    assert set(run.stdout.split()) == {"interrupted"}
    assert run.stderr == ""
    assert {path.name for path in tmp_path.iterdir()} <= {"cache", "x.npy"}


# -- notebooks ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_stop_button_of_a_notebook_ends_a_cell_and_the_next_one_works(tmp_path: Path) -> None:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))

    def answer(request: str) -> dict[str, Any]:
        while True:  # there may be replies to the client's own requests
            message = client.get_shell_msg(timeout=120)
            if message["parent_header"].get("msg_id") == request:
                return message["content"]

    def run(source: str, expression: str = "None") -> dict[str, Any]:
        return answer(client.execute(source, user_expressions={"value": expression}))

    try:
        prepared = run(
            "import dparray as dp\n%load_ext dparray\nx = dp.linspace(0, 1, 3_000_000)\n"
            "def work():\n"
            "    for n in range(10_000):\n"
            "        dp.save('x.npy', dp.sin(x * n))\n"
        )
        assert prepared["status"] == "ok", prepared
        request = client.execute("work()", stop_on_error=False)  # later requests run
        until((tmp_path / "x.npy").exists)
        manager.interrupt_kernel()
        stopped = answer(request)
        assert stopped.get("ename") == "KeyboardInterrupt", stopped
        after = run("y = dp.load('x.npy')", "y.shape, float(dp.sum(dp.sin(x * 0)))")
        assert after["status"] == "ok", after
        assert after["user_expressions"]["value"]["data"]["text/plain"] == "((3000000,), 0.0)"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert {path.name for path in tmp_path.iterdir()} == {"x.npy"}
