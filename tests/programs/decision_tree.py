"""A decision tree, nearest neighbors, naive Bayes and a confusion matrix, on made-up flowers."""

import numpy as np

n = 90
labels = np.repeat(np.arange(3), n // 3)
wobble = np.sin(np.arange(n)[:, None] * np.array([1.7, 2.9, 4.1, 0.3]) * 10)
X = (
    np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])[labels]
    + 0.6 * wobble
)
y = labels


def gini(y):
    _, counts = np.unique(y, return_counts=True)
    p = counts / counts.sum()
    return 1 - np.sum(p**2)


def split(X, y):
    best = (np.inf, None, None)
    for feature in range(X.shape[1]):
        for threshold in np.percentile(X[:, feature], [20, 40, 60, 80]):
            left = X[:, feature] <= threshold
            if left.all() or not left.any():
                continue
            score = (left.sum() * gini(y[left]) + (~left).sum() * gini(y[~left])) / len(y)
            if score < best[0]:
                best = score, feature, threshold
    return best


def grow(X, y, depth):
    score, feature, threshold = split(X, y) if depth else (0, None, None)
    if feature is None or gini(y) == 0:
        return int(np.bincount(y).argmax())
    left = X[:, feature] <= threshold
    return (
        feature,
        threshold,
        grow(X[left], y[left], depth - 1),
        grow(X[~left], y[~left], depth - 1),
    )


def predict(tree, row):
    while isinstance(tree, tuple):
        feature, threshold, left, right = tree
        tree = left if row[feature] <= threshold else right
    return tree


tree = grow(X, y, 2)
print("root: feature", tree[0], "at", round(float(tree[1]), 3))
predicted = np.array([predict(tree, row) for row in X])
accuracy = (predicted == y).mean()
confusion = np.zeros((3, 3), dtype=int)
np.add.at(confusion, (y, predicted), 1)
print(confusion)
print(f"accuracy: {accuracy:.1%}")

distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=-1))
np.fill_diagonal(distances, np.inf)
nearest = np.argpartition(distances, 3, axis=1)[:, :3]
votes = np.apply_along_axis(lambda line: np.bincount(line, minlength=3), 1, y[nearest])
by_neighbors = votes.argmax(axis=1)

means = np.array([X[y == label].mean(axis=0) for label in range(3)])
variances = np.array([X[y == label].var(axis=0) for label in range(3)])
log_p = -0.5 * (np.log(2 * np.pi * variances) + (X[:, None] - means) ** 2 / variances).sum(axis=2)
posterior = np.exp(log_p - log_p.max(axis=1, keepdims=True))
posterior /= posterior.sum(axis=1, keepdims=True)
by_bayes = np.argmax(posterior, axis=1)
print(f"neighbors {np.mean(by_neighbors == y):.3f}, Bayes {np.mean(by_bayes == y):.3f}")
precision = np.diag(confusion) / confusion.sum(axis=0)
recall = np.diag(confusion) / confusion.sum(axis=1)
standard = (X - X.mean(0)) / X.std(0, ddof=1)
np.testing.assert_allclose(
    np.corrcoef(X, rowvar=False), standard.T @ standard / (n - 1), rtol=1e-10
)
