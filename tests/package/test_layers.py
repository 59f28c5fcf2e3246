"""Imports go only to lower layers, and external packages are imported only by certain folders.

The folders follow the execution of an operation, lowest first: a row imports from itself and from
the rows above it in the list. No import goes up, and there are no circular imports.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.static

ROOT = Path(__file__).resolve().parents[2]

# Lowest first. Names are folders and single modules of the package.
ROWS: tuple[tuple[str, str], ...] = (
    ("ground", "_imports exceptions _hooks _satellites _system"),
    ("driver", "_driver"),
    ("runtime", "_log config device _dtypes _layout _type_keys _placement _runtime"),
    ("memory", "memory"),
    ("graph", "_graph"),
    ("ir", "_ir"),
    ("language", "_language kernel_api kernels"),
    ("codegen", "_codegen"),
    ("compiler", "_compiler"),
    ("evaluate", "_evaluate"),
    ("array", "_array"),
    ("kernels", "_kernel algorithms"),
    ("functions", "_functions fft linalg random special lib"),
    ("compiled", "_jit"),
    ("satellites", "_scheduling tilelang plaidml onnx sharding dask gradients"),
    ("tools", "_simulator _explain _notebook _profile testing examples __init__ cli __main__"),
)

# The maximum number of lines (.py, .c, .pyi) of each row: 3 % above the sizes of 2026-11-28. A new
# mechanism needs a second user and 10 % in a whole program; in a full row, something is removed
# first. A commit that raises a number says what was removed in exchange.
BUDGETS = {
    "ground": 1_150,
    "driver": 7_730,
    "runtime": 4_390,
    "memory": 4_075,
    "graph": 2_218,
    "ir": 5_214,
    "language": 18_650,
    "codegen": 4_150,
    "compiler": 8_302,
    "evaluate": 5_116,
    "array": 7_795,
    "kernels": 5_410,
    "functions": 22_676,
    "compiled": 7_040,
    "satellites": 26_984,
    "tools": 10_182,
}

# The maximum of all rows together, which leaves less room than the rows do: of the package, of its
# core (without satellites, drivers, back ends and tools) and of the satellites. Wanted are 112,000,
# 70,000 and 24,000. A commit that raises a number says what was removed in exchange.
TOTALS = {"package": 141_040, "core": 90_625, "satellites": 26_984}

# The same for the tests.
BUDGET_OF_TESTS = 101_760

# Satellites in the folders of the core.
SATELLITES = (
    *("dparray._functions.dask_registrations", "dparray._kernel.shims.numba_dpex"),
    *("dparray._kernel.numba_dpex_calls", "dparray._kernel.numba_dpex_module"),
)

# Folders that may import an external package at run time.
USERS = {
    "dpctl": "_driver memory",
    "cuda": "_driver",
    "dpnp": "_driver memory",
    "numba": "_kernel cli",
    "llvmlite": "_driver _compiler _jit cli",
}

# The host half: it can be imported and tested without any of the external packages.
HOST_HALF = [
    *("exceptions", "_hooks", "config", "_dtypes", "_layout", "_type_keys", "_driver.marks"),
    *("_runtime.startup", "_graph.node", "_graph.ops", "_graph.reductions"),
    *("_ir.adjoint", "_ir.facts", "_ir.interpreter", "_ir.passes", "_ir.text", "_ir.verify"),
    *("_codegen.elementwise", "_codegen.reduction_text", "_evaluate.schedule"),
    *("_language.source", "_language.references", "_language.scalar_functions"),
    *("_compiler.cache", "_compiler.llvm", "_compiler.key", "_scheduling.heft"),
    *("_simulator.simulated_numbers", "_simulator.memory"),
]


class Import(NamedTuple):
    """An import statement, or a call that imports."""

    target: str  # dotted, as far as the text shows it
    line: int
    for_types: bool  # under `if TYPE_CHECKING:`, so never executed


def imports_of(source: str, package: str) -> Iterator[Import]:
    """Yield every import in ``source``, also inside functions.

    ``from a import b`` gives ``a.b``, since ``b`` may be a module. Relative imports start from
    ``package``.
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


def module_name(path: Path) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "kernels":
        parts = ("dparray", *parts)
    return ".".join(parts).removesuffix(".__init__")


MODULES: dict[str, Path] = {
    module_name(path): path
    for top in ("dparray", "kernels")
    for path in sorted((ROOT / top).rglob("*.py"))
}
#: Stubs without a module declare types only, and are never executed.
STUBS_ALONE = tuple(
    f"{module_name(stub)}."
    for stub in (ROOT / "dparray").rglob("*.pyi")
    if not stub.with_suffix(".py").exists()
)
HEIGHT = {name: height for height, (_, names) in enumerate(ROWS) for name in names.split()}


def place_of(module: str) -> str:
    """Return the name in the table that stands for a module."""
    return module.split(".")[1] if "." in module else "__init__"


def module_of(target: str, modules: dict[str, Path] = MODULES) -> str | None:
    """Return the dparray module that a dotted target leads to, or None for other packages."""
    target = f"dparray.{target}" if target.partition(".")[0] == "kernels" else target
    while target and target not in modules:
        target = target.rpartition(".")[0]
    return target or None


@functools.cache
def imports_of_module(module: str) -> tuple[Import, ...]:
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(
        found
        for found in imports_of(path.read_text(), package)
        if not (found.for_types and found.target.startswith(STUBS_ALONE))
    )


def goes_up(importer: str, imported: str, heights: dict[str, int] = HEIGHT) -> bool:
    return heights[place_of(imported)] > heights[place_of(importer)]


def test_every_module_has_a_row() -> None:
    without = {place_of(name) for name in MODULES} - set(HEIGHT)
    assert not without, f"give {sorted(without)} a row in ROWS, as low as its imports allow"


def lines_of(row: str) -> int:
    """Count the lines of a row's files."""
    members = dict(ROWS)[row].split()
    return sum(
        len(path.read_text().splitlines())
        for top in ("dparray", "kernels")
        for path in (ROOT / top).rglob("*")
        if path.suffix in (".py", ".c", ".pyi") and place_of(module_name(path)) in members
    )


@pytest.mark.parametrize("row", BUDGETS)
def test_a_row_stays_within_its_budget(row: str) -> None:
    assert lines_of(row) <= BUDGETS[row], f"{row} has {lines_of(row)} lines, more than its budget"


@pytest.mark.parametrize("part", TOTALS)
def test_the_whole_stays_within_its_total(part: str) -> None:
    package = sum(map(lines_of, BUDGETS))
    back_ends = (ROOT / "dparray" / "_compiler" / "back_ends").rglob("*.py")
    outside = sum(map(lines_of, ("satellites", "driver", "tools")))
    outside += sum(len(path.read_text().splitlines()) for path in back_ends)
    lines = {
        "package": package,
        "core": package - outside,
        "satellites": lines_of("satellites"),
    }[part]
    assert lines <= TOTALS[part], f"{part} has {lines:,} lines, more than its total"


def test_the_tests_stay_within_their_budget() -> None:
    files = (ROOT / "tests").rglob("*.py")
    assert sum(len(path.read_text().splitlines()) for path in files) <= BUDGET_OF_TESTS


def test_every_row_has_a_budget() -> None:
    assert BUDGETS.keys() == dict(ROWS).keys()
    counted = sum(map(lines_of, BUDGETS))
    files = [path for top in ("dparray", "kernels") for path in (ROOT / top).rglob("*")]
    files = [path for path in files if path.suffix in (".py", ".c", ".pyi")]
    assert counted == sum(len(path.read_text().splitlines()) for path in files)


def test_the_map_shows_the_same_rows() -> None:
    """``ARCHITECTURE.md`` draws the rows upside down, with the ground last."""
    picture = (ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    rows = re.split(r"^ *\d+ (?=[a-z])", picture, flags=re.MULTILINE)[1:]
    for (name, members), row in zip(ROWS, reversed(rows), strict=True):
        shown, *words = re.findall(r"[\w]+", row)
        assert shown == name, row
        assert not set(members.split()) - {"__init__", "__main__"} - set(words), row


FOLDERS = [name for name, path in MODULES.items() if path.name == "__init__.py"][1:]
STATEMENT = re.compile(r"\bIn: .+ Out: .+ Imports: (?:rows up to ``(\w+)``|no other row)(.*)")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_states_its_input_its_output_and_its_imports(folder: str) -> None:
    """The highest row that it imports, and the packages besides NumPy."""
    text = ast.get_docstring(ast.parse(MODULES[folder].read_text())) or ""
    statement = STATEMENT.search(" ".join(text.split()))
    if statement is None:  # parts of the commands, of the device code, of rules and of PlaidML
        assert re.match(r"dparray\.(?:cli|kernels|plaidml|_compiler.back_ends.spirv)\.", folder)
        return
    found = [
        (imported, module_of(imported.target))
        for module in MODULES
        if f"{module}.".startswith(f"{folder}.")
        for imported in imports_of_module(module)
    ]
    others = {name for _, name in found if name and not f"{name}.".startswith(f"{folder}.")}
    highest = max((HEIGHT[place_of(name)] for name in others), default=None)
    assert statement[1] == (None if highest is None else ROWS[highest][0])
    packages = {
        imported.target.partition(".")[0]
        for imported, name in found
        if name is None and not imported.for_types
    }
    named = set(re.findall(r"``(\w+)``", statement[2]))
    assert not packages - sys.stdlib_module_names - {"numpy"} - named


def test_every_name_in_the_rows_has_a_module() -> None:
    assert not set(HEIGHT) - {place_of(name) for name in MODULES}


@pytest.mark.parametrize("name", sorted(HEIGHT))
def test_a_folder_imports_only_from_its_own_row_and_lower_ones(name: str) -> None:
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
        for module in MODULES
        if place_of(module) == name
        for found in imports_of_module(module)
        if (imported := module_of(found.target)) is not None and goes_up(module, imported)
    ]
    assert not wrong, "\n".join(wrong)


def is_satellite(module: str) -> bool:
    return place_of(module) in dict(ROWS)["satellites"].split() or module in SATELLITES


def test_the_core_imports_no_satellite() -> None:
    """Its hooks for satellites are in `_satellites.py`."""
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
        for module in MODULES
        if not is_satellite(module)
        for found in imports_of_module(module)
        if not found.for_types
        and (imported := module_of(found.target)) is not None
        and is_satellite(imported)
    ]
    assert not wrong, "\n".join(wrong)


def test_one_file_of_the_core_names_the_modules_of_satellites() -> None:
    named = {
        (module, node.value)
        for module, path in MODULES.items()
        if not is_satellite(module)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_satellite(node.value.rstrip(":")) and node.value.rstrip(":") in MODULES
    }
    assert {module for module, _ in named} == {"dparray._satellites"}, named
    providers = [name for _, name in named if not name.endswith(":")]
    assert "dparray.tilelang.sums" in providers


def test_no_files_import_each_other_in_a_circle() -> None:
    arrows = {
        module: {
            imported
            for found in imports_of_module(module)
            if (imported := module_of(found.target)) not in (None, module)
        }
        for module in MODULES
    }
    # A file without remaining imports, or without remaining importers, is not part of a circle.
    while True:
        wanted = set().union(*arrows.values())
        free = {name for name, to in arrows.items() if not to or name not in wanted}
        if not free:
            break
        arrows = {name: to - free for name, to in arrows.items() if name not in free}
    assert not arrows, "\n".join(f"{name} -> {sorted(to)}" for name, to in arrows.items())


@pytest.mark.parametrize("package", USERS)
def test_a_package_of_the_stack_is_imported_only_where_the_table_says(package: str) -> None:
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
        for module in MODULES
        if place_of(module) not in USERS[package].split()
        for found in imports_of_module(module)
        if found.target.partition(".")[0] == package and not found.for_types
    ]
    assert not wrong, "\n".join(wrong)


def test_a_drivers_folder_is_imported_by_name_alone() -> None:
    """`_driver/__init__.py` loads a driver at its first use; drivers do not import each other."""
    folders = {
        path.name
        for path in (ROOT / "dparray" / "_driver").iterdir()
        if (path / "driver.py").exists()
    }
    assert "sycl" in folders
    wrong = []
    for module in MODULES:
        for found in imports_of_module(module):
            for folder in folders:
                inside = f"dparray._driver.{folder}."
                if found.target.startswith(inside) and not f"{module}.".startswith(inside):
                    wrong.append(
                        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
                    )
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("packages", "allowed"),
    [
        (("dpctl", "dpnp"), ("dparray._driver.sycl.", "dparray.memory.libraries.dpnp")),
        (("cuda",), ("dparray._driver.cuda.",)),
    ],
)
def test_packages_of_drivers_are_imported_in_their_places_alone(
    packages: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
        for module in MODULES
        if not module.startswith(allowed)
        for found in imports_of_module(module)
        if found.target.partition(".")[0] in packages and not found.for_types
    ]
    assert not wrong, "\n".join(wrong)


def test_numba_is_imported_for_programs_of_numba_dpex_alone() -> None:
    """`_kernel/numba_*.py` stand in for numba-dpex, which is used with Numba's names."""
    allowed = ("_kernel.numba_", "cli.")
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
        for module in MODULES
        if not module.startswith(tuple(f"dparray.{name}" for name in allowed))
        for found in imports_of_module(module)
        if found.target.partition(".")[0] == "numba" and not found.for_types
    ]
    assert not wrong, "\n".join(wrong)


def test_a_back_end_is_imported_by_its_own_files_alone() -> None:
    """`_compiler/targets.py` loads a back end by its name."""
    folder = "dparray._compiler.back_ends."
    names = {name[len(folder) :].split(".")[0] for name in MODULES if name.startswith(folder)}
    names.remove("helper_process")
    assert names == {"host", "ptx", "spirv"}
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
        for module in MODULES
        for found in imports_of_module(module)
        for name in names
        if f"{found.target}.".startswith(f"{folder}{name}.")
        and not f"{module}.".startswith(f"{folder}{name}.")
    ]
    assert not wrong, "\n".join(wrong)


COMPILERS = {"numba", "llvmlite"}


def _root(node: ast.expr) -> str:
    """Return the first name of `name.attribute`, or of the module that an expression imports."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        called = [name for name in _targets(node, "") if name.partition(".")[0] in COMPILERS]
        return called[0].partition(".")[0] if called else ""
    return node.id if isinstance(node, ast.Name) else ""


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module or a function, without those of the functions in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef):
            yield node
            yield from _own_nodes(node)


def patches_in(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes of Numba and llvmlite that a file assigns.

    They are reached by an import, `importlib`, `when_imported`, another name or a loop.
    """
    imported = set(COMPILERS)
    parameters: dict[str, set[str]] = {}  # of functions that `when_imported` calls
    nodes = list(ast.walk(tree))
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {
                alias.asname or alias.name.partition(".")[0]
                for alias in node.names
                if (getattr(node, "module", None) or alias.name).partition(".")[0] in COMPILERS
            }
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("when_imported"):
            package, function = map(ast.unparse, node.args)
            if package.strip("'").partition(".")[0] in COMPILERS:
                parameters[function] = {functions[function].args.args[0].arg}
    for scope in [tree, *(node for node in nodes if isinstance(node, ast.FunctionDef))]:
        known = imported | parameters.get(getattr(scope, "name", ""), set())
        yield from _patches_in_scope(list(_own_nodes(scope)), known)


def _patches_in_scope(nodes: list[ast.AST], known: set[str]) -> Iterator[str]:
    size = 0
    while size != len(known):
        size = len(known)
        for node in nodes:
            if isinstance(node, ast.Assign) and _root(node.value) in known:
                known |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            if isinstance(node, ast.For) and any(
                _root(item) in known for item in getattr(node.iter, "elts", [node.iter])
            ):
                known.add(ast.unparse(node.target))
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            for target in getattr(node, "targets", None) or [getattr(node, "target", None)]:
                text = "" if target is None else ast.unparse(target)
                # An entry of a dictionary is a registration, unless it is of `__dict__`.
                is_patch = isinstance(target, ast.Attribute) or "__dict__" in text
                if target is not None and is_patch and _root(target) in known:
                    yield text
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in {"setattr", "delattr"}
            and _root(node.args[0]) in known
        ):
            yield ".".join(ast.unparse(arg).strip("'") for arg in node.args[:2])


def test_numba_is_not_patched_and_llvmlite_in_one_file() -> None:
    found = [
        (module.removeprefix("dparray._compiler."), patch)
        for module, path in MODULES.items()
        for patch in patches_in(ast.parse(path.read_text()))
    ]
    assert found == [
        ("llvmlite_patches", "kind._dispose"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import numba.core.types\nnumba.core.types.Array = 1",
        "from numba.core import types\ndef change():\n    types.Array = 1",
        "from numba.core import types\nsetattr(types.Array, 'copy', None)",
        "import importlib\nfound = importlib.import_module('numba.core')\nfound.types = 1",
        "import importlib\nimportlib.import_module('llvmlite.binding').types = 1",
        "from numba.core import types as t\nkind = t.Array\nkind.copy = 1",
        "from numba.core.types import Array\nfor kind in (Array,):\n    kind.copy = 1",
        "from numba.core import types\ntypes.__dict__['Array'] = 1",
        "from numba.core import types\ndel types.Array",
        "def change(module):\n    module.A = 1\nwhen_imported('llvmlite.ir', change)",
    ],
)
def test_the_reader_finds_every_kind_of_patch(text: str) -> None:
    assert len(list(patches_in(ast.parse(text)))) == 1
    assert not list(patches_in(ast.parse(re.sub("numba|llvmlite", "numpy", text))))


def test_kernels_know_the_kernel_language_and_no_more() -> None:
    allowed = {"__future__", "collections", "functools", "math", "numpy", "typing"}
    allowed |= {"json", "pathlib"}  # to read the coefficients
    wrong = [
        f"{MODULES[module].relative_to(ROOT)}:{found.line} imports {found.target}"
        for module in MODULES
        if place_of(module) == "kernels"
        for found in imports_of_module(module)
        if found.target.partition(".")[0] not in allowed
        and not found.target.startswith(("dparray.kernel_api", "dparray.kernels"))
    ]
    assert not wrong, "\n".join(wrong)


def test_kernels_are_submitted_by_the_launch_alone() -> None:
    nodes = [
        (module, node)
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
    ]
    methods = {"submit", "submit_async"}  # of drivers, and of dpctl's queues
    assert not {
        module
        for module, node in nodes
        if isinstance(node, ast.Attribute)
        and node.attr in methods
        # Submitted tasks of executors, and what drivers submit to themselves.
        and place_of(module) not in ("dask", "_driver")
        and module not in ("dparray._runtime.launch", "dparray._runtime.threads")
    }
    assert {
        place_of(module)
        for module, node in nodes
        if isinstance(node, ast.alias) and node.name == "submit"
    } <= {"_driver"}


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


def test_most_files_of_tests_import_public_modules_alone() -> None:
    """Tests of private modules are rewritten with every change of them. `tests/support.py` has what
    several files need.
    """
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    private = [
        path.relative_to(ROOT)
        for path in files
        if any(
            re.match(r"dparray\b.*\._(?!_)", found.target)
            for found in imports_of(path.read_text(), "tests")
        )
    ]
    assert len(private) <= 0.32 * len(files), f"{len(private)} of {len(files)} files"


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
    found = list(imports_of(source, "dparray.demo"))
    assert [each.target for each in sorted(found, key=lambda each: each.line)] == [
        "a.b", "c.d", "c.e", "dparray.demo.f", "dparray.demo.g.h", "dparray.kernels.k",
        "types_only", "inside", "by.name",
    ]  # fmt: skip
    assert [each.target for each in found if each.for_types] == ["types_only"]


def test_a_target_leads_to_its_module() -> None:
    known = dict.fromkeys(("dparray", "dparray._graph.ops", "dparray.kernels.scan"), ROOT)
    assert module_of("dparray._graph.ops.OPS", known) == "dparray._graph.ops"
    assert module_of("kernels.scan", known) == "dparray.kernels.scan"
    assert module_of("dparray.asarray", known) == "dparray"
    assert module_of("numpy.linalg", known) is None
    assert place_of("dparray") == "__init__"
    assert place_of("dparray._graph.ops") == "_graph"


def test_an_import_from_a_higher_row_goes_up() -> None:
    heights = {"low": 0, "beside": 0, "high": 1}
    assert goes_up("dparray.low", "dparray.high.inner", heights)
    assert not goes_up("dparray.low", "dparray.beside", heights)
    assert not goes_up("dparray.high", "dparray.low", heights)
