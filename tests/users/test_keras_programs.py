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
import dparray as dp
step = a - 0.5 * dp.grad(lambda a: K.sum(K.square(a - b)))(a)
assert step.tolist() == b.tolist()
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
model.compile("sgd", loss="mse")
model.train_on_batch(x, np.zeros_like(y))
slope = 0.01 * 2 * right / right.size
np.testing.assert_allclose(
    model.get_weights()[0], w - np.einsum("nyxcij,nyxf->ijcf", parts, slope), rtol=1e-4, atol=1e-6
)
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
model.compile("sgd", loss="mse")
model.train_on_batch(x, np.zeros((2, 20)))
slope = 0.01 * 2 * np.maximum(x @ w + b, 0) / 40
np.testing.assert_allclose(model.get_weights()[0], w - x.T @ slope, rtol=1e-4, atol=1e-6)
"""

OPERATIONS = """
import keras
x = np.zeros(4)
import dparray as dp
x2, v = dp.ones((2, 2)), keras.Variable(np.full((2, 2), 3.0), dtype="float64")
assert (x2 @ v + v).tolist() == [[9.0] * 2] * 2 and float(dp.sum(v)) == 12.0

def weighted(k):  # of which a variable is the value
    with keras.StatelessScope(state_mapping=[(v, k)]):
        return dp.sum(dp.multiply(k, v) + (k - v) * v + x2 * v)

assert dp.grad(weighted)(x2 * 5).tolist() == [[11.0] * 2] * 2
made = keras.ops.scatter_update(x, [[0], [0], [1]], np.array([1.0, 2.0, 3.0]), reduction="add")
assert made.tolist() == [3.0, 3.0, 0.0, 0.0] and x.tolist() == [0.0] * 4
image = keras.ops.ones((1, 4, 4, 1), dtype="bfloat16")
assert keras.ops.ones_like(1, dtype="int32").tolist() == 1
parts = keras.ops.image.extract_patches(image, (2, 2))
assert str(parts.dtype) == "bfloat16" and parts.shape == (1, 2, 2, 4)
"""


TRAINING = """
import keras
from keras import layers
keras.utils.set_random_seed(0)
numbers = np.random.default_rng(0)
x = numbers.normal(size=(60, 3)).astype("float32")
y = x @ np.array([[1.0], [-2.0], [0.5]], dtype="float32") + 1
model = keras.Sequential([layers.Dense(1, kernel_regularizer=keras.regularizers.L1L2(l2=0.1))])
model.compile(keras.optimizers.SGD(0.1), loss="mse", metrics=["mae"])
model.build((None, 3))
w, b = model.get_weights()
error = x @ w + b - y
expected = (error**2).mean() + 0.1 * (w**2).sum(), abs(error).mean()
np.testing.assert_allclose(model.train_on_batch(x, y), expected, rtol=1e-5)
np.testing.assert_allclose(model.test_on_batch(x, y), model.evaluate(x, y, verbose=0), rtol=1e-5)
after = model.get_weights()
np.testing.assert_allclose(after[0], w - 0.2 * (x.T @ error / 60 + 0.1 * w), rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(after[1], b - 0.2 * error.mean(), rtol=1e-4, atol=1e-6)

class Named(keras.Model):
    train = eval = None  # Keras' trainer for PyTorch calls methods of these names.

inputs = keras.Input((3,))
normal = layers.BatchNormalization(momentum=0.5)
parts = normal(inputs)
parts = layers.Dense(8, activation="tanh", activity_regularizer=keras.regularizers.L1L2())(parts)
made = layers.Dense(1)(layers.Dropout(0.1)(parts))
model = Named(inputs, made)
for optimizer in (keras.optimizers.Muon(0.01), keras.optimizers.Adam(0.02)):
    optimizer.gradient_accumulation_steps = 2
    model.compile(optimizer, loss="huber", metrics=["mae"], steps_per_execution=2)
    expected = (np.array(normal.moving_mean) + x.mean(axis=0)) / 2
    model.train_on_batch(x, y)
    np.testing.assert_allclose(np.array(normal.moving_mean), expected, rtol=1e-4, atol=1e-5)
    history = model.fit(
        x, y, batch_size=12, epochs=40, verbose=0, validation_split=0.2,
        callbacks=[keras.callbacks.EarlyStopping(patience=30)],
    ).history
assert history["loss"][-1] < 0.5 and history["val_mae"][-1] < 0.6, history
model.trainable = False
model.compile("sgd", loss="mse")
before = model.get_weights()
model.fit(x, y, epochs=1, verbose=0)
assert all((v == w).all() for v, w in zip(before, model.get_weights()))
"""

NETWORKS = """
import keras
from keras import layers
keras.utils.set_random_seed(0)
numbers = np.random.default_rng(0)
series = keras.Input((5, 3))
attention = layers.MultiHeadAttention(2, 4)(series, series)
head = layers.Dense(2)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(attention)))
convolutions = [
    layers.Conv2D(3, 3, activation="softplus", padding="same"), layers.MaxPooling2D(),
    layers.SeparableConv2D(4, 2, strides=2), layers.Conv2DTranspose(2, 2), layers.Flatten(),
]
cases = [
    (keras.Model(series, head), (8, 5, 3)),
    (keras.Sequential([keras.Input((5, 3)), layers.LSTM(4), layers.Dense(2)]), (8, 5, 3)),
    (keras.Sequential([keras.Input((5, 3)), layers.GRU(4), layers.Dense(2)]), (8, 5, 3)),
    (keras.Sequential([keras.Input((9, 9, 2)), *convolutions, layers.Dense(2)]), (8, 9, 9, 2)),
]
for model, shape in cases:
    x, y = numbers.normal(size=shape), numbers.normal(size=(8, 2))
    model.compile(keras.optimizers.SGD(1.0), loss="mse")
    before, losses = model.get_weights(), []
    along = [numbers.normal(size=w.shape) for w in before]
    for step in (1e-3, -1e-3):
        model.set_weights([w + step * d for w, d in zip(before, along)])
        losses.append(float(keras.ops.mean(keras.ops.square(model(x) - y))))
    model.set_weights(before)
    model.train_on_batch(x, y)
    moved = zip(before, model.get_weights(), along)
    found = sum(((w - after) * d).sum() for w, after, d in moved)
    np.testing.assert_allclose(found, (losses[0] - losses[1]) / 2e-3, rtol=2e-3, atol=1e-3)
"""

STEPS = """
import keras, dparray
from keras import layers
numbers = np.random.default_rng(0)
x = numbers.random((50, 6)).astype("float32")
y = x.sum(axis=1, keepdims=True)

class Scaled(layers.Layer):
    def __init__(self):
        super().__init__()
        self.factor = 1.0

    def call(self, x):
        return x * self.factor

def trained(middle, run_eagerly):
    keras.utils.set_random_seed(0)
    first, scaled = layers.Dense(5, activation="tanh"), Scaled()
    model = keras.Sequential([keras.Input((6,)), first, middle(), scaled, layers.Dense(1)])
    model.compile("adam", loss="mse", metrics=["mae"], run_eagerly=run_eagerly)
    losses, optimizer = [], model.optimizer
    changes = [(scaled, "factor", 0.5), (optimizer, "learning_rate", 0.1)]
    for change in (*changes, (optimizer, "clipnorm", 0.01), (first, "trainable", False)):
        losses += model.fit(x, y, batch_size=16, epochs=3, verbose=0).history["loss"]
        setattr(*change)
    losses += model.fit(x, y, batch_size=16, epochs=3, verbose=0).history["loss"]
    step = vars(model)["_recorded_step"]
    return model.get_weights(), losses, step is not None and step.run is not None

for middle, can_replay in ((layers.BatchNormalization, True), (lambda: layers.Dropout(0.3), False)):
    weights, losses, is_replayed = trained(middle, False)
    expected, right, _ = trained(middle, True)
    assert is_replayed == can_replay
    np.testing.assert_allclose(losses, right, rtol=1e-5)
    assert all(np.allclose(w, e, rtol=1e-4, atol=1e-6) for w, e in zip(weights, expected))

labels = dparray.asarray([[1, 0], [-1, 2]])
for axis in (-1, 0, 1):
    one_hot = keras.ops.one_hot(labels, 3, axis=axis)
    right = np.moveaxis(np.array([[[0, 1, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 1]]]), -1, axis)
    assert one_hot.tolist() == right.tolist() and str(one_hot.dtype) == "float32"
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
    [CONSTANTS, CONVOLUTION, DENSE, OPERATIONS, TRAINING, NETWORKS, STEPS, EVALUATION],
    ids=["K", "Conv2D", "Dense", "operations", "training", "networks", "steps", "evaluation"],
)
def test_a_program_of_the_documents(program: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        capture_output=True, text=True, timeout=240, env={**os.environ, "KERAS_BACKEND": "numpy"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]


def test_a_device_that_is_not_the_default_one() -> None:
    program = """
    import numpy as np
    import dparray as dp
    keras = dp.plaidml.keras.install_backend(device="host:cpu")
    layers = keras.layers
    model = keras.Sequential([
        layers.Input((6,)), layers.Embedding(9, 4), layers.GRU(3), layers.Dropout(0.2),
        layers.LayerNormalization(), layers.Dense(2, kernel_regularizer="l2"),
    ])
    model.compile("adam", loss="mse", metrics=["mae"])
    x, y = np.arange(48).reshape(8, 6) % 9, np.ones((8, 2), "float32")
    model.fit(x, y, verbose=0, epochs=2, batch_size=4)
    print(model.evaluate(x, y, verbose=0), model.predict(x, verbose=0).shape)
    found = {each.value.device for each in model.weights}
    assert found == {dp.zeros(1, device="host:cpu").device}, found
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
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
