"""The implementations of operators, by family; importing the package registers them.

In: a call of an operator. Out: its values. Imports: rows up to ``satellites``, ``onnx``,
``ml_dtypes``.

In: calls of operators. Out: values. Imports: rows up to ``satellites``, ``onnx``, ``ml_dtypes``.
"""

from dparray.onnx.rows import (
    boxes,
    control_flow,
    elementwise,
    normalization,
    products,
    quantized,
    recurrence,
    reductions,
    resize,
    sequences,
    shape_operators,
    signal,
    text,
    windows,
)

__all__ = [
    "boxes", "control_flow", "elementwise", "normalization", "products", "quantized",
    "recurrence", "reductions", "resize", "sequences", "shape_operators", "signal",
    "text", "windows",
]  # fmt: skip
