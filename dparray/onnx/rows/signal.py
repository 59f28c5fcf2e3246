"""Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray.exceptions import OnnxError
from dparray.onnx.operator_table import Call, checked_axis, module_of, row
from dparray.onnx.tensors import numpy_dtype


def _parts(x: Any) -> Any:
    """Return a complex array with its real and imaginary parts along a last axis."""
    return module_of(x).stack((x.real, x.imag), axis=-1)


def _transform(x: Any, length: int, axis: int, is_inverse: bool, is_half: bool) -> Any:
    """Transform an array whose last axis holds the real and possibly the imaginary parts."""
    xp = module_of(x)
    fft = xp.fft
    dtype = x.dtype
    if x.shape[-1] == 2:
        x = x[..., 0] + x[..., 1] * np.complex64(1j)
    else:
        x = x[..., 0]
    if is_half and is_inverse:  # from half a spectrum to a real signal
        return xp.expand_dims(fft.irfft(x, n=length, axis=axis), -1).astype(dtype)
    if is_half:
        result = fft.rfft(x, n=length, axis=axis)
    else:
        result = (fft.ifft if is_inverse else fft.fft)(x, n=length, axis=axis)
    return _parts(result).astype(dtype)


@row("DFT")
def _dft(call: Call, x: Any, length: Any = None, axis: Any = None) -> Any:
    if call.opset >= 20:
        given = -2 if axis is None else call.ints(axis)[0]
    else:
        given = call.get("axis", 1)
    along = checked_axis(given, x.ndim)
    is_half, is_inverse = bool(call.get("onesided", 0)), bool(call.get("inverse", 0))
    if length is not None:
        count = call.ints(length)[0]
    else:
        count = x.shape[along]
        count = 2 * (count - 1) if is_half and is_inverse else count
    if count < 1:
        raise OnnxError(f"the length of a transform must be positive, not {count}")
    call.check_size((*x.shape[:along], count, *x.shape[along + 1 :]), x.dtype)
    return call.xp.call(_transform, x, count, along, is_inverse, is_half)


@row("STFT")
def _stft(call: Call, x: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    hop = call.ints(step)[0]
    size = call.ints(length)[0] if length is not None else window.shape[0]
    if hop < 1 or not 0 < size <= x.shape[1]:
        raise OnnxError(f"frames of {size} elements in steps of {hop}, of {x.shape[1]} elements")
    starts = np.arange(0, x.shape[1] - size + 1, hop)
    call.check_size((x.shape[0], len(starts), size, 2), "float64")
    places = starts.reshape(-1, 1) + np.arange(size)
    frames = call.xp.take(x, places, axis=1)
    if window is not None:
        frames = call.xp.multiply(frames, window.reshape((1, 1, size, 1)))
    return call.xp.call(_transform, frames, size, 2, False, bool(call.get("onesided", 1)))


@row("MelWeightMatrix")
def _mel(call: Call, bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Any:
    count, size, hertz = (call.ints(x)[0] for x in (bins, length, rate))
    first, last = (float(call.host(x).reshape(-1)[0]) for x in (low, high))
    dtype = numpy_dtype(call.get("output_datatype", 1))
    if count < 1 or size < 1:
        raise OnnxError(f"{count} bins of a transform of {size} elements")
    call.check_size((size // 2 + 1, count), dtype)
    ends = 2595 * np.log10(1 + np.array([first, last]) / 700)
    mels = ends[0] + np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2))
    edges = ((size + 1) * 700 * (10 ** (mels / 2595) - 1) // hertz).astype(int)
    result = np.zeros((size // 2 + 1, count))
    for number in range(count):
        left, middle, right = edges[number : number + 3]
        if middle == left:
            result[middle, number] = 1
        else:
            result[left : middle + 1, number] = np.arange(middle - left + 1) / (middle - left)
        if right > middle:
            result[middle:right, number] = np.arange(right - middle, 0, -1) / (right - middle)
    return result.astype(dtype)
