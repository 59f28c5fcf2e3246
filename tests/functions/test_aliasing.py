"""Which results are views and which are copies: as in NumPy, tested by writing to the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

#: Arrays by memory layout; sizes are below and above the limit of what the host computes eagerly.
MAKERS: dict[str, Callable[[Any, Any, int], Any]] = {
    "vector": lambda xp, base, n: base,
    "every second": lambda xp, base, n: base[::2],
    "reversed": lambda xp, base, n: base[::-1],
    "part": lambda xp, base, n: base[4:-4],
    "one of them": lambda xp, base, n: base[3:4][::-1],
    "matrix": lambda xp, base, n: base.reshape(4, -1),
    "transposed": lambda xp, base, n: base.reshape(4, -1).T,
    "columns": lambda xp, base, n: base.reshape(4, -1)[:, 1:-1],
    "rows": lambda xp, base, n: base.reshape(4, -1)[1:3],
    "every second row": lambda xp, base, n: base.reshape(4, -1)[::2],
    "turned rows": lambda xp, base, n: base.reshape(4, -1)[::-1],
    "cube": lambda xp, base, n: base.reshape(2, 4, -1),
    "turned cube": lambda xp, base, n: xp.transpose(base.reshape(2, 4, -1), (1, 0, 2)),
    "mirrored cube": lambda xp, base, n: xp.transpose(base.reshape(2, 4, -1), (1, 0, 2))[:, ::-1],
    "cube of columns": lambda xp, base, n: base.reshape(2, 4, -1).T,
    "thin": lambda xp, base, n: base.reshape(-1, 1)[::1],
    "thin and strided": lambda xp, base, n: base.reshape(-1, 1)[::2],
}
ORDERED: dict[str, Callable[[Any, Any, str], Any]] = {
    "ravel()": lambda xp, x, order: x.ravel(order),
    "ravel": lambda xp, x, order: xp.ravel(x, order),
    "flatten": lambda xp, x, order: x.flatten(order),
    "reshape": lambda xp, x, order: xp.reshape(x, (-1,), order),
    "reshape()": lambda xp, x, order: x.reshape(-1, order=order),
    "halves": lambda xp, x, order: x.reshape((x.size, 1), order=order),
    "copied": lambda xp, x, order: xp.reshape(x, (-1,), order, copy=True),
}
PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "default ravel": lambda xp, x: x.ravel(),
    "transpose": lambda xp, x: xp.transpose(x),
    "T": lambda xp, x: x.T,
    "squeeze": lambda xp, x: xp.squeeze(x),
    "expand_dims": lambda xp, x: xp.expand_dims(x, 0),
    "swapaxes": lambda xp, x: xp.swapaxes(x, 0, -1),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, -1),
    "flip": lambda xp, x: xp.flip(x),
    "atleast_2d": lambda xp, x: xp.atleast_2d(x),
    "asarray": lambda xp, x: xp.asarray(x),
    "array": lambda xp, x: xp.array(x),
    "ascontiguousarray": lambda xp, x: xp.ascontiguousarray(x),
    "astype": lambda xp, x: x.astype(x.dtype),
    "astype without copy": lambda xp, x: x.astype(x.dtype, copy=False),
    "copy": lambda xp, x: x.copy(),
    "slice": lambda xp, x: x[1:],
    "list": lambda xp, x: x[[0, 1]] if x.shape[0] > 1 else x[[0]],
    "split": lambda xp, x: xp.split(x, [1])[0],
    "real": lambda xp, x: x.real,
    "roll": lambda xp, x: xp.roll(x, 1),
    "repeat": lambda xp, x: xp.repeat(x, 1),
    "take": lambda xp, x: xp.take(x, xp.asarray([0])),
    "flat copy": lambda xp, x: x.flat.copy(),
    "flat slice": lambda xp, x: x.flat[0:2],
}


def written(xp: Any, maker: str, size: int, operation: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the result before it is written to, and all the memory of the array after that."""
    base = xp.arange(size) + 0
    result = operation(xp, MAKERS[maker](xp, base, size))
    before = np.asarray(result.asnumpy() if xp is dp else result).copy()
    result[...] = -1
    return before, base.asnumpy() if xp is dp else base


@pytest.mark.parametrize("size", [48, 9600])
@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("maker", MAKERS)
def test_orders(maker: str, name: str, order: str, size: int) -> None:
    if order == "K" and "ravel" not in name and name != "flatten":
        with pytest.raises(ValueError, match="order"):
            ORDERED[name](dp, dp.arange(4), order)
        return

    def operation(xp: Any, x: Any) -> Any:
        return ORDERED[name](xp, x, order)

    found, wanted = (written(xp, maker, size, operation) for xp in (dp, np))
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("size", [48, 9600])
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("maker", MAKERS)
def test_functions(maker: str, name: str, size: int) -> None:
    found, wanted = (written(xp, maker, size, PLAIN[name]) for xp in (dp, np))
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("size", [5, 9000])
def test_broadcast_operands_are_copied(size: int) -> None:
    base = dp.arange(size)
    flat = dp.broadcast_to(base, (3, size)).ravel()
    flat[0] = -1
    assert base[0] == 0
    assert flat.tolist() == [-1, *range(1, size), *range(size), *range(size)]
    assert dp.broadcast_to(base[:1], (4,)).ravel().tolist() == [0] * 4


@pytest.mark.parametrize("size", [5, 9000])
def test_flat_writes_to_the_array_itself(size: int) -> None:
    for select in (slice(None, None, 2), slice(None, None, -1)):
        base, values = dp.arange(size), np.arange(size)
        base[select].flat[1:3] = 77
        values[select].flat[1:3] = 77
        assert (base.asnumpy() == values).all()


def test_a_pending_array_and_its_ravel_are_one() -> None:
    x = dp.arange(9600) * 2
    flat = x.reshape(4, -1).ravel()
    flat[0] = 5
    assert x[0] == 5


def test_there_is_no_other_order() -> None:
    with pytest.raises(ValueError, match=r"ravel: order must be .* got 'Z'"):
        dp.ravel(dp.ones(3), "Z")
