"""NumPy as the library of the stand-in driver, whose memory the host reads here alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from dparray._layout import Layout
from dparray.memory.libraries.numpy import _NumPy


class _OfStandIn(_NumPy):
    """The library; it notes the functions that are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def array(self, layout: Layout, as_bits: bool = False) -> np.ndarray:
        memory = layout.block.memory
        values = memory.values if memory else np.empty(0)
        return np.ndarray(layout.shape, layout.dtype, values, layout.offset, layout.strides)

    def __getattr__(self, name: str) -> Any:
        self.called.append(name)
        return super().__getattr__(name)


library = _OfStandIn()
