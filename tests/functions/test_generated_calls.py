"""Generated calls include every NumPy function, and every option of its signature."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.functions.generated_calls import RECIPES, member, names
from tests.functions.generated_options import COMPARED, NOT_COMPARED

#: Options that no call has: they concern one module only, or leave the result unspecified.
FREE_OPTIONS = frozenset(
    {
        *("like", "subok", "device", "out", "order", "copy", "args", "kwargs", "ndmax"),
        *("overwrite_input", "signature", "kind", "kw"),
        *("function", "func", "mask_func"),  # every call has them
    }
)


def public_functions() -> Iterator[str]:
    """Return the names of functions that NumPy and dparray have."""
    for prefix, theirs, ours in (
        ("", np, dp),
        ("linalg.", np.linalg, dp.linalg),
        ("fft.", np.fft, dp.fft),
    ):
        for name in dir(theirs):
            function = getattr(theirs, name)
            is_function = callable(function) and not isinstance(function, type)
            if name[0] != "_" and is_function and hasattr(ours, name):
                yield prefix + name


@pytest.mark.parametrize("name", list(public_functions()))
def test_a_function_is_called(name: str) -> None:
    assert (name in names(dp)) != (name in NOT_COMPARED)


def parameters(function: Any) -> Mapping[str, Any]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def words_of(recipe: str) -> list[str]:
    """Return the words of a recipe; a group in parentheses counts as one word."""
    head, _, rest = recipe.removeprefix("!").rpartition(")")
    return [*([head] if head else []), *rest.split()]


@pytest.mark.parametrize(
    "name", [name for name in RECIPES if name[0] != "." and "builtins" not in name]
)
def test_each_option_is_given(name: str) -> None:
    if name in ("getitem", "setitem"):
        return
    theirs, ours = parameters(member(np, name)), parameters(member(dp, name))
    given: set[str] = set()
    for recipe in RECIPES[name]:
        words = words_of(recipe)
        options = [word.partition("=")[0] for word in words if "=" in word]
        given |= {*options, *list(theirs)[: len(words) - len(options)]}
    # wrappers may pass the first argument by position
    positional = list(theirs)[: 1 + (name in COMPARED)]
    left = {each for each in theirs if each in ours} - given - FREE_OPTIONS - {*positional}
    assert not left - {"axes" if name == "apply_over_axes" else "y" if name == "polyfit" else ""}
