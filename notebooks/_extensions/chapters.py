"""Define the directives of the reference: a chapter lists the ``__all__`` of its modules.

A new function is in the reference without a change here, and a page never lists a removed one.
Each function has its own page, which the build writes below ``reference/generated/``. The search
index leaves out the code of notebooks.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

NUMPY_PAGE = "https://numpy.org/doc/stable/reference/generated/{}.html"


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module in alphabetical order."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return sorted(listed, key=str.lower)


def of_numpy(value: Any) -> bool:
    """Return whether NumPy documents a value."""
    return (getattr(value, "__module__", None) or "").partition(".")[0] == "numpy"


def numpy_name(namespace: str, name: str) -> str | None:
    """Return the full name of NumPy's function of the same name, if there is one."""
    module: Any = numpy
    for part in namespace.split(".")[1:]:
        module = getattr(module, part, None)
    value = getattr(module, name, None)
    if module is None or not callable(value) or inspect.isclass(value):
        return None
    return f"numpy{namespace.removeprefix('dparray')}.{name}"


def directive_for(value: Any) -> str:
    """Return the autodoc directive for a value."""
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if callable(value) else "autodata"


Entry = tuple[str, str, Any]


def entries(modules: str, options: Mapping[str, Any]) -> list[Entry]:
    """Return the namespace, the name and the value of each entry of a chapter."""
    found = []
    for module in modules.split():
        namespace = options.get("namespace", module)
        owner = importlib.import_module(namespace)
        left_out = {*options.get("without", ())}
        for name in options.get("only") or names_of(importlib.import_module(module)):
            try:
                value = getattr(owner, name)
            except (AttributeError, ImportError):  # it needs a package that is not installed
                continue
            if name not in left_out and not inspect.ismodule(value):
                found.append((namespace, name, value))
    return found


def has_page(value: Any) -> bool:
    """Return whether a value has its own page: a function of dparray."""
    return callable(value) and not inspect.isclass(value) and not of_numpy(value)


_CHAPTER = re.compile(r"^\.\. chapter:: (.+)\n((?:   :.*\n)*)", re.M)
_OPTION = re.compile(r"^   :(\w+): *(.*)$", re.M)


def chapter_entries(text: str) -> Iterator[Entry]:
    """Yield the entries of all chapters of a page."""
    for chapter in _CHAPTER.finditer(text):
        options: dict[str, Any] = dict(_OPTION.findall(chapter[2]))
        for name in options.keys() & {"only", "without"}:
            options[name] = options[name].split()
        yield from entries(chapter[1], options)


def function_page(chapter: str, listed: list[Entry], position: int) -> str:
    """Return the source of a function's page, which is in no table of contents.

    Args:
        chapter: the name of the reference page.
        listed: the functions of that page.
        position: the index of the function in ``listed``.
    """
    namespace, name, value = listed[position]
    full = f"{namespace}.{name}"
    way = [f":doc:`Reference </reference/index>` / :doc:`{chapter} </reference/{chapter}>`"]
    for word, at in (("previous", position - 1), ("next", position + 1)):
        if 0 <= at < len(listed):
            way.append(f"{word}: {link_to(listed[at])}")
    home = getattr(value, "__module__", None)
    near = sorted(range(len(listed)), key=lambda at: abs(at - position))
    related = [listed[at] for at in near[1:] if getattr(listed[at][2], "__module__", None) == home]
    also = [link_to(each) for each in related[:6]]
    also.append(f":doc:`all related functions </reference/{chapter}>`")
    if other := numpy_name(namespace, name):
        also.append(f"NumPy's `{other} <{NUMPY_PAGE.format(other)}>`__")
    return (
        f":orphan:\n\n{full}\n{'=' * len(full)}\n\n{' | '.join(way)}\n\n"
        f".. py:currentmodule:: None\n\n.. autofunction:: {full}\n\nSee also: {', '.join(also)}.\n"
    )


def link_to(entry: Entry) -> str:
    """Return a link to the page of a function."""
    namespace, name, _ = entry
    return f":doc:`{name} </reference/generated/{namespace}.{name}>`"


def write_function_pages(app: Sphinx) -> None:
    """Write the pages of all functions, and remove those of functions that are gone."""
    folder = Path(app.srcdir, "reference", "generated")
    folder.mkdir(exist_ok=True)
    pages: dict[Path, str] = {}
    for path in sorted(folder.parent.glob("*.md")):
        listed = [each for each in chapter_entries(path.read_text()) if has_page(each[2])]
        for position, (namespace, name, _) in enumerate(listed):
            page = folder / f"{namespace}.{name}.rst"
            pages.setdefault(page, function_page(path.stem, listed, position))
    for path in folder.glob("*.rst"):
        if path not in pages:
            path.unlink()
    for path, text in pages.items():
        # An unchanged file keeps its time, so that the next build does not read it again.
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def index_without_code(app: Sphinx) -> None:
    """Leave the code and the outputs of notebooks out of the search index."""
    builder: Any = app.builder
    if not hasattr(builder, "index_page"):
        return
    index_page = builder.index_page

    def index_text(pagename: str, doctree: nodes.document, title: str) -> None:
        if str(app.env.doc2path(pagename)).endswith(".ipynb"):
            doctree = doctree.deepcopy()
            for node in list(doctree.findall(nodes.container)):
                if "cell" in node["classes"] and node.parent is not None:
                    node.parent.remove(node)
        index_page(pagename, doctree, title)

    builder.index_page = index_text


_BACKLINK = re.compile(r'href="(?P<page>[^"#]+)#(?P<name>dparray\.[\w.]+)"')


def correct_source_links(
    app: Sphinx, pagename: str, template: str, context: Any, doctree: Any
) -> None:
    """Point the links of a source page to the names under which the reference has its objects.

    Sphinx takes one module for all objects of a source file, and some are public in another one.
    """
    if not pagename.startswith("_modules/") or "body" not in context:
        return
    objects = app.env.get_domain("py").objects  # type: ignore[attr-defined]

    def link(found: re.Match[str]) -> str:
        entry = objects.get(found["name"])
        if entry is not None and found["page"].endswith(f"{entry.docname}.html"):
            return found[0]
        last = found["name"].rpartition(".")[2]
        for name, entry in objects.items():
            if name.endswith(f".{last}") and found["page"].endswith(f"{entry.docname}.html"):
                return f'href="{found["page"]}#{name}"'
        return f'href="{found["page"]}"'

    context["body"] = _BACKLINK.sub(link, context["body"])


def defining_module(app: Sphinx, module: str, name: str) -> str | None:
    """Return the module whose file defines a public function, which names ``dparray`` itself."""
    value = inspect.unwrap(getattr(importlib.import_module(module), name, None))
    code = getattr(value, "__code__", None)
    if code is None:
        return None
    for full, loaded in list(sys.modules.items()):
        if getattr(loaded, "__file__", None) == code.co_filename:
            return full
    return None


class Chapter(SphinxDirective):
    """``.. chapter:: MODULE ...``: a table of the names of modules, then the docstrings of classes.

    ``:namespace:`` is the module in which users find the names, ``:only:`` selects some of them.
    """

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {
        "namespace": str,
        "only": str.split,
        "members": lambda _: True,
        "without": str.split,
    }

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the chapter."""
        found = entries(self.arguments[0], self.options)
        lines = self.text(found)
        container = nodes.section()
        container.document = self.state.document
        self.state.nested_parse(StringList(lines, self.get_source_info()[0]), 0, container)
        return container.children

    def text(self, found: list[tuple[str, str, Any]]) -> list[str]:
        """Return the source of the table and the entries; NumPy's objects are only named."""
        numpys = [name for _, name, value in found if of_numpy(value)]
        ours = [entry for entry in found if not of_numpy(entry[2])]
        # Names are given in full, so no module may be the current one.
        lines = [".. py:currentmodule:: None", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   ~{namespace}.{name}" for namespace, name, _ in ours]
        lines += [""]
        for namespace, name, value in ours:
            if has_page(value):
                continue
            directive = directive_for(value)
            lines += [f".. {directive}:: {namespace}.{name}"]
            if directive == "autoclass" and "members" in self.options:
                lines += ["   :members:"]
            if directive == "autoexception":
                lines += ["   :show-inheritance:"]
            if other := numpy_name(namespace, name):
                lines += ["", f"   See also NumPy's `{other} <{NUMPY_PAGE.format(other)}>`__."]
            lines += [""]
        if numpys:
            listed = ", ".join(f"``{name}``" for name in numpys)
            lines += [f"NumPy's objects, available under the same name: {listed}.", ""]
        return lines


def comparison(namespace: str) -> Iterator[tuple[str, str]]:
    """Yield each function of a NumPy namespace with its status in dparray."""
    module: Any = numpy
    ours: Any = importlib.import_module("dparray")
    for part in namespace.split(".")[1:]:
        module, ours = getattr(module, part), getattr(ours, part)
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if not callable(value) or inspect.isclass(value):
            continue
        try:
            getattr(ours, name)
        except AttributeError as error:
            reason = str(error).partition(":")[2].strip() or str(error)
            yield f"{namespace}.{name}", f"not available: {reason}"
        else:
            yield f"{namespace}.{name}", "available"


class Comparison(SphinxDirective):
    """``.. comparison:: numpy numpy.linalg``: a table of NumPy's functions and their status."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = [row for each in self.arguments[0].split() for row in comparison(each)]
        available = sum(status == "available" for _, status in rows)
        lines = [f"{available} of {len(rows)} functions are available.", ""]
        lines += [".. list-table::", "   :header-rows: 1", "", "   * - NumPy", "     - dparray"]
        for name, status in rows:
            link = f"`{name} <{NUMPY_PAGE.format(name)}>`__"
            lines += [f"   * - {link}", f"     - {status}".replace("`", "``").replace("*", "\\*")]
        container = nodes.section()
        container.document = self.state.document
        self.state.nested_parse(StringList(lines, self.get_source_info()[0]), 0, container)
        return container.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("chapter", Chapter)
    app.add_directive("comparison", Comparison)
    app.connect("builder-inited", write_function_pages)
    app.connect("builder-inited", index_without_code)
    app.connect("html-page-context", correct_source_links)
    app.connect("viewcode-follow-imported", defining_module)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
