"""Edit distance, knapsack, longest increasing run, Viterbi's path and a coin problem."""

import numpy as np


def edit_distance(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    d[:, 0] = np.arange(len(a) + 1)
    d[0] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[-1, -1]


words = ["kitten", "sitting", "kit"]
table = np.array([[edit_distance(a, b) for b in words] for a in words])
print(table)

weights = np.array([3, 4, 5, 9, 14])
values = np.array([3, 4, 4, 10, 15])
capacity = 20
best = np.zeros(capacity + 1, dtype=np.int64)
taken = np.zeros((len(weights), capacity + 1), dtype=bool)
for item, (w, v) in enumerate(zip(weights, values)):
    with_item = best[:-w] + v
    better = with_item > best[w:]
    taken[item, w:] = better
    best[w:] = np.maximum(best[w:], with_item)
chosen, room = [], capacity
for item in range(len(weights) - 1, -1, -1):
    if taken[item, room]:
        chosen.append(item)
        room -= weights[item]
assert sum(values[chosen]) == best[capacity]
print("chosen:", sorted(chosen), "worth", best[capacity], "of weight", weights[chosen].sum())

sequence = np.array([3, 1, 8, 2, 5, 9, 4, 6, 7])
tails = []
for number in sequence:
    place = int(np.searchsorted(np.array(tails, dtype=int), number))
    tails[place : place + 1] = [int(number)]
print("longest increasing:", len(tails), tails)

start = np.log([0.6, 0.4])
move = np.log(np.array([[0.7, 0.3], [0.4, 0.6]]))
emit = np.log(np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]]))
seen = [0, 1, 2, 2, 0, 1]
score = start + emit[:, seen[0]]
back = []
for s in seen[1:]:
    paths = score[:, np.newaxis] + move
    back.append(paths.argmax(axis=0))
    score = paths.max(axis=0) + emit[:, s]
state = score.argmax()
states = [state]
for pointers in back[::-1]:
    state = pointers[state]
    states.insert(0, state)
states = np.array(states)
print("states:", states, f"log probability {score.max():.4f}")

coins = [1, 5, 12, 25]
ways = np.zeros(61, dtype=np.uint64)
ways[0] = 1
for coin in coins:
    for amount in range(coin, 61):
        ways[amount] += ways[amount - coin]
score = score.max()
longest = np.asarray(tails)
