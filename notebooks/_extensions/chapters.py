"""Define the directives of the reference: a chapter lists the ``__all__`` of its modules.

A new function is in the reference without a change here, and a page never lists a removed one.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
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


class Chapter(SphinxDirective):
    """``.. chapter:: MODULE ...``: a table of the names of modules, then their docstrings.

    ``:namespace:`` says under which module users find the names, ``:only:`` names a few of them.
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
        found = []
        for argument in self.arguments[0].split():
            module = importlib.import_module(argument)
            namespace = self.options.get("namespace", argument)
            owner = importlib.import_module(namespace)
            left_out = {*self.options.get("without", ())}
            found += [
                (namespace, name, getattr(owner, name))
                for name in self.options.get("only") or names_of(module)
                if hasattr(owner, name)
                and name not in left_out
                and not inspect.ismodule(getattr(owner, name))
            ]
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
    return {"parallel_read_safe": True, "parallel_write_safe": True}
