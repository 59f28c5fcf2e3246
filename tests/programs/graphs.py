import numpy as np

edges = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2), (3, 4), (4, 5), (5, 3), (6, 0), (6, 3)]
n = 1 + max(max(e) for e in edges)
src, dst = np.array(edges).T
A = np.zeros((n, n))
A[dst, src] = 1
out = A.sum(axis=0)
P = A / np.where(out > 0, out, 1)
P[:, out == 0] = 1.0 / n
d = 0.85
r = np.full(n, 1.0 / n)
for i in range(100):
    nxt = d * P @ r + (1 - d) / n
    err = np.abs(nxt - r).sum()
    r = nxt
    if err < 1e-12:
        break
ranking = np.argsort(-r)
top = [(int(j), round(float(r[j]), 6)) for j in ranking[:3]]
deg = np.bincount(src, minlength=n) + np.bincount(dst, minlength=n)
reach = np.linalg.matrix_power((A + np.eye(n)).astype(int), n) > 0
L = np.diag(deg) - ((A + A.T) > 0)
w = np.linalg.eigvalsh(L.astype(float))
# csr style
order = np.argsort(src, kind="stable")
indptr = np.concatenate([[0], np.cumsum(np.bincount(src, minlength=n))])
indices = dst[order]
y = np.zeros(n)
for row in range(n):
    y[row] = r[indices[indptr[row] : indptr[row + 1]]].sum()
assert np.isclose(r.sum(), 1.0)
bfs = np.full(n, -1)
bfs[6] = 0
frontier = np.array([6])
level = 0
while frontier.size:
    level += 1
    nbr = np.unique(np.concatenate([indices[indptr[f] : indptr[f + 1]] for f in frontier]))
    frontier = nbr[bfs[nbr] < 0]
    bfs[frontier] = level
print(top)
