"""What NumPy has beyond the standard: the same arguments give NumPy's result."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp

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


@pytest.fixture(params=["host", "device"], autouse=True)
def tier(request: pytest.FixtureRequest) -> Iterator[str]:
    """What NumPy computes on a CPU device, and what would run on others."""
    with dp.config.override(host_tier=request.param == "host"):
        yield request.param


def on_device(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return dp.asarray(value)
    if isinstance(value, list):
        return [on_device(one) for one in value]
    return value


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif isinstance(actual, dp.ndarray):
        expected = np.asarray(expected)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(actual.asnumpy(), expected, rtol=1e-9, atol=1e-9)
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
    *(("pad", (A, widths, mode), {}) for widths in (2, (1, 3), ((1, 2), (7, 0)))
      for mode in ("constant", "edge", "reflect", "symmetric", "wrap")),
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
    given = [on_device(one) if name != "quantile" or at == 0 else one
             for at, one in enumerate(arguments)]  # fmt: skip
    actual = getattr(dp, name)(*given, **options)
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
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("turned", [False, True])
def test_writing(name: str, turned: bool) -> None:
    a = A[::-1, ::-1].copy() if not turned else A.copy()[::-1, ::-1]
    x = dp.asarray(A[::-1, ::-1].copy()) if not turned else dp.asarray(A)[::-1, ::-1]
    WRITES[name](dp, x)
    WRITES[name](np, a)
    assert_same(x, a)


CREATION: list[tuple[str, Callable[[Any], Any]]] = [
    ("arange", lambda xp: xp.arange(2, 9, 3)),
    ("arange-float", lambda xp: xp.arange(0.5, 3, 0.25)),
    ("linspace", lambda xp: xp.linspace(-1, 1, 7, endpoint=False)),
    ("logspace", lambda xp: xp.logspace(0, 3, 4)),
    ("geomspace", lambda xp: xp.geomspace(1, 1000, 4)),
    ("eye", lambda xp: xp.eye(3, 4, 1)),
    ("tri", lambda xp: xp.tri(3, 4, -1)),
    ("identity", lambda xp: xp.identity(3)),
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
]


@pytest.mark.parametrize(("name", "make"), CREATION, ids=[name for name, _ in CREATION])
def test_creation(name: str, make: Callable[[Any], Any]) -> None:
    assert_same(make(dp), make(np))


def test_apply_along_axis() -> None:
    expected = np.apply_along_axis(lambda line: line[::-1] * 2, 0, A)
    assert_same(dp.apply_along_axis(lambda line: line[::-1] * 2, 0, dp.asarray(A)), expected)


# -- NumPy's functions on our arrays --------------------------------------------------------------


def test_numpys_functions_are_ours() -> None:
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


def test_what_we_do_not_have_is_an_error_that_names_it() -> None:
    x = dp.asarray(A)
    with pytest.raises(TypeError, match=r"numpy\.spacing is not available"):
        np.spacing(x)
    with pytest.raises(TypeError, match=r"numpy\.i0 is not available"):
        np.i0(x)
    for mixed in (lambda: A + x, lambda: x + A, lambda: np.hypot(A, x)):
        with pytest.raises(dp.HostConversionError, match=r"dp\.asarray"):
            mixed()
    with pytest.raises(dp.HostConversionError, match=r"dp\.asnumpy"):
        np.asarray(x)


# -- copying and files ----------------------------------------------------------------------------


def test_copies_share_nothing_and_stay_where_they_are(queue: Any) -> None:
    x = dp.asarray([1, 2], sycl_queue=queue, usm_type="shared")
    for y in (copy.copy(x), copy.deepcopy(x), x.copy()):
        y[0] = 9
        assert (y.sycl_queue, y.usm_type) == (queue, "shared")
    assert x.tolist() == [1, 2]


def test_pickles_come_back_and_fall_back_to_the_default_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = dp.asarray(A[:, ::2], usm_type="shared")
    back = pickle.loads(pickle.dumps(x))
    assert_same(back, A[:, ::2])
    assert back.usm_type == "shared"
    function, (values, _, usm_type) = x.__reduce__()
    with pytest.warns(UserWarning, match="level_zero:gpu:7, which is not here"):
        back = function(values, "level_zero:gpu:7", usm_type)
    assert back.device == dp.default_device()


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::2, ::-1], np.s_[:0], np.s_[1, 2]])
def test_npy_files_are_numpys(view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dparray._io.BUFFER_BYTES", 24)
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
