import numpy as np

x = np.linspace(0, 10, 50)
noise = np.sin(37 * x) * 0.3
y = 2.5 * x + 1.0 + noise
A = np.vstack([x, np.ones(len(x))]).T
m, c = np.linalg.lstsq(A, y, rcond=None)[0]
coef = np.polyfit(x, y, 2)
fit = np.polyval(coef, x)
p = np.poly1d(coef)
ss_res = np.sum((y - p(x)) ** 2)
ss_tot = np.sum((y - np.mean(y)) ** 2)
r2 = 1 - ss_res / ss_tot
X = np.column_stack((np.ones_like(x), x, x**2, np.sin(x)))
beta = np.linalg.inv(X.T @ X) @ X.T @ y
beta2 = np.linalg.solve(X.T.dot(X), X.T.dot(y))
lam = 0.1
ridge = np.linalg.solve(X.T @ X + lam * np.eye(X.shape[1]), X.T @ y)
Q, R = np.linalg.qr(X)
U, s, Vt = np.linalg.svd(X, full_matrices=False)
pinv = np.linalg.pinv(X)
w = np.exp(-((x - 5) ** 2) / 4)
W = np.diag(w)
wls = np.linalg.solve(X.T @ W @ X, X.T @ W @ y)
# gradient descent
theta = np.zeros(2)
for it in range(200):
    grad = 2 / len(x) * A.T @ (A @ theta - y)
    theta -= 0.01 * grad
    if np.linalg.norm(grad) < 1e-6:
        break
leverage = np.einsum("ij,ji->i", X, pinv)
print("slope", round(float(m), 4), "r2", round(float(r2), 4), np.allclose(beta, beta2))
rec = Q @ R
