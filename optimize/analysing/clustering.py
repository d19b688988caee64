"""Questions of a kind, by their words."""

from __future__ import annotations


def clusters(texts: list[str], count: int, seed: int) -> list[list[int]]:
    """The texts in clusters (k-means over TF-IDF): indices of each cluster's texts, the nearest to its centre first.

    Args:
        texts: at least one.
        count: of clusters at most; there are no more than different texts.
        seed: of where the centres begin.
    """
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]

    vectors = TfidfVectorizer(token_pattern=r"\w+").fit_transform(texts)
    means = KMeans(min(count, len(set(texts))), random_state=seed, n_init=10)
    distances = means.fit_transform(vectors)  # (texts, clusters)
    members: list[list[int]] = [[] for _ in range(means.n_clusters)]
    for index, cluster in enumerate(means.labels_):
        members[cluster].append(index)
    return [sorted(indices, key=lambda i: float(distances[i, n])) for n, indices in enumerate(members)]
