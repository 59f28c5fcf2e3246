"""Elementwise operations on values, under PlaidML's names."""

from __future__ import annotations

from typing import Any

from dparray.plaidml.devices import DType
from dparray.plaidml.tile import Value, binary_op, unary_op

__all__ = ["equal", "exp", "log", "not_equal", "relu", "sigmoid", "sqrt", "tanh"]


def equal(left: Any, right: Any) -> Value:
    """Return whether elements are equal; ``==`` of values is identity."""
    return binary_op(left, right, "L == R", DType.BOOLEAN)


def not_equal(left: Any, right: Any) -> Value:
    """Return whether elements differ."""
    return binary_op(left, right, "L != R", DType.BOOLEAN)


def exp(value: Any) -> Value:
    """Return the exponential function."""
    return unary_op(value, "exp(I)")


def log(value: Any) -> Value:
    """Return the natural logarithm."""
    return unary_op(value, "log(I)")


def sqrt(value: Any) -> Value:
    """Return the square root."""
    return unary_op(value, "sqrt(I)")


def tanh(value: Any) -> Value:
    """Return the hyperbolic tangent."""
    return unary_op(value, "tanh(I)")


def relu(value: Any) -> Value:
    """Return the value where it is positive, else 0."""
    return unary_op(value, "relu(I)")


def sigmoid(value: Any) -> Value:
    """Return the logistic function."""
    return unary_op(value, "sigmoid(I)")
