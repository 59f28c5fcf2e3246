"""A Kalman filter of noisy positions, and the smoother that runs back over it."""

import numpy as np

np.random.seed(0)
dt, steps = 0.1, 60
F = np.array([[1, 0, dt, 0], [0, 1, 0, dt], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=float)
H = np.eye(2, 4)
Q = 1e-3 * np.eye(4)
R = np.diag([0.05, 0.08])
time = np.arange(steps) * dt
truth = np.c_[np.cos(time), np.sin(2 * time)]
noise = np.sin(np.outer(np.arange(1, steps + 1), [12.9898, 78.233])) * 0.2
measured = truth + noise

x = np.zeros(4)
P = np.identity(4) * 10.0
states, covariances, predicted = [], [], []
likelihood = 0.0
for z in measured:
    x = F @ x
    P = F @ P @ F.T + Q
    predicted.append((x.copy(), P.copy()))
    innovation = z - H @ x
    S = H @ P @ H.T + R
    K = P @ H.T @ np.linalg.inv(S)
    x = x + K @ innovation
    P = (np.eye(4) - K @ H) @ P
    sign, logdet = np.linalg.slogdet(2 * np.pi * S)
    likelihood -= 0.5 * (logdet + innovation @ np.linalg.solve(S, innovation))
    states.append(x)
    covariances.append(P)
states = np.array(states)
covariances = np.stack(covariances)

smooth = states.copy()
for k in reversed(range(steps - 1)):
    ahead, P_ahead = predicted[k + 1]
    gain = np.linalg.solve(P_ahead, F @ covariances[k]).T
    smooth[k] += gain @ (smooth[k + 1] - ahead)

errors = {
    name: np.sqrt(np.mean((values[:, :2] - truth) ** 2))
    for name, values in {"measured": measured, "filtered": states, "smooth": smooth}.items()
}
for name, error in errors.items():
    print(f"{name:>9}: {error:.4f}")
print(f"log likelihood {likelihood:8.3f}")
assert errors["filtered"] < 1
assert np.all(np.linalg.eigvalsh(covariances[-1]) > 0)
uncertainty = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
best = min(errors.values())
