"""Forked processes raise instead of waiting forever, and end properly."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="fork is the default only on Linux"),
    pytest.mark.process,
]

HEAD = """
import concurrent.futures, gc, multiprocessing, os, signal, subprocess, sys
import dparray as dp, numpy as np
signal.alarm(280)

def use():
    with dp.config.override(host_tier=False):  # by kernels, whatever the sizes
        x = dp.ones(20_000) + 1
        assert float(x.sum()) == 40_000
    return x

def child(function):
    '''What a forked process prints, and its exit code.'''
    sys.stdout.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        signal.alarm(90)  # ends it if it hangs
        function()
        sys.exit(0)
    os.close(write)
    with open(read) as pipe:
        text = pipe.read()
    return text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def refused(function):
    try:
        function()
    except dp.ForkError as error:
        assert isinstance(error, RuntimeError)
        assert "spawn" in str(error) and "forkserver" in str(error)
    else:
        print("did not raise:", function)

def task(number):
    return float(dp.sin(dp.full(100_000, float(number))).sum())

@dp.kernel
def double(item, a):
    i = item.get_id(0)
    a[i] = 2 * a[i]
"""

PROGRAMS = {
    "the end": """
x = use()
y = x * 2
assert child(lambda: None) == ("", 0)
assert child(lambda: sys.exit(3)) == ("", 3)
assert child(lambda: os._exit(4)) == ("", 4)
assert child(lambda: print("text that is written at the end", end="")) == (
    "text that is written at the end", 0)
def drop():
    global x, y
    x = y = None
    gc.collect()
assert child(drop) == ("", 0)
assert float(y.sum()) == 80_000  # the parent goes on
""",
    "use in the child": """
x = use()
pending = x * 2
written = dp.zeros(20_000)
dp.synchronize(written)
def all_refused():
    refused(lambda: dp.ones(20_000).asnumpy())
    refused(lambda: dp.empty(20_000))
    refused(pending.asnumpy)
    refused(lambda: float(x.max()))
    refused(lambda: dp.sort(x))
    refused(lambda: dp.eval(x + 1))
    refused(lambda: dp.eval(written.__iadd__(1)))
    refused(lambda: written.__setitem__(slice(None, None, 2), x[::2] * 3))
    refused(lambda: x.to_device(dp.Device("cpu").create_sub_devices(partition=1)[0]))
    refused(lambda: double[dp.Range(20_000)](written))
    refused(lambda: dp.random.default_rng(1).normal(size=20_000).asnumpy())
assert child(all_refused) == ("", 0), child(all_refused)
assert float(pending.sum()) == 80_000
""",
    "pools": """
use()
context = multiprocessing.get_context("fork")
with context.Pool(2) as pool:
    refused(lambda: pool.map(task, range(2)))
    assert pool.map(abs, [-1]) == [1]
with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
    refused(lambda: list(pool.map(task, range(2))))
assert task(0) == 0
""",
    "spawned": """
if __name__ == "__main__":
    use()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(task, [0.0]) == [0.0]
""",
    "executed": """
use()
text = "import dparray as dp; print(float((dp.ones(20_000) + 1).sum()))"
found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=200)
assert found.stdout == "40000.0\\n", found
""",
    "before any use": """
assert child(lambda: print(float(use().sum()), end="")) == ("40000.0", 0)
small = dp.ones(3) + 1  # the host computes that
assert child(lambda: print(float(use().sum()), end="")) == ("40000.0", 0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(task, [0.0, 0.0]) == [0.0, 0.0]
assert float(use().sum()) == 40_000
""",
    "with other threads at work": """
import threading
stop = threading.Event()
def work():
    values = np.arange(50_000.0)
    x = dp.asarray(values)
    while not stop.is_set():
        y = x.copy()
        y[::2] = 0
        dp.sort(y + x)[:10].asnumpy()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
x = use()
for _ in range(10):
    assert child(lambda: refused(lambda: float((x * 3).sum()))) == ("", 0)
stop.set()
for thread in threads:
    thread.join()
""",
    "while the first kernel is built": """
import threading
from dparray._driver.sycl import modules
os.environ["DPARRAY_CACHE_DIR"] = os.path.dirname(__file__)
begun, goes_on = threading.Event(), threading.Event()
build = modules._Driver.built_here
def held(*arguments):
    begun.set()
    goes_on.wait(200)
    return build(*arguments)
modules._Driver.built_here = held
x = dp.ones(3)  # the host makes that
thread = threading.Thread(target=double[dp.Range(3)], args=(x,))
thread.start()
assert begun.wait(200)
assert child(lambda: refused(use)) == ("", 0)
assert child(lambda: refused(lambda: double[dp.Range(3)](x))) == ("", 0)
goes_on.set()
thread.join()
""",
    "joblib": """
import joblib
if __name__ == "__main__":
    use()
    assert joblib.Parallel(1)(joblib.delayed(abs)(-n) for n in range(3)) == [0, 1, 2]
    assert joblib.Parallel(2)(joblib.delayed(abs)(-n) for n in range(3)) == [0, 1, 2]
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_forks(name: str, tmp_path: Path) -> None:
    """Programs that fork end by themselves, and their children raise or work."""
    if name == "joblib" and importlib.util.find_spec("joblib") is None:
        pytest.skip("joblib is not installed")
    file = tmp_path / "program.py"
    file.write_text(HEAD + PROGRAMS[name])
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
