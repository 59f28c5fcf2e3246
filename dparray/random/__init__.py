"""Random numbers: generators that run on the device and give the same numbers on every device.

The generator is Philox-4x32-10, a function of a seed and a position. A sequence therefore does not
depend on how many numbers each call draws: two calls of ``random(10)`` give the numbers of one
``random(20)``.

In: a seed and parameters. Out: arrays on the generator's queue. Imports: rows up to ``functions``.
"""

import sys as _sys
import typing as _typing

from dparray._functions.public import guard as _guard
from dparray._imports import refuse_calls
from dparray.random import global_state, in_kernels
from dparray.random.generator import Generator
from dparray.random.global_state import *
from dparray.random.in_kernels import *

__all__ = ["Generator"]
__all__ += global_state.__all__ + in_kernels.__all__

_guard(_sys.modules[__name__], global_state.__all__)
for _class in global_state.RandomState.__mro__[:-1]:
    _guard(_class)

_ABSENT = {
    "SeedSequence": "write np.random.SeedSequence(seed); dp.random.default_rng takes NumPy's",
    **dict.fromkeys(
        ("BitGenerator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"),
        "Philox is the only bit generator; write dp.random.default_rng(seed)",
    ),
}


if not _typing.TYPE_CHECKING:  # so that type checkers report misspelled names

    def __getattr__(name: str) -> _typing.Any:
        because = f": {_ABSENT[name]}" if name in _ABSENT else ""
        message = f"module {__name__!r} has no attribute {name!r}{because}"
        raise AttributeError(message, name=name, obj=_sys.modules[__name__])


refuse_calls(__name__, "dp.random.random((6, 2))")
