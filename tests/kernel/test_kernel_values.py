"""Values that a kernel refers to: subclasses of numbers, members of enumerations, odd names."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dparray as dp


class Odd(int):
    """A number whose repr is another number."""

    def __repr__(self) -> str:
        return "9"

    __str__ = __repr__


class Text(int):
    """A number whose repr is not a number."""

    def __repr__(self) -> str:
        return 'oops" \n'

    __str__ = __repr__


class Rounded(float):
    def __repr__(self) -> str:
        return "1.0"

    __str__ = __repr__


class Int64(np.int64):
    def __repr__(self) -> str:
        return "9"

    __str__ = __repr__


class Mode(enum.IntEnum):
    FAST = 3
    SLOW = 5


class Flag(enum.IntFlag):
    FAST = 3
    SLOW = 5


class Plain(enum.Enum):
    FAST = 3
    ODD = Odd(5)


MODULE = types.ModuleType("settings")


def run_both(function: Callable[..., Any], dtype: str = "float64") -> list[Any]:
    """Return the first element after a launch and after a simulation."""
    out, simulated = dp.zeros(1, dtype=dtype), np.zeros(1, dtype)
    dp.kernel(function)[1](out)
    dp.simulate(function, 1, simulated)
    return [out[0].item(), simulated[0].item()]


@pytest.mark.parametrize(
    "value", [Odd(3), Text(3), Rounded(3.25), Int64(3), Mode.FAST, Flag.FAST, Flag(3)], ids=type
)
def test_a_subclass_of_a_number_is_the_number_that_it_holds(value: Any) -> None:
    number = float(value)
    pair = (value, 1)
    MODULE.value = value  # type: ignore[attr-defined]

    @dp.device_func
    def scaled(x: Any, factor: Any = value) -> Any:
        return x * factor

    def captured(item: Any, out: Any) -> None:
        out[0] = value * 2 - value

    def in_a_tuple(item: Any, out: Any) -> None:
        out[0] = pair[0] * pair[1]

    def of_a_module(item: Any, out: Any) -> None:
        out[0] = MODULE.value * 2 - MODULE.value

    def by_default(item: Any, out: Any) -> None:
        out[0] = scaled(2.0) / 2

    def compared(item: Any, out: Any) -> None:
        out[0] = value if value == value and value > 2 else -1

    for function in (captured, in_a_tuple, of_a_module, by_default, compared):
        assert run_both(function) == [number, number], function.__name__
    scope = {"GLOBAL": value}
    function = types.FunctionType(_of_a_global.__code__, scope, "of_a_global")
    assert run_both(function) == [number, number]


def _of_a_global(item: Any, out: Any) -> None:
    out[0] = GLOBAL * 2 - GLOBAL  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("value", [Odd(3), Text(3), Mode.FAST, Flag.FAST], ids=type)
def test_a_subclass_of_int_is_a_constant_where_one_is_needed(value: Any) -> None:
    def fill(item: Any, out: Any) -> None:
        parts = dp.PrivateArray(value, np.float64)
        for k in range(value):
            parts[k] = k + 1
        out[0] = parts[value - 1]

    assert run_both(fill) == [3, 3]


@pytest.mark.parametrize("value", [Odd(3), Rounded(3.25), Mode.FAST, Flag.FAST], ids=type)
def test_a_subclass_of_a_number_is_an_argument(value: Any) -> None:
    @dp.kernel
    def double(item: Any, out: Any, x: Any) -> None:
        out[0] = x * 2

    out, simulated = dp.zeros(1), np.zeros(1)
    double[1](out, value)
    dp.simulate(double, 1, simulated, value)
    assert out.tolist() == simulated.tolist() == [2 * float(value)]


@pytest.mark.parametrize("kind", [Mode, Flag])
def test_members_of_an_integer_enumeration_are_integers(kind: Any) -> None:
    member = kind.SLOW

    def compute(item: Any, out: Any) -> None:
        chosen = kind.FAST
        if member > kind.FAST:
            chosen = kind.SLOW
        bits = (kind.FAST | kind.SLOW) & ~1
        out[0] = chosen * 100 + bits * 10 + kind.FAST.value + (member == kind.SLOW)

    assert run_both(compute, "int64") == [564, 564]


def test_members_of_a_plain_enumeration_have_values_and_are_compared() -> None:
    member = Plain.ODD

    def compute(item: Any, out: Any) -> None:
        out[0] = Plain.ODD.value * 2 + (member.value if member == Plain.ODD else 0)

    assert run_both(compute) == [15, 15]


NAMES = ['a"b', "a\nb", "a b", "a\0b", "ä", "", "a\\b", "a'b", "@!{}", "%x", "; x", "x" * 3000]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("attribute", ["__name__", "__qualname__", "__module__"])
def test_a_kernel_and_a_device_function_have_any_name(name: str, attribute: str) -> None:
    def named(function: Any) -> Any:
        setattr(function, attribute, name)
        return function

    shift = 100 * ("__name__", "__qualname__", "__module__").index(attribute) + NAMES.index(name)

    @dp.device_func
    @named
    def shifted(x: Any) -> Any:
        return x + shift  # A separate kernel, which no other case has compiled.

    def fill(item: Any, out: Any) -> None:
        out[0] = shifted(item.get_id(0))

    assert run_both(named(fill)) == [shift, shift]
