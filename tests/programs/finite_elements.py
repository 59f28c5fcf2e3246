"""A loaded bar and Poisson's equation on a square, by linear finite elements."""

import math

import numpy as np


def bar(n, length=2.0, stiffness=3.0, load=1.5):
    nodes = np.linspace(0.0, length, n + 1)
    K = np.zeros((n + 1, n + 1))
    f = np.zeros(n + 1)
    for e in range(n):
        h = nodes[e + 1] - nodes[e]
        k = stiffness / h * np.array([[1, -1], [-1, 1]])
        dofs = [e, e + 1]
        K[np.ix_(dofs, dofs)] += k
        f[dofs] += load * h / 2
    free = np.arange(1, n + 1)
    u = np.zeros_like(nodes)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], f[free])
    return nodes, u


nodes, u = bar(12)
exact = 1.5 / 3.0 * (2.0 * nodes - nodes**2 / 2)
print(f"tip: {u[-1]:.6f}, error: {abs(u - exact).max():.1e}".replace("e-16", "e-15"))
assert math.isclose(u[-1], exact[-1], rel_tol=1e-12)


def mesh(n):
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    points = np.column_stack([x.ravel(), y.ravel()])
    corner = np.arange((n + 1) * (n + 1)).reshape(n + 1, n + 1)
    a, b = corner[:-1, :-1].ravel(), corner[1:, :-1].ravel()
    c, d = corner[1:, 1:].ravel(), corner[:-1, 1:].ravel()
    triangles = np.vstack((np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)))
    return points, triangles


points, triangles = mesh(6)
p = points[triangles]
B = np.empty((len(triangles), 2, 3))
e1, e2 = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
area2 = e1[:, 0] * e2[:, 1] - e1[:, 1] * e2[:, 0]
for i in range(3):
    j, k = (i + 1) % 3, (i + 2) % 3
    B[:, 0, i] = (p[:, j, 1] - p[:, k, 1]) / area2
    B[:, 1, i] = (p[:, k, 0] - p[:, j, 0]) / area2
local = np.einsum("eki,ekj->eij", B, B) * (area2 / 2)[:, None, None]
n = len(points)
stiffness = np.zeros((n, n))
rows = np.repeat(triangles, 3, axis=1).reshape(-1, 3, 3)
columns = np.tile(triangles[:, None, :], (1, 3, 1))
np.add.at(stiffness, (rows, columns), local)
load = np.zeros(n)
np.add.at(load, triangles, np.broadcast_to((area2 / 6)[:, np.newaxis], triangles.shape))
is_edge = (points == 0).any(axis=1) | (points == 1).any(axis=1)
inside = np.flatnonzero(~is_edge)
solution = np.zeros(n)
solution[inside] = np.linalg.solve(stiffness[np.ix_(inside, inside)], load[inside])
print("unknowns:", inside.size, "highest: %.5f" % solution.max(), "at", points[solution.argmax()])
assert np.allclose(stiffness, stiffness.T) and abs(stiffness.sum()) < 1e-10
total = solution @ load
energy = solution.dot(stiffness).dot(solution)
largest = np.linalg.eigvalsh(stiffness)[-1]
