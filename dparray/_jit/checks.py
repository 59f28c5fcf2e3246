"""Errors in a function that are found before it is compiled, and the meaning of Numba's errors."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType

import numpy as np

from dparray._jit.inference import Inference, Value
from dparray._jit.source import Source, source_of

# Patterns in texts of Numba, and the line that fixes what each is about.
_FIXES = (
    ("array index type", "an index must be an integer: write // instead of /, or int(...)"),
    ("Exception matching", "write `except Exception:`, the only handler in compiled code"),
    ("IMPORT_NAME", "import at the top of the file, not in the function"),
    ("f-strings|FORMAT_", "make the text outside of the compiled function"),
    ("Cannot unify", "give a variable one type: use another name for the second value"),
    ("Cannot determine Numba type", "pass the value as an argument, or keep it in a global number, "
     "tuple or array"),
    ("context manager", "use with around the call of the compiled function"),
    ("NumPy function", "call it before or after the loop over elements, in a function of its own"),
    ("readonly array", "pass a copy of the array: x.copy()"),
    ("Illegal IR, del", "leave the del out: the memory is released when the function returns"),
    ("scipy .*required", "run `pip install scipy`: native code calls its BLAS and LAPACK for "
     "products and linear algebra of arrays"),
    ("Int value is too large", "write a floating-point number, as in 1e20: integers have 64 bits"),
    ("runaway recursion", "return a value that needs no call in one of the cases: "
     "if n == 0: return 1"),
    ("^float16$", "loop with dp.prange, or pass x.astype('float32')"),
)  # fmt: skip
_OTHER_FIX = (
    "write it with array operations or with numbers and arrays only; the full text of the compiler "
    "is in the error's `details`"
)


def checked_source(function: FunctionType) -> Source:
    """Read the definition of a function, and check the names that it refers to.

    Raises:
        KernelCompileError: the source is not available, a name or an attribute of a module is not
            defined, or the function is a generator or assigns a global.
    """
    source = source_of(function)
    assigned = _bound(source.definition)
    known = source.names.keys() | assigned | set(function.__code__.co_freevars)
    for node in ast.walk(source.definition):
        if isinstance(node, ast.Yield | ast.YieldFrom):
            raise source.error(
                node, "a generator is not compiled", "write the values into an array, and return it"
            )
        if isinstance(node, ast.Global | ast.Nonlocal) and assigned & {*node.names}:
            fix = "return the value, and assign it where the function is called"
            raise source.error(node, "a compiled function cannot assign outside of it", fix)
        if isinstance(node, ast.Name) and node.id not in known and not hasattr(builtins, node.id):
            meant = _suggestion(node.id, known | vars(builtins).keys())
            fix = f"assign {node.id} before the first call, in the function or outside of it"
            raise source.error(node, f"the name {node.id!r} is not defined{meant}", fix)
        if isinstance(node, ast.Attribute):
            _check_attribute(source, node)
    return source


def _check_attribute(source: Source, node: ast.Attribute) -> None:
    module = source.resolve(node.value)
    if not isinstance(module, ModuleType) or hasattr(module, node.attr):
        return
    names: Iterable[str] = dir(module)
    if module.__name__ in ("numpy", "dparray", "dpnp"):
        library = sys.modules["dparray"]
        if any(hasattr(each, node.attr) for each in (library, np, library.special)):
            return
        names = dir(library)
    meant = _suggestion(node.attr, names)
    raise source.error(
        node,
        f"module {module.__name__!r} has no attribute {node.attr!r}{meant}",
        f"write a function that exists: dir({ast.unparse(node.value)}) lists them",
    )


def _suggestion(name: str, known: Iterable[str]) -> str:
    meant = difflib.get_close_matches(name, [each for each in known if each[:1] != "_"], 1, 0.75)
    return f"; did you mean {meant[0]!r}?" if meant else ""


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that a function binds in any way."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        else:
            name = getattr(node, "name", getattr(node, "rest", None))
            found |= {name} if isinstance(name, str) else set()
    return found


def check_ranges(source: Source, types: Inference) -> None:
    """Reject the floats among the arguments of ``range``, which Numba would truncate.

    Raises:
        KernelCompileError: with the line; it is a ``TypeError``, as in Python.
    """
    for node in ast.walk(source.definition):
        if isinstance(node, ast.Call) and types.called(node) in ("range", "prange"):
            for argument in node.args:
                kind = types.of(argument)
                if isinstance(kind, Value) and kind.dtype.kind not in "iub":
                    raise source.error(
                        argument,
                        f"{types.called(node)} takes integers, and this is a {kind.dtype}",
                        f"write // instead of /, or int({ast.unparse(argument)})",
                    )


def meaning_of(text: str) -> tuple[str, str]:
    """Return the reason in an error of Numba, and the line that fixes it."""
    fix = next((fix for mark, fix in _FIXES if re.search(mark, text)), _OTHER_FIX)
    reason = next(_reasons(text), "") or text.partition("\n")[0]
    reason = re.sub(r"\.* Raised from .*|, defined at \S+.*| for 't\.\d+'", "", reason)
    return reason.replace("Literal[int]", "int").replace("Literal[str]", "str"), fix


def _reasons(text: str) -> Iterator[str]:
    if "readonly array" in text and "setitem" in text:
        yield "a written array is read-only: indices share an element, or its owner forbids writes"
    if text == "float16":
        yield "loops other than prange take no float16 arrays"
    specific = re.search(r"(?:Typ(?:e|ing)|Unsupported|NotImplemented)Error: (?!Failed)(.+)", text)
    if specific:
        yield specific[1]
    signature = re.search(r"No implementation of function .*\n\s*>>> (.+)", text)
    if signature:
        yield f"no implementation of {signature[1]}"
    for line in text.splitlines():
        if re.search(r"\w{3,} \w", line) and not line.startswith(("Failed in", "During:")):
            yield line.strip()
