"""PageRank by the power method, hubs and authorities, shortest paths, and a Markov chain."""

import numpy as np

links = {0: [1, 2], 1: [2], 2: [0, 3], 3: [0, 4, 5], 4: [5], 5: [], 6: [2, 5]}
n = len(links)
A = np.zeros((n, n), dtype=np.int64)
for source, targets in links.items():
    A[source, targets] = 1
out = A.sum(axis=1)
dangling = out == 0
with np.errstate(divide="ignore", invalid="ignore"):
    transition = np.where(dangling[:, None], 1 / n, A / out[:, None])

rank = np.full(n, 1 / n)
damping, tolerance = 0.85, 1e-12
for iteration in range(1000):
    new = (1 - damping) / n + damping * rank @ transition
    change = np.abs(new - rank).sum()
    rank = new
    if change < tolerance:
        break
order = np.argsort(-rank)
print("after", iteration, "iterations:", *(f"{page}={rank[page]:.4f}" for page in order))
assert np.isclose(rank.sum(), 1)

values, vectors = np.linalg.eig((damping * transition + (1 - damping) / n).T)
leading = np.argmax(np.abs(values))
stationary = np.real(vectors[:, leading])
stationary /= stationary.sum()

hubs = authorities = np.ones(n)
for _ in range(50):
    authorities = A.T @ hubs
    authorities = authorities / np.linalg.norm(authorities)
    hubs = A @ authorities
    hubs = hubs / np.linalg.norm(hubs)

distance = np.where(A > 0, 1.0, np.inf)
np.fill_diagonal(distance, 0)
for k in range(n):
    distance = np.minimum(distance, distance[:, k, None] + distance[None, k, :])
reachable = np.isfinite(distance)
walks = np.linalg.matrix_power(A, 4)
degree_count = np.bincount(A.sum(0))
named = {int(page): round(float(score), 6) for page, score in zip(order, rank[order])}
print(named)
print("reachable:", reachable.sum(axis=1).tolist(), "longest:", int(distance[reachable].max()))
print(walks)
distance = np.nan_to_num(distance, posinf=-1)
best = order[0]
