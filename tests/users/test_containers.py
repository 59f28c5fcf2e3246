"""Containers and unusual home directories: dparray works, with one warning if it has no cache."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import find_driver

pytestmark = pytest.mark.process

PROGRAM = """
import os
import dparray as dp

@dp.kernel
def add_three(item, x):
    x[item.get_id(0)] += 3

@dp.kernel
def add_four(item, x):
    x[item.get_id(0)] += 4

x = dp.ones(20)
dp.call_kernel(add_three, dp.Range(20), x)
dp.call_kernel(add_four, dp.Range(20), x)
print(int(x.sum()), dp.sort(x)[0], round(float((dp.sin(x) * 2 + x).sum()), 6))
"""
PRINTED = "160 8.0 199.57433\n"

#: A user id without a passwd entry, as in containers; the files are still readable.
NO_USER = ("unshare", "--user", "--map-user=12345")
#: A mount namespace in which a test may mount; the command follows.
MOUNTS = ("unshare", "--map-root-user", "--mount", "sh", "-ec")
RUN = 'exec "$0" "$@"'

#: For each environment: a command that runs before Python, the variables, and a part of the warning
#: ("" if the cache works). ``{home}`` is a folder of the test, ``None`` unsets a variable.
CASES: dict[str, tuple[tuple[str, ...], dict[str, str | None], str]] = {
    "an ordinary home": ((), {"HOME": "{home}"}, ""),
    "no HOME, no passwd entry": (NO_USER, {"HOME": None}, "12345 has no entry in the passwd"),
    "empty HOME, no passwd entry": (NO_USER, {"HOME": ""}, "12345 has no entry in the passwd"),
    "relative HOME, no passwd entry": (NO_USER, {"HOME": "a"}, "12345 has no entry in the passwd"),
    "HOME that does not exist": ((), {"HOME": "{home}/none"}, "{home}/none does not exist"),
    "HOME that is a file": ((), {"HOME": "{home}/file"}, "{home}/file does not exist"),
    "relative XDG_CACHE_HOME": ((), {"HOME": "{home}", "XDG_CACHE_HOME": "there"}, ""),
    "absolute XDG_CACHE_HOME": (NO_USER, {"HOME": None, "XDG_CACHE_HOME": "{home}/new/xdg"}, ""),
    "cache of an unknown user": ((), {"DPARRAY_CACHE_DIR": "~nobody-at-all/x"}, "no such user"),
    "cache in the working folder": ((), {"DPARRAY_CACHE_DIR": "here"}, ""),
    "read-only home": (
        (*MOUNTS, f"mount -t tmpfs -o ro none $HOME; {RUN}"),
        {"HOME": "{home}"},
        "Read-only file system",
    ),
    "full home": (
        (
            *MOUNTS,
            "mount -t tmpfs -o size=8k none $HOME; chmod 700 $HOME; mkdir -m 700 $HOME/.cache;"
            f"head -c 8192 /dev/zero >$HOME/full || true; {RUN}",
        ),
        {"HOME": "{home}"},
        "No space left",
    ),
    "read-only root": (
        (*MOUNTS, f"mount --rbind / /mnt; mount -o remount,ro,bind /; {RUN}"),
        {"HOME": "/root"},
        "Read-only file system",
    ),
    "read-only temporary folder": (
        (*MOUNTS, f"mount --rbind /tmp /tmp; mount -o remount,ro,bind /tmp; {RUN}"),
        {"HOME": None, "XDG_CACHE_HOME": "/tmp"},
        "Read-only file system",
    ),
    "removed working folder": (
        ("sh", "-ec", f"cd $HOME/gone; rmdir $HOME/gone; {RUN}"),
        {"HOME": "{home}"},
        "",
    ),
    "removed working folder and a relative cache": (
        ("sh", "-ec", f"cd $HOME/gone; rmdir $HOME/gone; {RUN}"),
        {"HOME": "{home}", "DPARRAY_CACHE_DIR": "here"},
        "No such file or directory",
    ),
    "closed standard input and error": (("sh", "-ec", f"{RUN} <&- 2>&-"), {"HOME": "{home}"}, ""),
    "PoCL is registered too": ((), {"OCL_ICD_FILENAMES": "{driver}:{pocl}"}, ""),
    "PoCL is registered first, and hidden": (
        (),
        {"OCL_ICD_FILENAMES": "{pocl}:{driver}", "ONEAPI_DEVICE_SELECTOR": "*:1"},
        "",
    ),
}
# The first environment for each warning; all others would only be another new process.
_FIRST = {warning: name for name, (_, _, warning) in reversed(CASES.items())}
NAMES = [
    pytest.param(name, marks=() if name in _FIRST.values() else pytest.mark.slow) for name in CASES
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sample(2)
def test_a_program_runs_with_at_most_one_warning(name: str, tmp_path: Path) -> None:
    before, variables, warning = CASES[name]
    done, home = run(tmp_path, before, variables, "-c", PROGRAM)
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
    assert done.stderr.count("RuntimeWarning") == bool(warning), done.stderr
    assert warning.replace("{home}", str(home)) in done.stderr
    assert not warning or done.stderr.startswith("<string>:14:")  # the first launch
    assert not (tmp_path / "there").exists()  # a relative XDG_CACHE_HOME is ignored
    assert not (home / "none").exists()  # no home directory is created


def test_a_default_device_without_usm_is_an_error(tmp_path: Path) -> None:
    """dpnp and dpctl would end the process in their first call."""
    variables: dict[str, str | None] = {"OCL_ICD_FILENAMES": "{pocl}:{driver}"}
    done, _ = run(tmp_path, (), variables, "-c", PROGRAM)
    assert (done.returncode, done.stdout) == (1, "")
    assert "export ONEAPI_DEVICE_SELECTOR='*:1'" in done.stderr.splitlines()[-1]


COMMANDS = {
    "info --json": '"kernel_cache": null',
    "cache": "none: HOME is not set, and user 12345",
    "cache --json": '"directory": null',
    "cache --clear": "removed 0 entries from no folder: HOME is not set",
    "doctor --only cache": "HOME is not set, and user 12345",
}


def test_commands_say_that_there_is_no_cache(tmp_path: Path) -> None:
    """The commands run in one process, each with a line before its output."""
    program = (
        "from dparray.cli import main\n"
        f"for command in {list(COMMANDS)}:\n"
        "    print('\\n<', command, sep='')\n"
        "    main(command.split())\n"
    )
    done, _ = run(tmp_path, NO_USER, {"HOME": None}, "-c", program)
    printed = dict(text.split("\n", 1) for text in done.stdout.split("\n<")[1:])
    assert printed.keys() == COMMANDS.keys(), done.stderr
    for command, line in COMMANDS.items():
        assert line in printed[command], done.stderr
    assert "Traceback" not in done.stderr


def pocl() -> str:
    """Return PoCL's library, an OpenCL driver without USM; skip if it is not installed."""
    found = os.environ.get("DPARRAY_TEST_POCL") or ctypes.util.find_library("pocl")
    if not found or find_driver() is None:
        pytest.skip("needs PoCL (libpocl2) and the CPU driver of the Python package")
    return found


def run(
    tmp_path: Path, before: tuple[str, ...], variables: dict[str, str | None], *arguments: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run Python in an environment of :data:`CASES`; skip if the system does not permit it."""
    home = tmp_path / "home"
    (home / "gone").mkdir(parents=True)
    (home / "file").write_text("")
    for folder in (tmp_path, home):
        folder.chmod(0o777 if before == NO_USER else 0o755)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DPARRAY_CACHE_DIR", "XDG_CACHE_HOME")
    }
    for variable, value in variables.items():
        environment.pop(variable, None)
        if value is not None:
            if "{pocl}" in value:
                value = value.format(driver=find_driver(), pocl=pocl())
            environment[variable] = value.replace("{home}", str(home))
    if before[:1] == ("unshare",):
        probe = [*NO_USER, "true"] if before == NO_USER else [*before[:-1], "true"]
        if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
            pytest.skip("the system does not permit user namespaces")
    done = subprocess.run(
        [*before, sys.executable, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done, home
