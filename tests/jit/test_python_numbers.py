"""Python numbers made of elements compute as Python's, in every form of compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import dparray as dp
from tests.jit.forms import FORMS, compiled, uncompiled

_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
#: Expressions of Python integers made of two elements.
_OF_INTEGERS = (
    "abs(int(a) - int(b))", "(int(a) - int(b)) * 0.5", "(int(a) - int(b)) / 2",
    "(int(a) - int(b)) >> 1", "(int(a) - int(b)) // 2", "(int(a) - int(b)) % 3",
    "(int(a) - int(b)) < 0", "max(int(a) - int(b), 0)", "min(int(a), -1)", "-int(a)", "~int(a)",
    "abs(int(a))", "round(a) - round(b)", "a.item() - b.item()", "int(round(a)) - int(b)",
    "math.floor(a) - math.ceil(b)", "divmod(int(a) - int(b), 4)[0]",
    "divmod(int(a) - int(b), 4)[1]", "bool(a) - int(b)", "int(a > 3) - int(b)",
    "math.sqrt(abs(int(a) - int(b)))", "int(a) if int(a) > 3 else int(a) - int(b)",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", _INTEGERS)
def test_python_integers_of_elements(dtype: str, form: str) -> None:
    high = min(np.iinfo(dtype).max, 2**52)  # beyond which Python's math.floor loses digits
    low = -high if dtype.startswith("int") else 0
    a = np.array([3, 100, 7, 0, high, low], dtype)
    b = np.array([5, 1, 7, high, 9, 2], dtype)
    operands = {"a": a, "b": b}
    for text, own, right in zip(
        _OF_INTEGERS,
        compiled(form, _OF_INTEGERS, operands),
        uncompiled(_OF_INTEGERS, operands),
        strict=True,
    ):
        np.testing.assert_array_equal(own, right, text)


def test_an_index_of_unsigned_elements_is_signed() -> None:
    @dp.kernel
    def fill(item: dp.Item, x: dp.ndarray, n: dp.ndarray, m: dp.ndarray) -> None:
        i = item.get_id(0)
        x[int(n[i]) - int(m[i])] = i + 1

    @dp.jit
    def fill_in_order(x: dp.ndarray, n: dp.ndarray, m: dp.ndarray) -> None:
        for i in range(n.size):
            for k in range(int(m[i]) - int(n[i])):  # no iteration where it is negative
                x[int(n[i]) - int(m[i]) + k] = i + 1

    n, m = (dp.asarray(each, dtype="uint8") for each in ([5, 3], [2, 4]))
    x, y = dp.zeros(8, dtype="int64"), dp.zeros(8, dtype="int64")
    dp.call_kernel(fill, dp.Range(2), x, n, m)
    fill_in_order(y, n, m)
    assert x.tolist() == [0, 0, 0, 1, 0, 0, 0, 2]
    assert y.tolist() == [0, 0, 0, 0, 0, 0, 0, 2]


@pytest.mark.parametrize("loop", ["range", "prange"])
def test_python_floats_of_elements_are_double(loop: str) -> None:
    texts = ("float(a) * float(b)", "a.item() * b.item()", "float(a) + 1e-9", "float(a) * b",
             "a.item() / 3", "round(a, 1) * b")  # fmt: skip
    operands = {name: np.array([0.1, 3.7, -2.5], "float32") for name in ("a", "b")}
    found = compiled(loop, texts, operands)
    for text, own, right in zip(texts, found, uncompiled(texts, operands), strict=True):
        np.testing.assert_array_equal(own, right, text)
