"""PlaidML's interface: its published script, views that lock, operations and values."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
import dparray.plaidml as plaidml
from dparray.plaidml import op, tile

CROSS_ENTROPY = """
    function (T[X, Y], O[X, Y]) -> (R) {
        LO = log(O);
        Temp[x: X] = +(LO[x, y] * T[x, y]);
        R = -Temp;
    }"""


@pytest.fixture(name="ctx")
def context() -> plaidml.Context:
    return plaidml.Context()


@pytest.fixture(name="dev")
def device(ctx: plaidml.Context) -> Any:
    with plaidml.open_first_device(ctx) as opened:
        yield opened


def filled(ctx: Any, dev: Any, values: Any, dtype: Any = plaidml.DType.FLOAT32) -> plaidml.Tensor:
    values = np.asarray(values)
    tensor = plaidml.Tensor(dev, plaidml.Shape(ctx, dtype, *values.shape))
    with tensor.mmap_discard(ctx) as view:
        view.copy_from_ndarray(values)
        view.writeback()
    return tensor


@pytest.mark.parametrize("view", ["mmap_discard", "mmap_current"])
def test_a_view_that_is_not_written_back_warns_at_the_block(ctx: Any, dev: Any, view: str) -> None:
    """The script of PlaidML's page lacks ``writeback``."""
    tensor = filled(ctx, dev, [1.0, 2.0])
    with (
        pytest.warns(UserWarning, match=r"view\.writeback\(\)") as caught,
        getattr(tensor, view)(ctx) as opened,
    ):
        opened[:] = (3.0, 4.0)
    assert caught[0].filename == __file__
    assert tensor.array.tolist() == [1.0, 2.0]


def test_views_that_lose_nothing_do_not_warn(ctx: Any, dev: Any) -> None:
    tensor = filled(ctx, dev, [1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tensor.mmap_current() as view:
            assert view[0] == 1.0
        with tensor.mmap_discard(ctx) as view:
            view.copy_from_ndarray([5.0, 6.0])
            view.writeback()
        with pytest.raises(ZeroDivisionError), tensor.mmap_discard(ctx) as view:
            view[0] = 1 / 0
    assert tensor.array.tolist() == [5.0, 6.0]


def test_the_published_script() -> None:
    ctx = plaidml.Context()
    with plaidml.open_first_device(ctx) as dev:
        t = plaidml.Tensor(dev, plaidml.Shape(ctx, plaidml.DType.FLOAT32, 3, 3))
        o = plaidml.Tensor(dev, plaidml.Shape(ctx, plaidml.DType.FLOAT32, 3, 3))
        r = plaidml.Tensor(dev, plaidml.Shape(ctx, plaidml.DType.FLOAT32, 3))
        with t.mmap_discard(ctx) as view:
            view[:] = (1, 0, 0, 0, 0.5, 0.5, 0, 0, 1)
            view.writeback()
        with o.mmap_discard(ctx) as view:
            view[:] = (0.5, 0.25, 0.25, 0.125, 0.5, 0.375, 0.1, 0.2, 0.69999999)
            view.writeback()
        func = plaidml.Function(CROSS_ENTROPY)
        plaidml.run(ctx, func, inputs={"T": t, "O": o}, outputs={"R": r})
        with r.mmap_current() as view:
            found = [view[0], view[1], view[2]]
    np.testing.assert_allclose(found, [0.69314718, 0.83698821, 0.35667497], rtol=1e-5)


def test_views_are_sequences_of_all_elements(ctx: Any, dev: Any) -> None:
    tensor = filled(ctx, dev, [[1, 2, 3], [4, 5, 6]], plaidml.DType.INT32)
    with tensor.mmap_current() as view:
        assert len(view) == 6
        assert list(view) == [1, 2, 3, 4, 5, 6]
        assert (view[-1], view[(1, 0)], view[1:5:2]) == (6, 4, [2, 4])
        for wrong in (6, -7, (2, 0), (0, -1), (0,)):
            with pytest.raises(IndexError):
                view[wrong]
        with pytest.raises(plaidml.exceptions.InvalidArgument):
            view[:] = [1, 2]
        view[1:3] = iter(range(10, 20))
        view[(1, 2)] = 7
        view.writeback()
        with pytest.raises(plaidml.PlaidMLError):
            view[0]
    assert tensor.as_ndarray(ctx).tolist() == [[1, 10, 11], [4, 5, 7]]
    assert tensor.as_ndarray(ctx) is tensor.as_ndarray(ctx)


def test_an_open_view_locks_its_tensor(ctx: Any, dev: Any) -> None:
    tensor, result = filled(ctx, dev, [1.0, 2.0]), filled(ctx, dev, [0.0, 0.0])
    double = plaidml.Function("function (A) -> (B) { B = A * 2; }")
    with tensor.mmap_current(), pytest.raises(dp.MapError):
        plaidml.run(ctx, double, inputs={"A": tensor}, outputs={"B": result})
    with result.mmap_discard(ctx), pytest.raises(dp.MapError):
        plaidml.run(ctx, double, inputs={"A": tensor}, outputs={"B": result})
    plaidml.run(ctx, double, inputs={"A": tensor}, outputs={"B": tensor})
    plaidml.run(ctx, double, inputs={"A": tensor}, outputs={"B": tensor})
    assert tensor.as_ndarray(ctx).tolist() == [4.0, 8.0]


def test_invokers_bind_and_check(ctx: Any, dev: Any, tmp_path: Path) -> None:
    scale = plaidml.Function("function (A[N, M], S) -> (B) { B[j: M] = +(A[i, j]); C = B * S; }")
    scale.save(str(tmp_path / "scale"))
    scale = plaidml.load_function(ctx, dev, str(tmp_path / "scale"))
    invoker = plaidml.Invoker(ctx, scale, inputs={"A": filled(ctx, dev, np.ones((2, 3)))})
    with pytest.raises(plaidml.exceptions.InvalidArgument, match="'S'"):
        invoker.invoke()
    invoker.set_input("S", 2)
    shape = invoker.get_output_shape("B")
    assert (shape.dtype, shape.dims) == (plaidml.DType.FLOAT32, (3,))
    with pytest.raises(plaidml.exceptions.InvalidArgument, match="'B'"):
        invoker.invoke()
    result = plaidml.Tensor(dev, shape)
    invoker.set_output("B", result)
    invoker.invoke()
    assert result.as_ndarray(ctx).tolist() == [2.0, 2.0, 2.0]
    for name in ("X", "B"):
        with pytest.raises(plaidml.exceptions.InvalidArgument):
            invoker.set_input(name, 1)
    with pytest.raises(plaidml.exceptions.InvalidArgument):
        invoker.set_output("A", result)


def test_shapes_devices_and_contexts(ctx: Any) -> None:
    shape = plaidml.Shape(ctx, plaidml.DType.FLOAT16, 2, 3, 4)
    assert [tuple(each) for each in shape.dimensions] == [(2, 12), (3, 4), (4, 1)]
    assert (shape.dimension_count, shape.offset) == (3, 0)
    assert shape == plaidml.Shape(ctx, plaidml.DType.FLOAT16, 2, 3, 4)
    with pytest.raises(plaidml.exceptions.InvalidArgument):
        plaidml.Shape(ctx, plaidml.DType.FLOAT16, -1)
    valid, invalid = plaidml.devices(ctx, return_all=True)
    assert valid
    assert invalid == []
    with pytest.raises(plaidml.PlaidMLError):
        plaidml.devices(ctx, limit=0)
    with pytest.raises(plaidml.exceptions.InvalidArgument):
        plaidml.Device(ctx, "no such device")
    device = plaidml.Device(ctx, valid[0])
    tensor = plaidml.Tensor(device, shape)
    device.close()
    with pytest.raises(plaidml.exceptions.FailedPrecondition):
        tensor.as_ndarray(ctx)
    ctx.shutdown()
    ctx.shutdown()
    with pytest.raises(plaidml.exceptions.Cancelled):
        plaidml.Shape(ctx, plaidml.DType.INT8, 1)


def test_values_compose_to_one_function(ctx: Any, dev: Any) -> None:
    x = tile.Value.from_dimensions((2, 3), name="x")
    w = filled(ctx, dev, np.arange(12).reshape(3, 4))
    weights = tile.Value.from_var(w, (3, 4))
    product = tile.Operation.function(
        "function (A[N, K], B[K, M]) -> (C) { C[i, j: N, M] = +(A[i, k] * B[k, j]); }",
        [("A", x), ("B", weights)],
        [("C", tile.Shape(plaidml.DType.FLOAT32, (2, 4)))],
    )
    result = op.relu(1 - product * 2) + 0 + abs(-product)[:, ::-1]
    made = tile.compose(ctx, dev, [("X", x)], [("Y", result)], [(weights, weights * 0.5)])
    assert product == product  # identity
    given = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    y = plaidml.Tensor(dev, plaidml.Shape(ctx, plaidml.DType.FLOAT32, 2, 4))
    plaidml.run(ctx, made, inputs={"X": filled(ctx, dev, given)}, outputs={"Y": y})
    expected = given @ np.arange(12).reshape(3, 4)
    expected = np.maximum(1 - expected * 2, 0) + abs(expected)[:, ::-1]
    np.testing.assert_allclose(y.as_ndarray(ctx), expected, rtol=1e-6)
    assert w.as_ndarray(ctx)[0].tolist() == [0, 0.5, 1, 1.5]


def test_operations_use_the_names_of_their_program() -> None:
    x = tile.Value.from_ndims(1)
    shape = tile.Shape(plaidml.DType.FLOAT32, (None,))
    with pytest.raises(tile.LogicError, match="inputs"):
        tile.Operation("function (A) -> (B) { B = A; }", [("X", x)], [("B", shape)])
    both = tile.Operation(
        "function (A) -> (B, C) { B = A; C = -A; }", [("A", x)], [("B", shape), ("C", shape)]
    )
    assert len(both.output_tuple) == 2
    with pytest.raises(tile.LogicError):
        both.sole_output()


def test_common_types_of_values() -> None:
    kind = plaidml.DType
    assert tile.common_dtype(kind.BOOLEAN, kind.INT8) is kind.INT8
    assert tile.common_dtype(kind.INT32, kind.UINT32) is kind.INT64
    assert tile.common_dtype(kind.INT8, kind.UINT64) is kind.FLOAT64
    assert tile.common_dtype(kind.INT16, kind.FLOAT16) is kind.FLOAT32
    assert tile.common_dtype(kind.INT64, kind.FLOAT32) is kind.FLOAT64
