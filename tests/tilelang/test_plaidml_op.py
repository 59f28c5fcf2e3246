"""PlaidML's operations compared with NumPy; saved composed functions; declared shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dparray as dp
import dparray.plaidml as plaidml
from dparray.plaidml import op, tile

A = np.random.default_rng(0).random((3, 4), "float32") - 0.5
B = np.random.default_rng(1).random((3, 4), "float32") + 0.1
SQUARE = np.random.default_rng(2).random((4, 5), "float32")
CUBE = np.random.default_rng(3).random((2, 3, 4), "float32") - 0.5


def _softmax(x: np.ndarray, axes: Any = 1) -> Any:
    powers = np.exp(x - x.max(axes, keepdims=True))
    return powers / powers.sum(axes, keepdims=True)


IMAGE = np.random.default_rng(4).random((2, 7, 6, 3), "float32") - 0.5
FILTERS = np.random.default_rng(5).random((3, 2, 3, 4), "float32") - 0.5
SIGNAL = np.random.default_rng(6).random((2, 3, 9), "float32") - 0.5
TAPS = np.random.default_rng(7).random((4, 3, 2), "float32")
LAST, FIRST = op.ConvolutionDataFormat.CHANNELS_LAST, op.ConvolutionDataFormat.CHANNELS_FIRST
VALID, UPPER, LOWER = op.AutoPadding.VALID, op.AutoPadding.SAME_UPPER, op.AutoPadding.SAME_LOWER


def _windows(
    x: np.ndarray, sizes: Any, steps: Any, pads: Any, rates: Any = (1, 1), fill: float = 0
) -> np.ndarray:
    """Return windows of shape (batch, rows, columns, row, column, ...)."""
    rest = ((0, 0),) * (x.ndim - 3)
    x = np.pad(x, ((0, 0), *pads, *rest), constant_values=fill)
    rows, columns = (
        (x.shape[n + 1] - rates[n] * (sizes[n] - 1) - 1) // steps[n] + 1 for n in (0, 1)
    )
    return np.array(
        [
            [
                [
                    image[
                        steps[0] * r : steps[0] * r + rates[0] * (sizes[0] - 1) + 1 : rates[0],
                        steps[1] * c : steps[1] * c + rates[1] * (sizes[1] - 1) + 1 : rates[1],
                    ]
                    for c in range(columns)
                ]
                for r in range(rows)
            ]
            for image in x
        ]
    )


def _convolved(x: np.ndarray, w: np.ndarray, *window: Any) -> Any:
    return np.einsum("nrcklq,klqo->nrco", _windows(x, w.shape[:2], *window), w)


def _transposed(shape: Any, x: np.ndarray, w: np.ndarray, *window: Any) -> np.ndarray:
    """Return the gradient of the sum of ``x`` times the convolution of a value, by that value."""
    found = np.zeros(shape, "float32")
    for at in np.ndindex(shape):
        one = np.zeros(shape, "float32")
        one[at] = 1
        found[at] = (_convolved(one, w, *window) * x).sum()
    return found


NONE = ((0, 0), (0, 0))
LAST_TO_FIRST = (0, 3, 1, 2)

CASES: dict[str, tuple[Callable[..., Any], Sequence[np.ndarray], Any]] = {
    "abs": (op.abs, [A], np.abs(A)),
    "argmax": (op.argmax, [A], A.argmax(-1)),
    "argmax of ties": (lambda x: op.argmax(op.cast(x, plaidml.DType.INT32), 0), [A], np.zeros(4)),
    "average_pool": (
        lambda x: op.average_pool(x, (3, 2), (1, 0), None),
        [IMAGE.transpose(LAST_TO_FIRST).copy()],
        np.nanmean(
            _windows(IMAGE, (3, 2), (1, 1), ((1, 1), (0, 0)), fill=np.nan), axis=(3, 4)
        ).transpose(LAST_TO_FIRST),
    ),
    "binary_crossentropy": (
        lambda t, o: op.binary_crossentropy(t, o, 1e-7),
        [B / 2, B / 2],
        -(B / 2) * np.log(B / 2) - (1 - B / 2) * np.log(1 - B / 2),
    ),
    "cast": (lambda x: op.cast(x * 10, plaidml.DType.INT32), [A], (A * 10).astype("int32")),
    "ceiling": (op.ceiling, [A], np.ceil(A)),
    "clip": (lambda x: op.clip(x, -0.1, 0.2), [A], A.clip(-0.1, 0.2)),
    "clip of one side": (lambda x: op.clip(x, None, 0.2), [A], A.clip(None, 0.2)),
    "concatenate": (lambda x, y: op.concatenate([x, y], 0), [A, B], np.concatenate([A, B])),
    "concatenate columns": (lambda x, y: op.concatenate([x, y]), [A, B], np.c_[A, B]),
    "convolution": (
        lambda x, w: op.convolution(x, w, data_format=LAST),
        [IMAGE, FILTERS],
        _convolved(IMAGE, FILTERS, (1, 1), NONE),
    ),
    "convolution that moves in steps": (
        lambda x, w: op.convolution(x, w, (2, 3), UPPER, data_format=LAST),
        [IMAGE, FILTERS],
        _convolved(IMAGE, FILTERS, (2, 3), ((1, 1), (0, 0))),
    ),
    "convolution that is padded below": (
        lambda x, w: op.convolution(x, w, None, LOWER, data_format=LAST),
        [IMAGE, FILTERS],
        _convolved(IMAGE, FILTERS, (1, 1), ((1, 1), (1, 0))),
    ),
    "convolution with a dilation and pads": (
        lambda x, w: op.convolution(
            x, w, pads=(1, 2, 0, 3), data_format=FIRST, dilation_rate=(2, 1)
        ),
        [IMAGE.transpose(LAST_TO_FIRST).copy(), FILTERS],
        _convolved(IMAGE, FILTERS, (1, 1), ((1, 0), (2, 3)), (2, 1)).transpose(LAST_TO_FIRST),
    ),
    "convolution of each channel": (
        lambda x, w: op.convolution(x, w, padding=VALID, data_format=LAST, channelwise=True),
        [IMAGE, FILTERS],
        np.einsum("nrcklq,klqm->nrcqm", _windows(IMAGE, (3, 2), (1, 1), NONE), FILTERS).reshape(
            2, 5, 5, 12
        ),
    ),
    "convolution of signals": (
        lambda x, w: op.convolution(x, w, (2,), VALID, data_format=FIRST),
        [SIGNAL, TAPS],
        np.einsum(
            "ncik,kco->noi", np.lib.stride_tricks.sliding_window_view(SIGNAL, 4, 2)[:, :, ::2], TAPS
        ),
    ),
    "convolution_transpose": (
        lambda x, w: op.convolution_transpose(x, w, (2, 7, 6, 3), (2, 3), UPPER, LAST),
        [IMAGE[:, :4, :2, :1] + np.zeros(4, "f4"), FILTERS],
        _transposed(
            (2, 7, 6, 3),
            IMAGE[:, :4, :2, :1] + np.zeros(4, "f4"),
            FILTERS,
            (2, 3),
            ((1, 1), (0, 0)),
        ),
    ),
    "cos": (op.cos, [A], np.cos(A)),
    "cumulative_sum": (lambda x: op.cumulative_sum(x, 1), [A], A.cumsum(1)),
    "dot": (op.dot, [A, SQUARE], A @ SQUARE),
    "dot of a vector": (op.dot, [A, SQUARE[:, 0]], A @ SQUARE[:, 0]),
    "dot of vectors": (op.dot, [A[0], B[0]], A[0] @ B[0]),
    "dot of many": (op.dot, [CUBE, SQUARE], CUBE @ SQUARE),
    "elu": (op.elu, [A], np.where(A < 0, np.expm1(A), A)),
    "equal_argmax": (op.equal_argmax, [A, B], A.argmax(-1) == B.argmax(-1)),
    "equal_argmax of one value": (op.equal_argmax, [A, A * 2], np.full(A.shape[:-1], True)),
    "exp": (op.exp, [A], np.exp(A)),
    "expand_dims": (op.expand_dims, [A], A[..., None]),
    "flatten": (op.flatten, [CUBE], CUBE.reshape(2, 12)),
    "floor": (op.floor, [A], np.floor(A)),
    "gather": (op.gather, [A, np.array([2, 0], "int32")], A[[2, 0]]),
    "gemm": (
        lambda a, b, c: op.gemm(a, b, c, 2.0, 0.5, transB=True),
        [A, B, B[:, :3]],
        2 * A @ B.T + B[:, :3] / 2,
    ),
    "hard_sigmoid": (lambda x: op.hard_sigmoid(x, 2.0), [A], (2 * A + 0.5).clip(0, 1)),
    "hardmax": (op.hardmax, [A], (A.max(1, keepdims=True) == A).astype("f4")),
    "image_patches": (
        lambda x: op.image_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 3, 1]),
        [IMAGE],
        _windows(IMAGE, (3, 2), (2, 1), NONE, (1, 3)).reshape(2, 3, 3, 18),
    ),
    "identity": (op.identity, [A], A),
    "log": (op.log, [B], np.log(B)),
    "log_softmax": (op.log_softmax, [A], np.log(_softmax(A))),
    "matmul": (
        op.matmul,
        [CUBE, CUBE.transpose(0, 2, 1).copy()],
        CUBE @ CUBE.transpose(0, 2, 1),
    ),
    "max_pool": (
        lambda x: op.max_pool(x, UPPER, (3, 2), None, (2, 3)),
        [IMAGE.transpose(LAST_TO_FIRST).copy()],
        _windows(IMAGE, (3, 2), (2, 3), ((1, 1), (0, 0)), fill=-9)
        .max((3, 4))
        .transpose(LAST_TO_FIRST),
    ),
    "max_reduce": (lambda x: op.max_reduce(x, 1), [A], A.max(1)),
    "maximum": (op.maximum, [A, B], np.maximum(A, B)),
    "mean": (op.mean, [A], A.mean()),
    "mean of axes": (lambda x: op.mean(x, [0, 2]), [CUBE], CUBE.mean((0, 2))),
    "min_reduce": (lambda x: op.min_reduce(x, [-1], True), [A], A.min(1, keepdims=True)),
    "minimum": (op.minimum, [A, B], np.minimum(A, B)),
    "pow": (op.pow, [B, A], B**A),
    "prod": (lambda x: op.prod(x, 0), [A], A.prod(0)),
    "relu": (op.relu, [A], A.clip(0, None)),
    "leaky relu": (lambda x: op.relu(x, 0.1, 0.2), [A], np.where(A < 0, A / 10, A).clip(None, 0.2)),
    "reshape": (lambda x: op.reshape(x, (0, 2, -1)), [A], A.reshape(3, 2, 2)),
    "sigmoid": (op.sigmoid, [A], 1 / (1 + np.exp(-A))),
    "sin": (op.sin, [A], np.sin(A)),
    "slice_tensor": (lambda x: op.slice_tensor(x, [1], [3], [1]), [A], A[:, 1:3]),
    "softmax": (op.softmax, [A], _softmax(A)),
    "softmax of several axes": (lambda x: op.softmax(x, 1), [CUBE], _softmax(CUBE, (1, 2))),
    "sqrt": (op.sqrt, [B], np.sqrt(B)),
    "square": (op.square, [A], A * A),
    "squeeze": (lambda x: op.squeeze(op.unsqueeze(x, [0, 2]), [0, 2]), [A], A),
    "summation": (lambda x: op.summation(x, [0]), [A], A.sum(0)),
    "summation of Booleans": (lambda x: op.summation(op.equal(x, x)), [A], 12),
    "tanh": (op.tanh, [A], np.tanh(A)),
    "transpose": (lambda x: op.transpose(x, (2, 0, 1)), [CUBE], CUBE.transpose(2, 0, 1)),
    "unsqueeze": (lambda x: op.unsqueeze(x, [0, 3]), [A], A[None, ..., None]),
    "variance": (lambda x: op.variance(x, 1), [A], A.var(1)),
}


def _values(arrays: Sequence[np.ndarray]) -> list[tile.Value]:
    return [
        tile.Value.from_dimensions(x.shape, plaidml.DType[x.dtype.name.upper()]) for x in arrays
    ]


def _run(function: plaidml.Function, arrays: Sequence[np.ndarray]) -> Any:
    given = [dp.asarray(x) for x in arrays]
    shape, dtype = function.tile.infer(*given)["Y"]
    result = dp.zeros(shape, dtype)
    function.tile.submitted(*given, out={"Y": result})
    return result.asnumpy()


def _composed(call: Callable[..., Any], arrays: Sequence[np.ndarray]) -> plaidml.Function:
    values = _values(arrays)
    context = plaidml.Context()
    with plaidml.open_first_device(context) as device:
        named = [(f"X{n}", value) for n, value in enumerate(values)]
        return tile.compose(context, device, named, [("Y", call(*values))])


def test_every_operation_has_a_case() -> None:
    named = {name.split()[0] for name in CASES}
    assert set(op.__all__) - named <= {
        *("clip_max", "clip_min", "equal", "not_equal", "AutoPadding", "ConvolutionDataFormat")
    }


@pytest.mark.parametrize("name", CASES)
def test_operations_are_numpys(name: str, tmp_path: Path) -> None:
    call, arrays, wanted = CASES[name]
    function = _composed(call, arrays)
    found = _run(function, arrays)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)
    assert found.shape == np.shape(wanted)
    (value,) = [call(*_values(arrays))]
    assert value.shape.dims == found.shape
    function.save(str(tmp_path / "saved"))
    context = plaidml.Context()
    with plaidml.open_first_device(context) as device:
        again = plaidml.load_function(context, device, str(tmp_path / "saved"))
    assert (again.inputs, again.outputs) == (function.inputs, function.outputs)
    np.testing.assert_array_equal(_run(again, arrays), found)


def test_declared_shapes_are_checked() -> None:
    def declared(dims: tuple[int | None, ...]) -> Callable[[Any], Any]:
        return lambda x: tile.Operation(
            "function (A[N, M]) -> (O) { O[i: N] = +(A[i, j]); }",
            [("A", x)],
            [("O", tile.Shape(plaidml.DType.FLOAT32, dims))],
            "rows",
        ).sole_output()

    for right in ((3,), (None,)):
        np.testing.assert_allclose(_run(_composed(declared(right), [A]), [A]), A.sum(1), rtol=1e-5)
    for wrong in ((7,), (3, 4), ()):
        function = _composed(declared(wrong), [A])
        with pytest.raises(tile.LogicError, match=r"rows: the output O has shape \(3,\), declared"):
            _run(function, [A])
        with pytest.raises(tile.LogicError, match="rows"):
            function.tile.submitted(dp.asarray(A), out={"Y": dp.zeros(3, "float32")})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "null",
        "{",
        '{"inputs": [], "steps": [], "results": {"Y": "no"}}',
        "[" * 9999,
    ],
)
def test_damaged_files_are_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "saved").write_text(tile.COMPOSED + content)
    context = plaidml.Context()
    with (
        plaidml.open_first_device(context) as device,
        pytest.raises(tile.LogicError, match="damaged"),
    ):
        plaidml.load_function(context, device, str(tmp_path / "saved"))


def test_functions_with_bound_tensors_are_not_saved(tmp_path: Path) -> None:
    context = plaidml.Context()
    with plaidml.open_first_device(context) as device:
        tensor = plaidml.Tensor(device, plaidml.Shape(context, plaidml.DType.FLOAT32, 3))
        bound = tile.Value.from_var(tensor, (3,))
        function = tile.compose(context, device, [], [("Y", op.exp(bound))])
        with pytest.raises(plaidml.exceptions.InvalidArgument, match="save: tensors"):
            function.save(str(tmp_path / "saved"))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: op.reshape(x, (-1, -1)),
        lambda x: op.convolution(x, x),
        lambda x: op.convolution(x, x, data_format=LAST, group=2),
        lambda x: op.convolution(x, tile.Value.from_ndims(3), data_format=LAST),
        lambda x: op.max_pool(op.reshape(x, (1, 1, 3, 4)), VALID, (4, 1), None, None),
        lambda x: op.max_pool(op.reshape(x, (1, 1, 3, 4)), VALID, (1,), None, None),
        lambda x: op.max_pool(op.reshape(x, (1, 1, 3, 4)), VALID, (1, 1), (1, 1, 1), (0, 1)),
        lambda x: op.average_pool(tile.Value.from_ndims(4), (1, 1), None, None),
        lambda x: op.image_patches(x, [1, 1, 1, 1], [1, 1, 1, 1]),
        lambda x: op.convolution_transpose(
            *(op.reshape(x, (1, 3, 4, 1)), op.reshape(x, (3, 4, 1, 1))),
            *((1, 9, 9, 1), (1, 1), VALID, LAST),
        ),
        lambda x: op.reshape(x, (5, 5)),
        lambda x: op.summation(x, 2),
        lambda x: op.matmul(x, op.unsqueeze(x, [0])),
        lambda x: op.slice_tensor(x, [0], [2]),
        lambda x: op.flatten(tile.Value.from_ndims(2)),
        lambda x: op.concatenate([tile.Value.from_ndims(2), x]),
    ],
)
def test_bad_arguments_are_errors(call: Callable[..., Any]) -> None:
    with pytest.raises(tile.LogicError):
        call(*_values([A]))
