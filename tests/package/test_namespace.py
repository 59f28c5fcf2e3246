"""The contents of the namespace, and their names."""

from __future__ import annotations

import builtins
import pickle

import pytest

import dparray as dp

pytestmark = pytest.mark.static


def test_a_star_import_replaces_no_builtin_and_brings_no_error() -> None:
    names: dict[str, object] = {}
    exec("from dparray import *", names)
    brought = set(names) - {"__builtins__"}
    assert not brought & set(dir(builtins))
    assert not [name for name in brought if name.endswith("Error")]
    assert {"ones", "kernel", "ndarray", "linalg"} <= brought


@pytest.mark.parametrize("name", ["ndarray", "add", "sum", "reshape", "Event", "KernelFunction"])
def test_public_names_belong_to_dparray_and_pickle(name: str) -> None:
    assert getattr(dp, name).__module__ == "dparray"
    assert pickle.loads(pickle.dumps(getattr(dp, name))) is getattr(dp, name)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("to_numpy", "asnumpy"), ("trapz", "trapezoid"), ("in1d", "isin"), ("row_stack", "vstack")],
)
def test_one_function_has_one_name_and_the_other_is_answered(name: str, instead: str) -> None:
    assert name not in dp.__all__
    with pytest.raises(AttributeError, match=rf"write dp\.{instead}\("):
        getattr(dp, name)


@pytest.mark.parametrize("name", ["kernel", "explain", "simulate"])
def test_no_module_hides_behind_a_function(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        __import__(f"dparray.{name}")
