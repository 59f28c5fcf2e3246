"""The Keras programs of PlaidML's documentation, run on `dparray.plaidml.keras`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        importlib.util.find_spec("keras") is None, reason="the package keras is not installed"
    ),
]

HEAD = """
import numpy as np
import dparray.plaidml as plaidml
plaidml.keras.install_backend()
"""

CONSTANTS = """
from keras import backend as K
a = K.constant([1.0, 2.0, 3.0])
b = K.constant([4.0, 5.0, 6.0])
c = K.add(a, b)
f = K.function([], [c])
assert [each.tolist() for each in f([])] == [[5.0, 7.0, 9.0]]
x = K.placeholder(shape=(None, 3))
g = K.function([x], [K.relu(x * 2 - 1), K.sum(x, axis=1)])
first, second = g([[[1.0, 0.0, 0.25]]])
assert first.tolist() == [[1.0, 0.0, 0.0]] and second.tolist() == [1.25]
"""

CONVOLUTION = """
from keras.layers import Conv2D, Input
from keras.models import Model
image = Input(shape=(32, 32, 3))
model = Model(image, Conv2D(32, (3, 3), activation="relu")(image))
x = np.random.default_rng(0).random((1, 32, 32, 3)).astype("float32")
y = model.predict(x, verbose=0)
w, b = model.get_weights()
parts = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
right = np.maximum(np.einsum("nyxcij,ijcf->nyxf", parts, w) + b, 0)
assert y.shape == (1, 30, 30, 32)
np.testing.assert_allclose(y, right, rtol=1e-4, atol=1e-5)
"""

DENSE = """
from keras.layers import Activation, Dense, Input
from keras.models import Sequential
model = Sequential([Input(shape=(10,)), Dense(20), Activation("relu")])
x = np.random.default_rng(0).random((2, 10)).astype("float32")
w, b = model.get_weights()
np.testing.assert_allclose(
    model.predict(x, verbose=0), np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-6
)
import keras, dparray
assert isinstance(keras.ops.add(x, x), dparray.ndarray)
"""

OPERATIONS = """
import keras
x = np.zeros(4)
made = keras.ops.scatter_update(x, [[0], [0], [1]], np.array([1.0, 2.0, 3.0]), reduction="add")
assert made.tolist() == [3.0, 3.0, 0.0, 0.0] and x.tolist() == [0.0] * 4
image = keras.ops.ones((1, 4, 4, 1), dtype="bfloat16")
assert keras.ops.ones_like(1, dtype="int32").tolist() == 1
parts = keras.ops.image.extract_patches(image, (2, 2))
assert str(parts.dtype) == "bfloat16" and parts.shape == (1, 2, 2, 4)
"""


TRAINING = """
import keras, dparray
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
model.compile(loss="mse")
for train in (model.fit, model.train_on_batch):
    try:
        train(np.ones((4, 3)), np.ones((4, 2)))
    except dparray.UnsupportedFeatureError as error:
        assert "cannot be trained there" in str(error) and "model.load_weights(path)" in str(error)
    else:
        raise AssertionError("trained")
"""

EVALUATION = """
import keras, dparray
x, labels = np.ones((6, 3), "float32"), np.array([0, 1, 2, 3, 0, 1])
model = keras.Sequential([keras.layers.Dense(4, activation="softmax", kernel_regularizer="l2")])
model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
loss, _ = model.evaluate(x, labels, verbose=0)
w, b = model.get_weights()
chances = np.exp(x @ w + b) / np.exp(x @ w + b).sum(axis=1, keepdims=True)
right = -np.log(chances[range(6), labels]).mean() + 0.01 * (w**2).sum()
np.testing.assert_allclose(loss, right, rtol=1e-4)
layer, image = keras.layers.Conv2D(2, 3), dparray.ones((1, 8, 8, 3), dtype="float32")
layer(image)
with dparray.profile() as profile:
    layer(image)
assert "to the host" not in str(profile), profile
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [CONSTANTS, CONVOLUTION, DENSE, OPERATIONS, TRAINING, EVALUATION],
    ids=["K", "Conv2D", "Dense", "operations", "training", "evaluation"],
)
def test_a_program_of_the_documents(program: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        capture_output=True, text=True, timeout=240, env={**os.environ, "KERAS_BACKEND": "numpy"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]


def test_the_backend_is_installed_before_keras_is_imported() -> None:
    program = """
    import sys, types
    sys.modules["keras"] = types.ModuleType("keras")  # has been imported
    import dparray.plaidml as plaidml
    try:
        plaidml.keras.install_backend()
    except plaidml.PlaidMLError as error:
        print(error)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=240, env={**os.environ, "KERAS_BACKEND": "numpy"},
    )  # fmt: skip
    assert "before the first `import keras`" in run.stdout, run.stderr[-2000:]
