"""Sort vectors that do not fit on any device: by samples, chunk by chunk."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import dask.array
import numpy as np
from dask.delayed import delayed

from dparray._array.ndarray import ndarray
from dparray.exceptions import ArgumentError, ShapeError

#: The number of samples in each chunk for each part of the result.
_SAMPLES = 16


def _library() -> Any:
    return sys.modules["dparray"]


def _sample(chunk: ndarray, count: int) -> np.ndarray:
    """Return values of a chunk at regular positions in sorted order."""
    ordered = _library().sort(chunk)
    positions = np.linspace(0, max(0, chunk.size - 1), min(count, chunk.size)).astype(np.int64)
    return ordered[_library().asarray(positions, device=chunk.device)].asnumpy()


def _splitters(samples: list[np.ndarray], parts: int) -> np.ndarray:
    """Return the values that separate the parts of the result."""
    # Stable: NumPy's default sort leaves many float16 values unsorted on some processors.
    pooled = np.sort(np.concatenate(samples), kind="stable")
    return pooled[np.linspace(0, pooled.size - 1, parts + 1).astype(np.int64)[1:-1]]


def _cut(chunk: ndarray, splitters: np.ndarray) -> list[ndarray]:
    """Return a sorted chunk in pieces, one for each part of the result."""
    dp = _library()
    ordered = dp.sort(chunk)
    values = dp.asarray(splitters, device=chunk.device)
    bounds = [0, *dp.searchsorted(ordered, values).tolist(), chunk.size]
    return [ordered[i:j].copy() for i, j in pairwise(bounds)]


def _merged(pieces: list[ndarray]) -> ndarray:
    dp = _library()
    return dp.sort(dp.concatenate(pieces))


def sort(x: Any) -> Any:
    """Return a sorted vector, even one that is larger than any memory.

    Chunks are sorted where they lie and cut at values that a sample suggests; each part of the
    result is made of one piece of each chunk (sample sort, Frazer and McKellar 1970). Data that
    a worker does not need go to disk.

    Args:
        x: a ``dask.array`` of one dimension with chunks of dparray.

    Returns:
        A ``dask.array`` of as many chunks. Their sizes are known once they are computed:
        ``compute_chunk_sizes()``.

    Raises:
        ShapeError: it is not one-dimensional.
        ArgumentError: its chunks are not arrays of dparray.

    Example:
        >>> import dask.array
        >>> import dparray.dask
        >>> x = dask.array.from_array(dp.asarray([3, 1, 2, 0]), chunks=2, asarray=False)
        >>> dparray.dask.sort(x).compute(scheduler="synchronous").tolist()
        [0, 1, 2, 3]
    """
    if not isinstance(getattr(x, "_meta", None), ndarray):
        raise ArgumentError(
            f"sort: x is {type(x).__name__}; give a dask.array whose chunks are arrays of dparray: "
            "x.map_blocks(dp.asarray)"
        )
    if x.ndim != 1:
        raise ShapeError(f"sort: x has {x.ndim} dimensions; it sorts vectors: x.ravel()")
    chunks = list(x.to_delayed())
    parts = len(chunks)
    if parts == 1:
        return x.map_blocks(_library().sort)
    sample, splitters = delayed(_sample), delayed(_splitters)
    cut, merged = delayed(_cut), delayed(_merged)
    bounds = splitters([sample(chunk, parts * _SAMPLES) for chunk in chunks], parts)
    pieces = [cut(chunk, bounds) for chunk in chunks]
    blocks = [
        dask.array.from_delayed(
            merged([piece[part] for piece in pieces]), (np.nan,), dtype=x.dtype, meta=x._meta
        )
        for part in range(parts)
    ]
    return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)
