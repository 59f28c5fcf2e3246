"""Install dparray as the backend of the Keras that the tests import."""

from __future__ import annotations

import warnings

from dparray.plaidml import keras

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    keras.install_backend()
