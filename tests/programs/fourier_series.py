"""Fourier series of a square wave, filtering in the frequency domain, spectra and convolution."""

import numpy as np

t = np.linspace(0, 2 * np.pi, 400, endpoint=False)
square = np.sign(np.sin(t))
k = np.arange(1, 20, 2)
series = (4 / np.pi) * np.sum(np.sin(np.outer(k, t)) / k[:, None], axis=0)
print(
    "overshoot: %.4f" % series.max(),
    "rms error: {:.4f}".format(np.sqrt(((series - square) ** 2).mean())),
)

rate = 256
time = np.arange(rate) / rate
signal = 1.5 * np.sin(2 * np.pi * 12 * time) + 0.5 * np.cos(2 * np.pi * 60 * time) + 0.25
spectrum = np.fft.rfft(signal)
frequencies = np.fft.rfftfreq(signal.size, d=1 / rate)
amplitudes = np.abs(spectrum) * 2 / rate
peaks = frequencies[amplitudes > 0.3]
print("peaks:", peaks, "amplitudes:", amplitudes[amplitudes > 0.3].round(6))
low = spectrum * (frequencies < 30)
smooth = np.fft.irfft(low, n=signal.size)
phase = np.angle(spectrum[12], deg=True)
assert np.allclose(np.sum(np.abs(signal) ** 2), np.sum(np.abs(np.fft.fft(signal)) ** 2) / rate)

window = np.hanning(64)
frames = np.lib.stride_tricks.sliding_window_view(signal, 64)[::32] * window
spectrogram = np.abs(np.fft.rfft(frames, axis=-1)) ** 2
loudest = spectrogram.argmax(axis=1)
print("loudest bins:", loudest)

kernel = np.exp(-(np.linspace(-2, 2, 9) ** 2))
kernel /= kernel.sum()
direct = np.convolve(signal, kernel, mode="same")
n = signal.size + kernel.size - 1
by_fft = np.fft.ifft(np.fft.fft(signal, n) * np.fft.fft(kernel, n)).real[4 : 4 + signal.size]
assert np.abs(direct - by_fft).max() < 1e-12

image = np.add.outer(np.sin(time[::8] * 8), np.cos(time[::8] * 5))
shifted = np.fft.fftshift(np.fft.fft2(image))
y, x = np.mgrid[-16:16, -16:16]
mask = np.hypot(x, y) <= 6
blurred = np.real(np.fft.ifft2(np.fft.ifftshift(shifted * mask)))
print(f"{blurred.std():.6f} {phase:.3f} {np.unwrap(np.angle(spectrum[10:15])).shape}")
autocorrelation = np.correlate(signal - signal.mean(), signal - signal.mean(), "full")[rate - 1 :]
autocorrelation = autocorrelation[:40]
