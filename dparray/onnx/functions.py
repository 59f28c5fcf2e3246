"""The functions that operators use: dparray's, under their public names.

They are imported from the chapters, since nothing below the package's own ``__init__`` may import
it.
"""

from dparray import exceptions, fft, lib, linalg, random, special, tilelang
from dparray._array.ndarray import ndarray
from dparray._functions.conversion import *
from dparray._functions.creation import *
from dparray._functions.cumulative import *
from dparray._functions.einstein import *
from dparray._functions.elementwise import *
from dparray._functions.evaluation import *
from dparray._functions.indexing import *
from dparray._functions.inspection import *
from dparray._functions.joining import *
from dparray._functions.logic import *
from dparray._functions.manipulation import *
from dparray._functions.mathematics import *
from dparray._functions.matrices import *
from dparray._functions.methods import *
from dparray._functions.moments import *
from dparray._functions.padding import *
from dparray._functions.products import *
from dparray._functions.ranges import *
from dparray._functions.rearranging import *
from dparray._functions.reductions import *
from dparray._functions.searching import *
from dparray._functions.sorting import *
from dparray._functions.statistics import *

__all__ = ["exceptions", "fft", "lib", "linalg", "ndarray", "random", "special", "tilelang"]
