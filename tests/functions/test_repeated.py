"""`repeat` and `tile` on every backend, compared with NumPy: short and wide rows, any alignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import ShapeError
from tests.support import force

REPEATED = {
    "each twice": ((20_001,), lambda xp, x: xp.repeat(x, 2)),
    "each three times, of rows": ((7001, 3), lambda xp, x: xp.repeat(x, 3, 1)),
    "each seventeen times": ((2100,), lambda xp, x: xp.repeat(x, 17)),
    "rows of one": ((20_001, 1), lambda xp, x: xp.tile(x, (1, 3))),
    "short rows": ((9000, 2), lambda xp, x: xp.repeat(x, 2, 0)),
    "odd rows": ((5000, 3), lambda xp, x: xp.tile(x, (1, 3))),
    "rows of eight": ((3000, 8), lambda xp, x: xp.tile(x, (2, 2))),
    "planes": ((300, 4, 16), lambda xp, x: xp.repeat(x, 2, 1)),
    "more axes": ((50, 8), lambda xp, x: xp.tile(x, (10, 1, 3, 1))),
    "one short row": ((3,), lambda xp, x: xp.tile(x, (10_007, 1))),
    "one short row in a line": ((2,), lambda xp, x: xp.tile(x, 20_003)),
    "one number": ((), lambda xp, x: xp.tile(x, 40_001)),
    "a long row": ((5000,), lambda xp, x: xp.tile(x, (7, 1))),
    "never": ((500, 4), lambda xp, x: xp.repeat(x, 0, 1)),
    "nothing": ((0, 4), lambda xp, x: xp.tile(x, (1000, 3))),
    "as often as is said": ((4000, 3), lambda xp, x: xp.repeat(x, [0, 3, 1], 1)),
}
PARTS = {
    "all": lambda x: x,
    "not from its first": lambda x: x.reshape(-1)[1:],
    "every other": lambda x: x[::2],
    "turned": lambda x: x.T,
    "backwards": lambda x: x[::-1],
}


def _numbered(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) * 7 % 251).astype(dtype).reshape(shape)


@pytest.mark.parametrize("executor", ["any", "host", "fused"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", REPEATED)
def test_repeated_like_numpy(name: str, dtype: str, executor: str) -> None:
    shape, act = REPEATED[name]
    values = _numbered(shape, dtype)
    wanted = act(np, values)
    if executor == "any":
        found = act(dp, dp.asarray(values)).asnumpy()
    else:
        with force(executor):
            found = act(dp, dp.asarray(values)).asnumpy()
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "complex64", "float64"])
def test_dtypes_repeated(dtype: str) -> None:
    values = _numbered((9000, 2), dtype)
    for act in (lambda xp, x: xp.repeat(x, 2), lambda xp, x: xp.tile(x, (1, 2))):
        found, wanted = act(dp, dp.asarray(values)).asnumpy(), act(np, values)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("part", PARTS)
def test_parts_repeated(part: str) -> None:
    values = _numbered((8008, 8), "uint8")
    of, given = PARTS[part](values), PARTS[part](dp.asarray(values))
    with force("fused"):
        for act in (lambda xp, x: xp.tile(x, 2), lambda xp, x: xp.repeat(x, 2, 0)):
            np.testing.assert_array_equal(act(dp, given).asnumpy(), act(np, of))


def test_pending_arrays_are_repeated_and_used() -> None:
    values = _numbered((6000, 4), "uint8")
    x = dp.asarray(values)
    found = dp.tile(x + 1, (1, 2)) * 2 + dp.repeat(x, 2, 1)
    wanted = np.tile(values + 1, (1, 2)) * 2 + np.repeat(values, 2, 1)
    np.testing.assert_array_equal(found.asnumpy(), wanted)


def test_nan_keeps_its_bits() -> None:
    values = np.full((9000, 2), 0x7FA00001, np.uint32).view(np.float32)
    found: Any = dp.tile(dp.asarray(values), (1, 2)).asnumpy()
    np.testing.assert_array_equal(found.view(np.uint32), np.tile(values, (1, 2)).view(np.uint32))


@pytest.mark.parametrize("executor", ["host", "fused"])
def test_a_column_of_an_array_is_written_to_all_of_it(executor: str) -> None:
    values = _numbered((6000, 3), "uint8")
    x = dp.asarray(values)
    values[...] = values[::-1, :1]
    with force(executor):
        x[...] = x[::-1, :1]
        np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_a_negative_number_of_no_elements_is_accepted_as_in_numpy(
    shape: tuple[int, ...], axis: int | None
) -> None:
    host = np.zeros(shape)
    for given, x in ((host, dp.asarray(host)), (host.tolist(), host.tolist())):
        try:
            expected = np.repeat(given, -1, axis)
        except ValueError:
            with pytest.raises(ShapeError, match="negative"):
                dp.repeat(x, -1, axis)
        else:
            assert dp.repeat(x, -1, axis).shape == expected.shape
