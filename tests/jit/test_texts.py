"""Texts of numbers in compiled functions are Python's."""

from __future__ import annotations

import pytest

import dparray as dp
from tests.jit.forms import function_of

_TEXTS = (
    'f"sum {s}"', "str(s)", "repr(s)", 'f"{s:.2f}"', 'f"{x[0]}"', 'f"{x}"', "str(1.5)",
    'f"n {x.size}"', 'str(x.size) + "x"', "[str(s)]", "repr(x.size)", 'f"{x.size:03d}"',
)  # fmt: skip


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
def test_a_text_of_a_number(text: str, dtype: str) -> None:
    body = "    s = 0.0\n    for i in range(x.size):\n        s += x[i]\n"
    function = dp.jit(function_of(f"def f(x):\n{body}    return {text}\n"))
    x = dp.asarray([1.5, 0.1, 2]).astype(dtype)
    assert function(x) == function.py_func(x)


@pytest.mark.parametrize("loop", ["range", "prange"])
def test_printed_numbers(loop: str, capfd: pytest.CaptureFixture[str]) -> None:
    after = "    print(s, x[0])\n    print(f'{s}')\n"
    loop = "dp.prange" if loop == "prange" else loop
    body = f"    s = 0.0\n    for i in {loop}(x.size):\n        s += x[i]\n"
    function = dp.jit(function_of(f"def f(x):\n{body}{after}"))
    x = dp.asarray([1.5, 0.1, 2], dtype="float32")
    function(x)
    own = capfd.readouterr().out
    function.py_func(x)
    assert own == capfd.readouterr().out


def test_a_text_in_an_exception_of_a_loop() -> None:
    @dp.jit
    def check(x: dp.ndarray) -> None:
        for i in range(x.size):
            if x[i] < 0:
                raise ValueError(f"bad {x[i]}")

    check(dp.ones(3))
    with pytest.raises(ValueError, match=r"^bad -2\.0$"):
        check(dp.asarray([1.0, -2.0]))
