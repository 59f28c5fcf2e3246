import numpy as np


def step(g):
    n = sum(
        np.roll(np.roll(g, i, 0), j, 1)
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i != 0 or j != 0)
    )
    return ((n == 3) | ((g == 1) & (n == 2))).astype(int)


g = np.zeros((32, 32), dtype=int)
glider = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]])
g[1:4, 1:4] = glider
g[10:12, 10:12] = 1
g[20, 15:18] = 1
pop = []
for _ in range(25):
    g = step(g)
    pop.append(g.sum())
pop = np.array(pop)
live = np.argwhere(g)
rule = 110
bits = np.array([(rule >> i) & 1 for i in range(8)], dtype=np.uint8)
row = np.zeros(64, dtype=np.uint8)
row[-2] = 1
rows = [row]
for _ in range(30):
    l, r = np.roll(row, 1), np.roll(row, -1)
    row = bits[4 * l + 2 * row + r]
    rows.append(row)
ca = np.vstack(rows)
if (g == 0).all():
    print("extinct")
else:
    print("alive", int(pop[-1]), np.unique(pop).size)
