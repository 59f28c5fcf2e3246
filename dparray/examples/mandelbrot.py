"""The Mandelbrot set: a kernel that runs once for each pixel."""

import dparray as dp


@dp.kernel
def escape_times(item, left, top, step, times):
    row, column = item.get_id(0), item.get_id(1)
    real, imaginary = left + column * step, top - row * step
    x = y = 0.0
    count = 0
    while x * x + y * y < 4 and count < 200:
        x, y = x * x - y * y + real, 2 * x * y + imaginary
        count += 1
    times[row, column] = count


def picture(height: int = 300, width: int = 480) -> dp.ndarray:
    times = dp.empty((height, width), dtype="int32")
    step = dp.float32(3.2 / width)
    dp.call_kernel(
        escape_times, dp.Range(height, width), dp.float32(-2.3), dp.float32(1), step, times
    )
    shade = (times / 200) ** 0.25 * (times < 200)
    return (255 * dp.stack([shade**4, shade**2.5, shade], axis=-1)).astype("uint8")
