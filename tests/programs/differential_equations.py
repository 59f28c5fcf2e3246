import numpy as np


def lorenz(s, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = s
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def rk4(f, s, h):
    k1 = f(s)
    k2 = f(s + h / 2 * k1)
    k3 = f(s + h / 2 * k2)
    k4 = f(s + h * k3)
    return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


s = np.array([1.0, 1.0, 1.0])
traj = np.empty((100, 3))
traj[0] = s
for i in range(1, 100):
    traj[i] = rk4(lorenz, traj[i - 1], 0.005)
nx = 50
x = np.linspace(0, 1, nx)
dx = x[1] - x[0]
dt = 0.4 * dx**2
u = np.exp(-100 * (x - 0.5) ** 2)
for _ in range(100):
    un = u.copy()
    u[1:-1] = un[1:-1] + dt / dx**2 * (un[2:] - 2 * un[1:-1] + un[:-2])
    u[0] = u[-1] = 0
# tridiagonal implicit step (Thomas)
r = dt / dx**2
a = np.full(nx - 1, -r)
bb = np.full(nx, 1 + 2 * r)
cc = np.full(nx - 1, -r)
d = u.copy()
for i in range(1, nx):
    f = a[i - 1] / bb[i - 1]
    bb[i] -= f * cc[i - 1]
    d[i] -= f * d[i - 1]
sol = np.zeros(nx)
sol[-1] = d[-1] / bb[-1]
for i in range(nx - 2, -1, -1):
    sol[i] = (d[i] - cc[i] * sol[i + 1]) / bb[i]
T = (
    np.diag(1 + 2 * r * np.ones(nx))
    + np.diag(-r * np.ones(nx - 1), 1)
    + np.diag(-r * np.ones(nx - 1), k=-1)
)
assert np.allclose(T @ sol, u)
# wave
c = 1.0
w0 = np.sin(np.pi * x)
w1 = w0.copy()
for _ in range(60):
    w2 = np.zeros_like(w1)
    w2[1:-1] = 2 * w1[1:-1] - w0[1:-1] + 0.5 * (w1[2:] - 2 * w1[1:-1] + w1[:-2])
    w0, w1 = w1, w2
g = np.gradient(u, dx)
lap = np.gradient(np.gradient(u, dx), dx)
integral = np.trapezoid(u, x)
simpson = dx / 3 * (u[0] + 4 * u[1:-1:2].sum() + 2 * u[2:-1:2].sum() + u[-1])


def newton(f, df, x0):
    x = x0
    while abs(f(x)) > 1e-12:
        x = x - f(x) / df(x)
    return x


root = newton(lambda z: np.cos(z) - z, lambda z: -np.sin(z) - 1, np.float64(1.0))
root2 = newton(lambda z: np.cos(z) - z, lambda z: -np.sin(z) - 1, 1.0)
print("end", np.round(traj[-1], 4), round(float(integral), 6))
