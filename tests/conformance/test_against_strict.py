"""Comparison with array-api-strict, the reference of the standard.

dparray must return the same dtype, shape and values for all input that array-api-strict accepts.
All names of the standard are checked: a function, operator or attribute that is missing, or is not
called here, fails. Hypothesis draws the arguments: dtypes, shapes (also empty ones), axes, and
views with negative and permuted strides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

os.environ.setdefault("ARRAY_API_STRICT_API_VERSION", "2025.12")
strict = pytest.importorskip("array_api_strict")

import dparray as dp  # noqa: E402 - after the version of the standard is set
from tests.support import examples, names_in  # noqa: E402

strict.set_array_api_strict_flags(api_version="2025.12")

REALS = ["float32", "float64"]
FLOATS = [*REALS, "complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-30, 1e30]


# -- calls ----------------------------------------------------------------------------------------

ONE = names_in(
    """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1
    floor imag isfinite isinf isnan log log10 log1p log2 logical_not negative positive
    real reciprocal round sign signbit sin sinh sqrt square tan tanh trunc
    """
)
TWO = names_in(
    """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    copysign divide equal floor_divide greater greater_equal hypot less less_equal
    logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter
    not_equal pow remainder subtract
    """
)
AXES = names_in(
    """
    all any count_nonzero max mean min prod std sum var
    """
)


class Drawn:
    """Values drawn by hypothesis for one call; they are stored, so that both modules get the same.

    Attributes:
        shape, own: the shape and the dtype of both arrays.
    """

    def __init__(self, data: st.DataObject, shape: tuple[int, ...], own: str) -> None:
        self.data = data
        self.shape = shape
        self.own = own
        self.known: dict[str, Any] = {}

    def __call__(self, name: str, strategy: st.SearchStrategy[Any]) -> Any:
        if name not in self.known:
            self.known[name] = self.data.draw(strategy, label=name)
        return self.known[name]

    @property
    def axis(self) -> int:
        return self("axis", st.integers(-len(self.shape), len(self.shape) - 1))

    @property
    def axis_or_none(self) -> int | None:
        return self("axis_or_none", st.none() | st.integers(-len(self.shape), len(self.shape) - 1))

    @property
    def axes(self) -> tuple[int, ...]:
        return self("axes", st.permutations(range(len(self.shape))).map(tuple))

    @property
    def number(self) -> int:
        return self("number", st.integers(-3, 5))

    @property
    def count(self) -> int:
        return self("count", st.integers(1, 5))

    @property
    def flag(self) -> bool:
        return self("flag", st.booleans())

    @property
    def dtype(self) -> str:
        return self("dtype", st.sampled_from(DTYPES))

    @property
    def of_its_kind(self) -> str:
        """Draw a dtype of the arrays' kind: the standard does not specify casts between kinds."""
        names = [name for name in DTYPES if np.dtype(name).kind == np.dtype(self.own).kind]
        return self("of_its_kind", st.sampled_from(names))

    @property
    def positions(self) -> list[int]:
        return self("positions", st.lists(st.integers(0, 11), max_size=6))

    @property
    def norm(self) -> str:
        return self("norm", st.sampled_from(["backward", "ortho", "forward"]))


def flat(xp: Any, x: Any) -> Any:
    return xp.reshape(x, (-1,))


def one_of_each(results: Any) -> tuple[Any, ...]:
    """Convert named tuples to plain ones, without positions, which are unspecified."""
    return tuple(
        getattr(results, name)
        for name in ("values", "inverse_indices", "counts")
        if hasattr(results, name)
    )


#: Called with a module, two arrays of the same shape and dtype, and the drawn values. The arrays
#: have at least one dimension.
Call = Callable[[Any, Any, Any, Drawn], Any]
CALLS: dict[str, Call] = {
    "arange": lambda xp, x, y, d: xp.arange(d.number, 9, d.count, dtype=xp.int32),
    "argmax": lambda xp, x, y, d: xp.argmax(x, axis=d.axis, keepdims=d.flag),
    "argmin": lambda xp, x, y, d: xp.argmin(x, axis=d.axis_or_none, keepdims=d.flag),
    "argsort": lambda xp, x, y, d: xp.argsort(x, axis=d.axis, descending=d.flag),
    "asarray": lambda xp, x, y, d: xp.asarray(x, copy=d.flag or None),
    "astype": lambda xp, x, y, d: xp.astype(x, getattr(xp, d.dtype), copy=d.flag),
    "broadcast_arrays": lambda xp, x, y, d: xp.broadcast_arrays(x, y[:1, ...]),
    "broadcast_to": lambda xp, x, y, d: xp.broadcast_to(x, (d.count, *x.shape)),
    "can_cast": lambda xp, x, y, d: xp.can_cast(x, getattr(xp, d.of_its_kind)),
    "clip": lambda xp, x, y, d: xp.clip(x, 1, 3) if d.flag else xp.clip(x, max=y),
    "concat": lambda xp, x, y, d: xp.concat([x, y, x], axis=d.axis_or_none),
    "cumulative_prod": lambda xp, x, y, d: xp.cumulative_prod(
        x, axis=d.axis, include_initial=d.flag
    ),
    "cumulative_sum": lambda xp, x, y, d: xp.cumulative_sum(x, axis=d.axis, include_initial=d.flag),
    "diff": lambda xp, x, y, d: xp.diff(x, axis=d.axis, n=d.count % 3, prepend=y),
    "empty": lambda xp, x, y, d: xp.empty(x.shape, dtype=x.dtype).shape,
    "empty_like": lambda xp, x, y, d: xp.empty_like(x).shape,
    "expand_dims": lambda xp, x, y, d: xp.expand_dims(x, axis=d.axis),
    "eye": lambda xp, x, y, d: xp.eye(d.count, 4, k=d.number, dtype=getattr(xp, d.dtype)),
    "finfo": lambda xp, x, y, d: [
        getattr(xp.finfo(x.dtype), name) for name in ("bits", "eps", "max", "min")
    ],
    "flip": lambda xp, x, y, d: xp.flip(x, axis=d.axis_or_none),
    "from_dlpack": lambda xp, x, y, d: xp.from_dlpack(x),
    "full": lambda xp, x, y, d: xp.full(x.shape, d.number),
    "full_like": lambda xp, x, y, d: xp.full_like(x, d.count),
    "iinfo": lambda xp, x, y, d: [getattr(xp.iinfo(x.dtype), name) for name in ("bits", "max")],
    "isdtype": lambda xp, x, y, d: xp.isdtype(x.dtype, ("integral", getattr(xp, d.dtype))),
    "linspace": lambda xp, x, y, d: xp.linspace(d.number, 9, d.count, endpoint=d.flag),
    "matmul": lambda xp, x, y, d: xp.matmul(x, xp.matrix_transpose(y)),
    "matrix_transpose": lambda xp, x, y, d: xp.matrix_transpose(x),
    "meshgrid": lambda xp, x, y, d: xp.meshgrid(
        flat(xp, x), flat(xp, y), indexing="ij" if d.flag else "xy"
    ),
    "moveaxis": lambda xp, x, y, d: xp.moveaxis(x, d.axis, 0),
    "nonzero": lambda xp, x, y, d: xp.nonzero(x),
    "ones": lambda xp, x, y, d: xp.ones(x.shape, dtype=x.dtype),
    "ones_like": lambda xp, x, y, d: xp.ones_like(x, dtype=getattr(xp, d.dtype)),
    "permute_dims": lambda xp, x, y, d: xp.permute_dims(x, d.axes),
    "repeat": lambda xp, x, y, d: xp.repeat(x, d.count, axis=d.axis_or_none),
    "reshape": lambda xp, x, y, d: xp.reshape(x, (*reversed(x.shape), 1), copy=d.flag or None),
    "result_type": lambda xp, x, y, d: str(xp.result_type(x, getattr(xp, d.dtype), 2)).rpartition(
        "."
    )[2],
    "roll": lambda xp, x, y, d: xp.roll(x, d.number, axis=d.axis_or_none),
    "searchsorted": lambda xp, x, y, d: xp.searchsorted(
        xp.sort(flat(xp, x)), flat(xp, y), side="right" if d.flag else "left"
    ),
    "sort": lambda xp, x, y, d: xp.sort(x, axis=d.axis, descending=d.flag),
    "squeeze": lambda xp, x, y, d: xp.squeeze(xp.expand_dims(x, axis=d.axis), axis=d.axis),
    "stack": lambda xp, x, y, d: xp.stack([x, y], axis=d.axis),
    "take": lambda xp, x, y, d: xp.take(
        x,
        xp.asarray([p % x.shape[d.axis] for p in d.positions if x.shape[d.axis]], dtype=xp.int64),
        axis=d.axis,
    ),
    "take_along_axis": lambda xp, x, y, d: xp.take_along_axis(
        x, xp.argsort(y, axis=d.axis), axis=d.axis
    ),
    "tensordot": lambda xp, x, y, d: xp.tensordot(x, y, axes=(d.axes, d.axes)),
    "tile": lambda xp, x, y, d: xp.tile(x, (2, d.count)),
    "tril": lambda xp, x, y, d: xp.tril(x, k=d.number),
    "triu": lambda xp, x, y, d: xp.triu(x, k=d.number),
    "unique_all": lambda xp, x, y, d: one_of_each(xp.unique_all(x)),
    "unique_counts": lambda xp, x, y, d: one_of_each(xp.unique_counts(x)),
    "unique_inverse": lambda xp, x, y, d: one_of_each(xp.unique_inverse(x)),
    "unique_values": lambda xp, x, y, d: xp.unique_values(x),
    "unstack": lambda xp, x, y, d: xp.unstack(x, axis=d.axis),
    "vecdot": lambda xp, x, y, d: xp.vecdot(
        x, y, axis=d.axis - len(x.shape) if d.axis >= 0 else d.axis
    ),
    "where": lambda xp, x, y, d: xp.where(x == y, x, y),
    "zeros": lambda xp, x, y, d: xp.zeros(x.shape, dtype=x.dtype),
    "zeros_like": lambda xp, x, y, d: xp.zeros_like(x, dtype=getattr(xp, d.dtype)),
}


def square(xp: Any, x: Any) -> Any:
    """Make square matrices of any matrices."""
    return xp.matmul(x, xp.matrix_transpose(x))


def positive(xp: Any, x: Any) -> Any:
    """Make positive definite Hermitian matrices of any matrices, far from singular."""
    transposed = xp.matrix_transpose(x)
    adjoint = xp.conj(transposed) if xp.isdtype(x.dtype, "complex floating") else transposed
    return xp.matmul(x, adjoint) + xp.eye(x.shape[-2], dtype=x.dtype)


def decomposed(xp: Any, x: Any) -> Any:
    """Multiply the singular vectors back, since each is determined only up to its sign."""
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    return s, xp.matmul(u * xp.astype(s, u.dtype)[..., None, :], vh)


def eigen(xp: Any, x: Any) -> Any:
    """Multiply the eigenvectors back, since each is determined only up to its sign."""
    values, vectors = xp.linalg.eigh(positive(xp, x))
    scaled = vectors * xp.astype(values, x.dtype)[..., None, :]
    adjoint = xp.linalg.inv(vectors)
    return values, xp.matmul(scaled, adjoint)


def triangular(xp: Any, x: Any) -> Any:
    q, r = xp.linalg.qr(x)
    return q.shape, r.shape, xp.matmul(q, r)


#: Functions of ``linalg``: the arrays have two or three dimensions.
LINALG: dict[str, Call] = {
    "cholesky": lambda xp, x, y, d: xp.linalg.cholesky(positive(xp, x), upper=d.flag),
    "cross": lambda xp, x, y, d: xp.linalg.cross(
        xp.broadcast_to(x[..., :1], (*x.shape[:-1], 3)),
        xp.broadcast_to(y[..., -1:], (*x.shape[:-1], 3)),
    ),
    "det": lambda xp, x, y, d: xp.linalg.det(positive(xp, x)),
    "diagonal": lambda xp, x, y, d: xp.linalg.diagonal(x, offset=d.number),
    "eigh": lambda xp, x, y, d: eigen(xp, x),
    "eigvalsh": lambda xp, x, y, d: xp.linalg.eigvalsh(positive(xp, x)),
    "inv": lambda xp, x, y, d: xp.linalg.inv(positive(xp, x)),
    "matmul": lambda xp, x, y, d: xp.linalg.matmul(x, xp.matrix_transpose(y)),
    "matrix_norm": lambda xp, x, y, d: xp.linalg.matrix_norm(
        x,
        keepdims=d.flag,
        ord=d("ord", st.sampled_from(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])),
    ),
    "matrix_power": lambda xp, x, y, d: xp.linalg.matrix_power(positive(xp, x), d.number),
    "matrix_rank": lambda xp, x, y, d: xp.linalg.matrix_rank(x),
    "matrix_transpose": lambda xp, x, y, d: xp.linalg.matrix_transpose(x),
    "outer": lambda xp, x, y, d: xp.linalg.outer(flat(xp, x), flat(xp, y)),
    "pinv": lambda xp, x, y, d: xp.linalg.pinv(positive(xp, x)),
    "qr": lambda xp, x, y, d: triangular(xp, x),
    "slogdet": lambda xp, x, y, d: tuple(xp.linalg.slogdet(positive(xp, x))),
    "solve": lambda xp, x, y, d: xp.linalg.solve(positive(xp, x), y),
    "svd": lambda xp, x, y, d: decomposed(xp, x),
    "svdvals": lambda xp, x, y, d: xp.linalg.svdvals(x),
    "tensordot": lambda xp, x, y, d: xp.linalg.tensordot(
        x, xp.permute_dims(y, tuple(reversed(range(len(y.shape))))), axes=1
    ),
    "trace": lambda xp, x, y, d: xp.linalg.trace(x, offset=d.number),
    "vecdot": lambda xp, x, y, d: xp.linalg.vecdot(x, y),
    "vector_norm": lambda xp, x, y, d: xp.linalg.vector_norm(
        x,
        axis=d.axis_or_none,
        keepdims=d.flag,
        ord=d("ord", st.sampled_from([0, 1, 2, 3, -1, np.inf, -np.inf])),
    ),
}


def _along_an_axis(name: str) -> Call:
    return lambda xp, x, y, d: getattr(xp.fft, name)(
        x, n=d("n", st.none() | st.integers(1, 6)), axis=d.axis, norm=d.norm
    )


def _over_axes(name: str) -> Call:
    return lambda xp, x, y, d: getattr(xp.fft, name)(x, axes=d.axes, norm=d.norm)


def _shifted(name: str) -> Call:
    return lambda xp, x, y, d: getattr(xp.fft, name)(x, axes=d.axis_or_none)


FFT: dict[str, Call] = {
    **{name: _along_an_axis(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{name: _over_axes(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{name: _shifted(name) for name in ("fftshift", "ifftshift")},
    "fftfreq": lambda xp, x, y, d: xp.fft.fftfreq(d.count, d=0.5),
    "rfftfreq": lambda xp, x, y, d: xp.fft.rfftfreq(d.count, d=0.5),
}

#: In array-api-strict's lists, but of a later version of the standard, or not in the standard.
NOT_THE_STANDARDS = {
    *("broadcast_shapes", "isin"),
    *("get_array_api_strict_flags", "set_array_api_strict_flags", "reset_array_api_strict_flags"),
}
#: Checked in a separate test below.
INSPECTION = {"__array_namespace_info__"}


def functions_of(module: Any) -> set[str]:
    """Return the functions of the standard that array-api-strict has in a namespace."""
    return {
        name
        for name in module.__all__
        if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
    } - NOT_THE_STANDARDS


def test_every_function_of_the_standard_is_called() -> None:
    assert functions_of(strict) == ONE | TWO | AXES | CALLS.keys() | INSPECTION
    assert functions_of(strict.linalg) == LINALG.keys()
    assert functions_of(strict.fft) == FFT.keys()


def test_every_name_of_the_standard_is_here() -> None:
    for theirs, ours in ((strict, dp), (strict.linalg, dp.linalg), (strict.fft, dp.fft)):
        own = NOT_THE_STANDARDS | {"Device", "ArrayAPIStrictFlags"}
        assert [
            name for name in theirs.__all__ if name not in own and not hasattr(ours, name)
        ] == []


# -- comparison -----------------------------------------------------------------------------------


def to_numpy(value: Any) -> Any:
    if isinstance(value, dp.ndarray):
        return value.asnumpy()
    if isinstance(value, tuple | list):
        return [to_numpy(part) for part in value]
    return np.asarray(value._array) if hasattr(value, "_array") else value


def assert_same(actual: Any, expected: Any, signed_zeros: bool = False) -> None:
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other, signed_zeros)
    elif isinstance(expected, np.ndarray):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        tolerance = 2e-5 if expected.dtype.char in "fF" else 1e-10
        scale = 1.0
        if expected.size and expected.dtype.kind in "fc":
            scale = max(1.0, float(np.max(abs(expected), where=np.isfinite(expected), initial=0)))
        np.testing.assert_allclose(
            actual, expected, rtol=tolerance, atol=tolerance * min(scale, 1e6)
        )
        if signed_zeros and expected.dtype.kind == "f":
            is_zero = expected == 0
            assert (np.signbit(actual) == np.signbit(expected))[is_zero].all()
    else:
        assert actual == expected


def view(values: np.ndarray, kind: str, **place: Any) -> dp.ndarray:
    """Return a dparray array with these values, in one of several layouts."""
    if kind == "reversed" and values.ndim:
        return dp.asarray(values[::-1].copy(), **place)[::-1]
    if kind == "transposed":
        turned = dp.asarray(values.T.copy(), **place)
        return dp.permute_dims(turned, tuple(range(values.ndim))[::-1])
    if kind == "spaced" and values.ndim:
        spaced = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        spaced[..., ::2] = values
        return dp.asarray(spaced, **place)[..., ::2]
    return dp.asarray(values, **place)


KINDS = st.sampled_from(["contiguous", "reversed", "transposed", "spaced"])
WAYS = st.sampled_from([(True,), (False,)])


def compare(
    call: Callable[..., Any],
    values: Sequence[np.ndarray],
    kind: str = "contiguous",
    ways: Sequence[bool] = (True, False),
    signed_zeros: bool = False,
) -> None:
    """Compare the results of both modules; only input that the reference accepts counts."""
    with np.errstate(all="ignore"):
        try:
            expected = to_numpy(call(strict, *[strict.asarray(value) for value in values]))
        except (TypeError, ValueError, IndexError, np.linalg.LinAlgError):
            return
    for by_host in ways:  # by NumPy in the arrays' memory, or as on any device
        with dp.config.override(host_tier=by_host):
            actual = to_numpy(call(dp, *[view(value, kind) for value in values]))
        assert_same(actual, expected, signed_zeros)


def numbers(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    kind = np.dtype(dtype).kind
    elements: Any = st.integers(0, 5).map(float) if kind in "fc" else st.integers(0, 5)
    if kind == "b":
        elements = st.booleans()
    return hnp.arrays(dtype, shape, elements=elements)


# -- the functions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ONE))
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_functions_of_one_array(name: str, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    x = data.draw(numbers(data.draw(st.sampled_from(DTYPES)), shape))
    compare(lambda xp, x: getattr(xp, name)(x), [x], data.draw(KINDS), data.draw(WAYS))


@pytest.mark.parametrize("name", sorted(TWO))
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_functions_of_two_arrays(name: str, data: st.DataObject) -> None:
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
    first, second = (
        data.draw(numbers(data.draw(st.sampled_from(DTYPES)), shape))
        for shape in shapes.input_shapes
    )
    if name in ("floor_divide", "remainder", "pow") and second.dtype.kind in "iu":
        second = second + second.dtype.type(1)
    compare(
        lambda xp, x, y: getattr(xp, name)(x, y), [first, second], data.draw(KINDS), data.draw(WAYS)
    )


@pytest.mark.parametrize("name", sorted(ONE))
@pytest.mark.parametrize("dtype", REALS)
def test_special_values_of_one_array(name: str, dtype: str) -> None:
    compare(lambda xp, x: getattr(xp, name)(x), [np.asarray(SPECIAL, dtype)], signed_zeros=True)


@pytest.mark.parametrize("name", sorted(TWO))
@pytest.mark.parametrize("dtype", REALS)
def test_special_values_of_two_arrays(name: str, dtype: str) -> None:
    values = np.asarray(SPECIAL, dtype)
    # the standard allows results for infinities that differ from NumPy's
    if name == "floor_divide":
        values = values[np.isfinite(values)]
    compare(
        lambda xp, x, y: getattr(xp, name)(x, y), [values[:, None], values[None]], signed_zeros=True
    )


@pytest.mark.parametrize("name", sorted(AXES))
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_reductions(name: str, data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    dtype = data.draw(st.sampled_from(DTYPES))
    x = data.draw(numbers(dtype, shape))
    if np.dtype(dtype).kind == "f" and data.draw(st.booleans(), label="with specials"):
        x.flat[0] = data.draw(st.sampled_from(SPECIAL[:10]))
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    keepdims = data.draw(st.booleans())
    compare(
        lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims),
        [x],
        data.draw(KINDS),
        data.draw(WAYS),
    )


@pytest.mark.parametrize("name", sorted(CALLS))
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_other_functions(name: str, data: st.DataObject) -> None:
    _check(CALLS[name], data, DTYPES, 1)


@pytest.mark.parametrize("name", sorted(LINALG))
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_linear_algebra(name: str, data: st.DataObject) -> None:
    _check(LINALG[name], data, FLOATS, 2)


@pytest.mark.parametrize("name", sorted(FFT))
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_transforms(name: str, data: st.DataObject) -> None:
    # NumPy's transforms to real numbers read out of bounds if the input has no elements.
    _check(FFT[name], data, DTYPES, 1, int(name in ("hfft", "irfft", "irfftn")))


def _check(
    call: Call, data: st.DataObject, dtypes: list[str], fewest: int, shortest: int = 0
) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=fewest, max_dims=3, min_side=shortest, max_side=4))
    dtype = data.draw(st.sampled_from(dtypes))
    values = [data.draw(numbers(dtype, shape)) for _ in range(2)]
    drawn = Drawn(data, shape, dtype)
    compare(lambda xp, x, y: call(xp, x, y, drawn), values, data.draw(KINDS), data.draw(WAYS))


# -- methods --------------------------------------------------------------------------------------

OPERATORS = names_in(
    """
    add and eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv
    xor
    """
)
REFLECTED = OPERATORS - {"eq", "ge", "gt", "le", "lt", "ne"}
UNARY = names_in(
    """
    abs invert neg pos
    """
)
CONVERSIONS = names_in(
    """
    bool complex float index int
    """
)
#: Called elsewhere in these tests, or attributes of every object.
OTHER_METHODS = names_in(
    """
    array array_namespace dlpack dlpack_device getitem setitem iter hash repr str
    """
)


def test_every_method_of_the_standard_is_here() -> None:
    reference = type(strict.asarray([1]))
    theirs = {name for name in vars(reference) if callable(getattr(reference, name))}
    theirs -= {"__class__", "__init__", "__new__", "__buffer__", "__reduce__", "to_device"}
    called = OPERATORS | UNARY | CONVERSIONS | OTHER_METHODS
    called |= {f"{letter}{name}" for name in REFLECTED for letter in "ri"}
    assert {name.strip("_") for name in theirs if name.endswith("__")} - called == set()
    x = dp.asarray([[1]])
    assert [name for name in called if not hasattr(x, f"__{name}__")] == []
    attributes = ("T", "device", "dtype", "mT", "ndim", "shape", "size", "to_device")
    assert [name for name in attributes if not hasattr(x, name)] == []


@pytest.mark.parametrize("name", sorted(OPERATORS))
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
@pytest.mark.sample(4)
def test_operators(name: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    shape = (2, 2) if name == "matmul" else data.draw(hnp.array_shapes(max_dims=2, max_side=3))
    first, second = (data.draw(numbers(dtype, shape)) for _ in range(2))
    if name in ("floordiv", "mod", "pow") and second.dtype.kind in "iu":
        second = second + second.dtype.type(1)
    compare(lambda xp, x, y: getattr(x, f"__{name}__")(y), [first, second])
    scalar = data.draw(st.sampled_from([1, 2, 1.5, True, 2 + 1j]))
    if name != "matmul":
        compare(partial(_with_scalar, f"__{name}__", scalar), [first])
    if name in REFLECTED:
        compare(partial(_in_place, f"__i{name}__"), [first, second])
        if name != "matmul":
            compare(partial(_with_scalar, f"__r{name}__", scalar), [second])


def _with_scalar(name: str, scalar: Any, xp: Any, x: Any) -> Any:
    result = getattr(x, name)(scalar)
    if result is NotImplemented:
        raise TypeError(name)
    return result


def _in_place(name: str, xp: Any, x: Any, y: Any) -> Any:
    target = xp.asarray(x, copy=True)
    return getattr(target, name)(y), target


@pytest.mark.parametrize("name", sorted(UNARY))
@pytest.mark.parametrize("dtype", DTYPES)
def test_unary_operators(name: str, dtype: str) -> None:
    compare(lambda xp, x: getattr(x, f"__{name}__")(), [np.asarray([0, 1, 2]).astype(dtype)])


@pytest.mark.parametrize("name", sorted(CONVERSIONS))
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_to_python(name: str, dtype: str) -> None:
    compare(lambda xp, x: getattr(x, f"__{name}__")(), [np.asarray(1).astype(dtype)])


@settings(max_examples=examples(50), deadline=None)
@given(data=st.data())
def test_indexing(data: st.DataObject) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    x = data.draw(numbers("int32", shape))
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    kind = data.draw(KINDS)
    compare(lambda xp, x: x[index], [x], kind)
    compare(partial(_assigned, index), [x])


def _assigned(index: Any, xp: Any, x: Any) -> Any:
    target = xp.asarray(x, copy=True)
    target[index] = 7
    return target


def test_attributes() -> None:
    values = np.arange(6).reshape(2, 3)
    for name in ("T", "mT", "ndim", "shape", "size"):
        compare(lambda xp, x, name=name: getattr(x, name), [values])


# -- inspection -----------------------------------------------------------------------------------


def test_inspection() -> None:
    theirs, ours = strict.__array_namespace_info__(), dp.__array_namespace_info__()
    assert ours.capabilities().keys() >= theirs.capabilities().keys()
    assert ours.default_device() in ours.devices()
    assert ours.default_dtypes().keys() == theirs.default_dtypes().keys()
    assert ours.dtypes().keys() == theirs.dtypes().keys()
    for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating"):
        assert ours.dtypes(kind=kind).keys() == theirs.dtypes(kind=kind).keys()
    for kind in ("complex floating", "numeric", ("bool", "integral")):
        assert ours.dtypes(kind=kind).keys() == theirs.dtypes(kind=kind).keys()


# -- placement: the reference has a second device, dparray has sub-devices ------------------------

ALL_CALLS: dict[str, Call] = {
    **{name: lambda xp, x, y, d, name=name: getattr(xp, name)(x) for name in sorted(ONE | AXES)},
    **{name: lambda xp, x, y, d, name=name: getattr(xp, name)(x, y) for name in sorted(TWO)},
    **CALLS,
    **{f"linalg.{name}": call for name, call in LINALG.items()},
    **{f"fft.{name}": call for name, call in FFT.items()},
}
#: Functions that create an array on the default device, or return no array.
WITHOUT_ARRAYS = {
    *("arange", "empty", "eye", "full", "linspace", "ones", "zeros", "fft.fftfreq", "fft.rfftfreq"),
}


class Fixed(Drawn):
    """The simplest of the possible draws; flags are off, so that both arrays are used."""

    def __init__(self, own: str) -> None:
        self.shape = (2, 2)
        self.own = own
        self.known = {"axis": 0, "axis_or_none": 0, "axes": (0, 1), "number": 1, "count": 2}
        self.known |= {"flag": False, "dtype": "float64", "of_its_kind": own, "positions": [1, 0]}
        self.known |= {"norm": "backward", "ord": 2, "n": None}


@pytest.mark.parametrize("name", ALL_CALLS)
@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_placement(name: str, dtype: str) -> None:
    """Results have the placement of the inputs; inputs on two devices raise in both modules."""
    values = np.asarray([[3, 1], [1, 2]]).astype(dtype)
    here, there = strict.Device("CPU_DEVICE"), strict.Device("device1")
    first, second = dp.Device("cpu").create_sub_devices(partition=1)
    call = ALL_CALLS[name]
    try:
        call(
            strict,
            strict.asarray(values, device=there),
            strict.asarray(values, device=there),
            Fixed(dtype),
        )
    except (TypeError, ValueError):
        return  # not supported for this dtype
    x, y = dp.asarray(values, device=second), dp.asarray(values, device=second)
    result = call(dp, x, y, Fixed(dtype))
    if name not in WITHOUT_ARRAYS:
        for part in result if isinstance(result, tuple | list) else (result,):
            assert not isinstance(part, dp.ndarray) or part.device == second
    x, y = strict.asarray(values, device=here), strict.asarray(values, device=there)
    try:
        call(strict, x, y, Fixed(dtype))
    except ValueError:
        pass
    else:
        return  # the function takes one array
    with pytest.raises(dp.ExecutionPlacementError):
        call(dp, dp.asarray(values, device=first), dp.asarray(values, device=second), Fixed(dtype))
