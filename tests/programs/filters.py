import numpy as np

fs = 200.0
t = np.arange(0, 2, 1 / fs)
sig = np.sin(2 * np.pi * 5 * t) + 0.5 * np.sin(2 * np.pi * 40 * t)
freqs = np.fft.rfftfreq(t.size, 1 / fs)
spec = np.fft.rfft(sig)
power = np.abs(spec) ** 2
peak = freqs[np.argmax(power)]
spec[freqs > 20] = 0
clean = np.fft.irfft(spec, n=t.size)
win = np.hanning(t.size)
sw = np.fft.fft(sig * win)
f = np.fft.fftfreq(t.size, d=1 / fs)
idx = np.where((f > 0) & (f < 50))[0]
db = 20 * np.log10(np.abs(sw[idx]) + 1e-12)
shift = np.fft.fftshift(np.abs(sw))
seg, hop = 64, 32
frames = np.array([sig[i : i + seg] * np.hamming(seg) for i in range(0, len(sig) - seg + 1, hop)])
stft = np.fft.rfft(frames, axis=1)
sg = np.log1p(np.abs(stft)).T
auto = np.correlate(sig, sig, mode="full")[sig.size - 1 :]
auto /= auto[0]
kernel = np.ones(9) / 9
smooth = np.convolve(sig, kernel, mode="same")
im = np.outer(np.sin(t[:32]), np.cos(t[:32]))
F = np.fft.fft2(im)
lp = np.fft.ifft2(F * (np.abs(np.fft.fftfreq(32))[:, None] < 0.2)).real
phase = np.unwrap(np.angle(sw[1:60]))
sinc = np.sinc(np.linspace(-3, 3, 21)) * np.blackman(21)
sinc /= sinc.sum()
fir = np.convolve(sig, sinc)[10:-10]
print("peak", float(peak))
