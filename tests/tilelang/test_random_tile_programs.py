"""Random programs agree with a slow interpreter; programs that it rejects raise.

``python test_random_tile_programs.py FIRST LAST [kernels|pending]`` tries more of them.
"""

from __future__ import annotations

import random
import sys
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from interpreter import Refused, TooLarge, interpret
from random_programs import program

import dparray as dp
from dparray import config, tilelang
from dparray.tilelang import contracting
from tests.support import force

QUICK = 500
KERNELS = 12
_TOLERANCE = {"float16": 3e-2, "float32": 1e-4, "float64": 1e-9}


def laid_out(values: np.ndarray, choice: random.Random) -> dp.ndarray:
    """Return an array of these elements, occasionally as a view of others."""
    kind = choice.random()
    if kind < 0.8 or not values.size:
        return dp.asarray(values)
    if kind < 0.9:
        return (
            dp.asarray(values[..., ::-1].copy())[..., ::-1] if values.ndim else dp.asarray(values)
        )
    order = choice.sample(range(values.ndim), values.ndim)
    turned = np.stack([values, values], axis=-1).transpose(*order, values.ndim)
    back = [order.index(axis) for axis in range(values.ndim)]
    return dp.permute_dims(dp.asarray(turned.copy())[..., 1], back)


def difference(seed: int) -> str | None:
    """Return the error of a seed's program, or ``None``."""
    source, inputs = program(seed)
    expected: Any
    try:
        expected = interpret(source, inputs)
    except Refused:
        expected = None
    except TooLarge:
        return None
    arrays = {
        name: laid_out(each, random.Random(seed)) if isinstance(each, np.ndarray) else each
        for name, each in inputs.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tilelang.TileWarning)
        try:
            function = tilelang.function(source)
            found = function(**arrays)
        except dp.TileError as error:
            return None if expected is None else f"{source}\nis refused: {error}"
    if expected is None:
        return f"{source}\nis not refused"
    found = found if isinstance(found, tuple) else (found,)
    dtypes = [each.dtype.name for each in inputs.values() if isinstance(each, np.ndarray)]
    for name, result in zip(function.outputs, found, strict=True):
        wanted, values = expected[name], result.asnumpy()
        if (wanted.dtype, wanted.shape) != (values.dtype, values.shape):
            kinds = f"{values.dtype} {values.shape}, not {wanted.dtype} {wanted.shape}"
            return f"{source}\n{name} is {kinds}"
        tolerance = _TOLERANCE.get(wanted.dtype.name, 0)
        if tolerance:  # its operands may have been rounded more: functions of integers are
            tolerance = max([tolerance, *(_TOLERANCE.get(name, 1e-4) for name in dtypes)])
        with np.errstate(all="ignore"):
            is_close = np.isclose(
                values.astype(np.float64) if tolerance else values,
                wanted.astype(np.float64) if tolerance else wanted,
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
            )
            if tolerance and "=*(" in source.replace(" ", ""):
                # The order of multiplication decides whether a product overflows before it meets a
                # 0 or, in the narrow range of float16, small numbers.
                is_close |= (values == 0) & np.isnan(wanted) | np.isnan(values) & (wanted == 0)
                if wanted.dtype == np.float16:
                    is_close |= ~(np.isfinite(values) & np.isfinite(wanted))
        if not is_close.all():
            return f"{source}\n{name} is {values.tolist()}, not {wanted.tolist()}"
    return None


@pytest.mark.sample(5)
@pytest.mark.parametrize("first", range(0, QUICK, 50))
def test_random_programs_agree_with_the_interpreter(first: int) -> None:
    assert [found for seed in range(first, first + 50) if (found := difference(seed))] == []


@pytest.mark.parametrize("seed", range(1000, 1000 + KERNELS))
def test_random_programs_agree_in_kernels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "host_tier", False)
    assert difference(seed) is None


@pytest.mark.parametrize("seed", range(2000, 2000 + KERNELS))
def test_random_programs_agree_as_pending_values(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "host_tier", False)
    monkeypatch.setattr(contracting, "MAX_HOST_POINTS", -1)
    with force("fused"):
        assert difference(seed) is None


def main(first: int, last: int, tier: str) -> None:
    """Try the programs of some seeds: as small arrays, by kernels, or pending."""
    config.host_tier = not tier
    if tier == "pending":
        contracting.MAX_HOST_POINTS = -1
    with force("fused") if tier == "pending" else nullcontext():
        for number in range(first, last):
            wrong = difference(number)
            if wrong:
                print(number, wrong, flush=True)
            if number % 1000 == 999:
                print(number + 1, "done", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "".join(sys.argv[3:]))
