"""Random numbers: generators whose numbers are made on the device, the same on every device.

The generator is Philox-4x32-10, a function of a seed and a position, so a sequence does not depend
on how it is cut into calls: ``random(10)`` twice gives the numbers of ``random(20)``.

In: a seed and parameters. Out: arrays on the generator's queue. Imports the functions of NumPy's
names, ``algorithms`` and what is below.
"""

import sys as _sys
import typing as _typing

from dparray._functions.error_boundary import guard as _guard
from dparray.random import global_state
from dparray.random.generator import Generator
from dparray.random.global_state import *

__all__ = ["Generator"]
__all__ += global_state.__all__

for _class in global_state.RandomState.__mro__[:-1]:
    _guard(_class)

_ABSENT = {
    "SeedSequence": "write np.random.SeedSequence(seed); dp.random.default_rng takes NumPy's",
    **dict.fromkeys(
        ("BitGenerator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"),
        "all numbers are of Philox; write dp.random.default_rng(seed)",
    ),
}


if not _typing.TYPE_CHECKING:  # so that type checkers find misspelt names

    def __getattr__(name: str) -> _typing.Any:
        because = f": {_ABSENT[name]}" if name in _ABSENT else ""
        message = f"module {__name__!r} has no attribute {name!r}{because}"
        raise AttributeError(message, name=name, obj=_sys.modules[__name__])
