"""Imports go down the layers only, and SYCL packages are known to the last few modules.

The table is the design's. A new module fails here until it has a place in it; an import that
goes up has to be listed with its reason.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Lowest first. A module imports from the rows above its own; modules of one row do not know each
# other. A folder (kernels, doctor, demo) has one place for all its modules.
ROWS: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (layer, frozenset(names.split()))
    for layer, names in (
        ("L0", "_absent exceptions _half _hooks _integer_power _result_kind _startup"),
        ("L0", "_keywords"),
        ("L0", "config _dtypes _graph _interrupt _layout _ops _pictures _progress _reduction_ops"),
        ("L1", "_boundary _expr"),
        ("L1", "_cache _kernel_key _runtime device _simulated_numbers"),
        ("L1", "_order _submission"),
        ("L1", "_compile_errors _device_binary _placement kernel_api _simulated_memory"),
        ("L2", "memory kernels"),
        ("L2", "_usm"),
        ("L2", "_launcher"),
        ("L2", "_compiler _codegen"),
        ("L2", "_bounds"),
        ("L2", "_device_exceptions"),
        ("L2", "_device_atomics _device_bounds _device_integers _device_vectors"),
        ("L2", "_device_code"),
        ("L2", "_codegen_reduction"),
        ("L3", "_schedule"),
        ("L3", "_tier_host _tier_fused _tier_library"),
        ("L3", "_replay"),
        ("L3", "_evaluate"),
        ("L3", "_sample"),
        ("L4", "kernel"),
        ("L4", "_array"),
        ("L5", "_scans _ufunc_options"),
        ("L5", "_selection"),
        ("L5", "_control _creation _elementwise _indexing _reductions"),
        ("L5", "_manipulation"),
        ("L5", "algorithms"),
        ("L5", "_products _searching _sets _sorting"),
        ("L5", "_calculus _grids _info _io _protocols _signal _statistics fft lib linalg"),
        ("L5", "_editing _numeric"),
        ("L5", "_assembly _polynomials _ufunc_methods"),
        ("L6", "explain simulate"),
        ("L6", "_kernel_makers random testing"),
        ("L6", "_magics _numba_dpex"),
        ("L6", "notebook"),
        ("L6", "__init__"),
        ("L6", "demo doctor info _cache_command"),
        ("L6", "bench"),
        ("L6", "cli"),
        ("L6", "__main__"),
    )
)

# (importer, imported): why it may go up.
UPWARD = {
    ("_runtime", "_numba_dpex"): "numba-dpex's launchers answer with ours, looked up when called",
    ("_runtime", "_device_code"): "adds our device functions to numba-dpex, once that is loaded",
    ("simulate", "__init__"): "reads results back through the public asarray, only when it runs",
}

# Who may import a package of the stack when the program runs. A folder stands for its modules.
USERS = {
    "dpctl": "_placement _runtime _device_binary _order _submission device memory _usm "
    "_compiler _launcher kernel doctor info bench",
    "dpnp": "exceptions _runtime _usm _tier_library bench",
    "numba": "_compiler _device_atomics _device_bounds _device_code _device_exceptions "
    "_device_integers _device_vectors _numba_dpex _runtime bench doctor",
    "numba_dpex": "_compiler _device_atomics _device_bounds _device_code _device_exceptions "
    "_device_integers _device_vectors _numba_dpex _runtime doctor",
    "llvmlite": "_device_atomics _device_bounds _device_code _device_exceptions _device_vectors "
    "_runtime bench doctor",
}

# The host half: imports, and can be tested, where no package of the stack is installed.
HOST_HALF = [
    *("exceptions", "_hooks", "_startup", "config", "_dtypes", "_layout", "_ops"),
    "_reduction_ops",
    *("_expr", "_codegen", "_codegen_reduction", "_schedule"),
    *("_cache", "_compile_errors", "_kernel_key", "_simulated_numbers", "_simulated_memory"),
]


class Import(NamedTuple):
    """An import statement, or a call that imports."""

    target: str  # dotted, as far as the text tells
    line: int
    for_types: bool  # under `if TYPE_CHECKING:`, so never executed


def imports_of(source: str, package: str) -> Iterator[Import]:
    """Every import in ``source``, inside functions too.

    ``from a import b`` gives ``a.b``, since ``b`` may be a module. ``package`` is what relative
    imports start from.
    """
    tree = ast.parse(source)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        for target in _targets(node, package):
            yield Import(target, node.lineno, id(node) in typing_only)


def _targets(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parents, base] if base else parents)
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and node.args:
        function = ast.unparse(node.func).rpartition(".")[2]
        name = node.args[0]
        if function in {"import_module", "__import__"} and isinstance(name, ast.Constant):
            yield str(name.value)


def modules() -> dict[str, list[Path]]:
    """The files behind each name of the table."""
    found: dict[str, list[Path]] = {"kernels": sorted((ROOT / "kernels").rglob("*.py"))}
    for path in sorted((ROOT / "dparray").rglob("*.py")):
        place = path.relative_to(ROOT / "dparray").parts[0].removesuffix(".py")
        found.setdefault(place, []).append(path)
    return found


#: Stubs with no module beside them say of what type something is, and nothing runs.
STUBS_ALONE = tuple(
    f"dparray.{stub.stem}."
    for stub in (ROOT / "dparray").glob("*.pyi")
    if not stub.with_suffix(".py").exists()
)


def place_of(target: str, known: set[str]) -> str | None:
    """The name in the table that a dotted target leads to, or None for other packages."""
    package, _, rest = target.partition(".")
    if package == "kernels":
        return "kernels"
    if package != "dparray":
        return None
    name = rest.partition(".")[0]
    return name if name in known else "__init__"


def imports_of_module(name: str) -> Iterator[tuple[Path, Import]]:
    for path in modules()[name]:
        folder = path.parent.relative_to(ROOT).parts
        package = ".".join(("dparray", *folder) if folder[0] == "kernels" else folder)
        for found in imports_of(path.read_text(), package):
            if not (found.for_types and found.target.startswith(STUBS_ALONE)):
                yield path, found


HEIGHT = {name: height for height, (_, names) in enumerate(ROWS) for name in names}
MODULES = sorted(modules())


def goes_up(importer: str, imported: str, heights: dict[str, int] = HEIGHT) -> bool:
    return importer != imported and heights[imported] >= heights[importer]


def test_every_module_has_a_place_in_the_table() -> None:
    without = set(MODULES) - set(HEIGHT)
    assert not without, f"give {sorted(without)} a row in ROWS, as low as its imports allow"


def test_every_place_in_the_table_has_a_module() -> None:
    assert not set(HEIGHT) - set(MODULES)


@pytest.mark.parametrize("name", sorted(set(MODULES) & set(HEIGHT)))
def test_a_module_imports_only_from_rows_above_its_own(name: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{found.line} imports {found.target}"
        for path, found in imports_of_module(name)
        if (place := place_of(found.target, set(HEIGHT) | set(MODULES))) in HEIGHT
        and goes_up(name, place)
        and (name, place) not in UPWARD
    ]
    assert not wrong, "\n".join(wrong)


def test_every_listed_upward_import_is_one() -> None:
    present = {
        (name, place_of(found.target, set(HEIGHT)))
        for name in MODULES
        for _, found in imports_of_module(name)
    }
    assert UPWARD.keys() <= present
    assert all(goes_up(*pair) for pair in UPWARD)


@pytest.mark.parametrize("package", USERS)
def test_a_package_of_the_stack_is_imported_only_where_the_table_says(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{found.line} imports {found.target}"
        for name in MODULES
        if name not in USERS[package].split()
        for path, found in imports_of_module(name)
        if found.target.partition(".")[0] == package and not found.for_types
    ]
    assert not wrong, "\n".join(wrong)


def test_kernels_know_the_kernel_language_and_no_more() -> None:
    allowed = {"__future__", "collections", "functools", "math", "numpy", "typing"}
    wrong = [
        f"{path.relative_to(ROOT)}:{found.line} imports {found.target}"
        for path, found in imports_of_module("kernels")
        if found.target.partition(".")[0] not in allowed
        and not found.target.startswith(("dparray.kernel_api", "dparray.kernels"))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_submission_of_work_is_called_in_one_module() -> None:
    nodes = [
        (name, node)
        for name in MODULES
        for path in modules()[name]
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    methods = {"submit", "submit_async"}  # of dpctl's queues
    assert not {
        name for name, node in nodes if isinstance(node, ast.Attribute) and node.attr in methods
    }
    assert {
        name for name, node in nodes if isinstance(node, ast.alias) and node.name == "submit"
    } == {"_launcher"}


def test_the_host_half_imports_without_the_stack() -> None:
    script = f"""
import sys, types
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(USERS)!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
package = types.ModuleType("dparray")  # its __init__ gathers all layers
package.__path__ = [{str(ROOT / "dparray")!r}]
sys.modules["dparray"] = package
for name in {HOST_HALF!r}:
    __import__("dparray." + name)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_reader_finds_every_kind_of_import() -> None:
    source = """
import a.b
from c import d, e
from . import f
from .g import h
from ..kernels import k
if TYPE_CHECKING:
    import types_only
def function():
    import inside
    importlib.import_module("by.name")
"""
    found = list(imports_of(source, "dparray.cli.demo"))
    assert [each.target for each in sorted(found, key=lambda each: each.line)] == [
        "a.b", "c.d", "c.e", "dparray.cli.demo.f", "dparray.cli.demo.g.h", "dparray.kernels.k",
        "types_only", "inside", "by.name",
    ]  # fmt: skip
    assert [each.target for each in found if each.for_types] == ["types_only"]


def test_a_target_leads_to_its_place() -> None:
    known = {"_ops", "kernels", "__init__"}
    assert place_of("dparray._graph.ops.OPS", known) == "_ops"
    assert place_of("dparray.kernels.scan", known) == "kernels"
    assert place_of("dparray.asarray", known) == "__init__"
    assert place_of("dparray", known) == "__init__"
    assert place_of("numpy.linalg", known) is None


def test_an_import_from_the_same_row_or_higher_goes_up() -> None:
    heights = {"low": 0, "beside": 0, "high": 1}
    assert goes_up("low", "high", heights)
    assert goes_up("low", "beside", heights)
    assert not goes_up("high", "low", heights)
    assert not goes_up("low", "low", heights)
