import numpy as np

n = 300
t = np.arange(n)
price = 100 + 10 * np.sin(t / 20) + 0.1 * t + 2 * np.cos(t * 1.3)
ret = np.diff(np.log(price))


def moving_average(a, w):
    c = np.cumsum(np.insert(a, 0, 0))
    return (c[w:] - c[:-w]) / w


ma = moving_average(price, 10)
ema = np.empty_like(price)
ema[0] = price[0]
alpha = 2 / 21
for i in range(1, n):
    ema[i] = alpha * price[i] + (1 - alpha) * ema[i - 1]
peak = np.maximum.accumulate(price)
drawdown = (price - peak) / peak
mdd = drawdown.min()
vol = np.array([ret[i : i + 20].std() for i in range(0, ret.size - 20, 20)])
signal = np.where(ma[1:] > ma[:-1], 1, -1)
switches = np.flatnonzero(np.diff(signal)) + 1
lag = np.array([np.corrcoef(ret[:-k], ret[k:])[0, 1] for k in range(1, 6)])
gaps = price.copy()
gaps[50:60] = np.nan
ok = ~np.isnan(gaps)
filled = gaps.copy()
filled[~ok] = np.interp(t[~ok], t[ok], gaps[ok])
weekly = price[: n // 7 * 7].reshape(-1, 7)
ohlc = np.c_[weekly[:, 0], weekly.max(axis=1), weekly.min(axis=1), weekly[:, -1]]
z = (price - np.nanmean(gaps)) / np.nanstd(gaps)
out = np.abs(z) > 1.5
runs = np.diff(np.r_[0, out.astype(int), 0])
starts, ends = np.where(runs == 1)[0], np.where(runs == -1)[0]
lens = ends - starts
trend = np.polyval(np.polyfit(t, price, 1), t)
detr = price - trend
seas = np.array([detr[k::12].mean() for k in range(12)])
q = np.digitize(ret, np.percentile(ret, [25, 50, 75]))
trans = np.zeros((4, 4))
for a, b in zip(q[:-1], q[1:]):
    trans[a, b] += 1
trans /= trans.sum(axis=1, keepdims=True)
print(f"mdd {mdd:.3%} switches {len(switches)}")
