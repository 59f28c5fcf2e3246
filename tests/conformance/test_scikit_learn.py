"""scikit-learn's array API dispatch gives the same results for dparray and NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn requires it before SciPy is imported
pytest.importorskip("sklearn")

from sklearn import config_context, metrics
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

import dparray as dp

X, LABELS = make_classification(300, 10, random_state=0)
POINTS, TARGET = make_regression(200, 8, random_state=0)
NOISE = np.random.default_rng(0)
GUESSED = np.where(NOISE.random(300) < 0.2, 1 - LABELS, LABELS)
PREDICTED = TARGET + NOISE.standard_normal(200)

ESTIMATORS: dict[str, tuple[Callable[[], Any], tuple[np.ndarray, ...], str]] = {
    "PCA-full": (lambda: PCA(3, svd_solver="full"), (X,), "transform"),
    "PCA-covariance": (lambda: PCA(3, svd_solver="covariance_eigh"), (X,), "transform"),
    "Ridge": (lambda: Ridge(solver="svd"), (POINTS, TARGET), "predict"),
    "LDA": (lambda: LinearDiscriminantAnalysis(solver="svd"), (X, LABELS), "predict"),
    "LDA-probability": (
        lambda: LinearDiscriminantAnalysis(solver="svd"),
        (X, LABELS),
        "predict_proba",
    ),
    "StandardScaler": (StandardScaler, (X,), "transform"),
    "MinMaxScaler": (MinMaxScaler, (X,), "transform"),
    "MaxAbsScaler": (MaxAbsScaler, (X,), "transform"),
    "Normalizer": (Normalizer, (X,), "transform"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator(name: str, queue: Any) -> None:
    make, data, method = ESTIMATORS[name]
    expected = getattr(make().fit(*data), method)(data[0])
    arrays = [dp.asarray(part, sycl_queue=queue) for part in data]
    with config_context(array_api_dispatch=True):
        result = getattr(make().fit(*arrays), method)(arrays[0])
    assert isinstance(result, dp.ndarray)
    assert result.sycl_queue == queue
    # Singular vectors are determined up to their sign.
    np.testing.assert_allclose(abs(result.asnumpy()), abs(expected), rtol=1e-6, atol=1e-8)


OF_LABELS = (
    "accuracy_score",
    "confusion_matrix",
    "f1_score",
    "hamming_loss",
    "jaccard_score",
    "precision_score",
    "recall_score",
    "zero_one_loss",
)
OF_NUMBERS = (
    "explained_variance_score",
    "max_error",
    "mean_absolute_error",
    "mean_squared_error",
    "r2_score",
)
METRICS = dict.fromkeys(OF_LABELS, (LABELS, GUESSED))
METRICS |= dict.fromkeys(OF_NUMBERS, (TARGET, PREDICTED))


@pytest.mark.parametrize("name", METRICS)
def test_metric(name: str) -> None:
    data = METRICS[name]
    with config_context(array_api_dispatch=True):
        result = getattr(metrics, name)(*map(dp.asarray, data))
    value = result.asnumpy() if isinstance(result, dp.ndarray) else result
    np.testing.assert_allclose(value, getattr(metrics, name)(*data), rtol=1e-9)


@pytest.mark.parametrize("name", ["cosine_similarity", "euclidean_distances", "rbf_kernel"])
def test_pairwise(name: str) -> None:
    function = getattr(metrics.pairwise, name)
    with config_context(array_api_dispatch=True):
        result = function(dp.asarray(X[:20]), dp.asarray(X[:30]))
    assert isinstance(result, dp.ndarray)
    np.testing.assert_allclose(result.asnumpy(), function(X[:20], X[:30]), rtol=1e-6, atol=1e-6)
