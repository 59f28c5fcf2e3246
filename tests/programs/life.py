"""Conway's game of life on a torus, and glider arithmetic with windows and padding."""

import numpy as np

glider = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=bool)
board = np.zeros((12, 12), dtype=bool)
board[1:4, 1:4] = glider
board[7, 5:8] = True


def neighbors(board):
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    return sum(np.roll(board, shift, axis=(0, 1)).astype(np.uint8) for shift in shifts)


def show(board):
    for row in board:
        print("".join("#" if cell else "." for cell in row))


def step(board):
    count = neighbors(board)
    return (count == 3) | (board & (count == 2))


history = [board]
for _ in range(8):
    history.append(step(history[-1]))
show(history[-1])
population = [int(b.sum()) for b in history]
print(population, {True: "lives", False: "dead"}[bool(history[-1].any())])

padded = np.pad(board, 1, mode="wrap")
windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
by_windows = windows.sum(axis=(2, 3)) - board
assert np.array_equal(by_windows, neighbors(board))
seen = {b.tobytes() for b in history}
print(len(seen), "different boards")
rows, columns = np.nonzero(history[4])
box = slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)
print(history[4][box].astype(int))
age = np.zeros(board.shape, dtype=np.int16)
for b in history:
    age[b] += 1
age[~board & (age > 1)] *= -1
oldest = np.unravel_index(np.argmax(age), age.shape)
print("oldest at", tuple(int(i) for i in oldest), age[oldest])
where = np.argwhere(age == age.max())
packed = np.packbits(history[-1], axis=1)
boards = np.stack(history)
counts = np.bincount(neighbors(board).ravel(), minlength=9)
