"""Auto-CoT: a demonstration of each kind of question."""

from __future__ import annotations

from typing import Any

import dspy
from pydantic import Field

from ...common.errors import QuestreeError
from ...common.sentences import sentences
from ...lm.limits import OUTSIDE
from ...programs import Program
from ...programs.demonstrations import as_found, noted
from .base import Job, Optimizer


class AutoCoTFewShot(Optimizer):
    """Auto-CoT (Zhang et al., ICLR 2023, section 4): the program's own steps on a question of each cluster.

    The training questions are clustered. In each cluster, the question nearest to the centre that is simple enough is
    asked, and the program's replies become demonstrations. Whether the answers are right does not matter. The paper
    clusters sentence embeddings; we cluster TF-IDF vectors, which need no model.

    Attributes:
        demonstrations: how many, and so how many clusters (SearChain, table 8: 4 for most tasks).
        max_question_words: a question with more words is not simple enough.
        max_sentences: a question whose reasoning took more sentences is not simple enough.
    """

    name = "auto-cot"
    unused = frozenset({"teacher", "prompt_lm"})
    demonstrations: int = Field(default=4, ge=1)
    max_question_words: int = Field(default=60, ge=1)
    max_sentences: int = Field(default=5, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """Demonstrate one question of each cluster."""
        compiled = student.reset_copy()
        asked = compiled.deepcopy()  # the copy that is asked has no demonstrations
        predictors = dict(compiled.named_predictors())
        found = clusters([example.question for example in job.trainset], self.demonstrations, job.seed)
        for members in found:
            for name, demonstration in self.steps(asked, [job.trainset[index] for index in members]).items():
                predictors[name].demos.append(demonstration)
        if not any(predictor.demos for predictor in predictors.values()):
            raise QuestreeError(f"None of {len(job.trainset)} training questions was answered simply enough to show.")
        return compiled

    def steps(self, program: Program, cluster: list[dspy.Example]) -> dict[str, dspy.Example]:
        """Return each predictor's first step on the first question that is simple enough, or nothing if none is."""
        names = {id(predictor): name for name, predictor in program.named_predictors()}
        for example in cluster:
            if len(example.question.split()) > self.max_question_words:
                continue
            with dspy.context(trace=[]):
                prediction = program(**example.inputs())
                trace = dspy.settings.trace
            if prediction.failure is not None and prediction.failure.cause in OUTSIDE:
                # with another question in its place, the result would depend on when the LM failed
                raise QuestreeError(
                    f"A training question could not be asked: {prediction.failure}. Run the same again: answered LM "
                    "calls come from the cache."
                )
            if prediction.failure is None and len(sentences(prediction.final_content)) <= self.max_sentences:
                return {
                    names[id(predictor)]: dspy.Example(augmented=True, **inputs, **reply)
                    for predictor, inputs, reply in (
                        as_found(step, prediction.tree) for step in reversed(trace) if noted(step).exemplary
                    )
                }
        return {}


def clusters(texts: list[str], count: int, seed: int) -> list[list[int]]:
    """Cluster texts by k-means over TF-IDF; return each cluster as indices of texts, the nearest to its centre first.

    Args:
        texts: at least one.
        count: of clusters, at most; there are never more clusters than different texts.
        seed: of the first centres.
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
