"""The rows of the operators, by family; importing the package enters them in the table."""

from dparray.onnx.rows import (
    boxes,
    control,
    elementwise,
    normalization,
    products,
    quantized,
    recurrence,
    reductions,
    resize,
    sequences,
    shapes,
    signal,
    text,
    windows,
)

__all__ = [
    "boxes",
    "control",
    "elementwise",
    "normalization",
    "products",
    "quantized",
    "recurrence",
    "reductions",
    "resize",
    "sequences",
    "shapes",
    "signal",
    "text",
    "windows",
]
