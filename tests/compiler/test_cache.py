"""The disk cache: an entry is complete or absent, whatever processes and disks do."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dparray._compiler import cache
from tests.support import until

# The package may be installed elsewhere, without a copy next to the tests.
PACKAGE = Path(cache.__file__).parents[1]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty cache for the test."""
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_state", cache._State())
    return tmp_path / "cache"


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def entry(place: Path, number: int) -> Path:
    return place / "kernels-2" / (key(number) + ".kernel")


def contents(place: Path) -> list[str]:
    """Return the names in the folder of entries, except the secret."""
    return sorted(path.name for path in (place / "kernels-2").iterdir() if path.name != "secret")


def test_saved_arrays_are_loaded(place: Path) -> None:
    assert cache.load(key(1)) is None
    cache.save(key(1), b"bytes")
    assert cache.load(key(1)) == b"bytes"
    assert cache.load(key(2)) is None
    stats = cache.stats()
    assert (stats.entries, stats.hits, stats.misses, stats.saves) == (1, 1, 2, 1)
    assert stats.directory == place


def test_digests_are_not_counted_as_kernels(place: Path) -> None:
    assert cache.load(key(1), cache.DIGEST) is None
    cache.save(key(1), b"digest", cache.DIGEST)
    assert cache.load(key(1), cache.DIGEST) == b"digest"
    assert cache.stats()[1:3] == (0, 0)
    assert cache.stats()[4:] == (0,) * 5
    assert cache.clear() == 0
    assert cache.load(key(1), cache.DIGEST) is None


def test_a_digest_that_cannot_be_saved_changes_nothing(place: Path) -> None:
    place.parent.joinpath("cache").write_text("a file where the folder would be")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.save(key(1), b"digest", cache.DIGEST)
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        cache.save(key(1), b"kernel")


def test_an_empty_payload_is_not_a_miss(place: Path) -> None:
    cache.save(key(1), b"")
    assert cache.load(key(1)) == b""


def test_clear_removes_entries_and_prints_their_number(place: Path) -> None:
    for number in range(3):
        cache.save(key(number), b"x")
    assert cache.clear() == 3
    assert cache.load(key(0)) is None
    assert contents(place) == []


@pytest.mark.parametrize("size", [0, 5, 17, 30, 81, 82, 100, 114, 120])
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


def test_a_warning_from_a_thread_of_dparray_names_the_line_of_the_program(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPARRAY_CACHE_DIR", __file__)
    begin = threading.Event()
    thread = threading.Thread(target=lambda: (begin.wait(), cache.save(key(1), b"x")))
    thread.start()
    with pytest.warns(RuntimeWarning, match="cannot be written") as caught:
        begin.set(), thread.join()
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_full_or_read_only_disk_warns_once_and_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    cache.save(key(0), b"before")

    def refuse(*args: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(cache.os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match="compiled again"):
        cache.save(key(1), b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.save(key(2), b"x")
    assert contents(place) == [entry(place, 0).name]
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


def test_processes_that_save_little_keep_to_the_limit_together(place: Path) -> None:
    cache.set_limit(20_000)
    for number in range(200):
        cache._state.unchecked = 0  # as in a new process
        cache.save(key(number), bytes(1000))
    assert cache.stats().nbytes <= 20_000 + 100 * 1200


def test_native_regions_count_toward_the_limit(place: Path) -> None:
    cache.set_limit(20_000)
    for number in range(40):
        cache.save(key(number), bytes(1000), (".kernel", cache.REGION)[number % 2])
    stats = cache.stats()
    assert stats.regions > 0
    assert stats.entries > 0
    assert stats.region_bytes < stats.nbytes <= 20_000
    assert cache.load(key(39)) is None
    assert cache.load(key(39), cache.REGION) == bytes(1000)
    assert cache.clear() == stats.regions + stats.entries
    assert cache.stats().nbytes == 0


@pytest.mark.parametrize("mask", [0o002, 0o000, 0o077])
def test_folders_are_the_users_alone_under_every_umask(
    mask: int, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(tmp_path / "a" / "b" / "c"))
    previous = os.umask(mask)
    try:
        cache.save(key(1), b"x")
    finally:
        os.umask(previous)
    assert cache.load(key(1)) == b"x"
    assert not any(path.stat().st_mode & 0o077 for path in (tmp_path / "a").rglob("*"))
    assert not (tmp_path / "a").stat().st_mode & 0o077


def test_recently_read_entries_stay(place: Path) -> None:
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
    leftover = entry(place, 0).with_name(f"{key(0)}.old.part")
    leftover.write_bytes(b"half")
    later = time.time() + 1e6
    for path in (entry(place, 0), leftover):
        os.utime(path, (later, later))
    assert cache.load(key(0)) == b"x"
    assert entry(place, 0).stat().st_mtime < later
    cache.set_limit(cache.set_limit(0))  # the next save scans the directory
    cache.save(key(1), b"x")
    assert not leftover.exists()


def test_a_directory_instead_of_an_entry_affects_no_other_entry(place: Path) -> None:
    entry(place, 1).parent.mkdir(mode=0o700, parents=True)
    entry(place, 1).mkdir()
    assert cache.load(key(1)) is None
    with pytest.warns(RuntimeWarning, match="Is a directory") as caught:
        cache.save(key(1), b"x")
    assert caught[0].filename == __file__
    cache.save(key(2), b"x")
    assert cache.load(key(2)) == b"x"
    assert contents(place) == sorted((entry(place, 1).name, entry(place, 2).name))


def test_an_entry_that_cannot_be_read_is_replaced(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.save(key(1), b"x")

    def refuse(path: Path, private: bool = False) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(cache, "_read", refuse)
        assert cache.load(key(1)) is None
    cache.save(key(1), b"y")
    assert cache.load(key(1)) == b"y"


def test_set_limit_gives_the_previous_one_and_takes_no_negative(place: Path) -> None:
    first = cache.set_limit(1000)
    assert cache.set_limit(first) == 1000
    with pytest.raises(ValueError, match="negative"):
        cache.set_limit(-1)


def test_files_of_a_dead_process_are_removed_after_a_while(place: Path) -> None:
    (place / "kernels-2").mkdir(mode=0o700, parents=True)
    old, young = (entry(place, 1).with_name(f"{key(1)}.{name}.part") for name in ("old", "young"))
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache.set_limit(cache.set_limit(0))  # the next save scans the directory
    cache.save(key(1), b"x")
    assert not old.exists()
    assert young.exists()


# --- ownership of files ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["movie.mkv.part", "notes.kernel", "secret", f"{key(7)}.kernel"])
def test_users_files_stay(place: Path, name: str) -> None:
    cache.save(key(1), b"x")
    names = [place / name]
    if name in ("movie.mkv.part", "notes.kernel"):
        names.append(place / "kernels-2" / name)
    for path in names:
        path.write_bytes(b"mine")
        os.utime(path, (1, 1))
    cache.set_limit(cache.set_limit(0))
    cache.save(key(2), b"x")  # removes old files
    assert cache.clear() == 2
    assert [path.read_bytes() for path in names] == [b"mine"] * len(names)


def test_only_regular_files_of_dparray_are_removed(place: Path) -> None:
    cache.save(key(1), b"x")
    outside = place / "outside"
    outside.write_bytes(b"mine")
    entry(place, 2).symlink_to(outside)
    entry(place, 3).mkdir()
    assert cache.load(key(2)) is None
    assert cache.clear() == 1
    assert outside.read_bytes() == b"mine"
    assert entry(place, 3).is_dir()


def test_an_entry_is_no_other_keys(place: Path) -> None:
    cache.save(key(1), b"one")
    cache.save(key(2), b"two")
    entry(place, 1).write_bytes(entry(place, 2).read_bytes())
    assert cache.load(key(1)) is None
    text = entry(place, 2).read_bytes().replace(key(2).encode(), key(1).encode())
    entry(place, 1).write_bytes(text)  # the key in it matches, but not the digest
    assert cache.load(key(1)) is None
    assert cache.load(key(2)) == b"two"


def test_an_entry_written_without_the_secret_is_a_miss(place: Path) -> None:
    cache.save(key(1), b"one")
    forged = cache._digest(key(1), b"bad", bytes(32))
    entry(place, 1).write_bytes(cache._MAGIC + key(1).encode() + b"\n" + forged + b"bad")
    assert cache.load(key(1)) is None
    cache.save(key(1), b"one")
    assert cache.load(key(1)) == b"one"


def test_the_secret_and_the_folder_are_the_users_alone(place: Path) -> None:
    cache.save(key(1), b"x")
    assert (place / "kernels-2").stat().st_mode & 0o777 == 0o700
    for path in (place / "kernels-2").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    (place / "kernels-2" / "secret").write_bytes(b"short")
    assert cache.load(key(1)) is None
    cache.save(key(1), b"x")
    assert cache.load(key(1)) == b"x"


def refused(match: str) -> None:
    with pytest.warns(RuntimeWarning, match=match):
        assert cache.load(key(1)) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load(key(1)) is None
        cache.save(key(3), b"x")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to_is_refused_once(place: Path, mode: int) -> None:
    cache.save(key(1), b"x")
    (place / "kernels-2").chmod(mode)
    refused("can be written by other users")
    assert not entry(place, 3).exists()


def test_a_cache_folder_that_everybody_can_write_to_is_refused(place: Path) -> None:
    cache.save(key(1), b"x")
    place.chmod(0o1777)
    assert cache.load(key(1)) == b"x"
    place.chmod(0o777)
    refused("can be written by other users")


def test_files_that_others_can_write_or_read_are_refused(place: Path) -> None:
    cache.save(key(1), b"x")
    entry(place, 1).chmod(0o666)
    refused("can be written by other users")


def test_a_secret_that_others_can_read_is_refused(place: Path) -> None:
    cache.save(key(1), b"x")
    (place / "kernels-2" / "secret").chmod(0o644)
    refused("can be read by other users")


@pytest.mark.parametrize("which", ["entry", "secret", "folder"])
def test_files_of_another_user_are_refused(
    place: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.save(key(1), b"x")
    if os.geteuid() == 0:
        folder = place / "kernels-2"
        paths = {"entry": entry(place, 1), "secret": folder / "secret", "folder": folder}
        os.chown(paths[which], 12345, -1)
    else:
        user = os.geteuid() + 1
        monkeypatch.setattr(cache.os, "geteuid", lambda: user)
    refused("belongs to another user")


def test_a_fifo_does_not_hang(place: Path) -> None:
    cache.save(key(2), b"x")
    os.mkfifo(entry(place, 1), 0o600)
    assert cache.load(key(1)) is None
    cache.save(key(1), b"x")
    assert cache.load(key(1)) == b"x"


def test_any_bytes_are_a_miss(place: Path) -> None:
    random = np.random.default_rng(5)
    cache.save(key(1), b"payload")
    whole = entry(place, 1).read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        for position in random.integers(0, len(whole), random.integers(1, 5)):
            damaged[position] = random.integers(0, 256)
        damaged = damaged[: random.integers(0, len(whole) + 1)] + random.bytes(random.integers(9))
        if bytes(damaged) == whole:
            continue
        entry(place, 1).write_bytes(damaged)
        entry(place, 1).chmod(0o600)
        assert cache.load(key(1)) is None, bytes(damaged)


RACER = """
import hashlib, sys
from dparray._compiler import cache
wrong = 0
for turn in range(60):
    for number in range(8):
        key = hashlib.sha256(str(number).encode()).hexdigest()
        payload = bytes([number]) * (20_000 + number)
        if turn % 2:
            cache.save(key, payload)
        found = cache.load(key)
        wrong += found is not None and found != payload
sys.exit(wrong)
"""


def start(place: Path, program: str) -> subprocess.Popen[bytes]:
    environment = dict(os.environ, DPARRAY_CACHE_DIR=str(place), PYTHONPATH=str(PACKAGE.parent))
    # The package's __init__ loads all dependencies; these processes need only the cache.
    prelude = (
        "import sys, types; package = types.ModuleType('dparray'); "
        f"package.__path__ = [{str(PACKAGE)!r}]; sys.modules['dparray'] = package\n"
    )
    return subprocess.Popen([sys.executable, "-c", prelude + program], env=environment)


@pytest.mark.slow
def test_sixteen_processes_race_and_none_reads_a_wrong_byte(place: Path) -> None:
    racers = [start(place, RACER) for _ in range(16)]
    assert [racer.wait(timeout=120) for racer in racers] == [0] * 16
    assert cache.stats().entries == 8
    assert not list(place.rglob("*.part"))


WRITER = """
import hashlib
from dparray._compiler import cache
while True:
    for number in range(4):
        cache.save(hashlib.sha256(str(number).encode()).hexdigest(), bytes([number]) * 3_000_000)
"""


def test_kill_in_the_middle_of_a_write_leaves_whole_entries(place: Path) -> None:
    for delay in (0.00, 0.01, 0.02, 0.05, 0.08):
        writer = start(place, WRITER)
        until(lambda: list(place.rglob("*.kernel")))
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        found = [cache.load(key(number)) for number in range(4)]
        assert any(payload is not None for payload in found)
        for number, payload in enumerate(found):
            assert payload in (None, bytes([number]) * 3_000_000)
