"""SciPy in array API mode: its functions written with the standard run on dparray arrays.

SciPy reads its mode when it is imported, so the test uses a separate process.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

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
    (scipy.special.erf, (a,)),
    (scipy.special.gammaln, (a,)),
    (scipy.special.psi, (a,)),
    (scipy.special.chdtrc, (a + 1, a)),
    (scipy.special.polygamma, (1, a)),
    (scipy.special.zeta, (a + 2,)),
    (scipy.special.zeta, (a + 2, a)),
    (scipy.stats.entropy, (a,)),
):
    given = [dp.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments]
    result = function(*given)
    assert isinstance(result, dp.ndarray), (function, type(result))
    np.testing.assert_allclose(result.asnumpy(), function(*arguments), rtol=1e-9, atol=1e-12)

try:
    scipy.special.ellipk(dp.asarray(a))
except TypeError as error:
    assert "x.asnumpy()" in str(error)  # compiled for NumPy alone: never a silent copy
else:
    raise AssertionError("ellipk copied to the host")

a, b = np.random.default_rng(0).normal(size=(2, 40))
for function, arguments in (
    (scipy.stats.pearsonr, (a, b)),
    (scipy.stats.ttest_ind, (a, b)),
    (scipy.stats.skewtest, (a,)),
    (scipy.stats.normaltest, (a,)),
    (scipy.stats.chisquare, (a * a,)),
    (scipy.stats.mannwhitneyu, (a, b)),
    (scipy.stats.f_oneway, (a, b)),
):
    found = function(*(dp.asarray(one) for one in arguments))
    wanted = function(*arguments)
    assert isinstance(found.pvalue, dp.ndarray), function
    np.testing.assert_allclose(found.pvalue.asnumpy(), wanted.pvalue, rtol=1e-9)
    np.testing.assert_allclose(found.statistic.asnumpy(), wanted.statistic, rtol=1e-9)
print("equal")
"""

UFUNCS = """
import numpy as np
import scipy.special
import dparray as dp

x = dp.asarray([0.25, 0.5])
for name in ("erf", "gammaln", "psi", "ndtr", "i0"):
    ufunc = getattr(scipy.special, name)
    found = ufunc(x)
    assert isinstance(found, dp.ndarray), name
    np.testing.assert_allclose(found.asnumpy(), ufunc(x.asnumpy()), rtol=1e-12)
out = dp.zeros(2)
assert scipy.special.gammainc(x, 2.0, out=out) is out
np.testing.assert_allclose(out.asnumpy(), scipy.special.gammainc(x.asnumpy(), 2.0), rtol=1e-12)
for call in (
    lambda: scipy.special.ellipk(x),
    lambda: scipy.special.gammainc(x, np.ones(2)),
):
    try:
        call()
    except TypeError as error:
        assert "copied" in str(error), error
    else:
        raise AssertionError("copied to the host")
print("equal")
"""


@pytest.mark.slow
def test_functions_in_array_api_mode() -> None:
    run(PROGRAM, {"SCIPY_ARRAY_API": "1"})


@pytest.mark.slow
def test_ufuncs_of_special_functions() -> None:
    run(UFUNCS, {})


def run(program: str, mode: dict[str, str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment | mode,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "equal", done.stderr[-3000:]
