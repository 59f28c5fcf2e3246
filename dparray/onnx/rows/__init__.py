"""The implementations of operators, by family; importing the package registers them."""

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
    "boxes", "control", "elementwise", "normalization", "products", "quantized",
    "recurrence", "reductions", "resize", "sequences", "shapes", "signal",
    "text", "windows",
]  # fmt: skip
