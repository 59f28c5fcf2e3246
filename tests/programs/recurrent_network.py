"""Forward passes of a recurrent network, an LSTM, attention and a convolution, with parameters by name."""

import numpy as np


def made(*shape, dtype=np.float32):
    """Return weights that look random and are the same everywhere."""
    size = int(np.prod(shape))
    return (np.sin(np.arange(1, size + 1) * 12.9898) * 0.5).astype(dtype).reshape(shape)


sigmoid = lambda x: 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


batch, steps, features, hidden = 2, 5, 3, 4
x = made(batch, steps, features)
params = {
    "Wx": made(features, 4 * hidden),
    "Wh": made(hidden, 4 * hidden),
    "b": np.zeros(4 * hidden, "float32"),
}
h = c = np.zeros((batch, hidden), dtype=x.dtype)
outputs = []
for t in range(steps):
    gates = x[:, t] @ params["Wx"] + h @ params["Wh"] + params["b"]
    i, f, o, g = np.split(gates, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    outputs.append(h)
outputs = np.stack(outputs, axis=1)
print(
    outputs.dtype,
    outputs.shape,
    f"{outputs.mean():.5f}",
    "parameters:",
    sum(p.size for p in params.values()),
)

q, k, v = (np.einsum("bsh,hd->bsd", outputs, made(hidden, hidden)) for _ in range(3))
scores = np.matmul(q, k.transpose(0, 2, 1)) / np.sqrt(np.float32(hidden))
causal = np.triu(np.ones((steps, steps), dtype=bool), 1)
scores = np.where(causal, -np.inf, scores)
weights = softmax(scores)
attended = weights @ v
assert np.allclose(weights.sum(-1), 1) and np.all(weights[:, causal] == 0)

vocabulary = np.array([3, 1, 4, 1, 5])
one_hot = np.eye(6, dtype=np.float32)[vocabulary]
embedded = one_hot @ made(6, hidden)
logits = attended.reshape(-1, hidden) @ made(hidden, 6)
targets = np.resize(vocabulary, logits.shape[0])
log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
loss = -log_probabilities[np.arange(len(targets)), targets].mean()
print(f"loss {loss:.5f}", loss.dtype, logits.argmax(axis=-1))

image = made(1, 6, 6)
kernels = made(2, 1, 3, 3)
patches = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
convolved = np.tensordot(kernels, patches, axes=([1, 2, 3], [0, 3, 4]))
pooled = convolved.reshape(2, 2, 2, 2, 2).max(axis=(2, 4))
normalised = (pooled - pooled.mean(axis=(1, 2), keepdims=True)) / (
    pooled.std(axis=(1, 2), keepdims=True) + 1e-5
)
leaky = np.maximum(0.1 * normalised, normalised)
mask = np.arange(outputs.size).reshape(outputs.shape) % 3 != 0
dropped = outputs * mask / 0.7
clipped = np.clip(outputs, -0.1, 0.1)
norm = np.sqrt(sum(np.sum(p**2) for p in params.values()))
print(f"norm {norm:.4f}", leaky.round(3).tolist()[0])
