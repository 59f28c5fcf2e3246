"""The library of each driver: the same functions, errors and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._array.ndarray import materialize
from dparray._driver import driver_named
from dparray.memory.libraries import Library, library_of

MATRIX = np.array([[0.0, 2.0, 1.0], [4.0, 6.0, 0.0], [1.0, 0.0, 1.0]])
PROTOCOL = sorted(name for name in vars(Library) if not name.startswith("_"))


@pytest.fixture(params=["sycl", "host"])
def device(request: pytest.FixtureRequest) -> Any:
    """A part of the processor, on which products and decompositions are a library's."""
    driver: Any = driver_named(request.param)
    if not hasattr(driver, "devices"):
        pytest.skip(f"there is no driver {request.param}")
    root = dp.Device(driver.default_queue(driver.devices()[0]))
    return root.create_sub_devices(1)[0] if root.traits.units > 1 else root


@pytest.fixture
def x(device: Any) -> Any:
    return dp.asarray(MATRIX, device=device)


@pytest.mark.parametrize("name", PROTOCOL)
def test_a_library_has_the_members_of_the_protocol(name: str, x: Any) -> None:
    assert hasattr(library_of(x.queue), name)


def test_an_array_shares_memory_with_the_librarys(x: Any) -> None:
    library = library_of(x.queue)
    with library.calls(x.queue):
        shown = library.array(materialize(x[1:]))
        library.store(shown, library.asarray(np.array([7.0, 8.0, 9.0])))
        np.testing.assert_array_equal(library.asnumpy(shown), [[7, 8, 9]] * 2)
        assert library.is_array(shown)
        assert not library.is_array(x)
    dp.synchronize(x)
    np.testing.assert_array_equal(x.asnumpy(), [MATRIX[0], [7, 8, 9], [7, 8, 9]])


@pytest.mark.parametrize("call", [
    lambda xp, x: xp.linalg.inv(x),
    lambda xp, x: xp.linalg.det(x),
    lambda xp, x: xp.matmul(x, x),
    lambda xp, x: xp.fft.rfft(x),
    lambda xp, x: xp.linalg.cholesky(xp.matmul(x, x.T)),
])  # fmt: skip
def test_functions_have_numpys_values(call: Any, x: Any) -> None:
    with dp.config.override(host_tier=False):
        found = call(dp, x)
    np.testing.assert_allclose(found.asnumpy(), call(np, MATRIX), rtol=1e-12, atol=1e-12)


def test_factors_by_scipys_names(x: Any) -> None:
    permuted, lower, upper = dp.linalg.lu(x)
    np.testing.assert_allclose((permuted @ lower @ upper).asnumpy(), MATRIX)


def test_errors_name_the_function(x: Any) -> None:
    with dp.config.override(host_tier=False):
        with pytest.raises(np.linalg.LinAlgError, match="inv: "):
            dp.linalg.inv(x * 0)
        with pytest.raises(dp.ShapeError, match="cholesky"):
            dp.linalg.cholesky(x[:2])


@pytest.mark.parametrize("name", ["nothing", "fft.nothing"])
def test_a_function_that_no_library_has(name: str, x: Any) -> None:
    library: Any = library_of(x.queue)
    home, _, last = name.rpartition(".")
    with pytest.raises(AttributeError):
        getattr(getattr(library, home) if home else library, last)
