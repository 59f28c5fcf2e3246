"""The hooks that `hatchling` calls when it builds the package.

``DPARRAY_REPOSITORY`` is the address of the repository, as ``https://host/group/name``; the release
workflow sets it. From it follow `[project.urls]`, and the relative links of README as package
indexes show it. Without it, the links' words are left. README's commands for a clone become those
for an index.

The fast path of small arrays is compiled where there is a C compiler; a wheel with it is for this
platform, for all Pythons from 3.10 on. Without one, or with ``DPARRAY_COMPILED=0``, the wheel is
pure Python, for every platform: small arrays are slower there. An editable install has the file
next to its sources. ``DPARRAY_MODULE`` names a file that is compiled already, and ``DPARRAY_TAG``
its platform (`.ci/build_wheels.py`).

The bundled kernels (`make kernels`) are for SYCL and CUDA, so wheels for systems without their
packages (macOS, Windows, Linux with musl) leave them out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)]+)\)")
_PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.S)
_INSTALL = re.compile(r'(pip install "?)\.(?=[\[ `])')
_SOURCES = re.compile(r'\b(src|srcset)="(?!https?:)([^"]+)"')


def description(readme: str, source: str | None) -> str:
    """README for an index, which has the package, with links to the source where there is one.

    Args:
        readme: the text of the file.
        source: the address of the repository, as ``https://host/group/name``.
    """
    readme = _INSTALL.sub(r"\1dparray", readme.replace("; in a clone\n", "\n"))
    if source is None:
        readme = _PICTURE.sub("", readme)
        return _LINK.sub(lambda found: "" if found[1] else found[2], readme)
    readme = _SOURCES.sub(rf'\1="{source}/raw/main/\2"', readme)
    return _LINK.sub(
        lambda found: (
            f"{found[1]}[{found[2]}]({source}/{'raw' if found[1] else 'blob'}/main/{found[3]})"
        ),
        readme,
    )


def urls(source: str | None) -> dict[str, str]:
    """Return the addresses that package indexes show; none without a repository."""
    if source is None:
        return {}
    pages = f"{source}/blob/main"
    return {
        "Source": source,
        "Documentation": f"{pages}/notebooks/index.md",
        "Issues": f"{source}/issues",
        "Changelog": f"{pages}/CHANGELOG.md",
    }


class Readme(MetadataHookInterface):
    """Fills in the fields ``readme`` and ``urls``, which `pyproject.toml` calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields to the metadata that are in the file."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = os.environ.get("DPARRAY_REPOSITORY", "").rstrip("/") or None
        metadata["urls"] = urls(source)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": description(text, source),
        }


_SOURCES_OF_ARRAYS = "dparray/_array"
_KERNELS = "dparray/_compiler/kernels.store"


def has_drivers(platform: str) -> bool:
    """Return whether dparray uses SYCL or CUDA, which read the bundled kernels, on a platform."""
    return platform.startswith(("any", "linux", "manylinux"))


class FastPath(BuildHookInterface):
    """Compile the fast path; a build goes on where it cannot be compiled."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to what is built, and the bundled kernels where a driver reads them."""
        self._add_fast_path(version, build_data)
        if has_drivers(build_data.get("tag", "any").rpartition("-")[2]):
            build_data["artifacts"].append(_KERNELS)

    def _add_fast_path(self, version: str, build_data: dict[str, Any]) -> None:
        if os.environ.get("DPARRAY_COMPILED") == "0":
            return
        if built := os.environ.get("DPARRAY_MODULE"):
            _add(Path(built), os.environ["DPARRAY_TAG"], build_data)
            return
        sources = Path(self.root, _SOURCES_OF_ARRAYS)
        is_editable = version == "editable"
        folder = sources if is_editable else Path(self.root, "build")
        folder.mkdir(exist_ok=True)
        try:
            file = _builder(sources).build(folder)
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", "") or error
            self.app.display_warning(f"the fast path of small arrays is not compiled: {why}")
            return
        if not is_editable:
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            _add(file, platform, build_data)


def _add(file: Path, platform: str, build_data: dict[str, Any]) -> None:
    """Let a wheel have the compiled module of a platform."""
    build_data["force_include"][str(file)] = f"{_SOURCES_OF_ARRAYS}/{file.name}"
    build_data["pure_python"] = False
    build_data["tag"] = f"cp310-abi3-{platform}"


def _builder(sources: Path) -> Any:
    """The module of the package that compiles; the package itself is not imported."""
    spec = importlib.util.spec_from_file_location("build_fastpath", sources / "build_fastpath.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no build_fastpath.py in {sources}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
