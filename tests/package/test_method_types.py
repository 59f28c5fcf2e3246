"""Type checkers find the array methods that are defined in other modules.

``python tests/package/test_method_types.py`` writes their stub.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dparray._array.ndarray import ndarray
from dparray._functions import missing_names

pytestmark = pytest.mark.static

STUB = Path(__file__).resolve().parents[2] / "dparray" / "_array" / "methods.pyi"

HEAD = '''"""Types of the methods that other modules give arrays; a test compares them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from types import ModuleType
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from dparray._array.map import Map
from dparray._array.ndarray import ndarray
from dparray._driver.interface import Queue
from dparray._functions.reductions import Axis
from dparray._runtime.event import Event

class Methods:
'''


#: Attributes that also exist on the class, so that no type of a method is declared for them, and
#: attributes that only raise an error.
EXCEPTIONS = {"__array_interface__", "__array_ufunc__", *missing_names.ATTRIBUTES}


#: Comparisons of arrays are arrays, but `object` declares that these two return Booleans.
_OVERRIDES = dict.fromkeys(("__eq__", "__ne__"), "  # type: ignore[override]")
#: `pow` may have a third operand, but `**=` has none.
_OVERRIDES["__ipow__"] = "  # type: ignore[misc]"


def added() -> Iterator[tuple[str, Any]]:
    """Yield name and function or property of each attribute outside of the class statement."""
    for name, member in sorted(vars(ndarray).items()):
        function = member.fget if isinstance(member, property) else member
        is_public = name not in EXCEPTIONS and (not name.startswith("_") or name.endswith("__"))
        is_of_the_class = getattr(function, "__module__", None) == "dparray._array.ndarray"
        if inspect.isfunction(function) and is_public and not is_of_the_class:
            yield name, member


def declaration(name: str, member: Any) -> str:
    function = member.fget if isinstance(member, property) else member
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    # A positional-only parameter makes those before it positional-only, too, also `self`.
    itself = first.replace(name="self", annotation=inspect.Parameter.empty)
    shown = [each.replace(default=_Shown(each.default)) for each in rest]
    text = str(signature.replace(parameters=[itself, *shown])).replace("'", "")
    lines = [f"    def {name}{text}: ..." + _OVERRIDES.get(name, "")]
    if isinstance(member, property):
        lines.insert(0, "    @property")
        if member.fset is not None:
            lines.append(f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...")
    return "\n".join(lines) + "\n"


class _Shown:
    """A default value, printed as in a stub."""

    def __new__(cls, value: Any) -> Any:
        if value is inspect.Parameter.empty:
            return value
        self = super().__new__(cls)
        self.text = repr(value).replace("'", '"')
        return self

    def __repr__(self) -> str:
        return self.text


def written() -> str:
    return HEAD + "".join(declaration(name, member) for name, member in added())


def written_without_compiled() -> str:
    """Return the stub of a process without the compiled fast path: methods lack signatures."""
    program = "from tests.package.test_method_types import written; print(written(), end='')"
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=STUB.parents[2],
        env={**os.environ, "DPARRAY_COMPILED": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_stub_has_the_parameters_of_the_methods() -> None:
    assert STUB.read_text() == written_without_compiled(), f"run {Path(__file__).name} as a script"


if __name__ == "__main__":
    STUB.write_text(written_without_compiled())
