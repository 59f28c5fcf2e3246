"""Run README, the pages and the notebooks with the packages of this environment.

``.ci/base-pages`` does so in an environment without extras. A page that needs another package says
so in its first paragraph, and has it in its metadata as ``needs``; without it, the page is skipped.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
PAGES = [ROOT / "README.md", *sorted(NOTEBOOKS.rglob("*.md")), *sorted(NOTEBOOKS.glob("*.ipynb"))]
CELL = re.compile(r"^```(?:\{code-cell\} )?python\n(.*?)^```", re.M | re.S)
TAGS = re.compile(r"\A:tags: \[(.*)\]\n")
NEEDED = re.compile(r"^needs: \[(.*)\]$", re.M)


def notebook_of(path: Path) -> Any:
    """Return a page as a notebook, with the packages that it needs in its metadata."""
    if path.suffix == ".ipynb":
        return nbformat.read(path, as_version=4)
    text = path.read_text()
    cells = []
    for source in CELL.findall(text):
        tags = TAGS.match(source)
        names = re.findall(r"[\w-]+", tags[1]) if tags else []
        if "skip-execution" not in names:
            cells.append(nbformat.v4.new_code_cell(TAGS.sub("", source), metadata={"tags": names}))
    needed = NEEDED.search(text)
    needs = re.findall(r"\w+", needed[1]) if needed else []
    return nbformat.v4.new_notebook(cells=cells, metadata={"needs": needs})


def run(path: Path) -> str:
    """Run a page; return the error of its cell, ``""``, or why it was skipped."""
    notebook = notebook_of(path)
    missing = [
        name for name in notebook.metadata.get("needs", ()) if not importlib.util.find_spec(name)
    ]
    if missing:
        return f"skipped: needs {', '.join(missing)}"
    if not notebook.cells:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        where = NOTEBOOKS if path.suffix == ".ipynb" else folder
        client = NotebookClient(
            notebook,
            timeout=300,
            startup_timeout=300,
            kernel_name="python3",
            extra_arguments=["--IPKernelApp.log_level=40"],
            resources={"metadata": {"path": str(where)}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            return str(error)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="1/1", help="the n-th of m parts of the pages")
    parser.add_argument(
        "names", nargs="*", help="pages whose path contains a name; all if there is none"
    )
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    os.environ.update(TQDM_DISABLE="1", DPARRAY_NOTICES="0")
    pages = [
        page for page in PAGES if not options.names or any(n in str(page) for n in options.names)
    ]
    failed = 0
    for page in pages[part - 1 :: parts]:
        start = time.perf_counter()
        result = run(page)
        failed += bool(result) and not result.startswith("skipped")
        print(f"{page.relative_to(ROOT)}: {time.perf_counter() - start:.1f} s {result}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
