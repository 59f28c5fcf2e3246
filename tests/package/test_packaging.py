"""The package is complete, the lock file matches, and .venv is built when and as required."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.process

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


# --- the package ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build a pure Python wheel and an sdist from a copy of the folder."""
    pytest.importorskip("hatchling", reason="hatchling is needed to build the package")
    folder = tmp_path_factory.mktemp("checkout")
    kept = [name for name in os.listdir(ROOT) if name not in LEFT_ALONE]
    for name in kept:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    wheel = build_wheel(folder, DPARRAY_COMPILED="0")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def built(distributions: tuple[Path, Path]) -> dict[str, set[str]]:
    """Return the files of the wheel and the sdist, and the lines of the metadata."""
    wheel, sdist = distributions
    with zipfile.ZipFile(wheel) as of_wheel, tarfile.open(sdist) as of_sdist:
        (metadata,) = (name for name in of_wheel.namelist() if name.endswith("/METADATA"))
        return {
            "wheel": set(of_wheel.namelist()),
            "sdist": {name.partition("/")[2] for name in of_sdist.getnames()},
            "metadata": set(of_wheel.read(metadata).decode().splitlines()),
        }


def build_wheel(folder: Path, **environment: str) -> Path:
    """Build the wheel of a folder, and an sdist next to it."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    environment = {**os.environ, **environment}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@pytest.mark.parametrize("compiler", ["there", "not there"])
def test_a_wheel_has_the_compiled_module_where_there_is_a_compiler(
    compiler: str, tmp_path: Path
) -> None:
    pytest.importorskip("hatchling", reason="hatchling is needed to build the package")
    name = (sysconfig.get_config_var("CC") or "cc").split()[0]
    is_there = compiler == "there"
    if is_there and shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    for path in ("dparray/_array", "dparray/_functions"):
        shutil.copytree(ROOT / path, tmp_path / path, ignore=shutil.ignore_patterns("*.so"))
    (tmp_path / "dparray" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "kernels").mkdir()
    (tmp_path / ".ci").mkdir()
    beside = "dparray/_kernel/shims/numba_dpex.py"
    (tmp_path / beside).parent.mkdir(parents=True)
    for path in ("pyproject.toml", ".ci/hatch_build.py", "README.md", "LICENSE", beside):
        shutil.copy(ROOT / path, tmp_path / path)
    wheel = build_wheel(tmp_path, **({} if is_there else {"PATH": ""}))
    with zipfile.ZipFile(wheel) as files:
        assert ("dparray/_array/_fastpath.abi3.so" in files.namelist()) == is_there
    assert ("-cp310-abi3-linux" in wheel.name) == is_there
    assert ("-py3-none-any" in wheel.name) == (not is_there)


@pytest.mark.parametrize(
    ("tag", "is_there"),
    [
        *(("manylinux_2_28_aarch64", True), (None, True), ("macosx_11_0_arm64", False)),
        *(("win_amd64", False), ("musllinux_1_2_x86_64", False)),
    ],
)
def test_kernels_are_in_wheels_for_systems_whose_drivers_read_them(
    tag: str | None, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hatchling", reason="hatchling is needed to build the package")
    monkeypatch.setenv("DPARRAY_COMPILED", "0" if tag is None else "1")
    monkeypatch.setenv("DPARRAY_MODULE", "module.so")
    monkeypatch.setenv("DPARRAY_TAG", str(tag))
    data: dict[str, Any] = {"force_include": {}, "artifacts": []}
    of_ci("hatch_build").FastPath(str(ROOT), {}, None, None, "", "wheel").initialize("", data)
    assert data["artifacts"] == ["dparray/_compiler/kernels.store"] * is_there


LEFT_ALONE = {".git", ".venv", ".venv.lock", "build", "dist", "out"}


def files_of(top: str) -> set[str]:
    """Return the files below a folder that may be in Git, with their paths from the root."""
    passed = {"__pycache__", ".ipynb_checkpoints"}
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / top).rglob("*")
        if path.is_file() and not passed & set(path.parts) and path.suffix not in {".so", ".rst"}
    }


def test_a_wheel_has_every_file_of_the_package(built: dict[str, set[str]]) -> None:
    wanted = files_of("dparray") | {f"dparray/{name}" for name in files_of("kernels")}
    wanted = wanted - {"dparray/_kernel/shims/numba_dpex.py"} | {"numba_dpex.py"}
    found = {name for name in built["wheel"] if ".dist-info/" not in name}
    assert found == wanted
    assert "dparray/py.typed" in found


def test_the_folder_kernels_is_the_package_dparray_kernels() -> None:
    import dparray.kernels

    assert Path(dparray.kernels.__file__).parent == ROOT / "kernels"


def test_an_sdist_can_run_its_tests(built: dict[str, set[str]]) -> None:
    wanted = {"Makefile", "requirements.lock", "README.md", "ARCHITECTURE.md", "CHANGELOG.md"}
    for top in ("dparray", "kernels", "tests", "notebooks", ".ci"):
        wanted |= files_of(top)
    assert not wanted - built["sdist"]


RELATIVE = re.compile(r"\]\((?!https?:|#)|(?:src|srcset)=\"(?!https?:)")


def test_the_text_for_package_indexes_has_no_link_that_leads_nowhere(
    built: dict[str, set[str]],
) -> None:
    assert "Description-Content-Type: text/markdown" in built["metadata"]
    assert [line for line in built["metadata"] if RELATIVE.search(line)] == []
    assert any("compute follows data" in line for line in built["metadata"])


def test_the_text_for_package_indexes_installs_by_name(built: dict[str, set[str]]) -> None:
    commands = [line for line in built["metadata"] if "pip install" in line]
    named = re.compile(r"pip install (dparray[ `]|\"dparray\[\w+\]\")")
    assert len(commands) >= 3
    for line in commands:
        assert len(named.findall(line)) == line.count("pip install"), line
    assert not any("in a clone" in line for line in commands)


def of_ci(name: str) -> Any:
    """Return a module of the folder `.ci`."""
    file = ROOT / ".ci" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_links_of_readme_lead_to_the_source_once_it_has_an_address() -> None:
    pytest.importorskip("hatchling", reason="hatchling is needed to build the package")
    module = of_ci("hatch_build")
    readme = (ROOT / "README.md").read_text()
    text = module.description(readme, "https://host.example/dparray")
    assert RELATIVE.search(text) is None
    found = re.findall(r"https://host\.example/dparray/(?:blob|raw)/main/([^)\"# ]+)", text)
    assert len(found) > 10
    assert [name for name in found if not (ROOT / name).exists()] == []


def test_one_variable_sets_the_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hatchling", reason="hatchling is needed to build the package")
    hook = of_ci("hatch_build").Readme(str(ROOT), {})
    metadata: dict[str, Any] = {}
    monkeypatch.delenv("DPARRAY_REPOSITORY", raising=False)
    hook.update(metadata)
    assert metadata["urls"] == {}
    monkeypatch.setenv("DPARRAY_REPOSITORY", "https://host.example/group/dparray")
    hook.update(metadata)
    assert {*metadata["urls"]} == {"Source", "Documentation", "Issues", "Changelog"}
    for address in metadata["urls"].values():
        assert address.startswith("https://host.example/group/dparray")
        name = address.partition("/blob/main/")[2]
        assert not name or (ROOT / name).is_file()


def test_release_notes_are_the_section_of_the_version(tmp_path: Path) -> None:
    notes = of_ci("release_notes").notes
    assert "### Added" in notes(dp_version())
    (tmp_path / "dparray").mkdir()
    (tmp_path / "dparray" / "__init__.py").write_text('__version__ = "2.0"\n')
    text = "# Changelog\n\n## 2.0 (today)\n\n- new\n\n## 1.0 (then)\n\n- old\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    assert notes("2.0", tmp_path) == "- new"
    with pytest.raises(SystemExit, match=r"version 2\.0, not 1\.0"):
        notes("1.0", tmp_path)


def test_the_recipe_for_conda_names_the_file_of_the_release(tmp_path: Path) -> None:
    sdist = tmp_path / "dparray-1.2.3.tar.gz"
    sdist.write_bytes(b"files")
    recipe = (ROOT / ".github" / "conda" / "recipe.yaml").read_text()
    text = of_ci("conda_recipe").of_release(recipe, sdist, "https://host.example/dparray")
    assert '  version: "1.2.3"\n' in text
    address = "https://host.example/dparray/releases/download/v1.2.3/dparray-1.2.3.tar.gz"
    assert f"  url: {address}\n  sha256: {hashlib.sha256(b'files').hexdigest()}\n" in text
    here = of_ci("conda_recipe").of_release(recipe, sdist, None)
    assert f"  url: {sdist.as_uri()}\n" in here


_ENTRY_POINT = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib.metadata import entry_points
(found,) = entry_points(group="array_api", name="dparray")
namespace = found.load()
x = namespace.asarray([1.0, 2.0], dtype=namespace.float32)
assert x.__array_namespace__() is namespace
assert float(namespace.sum(x)) == 3
print(namespace.__file__)
"""


def test_the_entry_point_of_the_array_standard_loads_an_installed_package(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    with zipfile.ZipFile(distributions[0]) as wheel:
        wheel.extractall(tmp_path)
    command = [sys.executable, "-I", "-W", "ignore", "-c", _ENTRY_POINT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == tmp_path / "dparray" / "__init__.py"


def dp_version() -> str:
    text = (ROOT / "dparray" / "__init__.py").read_text()
    return re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)[0]


def test_the_version_is_the_same_everywhere() -> None:
    version = dp_version()
    assert importlib.metadata.version("dparray") == version
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1] == version


def test_installed_packages_have_what_they_require() -> None:
    missing = []
    for distribution in importlib.metadata.distributions():
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            try:
                version = importlib.metadata.version(requirement.name)
            except importlib.metadata.PackageNotFoundError:
                version = None
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                missing.append(f"{distribution.name} requires {text}, there is {version}")
    assert not missing, "\n".join(missing)


# --- the lock file ----------------------------------------------------------------------------


def applies(requirement: Requirement, python: str) -> bool:
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.7",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    return requirement.marker is None or requirement.marker.evaluate(environment)


def locked(python: str) -> dict[str, list[str]]:
    """Return the versions that the lock file installs with ``python``."""
    versions = defaultdict(list)
    for line in LOCK.replace("\\\n", " ").splitlines():
        text = line.partition("--hash")[0].strip()
        if not text or text.startswith(("#", "-")):
            continue
        requirement = Requirement(text)
        if applies(requirement, python):
            versions[canonicalize_name(requirement.name)].append(str(requirement.specifier))
    return versions


def declared() -> list[Requirement]:
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    texts = [*project["dependencies"], *(text for extra in extras for text in extra)]
    return [Requirement(text) for text in texts + PROJECT["build-system"]["requires"]]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_exact_version_of_each_package(python: str) -> None:
    versions = locked(python)
    assert len(versions) > 100
    wrong = {
        name: found
        for name, found in versions.items()
        if len(found) != 1 or not re.fullmatch(r"==[^*]+", found[0])
    }
    assert not wrong


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_satisfies_the_project(python: str) -> None:
    versions = locked(python)
    wrong = [
        f"{requirement}: locked {versions.get(canonicalize_name(requirement.name))}"
        for requirement in declared()
        if applies(requirement, python)
        and not any(
            requirement.specifier.contains(version.removeprefix("=="))
            for version in versions.get(canonicalize_name(requirement.name), ())
        )
    ]
    assert not wrong, "run `make lock`: " + "; ".join(wrong)


def test_every_entry_of_the_lock_has_hashes() -> None:
    entries = re.findall(r"^\w.*(?:\n {4}.*)*", LOCK, re.M)
    assert len(entries) > 100
    assert not [entry for entry in entries if "--hash=sha256:" not in entry]


def test_the_lock_names_no_host_and_no_path() -> None:
    text = re.sub(r"--hash=sha256:[0-9a-f]{64}", "", LOCK)
    assert not re.search(r"://|index|find-links|file:|^/|[ =]/", text, re.M)


# --- building .venv ---------------------------------------------------------------------------

# Imitate a Python interpreter, whose `-m venv` copies the script into the new environment.
FAKE_PYTHON = """\
#!{bash}
case "$1 $2" in
    "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
    "-m pip") [[ ! -e {folder}/fail ]] && echo "$*" >>{folder}/log ;;
    "-V "*) echo Python {version} ;;
    -c*version_info\\[:3\\]*) echo {version} ;;
    -c*) exit {status} ;;
esac
"""
TOOLS = ["bash", "cat", "cp", "dirname", "env", "flock", "ln", "mkdir", "rm", "sha256sum", "uname"]


class Checkout:
    """A folder with the build script, on a machine with only the interpreters that a test adds."""

    def __init__(self, parent: Path, name: str = "a checkout") -> None:
        self.parent = parent
        self.path = parent / name
        self.commands = parent / "all commands"
        self.log = self.commands / "log"
        (self.path / ".ci").mkdir(parents=True)
        self.commands.mkdir()
        shutil.copy(ROOT / ".ci/build-venv", self.path / ".ci/build-venv")
        (self.path / "requirements.lock").write_text("a==1\n")
        (self.path / "pyproject.toml").write_text("[project]\n")
        (self.path / "dparray/_array").mkdir(parents=True)
        (self.path / "dparray/_array/_fastpath.c").write_text("/* compiled by the install */\n")
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.commands / tool).symlink_to(found)

    def add_python(self, name: str, version: str, *, usable: bool = True) -> None:
        text = FAKE_PYTHON.format(
            bash=shutil.which("bash"),
            folder=f'"{self.commands}"',
            version=version,
            status=0 if usable else 1,
        )
        self.add_command(name, text)

    def add_command(self, name: str, text: str) -> None:
        path = self.commands / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def build(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.commands / "bash", self.path / ".ci/build-venv"],
            env={"PATH": str(self.commands), "HOME": str(self.parent)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def installs(self) -> list[str]:
        """Return what was installed since the last call, one line for each call of pip."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return ["lock" if "requirements.lock" in line else "project" for line in lines]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def build_well(checkout: Checkout) -> list[str]:
    result = checkout.build()
    assert result.returncode == 0, result.stderr
    return checkout.installs()


@pytest.mark.parametrize(("name", "version"), [("python3.10", "3.10.13"), ("python3", "3.11.7")])
def test_a_venv_is_built_once(checkout: Checkout, name: str, version: str) -> None:
    checkout.add_python(name, version)
    assert build_well(checkout) == ["lock", "project"]
    assert build_well(checkout) == []


def test_the_venv_is_in_the_checkout(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, "checkout")
    checkout.add_python("python3.11", "3.11.7")
    assert build_well(checkout) == ["lock", "project"]
    assert not (checkout.path / ".venv").is_symlink()


def test_the_venv_of_a_checkout_with_a_space_in_its_path_has_none(checkout: Checkout) -> None:
    checkout.add_python("python3.11", "3.11.7")
    build_well(checkout)
    assert " " in str(checkout.path)
    assert " " not in str((checkout.path / ".venv").resolve())


def test_a_home_with_a_space_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "a home").mkdir()
    checkout = Checkout(tmp_path / "a home")
    checkout.add_python("python3.11", "3.11.7")
    result = checkout.build()
    assert result.returncode == 1
    assert "does not work under a path with a space" in result.stderr


def test_a_python_of_pyenv_is_found(checkout: Checkout) -> None:
    checkout.add_python("fake", "3.10.13")
    checkout.add_python("python3", "3.9.1", usable=False)
    target = checkout.parent / ".pyenv/versions/3.10.13/bin/python"
    target.parent.mkdir(parents=True)
    shutil.move(checkout.commands / "fake", target)
    assert build_well(checkout) == ["lock", "project"]


def test_a_new_lock_builds_a_new_venv(checkout: Checkout) -> None:
    checkout.add_python("python3.11", "3.11.7")
    build_well(checkout)
    (checkout.path / ".venv/left-over").touch()
    (checkout.path / "requirements.lock").write_text("a==2\n")
    assert build_well(checkout) == ["lock", "project"]
    assert not (checkout.path / ".venv/left-over").exists()


def test_a_changed_project_is_installed_into_the_same_venv(checkout: Checkout) -> None:
    checkout.add_python("python3.11", "3.11.7")
    build_well(checkout)
    (checkout.path / "pyproject.toml").write_text("[project.scripts]\n")
    assert build_well(checkout) == ["project"]


def test_an_interrupted_build_is_started_again(checkout: Checkout) -> None:
    checkout.add_python("python3.11", "3.11.7")
    (checkout.commands / "fail").touch()
    assert checkout.build().returncode != 0
    assert (checkout.path / ".venv/bin/python").exists()
    (checkout.commands / "fail").unlink()
    assert build_well(checkout) == ["lock", "project"]


def test_a_checkout_that_moved_is_built_again(checkout: Checkout) -> None:
    checkout.add_python("python3.11", "3.11.7")
    build_well(checkout)
    checkout.path = checkout.path.rename(checkout.parent / "moved")
    assert build_well(checkout) == ["lock", "project"]


def test_another_python_version_raises_with_a_suggested_fix(checkout: Checkout) -> None:
    checkout.add_python("python3", "3.9.1", usable=False)
    result = checkout.build()
    assert result.returncode == 1
    assert "needs Python 3.10 to 3.14" in result.stderr
    assert "Found: python3 is 3.9.1." in result.stderr
    assert "pipx install uv" in result.stderr
    assert not (checkout.path / ".venv").exists()


def test_a_missing_python_is_reported(checkout: Checkout) -> None:
    result = checkout.build()
    assert result.returncode == 1
    assert "Found: no Python at all." in result.stderr


def test_a_python_without_venv_is_told_the_package(checkout: Checkout) -> None:
    checkout.add_python("python3.11", "3.11.2", usable=False)
    result = checkout.build()
    assert result.returncode == 1
    assert "apt install python3.11-venv" in result.stderr


def fake_uv(checkout: Checkout, install: str) -> None:
    checkout.add_python("fake", "3.11.7")
    checkout.add_command(
        "uv",
        textwrap.dedent(f"""\
            #!{shutil.which("bash")}
            case "$1" in
                venv) mkdir -p "${{!#}}/bin"; cp "{checkout.commands}/fake" "${{!#}}/bin/python" ;;
                pip) {install} ;;
            esac
            """),
    )


def test_uv_provides_the_python_that_is_missing(checkout: Checkout) -> None:
    fake_uv(checkout, install=f'echo "$*" >>"{checkout.log}"')
    assert build_well(checkout) == ["lock", "project"]


def test_pip_installs_where_uv_cannot(checkout: Checkout) -> None:
    checkout.add_python("python3.11", "3.11.7")
    fake_uv(checkout, install="exit 2")
    result = checkout.build()
    assert result.returncode == 0
    assert "trying pip" in result.stderr
    assert checkout.installs() == ["lock", "project"]


# --- start ------------------------------------------------------------------------------------


def run_python(source: str) -> str:
    command = [sys.executable, "-c", source]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_importing_dparray_loads_no_compiler() -> None:
    compilers = {"numba", "llvmlite"}
    loaded = run_python(f"import sys, dparray; print(sorted({compilers} & set(sys.modules)))")
    assert loaded == "[]"


def test_importing_dparray_takes_less_than_a_second_and_a_half() -> None:
    # CPU time of the importing thread, which does not depend on the load of the machine.
    source = "import time, dparray; print(time.thread_time())"
    assert min(float(run_python(source)) for _ in range(2)) < 1.5
