"""The directives of the reference: a chapter's public names come from its module's ``__all__``.

So a new function stands in the reference without a line here, and a page lists nothing that is gone.
"""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module, in the order of the alphabet."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    return sorted(listed, key=str.lower)


def of_numpy(value: Any) -> bool:
    """Whether NumPy documents a value."""
    return (getattr(value, "__module__", None) or "").partition(".")[0] == "numpy"


def directive_for(value: Any) -> str:
    """The directive of autodoc that fits a value."""
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
        """The nodes of the chapter."""
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
        """The source of the table and the entries; NumPy's own are named only."""
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
            lines += [""]
        if numpys:
            listed = ", ".join(f"``{name}``" for name in numpys)
            lines += [f"NumPy's own, which are here under the same name: {listed}.", ""]
        return lines


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("chapter", Chapter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
