"""The first run of a program: its output, and the files that it leaves behind."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import types
from pathlib import Path

import pytest

from dparray import _log, cli

pytestmark = pytest.mark.process

PROGRAM = """
import dparray as dp

@dp.kernel
def one(item, a):
    a[item.get_id(0)] = 1

@dp.kernel
def two(item, a):
    a[item.get_id(0)] = 2

a = dp.zeros(3)
dp.call_kernel(one, dp.Range(3), a)
dp.call_kernel(two, dp.Range(3), a)
print(a)
"""


def at_a_terminal(program: Path, **environment: str) -> str:
    """Return a program's output to an error stream that is a terminal."""
    end, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, str(program)],
            env={**os.environ, "DPARRAY_NOTICES": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=terminal,
            timeout=300,
        )
        assert done.stdout == b"[2. 2. 2.]\n"
        os.write(terminal, b"end\n")
        text = b""
        while not text.endswith(b"end\r\n"):
            text += os.read(end, 1 << 16)
    finally:
        os.close(end)
        os.close(terminal)
    return text.decode().removesuffix("end\r\n")


@pytest.mark.slow
def test_a_terminal_shows_once_that_kernels_are_compiled_and_kept(tmp_path: Path) -> None:
    program, cache = tmp_path / "program.py", tmp_path / "cache"
    program.write_text(PROGRAM)
    told = at_a_terminal(program, DPARRAY_CACHE_DIR=str(cache))
    assert told.count("kernels are being compiled, and kept in") == 1
    assert str(cache) in told
    assert at_a_terminal(program, DPARRAY_CACHE_DIR=str(cache)) == ""  # the kernels were kept


def test_a_pipe_and_a_program_that_disables_notices_get_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _log.notice("a line for people")
    assert capsys.readouterr().err == ""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert at_a_terminal(program, DPARRAY_CACHE_DIR=str(tmp_path), DPARRAY_NOTICES="0") == ""


def test_a_notebook_shows_the_notice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[str] = []
    stream = type("OutStream", (), {"__module__": "ipykernel.iostream"})()
    stream.isatty, stream.write, stream.flush = lambda: False, written.append, lambda: None
    monkeypatch.setattr(_log, "sys", types.SimpleNamespace(stderr=stream))
    _log.notice("a line for a notebook")
    _log.notice("a line for a notebook")
    assert capsys.readouterr().out == "dparray: a line for a notebook\n"
    assert not written  # Jupyter shows the error stream in red


@pytest.mark.slow
def test_warmup_compiles_once_and_keeps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dparray.cli import warmup

    few = warmup.programs
    monkeypatch.setattr(
        warmup, "programs", lambda *a: [p for p in few(*a) if p[0] in ("norms and errors", "scans")]
    )
    found = []
    for _ in range(2):
        assert cli.main(["warmup", "--json", "--dtype", "float32"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["compiled"] > 0
    assert found[1]["compiled"] == 0
    assert Path(found[1]["directory"]).is_dir()


EVERYDAY = """
import numpy as np
import dparray as dp

rng = np.random.default_rng(0)
for n in (50, 5000, 100_000):
    x, i = dp.asarray(rng.normal(size=n)), dp.asarray(rng.integers(0, 50, n))
    m = x.reshape(50, -1)
    for f in (dp.sum, dp.max, dp.std, dp.median, dp.cumsum, dp.sort, dp.argsort, dp.argmax):
        f(x).asnumpy(), f(m, axis=0).asnumpy()
    for y in (x[x > 0], x[i], x + 1, x[::2] * x[1::2], dp.where(x > 0, x, -x), m @ m.T, i // 3,
              dp.concatenate([x, x]), dp.unique(i), dp.bincount(i), dp.fft.fft(x)):
        y.asnumpy()
    x[i] = 1
    x[x > 0] = 2
    x.asnumpy()
"""


@pytest.mark.slow
def test_an_everyday_program_needs_none_of_the_kernels_that_drivers_build_anew(
    tmp_path: Path,
) -> None:
    """dpnp's take 0.1 to 0.3 s in each process; SYCL's cache shows whether they are built."""
    done = subprocess.run(
        [sys.executable, "-c", EVERYDAY],
        env={**os.environ, "SYCL_CACHE_PERSISTENT": "1", "SYCL_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.bin"))


def test_a_program_runs_in_a_folder_that_was_removed(tmp_path: Path) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    program = tmp_path / "program.py"
    program.write_text(
        "import os\n"
        "os.rmdir(os.getcwd())\n"
        "import dparray as dp\n"
        "x = dp.arange(100_000.0)\n"
        "print(dp.sort(x * 2 + x)[-1])\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "299997.0\n"), done.stderr
