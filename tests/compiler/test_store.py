"""The bundled precompiled kernels of a wheel: used where they fit, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _hooks
from dparray._compiler import compile, key, store
from dparray._compiler.kernel import Kernel
from dparray._type_keys import TypeKey
from dparray.kernels.histogram import make_bincount_kernel
from dparray.kernels.special.approximation import make_polynomial
from tests.support import TARGET

ROOT = Path(__file__).resolve().parents[2]

TEXT = "def generated(item, x):\n    i = uint64(item.get_id(0))\n    x[i] = x[i] + {}\n"
TYPES = (str(TypeKey("item", ndim=1)), str(TypeKey("array", "f4", 1, "C")))


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Return the path of the bundled kernels, with an empty disk cache and nothing in memory."""
    path = tmp_path / "test.store"
    monkeypatch.setenv("DPARRAY_KERNEL_STORE", str(path))
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path))
    store._opened.cache_clear()
    compile.forget()
    yield path
    store._opened.cache_clear()


def origins_of(source: str) -> list[str]:
    """Return where a text's kernel comes from in a process that has none in memory."""
    found: list[str] = []

    def note(event: str, **values: Any) -> None:
        if event == "compile":
            found.append(values["origin"])

    compile.forget()
    unsubscribe = _hooks.subscribe(note)
    try:
        compile.obtain_generated(source, TYPES, {}, TARGET)
    finally:
        unsubscribe()
    return found


def make(file: Path, *sources: str) -> None:
    with store.recorded() as kernels:
        for source in sources:
            compile.obtain_generated(source, TYPES, {}, TARGET)
    store.write(dict(kernels), file)


def empty_cache(file: Path) -> None:
    for entry in file.parent.rglob("*.kernel"):
        entry.unlink()


def test_a_kernel_of_the_store_is_not_compiled(file: Path) -> None:
    sources = [TEXT.format(number) for number in range(1, 6)]
    make(file, *sources)
    empty_cache(file)
    assert store.count() == 5 * len(store.TARGETS)
    assert [origins_of(source) for source in sources] == [["disk"]] * 5
    assert origins_of(TEXT.format(6)) == ["compiled"]
    assert len(list(file.parent.rglob("*.kernel"))) == 1  # bundled kernels are not stored twice


def test_bundled_kernels_equal_compiled_ones(file: Path) -> None:
    source = TEXT.format(7)
    made = compile.compile_generated(source, TYPES, {}, TARGET)
    make(file, source)
    content = store.load(str(key.stored_text_key(source, TYPES, {}, TARGET)))
    assert content is not None
    kept = Kernel.from_bytes(content)
    assert (kept.module, kept.entry, kept.types) == (made.module, made.entry, made.types)


def test_two_files_of_the_same_kernels_have_the_same_bytes(file: Path) -> None:
    contents = []
    for name in ("first", "second"):
        make(file.with_name(name), TEXT.format(10), TEXT.format(11))
        contents.append(file.with_name(name).read_bytes())
        empty_cache(file)
        compile.forget()
    assert contents[0] == contents[1]
    assert len(contents[0]) > 1000


def test_bundled_kernels_of_other_files_are_ignored(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(file, TEXT.format(8))
    empty_cache(file)
    monkeypatch.setattr(store, "store_files", lambda: 64 * "0")
    store._opened.cache_clear()
    assert not store.is_there()
    assert origins_of(TEXT.format(8)) == ["compiled"]


@pytest.mark.parametrize("damage", ["content", "half", "empty", "index"])
def test_a_damaged_store_has_no_kernels(file: Path, damage: str) -> None:
    make(file, TEXT.format(9))
    empty_cache(file)
    content = bytearray(file.read_bytes())
    if damage == "content":
        content[500:] = bytes(len(content) - 500)
    elif damage == "index":
        del content[100:]
    else:
        del content[len(content) // 2 if damage == "half" else 0 :]
    file.write_bytes(content)
    store._opened.cache_clear()
    assert origins_of(TEXT.format(9)) == ["compiled"]


def test_keys_of_the_store_identify_their_kernels() -> None:
    """Keys contain the factory's values, not the Python version that compiled its code."""

    def keyed(function: Any, types: tuple[str, ...] = TYPES, **options: Any) -> str | None:
        return key.stored_kernel_key(getattr(function, "py_func", function), types, options, TARGET)

    bincount = keyed(make_bincount_kernel())
    assert bincount == keyed(make_bincount_kernel.__wrapped__())
    assert bincount is not None
    assert len({bincount, keyed(make_bincount_kernel(), TYPES[:1])}) == 2
    assert bincount != keyed(make_bincount_kernel(), debug=True)
    single, double = (
        make_polynomial(kind, (1, 2), dp.device_func) for kind in (np.float32, np.float64)
    )
    assert None not in (keyed(single), keyed(double))
    assert keyed(single) != keyed(double)


def test_kernels_of_users_are_in_no_store() -> None:
    def of_a_user(item: Any, x: Any) -> None:
        x[item.get_id(0)] = 1

    assert key.stored_kernel_key(of_a_user, TYPES, {}, TARGET) is None
    calls = dp.device_func(of_a_user)

    def generated(item: Any, x: Any) -> None:
        calls(item, x)

    assert key.stored_kernel_key(generated, TYPES, {}, TARGET) is None


@pytest.mark.slow
def test_the_collection_is_computed_without_numba_where_the_store_has_it(file: Path) -> None:
    program = (
        "import sys, numpy as np, dparray as dp\n"
        "from dparray._compiler import store\n"
        "from dparray.algorithms import compact\n"
        "def run():\n"
        "    x = dp.asarray(np.arange(50_000.0))\n"
        "    return int(dp.sum(compact(x, x > 10)))\n"
        "if len(sys.argv) > 1:\n"
        "    with store.recorded() as kernels:\n"
        "        print(run())\n"
        "        store.write(dict(kernels), __import__('pathlib').Path(sys.argv[1]))\n"
        "else:\n"
        "    print(run(), 'numba' in sys.modules)\n"
    )

    def run(*arguments: str, cache: str) -> str:
        environment = {**os.environ, "DPARRAY_CACHE_DIR": str(file.parent / cache)}
        command = [sys.executable, "-c", program, *arguments]
        finished = subprocess.run(
            command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
        )
        return finished.stdout.strip()

    wanted = str(sum(range(11, 50_000)))
    assert run(str(file), cache="first") == wanted
    assert run(cache="second") == f"{wanted} False"


def test_the_store_of_this_checkout_is_current() -> None:
    if not store.FILE.is_file():
        pytest.skip("run make kernels first; without it kernels are compiled when they are needed")
    head = store._head(key.store_files())
    assert store.FILE.read_bytes()[: len(head)] == head, "run make kernels again"


@pytest.mark.process
def test_the_cpu_driver_runs_the_kernels_of_nvidia_gpus() -> None:
    """With sub-groups of 64 work-items, sums were wrong, and `make kernels` crashed."""
    program = """
        import numpy as np
        import dparray as dp
        from dparray._evaluate import limits
        from dparray.cli import store
        store.make_warps_of_sub_groups()
        gpu = store.as_nvidia_gpu(dp.Device("cpu"))
        with limits.force("fused"):
            print([dp.asarray(np.arange(n), device=gpu).sum().item() for n in (1000, 100_000)])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "[499500, 4999950000]\n"), done.stderr[-2000:]
