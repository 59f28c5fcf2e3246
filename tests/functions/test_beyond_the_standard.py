"""NumPy functions beyond the standard: the same arguments give NumPy's result."""

from __future__ import annotations

import copy
import io
import math
import pickle
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, special

import dparray as dp
from dparray._functions import protocols
from tests.support import on_device, same

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 5)) * 10
B = RNG.standard_normal((4, 5)) * 3
N = A.copy()
N[1, 2] = N[3, 0] = np.nan
I = RNG.integers(-20, 20, 30)  # noqa: E741 - letters are arrays here
J = RNG.integers(1, 7, 30)
V = RNG.standard_normal(30)
C = A + 1j * B
S = np.sort(V)


pytestmark = pytest.mark.usefixtures("executor")


def ours(value: Any) -> Any:
    """Convert a NumPy argument to dparray's."""
    if isinstance(value, types.FunctionType | np.ufunc) and hasattr(dp, value.__name__):
        return getattr(dp, value.__name__)
    return on_device(value)


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif isinstance(actual, dp.ndarray):
        same(actual, expected, 1e-9)
    else:
        assert actual == expected


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (N,), {"axis": axis}) for axis in (None, 0, 1) for name in (
        "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanmedian",
        "nanargmax", "nanargmin", "nancumsum", "nancumprod", "median",
    )),
    *(("quantile", (A, q), {"axis": axis, "method": method}) for axis in (None, 0, (0, 1))
      for q in (0.3, [0.0, 0.5, 1.0]) for method in ("linear", "lower", "nearest", "midpoint")),
    ("percentile", (N, [10, 50]), {"axis": 1, "keepdims": True}),
    ("nanpercentile", (N, [10, 50]), {"axis": 0}),
    ("nanquantile", (N, 0.7), {"method": "higher"}),
    *((name, (N, axis), {"where": A > -5}) for axis in (None, 0, 1) for name in (
        "nansum", "nanprod", "nanmean", "nanvar", "nanstd",
    )),
    *((name, (N, 1), {"where": A > 0, "initial": 2.5}) for name in (
        "nansum", "nanprod", "nanmax", "nanmin",
    )),
    ("nanvar", (N, 1), {"correction": 1}),
    ("percentile", (A, 30, 1, None, False, "nearest", True), {}),
    ("median", (A, 0, None, False, True), {}),
    ("interp", (V, [0.0, 1.0, 0.5], [1.0, 2.0, 3.0]), {"period": 2.0}),
    ("histogram", (V,), {"bins": 7, "range": (-2, 2)}),
    ("histogram", (V, S[::5].copy()), {}),
    ("bincount", (J,), {"minlength": 12}),
    ("bincount", (J, V), {}),
    ("digitize", (V, S[::5].copy()), {"right": True}),
    ("interp", (V, S[::3].copy(), V[::3].copy()), {"left": -1.0}),
    ("cov", (A,), {}),
    ("cov", (A, B), {"rowvar": False, "bias": True}),
    ("corrcoef", (A,), {}),
    ("diff", (A,), {"n": 2, "axis": 0}),
    ("diff", (A,), {"prepend": 1.0}),
    ("ediff1d", (A,), {}),
    ("gradient", (A,), {}),
    ("gradient", (A, 2.0), {"axis": 1, "edge_order": 2}),
    ("gradient", (V, S), {}),
    ("gradient", (V, S), {"edge_order": 2}),
    ("trapezoid", (A, A[0]), {}),
    ("trapezoid", (A,), {"dx": 0.5, "axis": 0}),
    ("convolve", (V, S[:4].copy()), {"mode": "same"}),
    ("correlate", (V, S[:4].copy()), {"mode": "full"}),
    ("einsum", ("ij,kj->ik", A, B), {}),
    ("einsum", ("ij->j", A), {}),
    ("einsum", ("ij,kj->ik", A, B), {"dtype": "complex128", "order": "F", "optimize": False}),
    ("einsum", ("ij->i", A), {"dtype": "float32", "casting": "same_kind"}),
    ("trim_zeros", (np.pad(A, ((1, 2), (0, 3))),), {}),
    ("trim_zeros", (np.pad(A, ((1, 2), (0, 3))),), {"trim": "b", "axis": 1}),
    ("trim_zeros", (np.zeros((2, 3)),), {"axis": 1}),
    ("cross", (A[:3], B[:3]), {"axis": 0}),
    ("nanvar", (A,), {"axis": 0, "mean": A.mean(axis=0, keepdims=True)}),
    *(("pad", (A, widths, mode), {}) for widths in (2, (1, 3), ((1, 2), (7, 0)))
      for mode in ("constant", "edge", "reflect", "symmetric", "wrap")),
    *(("pad", (A, ((1, 2), (0, 3)), mode), {}) for mode in ("maximum", "mean", "median")),
    ("pad", (A, 2, "minimum"), {"stat_length": 2}),
    ("pad", (A, 2, "linear_ramp"), {"end_values": (1.0, -1.0)}),
    ("round", (A, 1), {}),
    ("around", (A, -1), {}),
    ("nan_to_num", (np.asarray([np.nan, np.inf, -np.inf, 1.0]),), {"posinf": 9.0}),
    ("isclose", (A, A + 1e-9), {}),
    ("array_equal", (A, A.copy()), {}),
    ("array_equiv", (A, A[0]), {}),
    *((name, (I, J), {}) for name in ("gcd", "lcm", "fmod", "divmod", "float_power")),
    *((name, (N, B), {}) for name in ("fmax", "fmin", "fmod", "heaviside", "logaddexp2")),
    *((name, (A,), {}) for name in ("sinc", "deg2rad", "degrees", "fabs", "fix", "unwrap")),
    ("iscomplex", (C,), {}),
    ("angle", (C,), {}),
    ("select", ([A > 1, B > 0], [A, B]), {"default": 7.0}),
    ("rot90", (A, 3), {}),
    ("kron", (A, B[:2, :2].copy()), {}),
    ("vander", (V, 4), {"increasing": True}),
    ("diagflat", (A[0], 1), {}),
    ("unravel_index", (J, (4, 5)), {}),
    ("ravel_multi_index", ([J % 4, J % 5], (4, 5)), {}),
    ("partition", (V, 5), {}),
    ("unique", (J,), {"return_index": True, "return_inverse": True, "return_counts": True}),
    *((name, (I, J), {}) for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin")),
    ("lexsort", ([V, J.astype(float)],), {}),
    ("searchsorted", (S, V), {"side": "right"}),
    ("extract", (A > 0, A), {}),
    ("compress", (np.asarray([True, False, True]), A), {"axis": 1}),
    ("argwhere", (A > 0,), {}),
    ("append", (A, B), {"axis": 0}),
    ("tril", (A, 1), {}),
    ("delete", (A, [1, -1]), {"axis": 1}),
    ("delete", (V, 3), {}),
    ("insert", (A, 1, B[:, 0].copy()), {"axis": 1}),
    ("insert", (A, [0, 2, 2, 5], 7.0), {"axis": 1}),
    ("insert", (V, [3, -1], [1.0, 2.0]), {}),
    ("resize", (A, (3, 9)), {}),
    ("trim_zeros", (np.asarray([0, 0, 1, 0, 2, 0]),), {}),
    ("choose", (J % 3, [J, I, 7]), {}),
    ("piecewise", (V, [V < 0, V > 1], [np.negative, 5.0, 9.0]), {}),
    ("modf", (A,), {}),
    ("polyval", ([1.0, -2.0, 0.5], A), {}),
    ("polyfit", (S, V, 3), {}),
    ("hanning", (7,), {}),
    ("kaiser", (7, 3.0), {}),
    ("trace", (A,), {"offset": 1}),
    ("inner", (A, B), {}),
    ("vdot", (C, C), {}),
    ("cross", (A[:, :3].copy(), B[:, :3].copy()), {}),
    ("tensordot", (A, B), {"axes": ((1,), (1,))}),
    ("atleast_3d", (A,), {}),
    ("dsplit", (A.reshape(1, 2, 10), 5), {}),
    ("vstack", ([V, S],), {}),
    ("block", ([[A, B], [B, A]],), {}),
    ("block", ([A[0].copy(), 1.0, B[1].copy()],), {}),
    ("block", ([[A], [B]],), {}),
    ("histogram2d", (V, S, 4), {}),
    ("histogram2d", (V, S, [3, np.linspace(-2, 2, 5)]), {"weights": V}),
    ("histogram2d", (V, S), {"bins": 5, "range": [[-1, 1], [-2, 0]], "density": True}),
    ("frexp", (np.asarray([8.0, -0.75, 0.0, 1e-310, 5e-324, 1e308, 1 / 3, -np.inf]),), {}),
    ("frexp", (A,), {}),
    ("ldexp", (A, (J[:20] * 9 - 30).reshape(4, 5)), {}),
    ("ldexp", (np.asarray([1.0, 1.0, 0.75]), np.asarray([-1074, 2000, 1023])), {}),
    ("spacing", (A,), {}),
    ("i0", (A,), {}),
    ("bitwise_count", (I,), {}),
    ("bitwise_count", (np.asarray([-(2**63), 2**63 - 1, -1]),), {}),
    ("real_if_close", (A + 1e-15j,), {}),
    *(("packbits", (J % 2,), {"bitorder": order}) for order in ("big", "little")),
    ("packbits", (A > 0,), {"axis": 0}),
    *(("unpackbits", (I.astype("uint8"),), {"count": count}) for count in (None, 11, -3, 999)),
    ("unpackbits", (I.astype("uint8").reshape(5, 6),), {"axis": 1, "bitorder": "little"}),
    ("mask_indices", (4, np.triu, 1), {}),
    *((f"{name}_indices_from", (B[:, :4].copy(),), {}) for name in ("tril", "triu", "diag")),
    ("apply_over_axes", (np.sum, A.reshape(2, 2, 5), (0, 2)), {}),
    ("sort_complex", (J,), {}),
    ("matvec", (A, B[0].copy()), {}),
    ("vecmat", (C[:, 0].copy(), A), {}),
    ("poly", ([1.0, 2.0, -3.0],), {}),
    ("poly", (A[:3, :3].copy(),), {}),
    ("polyadd", ([1, 2], J), {}),
    ("polysub", (J, [1, 2]), {}),
    ("polymul", ([1.0, 2.0], S), {}),
    ("polydiv", (S, [2.0, 1.0, 0.5]), {}),
    ("polydiv", ([1.0], [1.0, 2.0]), {}),
    ("polyder", (V, 2), {}),
    ("polyint", (V, 2, [1.0, 2.0]), {}),
    ("polyfit", (S, V, 3), {"w": np.abs(V), "cov": True}),
    ("polyfit", (S, np.stack([V, S], 1), 2), {}),
    ("min_scalar_type", (300,), {}),
    ("common_type", (A, I), {}),
    ("asarray_chkfinite", (A,), {}),
    ("einsum_path", ("ij,kj,k->i", A, B, A[:, 0].copy()), {}),
    ("array2string", (A,), {"precision": 3, "separator": ", "}),
    ("array_str", (A,), {"precision": 3}),
    ("column_stack", ([V, S],), {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [pytest.param(*call, id=f"{call[0]}-{number}") for number, call in enumerate(CALLS)],
)
def test_function(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = getattr(np, name)(*arguments, **options)
    given = [ours(one) if name not in ("quantile", "percentile") or at == 0 else one
             for at, one in enumerate(arguments)]  # fmt: skip
    actual = getattr(dp, name)(*given, **{key: ours(one) for key, one in options.items()})
    if name == "partition":
        actual, expected = dp.sort(actual[:5]), np.sort(expected[:5])
    assert_same(actual, expected)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "put": lambda xp, x: xp.put(x, [0, 7], 5.0),
    "put_along_axis": lambda xp, x: xp.put_along_axis(x, xp.argsort(x, axis=0), 3.0, 0),
    "putmask": lambda xp, x: xp.putmask(x, x > 0, -x),
    "place": lambda xp, x: xp.place(x, x > 0, xp.asarray([1.0, 2.0])),
    "fill_diagonal": lambda xp, x: xp.fill_diagonal(x[:, :4], 9.0),
    "copyto": lambda xp, x: xp.copyto(x, x[::-1].copy()),
    "method-put": lambda xp, x: x.put([1, 2], 4.0),
    "method-fill": lambda xp, x: x.fill(4.0),
    "method-sort": lambda xp, x: x.sort(axis=0),
    "view": lambda xp, x: x.view("int64").fill(0),
    "flat": lambda xp, x: setattr(x, "flat", [1.0, 2.0, 3.0]),
    "real": lambda xp, x: setattr(x, "real", 3.0),
    "dtype": lambda xp, x: setattr(x[1], "dtype", "int64"),
    "flat-index": lambda xp, x: x.flat.__setitem__([0, 7, 19], [4.0, 5.0]),
    "flat-slice": lambda xp, x: x.flat.__setitem__(slice(3, None, 4), 8.0),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("turned", [False, True])
def test_writing(name: str, turned: bool) -> None:
    a = A[::-1, ::-1].copy() if not turned else A.copy()[::-1, ::-1]
    x = dp.asarray(A[::-1, ::-1].copy()) if not turned else dp.asarray(A)[::-1, ::-1]
    WRITES[name](dp, x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 deprecates x.dtype = ...
        WRITES[name](np, a)
    assert_same(x, a)


CREATION: list[tuple[str, Callable[[Any], Any]]] = [
    ("arange", lambda xp: xp.arange(2, 9, 3)),
    ("arange-float", lambda xp: xp.arange(0.5, 3, 0.25)),
    ("linspace", lambda xp: xp.linspace(-1, 1, 7, endpoint=False)),
    ("logspace", lambda xp: xp.logspace(0, 3, 4)),
    ("geomspace", lambda xp: xp.geomspace(1, 1000, 4)),
    ("geomspace-integers", lambda xp: xp.geomspace(1, 1000, 4, dtype=int)),
    ("geomspace-arrays", lambda xp: xp.geomspace(xp.asarray([1.0, -2.0]), [8, -9.0], 4, axis=1)),
    ("logspace-arrays", lambda xp: xp.logspace(xp.asarray([0.0, 1.0]), 2, 4, axis=-1, base=2)),
    ("large-uint64", lambda xp: xp.asarray([2**63 + 1, 1], dtype="uint64")),
    ("einsum-lists", lambda xp: xp.einsum(xp.ones((2, 3)), [0, 1], xp.ones(3), [1], [0])),
    ("einsum-implicit", lambda xp: xp.einsum(xp.ones((2, 3)), [..., 1], xp.ones(3), [1])),
    ("einsum-out", lambda xp: xp.einsum("ij,j", xp.ones((2, 3)), xp.ones(3), out=xp.zeros(2))),
    ("cross-axes", lambda xp: xp.cross(xp.eye(3), xp.ones((3, 1)), axisa=0, axisb=0, axisc=0)),
    ("eye", lambda xp: xp.eye(3, 4, 1)),
    ("tri", lambda xp: xp.tri(3, 4, -1)),
    ("identity", lambda xp: xp.identity(3)),
    ("full-list", lambda xp: xp.full((2, 3), [1, 2, 3])),
    ("zeros-shape-array", lambda xp: xp.zeros(xp.asarray([2, 3]))),
    ("astype-casting", lambda xp: xp.ones(2).astype("f4", casting="same_kind", subok=False)),
    ("indices", lambda xp: xp.indices((2, 3))),
    ("mgrid", lambda xp: xp.mgrid[0:3, 1:2:5j]),
    ("ogrid", lambda xp: xp.ogrid[0:2, 0:3]),
    ("fromfunction", lambda xp: xp.fromfunction(lambda i, j: i * j, (2, 3))),
    ("tril_indices", lambda xp: xp.tril_indices(3)),
    ("triu_indices", lambda xp: xp.triu_indices(3, 1)),
    ("full", lambda xp: xp.full((2, 2), 7)),
    ("zeros", lambda xp: xp.zeros((2, 3), "int8")),
    ("array", lambda xp: xp.array([[1, 2], [3, 4.5]], ndmin=3)),
    ("frombuffer", lambda xp: xp.frombuffer(b"abcd", "uint8")),
    ("r_", lambda xp: xp.r_[1, 2.5, xp.arange(3), 0:1:3j, 4:6]),
    ("r_-unsigned", lambda xp: xp.r_[xp.arange(3, dtype="uint32"), 7]),
    ("r_-integers", lambda xp: xp.r_[xp.arange(3, dtype="int8"), 7, 0:3]),
    ("r_-matrices", lambda xp: xp.r_["-1", xp.ones((2, 2)), xp.zeros((2, 1))]),
    ("r_-columns", lambda xp: xp.r_["0,2,0", xp.arange(3), xp.ones(2)]),
    ("c_", lambda xp: xp.c_[xp.arange(3), xp.ones(3)]),
    ("c_-matrix", lambda xp: xp.c_[xp.ones((2, 2)), xp.zeros(2)]),
    ("loadtxt", lambda xp: xp.loadtxt(["1,2", "3,4"], delimiter=",", usecols=[1], dtype="int32")),
    ("genfromtxt", lambda xp: xp.genfromtxt(["1 2", "x 4"])),
    ("fromstring", lambda xp: xp.fromstring("1 2 3", dtype=int, sep=" ")),
    ("require", lambda xp: xp.require([[1, 2], [3, 4]], "float32", ["F"])),
]


@pytest.mark.parametrize(("name", "make"), CREATION, ids=[name for name, _ in CREATION])
def test_creation(name: str, make: Callable[[Any], Any]) -> None:
    assert_same(make(dp), make(np))


@pytest.mark.parametrize("scalar", [np.float32(4), np.int8(3), np.complex64(1), np.float64(2)])
@pytest.mark.parametrize("name", ["sqrt", "square", "negative", "abs", "mean", "real"])
def test_scalars_of_numpy_keep_their_dtype_among_themselves(name: str, scalar: Any) -> None:
    assert getattr(dp, name)(scalar).dtype == getattr(np, name)(scalar).dtype
    for other in (2, 2.5, np.float32(1), np.int16(1)):
        assert dp.add(scalar, other).dtype == np.add(scalar, other).dtype
        assert dp.add(other, scalar).dtype == np.add(other, scalar).dtype
    assert (dp.ones(2, dtype="float32") * np.float64(2)).dtype == "float64"


def test_python_rounds_elements() -> None:
    x = dp.asarray([1.26, 2.5])
    assert round(x[0]) == 1
    assert type(round(x[0])) is int
    assert float(round(x[0], 1)) == 1.3
    assert math.floor(x[1]) == 2
    assert math.ceil(x[1]) == 3
    assert f"{x[0]:.1f}" == "1.3"
    with pytest.raises(dp.HostConversionError, match=r"dp\.round"):
        round(x)


@pytest.mark.parametrize(
    ("window", "axis"), [((2, 2), None), (2, 0), (3, -1), ((2, 2), (0, 1)), ((1, 2), (1, 1))]
)
@pytest.mark.parametrize("pending", [True, False])
def test_windows(window: Any, axis: Any, pending: bool) -> None:
    x = dp.asarray(A)[::-1] + 0 if pending else dp.asarray(A)[::-1]
    windows = np.lib.stride_tricks.sliding_window_view(A[::-1], window, axis)
    assert_same(dp.lib.stride_tricks.sliding_window_view(x, window, axis), windows)


def test_strided_views_stay_inside_the_elements() -> None:
    from dparray.lib.stride_tricks import as_strided, sliding_window_view

    x = dp.arange(6.0)
    assert_same(as_strided(x, (2, 3), (8, 16)), np.asarray([[0.0, 2, 4], [1, 3, 5]]))
    assert_same(as_strided(x[::-1], (3,), (-16,)), np.asarray([5.0, 3, 1]))
    for shape, strides in (((7,), (8,)), ((2,), (-8,)), ((2, 2), (8,))):
        with pytest.raises(dp.ShapeError):
            as_strided(x, shape, strides)
    with pytest.raises(dp.ArgumentError, match="multiples of 8"):
        as_strided(x, (2,), (3,))
    for window, axis in ((7, None), ((2, 2), None), (0, None), (2, (0, 1))):
        with pytest.raises((dp.ShapeError, dp.AxisError)):
            sliding_window_view(x, window, axis)


def test_attributes_are_set() -> None:
    def program(xp: Any) -> list[Any]:
        z = xp.ones((2, 3)) * 1j
        z.real = xp.arange(3.0)
        z.imag += 2
        z.real[0] = 9
        bits = xp.arange(4.0)
        bits.dtype = xp.int64
        halves = xp.ones((2, 2), dtype="float64")
        halves.dtype = "float32"
        shaped = xp.arange(6)
        shaped.shape = (2, -1)
        resized = xp.arange(4.0)
        resized.resize((2, 3), refcheck=False)
        cut = xp.arange(4.0)
        cut.resize(2, refcheck=False)
        return [z, bits, halves, shaped, resized, cut]

    with warnings.catch_warnings():
        # NumPy 2.5 deprecates x.dtype, x.shape = ...
        warnings.simplefilter("ignore", DeprecationWarning)
        wanted = program(np)
    for ours, theirs in zip(program(dp), wanted, strict=True):
        assert_same(ours, theirs)
    x = dp.ones(3)
    with pytest.raises(dp.DTypeError, match="no imaginary part"):
        x.imag = 1
    with pytest.raises(AttributeError, match="as_strided"):
        x.strides = (16,)
    with pytest.raises(dp.ShapeError, match="not a multiple of the size"):
        dp.ones(3, dtype="float32").dtype = "float64"


def test_missing_names_are_explained() -> None:
    x = dp.ones(3)
    for name, words in (("base", "shares_memory"), ("tostring", "tobytes"), ("data", "asnumpy")):
        assert not hasattr(x, name)
        with pytest.raises(AttributeError, match=words):
            getattr(x, name)
    for name, words in (("Inf", "Use `dp.inf`"), ("float", "builtin `float`"), ("core", "NumPy")):
        with pytest.raises(AttributeError, match=words):
            getattr(dp, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        dp.nonsense  # noqa: B018


def test_elements_are_keys() -> None:
    x = dp.asarray([3, 1, 3])
    assert {3: "a", 1: "b"}[x[1]] == "b"
    assert len(set(x)) == 2
    assert hash(dp.asarray(0.5)) == hash(0.5)
    with pytest.raises(TypeError, match="cannot be a key"):
        hash(x)


@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", ["float64", "int8", "uint64", "bool"])
def test_the_best_elements(mode: str, axis: int | None, dtype: str) -> None:
    values = A.astype(dtype)
    x = dp.asarray(values)
    ordered = np.sort(values, axis)
    ordered = np.flip(ordered, 0 if axis is None else axis) if mode == "largest" else ordered
    for k in (1, 3, 4):
        found = dp.top_k(x, k, axis=axis, mode=mode)
        assert_same(found.values, ordered.take(range(k), 0 if axis is None else axis))
        flat = (dp.ravel(x), 0) if axis is None else (x, axis)
        taken = dp.take_along_axis(flat[0], found.indices, flat[1])
        assert_same(taken, found.values.asnumpy())
        assert found.indices.dtype == "int64"


def test_wrong_numbers_of_best_elements() -> None:
    x = dp.ones(3)
    for call in (
        lambda: dp.top_k(x, 0),
        lambda: dp.top_k(x, 4),
        lambda: dp.top_k(x, 1.0),
        lambda: dp.top_k(x, 1, mode="best"),
        lambda: dp.top_k(x * 1j, 1),
    ):
        with pytest.raises((dp.ArgumentError, dp.DTypeError), match="top_k"):
            call()


def test_integers_that_do_not_fit_are_refused() -> None:
    for values, dtype in (([300], "uint8"), (-1, "uint64"), ([0, 2**31], "int32")):
        with pytest.raises(OverflowError, match="out of bounds"):
            dp.asarray(values, dtype=dtype)


def test_elements_one_after_another() -> None:
    x = dp.asarray(A)[:, ::2]
    a = A[:, ::2]
    assert len(x.flat) == a.size
    assert [float(one) for one in x.flat] == list(a.flat)
    assert_same(x.flat[3:7], a.flat[3:7])
    assert_same(x.flat[[1, -1]], a.flat[[1, -1]])
    assert [(at, value) for at, value in dp.ndenumerate(x)] == list(np.ndenumerate(a))
    both = dp.broadcast(dp.asarray(A), dp.asarray(A[0]))
    theirs = np.broadcast(A, A[0])
    assert (both.shape, both.ndim, both.size) == (theirs.shape, theirs.ndim, theirs.size)
    assert [tuple(map(float, pair)) for pair in both] == list(theirs)
    with pytest.raises(dp.ShapeError, match="value must not be empty"):
        x.flat = []


@pytest.mark.parametrize(
    "view", [np.s_[:], np.s_[::2], np.s_[:, 1], np.s_[1:2], np.s_[:0], np.s_[..., None]]
)
def test_flags(view: Any) -> None:
    for x, a in ((dp.asarray(A)[view], A[view]), (dp.asarray(A)[view].T, A[view].T)):
        for name in ("c_contiguous", "f_contiguous", "writeable", "aligned", "fnc", "forc"):
            assert getattr(x.flags, name) == getattr(a.flags, name)
        assert x.flags["C_CONTIGUOUS"] == a.flags["C_CONTIGUOUS"]
        assert x.flags["F"] == a.flags["F"]
    assert not dp.broadcast_to(dp.ones(2), (3, 2)).flags.writeable
    with pytest.raises(dp.UnsupportedFeatureError, match=r"flags\.writeable"):
        x.flags.writeable = False


def test_polynomials_of_one_variable() -> None:
    def program(xp: Any) -> list[Any]:
        p, q = xp.poly1d([1.0, -3.0, 2.0]), xp.poly1d([0.0, 2.0, 1.0])
        both = [p + q, p - q, p * q, p**2, 2 * p, p / 2, -p, p(q), p.deriv(), p.integ(k=3)]
        quotient, rest = p / q
        values = [x.coefficients for x in [*both, quotient, rest]]
        return [*values, xp.sort(p.roots.real), p(xp.asarray([1.0, 5.0])), p.order, p[2] + p[9]]

    for ours, theirs in zip(program(dp), program(np), strict=True):
        assert_same(ours, np.asarray(theirs) if isinstance(ours, dp.ndarray) else theirs)
    assert str(dp.poly1d([1.0, 2.0])) == str(np.poly1d([1.0, 2.0]))
    assert dp.poly1d([1, 2]) == dp.poly1d([0, 1, 2])


def test_polynomials_stay_on_their_queue(queue: Any) -> None:
    def program(xp: Any, given: Any) -> list[Any]:
        p = xp.poly1d(given)
        both = [p + 1, 2 - p, p * [1, 2], *(p / p.deriv()), p.integ()]
        return [*(x.coefficients for x in both), xp.sort(p.roots.real), xp.poly(p.roots).real]

    given = [1.0, -3.0, 2.0]
    x = dp.asarray(given, sycl_queue=queue, usm_type="shared")
    for ours, theirs in zip(program(dp, x), program(np, given), strict=True):
        assert (ours.queue, ours.usm_type) == (queue, "shared")
        assert_same(ours, theirs)


def test_vectorize_compiles_the_function() -> None:
    def folded(x, limit):
        return x if x < limit else 2 * limit - x

    assert_same(dp.vectorize(folded)(dp.asarray(V), 0.5), np.vectorize(folded)(V, 0.5))
    single = dp.vectorize(folded, otypes=["float32"])(dp.asarray(V), 0.5)
    assert single.dtype == np.float32


def test_text_and_raw_files(tmp_path: Path) -> None:
    x = dp.asarray(A)
    dp.savetxt(tmp_path / "a.txt", x, delimiter=",", header="values")
    assert_same(dp.loadtxt(tmp_path / "a.txt", delimiter=","), A)
    x[:, ::2].tofile(tmp_path / "a.bin")
    assert_same(dp.fromfile(tmp_path / "a.bin"), A[:, ::2].ravel())
    np.testing.assert_array_equal(np.fromfile(tmp_path / "a.bin"), A[:, ::2].ravel())
    with pytest.raises(dp.ArgumentError, match="fromstring: "):
        dp.fromstring("1 x", sep=" ")


def test_missing_names_give_the_reason() -> None:
    for name, why in (("matrix", "use an array"), ("char", "not strings"), ("longdouble", "64")):
        assert not hasattr(dp, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{why}"):
            getattr(dp, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        dp.nonsense  # noqa: B018


def test_apply_along_axis() -> None:
    expected = np.apply_along_axis(lambda line: line[::-1] * 2, 0, A)
    assert_same(dp.apply_along_axis(lambda line: line[::-1] * 2, 0, dp.asarray(A)), expected)


# -- NumPy's functions on dparray arrays ----------------------------------------------------------


def test_numpys_functions_call_dparrays() -> None:
    x, y = dp.asarray(A), dp.asarray(B)
    assert_same(np.exp(x), np.exp(A))
    assert_same(np.add(x, 1), np.add(A, 1))
    assert_same(np.sum(x, axis=0), np.sum(A, axis=0))
    assert_same(np.concatenate([x, y]), np.concatenate([A, B]))
    assert_same(np.add.reduce(x), np.add.reduce(A))
    assert_same(np.multiply.outer(x[0], y[0]), np.multiply.outer(A[0], B[0]))
    assert_same(np.float64(2) * x, 2 * A)
    assert_same(np.linalg.norm(x), np.linalg.norm(A))
    assert_same(np.fft.fft(x), np.fft.fft(A))
    out = dp.empty_like(x)
    assert np.add(x, y, out=out) is out
    assert_same(out, A + B)


def test_every_numpy_function_is_dparrays_or_raises() -> None:
    """None of them copies to the host silently."""
    x = dp.asarray(np.asarray([[2.0, 1.0], [1.0, 3.0]]))
    for place in (np, np.linalg, np.fft):
        for name in sorted(dir(place)):
            function = getattr(place, name)
            if not hasattr(function, "_implementation") or name.startswith("save"):
                continue
            joins = name.endswith("stack") or name in ("block", "concatenate")
            for arguments in (([x, x],),) if joins else ((x,), (x, x), (x, 1)):
                try:
                    result = function(*arguments)
                except (dp.DparrayError, TypeError, IndexError, np.linalg.LinAlgError):
                    continue
                except (AttributeError, ValueError):  # raised by NumPy: dparray was not called
                    continue
                parts = result if isinstance(result, tuple | list) else (result,)
                assert not any(isinstance(part, np.ndarray | np.generic) for part in parts), name


def test_numpys_argument_names_and_like_work() -> None:
    x = dp.asarray(A, usm_type="shared")
    assert_same(np.insert(arr=x, obj=1, values=0.0, axis=1), np.insert(A, 1, 0.0, 1))
    assert_same(np.clip(a=x, a_min=-1, a_max=3), np.clip(A, -1, 3))
    assert_same(np.moveaxis(a=x, source=0, destination=1), np.moveaxis(A, 0, 1))
    made = np.zeros(3, like=x)
    assert isinstance(made, dp.ndarray)
    assert (made.queue, made.usm_type) == (x.queue, "shared")


def test_missing_functions_raise_an_error_with_their_name() -> None:
    x = dp.asarray(A)
    with pytest.raises(TypeError, match=r"numpy\.block is not|numpy\.isnat is not available"):
        np.isnat(x)
    with pytest.raises(TypeError, match=r"numpy\.busday_count is not available"):
        np.busday_count(x, x)
    words = r"dawsn is not .*: scipy\.special\.dawsn\(dp\.asnumpy\(x\)\)"
    with pytest.raises(TypeError, match=words):
        special.dawsn(x)
    with pytest.raises(dp.HostConversionError, match=r"x\.asnumpy\(\)"):
        ndimage.gaussian_filter(x, 1)
    for mixed in (lambda: A + x, lambda: x + A, lambda: np.hypot(A, x)):
        with pytest.raises(dp.HostConversionError, match=r"dp\.asarray"):
            mixed()
    with pytest.raises(dp.HostConversionError, match=r"x\.asnumpy"):
        np.asarray(x)


# -- copying and files ----------------------------------------------------------------------------


def test_copies_share_nothing_and_stay_where_they_are(queue: Any) -> None:
    x = dp.asarray([1, 2], sycl_queue=queue, usm_type="shared")
    for y in (copy.copy(x), copy.deepcopy(x), x.copy()):
        y[0] = 9
        assert (y.queue, y.usm_type) == (queue, "shared")
    assert x.tolist() == [1, 2]


def test_pickles_come_back_and_fall_back_to_the_default_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = dp.asarray(A[:, ::2], usm_type="shared")
    back = pickle.loads(pickle.dumps(x))
    assert_same(back, A[:, ::2])
    assert back.usm_type == "shared"
    function, (values, _, usm_type, _) = x.__reduce__()
    monkeypatch.setattr(protocols, "_said", set())  # each missing option is reported once
    with pytest.warns(UserWarning, match="level_zero:gpu:7, which is not available"):
        back = function(values, "level_zero:gpu:7", usm_type)
    assert back.device == dp.default_device()


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::2, ::-1], np.s_[:0], np.s_[1, 2]])
def test_npy_files_are_numpys(view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dparray._functions.io.BUFFER_BYTES", 24)
    dp.save(tmp_path / "a", dp.asarray(A)[view])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), A[view])
    for order in "CF":
        np.save(tmp_path / "b.npy", np.asarray(A[view], order=order))
        assert_same(dp.load(tmp_path / "b.npy"), A[view])


def test_npz_files_are_numpys(tmp_path: Path) -> None:
    dp.savez(tmp_path / "a", dp.asarray(A), b=dp.asarray(J))
    with np.load(tmp_path / "a.npz") as archive:
        np.testing.assert_array_equal(archive["arr_0"], A)
        np.testing.assert_array_equal(archive["b"], J)
    np.savez_compressed(tmp_path / "b.npz", a=A)
    with dp.load(tmp_path / "b.npz", usm_type="host") as archive:
        assert archive.files == ["a"]
        assert_same(archive["a"], A)
        assert archive["a"].usm_type == "host"


def test_damaged_files_are_errors() -> None:
    file = io.BytesIO()
    np.save(file, A)
    with pytest.raises(ValueError, match=r"ends .* bytes too early"):
        dp.load(io.BytesIO(file.getvalue()[:-3]))
    objects = io.BytesIO()
    np.save(objects, np.asarray([None]), allow_pickle=True)
    objects.seek(0)
    with pytest.raises(dp.exceptions.DTypeError, match="objects"):
        dp.load(objects)


def test_version_2025_12_of_the_standard() -> None:
    x = dp.ones(2)
    space = x.__array_namespace__(api_version="2025.12")
    assert space.__array_api_version__ == "2025.12"
    for several in (
        space.meshgrid(x, x),
        space.meshgrid(),
        space.broadcast_arrays(x, x),
        space.broadcast_arrays(),
        space.__array_namespace_info__().devices(),
    ):
        assert type(several) is tuple
    assert space.expand_dims(dp.ones((2, 3)), axis=(0, 2)).shape == (1, 2, 1, 3)
    assert space.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert space.isin(x, 1, invert=True).tolist() == [False, False]
