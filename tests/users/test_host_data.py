"""NumPy operands: an error with the option's name, or a copy if the user allows it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dparray as dp

pytestmark = pytest.mark.process


def programs() -> dict[str, Any]:
    a = np.asarray([1.0, 2.0, 3.0])
    return {
        "x + a": lambda x: x + a,
        "a + x": lambda x: a + x,
        "np.add(a, x)": lambda x: np.add(a, x),
        "dp.where(a > 1, x, a)": lambda x: dp.where(a > 1, x, a),
        "dp.dot(x, a)": lambda x: dp.dot(x, a),
        "dp.stack([x, a])": lambda x: dp.stack([x, a]),
        "x[a > 1]": lambda x: x[a > 1],
        "x[...] = a": lambda x: x.__setitem__(Ellipsis, a),
        "x += a": lambda x: x.__iadd__(a),
        "x[a > 1] = a[1:]": lambda x: x.__setitem__(a > 1, a[1:]),
        "np.asarray(x)": np.asarray,
        "b += x": lambda x: np.ones(3).__iadd__(x),
        "np.add(x, a, out=b)": lambda x: np.add(x, a, out=np.empty(3)),
        "b[0] = x[0]": lambda x: np.zeros(3).__setitem__(slice(0, 1), x[:1]),
    }


@pytest.mark.parametrize("name", sorted(programs()))
def test_with_the_option_numpy_data_are_copied(name: str, queue: Any) -> None:
    program = programs()[name]
    x, expected = dp.asarray([3.0, 4.0, 5.0], sycl_queue=queue), np.asarray([3.0, 4.0, 5.0])
    with dp.config.override(host_operands="copy"):
        result = program(x)
    wanted = program_of_numpy(name, expected)
    if result is not None:
        np.testing.assert_array_equal(dp.asnumpy(result), wanted)
        if isinstance(result, dp.ndarray):
            assert result.sycl_queue == queue
    np.testing.assert_array_equal(x.asnumpy(), expected)


def program_of_numpy(name: str, values: np.ndarray) -> Any:
    a = np.asarray([1.0, 2.0, 3.0])
    if name.startswith("dp."):
        return eval(name, {"dp": np, "x": values, "a": a})
    return programs()[name](values)


def test_numpy_reads_arrays_of_the_processor_without_sycl() -> None:
    x = dp.arange(6.0, device="host:cpu").reshape(2, 3) + 1
    a = np.asarray(x)
    x += 1
    assert a.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert np.asarray(x, "float32").dtype == np.float32
    assert np.array(x).tolist() == x.tolist()
    with pytest.raises(ValueError, match="from_dlpack"):
        np.asarray(x, copy=False)
    left, right = np.broadcast_arrays(np.ones((2, 1)), x)
    assert type(right) is np.ndarray
    assert left.shape == right.shape == (2, 3)
    for program in (lambda: x + a, lambda: a + x, lambda: dp.stack([x, a])):
        with pytest.raises(dp.HostConversionError):
            program()


def test_no_function_fills_a_copy_that_is_lost() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    x = dp.arange(9.0, device="host:cpu").reshape(3, 3)
    with pytest.raises(ValueError, match="read-only"):
        ndimage.grey_erosion(x, 3, output=dp.zeros_like(x))
    own = np.array(x)
    own[0] = 7
    assert x[0].tolist() == [0, 1, 2]


def test_plots_and_tables_take_arrays_of_the_processor_without_sycl() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    stats = pytest.importorskip("scipy.stats")
    plt.switch_backend("agg")
    x = dp.arange(12.0, device="host:cpu").reshape(3, 4)
    figure, axis = plt.subplots()
    assert axis.imshow(x).get_array().tolist() == x.tolist()
    assert axis.scatter(x[0], x[1], c=x[2], s=x[0]).get_offsets().tolist() == x[:2].T.tolist()
    assert [bar.get_height() for bar in axis.bar(x[0], x[1])] == x[1].tolist()
    axis.contour(x)
    plt.close(figure)
    assert stats.describe(x[0]).mean == 1.5
    pandas = pytest.importorskip("pandas")
    assert (
        pandas.DataFrame({"a": x[0]})["a"].tolist() == pandas.Series(x[0]).tolist() == [0, 1, 2, 3]
    )


def test_memory_is_compared_with_numpys() -> None:
    x = dp.arange(3.0)
    a = np.from_dlpack(x)
    assert np.shares_memory(x, a)
    assert np.may_share_memory(a[1:], x)
    assert not np.shares_memory(x, np.arange(3.0))


@pytest.mark.parametrize("name", ["x + a", "a + x", "np.asarray(x)"])
def test_the_default_raises_and_names_the_option(name: str) -> None:
    with pytest.raises(dp.HostConversionError, match=r"dp\.config\.host_operands = 'copy'"):
        programs()[name](dp.ones(3))


def test_a_number_goes_where_numpy_asks_for_one(queue: Any) -> None:
    x = dp.asarray([1.5, 2.5], sycl_queue=queue)
    b = np.zeros(2)
    b[0] = x[1]
    assert b[0] == 2.5
    assert np.array([x[0], x[1]]).tolist() == [1.5, 2.5]
    assert np.asarray(x.sum(), dtype="float32").dtype == np.float32
    np.testing.assert_allclose(x.sum(), 4)
    with pytest.raises(dp.HostConversionError):
        np.asarray(x[:1])


def test_adding_to_a_numpy_array_raises_with_a_suggested_fix() -> None:
    b = np.ones(2)
    with pytest.raises(dp.HostConversionError, match=r"x1 = dp\.asarray\(x1\)"):
        b += dp.ones(2)
    with pytest.raises(dp.HostConversionError, match=r"a \+= dp\.asnumpy\(x\)"):
        np.add(dp.ones(2), dp.ones(2), out=b)


@pytest.mark.parametrize(
    "program",
    ["x + a", "dp.where(x > 0, x, a)", "dp.maximum(x, a)", "kernel(x, a)"],
)
def test_the_suggested_fix_is_python_and_works(program: str, queue: Any) -> None:
    def kernel(x: Any, a: Any) -> None:
        dp.call_kernel(adds, dp.Range(3), x, a)

    x, a = dp.ones(3, sycl_queue=queue), np.ones(3)
    names = {"dp": dp, "x": x, "a": a, "kernel": kernel}
    with pytest.raises(dp.HostConversionError) as caught:
        eval(program, names)
    line = re.search(r"\w+ = (dp\.asarray\((\w+).*?\))", str(caught.value))
    assert line is not None, caught.value
    moved = eval(line[1], {"dp": dp, "x": x, line[2]: a})
    assert moved.sycl_queue == queue


@dp.kernel
def adds(item, x, a):  # type: ignore[no-untyped-def]
    x[item.get_id(0)] += a[item.get_id(0)]


def test_warn_copies_and_says_where() -> None:
    with (
        dp.config.override(host_operands="warn"),
        pytest.warns(dp.HostCopyWarning, match="NumPy array of 24 bytes") as caught,
    ):
        assert (dp.ones(3) + np.ones(3)).tolist() == [2, 2, 2]
    assert caught[0].filename == __file__


def test_the_option_takes_three_words() -> None:
    with pytest.raises(ValueError, match="'error', 'copy', 'warn'"):
        dp.config.host_operands = "yes"


def test_libraries_that_convert_work_with_the_option() -> None:
    image = pytest.importorskip("PIL.Image")
    x = dp.asarray(np.arange(12, dtype=np.uint8).reshape(3, 4))
    with pytest.raises(AttributeError, match="host_operands"):
        image.fromarray(x)
    with dp.config.override(host_operands="copy"):
        np.testing.assert_array_equal(np.asarray(image.fromarray(x)), x.asnumpy())
        kept = np.asarray(x)
    np.testing.assert_array_equal(kept, np.arange(12).reshape(3, 4))


def test_numpy_reads_an_array_through_dlpack(queue: Any) -> None:
    x = dp.arange(5.0, sycl_queue=queue)
    np.testing.assert_array_equal(np.from_dlpack(x.copy(), device="cpu"), np.arange(5.0))
    assert x.__dlpack_device__() == (1, 0)
    shown = np.from_dlpack(x)
    shown[0] = 7
    assert x[0] == 7


def test_dpnp_reads_a_cpu_array_through_dlpack_for_a_given_device() -> None:
    dpnp = pytest.importorskip("dpnp")
    x = dp.arange(5.0)
    theirs = dpnp.from_dlpack(x, device="cpu")
    assert type(theirs) is dpnp.ndarray
    theirs[0] = 7
    assert x[0] == 7


def test_torch_shares_the_memory_of_an_array_on_a_cpu(queue: Any) -> None:
    torch = pytest.importorskip("torch")
    for size in (5, 50_000):
        x = dp.arange(size, dtype="float32", sycl_queue=queue) * 2
        t = torch.from_dlpack(x)
        assert t.tolist()[:3] == [0, 2, 4]
        t[0] = 7
        assert x[0] == 7
        assert (dp.from_dlpack(t, device=queue) + x).tolist()[:2] == [14, 4]
