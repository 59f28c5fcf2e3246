"""Linear programming by the simplex method, an assignment by the Hungarian idea, and game theory."""

import numpy as np


def simplex(c, A, b):
    m, n = A.shape
    tableau = np.zeros((m + 1, n + m + 1))
    tableau[:m, :n] = A
    tableau[:m, n : n + m] = np.eye(m)
    tableau[:m, -1] = b
    tableau[-1, :n] = -c
    basis = list(range(n, n + m))
    pivots = 0
    while (tableau[-1, :-1] < -1e-10).any():
        column = int(tableau[-1, :-1].argmin())
        positive = tableau[:-1, column] > 1e-10
        if not positive.any():
            raise ValueError("unbounded")
        ratios = np.full(m, np.inf)
        np.divide(tableau[:-1, -1], tableau[:-1, column], out=ratios, where=positive)
        row = np.argmin(ratios)
        tableau[row] /= tableau[row, column]
        others = np.arange(m + 1) != row
        tableau[others] -= np.outer(tableau[others, column], tableau[row])
        basis[row] = column
        pivots += 1
    x = np.zeros(n + m)
    x[basis] = tableau[:-1, -1]
    return x[:n], tableau[-1, -1], pivots


c = np.array([3.0, 5.0, 4.0])
A = np.array([[2.0, 3.0, 0.0], [0.0, 2.0, 5.0], [3.0, 2.0, 4.0]])
b = np.array([8.0, 10.0, 15.0])
x, value, pivots = simplex(c, A, b)
print(f"x = {np.round(x, 4)}, value = {value:.4f} after {pivots} pivots")
slack = b - A @ x
assert (slack > -1e-9).all() and np.isclose(c @ x, value)
try:
    simplex(np.array([1.0]), np.array([[-1.0]]), np.array([1.0]))
except ValueError as error:
    print("error:", error)

# A zero-sum game by fictitious play.
game = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) + 0.5 * np.eye(3)
rows, columns = np.zeros(3, int), np.zeros(3, int)
rows[0] = columns[0] = 1
for _ in range(200):
    rows[(game @ columns).argmax()] += 1
    columns[(rows @ game).argmin()] += 1
mixed = rows / rows.sum()

# Every assignment of three tasks, compared.
cost = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
grid = np.array(np.meshgrid(*[range(3)] * 3, indexing="ij")).reshape(3, -1).T
permutations = grid[[len(set(map(int, p))) == 3 for p in grid]]
totals = cost[np.arange(3), permutations].sum(axis=1)
best = permutations[totals.argmin()]
print("assignment", best, "costs", totals.min(), "of", np.unique(totals))
reduced = cost - cost.min(axis=1, keepdims=True)
reduced -= reduced.min(0)
totals = np.sort(totals)
