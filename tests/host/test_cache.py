"""The disk cache: whole entries or none, whatever processes and disks do."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from dparray._compiler import cache

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_state", cache._State())
    return tmp_path / "cache"


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def entry(place: Path, number: int) -> Path:
    return place / (key(number) + ".kernel")


def test_what_is_saved_is_loaded(place: Path) -> None:
    assert cache.load(key(1)) is None
    cache.save(key(1), b"bytes")
    assert cache.load(key(1)) == b"bytes"
    assert cache.load(key(2)) is None
    stats = cache.stats()
    assert (stats.entries, stats.hits, stats.misses, stats.saves) == (1, 1, 2, 1)
    assert stats.place == place


def test_an_empty_payload_is_not_a_miss(place: Path) -> None:
    cache.save(key(1), b"")
    assert cache.load(key(1)) == b""


def test_clear_removes_entries_and_says_how_many(place: Path) -> None:
    for number in range(3):
        cache.save(key(number), b"x")
    assert cache.clear() == 3
    assert cache.load(key(0)) is None
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("size", [0, 5, 17, 30, 48, 49, 60])
def test_a_truncated_entry_is_a_miss_and_is_removed(place: Path, size: int) -> None:
    cache.save(key(1), b"payload of the entry")
    path = entry(place, 1)
    path.write_bytes(path.read_bytes()[:size])
    assert cache.load(key(1)) is None
    assert not path.exists()


def test_a_flipped_byte_anywhere_is_a_miss(place: Path) -> None:
    cache.save(key(1), b"payload")
    path = entry(place, 1)
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        path.write_bytes(bytes(damaged))
        assert cache.load(key(1)) is None, position


def test_a_directory_that_cannot_be_made_warns_once_and_goes_on(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = place.parent / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(blocked / "cache"))
    assert cache.load(key(1)) is None
    with pytest.warns(RuntimeWarning, match="DPARRAY_CACHE_DIR"):
        cache.save(key(1), b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.save(key(2), b"x")
        assert cache.load(key(2)) is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_full_or_read_only_disk_warns_once_and_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    cache.save(key(0), b"before")

    def refuse(*args: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(cache.os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match="compiled anew"):
        cache.save(key(1), b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.save(key(2), b"x")
    assert [path.name for path in place.iterdir()] == [entry(place, 0).name]
    assert cache.load(key(0)) == b"before"


def test_the_size_is_bounded_and_the_longest_unused_go_first(place: Path) -> None:
    cache.set_limit(20_000)
    for number in range(40):
        cache.save(key(number), bytes(1000))
        os.utime(entry(place, number), (number, number))
    stats = cache.stats()
    assert stats.nbytes <= 20_000
    assert cache.load(key(39)) is not None
    assert cache.load(key(0)) is None


def test_what_was_read_lately_stays(place: Path) -> None:
    cache.set_limit(20_000)
    for number in range(12):
        cache.save(key(number), bytes(1000))
        os.utime(entry(place, number), (number, time.time() - 7200 + number))
    assert cache.load(key(0)) is not None
    for number in range(12, 24):
        cache.save(key(number), bytes(1000))
    assert cache.load(key(0)) is not None
    assert cache.load(key(1)) is None


def test_entries_and_leftovers_of_the_future_age_like_others(place: Path) -> None:
    cache.save(key(0), b"x")
    leftover = place / "old.part"
    leftover.write_bytes(b"half")
    later = time.time() + 1e6
    for path in (entry(place, 0), leftover):
        os.utime(path, (later, later))
    assert cache.load(key(0)) == b"x"
    assert entry(place, 0).stat().st_mtime < later
    cache.set_limit(cache.set_limit(0))  # the next save looks over the directory
    cache.save(key(1), b"x")
    assert not leftover.exists()


def test_a_directory_in_the_place_of_an_entry_spoils_no_other(place: Path) -> None:
    entry(place, 1).mkdir(parents=True)
    assert cache.load(key(1)) is None
    with pytest.warns(RuntimeWarning, match="Is a directory") as caught:
        cache.save(key(1), b"x")
    assert caught[0].filename == __file__
    cache.save(key(2), b"x")
    assert cache.load(key(2)) == b"x"
    assert sorted(place.iterdir()) == sorted((entry(place, 1), entry(place, 2)))


def test_an_entry_that_cannot_be_read_is_replaced(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.save(key(1), b"x")

    def refuse(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        assert cache.load(key(1)) is None
    cache.save(key(1), b"y")
    assert cache.load(key(1)) == b"y"


def test_set_limit_gives_the_previous_one_and_takes_no_negative(place: Path) -> None:
    first = cache.set_limit(1000)
    assert cache.set_limit(first) == 1000
    with pytest.raises(ValueError, match="negative"):
        cache.set_limit(-1)


def test_what_a_dead_process_left_is_removed_after_a_while(place: Path) -> None:
    place.mkdir()
    old, young = place / "old.part", place / "young.part"
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache.save(key(1), b"x")
    assert not old.exists()
    assert young.exists()


RACER = """
import hashlib, sys
from dparray import _cache
wrong = 0
for turn in range(60):
    for number in range(8):
        key = hashlib.sha256(str(number).encode()).hexdigest()
        payload = bytes([number]) * (20_000 + number)
        if turn % 2:
            _cache.save(key, payload)
        found = _cache.load(key)
        wrong += found is not None and found != payload
sys.exit(wrong)
"""


def start(place: Path, program: str) -> subprocess.Popen[bytes]:
    environment = dict(os.environ, DPARRAY_CACHE_DIR=str(place), PYTHONPATH=str(ROOT))
    # The package's __init__ loads the whole stack; these processes need the cache only.
    prelude = (
        "import sys, types; package = types.ModuleType('dparray'); "
        f"package.__path__ = [{str(ROOT / 'dparray')!r}]; sys.modules['dparray'] = package\n"
    )
    return subprocess.Popen([sys.executable, "-c", prelude + program], env=environment)


def test_sixteen_processes_race_and_none_reads_a_wrong_byte(place: Path) -> None:
    racers = [start(place, RACER) for _ in range(16)]
    assert [racer.wait(timeout=120) for racer in racers] == [0] * 16
    assert cache.stats().entries == 8
    assert not list(place.glob("*.part"))


WRITER = """
import hashlib
from dparray import _cache
while True:
    for number in range(4):
        _cache.save(hashlib.sha256(str(number).encode()).hexdigest(), bytes([number]) * 3_000_000)
"""


def test_kill_in_the_middle_of_a_write_leaves_whole_entries(place: Path) -> None:
    for delay in (0.00, 0.01, 0.02, 0.05, 0.08):
        writer = start(place, WRITER)
        deadline = time.monotonic() + 30
        while not list(place.glob("*.kernel")) and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        found = [cache.load(key(number)) for number in range(4)]
        assert any(payload is not None for payload in found)
        for number, payload in enumerate(found):
            assert payload in (None, bytes([number]) * 3_000_000)
