"""The table of the page on SciPy functions: functions that take arrays without a copy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("scipy")

PROGRAM = """
import numpy as np
import dparray as dp
from scipy import cluster, fft, integrate, linalg, signal, special, stats
import scipy.cluster.vq
v = np.random.default_rng(0).random(20)
h = v[:16].reshape(4, 4)
V, H = dp.asarray(v), dp.asarray(h)
calls = {
    "gamma": (special.gamma, 1, V), "erf": (special.erf, 1, V), "expit": (special.expit, 1, V),
    "betainc": (special.betainc, 3, V), "fftshift": (fft.fftshift, 1, V),
    "logsumexp": (special.logsumexp, 1, V), "softmax": (special.softmax, 1, V),
    "zscore": (stats.zscore, 1, V), "skew": (stats.skew, 1, V),
    "kurtosis": (stats.kurtosis, 1, V), "entropy": (stats.entropy, 1, V),
    "rankdata": (stats.rankdata, 1, V), "gmean": (stats.gmean, 1, V),
    "variation": (stats.variation, 1, V), "fft": (fft.fft, 1, V), "rfft2": (fft.rfft2, 1, H),
    "fftconvolve": (signal.fftconvolve, 2, V), "hilbert": (signal.hilbert, 1, V),
    "trapezoid": (integrate.trapezoid, 1, V),
    "cumulative_trapezoid": (integrate.cumulative_trapezoid, 1, V),
    "block_diag": (linalg.block_diag, 2, H), "whiten": (cluster.vq.whiten, 1, H),
    "expm": (linalg.expm, 1, H), "schur": (linalg.schur, 1, H),
}
for name, (function, count, x) in calls.items():
    wanted = function(*[x.asnumpy()] * count)
    try:
        found = function(*[x] * count)
    except dp.HostConversionError:
        continue
    assert isinstance(found, dp.ndarray), name
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-9, err_msg=name)
    print(name)
"""
WITHOUT = {"gamma", "erf", "expit", "betainc", "fftshift"}
WITH = WITHOUT | {
    *("logsumexp", "softmax", "zscore", "skew", "kurtosis", "entropy", "rankdata", "gmean"),
    *("variation", "fft", "rfft2", "fftconvolve", "hilbert", "trapezoid"),
    *("cumulative_trapezoid", "block_diag", "whiten"),
}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "wanted"), [({}, WITHOUT), ({"SCIPY_ARRAY_API": "1"}, WITH)], ids=["", "option"]
)
def test_functions_that_take_arrays_without_a_copy(
    options: dict[str, str], wanted: set[str]
) -> None:
    others = {name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=others | options,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == wanted
