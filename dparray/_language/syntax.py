"""The syntax trees of functions, and the values of the names in them."""

from __future__ import annotations

import ast
import functools
import weakref
from collections import ChainMap
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from dparray._language.errors import Refusal
from dparray._language.source import TEXT, Source, source_of

_known: weakref.WeakKeyDictionary[CodeType, Source] = weakref.WeakKeyDictionary()


def syntax_of(function: Callable[..., Any]) -> Source:
    """Return the source of a function, with its syntax tree, which must not be changed.

    Raises:
        Refusal: its source is not known.
    """
    code = function.__code__
    source = _known.get(code)
    if source is None:
        source = _source(function)
        if source is None:
            raise Refusal(
                f"the source of {function.__name__} is not known, or has changed: define it in a "
                "file or a notebook; before exec(compile(text, name, 'exec')), register the text: "
                "linecache.cache[name] = (len(text), None, text.splitlines(True), name)"
            )
        _known[code] = source
    return source


def _source(function: Callable[..., Any]) -> Source | None:
    code = function.__code__
    text = function.__globals__.get(TEXT)
    if text is not None and code.co_filename.startswith("<dparray"):
        return Source(code.co_filename, 1, text.splitlines(), _definition(text), 0)
    return source_of(function, exact=True)  # The file may have changed since.


@functools.lru_cache(maxsize=512)
def _definition(text: str) -> ast.FunctionDef:
    """Return the function that a generated text defines."""
    (node,) = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))
    return node


def scope_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the values of the global and captured names of a function."""
    names: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue  # Nothing is assigned to it yet.
    return ChainMap(names, function.__globals__) if names else function.__globals__
