"""Conway's game of life: a compiled function with a loop over rows in parallel."""

import dparray as dp


@dp.jit
def step(cells, after, ages):
    height, width = cells.shape
    for i in dp.prange(height):
        for j in range(width):
            neighbors = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    neighbors += cells[(i + di) % height, (j + dj) % width]
            neighbors -= cells[i, j]
            after[i, j] = neighbors == 3 or (neighbors == 2 and cells[i, j] == 1)
            ages[i, j] = ages[i, j] * 0.97 + after[i, j] * 0.03


def picture(height: int = 300, width: int = 480, steps: int = 300) -> dp.ndarray:
    noise = dp.random.default_rng(3).random((height, width))
    cells = (noise < 0.3).astype("int32")
    after, ages = dp.empty_like(cells), dp.zeros((height, width))
    for _ in range(steps):
        step(cells, after, ages)
        cells, after = after, cells
    shade = dp.sqrt(ages / ages.max())
    return (255 * dp.stack([cells * 0.9, shade, 0.3 + 0.7 * shade], axis=-1)).astype("uint8")
