"""The operators of arrays."""

from __future__ import annotations

from typing import Any

from dparray import _dtypes
from dparray._array.apply import OPERATIONS, Binary, as_operand, defer, ops
from dparray._array.ndarray import ndarray
from dparray._graph.ops import COMPARISONS, OPERATORS, OPS, SINGLE_OPERATORS, Op
from dparray.memory.libraries import usm


def _binary_family(op: Op) -> tuple[Binary, Binary, Binary]:
    """Return the operator, its reflected form and its in-place form."""
    operate = OPERATIONS[op]

    def reflected(self: ndarray, other: Any) -> ndarray:
        return operate(other, self)

    def in_place(self: ndarray, other: Any) -> ndarray:
        return defer(op, (self, other), self)

    return operate, reflected, in_place


def _power_family() -> tuple[Binary, Binary, Binary]:
    """Return the operators of powers; NumPy's ``**`` squares masks in int8, not int64."""
    power, reflected, in_place = _binary_family(OPS["pow"])

    def power_or_square(self: ndarray, other: Any, modulus: None = None) -> ndarray:
        if modulus is not None:
            raise TypeError(
                "pow: the form with a modulus is for Python's integers; write "
                "dp.remainder(x ** y, modulus)"
            )
        if type(other) is int and other == 2 and self.dtype.kind == "b":
            return ops.square(as_operand(self, _dtypes.int8))
        return power(self, other)

    return power_or_square, reflected, in_place


def _attach() -> None:
    """Add the operators to the array class, which belongs to a lower layer than the operations."""
    families = {name: _binary_family(OPS[op]) for name, op in OPERATORS.items()}
    for name, family in (*families.items(), ("pow", _power_family())):
        for prefix, operator in zip(("", "r", "i"), family, strict=True):
            setattr(ndarray, f"__{prefix}{name}__", operator)
    for name, op in (COMPARISONS | SINGLE_OPERATORS).items():
        setattr(ndarray, f"__{name}__", OPERATIONS[OPS[op]])
    of_two = (*COMPARISONS, *OPERATORS, "pow", "divmod", "matmul")
    usm.defer_operators(ndarray, tuple([f"__{name}__" for name in of_two]))


_attach()
