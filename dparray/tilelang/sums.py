"""Sums of products over bare index variables, as in Einstein notation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np

from dparray._array.allocation import is_made_by_host
from dparray._array.apply import astype_array, copy_of
from dparray._array.ndarray import ndarray
from dparray._functions.manipulation import reshape
from dparray._placement import Placement
from dparray.tilelang.contracting import MAX_HOST_POINTS, Lowered, lowered
from dparray.tilelang.contraction import Contracted
from dparray.tilelang.valid_domain import Form, Space, domain_of
from dparray.tilelang.values import DTYPES, FLOAT16, DType, Tensor


def dtype_of_products(arrays: Sequence[ndarray]) -> DType | None:
    """Return the dtype in which arrays are multiplied and summed; ``None`` if not supported.

    float16 is not supported: a contraction would round every sum, libraries round only the last.
    """
    dtype = np.result_type(*(x.dtype for x in arrays))
    return dtype if (dtype in DTYPES and dtype != FLOAT16) or dtype.kind == "c" else None


def sum_of_products(
    labels: Sequence[str], result: str, arrays: Sequence[ndarray]
) -> ndarray | None:
    """Sum one array, or the product of two, over the indices that the result does not have.

    Args:
        labels: one letter per axis for each array; axes of size 1 broadcast.
        result: the letters of the result, each once.
        arrays: the arrays, on one queue.

    Returns:
        A pending array; ``None`` if sizes do not match, or if BLAS or the host is faster.
    """
    dtype = dtype_of_products(arrays)
    sizes: dict[str, int] = {}
    for names, x in zip(labels, arrays, strict=True):
        for name, size in zip(names, x.shape, strict=True):
            known = sizes.setdefault(name, size)
            if 1 not in (known, size) and known != size:
                return None
            sizes[name] = size if known == 1 else known
    points = prod(sizes.values())
    queue, usm_type = arrays[0].queue, arrays[0].usm_type
    if dtype is None or not points:
        return None
    if points <= MAX_HOST_POINTS and is_made_by_host(0, queue, usm_type):
        return None
    lined = []
    kept = []
    for names, x in zip(labels, arrays, strict=True):
        held = [at for at, name in enumerate(names) if x.shape[at] == sizes[name]]
        if len(held) < len(names):
            x = reshape(x, tuple(x.shape[at] for at in held))
        lined.append(astype_array(x, dtype, copy=False))
        kept.append("".join(names[at] for at in held))
    if _is_for_blas(kept, result, dtype):
        return None
    step = _lowered(tuple(kept), result, tuple(sizes.items()), dtype)
    if dtype.kind == "c" and step.kind not in ("map", "reduction"):
        return None
    made = step(Placement(queue, usm_type), *lined)
    return copy_of(made) if step.is_view else made


def _is_for_blas(labels: Sequence[str], result: str, dtype: DType) -> bool:
    """Return whether two arrays have a matrix product with several summed or several own axes.

    With one of each it is recognized as a product of stacked matrices.
    """
    if len(labels) != 2 or dtype.kind not in "fc":
        return False
    first, second = map(set, labels)
    if len(first) < len(labels[0]) or len(second) < len(labels[1]):
        return False
    shared, wanted = first & second, set(result)
    own = (first - second, second - first)
    is_matrix = bool(shared - wanted) and all(each and each <= wanted for each in own)
    is_product = len(shared - wanted) == 1 and all(len(each) == 1 for each in own)
    return is_matrix and not (shared & wanted) and (not is_product or dtype.kind == "c")


@lru_cache(maxsize=256)
def _lowered(
    labels: tuple[str, ...], result: str, sizes: tuple[tuple[str, int], ...], dtype: DType
) -> Lowered:
    extents = dict(sizes)
    letters = list(dict.fromkeys("".join(labels) + result))

    def along(name: str) -> tuple[Form, int]:
        units = tuple(Fraction(int(each == name)) for each in letters)
        return Form(units, Fraction(0)), extents[name]

    space = Space(
        len(letters),
        tuple(map(along, result)),
        tuple(tuple(map(along, each)) for each in labels),
        (),
    )
    text = f"einsum {','.join(labels)}->{result}"
    combination = "*" if len(labels) == 2 else ""
    names = tuple(letters)
    domain = domain_of(space)
    contracted = Contracted(text, names, space, domain, "+", combination, dtype, dtype, False)
    shapes = [tuple(extents[name] for name in each) for each in labels]
    return lowered(contracted, [Tensor(shape, dtype) for shape in shapes])
