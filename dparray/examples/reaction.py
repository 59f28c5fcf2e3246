"""Reaction and diffusion (Gray and Scott): statements on whole arrays, which become one kernel."""

import dparray as dp


def spread(x: dp.ndarray) -> dp.ndarray:
    """Return the differences of each point from its four neighbors."""
    return dp.roll(x, 1, 0) + dp.roll(x, -1, 0) + dp.roll(x, 1, 1) + dp.roll(x, -1, 1) - 4 * x


def picture(height: int = 150, width: int = 240, steps: int = 3000) -> dp.ndarray:
    noise = dp.random.default_rng(7).random((height, width), dtype="float32")
    u = dp.ones((height, width), dtype="float32")
    v = dp.where(noise > 0.985, dp.float32(0.9), dp.float32(0))
    for _ in range(steps):
        reaction = u * v * v
        u, v = (
            u + 0.16 * spread(u) - reaction + 0.035 * (1 - u),
            v + 0.08 * spread(v) + reaction - 0.095 * v,
        )
    shade = dp.clip(3 * v, 0, 1).repeat(2, axis=0).repeat(2, axis=1)
    return (
        255 * dp.stack([0.1 + 0.85 * shade, 0.2 + 0.5 * shade, 0.35 - 0.15 * shade], axis=-1)
    ).astype("uint8")
