"""Every notebook runs from its first to its last cell, and its outputs equal the stored ones.

A cell tagged ``varies`` shows measurements or names of the machine; only the kinds of its outputs
are compared. A notebook whose metadata ``needs`` packages runs only if they are installed.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

# Text that differs between processes, machines and folders, in every cell.
_VARYING = (
    (re.compile(r"0x[0-9a-f]+"), "0x..."),
    (re.compile(r"(sub-device \d+ of) \d+"), r"\1 N"),
    (re.compile(r"(?<=[\s(\"'])/[\w./-]+/(?=[\w-]+\.(py|ipynb))"), "/.../"),
    (re.compile(r"ipykernel_\d+/\d+\.py"), "ipykernel.py"),
    (re.compile(r"[ \t]+$", re.M), ""),
)


def shown(cell: Any) -> dict[str, str]:
    """Return the text of a cell's outputs by kind; a picture is only noted as such."""
    found: dict[str, str] = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            found[output.name] = found.get(output.name, "") + output.text
            continue
        for kind, content in output.get("data", {}).items():
            text = content if kind.startswith("text/") else "a picture"
            found[kind] = found.get(kind, "") + text
    found.pop("text/html", None)  # the plain text has the same content
    return found


def plain(text: str) -> str:
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return text


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_its_stored_outputs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("TQDM_DISABLE", "1")  # bars depend on the speed of the machine
    stored = nbformat.read(path, as_version=4)
    for package in stored.metadata.get("needs", ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package}, which the notebook reads, is not installed")
    notebook = nbformat.read(path, as_version=4)
    # An error in a cell raises, unless the cell is tagged `raises-exception`.
    NotebookClient(
        notebook,
        timeout=300,
        startup_timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    for before, now in zip(code_cells(stored), code_cells(notebook), strict=True):
        expected, found = shown(before), shown(now)
        assert expected.keys() == found.keys(), now.source
        if "varies" not in now.metadata.get("tags", []):
            for kind, text in expected.items():
                assert plain(found[kind]) == plain(text), now.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_as_it_ran_from_the_top(path: Path) -> None:
    import nbformat  # takes 4 s, which would delay the collection of tests

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert not any("stderr" in shown(cell) for cell in code_cells(notebook))


def test_machine_dependent_text_is_not_compared() -> None:
    assert plain("<object at 0x7f01>  \nnext") == "<object at 0x...>\nnext"
    assert plain("sub-device 1 of 8") == plain("sub-device 1 of 2")
    assert plain('File "/home/a/kernels.py"') == plain('File "/opt/b/c/kernels.py"')
    assert plain("array([1, 2])") != plain("array([1, 3])")
