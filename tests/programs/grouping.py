"""Grouping, joining and pivoting of columns, running statistics, and a report in text."""

import io

import numpy as np

text = """day,shop,item,count,price
1,0,2,3,1.50
1,1,0,1,9.99
2,0,2,5,1.45
2,2,1,2,4.20
3,1,2,7,1.60
3,0,0,1,9.50
4,2,1,4,4.00
5,1,1,3,4.10
"""
data = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
day, shop, item, count = data[:, :4].astype(int).T
price = data[:, 4]
revenue = count * price

shops, inverse, counts = np.unique(shop, return_inverse=True, return_counts=True)
by_shop = np.bincount(inverse, weights=revenue)
mean_by_shop = by_shop / counts
best_by_shop = np.full(len(shops), -np.inf)
np.maximum.at(best_by_shop, inverse, revenue)
for s, total, mean, best in zip(shops, by_shop, mean_by_shop, best_by_shop):
    print(f"shop {s:d}: {total:8.2f} {mean:7.3f} {best:>6.2f}")

pivot = np.zeros((day.max() + 1, shops.size))
np.add.at(pivot, (day, shop), revenue)
print(pivot[1:])
cumulative = np.cumsum(pivot, axis=0)
order = np.lexsort((price, item))
ranked = np.column_stack((item, price))[order]
first_of_item = np.unique(item[order], return_index=True)[1]
cheapest = price[order][first_of_item]

names = np.array([10, 20, 30])
weights_of_items = {0: 1.5, 1: 0.25, 2: 0.1}
weight = np.array([weights_of_items[int(i)] for i in item]) * count
joined = names[np.searchsorted(shops, shop)]
is_big = revenue > np.median(revenue)
print(
    "big:",
    np.where(is_big)[0].tolist(),
    "share: {:.0%}".format(revenue[is_big].sum() / revenue.sum()),
)

running = np.convolve(revenue, np.ones(3) / 3, "valid")
boundaries = np.flatnonzero(np.diff(day)) + 1
per_day = np.add.reduceat(revenue, np.r_[0, boundaries])
groups = np.split(revenue, boundaries)
assert [round(float(g.sum()), 6) for g in groups] == [round(float(p), 6) for p in per_day]
quartiles = np.percentile(revenue, [25, 50, 75])
edges = np.histogram_bin_edges(price, bins=3)
bins = np.digitize(price, edges[1:-1])
histogram, _ = np.histogram(price, bins=edges)
table = {
    name: (col.min(), col.max(), col.mean(), col.std(ddof=1))
    for name, col in (("count", count), ("price", price))
}
for name, row in table.items():
    print("%-6s" % name, " ".join("%7.3f" % value for value in row))
with np.printoptions(precision=2, suppress=True, linewidth=60):
    print(cumulative)
    print(quartiles, histogram)
file = io.StringIO()
np.savetxt(file, pivot, fmt="%6.2f", header="revenue", delimiter=" ")
print(file.getvalue())
print(
    max(revenue),
    min(price),
    [int(c) for c in sorted(count)[:3]],
    sum(count),
    len(shops),
    round(price[0], 1),
)
correlation = np.corrcoef(count, price)[0, 1]
