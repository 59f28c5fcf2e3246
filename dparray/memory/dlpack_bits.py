"""bfloat16 through DLPack, which neither NumPy nor dpnp exchanges: as its bits, under its own name.

A capsule names the kind of its elements in one byte. NumPy and dpnp exchange the 16 bits as uint16,
and that byte is changed on the way: to "bfloat" in a capsule that is handed out, to "unsigned
integer" in one that is taken.
"""

from __future__ import annotations

from typing import Any

from dparray.memory.dlpack_capsules import BFLOAT, CODES, tensor_of


def as_bfloat16(capsule: Any) -> Any:
    """Return a capsule of uint16 as one of bfloat16."""
    tensor_of(capsule).code = BFLOAT
    return capsule


class Bits:
    """An object with ``__dlpack__``, whose bfloat16 is exchanged as uint16.

    Attributes:
        is_bfloat16: whether the last capsule was bfloat16.
    """

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.is_bfloat16 = False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.owner.__dlpack__(**options)
        tensor = tensor_of(capsule)
        self.is_bfloat16 = (tensor.code, tensor.bits) == (BFLOAT, 16)
        if self.is_bfloat16:
            tensor.code = CODES["u"]
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.owner.__dlpack_device__()
