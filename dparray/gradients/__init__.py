"""Gradients: :func:`dparray.grad` and its relatives.

Inside of a transformation, arrays are :class:`~dparray.gradients.traced.Traced`: each call of a
public function with one is recorded (``calls``) with its rule, and ``tape`` adds up cotangents.
Programs without gradients do not import this package. In: functions of arrays. Out: functions of
the same arguments that return derivatives. Imports: rows up to ``satellites``.
"""

from dparray.gradients import bodies as bodies
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
