"""Functions of small arrays, which NumPy computes eagerly: all results are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp

DTYPES = ("bool", "int8", "uint32", "int64", "float16", "float32", "float64", "complex128")
SHAPES = ((), (0,), (1,), (7,), (3, 4), (2, 3, 4))

FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sort": lambda xp, x, y: xp.sort(x),
    "sort flattened": lambda xp, x, y: xp.sort(x, axis=None),
    "sort along the first axis": lambda xp, x, y: xp.sort(x, axis=0),
    "argsort": lambda xp, x, y: xp.argsort(x, kind="stable"),
    "argsort along the first axis": lambda xp, x, y: xp.argsort(x, axis=0, kind="stable"),
    "lexsort": lambda xp, x, y: xp.lexsort((x, y)),
    "partition": lambda xp, x, y: xp.partition(x, 0)[..., 0],
    "inner": lambda xp, x, y: xp.inner(x, y),
    "vdot": lambda xp, x, y: xp.vdot(x, y),
    "einsum": lambda xp, x, y: xp.einsum("...i,...i->...", x, y),
    "einsum of a view": lambda xp, x, y: xp.einsum("...ij->...ji", x),
    "append": lambda xp, x, y: xp.append(x, y),
    "append along an axis": lambda xp, x, y: xp.append(x, y, axis=0),
    "resize": lambda xp, x, y: xp.resize(x, (3, 5)),
    "cumulative_sum": lambda xp, x, y: xp.cumulative_sum(x, axis=-1),
    "cumulative_prod": lambda xp, x, y: xp.cumulative_prod(x, axis=0),
    "nanmedian": lambda xp, x, y: xp.nanmedian(x, keepdims=True),
    "nanmedian along an axis": lambda xp, x, y: xp.nanmedian(x, axis=0),
    "nanquantile": lambda xp, x, y: xp.nanquantile(x, [0.3, 0.5], axis=-1),
    "nanpercentile": lambda xp, x, y: xp.nanpercentile(x, 40),
    "fmod": lambda xp, x, y: xp.fmod(x, y),
    "heaviside": lambda xp, x, y: xp.heaviside(x, 0.5),
    "deg2rad": lambda xp, x, y: xp.deg2rad(x),
    "gcd": lambda xp, x, y: xp.gcd(x, 6),
    "rows": lambda xp, x, y: x[[1, 0, -1]],
    "columns": lambda xp, x, y: x[..., xp.asarray([0, -1, 0])],
    "columns by a list": lambda xp, x, y: x[:, [1, 0], None],
    "elements": lambda xp, x, y: x[xp.asarray([1, 0]), xp.asarray([[1], [0]])],
    "elements out of range": lambda xp, x, y: x[0:1, xp.asarray([1, 9])],
    "columns of a mask": lambda xp, x, y: x[:, xp.asarray([True, False, True])],
    "append a number": lambda xp, x, y: xp.append(x, 2),
    "append a fraction": lambda xp, x, y: xp.append(x, 2.5),
    "rows joined": lambda xp, x, y: xp.r_[x, y, 1],
    "columns joined": lambda xp, x, y: xp.c_[x, y],
    "array of arrays": lambda xp, x, y: xp.array([x, y, x]),
    "array of arrays and numbers": lambda xp, x, y: xp.array([[x, y], [y, 2]]),
    "array of sums": lambda xp, x, y: xp.asarray([x.sum(), y.max()]),
    "expand_dims": lambda xp, x, y: xp.expand_dims(x, -1) + xp.expand_dims(x, 1),
    "expand_dims beyond": lambda xp, x, y: xp.expand_dims(x, 5),
    "squeeze": lambda xp, x, y: xp.squeeze(x[..., None]),
    "squeeze an axis": lambda xp, x, y: xp.squeeze(x, 0),
    "atleast_2d": lambda xp, x, y: xp.atleast_2d(x),
    "atleast_3d": lambda xp, x, y: xp.atleast_3d(x),
    "tensordot": lambda xp, x, y: xp.tensordot(x, y, axes=([-1], [-1])),
    "unravel_index": lambda xp, x, y: xp.stack(xp.unravel_index(x, (3, 4), order="F")),
    "nonzero": lambda xp, x, y: xp.stack(xp.nonzero(x)),
    "argwhere": lambda xp, x, y: xp.argwhere(x > 3),
    "full_like": lambda xp, x, y: xp.full_like(x, 3),
    "full_like of a fraction": lambda xp, x, y: xp.full_like(x, 2.5),
    "isin": lambda xp, x, y: xp.isin(x, y),
    "isin a number": lambda xp, x, y: xp.isin(x, 3, invert=True),
    "norm": lambda xp, x, y: xp.linalg.norm(x + 0.5),
    "norm along an axis": lambda xp, x, y: xp.linalg.norm(x, axis=-1, keepdims=True),
    "det": lambda xp, x, y: xp.linalg.det(x),
    "slogdet": lambda xp, x, y: xp.linalg.slogdet(x[..., :2, :2])[1],
    "pad": lambda xp, x, y: xp.pad(x, 1),
    "pad by the edge": lambda xp, x, y: xp.pad(x.T, (1, 2), "edge"),
    "pad by reflection": lambda xp, x, y: xp.pad(x, 1, "reflect"),
    "pad with a number": lambda xp, x, y: xp.pad(x, 1, constant_values=2),
    "pad with its dtype": lambda xp, x, y: xp.pad(x, 1, constant_values=x.dtype.type(2)),
    "matmul": lambda xp, x, y: xp.matmul(x, x.swapaxes(0, -1)),
    "matmul of a vector": lambda xp, x, y: xp.matmul(x.reshape(-1), x.reshape(-1)),
    "bincount": lambda xp, x, y: xp.bincount(x.astype("int64").ravel()),
    "interp": lambda xp, x, y: xp.interp(x, xp.arange(3.0), xp.arange(3.0)),
    "fft": lambda xp, x, y: xp.fft.fft(x),
    "unique": lambda xp, x, y: xp.unique(x, return_counts=True)[1],
    "diag": lambda xp, x, y: xp.diag(x),
}


#: Arguments for which dparray differs from NumPy on purpose.
DIFFERENCES: dict[str, Callable[[np.ndarray], bool]] = {
    "append along an axis": lambda x: not x.ndim,  # an AxisError, which is a ValueError as well
    "bincount": lambda x: x.dtype.kind == "c",  # no silent loss of imaginary parts
    "cumulative_prod": lambda x: not x.ndim,
    "cumulative_sum": lambda x: not x.ndim,
    "interp": lambda x: x.dtype.kind == "c",
    "lexsort": lambda x: not x.ndim,
    "nanpercentile": lambda x: x.dtype.kind == "b",
    "nanquantile": lambda x: x.dtype.kind == "b" or not x.size,  # NumPy loses the axis
    "unravel_index": lambda x: x.dtype.kind == "b",
}


def result_of(function: Callable[[Any, Any, Any], Any], xp: Any, *operands: Any) -> Any:
    """Return the values, or the kind of error that the function raises."""
    kinds = (IndexError, TypeError, ValueError)
    try:
        found = function(xp, *operands)
    except kinds as error:
        return next(kind for kind in kinds if isinstance(error, kind))
    return found.asnumpy() if isinstance(found, dp.ndarray) else np.asarray(found)


def assert_same(found: Any, wanted: Any, context: object) -> None:
    """Fail unless both raise the same kind of error, or are arrays with the same values."""
    if isinstance(found, type) or isinstance(wanted, type):
        assert found is wanted, context
        return
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), context
    tolerance = 2e-3 if found.dtype == np.float16 else 1e-6
    is_exact = found.dtype.kind not in "fc"
    np.testing.assert_allclose(found, wanted, 0 if is_exact else tolerance, err_msg=str(context))


@pytest.mark.sample(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_arrays_agree_with_every_other_path(name: str) -> None:
    function = FUNCTIONS[name]
    random = np.random.default_rng(3)
    for dtype in DTYPES:
        for shape in SHAPES:
            values = random.integers(0, 7, (2, *shape)).astype(dtype)
            if values.dtype.kind in "fc" and values.size > 4:
                values[0].flat[2] = np.nan
            x, y = map(dp.asarray, values)
            found = result_of(function, dp, x, y)
            with dp.config.override(host_tier=False):
                otherwise = result_of(function, dp, x, y)
            assert_same(found, otherwise, (dtype, shape))
            wanted = result_of(function, np, *values)
            if not DIFFERENCES.get(name, lambda x: False)(values[0]):
                assert_same(found, wanted, (dtype, shape))
