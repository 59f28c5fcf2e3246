"""Spheres with shadows: rays in one expression for each sphere, fused by the array functions."""

import dparray as dp

SPHERES = [
    (-1.1, 0.0, 5.0, 1.0),
    (1.0, -0.2, 4.0, 0.8),
    (0.1, -0.6, 2.9, 0.4),
    (0.0, -101.0, 5.0, 100.0),
]
COLORS = [(0.9, 0.3, 0.25), (0.25, 0.6, 0.9), (0.95, 0.8, 0.3), (0.75, 0.75, 0.75)]
LIGHT = (-0.5, 0.75, -0.45)


def distance(origin, direction, sphere) -> dp.ndarray:
    """Return how far along each ray the sphere is; infinite where the ray misses it."""
    offset = [o - c for o, c in zip(origin, sphere[:3], strict=True)]
    b = sum(o * d for o, d in zip(offset, direction, strict=True))
    c = sum(o * o for o in offset) - sphere[3] ** 2
    near = -b - dp.sqrt(dp.maximum(b * b - c, 0))
    return dp.where((b * b > c) & (near > 1e-3), near, dp.inf)


def picture(height: int = 300, width: int = 480) -> dp.ndarray:
    y = dp.linspace(0.6, -0.6, height)[:, None] + dp.zeros((height, width))
    x = dp.linspace(-0.96, 0.96, width)[None, :] + dp.zeros((height, width))
    length = dp.sqrt(x * x + y * y + 1)
    ray = [x / length, y / length, 1 / length]
    nearest, shades = (
        dp.full((height, width), dp.inf),
        [0.5 + 0.4 * ray[1], 0.7 + 0.2 * ray[1], 0.9],
    )
    for sphere, color in zip(SPHERES, COLORS, strict=True):
        found = distance([0, 0, 0], ray, sphere)
        is_nearer = found < nearest
        point = [dp.where(is_nearer, found, 1) * r for r in ray]
        normal = [(p - c) / sphere[3] for p, c in zip(point, sphere[:3], strict=True)]
        light = dp.maximum(sum(n * part for n, part in zip(normal, LIGHT, strict=True)), 0)
        for other in SPHERES:
            light = dp.where(distance(point, LIGHT, other) < dp.inf, 0, light)
        shades = [
            dp.where(is_nearer, part * (0.2 + 0.8 * light), shade)
            for part, shade in zip(color, shades, strict=True)
        ]
        nearest = dp.where(is_nearer, found, nearest)
    return (255 * dp.clip(dp.stack(shades, axis=-1), 0, 1)).astype("uint8")
