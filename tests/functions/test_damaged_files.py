"""Damaged files raise a dparray error that names the file."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import dparray as dp


def written(save: Any, **arrays: Any) -> bytes:
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


ARRAY = written(np.save, arr=np.ones(100))
ARCHIVE = written(np.savez, a=np.ones(100))


def with_header(text: bytes) -> bytes:
    return ARRAY[:10] + text.ljust(117) + b"\n" + ARRAY[128:]


@pytest.mark.parametrize(
    "content",
    [
        with_header(b"{'descr': '<f8' ((("),
        with_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**99,), }"),
        with_header(b"{'descr': 'zz', 'fortran_order': False, 'shape': (100,), }"),
        with_header(b"\xff\xfe"),
        ARRAY[:100],
        ARRAY[:-8],
        b"",
        ARCHIVE[:-30],
        ARCHIVE[:100],
        ARCHIVE[:60] + b"x" * 140 + ARCHIVE[200:],
    ],
)
def test_damaged_files_are_refused(content: bytes) -> None:
    with pytest.raises((dp.ArgumentError, dp.DTypeError), match="load"):
        dp.load(io.BytesIO(content))["a"]
