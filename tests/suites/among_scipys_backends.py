"""Makes dparray the one library that SciPy's array-API tests run on.

SciPy's ``conftest`` looks for the libraries it knows when it is imported. It finds dparray where
array-api-strict would be, so the tests have that word among their parameters; but marks for that
library do not hold, since they go by the module's own name.
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

scipy.conftest.xp_known_backends.add("dparray")  # so that marks for all but NumPy hold
# What computes by compiled code on the host is not for it, as not for CuPy: nothing is copied.
scipy.conftest.xp_skip_cpu_only_backends.add("dparray")
_array_api._xp_copy_to_numpy = dparray.asnumpy
