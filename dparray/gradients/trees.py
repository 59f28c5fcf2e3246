"""Trees of arrays: tuples, lists, dicts, dataclasses and ``None``, nested in any way."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

#: The structure of a tree: a function from an iterator of leaves to the tree.
Structure = Callable[[Iterator[Any]], Any]


class _Parts(NamedTuple):
    """The parts of a tree, their names, and the function that makes a tree of others."""

    names: Sequence[Any]
    values: Sequence[Any]
    make: Callable[[Sequence[Any]], Any]


def _parts(tree: Any) -> _Parts | None:
    """Return the parts of a tree, or ``None`` for a leaf."""
    cls: Any = type(tree)
    if tree is None:
        return _Parts((), (), lambda _: None)
    if isinstance(tree, dict):
        names = list(tree)
        new = partial(cls, tree.default_factory) if isinstance(tree, defaultdict) else cls
        return _Parts(names, list(tree.values()), lambda xs: new(zip(names, xs, strict=True)))
    if isinstance(tree, list | tuple):
        return _Parts(range(len(tree)), tree, getattr(cls, "_make", cls))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [
            f.name for f in dataclasses.fields(tree) if f.init and not f.metadata.get("static")
        ]
        return _Parts(
            names,
            [getattr(tree, name) for name in names],
            lambda xs: dataclasses.replace(tree, **dict(zip(names, xs, strict=True))),
        )
    return None


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree and its structure.

    Fields of dataclasses with ``metadata={"static": True}`` are part of the structure.
    """
    leaves: list[Any] = []
    return leaves, _structure(tree, leaves)


def _structure(tree: Any, leaves: list[Any]) -> Structure:
    parts = _parts(tree)
    if parts is None:
        leaves.append(tree)
        return next
    make, inner = parts.make, [_structure(value, leaves) for value in parts.values]
    return lambda values: make([part(values) for part in inner])


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Return a tree with a structure and these leaves."""
    return structure(iter(leaves))


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree with a function of each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, map(function, leaves))


def leaves_like(tree: Any, model: Any) -> Iterator[Any]:
    """Yield the leaves of a tree in the order of another's, whose dicts may be ordered otherwise.

    Raises:
        ValueError: the trees have different structures.
    """
    mine, others = _parts(tree), _parts(model)
    if mine is None or others is None:
        if mine is not others:
            raise ValueError
        yield tree
    else:
        values = dict(zip(mine.names, mine.values, strict=True))
        if values.keys() != set(others.names):
            raise ValueError
        for name, value in zip(others.names, others.values, strict=True):
            yield from leaves_like(values[name], value)
