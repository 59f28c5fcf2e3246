"""Binary morphology, labels of regions, distance, equalization, dithering and resizing."""

import numpy as np

y, x = np.ogrid[:24, :32]
image = 120 + 60 * np.sin(x / 4) * np.cos(y / 3) + 20 * ((x + y) % 5)
image = np.clip(image, 0, 255).astype(np.uint8)
print(image.min(), image.max(), image.dtype, image.shape, image.nbytes)

histogram = np.bincount(image.ravel(), minlength=256)
cdf = histogram.cumsum()
scaled = (cdf - cdf[cdf > 0].min()) * 255 / (image.size - cdf[cdf > 0].min())
lookup = np.round(scaled.clip(0)).astype("uint8")
equalised = lookup[image]
print("levels:", np.unique(equalised).size, "mean: %.2f" % equalised.mean())

best, threshold = -1.0, 0
levels = np.arange(256)
for t in range(1, 255):
    w0, w1 = histogram[:t].sum(), histogram[t:].sum()
    if w0 == 0 or w1 == 0:
        continue
    m0 = (levels[:t] * histogram[:t]).sum() / w0
    m1 = (levels[t:] * histogram[t:]).sum() / w1
    between = w0 * w1 * (m0 - m1) ** 2
    if between > best:
        best, threshold = between, t
mask = image >= threshold
print("threshold:", threshold, "white:", mask.sum())


def shifted(mask, fill):
    padded = np.pad(mask, 1, constant_values=fill)
    h, w = mask.shape
    return np.stack([padded[i : i + h, j : j + w] for i in range(3) for j in range(3)])


erode = lambda m: shifted(m, True).all(axis=0)
dilate = lambda m: np.any(shifted(m, False), axis=0)
opened, closed = dilate(erode(mask)), erode(dilate(mask))
outline = mask ^ erode(mask)

label = np.where(opened, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
while True:
    spread = np.where(opened, shifted(label, 0).max(axis=0), 0)
    if (spread == label).all():
        break
    label = spread
names, label = np.unique(label, return_inverse=True)
label = label.reshape(mask.shape)
sizes = np.bincount(label.ravel())[1:]
print(len(names) - 1, "regions of sizes", sorted(sizes.tolist(), reverse=True)[:4])
centres = [np.argwhere(label == k).mean(axis=0) for k in range(1, len(names))]
print("first centre: ({:.2f}, {:.2f})".format(*centres[0]))

distance = np.zeros(mask.shape, dtype=int)
layer = mask
while layer.any():
    distance += layer
    layer = layer & np.logical_and.reduce(shifted(layer, False))

gray = image.astype(np.float64) / 255
work = gray[:6, :8].copy()
for i in range(6):
    for j in range(8):
        old = work[i, j]
        work[i, j] = new = np.round(old)
        error = old - new
        if j + 1 < 8:
            work[i, j + 1] += error * 7 / 16
        if i + 1 < 6:
            work[i + 1, j] += error * 5 / 16
halved = gray.reshape(12, 2, 16, 2).mean(axis=(1, 3))
doubled = halved.repeat(2, axis=0).repeat(2, axis=1)
psnr = 10 * np.log10(1 / np.mean((gray - doubled) ** 2))
rgb = np.dstack([image, np.flipud(image), np.rot90(image, 2)])
luminance = rgb @ np.array([0.299, 0.587, 0.114])
gy, gx = np.gradient(gray)
direction = np.arctan2(gy, gx)
print(f"PSNR {psnr:.2f} dB", rgb.shape, image[0, :4], hex(image[3, 4]), f"{image[3, 4]:08b}")
