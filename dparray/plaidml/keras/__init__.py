"""Keras on dparray, experimental: ``install_backend()``, then ``import keras``.

Keras 3's own NumPy backend is executed with dparray instead of NumPy, and ``keras.backend``
has the functions of Keras 2 that PlaidML's documents use. Models predict, and are trained by
gradients of dparray. Tested with Keras 3.15. Needs the packages ``keras`` and ``scipy``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from dparray.exceptions import PlaidMLError
from dparray.plaidml.keras import substitution

__all__ = ["install_backend"]

#: Functions of Keras 2's backend that Keras 3 has under the same names.
_SAME = (
    *("add", "subtract", "multiply", "divide", "dot", "exp", "log", "sqrt", "square", "abs"),
    *("sign", "sin", "cos", "tanh", "relu", "sigmoid", "softmax", "softplus", "elu", "maximum"),
    *("minimum", "equal", "not_equal", "reshape", "transpose", "squeeze", "tile"),
    *("concatenate", "stack"),
)
_REDUCTIONS = ["sum", "mean", "max", "min", "prod", "std", "var", "argmax", "argmin", "all", "any"]


def install_backend(device: Any = None) -> ModuleType:
    """Let Keras compute on dparray's arrays; call it before ``import keras``.

    Sets ``dp.config.host_operands = "copy"``, since Keras passes NumPy arrays to its backend.

    Args:
        device: where arrays are placed; None is the default device.

    Returns:
        The module ``keras``.

    Raises:
        PlaidMLError: Keras has been imported before, with another backend.
        ModuleNotFoundError: Keras is not installed.
    """
    if substitution.is_installed():
        return sys.modules["keras"]
    if "keras" in sys.modules:
        raise PlaidMLError("install_backend: call it before the first `import keras`")
    keras = substitution.install(device)
    keras.backend = sys.modules["keras.backend"] = _backend(keras)
    return keras


def _backend(keras: Any) -> ModuleType:
    """Return the module ``keras.backend`` with the functions of Keras 2."""
    ops, result = keras.ops, ModuleType("keras.backend")

    def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = None) -> Any:
        x = ops.convert_to_tensor(value, dtype=dtype or keras.config.floatx())
        return ops.broadcast_to(x, shape) if shape else x

    def placeholder(
        shape: Any = None,
        ndim: Any = None,
        dtype: Any = None,
        sparse: bool = False,
        name: Any = None,
    ) -> Any:
        shape = shape or (None,) * ndim
        return keras.Input(batch_shape=shape, dtype=dtype or keras.config.floatx(), name=name)

    def variable(value: Any, dtype: Any = None, name: Any = None, constraint: Any = None) -> Any:
        return keras.Variable(value, dtype=dtype or keras.config.floatx(), name=name)

    def function(
        inputs: Sequence[Any], outputs: Any, updates: Any = None, name: Any = None
    ) -> Callable[..., Any]:
        many = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        symbolic = [x for x in many if isinstance(x, keras.KerasTensor)]
        model = keras.Function(inputs=list(inputs), outputs=symbolic) if symbolic else None

        def call(values: Sequence[Any] = ()) -> Any:
            given = list(map(ops.convert_to_tensor, values))
            results = iter(model(given) if model is not None else ())
            result = [
                ops.convert_to_numpy(next(results) if isinstance(x, keras.KerasTensor) else x)
                for x in many
            ]
            return result if isinstance(outputs, list | tuple) else result[0]

        return call

    def reduction(compute: Any) -> Callable[..., Any]:
        return lambda x, axis=None, keepdims=False: compute(x, axis=axis, keepdims=keepdims)

    vars(result).update(
        {name: getattr(keras.backend, name) for name in dir(keras.backend)},
        constant=constant,
        placeholder=placeholder,
        variable=variable,
        function=function,
        eval=ops.convert_to_numpy,
        get_value=ops.convert_to_numpy,
        **{name: getattr(ops, name) for name in _SAME},
        **{name: reduction(getattr(ops, name)) for name in _REDUCTIONS},
        **{
            name: getattr(keras.config, name)
            for name in ("floatx", "set_floatx", "epsilon", "image_data_format")
        },
    )
    return result
