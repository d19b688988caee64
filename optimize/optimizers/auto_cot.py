"""A demonstration of each kind of question, right or wrong."""

from __future__ import annotations

import re
from typing import Any

import dspy
from pydantic import Field

from ...common.errors import QuestreeError
from ...lm.policy import HOPELESS
from ...programs import Program
from .base import Job, Optimizer


class AutoCoT(Optimizer):
    """Auto-CoT (Zhang et al., ICLR 2023, section 4): of each cluster of training questions, the program's own steps.

    The questions are clustered; of each cluster, the one nearest to its centre that is simple enough is asked, and
    what the program replied becomes a demonstration. Right answers are neither needed nor looked at. The paper
    clusters sentence embeddings, we TF-IDF, which needs no model.

    Attributes:
        demonstrations: how many, and so how many clusters (SearChain, table 8: 4 for most tasks).
        max_question_words: a longer question is passed over.
        max_sentences: of reasoning; a question that took more is passed over.
    """

    name = "auto-cot"
    demonstrations: int = Field(default=4, ge=1)
    max_question_words: int = Field(default=60, ge=1)
    max_sentences: int = Field(default=5, ge=1)

    def make(self, student: Program, job: Job) -> Any:
        """See `Optimizer`."""
        compiled = student.reset_copy()
        asked = compiled.deepcopy()  # has no demonstrations while they are made
        predictors = dict(compiled.named_predictors())
        found = clusters([example.question for example in job.trainset], self.demonstrations, job.seed)
        for members in found:
            for name, demonstration in self.steps(asked, [job.trainset[index] for index in members]).items():
                predictors[name].demos.append(demonstration)
        if not any(predictor.demos for predictor in predictors.values()):
            raise QuestreeError(f"None of {len(job.trainset)} training questions was answered simply enough to show.")
        return compiled

    def steps(self, program: Program, cluster: list[dspy.Example]) -> dict[str, dspy.Example]:
        """Each predictor's first step on the first of the questions that is simple enough; empty if none is."""
        names = {id(predictor): name for name, predictor in program.named_predictors()}
        for example in cluster:
            if len(example.question.split()) > self.max_question_words:
                continue
            with dspy.context(trace=[]):
                prediction = program(**example.inputs())
                trace = dspy.settings.trace
            if prediction.failure is not None and prediction.failure.cause in HOPELESS:
                raise QuestreeError(f"A training question could not be asked: {prediction.failure}.")
            if prediction.failure is None and _sentences(prediction.final_content) <= self.max_sentences:
                return {
                    names[id(predictor)]: dspy.Example(augmented=True, **inputs, **reply)
                    for predictor, inputs, reply in reversed(trace)
                }
        return {}


def _sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?=\s|$)", text))


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
