"""Write the recipe for conda of a release, and compare it with the project's metadata.

    python .ci/conda_recipe.py dist/dparray-1.2.3.tar.gz build/recipe.yaml

The recipe is rendered for every system. Nothing is built, because a build needs the packages of
conda-forge. ``DPARRAY_REPOSITORY`` is the address of the repository; without it, the recipe names
the file here. Needs the packages py-rattler-build and packaging, and Python 3.11 or newer.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / ".github" / "conda" / "recipe.yaml"
#: Python's name for a system, by conda's name for system and processor.
SYSTEMS = {
    "linux-64": "linux",
    "linux-aarch64": "linux",
    "osx-64": "darwin",
    "osx-arm64": "darwin",
    "win-64": "win32",
    "win-arm64": "win32",
}


def main(sdist: Path, output: Path) -> int:
    """Write the recipe, print the differences, and return the number of systems that have any."""
    import tomllib
    from rattler_build import RenderConfig, Stage0Recipe, VariantConfig
    from rattler_build.tool_config import PlatformConfig

    output.write_text(of_release(RECIPE.read_text(), sdist, os.environ.get("DPARRAY_REPOSITORY")))
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = metadata["project"]
    minors = re.findall(r"Python :: 3\.(\d+)", " ".join(project["classifiers"]))
    pythons = [f"3.{each}" for each in minors]
    recipe = Stage0Recipe.from_file(output)
    failures = 0
    for system, platform in SYSTEMS.items():
        config = RenderConfig(platform=PlatformConfig(target_platform=system))
        variants = recipe.render(VariantConfig({"python": pythons, "c_stdlib": ["libc"]}), config)
        wanted = _metadata(project, platform, newest=max(map(int, minors)))
        wanted |= {f"to build: {each}" for each in metadata["build-system"]["requires"]}
        differences = {text for each in variants for text in wanted ^ _of_recipe(each.recipe)}
        if len(variants) != len(pythons):
            differences.add(f"{len(variants)} packages for {len(pythons)} Pythons")
        print(f"{system}: {', '.join(sorted(differences)) or f'{len(variants)} packages'}")
        failures += bool(differences)
    return failures


def of_release(recipe: str, sdist: Path, source: str | None) -> str:
    """Return a recipe with the version, the address and the digest of a source distribution.

    Args:
        recipe: the text with the words VERSION, URL and SHA256.
        sdist: the file, whose name has the version.
        source: the address of the repository, whose releases have the file.
    """
    version = sdist.name.removeprefix("dparray-").removesuffix(".tar.gz")
    release = f"{source}/releases/download/v{version}/{sdist.name}"
    words = {
        "VERSION": f'"{version}"',
        "URL": release if source else sdist.resolve().as_uri(),
        "SHA256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
    }
    word = re.compile(r"(?<=: )(VERSION|URL|SHA256)$", re.MULTILINE)
    return word.sub(lambda found: words[found[0]], recipe)


def _metadata(project: dict[str, Any], platform: str, newest: int) -> set[str]:
    """Return version, license and requirements of the project on a platform."""
    text = (ROOT / "dparray" / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    found = {f"version {version}", f"license {project['license']}"}
    found.add(_requirement("python", f"{project['requires-python']},<3.{newest + 1}"))
    for requirement in map(Requirement, project["dependencies"]):
        if requirement.marker is None or requirement.marker.evaluate({"sys_platform": platform}):
            found.add(_requirement(requirement.name, str(requirement.specifier)))
    return found


def _of_recipe(recipe: Any) -> set[str]:
    """Return the same of a rendered recipe."""
    found = {f"version {recipe.package.version}", f"license {recipe.about.license}"}
    requirements = recipe.requirements.to_dict()
    for text in requirements["run"]:
        name, _, specifier = text.partition(" ")
        found.add(_requirement(name, specifier))
    for text in requirements["host"]:
        if text not in ("python", "pip"):
            found.add(f"to build: {text.replace(' ', '')}")
    return found


def _requirement(name: str, specifier: str) -> str:
    return f"{name} {','.join(sorted(map(str, SpecifierSet(specifier))))}"


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
