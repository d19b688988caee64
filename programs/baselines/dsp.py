"""Demonstrate-Search-Predict."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial

import dspy
from pydantic import Field

from ...common.text import query_or_none
from ...lm.call import call
from ...lm.parallel import run_parallel
from ...metrics import without_marks
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.searches import AnswerWithFindings, WriteSearchQuery
from ..majority import majority_answer, sample
from ..program import Program, ProgramSettings, answered
from ..references import distinct, numbered
from ..tree import Node, ReasoningTree

_OVERSHOT = 3  # times k are retrieved for each of several queries, before they are fused


class DSPSettings(ProgramSettings):
    """How it searches and predicts.

    Attributes:
        hops: searches, one after another.
        queries: sampled in each hop; their results and those of the question are fused.
        k: passages that a hop keeps, of three times as many that each query retrieves.
        samples: of the answer; the majority's is given.
        temperature: of several queries or answers; a single one has the LM's own.
    """

    hops: int = Field(default=2, ge=1)
    queries: int = Field(default=3, ge=1)
    k: int = Field(default=5, ge=1)
    samples: int = Field(default=5, ge=1)
    temperature: float = Field(default=0.7, gt=0)


class DSP(Program):
    """Demonstrate-Search-Predict (Khattab et al., 2022, arXiv 2212.14024), the program for multi-hop questions.

    Demonstrate is compilation, which annotates training questions with the program's own steps. Search goes in hops:
    each samples queries from the question and from what the hop before found, fuses what these queries and the question
    retrieve, and forgets what the hop before found. Predict answers, with self-consistency, from what the last hop
    found and from the thoughts that led to the first query of each hop; later queries see these thoughts as well. This
    is the authors' second program for multi-hop questions (in their introductory notebook), which samples 10 queries
    and 20 answers; the defaults here are fewer.
    """

    name = "dsp"
    Settings = DSPSettings
    settings: DSPSettings

    def __init__(self, retriever: Retriever | None = None, settings: DSPSettings | None = None):
        super().__init__(retriever, settings)
        self.search_query = dspy.Predict(WriteSearchQuery)
        self.knowledge_answer = dspy.Predict(AnswerWithFindings)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Search hop by hop, and predict."""
        context, findings, last = list[Passage](), "", None
        for hop in range(1, self.settings.hops + 1):
            context, thoughts, last = self.search(tree, last, context, findings)
            if hop > 1:  # before hop 1 nothing was known; marks number the passages of the hop before
                findings = f"{findings} {without_marks(thoughts)}".strip()
        last_found = {passage.id for passage in context}
        for node in tree.nodes:
            if node.ended == "kept" and node.passage and node.passage.id not in last_found:
                tree.update(node, ended="filtered out")  # the last hop's passages replaced it
        inputs = {"question": tree.question, "answer_style": answer_style, "findings": findings}
        samples, temperature = self.settings.samples, self.settings.temperature
        chosen, answers = majority_answer(self.knowledge_answer, context, samples, temperature, **inputs)
        return answered(tree, *chosen, passages=context, samples=answers)

    def search(
        self, tree: ReasoningTree, last: Node | None, context: list[Passage], findings: str
    ) -> tuple[list[Passage], str, Node]:
        """Make one hop.

        Returns:
            The fused passages of the sampled queries and the question, the thoughts that led to the first query, and
            that query's node in the tree.
        """
        write = partial(call, self.search_query, question=tree.question, findings=findings, passages=numbered(context))
        drawn = sample(write, self.settings.queries, self.settings.temperature)
        queries = [query for reply in drawn if (query := query_or_none(reply.query))]
        queries.append(tree.question)
        k = self.settings.k * _OVERSHOT if len(queries) > 1 else self.settings.k
        found = run_parallel([partial(self.retrieve, query, k) for query in queries])
        fused = fuse(found)[: self.settings.k]
        by_query = dict(zip(queries, found, strict=True))
        nodes = [tree.add_search(last, query, passages, kept=fused) for query, passages in by_query.items()]
        return fused, str(drawn[0].thoughts), nodes[0]


def fuse(found: list[list[Passage]]) -> list[Passage]:
    """Return the passages of several queries, ranked by the sum of their probabilities (CombSUM), highest first.

    A passage's probability for a query is the softmax of its score among those that the query retrieved.
    """
    total: defaultdict[str, float] = defaultdict(float)
    for passages in found:
        best = max((passage.score for passage in passages), default=0.0)
        weights = [math.exp(passage.score - best) for passage in passages]
        for passage, weight in zip(passages, weights, strict=True):
            total[passage.id] += weight / sum(weights)
    return sorted(distinct(found), key=lambda passage: -total[passage.id])
