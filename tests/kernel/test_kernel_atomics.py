"""AtomicRef: features of SYCL that numba-dpex does not support, or implements wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dparray as dp

ITEMS = 64


@dp.kernel
def count_bits(item: dp.NdItem, masks: Any, results: Any, local: Any) -> None:
    i = item.get_global_id(0)
    if item.get_group().leader:
        local[0] = 0
    dp.group_barrier(item.get_group())
    dp.AtomicRef(results, 0).fetch_and(~masks[i])
    dp.AtomicRef(results, 1).fetch_or(masks[i])
    dp.AtomicRef(results, 2).fetch_xor(masks[i])
    dp.AtomicRef(local, 0).fetch_xor(masks[i])
    dp.group_barrier(item.get_group())
    if item.get_group().leader:
        results[3] = local[0]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_bitwise_operations_of_every_integer(dtype: str) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    masks = rng.integers(info.min, info.max, ITEMS, dtype=dtype) & rng.integers(
        info.min, info.max, ITEMS, dtype=dtype
    )
    start = np.array([~np.zeros((), dtype), 0, 0, 0], dtype)
    results = dp.asarray(start)
    range_ = dp.NdRange(ITEMS, ITEMS)
    count_bits[range_](dp.asarray(masks), results, dp.LocalAccessor(1, dtype))
    xor = np.bitwise_xor.reduce(masks)
    expected = [~np.bitwise_or.reduce(masks), np.bitwise_or.reduce(masks), xor, xor]
    assert results.tolist() == np.array(expected, dtype).tolist()
    dp.simulate(count_bits, range_, masks, start, dp.LocalAccessor(1, dtype))
    assert start.tolist() == results.tolist()


@dp.kernel
def take_any_number(item: dp.Item, x: Any, small: Any) -> None:
    i = item.get_id(0)
    dp.AtomicRef(x, 0).fetch_add(1)
    dp.AtomicRef(x, 1).fetch_max(i)
    dp.AtomicRef(x, 2).fetch_sub(small[i])
    dp.AtomicRef(x, i + 3).store(True)
    dp.AtomicRef(x, i + 3).exchange(i + 2)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_values_are_converted_to_the_elements(dtype: str) -> None:
    x = dp.zeros(8, dtype=dtype)
    take_any_number[5](x, dp.ones(5, dtype="int8"))
    expected = np.array([5, 4, 0, 2, 3, 4, 5, 6], dtype)
    expected[2] -= dtype != "uint64" and 5
    if dtype == "uint64":
        expected[2] = 2**64 - 5
    assert x.asnumpy().tolist() == expected.tolist()


def test_a_float_is_not_truncated_to_an_integer() -> None:
    @dp.kernel
    def add_half(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x, 0).fetch_add(0.5)

    @dp.kernel
    def float_bits(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x, 0).fetch_or(1)

    with pytest.raises(dp.KernelCompileError, match=r"value is 0\.5; convert it: np\.int32"):
        add_half[1](dp.zeros(1, dtype="int32"))
    with pytest.raises(dp.KernelCompileError, match=r"fetch_or works on integers.*float32"):
        float_bits[1](dp.zeros(1, dtype="float32"))


@dp.kernel
def replace_zero(item: dp.Item, target: Any, expected: Any, done: Any) -> None:
    i = item.get_id(0)
    reference = dp.AtomicRef(target, 0)
    done[i] = reference.compare_exchange(expected_ref=expected, desired=i + 1, expected_idx=i)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("step", [1, -1, 3])
def test_compare_exchange_uses_the_strides_of_the_expected_array(dtype: str, step: int) -> None:
    storage = dp.zeros(3 * ITEMS, dtype=dtype)
    expected = storage[::step][:ITEMS]
    target, done = dp.zeros(1, dtype=dtype), dp.zeros(ITEMS, dtype=bool)
    replace_zero[ITEMS](target, expected, done)
    assert done.sum().item() == 1  # one item wins
    winner = int(np.flatnonzero(done.asnumpy())[0])
    assert target.item() == winner + 1
    assert expected.tolist() == [0 if i == winner else winner + 1 for i in range(ITEMS)]
    assert storage.sum().item() == (ITEMS - 1) * (winner + 1)  # and nothing else


def test_compare_exchange_with_a_private_value_and_from_the_end() -> None:
    @dp.kernel
    def multiply(item: dp.Item, x: Any, factors: Any, seen: Any) -> None:
        i = item.get_id(0)
        product = dp.AtomicRef(x, 0)
        expected = dp.PrivateArray(1, np.float64)
        expected[0] = product.load()
        while not product.compare_exchange(expected, expected[0] * factors[i]):
            pass
        if i == 0:
            dp.AtomicRef(x, 1).compare_exchange(seen, 1.0, -1)

    factors = np.arange(1.0, 13.0)
    x, seen = dp.asarray([1.0, 7.0]), dp.zeros(12)
    multiply[12](x, dp.asarray(factors), seen)
    assert x.tolist() == [np.prod(factors), 7.0]
    assert seen.tolist() == [0.0] * 11 + [7.0]


ORDERS = ["RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL", "SEQ_CST"]


@pytest.mark.parametrize("order", ORDERS)
def test_loads_and_stores_get_an_order_that_they_may_have(order: str) -> None:
    memory_order = getattr(dp.MemoryOrder, order)

    @dp.kernel
    def copy(item: dp.Item, x: Any, y: Any) -> None:
        i = item.get_id(0)
        source = dp.AtomicRef(x, i, memory_order, dp.MemoryScope.DEVICE)
        dp.AtomicRef(y, i, memory_order).store(source.load())

    x = dp.arange(4, dtype="int32")
    y = dp.zeros(4, dtype="int32")
    copy[4](x, y)
    assert y.tolist() == x.tolist()
    (text,) = copy.inspect_spirv().values()
    lines = [line.split() for line in text.splitlines() if line.strip()]
    constants = {line[0]: int(line[4]) for line in lines if line[2:3] == ["OpConstant"]}
    # The order is the last operand of a load, and comes before the value in a store.
    (load,) = (constants[line[-1]] for line in lines if "OpAtomicLoad" in line)
    (store,) = (constants[line[-2]] for line in lines if "OpAtomicStore" in line)
    acquire, release, strict = 2, 4, 16
    assert load & 31 in {0, acquire, strict}
    assert store & 31 in {0, release, strict}


@pytest.mark.parametrize("space", ["GLOBAL", "GENERIC", "LOCAL", "PRIVATE"])
def test_the_address_space_is_the_arrays_or_generic(space: str) -> None:
    address_space = getattr(dp.AddressSpace, space)

    @dp.kernel
    def count(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x, 0, address_space=address_space).fetch_add(1)

    x, simulated = dp.zeros(1, dtype="int32"), np.zeros(1, "int32")
    if space in ("GLOBAL", "GENERIC"):
        count[10](x)
        dp.simulate(count, 10, simulated)
        assert x.item() == simulated[0] == 10
        return
    with pytest.raises(dp.KernelCompileError, match=r"global memory; use .*AddressSpace\.GLOBAL"):
        count[10](x)
    with pytest.raises(dp.SimulationError, match=r"use AddressSpace\.GLOBAL"):
        dp.simulate(count, 10, simulated)


def test_types_without_atomics_raise() -> None:
    @dp.kernel
    def of_a_number(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x[0], 0).fetch_add(1)

    @dp.kernel
    def of_private(item: dp.Item, x: Any) -> None:
        p = dp.PrivateArray(1, np.int32, fill_zeros=True)
        dp.AtomicRef(p, 0).fetch_add(1)

    @dp.kernel
    def of_any(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x, 0).fetch_add(1)

    for kernel, dtype, words in (
        (of_a_number, "int32", "refers to an element of an array"),
        (of_private, "int32", "private memory belongs to one work-item"),
        (of_any, "int16", "int32, int64, uint32, .*got an array of int16"),
    ):
        with pytest.raises(dp.KernelCompileError, match=words):
            kernel[1](dp.zeros(1, dtype=dtype))


@pytest.mark.parametrize("run", [dp.call_kernel, dp.simulate])
@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_compare_exchange_takes_the_expected_value(run: Any, dtype: str) -> None:
    @dp.kernel
    def products(item: dp.Item, x: Any, out: Any, seen: Any) -> None:
        ref = dp.AtomicRef(out, 0)
        expected = ref.load()
        while True:
            swapped, found = ref.compare_exchange(expected, expected * x[item.get_id(0)])
            if swapped:
                break
            expected = found
        seen[item.get_id(0)] = expected

    x = dp.asarray([1, 2, 3, 4, 5, 6], dtype=dtype)
    out, seen = dp.ones(1, dtype=dtype), dp.zeros(6, dtype=dtype)
    run(products, dp.Range(6), x, out, seen)
    assert out.item() == 720
    # Each work-item replaced another value.
    assert len(set(seen.tolist())) >= 5


def test_compare_exchange_on_the_host() -> None:
    values = np.array([3])
    assert dp.AtomicRef(values, 0).compare_exchange(4, 5) == (False, 3)
    assert dp.AtomicRef(values, 0).compare_exchange(3, 5) == (True, 3)
    assert values.tolist() == [5]


@dp.kernel
def add_vectors(item: dp.Item, sums: Any, least: Any, turned: Any, rows: Any) -> None:
    i = item.get_id(0)
    v = dp.vec_load(rows, (i, 0), 3)
    before = dp.AtomicRef(sums, (i % 2, 1)).fetch_add(v)
    dp.AtomicRef(sums, (1, -3)).fetch_sub(before * 0)
    dp.AtomicRef(least, 0).fetch_min(v)
    dp.AtomicRef(turned, (i % 2, 0)).fetch_max(v)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_a_vector_changes_an_element_each(dtype: str) -> None:
    rows = np.random.default_rng(3).integers(-50, 50, (64, 3)).astype(dtype)
    expected = np.zeros((2, 4), dtype)
    expected[0, 1:], expected[1, 1:] = rows[::2].sum(axis=0), rows[1::2].sum(axis=0)
    largest = np.stack([rows[::2].max(axis=0), rows[1::2].max(axis=0)]).clip(0)
    shapes = ((2, 4), 3, (3, 2))
    sums, least, turned = (dp.zeros(shape, dtype=dtype) for shape in shapes)
    add_vectors[64](sums, least, turned.T, dp.asarray(rows))
    np.testing.assert_array_equal(sums.asnumpy(), expected)
    np.testing.assert_array_equal(least.asnumpy(), rows.min(axis=0).clip(max=0))
    np.testing.assert_array_equal(turned.T.asnumpy(), largest)
    sums, least, turned = (np.zeros(shape, dtype) for shape in shapes)
    dp.simulate(add_vectors, 64, sums, least, turned.T, rows)
    np.testing.assert_array_equal(sums, expected)
    np.testing.assert_array_equal(turned.T, largest)
    dp.simulate(add_vectors, 64, sums, least, turned.T, rows, item=5)  # one item, as Python
    np.testing.assert_array_equal(sums[1, 1:], expected[1, 1:] + rows[5])


def test_a_vector_stays_in_the_array_and_has_the_type_of_the_elements() -> None:
    @dp.kernel
    def beyond(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x, 2).fetch_add(dp.vec(1, 2))

    @dp.kernel
    def exchanges(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x, 0).exchange(dp.vec(1, 2))

    @dp.kernel
    def cuts(item: dp.Item, x: Any) -> None:
        dp.AtomicRef(x, 0).fetch_add(dp.vec(0.5, 2))

    x = dp.zeros(3, dtype="int32")
    with (
        dp.config.override(debug=True),
        pytest.raises(dp.KernelExecutionError, match="from index 2 on"),
    ):
        dp.synchronize(beyond[1](x))
    assert x.tolist() == [0, 0, 0]
    with pytest.raises(dp.SimulationError, match="outside"):
        dp.simulate(beyond, 1, np.zeros(3, np.int32), item=0)
    with pytest.raises(dp.KernelCompileError, match="exchange takes a number"):
        exchanges[1](x)
    with pytest.raises(dp.KernelCompileError, match=r"v\.astype\(np\.int32\)"):
        cuts[1](x)
