"""Keep the driver's binaries of kernels from one run of the tests to the next.

The CPU driver takes 40 ms to build a kernel's module, and does that 3,500 times in a default run. A
binary is stored under a digest of the module, the device and the driver, so a kept one is what the
driver would build again. Modules are not kept: dparray compiles each kernel in every run.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

# The folder of a cache, and the head of an entry: format, key, digest, and an ELF file.
_FOLDER = "kernels-2"
_BINARY = re.compile(rb"dparray kernel 2\n[0-9a-f]{64}\n.{32}\x7fELF", re.DOTALL)
_HEAD_BYTES = 118
# The digests of a folder's entries are made with this secret.
_SECRET = "secret"
# The folder starts anew beyond this size: a default run has 30 MB.
_MAX_BYTES = 200 * 2**20


def copy_to(cache: Path, kept: Path) -> None:
    """Copy the kept binaries into the new cache of a session."""
    if kept.is_dir():
        shutil.copytree(kept, cache / _FOLDER)


def copy_from(cache: Path, kept: Path) -> None:
    """Keep the binaries that a session has built."""
    source = cache / _FOLDER / _SECRET
    if not source.is_file():
        return
    if sum(file.stat().st_size for file in kept.glob("*")) > _MAX_BYTES:
        shutil.rmtree(kept)
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = kept / _SECRET
    if not secret.exists():
        _copy(source, secret)
    if secret.read_bytes() != source.read_bytes():
        return  # Another session began to keep binaries meanwhile.
    known = {file.name for file in kept.iterdir()}
    for file in source.parent.iterdir():
        if file.name not in known and _is_binary(file):
            _copy(file, kept / file.name)


def _is_binary(file: Path) -> bool:
    with file.open("rb") as opened:
        return _BINARY.match(opened.read(_HEAD_BYTES)) is not None


def _copy(file: Path, to: Path) -> None:
    """Copy a file so that no other process sees a part of it."""
    temporary = to.with_name(f"{to.name}.{os.getpid()}")
    shutil.copy2(file, temporary)
    temporary.replace(to)
