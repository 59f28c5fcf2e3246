"""Make dparray the only library on which SciPy's array-API tests run.

SciPy's ``conftest`` looks for its known libraries when it is imported. It finds dparray instead of
array-api-strict, so the test parameters contain that name. Marks for array-api-strict have no
effect, since they use the module's own name.
"""

from __future__ import annotations

import sys
from unittest import mock

import compared_on_the_host

import dparray

compared_on_the_host.install()
sys.modules["array_api_strict"] = dparray
with (
    mock.patch.object(dparray, "__version__", "2.3"),
    mock.patch.object(dparray, "set_array_api_strict_flags", mock.Mock(), create=True),
):
    import scipy.conftest
    from scipy._lib import _array_api
del sys.modules["array_api_strict"]

# so that marks for all libraries except NumPy apply
scipy.conftest.xp_known_backends.add("dparray")
# Functions that run compiled code on the host are excluded, as for CuPy: nothing is copied.
scipy.conftest.xp_skip_cpu_only_backends.add("dparray")
_array_api._xp_copy_to_numpy = dparray.asnumpy
