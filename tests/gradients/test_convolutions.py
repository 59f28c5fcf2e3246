"""Gradients of ``dp.tilelang.conv``, by images and by filters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

CASES: list[tuple[Any, Any, dict[str, Any]]] = [
    ((2, 7, 2), (3, 2, 4), {}),
    ((2, 7, 6, 2), (3, 2, 2, 4), {"strides": (2, 1), "padding": "same"}),
    ((1, 7, 6, 4), (3, 3, 2, 6), {"groups": 2, "dilation": 2, "padding": 2}),
    ((2, 6, 6, 3), (3, 3, 1, 3), {"groups": 3, "padding": ((1, 0), (2, 1))}),
    ((1, 4, 5, 4, 2), (2, 2, 2, 2, 3), {"strides": 2}),
    ((2, 3, 6, 6), (4, 3, 3, 3), {"channels": "first", "padding": 1}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_gradients_of_convolutions(case: int) -> None:
    image, window, options = CASES[case]
    random = np.random.default_rng(case)
    x, w = dp.asarray(random.normal(size=image)), dp.asarray(random.normal(size=window))
    target = dp.asarray(random.normal(size=dp.tilelang.conv(x, w, **options).shape))

    def loss(x: Any, w: Any) -> Any:
        return dp.sum(dp.tilelang.conv(x, w, **options) * target)

    gradients = dp.grad(loss, argnums=(0, 1))(x, w)
    assert float(dp.value_and_grad(loss)(x, w)[0]) == pytest.approx(float(loss(x, w)), rel=1e-10)
    for number, (point, gradient) in enumerate(zip((x, w), gradients, strict=True)):
        along = dp.asarray(random.normal(size=point.shape))
        ends = []
        for h in (1e-4, -1e-4):
            moved = [x, w]
            moved[number] = point + h * along
            ends.append(float(loss(*moved)))
        slope = (ends[0] - ends[1]) / 2e-4
        assert float(dp.sum(gradient * along)) == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_errors_are_those_of_the_convolution() -> None:
    x, w = dp.ones((1, 5, 5, 2)), dp.ones((3, 3, 3, 4))
    with pytest.raises(dp.exceptions.ShapeError, match="w expects 3"):
        dp.grad(lambda w: dp.sum(dp.tilelang.conv(x, w)))(w)
