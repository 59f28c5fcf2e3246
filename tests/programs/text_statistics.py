import numpy as np

text = b"the quick brown fox jumps over the lazy dog and the cat sat on the mat while it rained cats and dogs"
codes = np.frombuffer(text, dtype=np.uint8)
letters = codes[(codes >= ord("a")) & (codes <= ord("z"))] - ord("a")
freq = np.bincount(letters, minlength=26)
p = freq / freq.sum()
nz = p[p > 0]
entropy = -(nz * np.log2(nz)).sum()
order = np.argsort(freq)[::-1]
big = np.zeros((26, 26), dtype=np.int64)
np.add.at(big, (letters[:-1], letters[1:]), 1)
top = np.unravel_index(big.argmax(), big.shape)
spaces = np.flatnonzero(codes == 32)
bounds = np.concatenate(([-1], spaces, [codes.size]))
lengths = np.diff(bounds) - 1
uniq, counts = np.unique(lengths, return_counts=True)
lookup = np.zeros(256, dtype=np.uint8)
lookup[:] = np.arange(256)
lookup[97:123] -= 32
upper = lookup[codes]
rle = np.flatnonzero(np.concatenate(([True], upper[1:] != upper[:-1], [True])))
caesar = (letters + 3) % 26
chi = ((freq - freq.mean()) ** 2 / freq.mean()).sum()
sums = np.add.reduceat(codes.astype(int), np.r_[0, spaces + 1])
bits = np.unpackbits(codes[:4])
back = np.packbits(bits)
h = 0
for c in codes[:20]:
    h = (h * 31 + int(c)) % 1000003
vowels = np.isin(letters, [0, 4, 8, 14, 20])
assert upper.tobytes().decode().isupper()
print(
    "".join(chr(c + 97) for c in order[:5].tolist()),
    h,
    round(float(entropy), 5),
    f"{vowels.mean():.2f}",
)
