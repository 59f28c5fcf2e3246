"""Replace ``numba_dpex`` by dparray where that package is not installed.

A package of that name in the same folder is imported instead of this file.
"""

import sys

from dparray._kernel import numba_dpex_module

sys.modules[__name__] = numba_dpex_module.make_module(__name__)
