"""A run fails if a worker takes too much memory; binaries are kept from one run to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import kept_binaries, worker_memory

pytest_plugins = ["pytester"]


@pytest.mark.process
@pytest.mark.parametrize(("limit", "status"), [("8", 0), ("0.001", 1)])
def test_a_worker_has_a_limit_of_memory(pytester: Any, limit: str, status: int) -> None:
    pytester.makeconftest("from tests.worker_memory import *")
    pytester.makepyfile("def test_nothing():\n    pass")
    root = str(worker_memory.__file__).rpartition("/tests/")[0]
    pytester.makeini(f"[pytest]\npythonpath = {root}")
    pytester.syspathinsert(root)
    options = ("-p", "no:cacheprovider", "-n", "1", "--worker-memory", limit)
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=1)
    assert result.ret == status
    result.stdout.fnmatch_lines(["largest memory of the workers: gw0 * GB"])
    assert ("took more memory than 0.001 GB" in result.stdout.str()) == bool(status)


def _cache(folder: Path, entries: dict[str, bytes], secret: bytes = b"s" * 32) -> Path:
    (folder / "kernels-2").mkdir(parents=True, exist_ok=True)
    (folder / "kernels-2" / "secret").write_bytes(secret)
    for key, payload in entries.items():
        head = b"dparray kernel 2\n" + key.encode() + b"\n" + b"d" * 32
        (folder / "kernels-2" / f"{key}.kernel").write_bytes(head + payload)
    return folder


def test_the_next_session_has_the_binaries_but_no_kernels(tmp_path: Path) -> None:
    binary, kernel = "a" * 64, "b" * 64
    kept = tmp_path / "kept"
    session = _cache(tmp_path / "first", {binary: b"\x7fELF code", kernel: b'{"entry": "k"}'})
    kept_binaries.copy_from(session, kept)
    kept_binaries.copy_to(tmp_path / "second", kept)
    names = {file.name for file in (tmp_path / "second" / "kernels-2").iterdir()}
    assert names == {"secret", f"{binary}.kernel"}


def test_binaries_with_another_secret_are_not_kept(tmp_path: Path) -> None:
    one, other = "a" * 64, "b" * 64
    kept = tmp_path / "kept"
    kept_binaries.copy_from(_cache(tmp_path / "first", {one: b"\x7fELF"}), kept)
    kept_binaries.copy_from(_cache(tmp_path / "second", {other: b"\x7fELF"}, b"t" * 32), kept)
    assert {file.name for file in kept.iterdir()} == {"secret", f"{one}.kernel"}
