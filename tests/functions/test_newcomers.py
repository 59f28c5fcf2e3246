"""Mistakes of newcomers raise errors in their words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dp.device("gpu"), r'dp.device is a module.*write dp.Device\("gpu"\)'),
        (lambda: dp.random((6, 2)), r"dp.random is a module.*write dp.random.random\(\(6, 2\)\)"),
        (lambda: dp.fft(dp.ones(3)), r"dp.fft is a module.*write dp.fft.fft\(x\)"),
    ],
)
def test_a_module_that_is_called_names_its_function(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()
    assert dp.random.random((6, 2)).shape == (6, 2)
    assert isinstance(dp.device, type(np))


class Table:
    """Has what pandas' tables have."""

    columns = ("a", "b")
    dtypes = (np.dtype("int64"), np.dtype(object))

    def select_dtypes(self, kind: str) -> Any:
        raise AssertionError("is not called")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([[1, "first"], [2, "second"]], object)


def test_a_table_with_text_names_its_columns() -> None:
    with pytest.raises(dp.DTypeError) as it:
        dp.asarray(Table())
    text = str(it.value)
    assert "shape (2, 2) with text or objects in b is not numeric" in text
    assert "dp.asarray(df.select_dtypes('number'))" in text
    assert "second" not in text
    assert "\n" not in text


def test_an_array_of_text_is_described_by_its_shape() -> None:
    with pytest.raises(dp.DTypeError, match=r"the numpy.ndarray of shape \(2,\) is not numeric"):
        dp.asarray(np.array(["first", "second"]))


def test_a_sub_device_is_described(capsys: Any) -> None:
    whole = dp.Device("cpu")
    whole.print_device_info()
    assert f"Filter string   {whole.filter_string}" in capsys.readouterr().out
    if whole.traits.units > 1:
        whole.create_sub_devices(partition=1)[0].print_device_info()
        text = capsys.readouterr().out
        assert ", sub-device 1 of " in text
        assert "-1" not in text


def test_a_default_queue_has_one_name() -> None:
    text = dp.device.describe_queue(dp.Device("cpu").sycl_queue)
    assert text.endswith(", default queue")
