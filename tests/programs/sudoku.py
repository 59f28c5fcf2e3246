"""Sudoku by elimination with Boolean masks, n queens, and magic squares."""

import numpy as np

puzzle = """
53..7....
6..195...
.98....6.
8...6...3
4..8.3..1
7...2...6
.6....28.
...419..5
....8..79
"""
grid = np.array(
    [[0 if c == "." else int(c) for c in line] for line in puzzle.split()], dtype=np.int8
)
possible = np.ones((9, 9, 9), dtype=bool)


def place(row, column, digit):
    box_row, box_column = row // 3 * 3, column // 3 * 3
    possible[row, column, :] = False
    possible[row, :, digit] = False
    possible[:, column, digit] = False
    possible[box_row : box_row + 3, box_column : box_column + 3, digit] = False
    possible[row, column, digit] = True


for row, column in np.argwhere(grid):
    place(row, column, grid[row, column] - 1)
rounds = 0
solved = grid > 0
while not solved.all():
    single = (possible.sum(axis=-1) == 1) & ~solved
    found = np.argwhere(single)
    if found.size == 0:
        break
    for row, column in found:
        place(row, column, np.argmax(possible[row, column]))
    solved |= single
    rounds += 1
solution = np.where(possible.sum(-1) == 1, possible.argmax(-1) + 1, 0)
for row in solution:
    print(*row[:3], "|", *row[3:6], "|", *row[6:])
assert solved.all() and (np.sort(solution, axis=0) == np.arange(1, 10)[:, None]).all()
boxes = solution.reshape(3, 3, 3, 3).swapaxes(1, 2).reshape(9, 9)
assert all(set(box.tolist()) == set(range(1, 10)) for box in boxes)
print("rounds:", rounds, "given:", np.count_nonzero(grid), 5 in grid[0], 9 in grid[0])


def queens(n, row=0, taken=()):
    if row == n:
        yield taken
        return
    before = np.array(taken, dtype=int)
    distance = row - np.arange(row)
    for column in range(n):
        if not ((before == column) | (np.abs(before - column) == distance)).any():
            yield from queens(n, row + 1, (*taken, column))


first = next(queens(6))
board = np.zeros((6, 6), dtype=int)
board[range(6), first] = 1
print(board)
assert board.trace() <= 1 and max(np.trace(board, k) for k in range(-5, 6)) <= 1

n = 5
i, j = np.indices((n, n))
magic = n * ((i + j - 1 + n // 2) % n) + (i + 2 * j - 2) % n + 1
sums = {
    int(s)
    for s in np.concatenate(
        (magic.sum(0), magic.sum(1), [np.trace(magic), np.trace(magic[:, ::-1])])
    )
}
print(magic, sums)
unique = np.unique(magic).size
left = possible.sum()
