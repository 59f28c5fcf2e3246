"""Placement: creation functions take one, exchanged arrays keep it, and errors name it."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np
import pytest

import dparray as dp

# isort: split
import dpctl
import dpnp

VALUES = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def other(queue: Any) -> Any:
    """Return another queue on the device of ``queue``."""
    return dp.Device(queue).new_queue().queue


CREATING = {
    "diag": lambda **place: dp.diag([1.0, 2.0], **place),
    "diagflat": lambda **place: dp.diagflat([[1.0, 2.0]], **place),
    "vander": lambda **place: dp.vander([1.0, 2.0], **place),
    "copy": lambda **place: dp.copy(dp.ones(3), **place),
    "meshgrid": lambda **place: dp.meshgrid([1.0, 2.0], [3.0], **place)[1],
    "full": lambda **place: dp.full((2, 3), dp.arange(3.0), **place),
    "full of NumPy": lambda **place: dp.full((2, 3), VALUES[0], **place),
    "full_like": lambda **place: dp.full_like(dp.ones((2, 3)), dp.arange(3.0), **place),
    "linspace": lambda **place: dp.linspace(dp.asarray(0.0), 1.0, 3, **place),
    "logspace": lambda **place: dp.logspace(0, 3, 4, base=dp.asarray([2.0, 3.0]), **place),
    "asarray": lambda **place: dp.asarray([dp.ones(2), np.ones(2)], **place),
    "rand": lambda **place: dp.random.rand(3, **place),
    "randn": lambda **place: dp.random.randn(3, **place),
    "randint": lambda **place: dp.random.randint(3, size=4, **place),
    "random": lambda **place: dp.random.random(4, **place),
    "uniform": lambda **place: dp.random.uniform(size=4, **place),
    "normal": lambda **place: dp.random.normal(size=4, **place),
    "permutation": lambda **place: dp.random.permutation(4, **place),
    "poisson": lambda **place: dp.random.poisson(size=4, **place),
    "choice": lambda **place: dp.random.choice(4, 4, **place),
}


@pytest.mark.parametrize("name", CREATING)
@pytest.mark.parametrize("usm_type", ["device", "shared"])
def test_creation_functions_take_a_placement(queue: Any, name: str, usm_type: str) -> None:
    create = CREATING[name]
    for place in ({"device": queue}, {"sycl_queue": queue}):
        x = create(**place, usm_type=usm_type)
        assert (x.queue, x.usm_type) == (queue, usm_type)
    default = create(device="cpu")
    assert default.queue == dp.Device("cpu").queue
    if "random" not in (create.__code__.co_names):
        np.testing.assert_array_equal(x.asnumpy(), default.asnumpy())
    with pytest.raises(dp.UsmTypeError):
        create(usm_type="no such type")


def test_arrays_of_several_placements_go_to_the_given_one(queue: Any, other: Any) -> None:
    parts = [dp.ones(2, sycl_queue=other), [3, 4.0], np.full(2, 5.0), dpnp.zeros(2)]
    x = dp.asarray(parts, device=queue)
    assert x.queue == queue
    np.testing.assert_array_equal(x.asnumpy(), [[1, 1], [3, 4], [5, 5], [0, 0]])
    with pytest.raises(dp.ExecutionPlacementError):
        dp.asarray([dp.ones(2, sycl_queue=other), dp.ones(2, sycl_queue=queue)])
    assert dp.full(3, dp.asarray(2.0, sycl_queue=other), device=queue).queue == queue
    with pytest.raises(dp.HostConversionError):
        dp.full(3, np.ones(3))


@pytest.mark.parametrize("size", [3, 20_000])
def test_dpnp_on_the_left_of_an_operator(queue: Any, size: int) -> None:
    theirs = dpnp.full(size, 6.0, sycl_queue=queue)
    ours = dp.full(size, 4.0, sycl_queue=queue)
    for operate in (operator.add, operator.sub, operator.pow, operator.lt, operator.eq):
        found = operate(theirs, ours)
        assert isinstance(found, dp.ndarray)
        np.testing.assert_array_equal(found.asnumpy(), operate(np.full(size, 6.0), 4.0))
    assert float(theirs @ ours) == 24 * size
    quotient, rest = divmod(theirs, ours)
    assert (float(quotient[0]), float(rest[0])) == (1, 2)
    assert isinstance(theirs + 1, dpnp.ndarray)
    with pytest.raises(dp.ExecutionPlacementError):
        theirs + dp.ones(size, sycl_queue=dpctl.SyclQueue(queue.sycl_device))


def test_from_dlpack_of_dpnp_keeps_its_queue(queue: Any) -> None:
    x = dpnp.ones(5000, sycl_queue=queue)
    for _ in range(20):
        x = x + 1
    shared = dp.from_dlpack(x)
    assert shared.queue == queue
    np.testing.assert_array_equal(shared.asnumpy(), 21)
    shared[0] = 5
    assert float(x[0]) == 5


@pytest.mark.parametrize("size", [6, 60_000])
def test_dpnp_shares_the_memory_of_its_operands(queue: Any, size: int) -> None:
    for usm_type in ("device", "shared"):
        x = dp.asarray(np.arange(float(size)), sycl_queue=queue, usm_type=usm_type)
        for part in (x, x[1::2], x + 0):
            theirs = dpnp.asarray(part, copy=False)
            assert theirs.sycl_queue is part.sycl_queue
            theirs[1] = 77
            np.testing.assert_array_equal(part.asnumpy(), theirs.asnumpy())
            part[0] = 55
            assert float(theirs[0]) == 55
    # the memory outlives the dparray array
    theirs = dpnp.asarray(dp.full(size, 3.0, sycl_queue=queue))
    for _ in range(3):
        dp.full(size, 4.0, sycl_queue=queue).asnumpy()
    np.testing.assert_array_equal(theirs.asnumpy(), 3)


@pytest.mark.parametrize("size", [4, 40_000])
def test_arrays_of_dpnp_are_operands_and_indices(queue: Any, size: int) -> None:
    values = np.arange(float(size))
    x, theirs = dp.asarray(values, sycl_queue=queue), dpnp.asarray(values, sycl_queue=queue)
    for result, expected in (
        (x + theirs, values + values),
        (dp.multiply(theirs, x), values * values),
        (dp.sin(theirs), np.sin(values)),
        (dp.where(x > 1, theirs, 0), np.where(values > 1, values, 0)),
        (dp.concat([x, theirs]), np.concatenate([values, values])),
        (dp.maximum(theirs, 2), np.maximum(values, 2)),
        (x[dpnp.asarray([1, 0], sycl_queue=queue)], values[[1, 0]]),
        (x[theirs > 1], values[values > 1]),
    ):
        assert isinstance(result, dp.ndarray)
        assert result.queue == queue
        np.testing.assert_allclose(result.asnumpy(), expected)
    x[:2] = theirs[2:4]
    x[dpnp.asarray([3], sycl_queue=queue)] = dpnp.asarray([9.0], sycl_queue=queue)
    x += theirs
    expected = values.copy()
    expected[:2], expected[3] = values[2:4], 9
    np.testing.assert_array_equal(x.asnumpy(), expected + values)


def test_arrays_of_dpnp_follow_the_rule_of_one_queue(queue: Any, other: Any) -> None:
    x, theirs = dp.ones(4, sycl_queue=queue), dpnp.ones(4, sycl_queue=other)
    index = dpnp.asarray([0], sycl_queue=other)
    for attempt in (lambda: x + theirs, lambda: x[index], lambda: x.__setitem__(..., theirs)):
        with pytest.raises(dp.ExecutionPlacementError):
            attempt()


@pytest.mark.parametrize("size", [6, 60_000])
def test_numpy_arrays_are_written_by_assignment(queue: Any, size: int) -> None:
    values = np.arange(size, dtype="float32")
    x = dp.zeros(size, sycl_queue=queue)
    pending = x + 1
    x[:] = values
    np.testing.assert_array_equal(x.asnumpy(), values)
    np.testing.assert_array_equal(pending.asnumpy(), 1)
    x[::2] = values[::2] * 2
    x[[1, 3]] = np.asarray([7, 8])
    expected = values.astype(float)
    expected[::2] *= 2
    expected[[1, 3]] = 7, 8
    np.testing.assert_array_equal(x.asnumpy(), expected)
    dp.copyto(x, values)
    np.testing.assert_array_equal(x.asnumpy(), values)
    with pytest.raises(dp.DTypeError):
        x[:] = values * 1j
    with pytest.raises(dp.ShapeError):
        x[:] = values[:-1]
    with pytest.raises(dp.HostConversionError):
        x + values
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize("size", [100, 8192, 8193, 65_537])
def test_overlapping_parts_of_different_strides(queue: Any, size: int) -> None:
    values = np.arange(float(size))
    x = dp.asarray(values, sycl_queue=queue)
    x[::2] = x[: (size + 1) // 2]
    values[::2] = values[: (size + 1) // 2].copy()
    np.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.skipif(dp.Device("cpu").traits.units < 2, reason="one compute unit")
@pytest.mark.parametrize("size", [10, 100_000])
def test_copies_between_sub_devices_of_one_context(size: int) -> None:
    parts = dpctl.SyclDevice("cpu").create_sub_devices(partition=1)
    context = dpctl.SyclContext(parts)
    first, second = (dpctl.SyclQueue(context, part) for part in parts[:2])
    values = np.arange(float(size))
    x = dp.asarray(values, sycl_queue=first)
    moved = (x * 2).to_device(second)
    assert moved.queue == second
    np.testing.assert_array_equal(moved.asnumpy(), values * 2)
    np.testing.assert_array_equal(x[::2].to_device(second).asnumpy(), values[::2])
    assert dp.asarray(x, usm_type="shared").usm_type == "shared"


def test_placements_with_different_names() -> None:
    cpu = dp.Device("cpu")
    if cpu.traits.units < 2:
        pytest.skip("one compute unit")
    raw = cpu.sycl_device.create_sub_devices(partition=1)
    units = len(raw) // 2
    places = [
        cpu.create_sub_devices(partition=1)[0],
        cpu.create_sub_devices(partition=[units, units])[0],
        *(dp.Device(part) for part in raw[:2]),
    ]
    distinct = set(places)
    assert len({str(place) for place in distinct}) == len(distinct)


def test_suggested_fixes_are_valid_python(queue: Any, other: Any) -> None:
    x, y = dp.ones(4, sycl_queue=queue), dp.asarray([1], sycl_queue=other)
    generator = dp.random.default_rng(1, sycl_queue=queue)
    p = dp.full(4, 0.25, sycl_queue=other)
    dst, src = x, dp.zeros(4, sycl_queue=other)
    for attempt, names in (
        (lambda: x[y], {"x": x, "index": y}),
        (lambda: generator.choice(4, p=p), {"generator": generator, "p": p}),
        (lambda: generator.permutation(p), {"generator": generator, "x": p}),
        (lambda: dp.copyto(dst, src), {"dst": dst, "src": src}),
        (lambda: dp.split(x, y), {"x": x, "indices_or_sections": y}),
    ):
        with pytest.raises(dp.ExecutionPlacementError) as caught:
            attempt()
        remedy = caught.value.remedy
        exec(remedy, names)
        moved = names[remedy.partition(" = ")[0]]
        assert moved.queue == queue
    with pytest.raises(TypeError, match="modulus"):
        pow(x, 2, 2)


def test_simulate_raises_where_a_launch_raises(queue: Any, other: Any) -> None:
    @dp.kernel
    def copy(item, a, b):
        i = item.get_id(0)
        b[i] = a[i]

    arrays = dp.ones(3, sycl_queue=queue), dp.zeros(3, sycl_queue=other)
    for run in (copy[dp.Range(3)], functools.partial(dp.simulate, copy, dp.Range(3))):
        with pytest.raises(dp.ExecutionPlacementError):
            run(*arrays)


def test_functions_of_c_become_array_functions(queue: Any) -> None:
    values = np.linspace(0.1, 2, 5)
    x = dp.asarray(values, sycl_queue=queue)
    expected = [math.erf(value) for value in values]
    np.testing.assert_allclose(dp.elementwise(math.erf)(x).asnumpy(), expected)
    np.testing.assert_allclose(dp.vectorize(math.erf)(x).asnumpy(), expected)
    np.testing.assert_allclose(dp.elementwise(math.atan2)(x, 2.0).asnumpy(), np.arctan2(values, 2))
    assert float(dp.reduction(identity=0)(max)(x)) == values.max()
    for function, text in (
        (np.sin, "dp.sin"),
        (functools.partial(pow, 2), "partial"),
        ("text", "str"),
    ):
        for make in (dp.elementwise, dp.vectorize, dp.reduction(identity=0)):
            if make is dp.vectorize and function is np.sin:
                assert make(function) is dp.sin
                continue
            with pytest.raises(dp.KernelArgumentError, match=text):
                make(function)


def test_the_vocabulary_of_dpctl(queue: Any, other: Any, capsys: Any) -> None:
    device = dp.Device.create_device(queue)
    x = dp.ones(1000, device=device) + 1
    device.wait()
    device.print_device_info()
    assert "Name" in capsys.readouterr().out
    assert x.usm_data.get_usm_type() == x.usm_type
    assert x.usm_data.sycl_queue == queue
    assert dp.get_execution_queue([queue, queue]) == queue
    assert dp.get_execution_queue([queue, other]) is None
    assert dp.get_execution_queue([]) is None
    assert dp.get_coerced_usm_type(["host", "shared", "device"]) == "device"
    assert dp.get_coerced_usm_type([]) is None
    with pytest.raises(dp.UsmTypeError):
        dp.get_coerced_usm_type(["disk"])
    assert dp.is_available("cpu")
    assert dp.is_available("opencl:cpu:0")
    assert not dp.is_available("no such device")


def test_filter_strings_skip_devices_without_usm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Without:
        """Imitate a device without USM, which SYCL lists before the usable one."""

        device_type = dpctl.device_type.cpu
        backend = dpctl.backend_type.opencl
        default_selector_score = 10**6
        has_aspect_usm_device_allocations = False

    usable = dpctl.SyclDevice("cpu")
    monkeypatch.setattr(dpctl, "get_devices", lambda: [Without(), usable])
    for text in ("cpu", "opencl", "opencl:cpu", "gpu,cpu", "cpu,gpu"):
        assert dp.Device(text).sycl_device == usable
