"""Two galaxies pass each other: an n-body kernel in work-groups, and a histogram as the picture."""

import dparray as dp

GROUP = 64


@dp.kernel
def pull(item, positions, masses, velocities, step):
    i = item.get_global_id(0)
    x, y = positions[0, i], positions[1, i]
    fx = fy = 0.0
    for j in range(masses.shape[0]):  # the heavy bodies are the first ones
        dx, dy = positions[0, j] - x, positions[1, j] - y
        squared = dx * dx + dy * dy + 0.02
        weight = masses[j] / (squared * dp.sqrt(squared))
        fx += dx * weight
        fy += dy * weight
    velocities[0, i] += fx * step
    velocities[1, i] += fy * step


def disk(generator, count: int, center: tuple[float, float], speed: float) -> list[dp.ndarray]:
    """Return positions and velocities of bodies around a heavy one."""
    radius = 0.15 + 0.85 * dp.sqrt(generator.random(count, dtype="float32"))
    angle = 2 * dp.pi * generator.random(count, dtype="float32")
    direction = dp.stack([dp.cos(angle), dp.sin(angle)])
    turned = dp.stack([-direction[1], direction[0]])
    offset = dp.asarray([[center[0]], [center[1]]], dtype="float32")
    drift = dp.asarray([[speed], [0]], dtype="float32")
    positions, velocities = offset + radius * direction, drift + turned / dp.sqrt(radius)
    positions[:, 0], velocities[:, 0] = offset[:, 0], drift[:, 0]
    return [positions, velocities]


def picture(
    height: int = 300, width: int = 480, count: int = 1 << 16, steps: int = 250
) -> dp.ndarray:
    generator = dp.random.default_rng(1)
    first, second = (
        disk(generator, count // 2, center, speed)
        for center, speed in (((-1.4, 0.55), 0.5), ((1.4, -0.55), -0.5))
    )
    order = [0, count // 2, *range(1, count // 2), *range(count // 2 + 1, count)]
    positions, velocities = (
        dp.concatenate(both, axis=1)[:, dp.asarray(order)]
        for both in zip(first, second, strict=True)
    )
    masses, step = dp.ones(2, dtype="float32"), dp.float32(0.01)
    for _ in range(steps):
        dp.call_kernel(pull, dp.NdRange(count, GROUP), positions, masses, velocities, step)
        positions += velocities * step
    ranges = [[-1.8, 1.8], [-2.88, 2.88]]
    density, _, _ = dp.histogram2d(positions[1], positions[0], bins=(height, width), range=ranges)
    shade = dp.clip(dp.log1p(density) / 3, 0, 1)
    return (255 * dp.stack([shade, shade**1.6, 0.1 + 0.9 * dp.sqrt(shade)], axis=-1)).astype(
        "uint8"
    )
