"""bfloat16 of ``ml_dtypes``: 16 bits in memory, computed in float32, every result rounded once."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray import _dtypes, config

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(params=[True, False], ids=["host", "kernels"], autouse=True)
def _tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(config, "host_tier", request.param)
    # Reset at the end: tests that count calls expect a process without bfloat16. Later tests that
    # use it must ask for it again, which the caches would answer without noting that it is used.
    monkeypatch.setattr(_dtypes, "is_bfloat16_used", True)
    yield
    _dtypes.bfloat16.cache_clear()
    _dtypes._from_hashable.cache_clear()


def values(*shape: int) -> np.ndarray:
    return np.abs(np.random.default_rng(1).standard_normal(shape)).astype(BF16)


def rounded(x: Any) -> np.ndarray:
    return np.asarray(x, np.float32).astype(BF16)


def test_conversions_round_to_even_and_keep_nan() -> None:
    random = np.random.default_rng(2)
    given = random.integers(0, 2**32, 50_000, dtype=np.uint32).view(np.float32)
    given[:6] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4e38]
    given[6:8] = np.array([0x3F808000, 0x3F818000], np.uint32).view(np.float32)  # halfway
    found = dp.asarray(given).astype("bfloat16")
    with np.errstate(all="ignore"):
        expected = given.astype(BF16)
    assert found.dtype == BF16
    is_nan = np.isnan(given)
    np.testing.assert_array_equal(
        found.view("uint16").asnumpy()[~is_nan], expected.view(np.uint16)[~is_nan]
    )
    assert np.isnan(found.asnumpy()[is_nan].astype(np.float32)).all()
    np.testing.assert_array_equal(found.astype("float32").asnumpy(), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int32", "float16", "float64"])
def test_conversions_from_and_to_other_dtypes(dtype: str) -> None:
    given = np.arange(200).astype(dtype)
    made = dp.asarray(given).astype(BF16)
    np.testing.assert_array_equal(made.asnumpy(), given.astype(BF16))
    np.testing.assert_array_equal(made.astype(dtype).asnumpy(), given.astype(BF16).astype(dtype))


OTHERS = {
    "float": (1.5, "bfloat16"),
    "int": (3, "bfloat16"),
    "bool": (True, "bfloat16"),
    "complex": (1j, "complex64"),
    "scalar": (BF16.type(1.5), "bfloat16"),
    **{name: (np.dtype(name), "bfloat16") for name in ("bool_", "int8", "int64", "uint32")},
    **{name: (np.dtype(name), "float32") for name in ("float16", "float32")},
    **{name: (np.dtype(name), name) for name in ("float64", "complex64", "complex128")},
}


@pytest.mark.parametrize("name", OTHERS)
def test_promotion(name: str) -> None:
    other, expected = OTHERS[name]
    x = dp.asarray(values(4))
    if isinstance(other, np.dtype):
        assert dp.result_type(x, other) == dp.promote_types(other, BF16) == expected
        other = dp.ones(4, dtype=other)
    assert (x + other).dtype == (other * x).dtype == expected
    assert dp.where(x > 0, x, 1.0).dtype == BF16


@pytest.mark.parametrize(
    "name", ["add", "multiply", "divide", "power", "maximum", "arctan2", "fmod"]
)
def test_operations_of_two(name: str) -> None:
    x, y = values(500), values(500)[::-1]
    found = getattr(dp, name)(dp.asarray(x), dp.asarray(y))
    expected = rounded(getattr(np, name)(x.astype(np.float32), y.astype(np.float32)))
    np.testing.assert_allclose(
        found.asnumpy().astype(np.float32), expected.astype(np.float32), rtol=2**-7
    )
    if name in ("add", "multiply", "divide", "maximum"):
        np.testing.assert_array_equal(found.asnumpy(), expected)


def test_each_operation_of_an_expression_rounds() -> None:
    x = values(20_000)
    found = (dp.asarray(x) * 3 + 1.1) / 7
    single = np.float32
    step = rounded(x.astype(single) * single(3)).astype(single)
    step = rounded(step + rounded(1.1).astype(single)).astype(single)
    np.testing.assert_array_equal(found.asnumpy(), rounded(step / single(7)))


def test_reductions_accumulate_in_single_precision() -> None:
    x = np.ones(100_000, BF16)
    found = dp.asarray(x).sum()
    assert found.dtype == BF16
    assert float(found) == float(rounded(100_000))
    assert float(dp.asarray(x).mean()) == 1
    assert dp.asarray(x).sum(dtype="float32").dtype == "float32"


FUNCTIONS = (
    *("sum", "prod", "min", "max", "argmin", "argmax", "mean", "var", "std", "median", "nanmean"),
    *("cumsum", "sort", "argsort", "unique", "diff", "flip", "ravel", "round", "isnan", "sqrt"),
    *("exp", "log1p", "tanh", "floor", "negative", "square", "signbit", "tril", "trace", "nonzero"),
    *("gradient", "sinc", "i0", "frexp", "nan_to_num", "logaddexp", "divmod", "cov", "histogram"),
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_give_the_rounded_results_of_float32(name: str) -> None:
    x = values(6, 8)
    wide = x.astype(np.float32)
    function, by_numpy = getattr(dp, name), getattr(np, name)
    count = 2 if name in ("logaddexp", "divmod") else 1
    found, expected = function(*[dp.asarray(x)] * count), by_numpy(*[wide] * count)
    several = isinstance(expected, tuple | list)
    for ours, theirs in zip(
        found if several else (found,), expected if several else (expected,), strict=True
    ):
        theirs = np.asarray(theirs)
        if theirs.dtype == np.float32:
            assert ours.dtype == BF16
            theirs = rounded(theirs)
        else:
            assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            ours.asnumpy().astype(np.float64), theirs.astype(np.float64), rtol=2**-7
        )


@pytest.mark.parametrize("given", [(2, 1), (2, 7), ("x", 2), (2, "x"), (2, "f")], ids=str)
def test_scalars_of_bfloat16_keep_their_dtype(given: tuple[Any, Any]) -> None:
    host = {"x": values(3), "f": np.ones(3, np.float32), 7: 7, 1: BF16.type(1), 2: BF16.type(2)}
    mask = np.asarray([True, False, True])
    expected = np.where(mask, *(host[each] for each in given))
    device = [
        dp.asarray(host[each]) if isinstance(host[each], np.ndarray) else host[each]
        for each in given
    ]
    chosen = dp.where(dp.asarray(mask), *device)
    assert chosen.dtype == expected.dtype
    np.testing.assert_array_equal(chosen.asnumpy(), expected)


def test_products() -> None:
    x = values(6, 8)
    expected = rounded(x.astype(np.float32) @ x.T.astype(np.float32))
    ours = dp.asarray(x)
    for found in (ours @ ours.T, dp.dot(ours, ours.T), dp.einsum("ij,kj->ik", ours, ours)):
        assert found.dtype == BF16
        np.testing.assert_allclose(
            found.asnumpy().astype(np.float32), expected.astype(np.float32), rtol=2**-7
        )
    assert (ours @ dp.ones((8, 2), dtype="float32")).dtype == "float32"


def test_indexing_reads_and_writes() -> None:
    x = values(6, 8)
    ours, theirs = dp.asarray(x), x.copy()
    for index in (1, (slice(None), 2), np.s_[::2, ::-1]):
        np.testing.assert_array_equal(ours[index].asnumpy(), theirs[index])
        ours[index], theirs[index] = 1.7, 1.7
    mask, places = theirs > 1, np.array([3, 0])
    np.testing.assert_array_equal(ours[dp.asarray(mask)].asnumpy(), theirs[mask])
    np.testing.assert_array_equal(ours[dp.asarray(places)].asnumpy(), theirs[places])
    ours[dp.asarray(mask)], theirs[mask] = 0.3, 0.3
    ours[dp.asarray(places)], theirs[places] = ours[:2], theirs[:2].copy()
    ours[4] = dp.asarray(np.linspace(0, 1, 8, dtype=np.float32))
    theirs[4] = np.linspace(0, 1, 8, dtype=np.float32)
    np.testing.assert_array_equal(ours.asnumpy(), theirs)


def test_writes_in_place_and_into_out() -> None:
    x = values(40)
    ours = dp.asarray(x)
    view = ours[::2]
    ours += dp.ones(40, dtype="float32")
    np.testing.assert_array_equal(view.asnumpy(), rounded(x.astype(np.float32) + 1)[::2])
    out = dp.empty(40, dtype=BF16)
    assert dp.add(ours, 1, out=out) is out
    assert dp.cumsum(ours, out=out) is out
    assert float(out[0]) == float(ours[0])
    ours.sort()
    assert (np.diff(ours.asnumpy().astype(np.float32)) >= 0).all()
    with pytest.raises(dp.DTypeError, match="same_kind"):
        dp.add(ours, 1, out=dp.zeros(40, dtype="int32"))


def test_dlpack_both_ways() -> None:
    x = dp.asarray(values(3, 4))

    class Exchanged:
        """Record the dtype in the capsule, which Python does not show otherwise."""

        code = 0

        def __dlpack__(self, **options: Any) -> Any:
            from dparray.memory.dlpack_capsules import tensor_of

            capsule = x.__dlpack__(**options)
            Exchanged.code = tensor_of(capsule).code
            return capsule

        def __dlpack_device__(self) -> Any:
            return x.__dlpack_device__()

    found = dp.from_dlpack(Exchanged())
    assert Exchanged.code == 4  # kDLBfloat
    assert found.dtype == BF16
    np.testing.assert_array_equal(found.asnumpy(), x.asnumpy())


def test_files_and_copies() -> None:
    x = dp.asarray(values(3, 4))
    for save, name in ((dp.save, ""), (np.save, ""), (dp.savez, "arr_0")):
        file = io.BytesIO()
        save(file, x.asnumpy() if save is np.save else x)
        file.seek(0)
        found = dp.load(file)[name] if name else dp.load(file)
        assert found.dtype == BF16
        np.testing.assert_array_equal(found.asnumpy(), x.asnumpy())
    for found in (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        x.to_device("cpu"),
        x.T.copy().T,
    ):
        assert found.dtype == BF16
        np.testing.assert_array_equal(found.asnumpy(), x.asnumpy())


def test_creation_and_description() -> None:
    assert dp.bfloat16 is BF16.type
    for made in (
        dp.ones(3, dtype="bfloat16"),
        dp.full(3, 1, dtype=BF16),
        dp.asarray([1, 1, 1], BF16),
    ):
        assert made.asnumpy().dtype == BF16
        assert made.tolist() == [1.0, 1.0, 1.0]
    assert "1.5" in repr(dp.asarray([1.5], dtype=BF16))
    assert "dtype=bfloat16" in repr(dp.asarray([1.5], dtype=BF16))
    assert (dp.finfo(BF16).bits, dp.finfo(BF16).eps) == (16, float(ml_dtypes.finfo(BF16).eps))
    assert dp.finfo(BF16).max == float(ml_dtypes.finfo(BF16).max)
    assert dp.isdtype(BF16, "real floating")
    assert dp.can_cast(BF16, "float32")
    assert not dp.can_cast("float32", BF16)


def test_where_there_is_none_the_error_has_the_fix() -> None:
    x = dp.ones((2, 2), dtype=BF16)

    @dp.kernel
    def kernel(item: Any, a: Any) -> None:
        a[item.get_id(0)] = 1

    @dp.jit
    def compiled(a: Any) -> Any:
        return a * 2

    program = dp.tilelang.function("function (A[N, M]) -> (S) { S[i: N] = +(A[i, j]); }")
    for call in (lambda: dp.linalg.solve(x, x), lambda: compiled(x), lambda: program(x)):
        with pytest.raises(dp.DTypeError, match=r"astype\('float32'\)"):
            call()
    with pytest.raises(dp.DTypeError, match="bitwise_and: not defined for bfloat16"):
        x & 1
    with pytest.raises(dp.KernelArgumentError, match="float32"):
        dp.call_kernel(kernel, dp.Range(2), x)


def test_functions_of_the_user() -> None:
    @dp.elementwise
    def square(a: Any) -> Any:
        return a * a

    x = values(30)
    found = square(dp.asarray(x))
    assert found.dtype == BF16
    np.testing.assert_array_equal(found.asnumpy(), rounded(x.astype(np.float32) ** 2))


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dtypes, "_BFLOAT16_PACKAGE", "no_such_package_of_dtypes")
    _dtypes.bfloat16.cache_clear()
    _dtypes._from_hashable.cache_clear()
    try:
        with pytest.raises(dp.DTypeError, match="pip install ml_dtypes"):
            dp.zeros(2, dtype="bfloat16")
        assert not hasattr(dp, "bfloat16")
    finally:
        _dtypes.bfloat16.cache_clear()


@pytest.mark.slow
def test_it_is_imported_when_used() -> None:
    code = "import sys, dparray as dp; dp.ones(3) + 1; sys.exit('ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_numpy_reads_an_array_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's array interface has no code for bfloat16; ``__array__`` gives the values."""
    monkeypatch.setattr(dp.config, "host_operands", "copy")
    host = np.arange(4).astype(ml_dtypes.bfloat16)
    made = np.array(dp.asarray(host))
    assert made.dtype == host.dtype
    assert made.tolist() == host.tolist()
