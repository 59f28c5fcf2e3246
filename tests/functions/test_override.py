"""The override: a class with ``__dparray_function__`` gets the function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray.exceptions import ShardingError


class Other:
    """An array of another class, which records the functions that it is asked for."""

    shape, ndim, size = (3,), 1, 3

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __dparray_function__(self, *call: Any) -> Any:
        self.calls.append(call)
        return "taken"


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        *(("", name) for name in ("sin", "rint", "sum", "trace", "sort", "asarray", "array")),
        *(("", name) for name in ("asnumpy", "ravel", "isfinite", "shape", "astype", "clip")),
        *(("linalg", name) for name in ("norm", "inv", "diagonal")),
        *(("fft", name) for name in ("fft", "rfft", "fftshift")),
        *(("special", name) for name in dp.special.__all__ if name not in ("multigammaln", "perm")),
    ],
)
def test_the_function_is_handed_over_not_its_name(namespace: str, name: str) -> None:
    function = getattr(getattr(dp, namespace) if namespace else dp, name)
    other = Other()
    if name == "astype":
        function(other, dp.float32)
    else:
        count = dp.special._ROWS[name].parameters.count(" ") if name in dp.special._ROWS else 0
        function(other, *[1] * (count + (name == "comb")))
    assert other.calls[0][0] is function


_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "x[...] = other": lambda x, other: x.__setitem__(Ellipsis, other),
    "x[1:] = other": lambda x, other: x.__setitem__(slice(1, None), other),
    "x[0] = other": lambda x, other: x.__setitem__(0, other),
    "x[mask] = other": lambda x, other: x.__setitem__(x > 1, other),
    "x[indices] = other": lambda x, other: x.__setitem__(dp.asarray([0, 2]), other),
    "x.fill": lambda x, other: x.fill(other),
    "x.put": lambda x, other: x.put([0], other),
    "add.at": lambda x, other: dp.add.at(x, [0], other),
    "eval": lambda x, other: dp.eval(x, other),
}


@pytest.mark.parametrize("name", _IN_PLACE)
def test_statements_are_handed_over(name: str) -> None:
    x, other = dp.asarray([1.0, 2.0, 3.0]), Other()
    _IN_PLACE[name](x, other)
    assert len(other.calls) == 1
    assert x.tolist() == [1.0, 2.0, 3.0]


@dp.kernel
def _one(item: Any, x: Any) -> None:
    x[item.get_id(0)] = 1


_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "x.dot": lambda x, other: x.dot(other),
    "x @ other": lambda x, other: x @ other,
    "other - x": lambda x, other: dp.subtract(other, x),
    "x.searchsorted": lambda x, other: x.searchsorted(other),
    "x.clip": lambda x, other: x.clip(other),
    "where=": lambda x, other: dp.sum(x, where=other),
    "out= of a reduction": lambda x, other: dp.sum(x, out=other),
    "out= of a function": lambda x, other: dp.add(x, x, out=other),
    "block": lambda x, other: dp.block([[x, other], [x, x]]),
    "asarray of a list": lambda x, other: dp.asarray([[1.0, other]]),
    "array of a list": lambda x, other: dp.array([other, other]),
    "jit": lambda x, other: dp.jit(lambda a: a + 1)(other),
    "elementwise": lambda x, other: dp.elementwise(lambda a: a + 1)(other),
    "elementwise by name": lambda x, other: dp.elementwise(lambda a, b: a + b)(x, b=other),
    "reduction": lambda x, other: dp.reduction(lambda a, b: a + b, identity=0)(other),
    "call_kernel": lambda x, other: dp.call_kernel(_one, dp.Range(3), other),
    "random.normal": lambda x, other: dp.random.normal(other, 1.0),
}


@pytest.mark.parametrize("name", _CALLS)
def test_calls_are_handed_over(name: str) -> None:
    other = Other()
    assert _CALLS[name](dp.asarray([1.0, 2.0, 3.0]), other) == "taken"
    assert len(other.calls) == 1


def _sharded() -> Any:
    device = dp.default_device()
    return dp.distribute(dp.arange(6.0) / 8, [device, device.new_queue()])


def test_shards_have_special_functions_and_users_functions() -> None:
    x = _sharded()
    whole = x.gather()
    assert np.array_equal(dp.special.erf(x).asnumpy(), dp.special.erf(whole).asnumpy())
    assert np.array_equal(
        dp.special.beta(x + 1, 2.0).asnumpy(), dp.special.beta(whole + 1, 2.0).asnumpy()
    )
    scaled = dp.elementwise(lambda a, factor=2.0: a * factor)
    assert np.array_equal(scaled(x).asnumpy(), whole.asnumpy() * 2)


def test_shards_take_functions_whose_name_is_that_of_a_module() -> None:
    with pytest.raises(ShardingError, match=r"fft: .*x\.gather\(\)"):
        dp.fft.fft(_sharded())


def test_shards_are_evaluated_by_eval() -> None:
    x = _sharded() + 1
    dp.eval(x)
    assert not any(shard.is_pending for shard in x.shards)
