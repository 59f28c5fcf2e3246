"""ONNX models in array programs: inputs and outputs are arrays, on any SYCL device.

``model = dp.onnx.load("m.onnx")`` checks a model and folds its constants; ``model(x)`` runs it on
the queue of its weights. It is meant for models within array programs (preprocessing, inference and
postprocessing on one queue), not for serving or for language models. In: a model and arrays. Out:
arrays. Imports: rows up to ``satellites``, and the packages ``onnx`` and ``ml_dtypes``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dparray.exceptions import OnnxError
from dparray.onnx.node_explanations import ModelExplanation, NodePlan

if TYPE_CHECKING:
    from dparray.onnx.model import Model, ValueInfo, load
    from dparray.onnx.operator_table import operator
    from dparray.onnx.operators import SupportedOperator, supported

#: Imported lazily, since they need packages that dparray does not depend on.
_LATER = {
    "Model": "model",
    "ValueInfo": "model",
    "load": "model",
    "SupportedOperator": "operators",
    "supported": "operators",
    "operator": "operator_table",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for needed in ("onnx", "ml_dtypes"):
        try:
            importlib.import_module(needed)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"dparray.onnx.{name} requires the package {needed!r}: "
                "pip install 'onnx>=1.21' ml_dtypes",
                name=error.name,
            ) from None
    importlib.import_module("dparray.onnx.rows")
    value = getattr(importlib.import_module(f"dparray.onnx.{_LATER[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "Model",
    "ModelExplanation",
    "NodePlan",
    "OnnxError",
    "SupportedOperator",
    "ValueInfo",
    "load",
    "operator",
    "supported",
]
