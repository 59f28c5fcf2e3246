"""SciPy in array API mode: functions that it writes in the standard run on dparray arrays.

SciPy reads its mode when it is imported, so it is tried in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("scipy")

PROGRAM = """
import numpy as np
import scipy.cluster.vq, scipy.fft, scipy.integrate, scipy.special, scipy.stats
import dparray as dp

a = np.random.default_rng(0).random((20, 3))
for function, arguments in (
    (scipy.special.logsumexp, (a,)),
    (scipy.special.softmax, (a,)),
    (scipy.special.xlogy, (a, a)),
    (scipy.stats.zscore, (a,)),
    (scipy.stats.skew, (a,)),
    (scipy.stats.kurtosis, (a,)),
    (scipy.stats.moment, (a, 2)),
    (scipy.stats.gmean, (a,)),
    (scipy.cluster.vq.whiten, (a,)),
    (scipy.fft.fft, (a,)),
    (scipy.fft.irfftn, (a + 1j,)),
    (scipy.integrate.trapezoid, (a,)),
    (scipy.integrate.cumulative_trapezoid, (a,)),
):
    given = [dp.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments]
    result = function(*given)
    assert isinstance(result, dp.ndarray), (function, type(result))
    np.testing.assert_allclose(result.asnumpy(), function(*arguments), rtol=1e-9, atol=1e-12)

try:
    scipy.special.gammaln(dp.asarray(a))
except TypeError as error:
    assert "dp.asnumpy" in str(error)  # compiled for NumPy alone: never a silent copy
else:
    raise AssertionError("gammaln copied to the host")
print("equal")
"""


def test_functions_in_array_api_mode() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "equal", done.stderr[-3000:]
