"""Decoding of a model's tensors, and checks of those with external data."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from dparray.exceptions import OnnxError


def numpy_dtype(code: int) -> np.dtype[Any]:
    """Return the NumPy dtype for an ONNX dtype number."""
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError, TypeError):
        raise OnnxError(f"unknown dtype {code}") from None


def tensor(proto: Any, folder: Path | None) -> np.ndarray:
    """Return a tensor as a NumPy array."""
    label = f"tensor {proto.name!r}"
    if any(size < 0 for size in proto.dims):
        raise OnnxError(f"{label}: the shape {list(proto.dims)} has a negative size")
    if proto.data_location == TensorProto.EXTERNAL:
        copy = TensorProto()
        copy.CopyFrom(proto)
        copy.raw_data = _external(proto, folder, label)
        copy.data_location = TensorProto.DEFAULT
        del copy.external_data[:]
        proto = copy
    count, held = math.prod(proto.dims), 128 * _fields(proto)  # bits, at most
    too_large = f"{label}: the shape {list(proto.dims)} has more elements than its data"
    is_raw = proto.HasField("raw_data")  # It is not expanded, and reading its length copies it.
    if not is_raw and (count > max(held, 1) or (count > 1 and not held)):
        raise OnnxError(too_large)
    try:
        return np.asarray(numpy_helper.to_array(proto))
    except Exception as error:
        is_short = is_raw and count > 8 * len(proto.raw_data)
        raise OnnxError(too_large if is_short else f"{label} cannot be decoded: {error}") from error


def _fields(proto: Any) -> int:
    kinds = ("float", "int32", "int64", "string", "double", "uint64")
    return sum(len(getattr(proto, f"{kind}_data")) for kind in kinds)


def dense(proto: Any, folder: Path | None) -> np.ndarray:
    """Return a sparse tensor as a dense NumPy array."""
    values, at = tensor(proto.values, folder), tensor(proto.indices, folder)
    shape = tuple(proto.dims)
    label = f"sparse tensor {proto.values.name!r}"
    if any(size < 0 for size in shape) or math.prod(shape) > 1 << 28:
        raise OnnxError(f"{label}: the shape {list(shape)} is negative or too large")
    result = np.zeros(shape, values.dtype)
    try:
        if at.ndim == 1:
            result.reshape(-1)[at] = values
        else:
            result[tuple(at.T)] = values
    except (IndexError, ValueError) as error:
        raise OnnxError(f"{label}: {error}") from error
    return result


def external_entries(proto: Any) -> dict[str, str]:
    """Return the location of a tensor's data, as the model specifies it."""
    return {entry.key: entry.value for entry in proto.external_data}


def check_external(proto: Any, folder: Path | None) -> tuple[Path, int, int]:
    """Check the location of a tensor's data; return file, offset and length.

    The file must be a regular file within the folder of the model, and long enough.
    """
    label, entries = f"tensor {proto.name!r}", external_entries(proto)
    location = entries.get("location", "")
    if folder is None:
        raise OnnxError(
            f"{label}: its data is in the file {location!r}, but a model from bytes has no folder; "
            "load the model by its path"
        )
    if not location or os.path.isabs(location) or "\0" in location or "\\" in location:
        raise OnnxError(f"{label}: the location {location!r} must be a path below the model's")
    if ".." in Path(location).parts:
        raise OnnxError(f"{label}: the location {location!r} leaves the folder of the model")
    path = folder
    for part in Path(location).parts:
        path = path / part
        if path.is_symlink():
            raise OnnxError(f"{label}: the location {location!r} is a symbolic link")
    try:
        status = path.stat()
    except OSError as error:
        raise OnnxError(f"{label}: the data file {location!r} cannot be read: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise OnnxError(f"{label}: the location {location!r} is not a regular file")
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", str(status.st_size - offset)))
    except ValueError:
        raise OnnxError(f"{label}: offset and length must be integers, not {entries}") from None
    if offset < 0 or length < 0 or offset + length > status.st_size:
        raise OnnxError(
            f"{label}: bytes {offset:,} to {offset + length:,} are not in the data file "
            f"{location!r}, which has {status.st_size:,}"
        )
    needed = math.prod(proto.dims)
    dtype = numpy_dtype(proto.data_type)
    if dtype.kind != "O" and "int4" not in dtype.name and "int2" not in dtype.name:
        needed *= dtype.itemsize
        if "float4" not in dtype.name and length < needed:
            raise OnnxError(
                f"{label}: the shape {list(proto.dims)} needs {needed:,} bytes, its data has "
                f"{length:,}"
            )
    return path, offset, length


def _external(proto: Any, folder: Path | None, label: str) -> bytes:
    path, offset, length = check_external(proto, folder)
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise OnnxError(f"{label}: {error}") from error
