"""Natural cubic splines, Lagrange and Chebyshev interpolation, Bezier curves, numerical quadrature."""

import numpy as np


def natural_spline(x, y):
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    n = x.size
    h = np.diff(x)
    A = np.zeros((n, n))
    A[0, 0] = A[-1, -1] = 1
    inner = np.arange(1, n - 1)
    A[inner, inner - 1] = h[:-1]
    A[inner, inner] = 2 * (h[:-1] + h[1:])
    A[inner, inner + 1] = h[1:]
    slope = np.diff(y) / h
    rhs = np.concatenate(([0], 3 * np.diff(slope), [0]))
    c = np.linalg.solve(A, rhs)
    b = slope - h * (2 * c[:-1] + c[1:]) / 3
    d = np.diff(c) / (3 * h)

    def evaluate(points):
        points = np.atleast_1d(points)
        at = np.clip(np.searchsorted(x, points, side="right") - 1, 0, n - 2)
        t = points - x[at]
        return y[at] + t * (b[at] + t * (c[at] + t * d[at]))

    return evaluate


knots = np.array([0.0, 0.7, 1.5, 2.2, 3.0, 4.1])
spline = natural_spline(knots, np.sin(knots))
fine = np.linspace(0, 4.1, 42)
values = spline(fine)
print("spline error: %.5f" % np.max(np.abs(values - np.sin(fine))))
assert np.allclose(spline(knots), np.sin(knots))
assert spline(1.0).shape == (1,)


def lagrange(x, y, points):
    total = np.zeros(len(points))
    for i in range(len(x)):
        others = np.delete(x, i)
        total += y[i] * np.prod((points[:, None] - others) / (x[i] - others), axis=1)
    return total


runge = lambda x: 1 / (1 + 25 * x**2)
grid = np.linspace(-1, 1, 101)
even = np.linspace(-1, 1, 11)
chebyshev = np.cos((2 * np.arange(11) + 1) / 22 * np.pi)
errors = [np.abs(lagrange(x, runge(x), grid) - runge(grid)).max() for x in (even, chebyshev)]
print("Runge:", *(f"{error:.4f}" for error in errors), errors[0] > errors[1])

control = np.array([[0, 0], [1, 3], [3, 3], [4, 0]], dtype=np.float32)
s = np.linspace(0, 1, 9, dtype=np.float32)[:, None]
curve = (1 - s) ** 3 * control[0] + 3 * s * (1 - s) ** 2 * control[1]
curve += 3 * s**2 * (1 - s) * control[2] + s**3 * control[3]
length = np.linalg.norm(np.diff(curve, axis=0), axis=1).sum()
print(curve.dtype, f"length {length:.4f}", curve[4])

linear = np.interp(fine, knots, np.sin(knots), left=-1, right=1)
fit = np.polyfit(knots, np.sin(knots), 3)
cubic = np.poly1d(fit)
trapezoid = np.trapezoid(values, fine)
simpson = (
    (fine[1] - fine[0])
    / 3
    * (values[0] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum() + values[-1])
)
nodes = np.roots([1, 0, -3 / 5, 0])
print(f"{trapezoid:.5f} {cubic(2.0):.5f} {np.sort(nodes.real).round(4)}", cubic.order)
errors = np.array(errors)
integrals = np.array([trapezoid, simpson])
