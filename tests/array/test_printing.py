"""Arrays as text, with NumPy's print options, compared with NumPy's text."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies

import dparray as dp
from tests.support import examples

ARRAYS = [
    np.arange(10.0) / 3,
    np.arange(2000) / 7.0,
    np.zeros((0, 3)),
    np.array(2.5, "f4"),
    np.array(2.5 + 1j),
    np.array([1 + 2j, np.nan]),
    np.array([1e300, -1e-300, np.inf, np.nan]),
    np.arange(3600).reshape(60, 60),
    np.arange(1125.0).reshape(5, 5, 5, 9),
    np.array([True, False]),
]

OPTIONS = {
    "precision": strategies.sampled_from([0, 3, 8, None]),
    "threshold": strategies.sampled_from([0, 100, 1000.5, math.inf, sys.maxsize, np.int64(10)]),
    "edgeitems": strategies.sampled_from([1, 3, 100]),
    "suppress_small": strategies.booleans(),
    "sign": strategies.sampled_from(["+", " ", "-"]),
    "floatmode": strategies.sampled_from(["fixed", "unique", "maxprec"]),
    "formatter": strategies.sampled_from([{"float": "{:.2f}".format}, None]),
}


@settings(max_examples=examples(200), deadline=None)
@given(strategies.sampled_from(ARRAYS), strategies.fixed_dictionaries({}, optional=OPTIONS))
def test_texts_are_numpys(values: np.ndarray, chosen: dict[str, Any]) -> None:
    x = dp.asarray(values)
    assert dp.array2string(x, **chosen) == np.array2string(values, **chosen)
    set_for_all = {name.removesuffix("_small"): value for name, value in chosen.items()}
    with np.printoptions(**set_for_all):
        assert (str(x), f"{x}") == (str(values), f"{values}")
        assert dp.array2string(x) == np.array2string(values)
        assert dp.array_str(x) == np.array_str(values)
        assert repr(x).startswith("array(")
        assert "</div>" in x._repr_html_()


@pytest.mark.parametrize("threshold", [math.inf, sys.maxsize])
def test_all_of_an_array_is_printed(threshold: float) -> None:
    with dp.printoptions(threshold=threshold):
        assert str(dp.zeros((40, 40))).count("0.") == 1600
        assert repr(dp.zeros((40, 40))).count("0.") == 1600


def test_an_array_of_no_edges_ends_with_its_last_element() -> None:
    with dp.printoptions(edgeitems=0, threshold=5):
        assert str(dp.arange(2000)) == "[... 1999]"
