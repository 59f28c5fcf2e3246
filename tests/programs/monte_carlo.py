import numpy as np

# quasi random numbers so that both agree
n = 4096
i = np.arange(1, n + 1)


def van_der_corput(i, base):
    q = np.zeros(i.shape, dtype=float)
    f = 1.0 / base
    k = i.copy()
    while np.any(k > 0):
        q += f * (k % base)
        k //= base
        f /= base
    return q


u, v = van_der_corput(i, 2), van_der_corput(i, 3)
inside = u**2 + v**2 <= 1
pi_est = 4 * np.count_nonzero(inside) / n
z = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
S0, K, r, sigma, T = 100.0, 105.0, 0.02, 0.2, 1.0
ST = S0 * np.exp((r - 0.5 * sigma**2) * T + sigma * np.sqrt(T) * z)
payoff = np.maximum(ST - K, 0)
price = np.exp(-r * T) * payoff.mean()
se = payoff.std(ddof=1) / np.sqrt(n)
ci = (price - 1.96 * se, price + 1.96 * se)
running = np.cumsum(payoff) / np.arange(1, n + 1)
q = np.quantile(ST, [0.05, 0.5, 0.95])
counts, edges = np.histogram(ST, bins="auto") if False else np.histogram(ST, bins=20)
centers = 0.5 * (edges[1:] + edges[:-1])
steps = np.where(u > 0.5, 1, -1)
walk = np.concatenate(([0], np.cumsum(steps)))
first = np.argmax(walk >= 3) if (walk >= 3).any() else -1
np.random.seed(0)
sample = np.random.randn(10, 3)
assert sample.shape == (10, 3)
rng = np.random.default_rng(42)
assert abs(rng.normal(size=1000).mean()) < 0.2
print("pi %.4f price %.4f +- %.4f" % (pi_est, price, se))
ci = np.array(ci)
