"""The satellites, and the hooks by which they reach the core.

A satellite is a part at the edge of the package: the Tile language, PlaidML's interface, ONNX,
placement policies, sharding, Dask, gradients, and the module ``numba_dpex``. Satellites import the
core. No module of the core imports a satellite, and only this file contains the names of their
modules; ``tests/package/test_layers.py`` checks both. The hooks:

- *Names*: :data:`NAMES` are public names of the package that satellites have. They are imported at
  their first use.
- *Providers*: a function of the core that a satellite carries out asks :func:`provider` for the
  module.
- *Functions*: ``dp.f(x)`` calls ``x.__dparray_function__(dp.f, args, kwargs)`` where an operand or
  option is not an array and has this method, as the arrays of :mod:`dparray.sharding` and
  :mod:`dparray.gradients` do. So do compiled and user-defined functions, kernels, and
  ``y[key] = x`` with ``ndarray.__setitem__``.
- *Explanations*: ``dp.explain(x, *args)`` returns ``x.__dparray_explain__(*args)`` where ``x`` has
  this method, as functions of Tile and models of ONNX do.
- *Expressions*: a contraction of Tile is a :class:`~dparray._graph.node.Node` whose operation is a
  :class:`~dparray._graph.contractions.Contraction`. It is planned, fused with its tail, and
  executed as every other node.
- *Errors*: the classes in :mod:`dparray.exceptions` with the satellite's name.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Names of the package: the module that the name is, or ``"module:"`` that has the name.
NAMES = {
    "gradients": "dparray.gradients",
    "onnx": "dparray.onnx",
    "plaidml": "dparray.plaidml",
    "sharding": "dparray.sharding",
    "tilelang": "dparray.tilelang",
    "PlacedExpression": "dparray._scheduling.policy:",
    "PolicyStep": "dparray._scheduling.policy:",
    "placement": "dparray._scheduling.policy:",
    "distribute": "dparray.sharding.distribute:",
    "checkpoint": "dparray.gradients.transforms:",
    "custom_gradient": "dparray.gradients.transforms:",
    "differentiable": "dparray.gradients.kernels:",
    "grad": "dparray.gradients.transforms:",
    "hessian": "dparray.gradients.transforms:",
    "hvp": "dparray.gradients.transforms:",
    "jacobian": "dparray.gradients.transforms:",
    "jvp": "dparray.gradients.transforms:",
    "linearize": "dparray.gradients.transforms:",
    "stop_gradient": "dparray.gradients.transforms:",
    "value_and_grad": "dparray.gradients.transforms:",
    "vjp": "dparray.gradients.transforms:",
}

_PROVIDERS = {
    # array types in Dask's registries, and functions for cloudpickle
    "dask": "dparray._functions.dask_registrations",
    # the replacement for the numba_dpex package
    "numba_dpex": "dparray._kernel.numba_dpex_module",
    # expressions under a policy other than "follow": compute, bring, planned, called_together
    "placement": "dparray._scheduling.policy",
    # dparray.testing.SimulatedDevice
    "simulated": "dparray._scheduling.simulated",
    # the speeds of devices and of copies between them: speeds_of, link_of
    "speeds": "dparray._scheduling.device_costs",
    # the contractions of einsum: dtype_of_products, sum_of_products
    "sums": "dparray.tilelang.sums",
}


def provider(task: str) -> Any:
    """Return the module of a satellite that carries out a task of the core."""
    return importlib.import_module(_PROVIDERS[task])
