"""Compile the fast path of small arrays for every system that wheels are made for, with zig.

    python .ci/cross_build.py build/modules [tag ...]

Needs the packages ziglang, abi3info and numpy, and the headers of the Python that runs it. The
module uses Python's stable interface alone, so one file serves CPython 3.10 and newer.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "dparray" / "_array"))
from build_fastpath import OPTIONS, SOURCE, source_digest  # noqa: E402


class Target(NamedTuple):
    """A system and a processor: zig's name for them, and the name of the file."""

    zig: str
    file: str = "_fastpath.abi3.so"


#: By the platform tag of a wheel. macOS 11 is the oldest for Apple's processors.
TARGETS = {
    "manylinux_2_28_x86_64": Target("x86_64-linux-gnu.2.28"),
    "manylinux_2_28_aarch64": Target("aarch64-linux-gnu.2.28"),
    "musllinux_1_2_x86_64": Target("x86_64-linux-musl"),
    "musllinux_1_2_aarch64": Target("aarch64-linux-musl"),
    "macosx_11_0_x86_64": Target("x86_64-macos.11.0"),
    "macosx_11_0_arm64": Target("aarch64-macos.11.0"),
    "win_amd64": Target("x86_64-windows-gnu", "_fastpath.pyd"),
    "win_arm64": Target("aarch64-windows-gnu", "_fastpath.pyd"),
}

# What Python's headers ask about Windows; the file of Python's installer defines the same.
_WINDOWS_CONFIGURATION = """\
#define MS_WIN32
#define MS_WIN64
#define MS_WINDOWS
#define Py_ENABLE_SHARED
#define HAVE_DECLSPEC_DLL
#define HAVE_STDDEF_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_DOUBLE 8
#define SIZEOF_FLOAT 4
#define SIZEOF_WCHAR_T 2
#define SIZEOF_PID_T SIZEOF_INT
#define ALIGNOF_LONG 4
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 8
"""


def build(tag: str, folder: Path) -> Path:
    """Compile and link the module for a platform tag, and return its file.

    Raises:
        subprocess.CalledProcessError: zig failed; its message is on the standard error.
    """
    target = TARGETS[tag]
    own = folder / tag
    headers = own / "include"
    # Copies, because headers include the configuration from their own folder.
    for each in (sysconfig.get_path("include"), np.get_include()):
        shutil.copytree(each, headers, dirs_exist_ok=True)
    _configure_numpy(tag, headers / "numpy" / "_numpyconfig.h")
    options = [*OPTIONS, "-s", "-target", target.zig, f"-I{headers}"]
    if tag.startswith("win"):
        (headers / "pyconfig.h").write_text(_WINDOWS_CONFIGURATION)
        options.append(str(_import_library(tag, own)))
    elif tag.startswith("macosx"):
        options.append("-Wl,-undefined,dynamic_lookup")
    file = own / target.file
    _zig("cc", *options, f'-DMADE_FROM="{source_digest()}"', SOURCE, "-o", file)
    return file


def _configure_numpy(tag: str, file: Path) -> None:
    """Change the configuration of this machine's NumPy to that of a target."""
    text = file.read_text()
    if "linux" not in tag:
        text = text.replace("#define NPY_HAVE_ENDIAN_H 1", "")
    sizes = {}
    if tag.startswith("win"):
        sizes = {"SIZEOF_LONG": 4, "SIZEOF_LONGDOUBLE": 8, "SIZEOF_COMPLEX_LONGDOUBLE": 16}
    elif tag == "macosx_11_0_arm64":
        sizes = {"SIZEOF_LONGDOUBLE": 8, "SIZEOF_COMPLEX_LONGDOUBLE": 16}
    for name, size in sizes.items():
        text, count = re.subn(rf"(#define NPY_{name}) \d+", rf"\1 {size}", text)
        assert count == 1, f"NumPy's headers do not define NPY_{name} once"
    file.write_text(text)


def _import_library(tag: str, folder: Path) -> Path:
    """Write a library of the names in Python's stable interface, which `python3.dll` exports."""
    from abi3info import DATAS, FUNCTIONS

    definition, library = folder / "python3.def", folder / "python3.lib"
    lines = ["LIBRARY python3.dll", "EXPORTS"]
    lines += sorted(f"  {each.name}" for each in FUNCTIONS)
    lines += sorted(f"  {each.name} DATA" for each in DATAS)
    definition.write_text("\n".join(lines) + "\n")
    machine = {"win_amd64": "i386:x86-64", "win_arm64": "arm64"}[tag]
    _zig("dlltool", "-m", machine, "-d", definition, "-l", library)
    return library


def _zig(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", *map(str, arguments)], check=True)


def main() -> None:
    """Build for the tags on the command line, or for all."""
    folder = Path(sys.argv[1])
    for tag in sys.argv[2:] or TARGETS:
        print(build(tag, folder))


if __name__ == "__main__":
    main()
