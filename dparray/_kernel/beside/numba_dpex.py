"""``import numba_dpex`` where that package is not installed: dparray answers in its place.

A package of that name in the same folder is found before this file.
"""

import sys

from dparray._kernel import numba_dpex_module

sys.modules[__name__] = numba_dpex_module.make_module(__name__)
