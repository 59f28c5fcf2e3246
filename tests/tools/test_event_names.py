"""Logs, profiles and errors name functions as the program does, not dparray's inner ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dpctl
import numpy as np
import pytest

import dparray as dp
from tests.support import observed

VALUES = np.random.default_rng(0).random(40)
POSITIONS = np.arange(40) % 7

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda x, i: dp.sort(x),
    "nonzero": lambda x, i: dp.nonzero(x > 0.5),
    "isin": lambda x, i: dp.isin(i, i[:3]),
    "lexsort": lambda x, i: dp.lexsort((x, i)),
    "median": lambda x, i: dp.median(x),
    "quantile": lambda x, i: dp.quantile(x, 0.3),
    "einsum": lambda x, i: dp.einsum("i,i->", x, x),
    "take": lambda x, i: x[i],
    "put": lambda x, i: x.__setitem__(i, 3.0),
    "histogram2d": lambda x, i: dp.histogram2d(x, x),
    "normal": lambda x, i: dp.random.default_rng(0).normal(size=9),
    "permutation": lambda x, i: dp.random.default_rng(0).permutation(x),
    "choice": lambda x, i: dp.random.default_rng(0).choice(x, 5),
    "setdiff1d": lambda x, i: dp.setdiff1d(i, i[:3]),
    "trapezoid": lambda x, i: dp.trapezoid(x),
    "polyfit": lambda x, i: dp.polyfit(x, x, 2),
    "gamma": lambda x, i: dp.special.gamma(x),
    "norm": lambda x, i: dp.linalg.norm(x),
    "unique": lambda x, i: dp.unique(i),
}
PUBLIC = (np, dp, dp.linalg, dp.fft, dp.random.Generator, dp.special, dp.ndarray)


@pytest.mark.parametrize("name", CALLS)
def test_events_have_public_names(name: str) -> None:
    x, i = dp.asarray(VALUES), dp.asarray(POSITIONS)
    names: list[str] = []
    work: list[str] = []

    def note(event: str, **values: Any) -> None:
        names.extend(str(values.get("function", "")).split(", "))
        if event in ("host", "launch", "library"):
            work.append(event)

    for is_on in (True, False):
        # A profile makes operations on small arrays events, too.
        with observed(note), dp.profile(), dp.config.override(host_tier=is_on):
            found = CALLS[name](x, i)
            for each in found if isinstance(found, tuple) else (found,):
                if isinstance(each, dp.ndarray):
                    dp.eval(each)
            dp.synchronize()
    assert work
    for each in {*names} - {"", "an expression", "x[index]", "x[index] = value"}:
        assert any(hasattr(owner, each) for owner in PUBLIC), each
        assert not each.startswith("_") or each.startswith("__"), each


def test_an_error_under_a_policy_names_the_function() -> None:
    x, y = (dp.asarray(VALUES, device=dpctl.SyclQueue("cpu")) for _ in range(2))
    with (
        dp.placement("fastest"),
        x.map("rw"),
        pytest.raises(dp.MapError, match="searchsorted"),
    ):
        dp.searchsorted(x, y)
