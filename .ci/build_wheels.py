"""Build the files of a release into `dist`, and check them.

    python .ci/build_wheels.py [--once] [--into FOLDER] [tag ...]

One wheel for each platform of `.ci/cross_build.py`, a wheel of Python alone for all other
platforms, and the source distribution. Everything is built twice, and the bytes must be the same
(`--once` leaves that out). `make wheel-tools` installs the packages that it needs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cross_build

ROOT = Path(__file__).resolve().parents[1]
#: Wheels larger than this have something in them that they should not.
MAX_BYTES = 30 << 20


def main() -> int:
    """Build, compare and check; return the number of failed checks."""
    parser = argparse.ArgumentParser(description="Build the files of a release and check them.")
    parser.add_argument("tags", nargs="*", metavar="tag", help="platforms; all if none is given")
    parser.add_argument("--once", action="store_true", help="do not compare with a second build")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="the folder")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.environ.setdefault("SOURCE_DATE_EPOCH", _date_of_commit())
    dist = arguments.into
    build(dist, arguments.tags)
    failures = _check(sorted(dist.iterdir()))
    if not arguments.once:
        again = Path("build", "dist-again")
        build(again, arguments.tags)
        failures += _compare(dist, again)
    for file in sorted(dist.iterdir()):
        print(f"{_digest(file)}  {file.name}  {file.stat().st_size:,} bytes")
    return failures


def _date_of_commit() -> str:
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def build(folder: Path, tags: list[str]) -> None:
    """Build a wheel for each tag, or for all of them and the rest of a release."""
    shutil.rmtree(folder, ignore_errors=True)
    modules = Path("build", "modules")
    shutil.rmtree(modules, ignore_errors=True)
    for tag in tags or cross_build.TARGETS:
        module = cross_build.build(tag, modules)
        _build(folder, "--wheel", DPARRAY_MODULE=str(module), DPARRAY_TAG=tag)
    if not tags:
        _build(folder, "--wheel", DPARRAY_COMPILED="0")
        _build(folder, "--sdist")


def _build(folder: Path, what: str, **variables: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", what, "--outdir", str(folder), "."]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def _check(files: list[Path]) -> int:
    wheels = [each for each in files if each.suffix == ".whl"]
    compiled = [each for each in wheels if "abi3" in each.name]
    checks = [
        ["twine", "check", "--strict", *files],
        ["check_wheel_contents", *wheels],
        ["abi3audit", "--strict", *compiled],
    ]
    failures = 0
    for command in checks:
        print(f"dparray: {command[0]} of {len(command)} arguments", file=sys.stderr)
        failures += subprocess.run([sys.executable, "-m", *map(str, command)]).returncode != 0
    for file in files:
        if file.stat().st_size > MAX_BYTES:
            print(f"dparray: {file} has {file.stat().st_size:,} bytes", file=sys.stderr)
            failures += 1
    return failures


def _compare(first: Path, second: Path) -> int:
    different = [
        each.name
        for each in first.iterdir()
        if not (second / each.name).is_file() or _digest(each) != _digest(second / each.name)
    ]
    for name in different:
        print(f"dparray: two builds of {name} have different bytes", file=sys.stderr)
    return len(different)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
