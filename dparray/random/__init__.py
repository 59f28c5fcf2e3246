"""Random numbers: generators whose numbers are made on the device, the same on every device.

The generator is Philox-4x32-10, a function of a seed and a position, so a sequence does not depend
on how it is cut into calls: ``random(10)`` twice gives the numbers of ``random(20)``.

In: a seed and parameters. Out: arrays on the generator's queue. Imports the functions of NumPy's
names, ``algorithms`` and what is below.
"""

from dparray._functions.guard import guard as _guard
from dparray.random import global_state
from dparray.random.generator import Generator
from dparray.random.global_state import *

__all__ = ["Generator"]
__all__ += global_state.__all__

for _class in global_state.RandomState.__mro__[:-1]:
    _guard(_class)
