"""Trees of arrays: tuples, lists, dicts, dataclasses and ``None``, nested in any way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

#: The structure of a tree: a function from an iterator of leaves to the tree.
Structure = Callable[[Iterator[Any]], Any]


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree and its structure.

    Fields of dataclasses with ``metadata={"static": True}`` are part of the structure.
    """
    leaves: list[Any] = []
    return leaves, _structure(tree, leaves)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Return a tree with a structure and these leaves."""
    return structure(iter(leaves))


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree with a function of each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, map(function, leaves))


def _structure(tree: Any, leaves: list[Any]) -> Structure:
    if tree is None:
        return lambda _: None
    if isinstance(tree, dict):
        cls, names = type(tree), list(tree)
        inner = [_structure(value, leaves) for value in tree.values()]
        return lambda values: cls(zip(names, [part(values) for part in inner], strict=True))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        make, inner = type(tree), [_structure(value, leaves) for value in tree]
        return lambda values: make(*[part(values) for part in inner])
    if isinstance(tree, list | tuple):
        sequence, inner = type(tree), [_structure(value, leaves) for value in tree]
        return lambda values: sequence([part(values) for part in inner])
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = [
            field.name
            for field in dataclasses.fields(tree)
            if field.init and not field.metadata.get("static")
        ]
        inner = [_structure(getattr(tree, name), leaves) for name in fields]

        def rebuilt(values: Iterator[Any]) -> Any:
            parts = [part(values) for part in inner]
            return dataclasses.replace(tree, **dict(zip(fields, parts, strict=True)))

        return rebuilt
    leaves.append(tree)
    return next
