"""Gradients: :func:`dparray.grad` and its relatives.

Takes functions of arrays; returns functions of the same arguments that return derivatives. Inside
of a transformation, arrays are :class:`~dparray.gradients.traced.Traced`: each call of a public
function with one reaches ``calls.py`` by the override ``__dparray_function__``, is computed, and is
recorded with its rule. ``tape.py`` adds up cotangents in the backward pass. The rules are in the
modules of one subject each, and those of the tables' operations in ``_graph/derivatives.py``; they
consist of public functions, so that they are differentiated and fused like any program. Programs
without gradients do not import this package. It may import everything but tools.
"""

from dparray.gradients import constant as constant
from dparray.gradients import loops as loops
from dparray.gradients import operators as operators
from dparray.gradients import products as products
from dparray.gradients import special as special
from dparray.gradients import statistics as statistics
from dparray.gradients import user_functions as user_functions
from dparray.gradients.kernels import differentiable
from dparray.gradients.transforms import (
    checkpoint,
    custom_gradient,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)

__all__ = [
    "checkpoint",
    "custom_gradient",
    "differentiable",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
