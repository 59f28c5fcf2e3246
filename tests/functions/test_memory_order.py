"""Results keep the memory order of their operands, like NumPy's order ``"K"``."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from tests.support import force

WAYS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "as it comes": contextlib.nullcontext,
    "eager": lambda: dp.config.override(lazy=False),
    "no host tier": lambda: dp.config.override(host_tier=False),
    "library": lambda: force("library"),
    "fused": lambda: force("fused"),
}
#: The last shape is too large for the host to compute eagerly.
SHAPES = ((2, 3), (3, 1, 5), (120, 90))

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda xp, x: x + 1,
    "two": lambda xp, x: x * x + x,
    "broadcast": lambda xp, x: x + x[:1],
    "turned": lambda xp, x: (x + 1).T * 2,
    "reversed": lambda xp, x: (x + 1)[..., ::-1] + 1,
    "compared": lambda xp, x: x > 0,
    "where": lambda xp, x: xp.where(x > 0, x, -1.0),
    "kept": lambda xp, x: (x + 1).sum(0, keepdims=True),
    "copy": lambda xp, x: xp.copy(x, order="K"),
    "method": lambda xp, x: x.copy("A"),
    "astype": lambda xp, x: x.astype("float32"),
    "astype C": lambda xp, x: x.astype("float32", order="C"),
    "array": lambda xp, x: xp.array(x),
    "like": lambda xp, x: xp.zeros_like(x),
    "like A": lambda xp, x: xp.ones_like(x, order="A"),
    "concat": lambda xp, x: xp.concatenate([x, x], 0),
    "insert": lambda xp, x: xp.insert(x, 0, 5.0, 0),
    "pad": lambda xp, x: xp.pad(x, 1),
    "ufunc": lambda xp, x: xp.logaddexp2(x, 1.0),
    "flatten": lambda xp, x: x.flatten("K"),
    "ravel": lambda xp, x: (x + 1).ravel("A"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CALLS)
def test_order_of_results(name: str, way: str) -> None:
    call = CALLS[name]
    with WAYS[way]():
        for shape in SHAPES:
            host = np.random.default_rng(1).normal(size=shape)
            for axes in itertools.permutations(range(len(shape))):
                wanted = call(np, host.transpose(axes))
                found = call(dp, dp.permute_dims(dp.asarray(host), axes))
                np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6, err_msg=str(axes))
                if wanted.size < 2:
                    continue
                flags = found.flags.c_contiguous, found.flags.f_contiguous
                assert flags == (wanted.flags.c_contiguous, wanted.flags.f_contiguous), axes


@pytest.mark.parametrize("way", WAYS)
def test_a_given_array_keeps_its_order(way: str) -> None:
    with WAYS[way]():
        host = np.arange(12.0).reshape(3, 4)
        for out in (dp.ones((4, 3)), dp.ones((4, 3)) * 2, dp.ones((3, 4)).T):
            strides = out.strides
            dp.add(dp.asarray(host).T, 1, out=out)
            np.testing.assert_array_equal(out.asnumpy(), host.T + 1)
            assert out.strides == strides


def test_columns_are_traversed_once() -> None:
    x = dp.ones((300, 200)).T
    launches = [step for step in dp.explain(x * 2 + x).source.splitlines() if "i1" in step]
    assert launches == []


def test_arrays_of_the_host_keep_their_order() -> None:
    for shape in ((3, 4), (120, 90)):
        host = np.asfortranarray(np.random.default_rng(1).normal(size=shape))
        x = dp.asarray(host)
        assert x.flags.f_contiguous
        np.testing.assert_array_equal(x.asnumpy(), host)
        assert dp.asarray(host, order="C").flags.c_contiguous


CONVERTING: dict[str, Callable[[Any, Any], Any]] = {
    "clip": lambda xp, x: xp.clip(x, None, 0.5),
    "clip on both sides": lambda xp, x: xp.clip(x, -0.5, 2.5),
    "round": lambda xp, x: xp.round(x),
    "round to decimals": lambda xp, x: xp.round(x, 1),
    "heaviside": lambda xp, x: xp.heaviside(x, 0.5),
    "fmax": lambda xp, x: xp.fmax(x, xp.nan),
    "sinc": lambda xp, x: xp.sinc(x),
    "i0": lambda xp, x: xp.i0(x),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x),
    "unwrap": lambda xp, x: xp.unwrap(x),
    "degrees": lambda xp, x: xp.degrees(x),
    "square": lambda xp, x: x**2,
}


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "float32"])
@pytest.mark.parametrize("name", CONVERTING)
@pytest.mark.parametrize("way", WAYS)
def test_copies_of_broadcast_operands(way: str, name: str, dtype: str) -> None:
    """Converted operands have the axis order of results, and copied operands that of copies."""
    call, row = CONVERTING[name], np.arange(4).astype(dtype)
    for turned in (False, True):
        spread = [xp.broadcast_to(of, (3, 4)) for xp, of in ((np, row), (dp, dp.asarray(row)))]
        theirs, ours = (x.T if turned else x for x in spread)
        try:
            wanted = call(np, theirs)
        except TypeError:
            pytest.skip("NumPy has no such loop")
        with WAYS[way]():
            found = call(dp, ours)
            assert found.block is not None
        if found.dtype == wanted.dtype:
            assert found.strides == wanted.strides
