"""Vectors in kernels: the results of NumPy for small arrays, on the device and simulated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp
from dparray._kernel.writes import read_only_parameters
from tests.support import execute

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
WIDTHS = (2, 3, 4, 8, 16)


def sample(dtype: str, size: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return numbers from the whole range of a dtype; floats stay small."""
    numbers = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return numbers.random(size) < 0.5
    if kind.kind == "f":
        return numbers.uniform(-8, 8, size).astype(dtype)
    limits = np.iinfo(dtype)
    values = numbers.integers(limits.min, limits.max, size, dtype, endpoint=True)
    values[::3] = numbers.integers(0, 9, len(values[::3]))
    return values


def run(kernel: Any, index_space: Any, *arguments: Any, queue: Any = None) -> list[Any]:
    """Return the arrays after a launch, which must equal those after a simulation."""
    given = [
        dp.asarray(each, sycl_queue=queue) if isinstance(each, np.ndarray) else each
        for each in arguments
    ]
    simulated = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    dp.call_kernel(kernel, index_space, *given)
    dp.simulate(kernel, index_space, *simulated)
    found = [each.asnumpy() if isinstance(each, dp.ndarray) else each for each in given]
    for of_device, of_simulation in zip(found, simulated, strict=True):
        if isinstance(of_device, np.ndarray) and of_device.dtype.kind == "f":
            np.testing.assert_allclose(of_device, of_simulation, rtol=1e-5)
        else:
            np.testing.assert_array_equal(of_device, of_simulation)
    return found


# --- loads and stores -----------------------------------------------------------------------------


@dp.kernel
def turn_over(item: dp.Item, x: Any, out: Any, width: dp.constexpr) -> None:
    first = item.get_id(0) * width
    dp.vec_store(out, first + 1, dp.vec_load(x, first, width))


@pytest.mark.parametrize(
    ("dtype", "width"),
    [(dtype, 4) for dtype in ("bool", *INTEGERS, "float16", *FLOATS)]
    + [(dtype, width) for dtype in ("bool", "int8", "float16", "float64") for width in WIDTHS],
)
def test_consecutive_elements_are_read_and_written(dtype: str, width: int) -> None:
    x = sample(dtype, 3 * width)
    _, out, _ = run(turn_over, 3, x, np.zeros(3 * width + 2, dtype), width)
    np.testing.assert_array_equal(out[1:-1], x)
    assert out[0] == out[-1] == 0


def test_they_are_vectors_of_the_device(queue: Any) -> None:
    x = dp.arange(16, dtype="float32", sycl_queue=queue)
    out = dp.zeros(18, dtype="float32", sycl_queue=queue)
    turn_over[4](x, out, 4)
    np.testing.assert_array_equal(out.asnumpy()[1:-1], np.arange(16))
    text = turn_over.inspect_llvm()
    text = text if isinstance(text, str) else "\n".join(text.values())
    assert re.search(r"load <4 x float>, .+ align 4\n", text)
    assert re.search(r"store <4 x float> .+ align 4\n", text)


@dp.kernel
def copy_between(item: dp.Item, x: Any, out: Any) -> None:
    dp.vec_store(out, 4 * item.get_id(0), dp.vec_load(x, 4 * item.get_id(0), 4))


@pytest.mark.filterwarnings("ignore::dparray.exceptions.KernelTypeWarning")
@pytest.mark.parametrize("source", ["bool", "int8", "uint16", "int64", "uint64", "float16"])
@pytest.mark.parametrize("target", ["bool", "int8", "uint8", "int32", "uint64", "float16"])
def test_a_store_converts_as_an_assignment(source: str, target: str) -> None:
    x = sample(source, 8)
    if np.dtype(target).kind == "u":
        x = np.abs(x) if np.dtype(source).kind == "f" else x
    with np.errstate(all="ignore"):
        wanted = x.astype(target)
    _, out = run(copy_between, 2, x, np.zeros(8, target))
    np.testing.assert_array_equal(out, wanted)


@dp.kernel
def copy_rows(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    for k in range(0, x.shape[1] - 3, 4):
        dp.vec_store(out, (i, -x.shape[1] + k), dp.vec_load(x, (i, k), 4))


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.T, lambda x: x[:, ::-1], lambda x: x[::2, 1:5]]
)
def test_elements_follow_each_other_in_the_last_dimension(view: Callable[[Any], Any]) -> None:
    given, out = dp.arange(64).reshape(8, 8), dp.zeros((8, 8), dtype="int64")
    rows, columns = view(given).shape
    copy_rows[rows](view(given), view(out))
    host = np.arange(64).reshape(8, 8)
    np.testing.assert_array_equal(view(out).asnumpy(), view(host))
    simulated = np.zeros((8, 8), "int64")
    dp.simulate(copy_rows, rows, view(host), view(simulated))
    np.testing.assert_array_equal(simulated, out.asnumpy())
    assert columns % 4 == 0


@dp.kernel
def through_memory(item: dp.NdItem, x: Any, local: Any) -> None:
    k, i = item.get_local_id(0), item.get_global_id(0)
    private = dp.PrivateArray(4, dp.float32, True)
    dp.vec_store(private, 0, dp.vec_load(x, 4 * i, 4) + 1)
    dp.vec_store(local, 4 * k, dp.vec_load(private, 0, 4))
    dp.group_barrier(item.get_group())
    dp.vec_store(x, 4 * i, dp.vec_load(local, 4 * (item.get_local_range(0) - 1 - k), 4))


def test_memory_of_groups_and_work_items_has_vectors() -> None:
    x, _ = run(
        through_memory,
        dp.NdRange(4, 2),
        np.arange(16, dtype="float32"),
        dp.LocalAccessor(8, np.float32),
    )
    wanted = np.arange(1, 17).reshape(2, 2, 4)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(x, wanted)


@dp.kernel
def last_three(item: dp.Item, x: Any, out: Any) -> None:
    dp.vec_store(out, -3, dp.vec_load(array=x, index=-3, width=3))


def test_negative_indices_count_from_the_end() -> None:
    assert run(last_three, 1, np.arange(5), np.zeros(3, int))[1].tolist() == [2, 3, 4]


# --- operators ------------------------------------------------------------------------------------

_BINARY = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def made(*texts: str) -> Any:
    """Return the kernel that computes expressions of vectors ``a``, ``b`` and a number ``s``."""
    scope: dict[str, Any] = {"dp": dp, "math": math}
    outs = [f"out{at}" for at in range(len(texts))]
    lines = [f"def kernel(item, x, y, s, {', '.join(outs)}):"]
    lines += [
        f"    {name} = dp.vec_load({array}, 0, 8)" for name, array in (("a", "x"), ("b", "y"))
    ]
    lines += [f"    dp.vec_store({out}, 0, {text})" for out, text in zip(outs, texts, strict=True)]
    execute("\n".join(lines), scope)
    return dp.kernel(scope["kernel"])


def results(texts: Any, x: Any, y: Any, s: Any, dtypes: Any) -> list[Any]:
    """Return a kernel's results for expressions."""
    outs = [np.zeros(8, dtype) for dtype in dtypes]
    return run(made(*texts), 1, x, y, s, *outs)[3:]


@pytest.mark.parametrize("first", [*INTEGERS, *FLOATS])
@pytest.mark.sample(4)
def test_operators_are_those_of_arrays(first: str) -> None:
    second = {"int64": "uint64", "uint32": "int32", "float32": "int32"}.get(first, first)
    x, y = sample(first, 8), sample(second, 8, 1)
    texts, wanted = [], []
    for sign in (*_BINARY, *_COMPARED):
        if "float" in first + second and sign in ("&", "|", "^", "<<", ">>"):
            continue
        right, text = y, "b"
        # NumPy has no bitwise operations for this pair
        if first == "int64" and sign in ("&", "|", "^", "<<", ">>"):
            right, text = y.astype(first), "b.astype(dp.int64)"
        if sign in ("**", "<<", ">>"):
            right, text = right % 7, f"({text} % 7)"
        texts.append(f"a {sign} {text}")
        with np.errstate(all="ignore"):
            wanted.append(eval(f"x {sign} y", {"x": x, "y": right}))
    found = results(texts, x, y, 0, [each.dtype for each in wanted])
    for text, one, other in zip(texts, found, wanted, strict=True):
        if other.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-4, err_msg=text)
        else:
            np.testing.assert_array_equal(one, other, err_msg=text)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_numbers_take_the_dtype_of_the_vector(dtype: str) -> None:
    x, s = sample(dtype, 8), np.dtype(dtype).type(5)
    texts = ("a * 3 - 1", "2 - a", "a + 1.5", "s + a", "a // 3 + a % 3", "-a", "+a", "abs(a)")
    with np.errstate(all="ignore"):
        wanted = [eval(text, {"a": x, "s": s}) for text in texts]
    found = results(texts, x, x, s, [each.dtype for each in wanted])
    for text, one, other in zip(texts, found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=text)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_comparisons_with_numbers_are_exact(dtype: str) -> None:
    x = sample(dtype, 8)
    texts = ("a > -1", "300 >= a", "a == 3", "a < s")
    for text, found in zip(texts, results(texts, x, x, 4, [bool] * 4), strict=True):
        wanted = eval(text, {"a": x.astype(object), "s": 4})
        np.testing.assert_array_equal(found, wanted.astype(bool), err_msg=text)


def test_conditions_choose() -> None:
    x, y = sample("float32", 8), sample("float32", 8, 1)
    cases = {
        "dp.vec_where((a < b) & ~(a < 0), a, b)": np.where((x < y) & ~(x < 0), x, y),
        "dp.vec_where(a > 0, 1, b)": np.where(x > 0, np.float32(1), y),
        "dp.vec_where((a > 0) ^ (b > 0) | (a == b), a, 0.5)": np.where(
            (x > 0) ^ (y > 0) | (x == y), x, np.float32(0.5)
        ),
        "min(a, b)": np.minimum(x, y),
        "max(a, 1)": np.maximum(x, np.float32(1)),
    }
    found = results(cases, x, y, 0, ["float32"] * len(cases))
    for one, (text, wanted) in zip(found, cases.items(), strict=True):
        np.testing.assert_array_equal(one, wanted, err_msg=text)


_OF_MATH = (
    *("math.sqrt(abs(a))", "math.exp(a)", "math.sin(a)", "math.log1p(abs(a))", "math.erf(a)"),
    *("math.atan2(a, b)", "math.hypot(a, 2)", "math.pow(abs(a), 0.5)", "math.copysign(a, b)"),
    *("math.fmod(a, 3.0)", "math.degrees(a)", "math.fabs(a)", "math.tanh(a)"),
)


@pytest.mark.parametrize("dtype", ["int32", *FLOATS])
def test_functions_of_math_work_element_by_element(dtype: str) -> None:
    x, y = sample("float64", 8).astype(dtype), sample("float64", 8, 1).astype(dtype)
    result = np.float64 if dtype == "int32" else np.dtype(dtype).type
    names = {name: getattr(math, name) for name in dir(math) if name[0] != "_"}
    found = results(_OF_MATH, x, y, 0, [result] * len(_OF_MATH))
    for text, one in zip(_OF_MATH, found, strict=True):
        wanted = [
            eval(text.replace("math.", ""), {**names, "a": float(a), "b": float(b)})
            for a, b in zip(x, y, strict=True)
        ]
        np.testing.assert_allclose(one, wanted, rtol=3e-6, atol=1e-6, err_msg=text)


def test_rounding_and_tests_of_floats() -> None:
    x = np.array([1.5, -1.5, np.nan, np.inf, -np.inf, 0, 2.4, -2.6], "float32")
    names = ("floor", "ceil", "trunc", "isnan", "isinf", "isfinite")
    dtypes = ["float32"] * 3 + [bool] * 3
    found = results([f"math.{name}(a)" for name in names], x, x, 0, dtypes)
    for name, one in zip(names, found, strict=True):
        np.testing.assert_array_equal(one, getattr(np, name)(x), err_msg=name)


# --- creating, reading, reducing ------------------------------------------------------------------


@dp.kernel
def reduce(item: dp.Item, x: Any, out: Any, width: dp.constexpr) -> None:
    v = dp.vec_load(x, 0, width)
    out[0] = v.sum()
    out[1] = v.min()
    out[2] = v.max()
    out[3] = v.any()
    out[4] = v.all()
    out[5] = len(v)


@pytest.mark.parametrize(
    ("dtype", "width"),
    [(dtype, 8) for dtype in (*INTEGERS, *FLOATS)] + [("int8", 2), ("float32", 3), ("uint64", 16)],
)
def test_reductions_are_those_of_arrays(dtype: str, width: int) -> None:
    x = sample(dtype, width, width)
    total = x.sum()
    _, out, _ = run(reduce, 1, x, np.zeros(6, total.dtype), width)
    np.testing.assert_allclose(out[0], total, rtol=1e-4)
    wanted = [x.min(), x.max(), x.any(), x.all(), width]
    assert out[1:].tolist() == [total.dtype.type(each) for each in wanted]


@dp.device_func
def rotated(v: Any) -> Any:
    return dp.vec(v.y, v.z, v.w, v.x)


@dp.kernel
def elements(item: dp.Item, x: Any, out: Any) -> None:
    i = item.get_id(0)
    v = dp.vec_load(x, 4 * i, 4)
    total = dp.vec_full(4, 0, dp.int64)
    for k in range(len(v)):
        v = rotated(v)
        total += v.astype(dp.int64) * (k + 1)
    dp.vec_store(out, 8 * i, total)
    dp.vec_store(out, 8 * i + 4, dp.vec(v[i], v[-1], (v > 1).sum(), True))


def test_vectors_are_made_of_elements_and_handed_on() -> None:
    x = np.arange(8, dtype="int16")
    _, out = run(elements, 2, x, np.zeros(16, "int64"))
    for i in range(2):
        v, total = x[4 * i : 4 * i + 4], np.zeros(4, int)
        for k in range(4):
            v = np.roll(v, -1)
            total += v.astype(int) * (k + 1)
        assert out[8 * i : 8 * i + 4].tolist() == total.tolist()
        assert out[8 * i + 4 : 8 * i + 8].tolist() == [v[i], v[-1], (v > 1).sum(), 1]


@dp.kernel
def convert(item: dp.Item, x: Any, out: Any, dtype: dp.constexpr) -> None:
    v = dp.vec_load(x, 0, 4).astype(dtype)
    dp.vec_store(out, 0, v + dp.vec_full(4, 1, v.dtype))


@pytest.mark.parametrize("target", ["int8", "uint16", "int64", "float32", "float64", "float16"])
def test_a_cast_is_one_of_each_element(target: str) -> None:
    for source in ("int16", "uint8", "float64"):
        x = np.array([1, 2.7, 100, 127.2]).astype(source)
        _, out, _ = run(convert, 1, x, np.zeros(4), np.dtype(target).type)
        with np.errstate(all="ignore"):
            wanted = x.astype(target).astype("float64")
        np.testing.assert_array_equal(out, np.where(wanted + 1 == 128, -128, wanted + 1)
                                      if target == "int8" else wanted + 1)  # fmt: skip


# --- checks ---------------------------------------------------------------------------------------


@dp.kernel
def beyond(item: dp.Item, x: Any, out: Any, first: Any) -> None:
    dp.vec_store(out, first - 1, dp.vec_load(x, first, 4))


@pytest.mark.parametrize(("first", "place"), [(5, "vec_load"), (-9, "vec_load"), (0, "vec_store")])
def test_debug_mode_checks_every_element(first: int, place: str) -> None:
    x, out = dp.arange(8), dp.zeros(8, dtype="int64")
    wrong = first - 1 if place == "vec_store" else first
    with dp.config.override(debug=True):
        beyond[1](x, out, 4)
        np.testing.assert_array_equal(out.asnumpy(), [0, 0, 0, 4, 5, 6, 7, 0])
        with pytest.raises(dp.KernelExecutionError, match=rf"from index {wrong} on .+dp\.{place}"):
            beyond[1](x, out[:2] if place == "vec_store" else out, first)
    with pytest.raises(dp.exceptions.SimulationError, match=r"4 elements of .+ from index"):
        dp.simulate(beyond, 1, np.arange(8), np.zeros(2 if first == 0 else 8, int), first)


@dp.kernel
def element_beyond(item: dp.Item, x: Any, k: Any) -> None:
    x[0] = dp.vec_load(x, 0, 4)[k]


def test_debug_mode_checks_elements_of_vectors() -> None:
    with dp.config.override(debug=True):
        element_beyond[1](dp.arange(4), -4)
        with pytest.raises(dp.KernelExecutionError, match="index 4 is out of bounds"):
            element_beyond[1](dp.arange(4), 4)
    with pytest.raises(dp.exceptions.SimulationError, match=r"\[4\], outside its shape \(4,\)"):
        dp.simulate(element_beyond, 1, np.arange(4), 4)


def test_a_simulation_finds_races_of_vectors() -> None:
    @dp.kernel
    def overlapping(item: dp.Item, out: Any) -> None:
        i = 3 * item.get_id(0) + 1
        dp.vec_store(out, i, dp.vec_full(4, i, dp.int64))

    with pytest.raises(dp.exceptions.SimulationError, match=r"writes out\[4\], which work-item"):
        dp.simulate(overlapping, 2, np.zeros(8, int))


_WRONG = {
    "dp.vec_load(x, 0, 5)": "width must be the constant 2, 3, 4, 8 or 16; got 5",
    "dp.vec_load(x, 0, n)": "width must be the constant 2, 3, 4, 8 or 16; got",
    "dp.vec_load(n, 0, 4)": "vec_load: the first argument must be an array of the kernel; got",
    "dp.vec_load(z, 0, 4)": "the array must have Booleans, integers or floats; got",
    "dp.vec_load(x, (0, 0), 4)": "vec_load: takes (?:an integer as index|1 indices)",
    "dp.vec_store(x, 0, 1.0)": "vec_store: takes a vector",
    "dp.vec(1, 2, 3, 4, 5)": "vec: width must be the constant 2, 3, 4, 8 or 16",
    "v + dp.vec(1, 2)": "vec: both operands must have the same width; got 4 and 2",
    "v & v": "vec: & requires integers; got float64",
    "(v > 0) + (v < 1)": r"vec: \+ does not work on Booleans",
    "dp.vec_where(v, v, v)": "vec_where: the condition must be a vector of Booleans",
    "1 if v > 0 else 2": "vec: the truth value of several elements is ambiguous",
    "not v": "vec: the truth value of several elements is ambiguous",
    "v[4]": "vec: the index is below 4; got 4",
    "v.astype(1)": "a dtype such as dp.float32; got|data type",
}


@pytest.mark.parametrize("text", _WRONG)
def test_wrong_use_raises_with_an_explanation(text: str) -> None:
    scope: dict[str, Any] = {"dp": dp}
    source = (
        "def kernel(item, x, z, n):\n    v = dp.vec_load(x, 0, 4)\n"
        f"    w = {text}\n    dp.vec_store(x, 0, v)\n"
    )
    execute(source, scope)
    kernel = dp.kernel(scope["kernel"])
    with pytest.raises(dp.KernelCompileError, match=_WRONG[text]):
        kernel[1](dp.zeros(8), dp.zeros(8, dtype="complex64"), 5)
    if text != "dp.vec_load(x, 0, n)" and text != "v.astype(1)":
        with pytest.raises((dp.exceptions.SimulationError, TypeError), match=_WRONG[text]):
            dp.simulate(kernel, 1, np.zeros(8), np.zeros(8, "complex64"), 5)


def test_elements_are_not_assigned() -> None:
    def kernel(item: dp.Item, x: Any) -> None:
        v = dp.vec_load(x, 0, 4)
        v[0] = 1
        dp.vec_store(x, 0, v)

    with pytest.raises(dp.KernelCompileError, match="vector is immutable"):
        dp.kernel(kernel)[1](dp.zeros(4))
    with pytest.raises(dp.exceptions.SimulationError, match="vector is immutable"):
        dp.simulate(dp.kernel(kernel), 1, np.zeros(4))


def test_outside_of_kernels_the_names_say_where_they_belong() -> None:
    for call in (
        lambda: dp.vec(1, 2),
        lambda: dp.vec_load(dp.zeros(4), 0, 4),
        lambda: dp.vec_store(dp.zeros(4), 0, 1),
        lambda: dp.vec_full(2, 0, dp.int32),
        lambda: dp.vec_where(True, 1, 2),
    ):
        with pytest.raises(NotImplementedError, match="only in a kernel"):
            call()


def test_an_array_that_shows_elements_twice_is_not_written() -> None:
    x = dp.broadcast_to(dp.zeros(1), (8,))
    with pytest.raises(dp.KernelCompileError, match="read-only"):
        copy_between[1](dp.zeros(8), x)


def test_floats_in_an_array_of_integers_are_warned_of() -> None:
    def kernel(item: dp.Item, x: Any, out: Any) -> None:
        dp.vec_store(out, 0, dp.vec_load(x, 0, 4) / 2)

    with pytest.warns(dp.exceptions.KernelTypeWarning, match="float64 is written into an array"):
        dp.kernel(kernel)[1](dp.arange(4), dp.zeros(4, dtype="int64"))


def test_a_load_only_reads() -> None:
    assert read_only_parameters(copy_between.py_func, (None, 1, 1)) == {"x"}


def test_a_store_by_its_own_name_writes() -> None:
    from dparray import vec_load, vec_store

    def kernel(item: dp.Item, x: Any, out: Any) -> None:
        vec_store(out, 0, vec_load(x, 0, 4))

    assert read_only_parameters(kernel, (None, 1, 1)) == {"item", "x"}


@pytest.mark.parametrize("run", [dp.call_kernel, dp.simulate])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_small_vectors(run: Any, dtype: str) -> None:
    @dp.kernel
    def compute(item: dp.Item, p: Any, q: Any, out: Any) -> None:
        i = item.get_id(0)
        a, b = dp.vec_load(p, (i, 0), 3), dp.vec_load(q, (i, 0), 3)
        dp.vec_store(out, (i, 0), dp.cross(a, b))
        dp.vec_store(out, (i, 3), a / dp.linalg.norm(a))
        out[i, 6] = np.dot(a, b)
        out[i, 7] = np.linalg.norm(b)

    p, q = np.random.default_rng(3).random((2, 4, 3)).astype(dtype)
    out = dp.zeros((4, 8), dtype=dtype)
    run(compute, dp.Range(4), dp.asarray(p), dp.asarray(q), out)
    first, second = (np.linalg.norm(each, axis=1)[:, None] for each in (p, q))
    expected = [np.cross(p, q), p / first, (p * q).sum(axis=1)[:, None], second]
    tolerance = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        out.asnumpy(), np.concatenate(expected, axis=1), rtol=tolerance, atol=tolerance
    )
