"""The base package on a system without POSIX: the names that it uses, its folders and its cache."""

from __future__ import annotations

import ast
import ctypes
import ntpath
import os
import platform
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from dparray import _system
from dparray._driver.cuda import prepare as cuda
from dparray._driver.sycl import prepare as sycl
from dparray.cli.doctor import links
from tests.host import without_posix

ROOT = Path(__file__).resolve().parents[2]
#: Their drivers exist on Linux alone.
FOR_LINUX = ("_driver/sycl/", "_driver/cuda/", "/spirv/")
_OPTIONS = ("-p", "tests.host.without_posix", "-p", "no:cacheprovider")


@pytest.mark.static
def test_only_one_module_uses_names_that_some_systems_lack() -> None:
    absent = {f"os.{name}" for name in without_posix.OS_NAMES}
    absent |= {f"signal.{name}" for name in without_posix.SIGNAL_NAMES}
    found = []
    for file in sorted((ROOT / "dparray").rglob("*.py")):
        name = file.relative_to(ROOT / "dparray").as_posix()
        if any(each in name for each in (*FOR_LINUX, "_system.py")):
            continue
        text = file.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute):
                used = {ast.unparse(node)} & absent
            elif isinstance(node, ast.Import):
                used = {each.name for each in node.names} & {*without_posix.MODULES}
            elif isinstance(node, ast.ImportFrom):
                used = {str(node.module)} & {*without_posix.MODULES}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                used = {node.value} if node.value.startswith(("/proc/", "/sys/")) else set()
            else:
                continue
            found += [f"{name} {each}" for each in used if not _is_guarded(each, text)]
    # Windows removes no folder that a process works in.
    assert found == ["_driver/working_folder.py os.fchdir"]


def _is_guarded(used: str, text: str) -> bool:
    module, _, name = used.partition(".")
    return f'hasattr({module}, "{name}")' in text


RESERVED = (
    *(
        "CON",
        "nul",
        "Aux.txt",
        "prn.tar.gz",
        "com1",
        "LPT9.spv",
        "COM\N{SUPERSCRIPT TWO}",
        "conin$",
    ),
    *("nul .txt", "a:b", "a<b>", "a|b", "a?", "a*", 'a"', "a\\b", "a\tb", "a.", "a "),
)
ALLOWED = ("console", "com0", "COM10", "nul0.txt", "a.nul", ".con", "a b", "..", ".", "x-CON", "é")


@pytest.mark.parametrize("name", [*RESERVED, *ALLOWED])
@pytest.mark.parametrize("folder", ["cache", "working folder", "relative"])
def test_the_rules_of_windows_for_names(
    name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("DPARRAY_CACHE_DIR", str(cache))
    monkeypatch.chdir(tmp_path)
    start = {"cache": f"{cache}/", "working folder": f"{tmp_path}/", "relative": ""}[folder]
    # Python's function divides these names into a drive or a folder, and a name.
    is_one_part = not {":", "\\"} & set(name)
    if is_one_part and hasattr(ntpath, "isreserved"):
        assert without_posix.is_reserved(name) == ntpath.isreserved(name)
    for path in (start + name, f"{start}a/{name}/b"):
        if name in RESERVED:
            with pytest.raises(OSError, match="Windows has no such name"):
                without_posix.check_name(path)
        else:
            kept = without_posix.check_name(path)
            assert kept == (path.replace(name, name.lower()) if folder == "cache" else None)


@pytest.mark.skipif(sys.platform != "linux", reason="open files are listed by /proc")
@pytest.mark.process
@pytest.mark.parametrize(
    "tests",
    [
        ("tests/test_tiny.py", "tests/host/test_host_launches.py"),
        pytest.param(("--part", "1/24", "tests/kernel", "tests/jit"), marks=pytest.mark.slow),
        pytest.param(("--part", "1/24", "tests/functions"), marks=pytest.mark.slow),
    ],
    ids=lambda tests: tests[-1],
)
def test_the_base_package_runs_without_posix(tests: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *_OPTIONS, *tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_the_memory_of_windows_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    windll = without_posix.stand_in_for_windows()
    monkeypatch.setattr(ctypes, "windll", windll, raising=False)
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert _system.physical_memory() == without_posix.MEMORY
    assert _system.available_memory(0) == without_posix.AVAILABLE


@pytest.mark.parametrize(("system", "folder"), [("win32", "Windows"), ("darwin", "MacOS")])
def test_caches_are_in_the_folder_of_the_system(
    system: str, folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "AppData"))
    monkeypatch.setattr(sys, "platform", system)
    of_system = __import__(f"platformdirs.{folder.lower()}", fromlist=[folder])
    monkeypatch.setattr(platformdirs, "PlatformDirs", getattr(of_system, folder))
    if system == "win32":  # Elsewhere, Windows' functions for folders are missing.
        by_variables = of_system.get_win_folder_from_env_vars
        monkeypatch.setattr(of_system, "get_win_folder", by_variables)
    found = _system.cache_folder()
    expected = {"win32": "AppData/dparray/Cache", "darwin": "Library/Caches/dparray"}
    assert found == tmp_path / expected[system]


def test_the_first_of_two_files_keeps_the_name(tmp_path: Path) -> None:
    for text in ("first", "second"):
        source = tmp_path / text
        source.write_text(text)
        _system.add_name(str(source), tmp_path / "name")
    assert [each.name for each in tmp_path.iterdir()] == ["name"]
    assert (tmp_path / "name").read_text() == "first"


def test_a_disk_without_hard_links_has_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*paths: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    source = tmp_path / "source"
    source.write_text("text")
    _system.add_name(str(source), tmp_path / "name")
    assert (tmp_path / "name").read_text() == "text"
    assert not source.exists()


@pytest.mark.parametrize(
    ("system", "processor"), [("linux", "aarch64"), ("darwin", "arm64"), ("win32", "AMD64")]
)
def test_nobody_is_advised_to_install_what_a_system_lacks(
    system: str, processor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    for module in ("dpctl", "cuda.core"):
        monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type]
    monkeypatch.setattr(sycl, "prepare_devices", lambda: None)
    expected = "dparray uses SYCL on Linux x86-64 only"
    assert sycl.absence() == ("dpctl is not installed", expected)
    base = {name: oldest for name, (oldest, _) in links.PACKAGES.items() if name[:2] != "dp"}
    assert links.check_packages(base.get).endswith(f"; no SYCL: {expected}")
    absence = cuda.absence()
    assert absence is not None
    is_advised = absence[1].startswith("pip install")
    assert is_advised == (system == "linux")
    assert is_advised or absence[1] == "dparray uses NVIDIA GPUs on Linux only"
