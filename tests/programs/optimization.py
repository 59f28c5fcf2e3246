import numpy as np

c = np.array([3.0, 2.0, 4.0])
A = np.array([[1.0, 1.0, 2.0], [2.0, 0.0, 3.0], [2.0, 1.0, 3.0]])
b = np.array([4.0, 5.0, 7.0])
m, n = A.shape
T = np.block([[A, np.eye(m), b.reshape(-1, 1)], [-c[None, :], np.zeros((1, m)), np.zeros((1, 1))]])
basis = list(range(n, n + m))
while True:
    j = np.argmin(T[-1, :-1])
    if T[-1, j] >= -1e-9:
        break
    col = T[:-1, j]
    ratio = np.full(m, np.inf)
    pos = col > 1e-9
    ratio[pos] = T[:-1, -1][pos] / col[pos]
    i = ratio.argmin()
    if np.isinf(ratio[i]):
        raise RuntimeError("unbounded")
    T[i] /= T[i, j]
    for r in range(m + 1):
        if r != i:
            T[r] -= T[r, j] * T[i]
    basis[i] = int(j)
x = np.zeros(n + m)
x[basis] = T[:-1, -1]
obj = T[-1, -1]
# dynamic programming knapsack and edit distance
w = [2, 3, 4, 5]
v = [3, 4, 5, 6]
cap = 8
K = np.zeros((len(w) + 1, cap + 1), dtype=int)
for a in range(1, len(w) + 1):
    for d in range(cap + 1):
        K[a, d] = K[a - 1, d]
        if d >= w[a - 1]:
            K[a, d] = max(K[a, d], K[a - 1, d - w[a - 1]] + v[a - 1])
fw = np.array([[0, 3, np.inf, 7], [8, 0, 2, np.inf], [5, np.inf, 0, 1], [2, np.inf, np.inf, 0]])
for k in range(4):
    fw = np.minimum(fw, fw[:, k][:, None] + fw[k, :][None, :])
print("obj", float(obj), K[-1, -1])
basis = np.array(basis)
