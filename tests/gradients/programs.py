"""Twenty whole programs: scalar functions of which the first arguments are differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dparray as dp

_random = np.random.default_rng(1)


def _n(*shape: int) -> np.ndarray:
    return _random.normal(size=shape)


class Program(NamedTuple):
    """A program: the function, its arguments on the host, and the number of differentiated ones."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    count: int


PROGRAMS: dict[str, Program] = {}


def program(*arguments: Any, count: int = 1) -> Callable[..., Any]:
    """Add a function to the programs."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(function, arguments, count)
        return function

    return add


_features = _n(60, 5)


@program(_n(5), np.asarray(0.1), _features, (_features @ _n(5) > 0) * 1.0, count=2)
def logistic_regression(w: Any, b: Any, x: Any, y: Any) -> Any:
    z = x @ w + b
    return dp.mean(dp.logaddexp(0.0, z) - y * z) + 0.01 * dp.sum(w**2)


_layers = [(_n(5, 16) * 0.3, _n(16)), (_n(16, 8) * 0.3, _n(8)), (_n(8, 3) * 0.3, _n(3))]


@program(_layers, _features, _random.integers(0, 3, 60))
def cross_entropy_of_a_network(layers: Any, x: Any, labels: Any) -> Any:
    for weights, bias in layers[:-1]:
        x = dp.tanh(x @ weights + bias)
    logits = x @ layers[-1][0] + layers[-1][1]
    return -dp.mean(dp.special.log_softmax(logits, axis=1)[dp.arange(60), labels])


@program(_n(10))
def rosenbrock(x: Any) -> Any:
    return dp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@program(np.array([1.1, 0.4, 0.1, 0.4]), np.abs(_n(12, 2)))
def fit_of_lotka_volterra(p: Any, data: Any) -> Any:
    def slope(s: Any) -> Any:
        return dp.stack([p[0] * s[0] - p[1] * s[0] * s[1], p[2] * s[0] * s[1] - p[3] * s[1]])

    state, loss = dp.asarray([1.0, 0.5]), 0.0
    for i in range(12):
        k1 = slope(state)
        k2 = slope(state + 0.05 * k1)
        k3 = slope(state + 0.05 * k2)
        k4 = slope(state + 0.1 * k3)
        state = state + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        loss = loss + dp.sum((state - data[i]) ** 2)
    return loss


@program(np.array([0.1, -0.3, -2.0]), np.sort(_n(20)), _n(20))
def gaussian_process(h: Any, x: Any, y: Any) -> Any:
    d = x[:, None] - x[None, :]
    k = dp.exp(2 * h[0]) * dp.exp(-0.5 * (d / dp.exp(h[1])) ** 2) + dp.exp(2 * h[2]) * dp.eye(20)
    factor = dp.linalg.cholesky(k)
    return 0.5 * y @ dp.linalg.solve(k, y) + dp.sum(dp.log(dp.diagonal(factor)))


@program(_n(12, 4), _n(9, 4), _n(12, 9), (_random.random((12, 9)) > 0.5) * 1.0, count=2)
def matrix_factorization(u: Any, v: Any, a: Any, mask: Any) -> Any:
    return dp.sum(mask * (a - u @ v.T) ** 2) + 0.1 * (dp.sum(u**2) + dp.sum(v**2))


@program({k: _n(8, 8) * 0.4 for k in ("q", "k", "v", "o")}, _n(2, 6, 8))
def attention(w: Any, x: Any) -> Any:
    def heads(t: Any) -> Any:
        return dp.permute_dims(dp.reshape(t, (2, 6, 2, 4)), (0, 2, 1, 3))

    q, k, v = heads(x @ w["q"]), heads(x @ w["k"]), heads(x @ w["v"])
    a = dp.special.softmax(q @ dp.swapaxes(k, -1, -2) / 2.0, axis=-1) @ v
    y = x + dp.reshape(dp.permute_dims(a, (0, 2, 1, 3)), (2, 6, 8)) @ w["o"]
    mean = dp.mean(y, axis=-1, keepdims=True)
    return dp.mean((y - mean) ** 2 / dp.sqrt(dp.var(y, axis=-1, keepdims=True) + 1e-5))


@program(np.abs(_n(16, 16)) * 0.1 + 0.5, _n(16, 16), _n(16, 16))
def conductivity_of_a_plate(c: Any, u: Any, target: Any) -> Any:
    u = dp.zeros_like(c) + u
    for _ in range(6):
        flow = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += 0.1 * c[1:-1, 1:-1] * flow
    return dp.sum((u - target) ** 2)


@program(_n(6), _n(40), _n(40))
def deconvolution(k: Any, s: Any, target: Any) -> Any:
    return dp.sum((dp.convolve(s, k, "same") - target) ** 2) + 0.1 * dp.sum(dp.abs(k))


@program(_n(64), _n(64))
def spectral_filter(w: Any, x: Any) -> Any:
    filtered = dp.fft.irfft(dp.fft.rfft(x) * dp.fft.rfft(w), 64)
    return dp.sum(filtered**2) + dp.sum(dp.abs(dp.fft.fft(w)))


@program(_n(3, 2), _n(3, 2) * 0.1, np.ones(3) / 3, _n(50, 2), count=3)
def gaussian_mixture(mu: Any, ls: Any, w: Any, x: Any) -> Any:
    z = (x[:, None] - mu) / dp.exp(ls)
    logs = -0.5 * dp.sum(z**2, axis=-1) - dp.sum(ls, axis=-1) + dp.log(w)
    return -dp.sum(dp.special.logsumexp(logs, axis=1))


@program(_n(8, 3), np.abs(_n(8)) + 1)
def energy_of_bodies(x: Any, mass: Any) -> Any:
    d = x[:, None] - x[None]
    r = dp.sqrt(dp.sum(d * d, axis=-1) + 0.01)
    return -0.5 * dp.sum(mass[:, None] * mass[None] / r)


@program(_n(4, 4), _n(4, 4), _n(10, 4), count=2)
def recurrent_network(w: Any, v: Any, xs: Any) -> Any:
    h = dp.zeros(4)
    for i in range(10):
        h = dp.tanh(h @ w + xs[i] @ v)
    return dp.sum(h**2)


@program(np.array([100.0, 0.2, 0.05, 1.0]), np.linspace(80, 120, 9))
def greeks_of_options(p: Any, strikes: Any) -> Any:
    s, v, r, t = p[0], p[1], p[2], p[3]
    d1 = (dp.log(s / strikes) + (r + v * v / 2) * t) / (v * dp.sqrt(t))
    d2 = d1 - v * dp.sqrt(t)
    prices = s * dp.special.ndtr(d1) - strikes * dp.exp(-r * t) * dp.special.ndtr(d2)
    return dp.sum(prices)


@program(_n(5, 7), _n(7), np.array([0, 2, 1, 2, 6, 3]), count=2)
def embedding(table: Any, w: Any, ids: Any) -> Any:
    return dp.sum(dp.tanh(dp.take(table.T, ids, axis=0)) ** 2) + dp.sum(w[ids] ** 3)


@program(np.array([0.3, 0.5, 1.0]), _n(4, 3), count=2)
def rotation(a: Any, points: Any) -> Any:
    c, s = dp.cos(a), dp.sin(a)
    turn = dp.zeros_like(a, shape=(3, 3))
    turn[0, 0] = turn[1, 1] = c[2]
    turn[0, 1], turn[1, 0] = -s[2], s[2]
    turn[2, 2] = 1.0
    return dp.sum(dp.cross(points @ turn.T, points) ** 2)


@program(np.abs(_n(6)) + 0.2, _n(6, 6))
def design_by_eigenvalues(d: Any, a: Any) -> Any:
    w, v = dp.linalg.eigh((a + a.T) / 2 + dp.diag(d))
    return w[0] + dp.sum(dp.sort(d)[:2]) + dp.sum(v[:, 0] ** 4)


@program(_n(2, 3, 6, 6), _n(4, 3, 3, 3) * 0.3, count=2)
def convolution_with_pooling(x: Any, w: Any) -> Any:
    windows = [x[:, :, i : i + 4, j : j + 4] for i in range(3) for j in range(3)]
    y = dp.einsum("bckhw,ock->bohw", dp.stack(windows, axis=2), dp.reshape(w, (4, 3, 9)))
    y = dp.maximum(y, 0.0)
    return dp.sum(dp.max(dp.reshape(y, (2, 4, 2, 2, 2, 2)), axis=(3, 5)) ** 2)


@program(_n(12), np.tri(12)[::-1].copy(), _n(12), np.abs(_n(12)) + 1.0)
def poisson_regression(w: Any, x: Any, t: Any, k: Any) -> Any:
    rates = dp.clip(x @ w * 0.1, -5, 5)
    return dp.sum(dp.exp(rates) - k * rates) + dp.linalg.norm(w - t)


@program(_n(5, 3), _n(7, 3), np.ones(5) / 5, np.ones(7) / 7)
def transport_by_sinkhorn(a: Any, b: Any, p: Any, q: Any) -> Any:
    c = dp.sum((a[:, None] - b[None]) ** 2, axis=-1)
    k = dp.exp(-c)
    u = dp.ones_like(p)
    for _ in range(20):
        v = q / (u @ k)
        u = p / (k @ v)
    return dp.sum(u[:, None] * k * v[None] * c)
