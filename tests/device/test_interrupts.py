"""Ctrl-C ends long work, and what comes after it works as if nothing had been begun."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dparray import _interrupt


def test_an_interrupt_comes_at_the_end_of_work_that_must_not_be_torn() -> None:
    done = []

    def work() -> None:
        with _interrupt.deferred():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("after it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["after it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_an_error_passes_through_and_an_interrupt_goes_before_it() -> None:
    def fail(is_interrupted: bool) -> None:
        with _interrupt.deferred():
            if is_interrupted:
                os.kill(os.getpid(), signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(False)
    with pytest.raises(KeyboardInterrupt):
        fail(True)


def interrupted(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a process group of its own, which it interrupts by itself."""
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
import os, random, signal, threading, time
from contextlib import contextmanager
import numpy as np
import dparray as dp

@contextmanager
def interrupt_after(seconds):
    # As a terminal does it: the whole process group gets the signal.
    timer = threading.Timer(seconds, lambda: os.killpg(0, signal.SIGINT))
    timer.start()
    try:
        yield
        timer.join()
        time.sleep(1)  # it may come a moment later
    except KeyboardInterrupt:
        print("interrupted")
    timer.join()
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
    assert {path.name for path in tmp_path.iterdir()} == {"cache"}  # nothing is left behind
