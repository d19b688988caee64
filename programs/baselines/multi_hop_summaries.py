"""Multi-hop search with a summary of each hop, the program of LangProBe."""

from __future__ import annotations

import dspy
from pydantic import Field

from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.summaries import AnswerFromSummaries, SummarizePassages, WriteQueryFromSummaries
from ..modules.answers import cited_answer
from ..program import Program, ProgramSettings, answered
from ..references import distinct
from ..tree import ReasoningTree
from .multi_hop import next_query, taken_down


class MultiHopSummariesSettings(ProgramSettings):
    """How it searches; the defaults are those of LangProBe's program for HotpotQA. That for HoVer has three hops.

    Attributes:
        hops: searches, one after another; the first is for the question itself.
        k: passages that a search retrieves.
    """

    hops: int = Field(default=2, ge=1)
    k: int = Field(default=7, ge=1)


class MultiHopSummaries(Program):
    """Multi-hop search with summaries (LangProBe, Tan et al., 2025, arXiv 2502.20315; GEPA compiles it, 2507.19457).

    Each hop retrieves and writes a summary; the next query and the answer come from the summaries. Each hop has its own
    predictors, so that an optimizer writes instructions for each. Three differences: summaries carry the marks of their
    passages, which the answer cites; a query that is empty or was made before ends the search; and LangProBe's program
    for HoVer ends with its third search, where this one summarizes and answers too, with two calls more and the same
    passages.
    """

    name = "multi-hop-summaries"
    Settings = MultiHopSummariesSettings
    settings: MultiHopSummariesSettings

    def __init__(self, retriever: Retriever | None = None, settings: MultiHopSummariesSettings | None = None):
        super().__init__(retriever, settings)
        self.hop_summaries = [dspy.Predict(SummarizePassages) for _ in range(self.settings.hops)]
        self.hop_queries = [dspy.Predict(WriteQueryFromSummaries) for _ in range(self.settings.hops - 1)]
        self.summaries_answer = dspy.Predict(AnswerFromSummaries)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Search and summarize until nothing is missing, then answer; ``passages`` are in the order they were found."""
        question, query, last, tried = tree.question, tree.question, None, [tree.question]
        summaries, passages = list[str](), list[Passage]()
        for hop, summarize in enumerate(self.hop_summaries, start=1):
            if hop > 1:
                query = next_query(
                    self.hop_queries[hop - 2], tried, question=question, summaries=summaries, tried=tried
                )
                if not query:
                    break
                tried.append(query)
            found = self.retrieve(query, self.settings.k)
            last = tree.add_search(last, query, found)
            summaries += taken_down(summarize, passages, found, question=question, summaries=summaries)
            passages = distinct([passages, found])
        inputs = {"question": question, "answer_style": answer_style, "summaries": summaries}
        cited = cited_answer(self.summaries_answer, passages, **inputs)
        return answered(tree, *cited, passages=passages, summaries=tuple(summaries))
