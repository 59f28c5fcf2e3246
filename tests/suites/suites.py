"""The test suites of other projects: where they are found, and how dparray replaces the library.

A suite is split into pieces, each of which runs in its own process. This bounds memory, and a crash
ends only one piece.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
VERSION = "2025.12"  # version of the Array API standard that dparray states


class Missing(Exception):
    """A suite is not available; the message says how to get it."""


class Piece(NamedTuple):
    """The tests that one process runs.

    Attributes:
        name: shown while the piece runs.
        arguments: the arguments of pytest.
    """

    name: str
    arguments: list[str]


class Suite(NamedTuple):
    """A suite that was found.

    Attributes:
        title: with the version, for the table.
        folder: where its processes run.
        pieces: the pieces of the suite.
        environment: variables for all of them.
    """

    title: str
    folder: Path
    pieces: list[Piece]
    environment: dict[str, str]


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise Missing(f"{name} is not installed here")
    return Path(spec.origin).parent


# --- dpnp -----------------------------------------------------------------------------------------

# dpnp's imports in its tests, and their replacements. Imports from dpnp's inner modules are not
# replaced.
_OURS = r"(\.(?:exceptions|dpnp_array|dpnp_utils|random|linalg|fft))?"
_IMPORTS = [
    (r"\bdpnp\.tests\b", "dpnp_tests"),
    (r"^(\s*)import dpnp(\.(?:random|linalg|fft))?\s*$", r"\1import in_place_of_dpnp as dpnp"),
    (r"^(\s*)import dpnp as ", r"\1import in_place_of_dpnp as "),
    (rf"^(\s*)from dpnp{_OURS} import", r"\1from in_place_of_dpnp\2 import"),
]


def dpnp(work: Path) -> Suite:
    """dpnp's tests of its functions, with its copy of CuPy's.

    They are copied from the installed package with changed imports. The tests of ``dpnp.tensor``
    are left out: it is the layer below and has other names and types.
    """
    source = _package("dpnp") / "tests"
    if not source.is_dir():
        raise Missing("this dpnp was installed without its tests")
    tests = work / "dpnp_tests"
    shutil.rmtree(tests, ignore_errors=True)
    shutil.copytree(source, tests, ignore=shutil.ignore_patterns("__pycache__", "tensor"))
    for file in tests.rglob("*.py"):
        text = file.read_text()
        for pattern, replacement in _IMPORTS:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        file.write_text(text)
    found = [*sorted(tests.glob("test_*.py"))]
    found += sorted(path for path in (tests / "third_party" / "cupy").glob("*_tests"))
    names = [str(path.relative_to(work)) for path in found]
    return Suite(
        f"dpnp {importlib.metadata.version('dpnp')}, with its copy of CuPy's",
        work,
        [Piece(name, [name]) for name in names],
        {},
    )


# --- SciPy and scikit-learn -----------------------------------------------------------------------


def _files_that_name(package: Path, word: str) -> list[Path]:
    pattern = re.compile(rf"\b{word}\b")
    return sorted(file for file in package.rglob("test_*.py") if pattern.search(file.read_text()))


def scipy(work: Path) -> Suite:
    """Return SciPy's tests that run on each library of the Array API standard."""
    package = _package("scipy")
    files = [
        file for file in _files_that_name(package, "xp") if not {"_lib"} & set(file.parts[-3:-2])
    ]
    folders = sorted({file.parent.parent.relative_to(package) for file in files})
    return Suite(
        f"SciPy {importlib.metadata.version('scipy')}, tests of the Array API",
        work,
        [
            Piece(
                str(folder),
                [
                    *(str(file) for file in files if file.parent.parent == package / folder),
                    *("-m", "array_api_backends", f"--rootdir={package.parent}"),
                ],
            )
            for folder in folders
        ],
        {
            "SCIPY_ARRAY_API": '["array_api_strict"]',
            "DPARRAY_SUITES_SUBSTITUTE": "among_scipys_backends",
        },
    )


def scikit_learn(work: Path) -> Suite:
    """Return scikit-learn's tests that run on each library of the Array API standard."""
    package = _package("sklearn")
    files = _files_that_name(package, r"\w*(array_api|yield_namespace)\w*")
    return Suite(
        f"scikit-learn {importlib.metadata.version('scikit-learn')}, tests of the Array API",
        work,
        [
            Piece(
                str(file.relative_to(package)),
                [str(file), "-k", "dparray", f"--rootdir={package.parent}"],
            )
            for file in files
        ],
        {"SCIPY_ARRAY_API": "1", "DPARRAY_SUITES_SUBSTITUTE": "among_scikit_learns_namespaces"},
    )


# --- the standard's own suite ---------------------------------------------------------------------

CHECKOUT = "DPARRAY_ARRAY_API_TESTS"


def array_api(work: Path) -> Suite:
    """Return the test suite of the standard, with 100 examples for each test."""
    if CHECKOUT not in os.environ:
        raise Missing(
            "data-apis/array-api-tests is in no package: clone it with its submodule (git clone "
            f"--recurse-submodules), and name the folder in {CHECKOUT}"
        )
    checkout = Path(os.environ[CHECKOUT]).resolve()
    tests = checkout / "array_api_tests"
    if not tests.is_dir() or not any((checkout / "array-api").glob("s*")):
        raise Missing(f"{checkout} ({CHECKOUT}) is not a checkout with the submodule array-api")
    files = sorted(file.relative_to(checkout) for file in tests.glob("test_*.py"))
    options = ["--max-examples=100", "--disable-deadline"]
    return Suite(
        f"array-api-tests, {VERSION}, 100 examples",
        checkout,
        [Piece(file.name, [str(file), *options]) for file in files],
        {"ARRAY_API_TESTS_MODULE": "dparray", "ARRAY_API_TESTS_VERSION": VERSION},
    )


# --- numba-dpex -----------------------------------------------------------------------------------

PACKAGE = "NUMBA_DPEX_PACKAGE"
_SKIP = re.compile(r"^@pytest\.mark\.skip\(.*\)\n", re.MULTILINE)


def _numba_dpex(work: Path) -> Path:
    """Return the folder of numba-dpex's package, fetched without dependencies and not installed."""
    if PACKAGE in os.environ:
        return Path(os.environ[PACKAGE]).resolve()
    target = work / "package"
    if not (target / "numba_dpex").is_dir():
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"),
            *("--target", str(target), "--only-binary", ":all:", "--python-version", "3.11"),
            "numba-dpex==0.23.*",
        ]
        if subprocess.run(command, check=False).returncode:
            raise Missing(f"numba-dpex 0.23 cannot be fetched; name a folder of it in {PACKAGE}")
    return target / "numba_dpex"


def dpjit(work: Path) -> Suite:
    """Return numba-dpex's tests of ``dpjit`` and ``prange``, and its examples, with ``dp.jit``.

    Tests that are marked as skipped run, too.
    """
    package = _numba_dpex(work)
    tests = work / "numba_dpex" / "tests"
    shutil.rmtree(tests, ignore_errors=True)
    shutil.copytree(package / "tests", tests, ignore=shutil.ignore_patterns("__pycache__"))
    (tests.parent / "__init__.py").touch()  # pytest names modules by the folders above them
    for file in tests.rglob("*.py"):
        file.write_text(_SKIP.sub("", file.read_text()))
    examples = sorted((package / "examples" / "dpjit").glob("*.py"))
    calls = "".join(
        f"\n\ndef test_{file.stem}():\n    runpy.run_path({str(file)!r}, run_name='__main__')\n"
        for file in examples
    )
    (tests / "test_dpjit_examples.py").write_text(f"import runpy\n{calls}")
    files = [*sorted((tests / "dpjit_tests").rglob("test_*.py"))]
    files += [tests / "test_prange.py", tests / "test_dpjit_examples.py"]
    options = ["-W", "ignore", "-p", "in_place_of_numba_dpex"]
    return Suite(
        "numba-dpex 0.23, tests of dpjit",
        work,
        [Piece(file.stem, [str(file.relative_to(work)), *options]) for file in files],
        {
            "DPARRAY_SUITES_SUBSTITUTE": "in_place_of_numba_dpex",
            PACKAGE: str(tests.parent),
            "NUMBA_DPEX_FUNCTIONS": str(package / "core" / "typing" / "dpnpdecl.py"),
        },
    )


# --- Keras ----------------------------------------------------------------------------------------

KERAS = "DPARRAY_KERAS"


def keras(work: Path) -> Suite:
    """Return Keras' tests of its operations and layers, with dparray as the backend."""
    if KERAS not in os.environ:
        raise Missing(
            "Keras' package has no tests: clone keras-team/keras, check out the tag of the "
            f"version in requirements.lock, and name the folder in {KERAS}"
        )
    checkout = Path(os.environ[KERAS]).resolve()
    files = [
        file.relative_to(checkout)
        for folder in ("ops", "layers")
        for file in sorted((checkout / "keras" / "src" / folder).rglob("*_test.py"))
    ]
    if not files:
        raise Missing(f"{checkout} ({KERAS}) is not a checkout of Keras")
    version = (checkout / "keras" / "src" / "version.py").read_text()
    (number,) = re.findall(r'^__version__ = "(.*)"', version, flags=re.MULTILINE)
    return Suite(
        f"Keras {number}, tests of operations and layers",
        checkout,
        [
            Piece(
                str(folder),
                [
                    *(str(file) for file in files if file.parent == folder),
                    "--continue-on-collection-errors",  # for files that import missing packages
                ],
            )
            for folder in sorted({file.parent for file in files})
        ],
        {"DPARRAY_SUITES_SUBSTITUTE": "in_place_of_keras_numpy", "KERAS_BACKEND": "numpy"},
    )


# --- libraries that take arrays -------------------------------------------------------------------


def libraries(work: Path) -> Suite:
    """Return dparray's small tests of libraries that take arrays of any kind."""
    tests = HERE.parent / "libraries"
    files = sorted(tests.glob("test_*.py"))
    return Suite(
        "einops, opt_einsum, xarray, Dask, array-api-extra, array-api-compat",
        HERE.parents[1],
        [Piece("libraries", list(map(str, files)))],
        {},
    )


SUITES: dict[str, Callable[[Path], Suite]] = {
    "dpnp": dpnp,
    "scipy": scipy,
    "scikit-learn": scikit_learn,
    "array-api": array_api,
    "dpjit": dpjit,
    "keras": keras,
    "libraries": libraries,
}
