import numpy as np

m, n, k = 20, 15, 4
i, j = np.indices((m, n))
V = np.abs(np.sin(i * 0.7 + 1) * np.cos(j * 0.5)) + 0.1 * ((i * j) % 5)
W = 0.5 + 0.4 * np.sin(np.arange(m * k).reshape(m, k))
H = 0.5 + 0.4 * np.cos(np.arange(k * n).reshape((k, n)))
eps = np.finfo(float).eps
errs = []
for it in range(50):
    H *= (W.T @ V) / (W.T @ W @ H + eps)
    W *= (V @ H.T) / (W @ H @ H.T + eps)
    errs.append(np.linalg.norm(V - W @ H, "fro"))
errs = np.asarray(errs)
U, s, Vt = np.linalg.svd(V)
rank2 = (U[:, :2] * s[:2]) @ Vt[:2]
energy = np.cumsum(s**2) / np.sum(s**2)
r = np.searchsorted(energy, 0.95) + 1
S = V.T @ V + np.eye(n)
L = np.linalg.cholesky(S)
det = np.linalg.slogdet(S)[1]
x = np.ones(n)
for _ in range(100):
    x = S @ x
    x /= np.linalg.norm(x)
lam = x @ S @ x
# LU by hand
A = S.copy()
piv = np.arange(n)
for c in range(n - 1):
    p = c + np.argmax(np.abs(A[c:, c]))
    if p != c:
        A[[c, p]] = A[[p, c]]
        piv[[c, p]] = piv[[p, c]]
    A[c + 1 :, c] /= A[c, c]
    A[c + 1 :, c + 1 :] -= np.outer(A[c + 1 :, c], A[c, c + 1 :])
Lo = np.tril(A, -1) + np.eye(n)
Up = np.triu(A)
assert np.allclose(Lo @ Up, S[piv])
# Gram-Schmidt
Q = np.zeros((m, k))
for c in range(k):
    q = V[:, c] - Q[:, :c] @ (Q[:, :c].T @ V[:, c])
    Q[:, c] = q / np.linalg.norm(q)
print("errors fall", bool((np.diff(errs) <= 1e-9).all()), int(r))
QQ = Q.T @ Q
