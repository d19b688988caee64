"""BlendFilter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import dspy
from pydantic import Field, field_validator

from ..lm.call import call
from ..lm.parallel import run_parallel
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from ..signatures.knowledge import (
    AnswerOrGuess,
    AnswerWithKnowledge,
    FilterKnowledge,
    FilterKnowledgeOnTopic,
    JudgePassages,
    NameTopic,
)
from .majority import rollout_of, usable, winner
from .modules.answers import CitedAnswer, cited_answer
from .modules.knowledge import Filtered, KnowledgeFilter, QueryBlending
from .program import MethodSettings, Program, answered
from .references import distinct
from .tree import Node, ReasoningTree

Query = Literal["original", "external", "internal"]


class BlendFilterSettings(MethodSettings):
    """How BlendFilter retrieves and filters; ``preset=paper`` has the values of section 4 and appendix D.

    Attributes:
        queries: which of the blended queries are used, at least one.
        k: how many passages each of them retrieves.
        hops: how often the external query is augmented from what the last one found (remark 1).
        draft: whether one call writes both drafts: the facts that the question's passages tell, for the external query,
            and what the LM recalls of the other facts, for the internal one. If no fact is missing, this call answers
            the question. Off, there are two calls: an answer, which may guess, and a passage from memory (paper). Has
            no effect without the external query.
        filter: filter each query's passages and unite the rest ("each", the paper's), unite and then filter ("union",
            remark 2: a passage that several queries found is judged once), or do not filter ("none").
        judgements: whether the filter gives a reason and a judgement for each passage, or reasons and the numbers that
            are kept (paper).
        topic: whether the LM names the question's topic, in order to ignore what it knows about it (paper). It then
            turns away passages that only lead to the answer. Yes-no questions skip this (appendix D), and so does the
            filter with judgements.
        question_first: whether the question stands first in a blended query, or last (paper).
        samples: how many final answers are drawn; the most frequent one is the answer. A single one is drawn with the
            LM's own sampling.
        sampled_by: how several samples differ: by temperatures, or at temperature 1 by top_p (paper, "Sampling Times":
            0, 0.5 and 1 for its three samples), spread evenly from 0 to 1. A top_p of 0, which some servers refuse, is
            sent as temperature 0: both mean the likeliest token.
    """

    PAPER: ClassVar[dict[str, Any]] = {
        "draft": False,
        "filter": "each",
        "judgements": False,
        "topic": True,
        "question_first": False,
        "sampled_by": "top_p",
    }
    IDLE: ClassVar[dict[str, tuple[str, Any]]] = {"topic": ("judgements", True), "sampled_by": ("samples", 1)}

    queries: tuple[Query, ...] = Field(default=get_args(Query), min_length=1)
    k: int = Field(default=5, ge=1)
    hops: int = Field(default=1, ge=1)
    draft: bool = True
    filter: Literal["each", "union", "none"] = "union"
    judgements: bool = True
    topic: bool = False
    question_first: bool = True
    samples: int = Field(default=1, ge=1)
    sampled_by: Literal["temperature", "top_p"] = "temperature"

    @field_validator("queries")
    @classmethod
    def _in_order(cls, queries: tuple[Query, ...]) -> tuple[Query, ...]:
        """Return each query once, in the paper's order, so that the same set is the same setting."""
        return tuple(query for query in get_args(Query) if query in queries)


@dataclass(frozen=True)
class Knowledge:
    """One of the blended queries, and the passages that it found."""

    query: str
    passages: list[Passage]


class BlendFilter(Program):
    """BlendFilter (Wang et al., EMNLP 2024, arXiv 2402.11129): three queries, and passages filtered by the LM.

    Retrieves with three queries: the question; the question after an answer from retrieved passages (external); the
    question after what the LM remembers (internal). The LM filters the passages of each; the answer is read from the
    union of the rest. Calls that do not wait for each other run at the same time.

    By default one call reads the question's own passages. If they tell all that the answer needs, the call answers;
    else it writes the text of both queries, and a query that would add nothing is left out. The passages of
    all queries are judged together, each once and with a reason, and the LM is not told to forget what it knows. This
    takes four to six calls fewer than ``preset=paper``, and keeps more of the passages that only lead to the answer.

    Where the paper leaves it open, or we differ: a draft's words on what it does not know do not enter a query, and
    its answer enters once. Each missing fact is also searched by itself. If the filter keeps no passage, none are
    retrieved in their place, and the LM answers from what it knows. Of several samples the paper scores the best one,
    which only a scorer can know. Here the majority's answer is given, and the prediction holds all of them; the metrics
    ``em-best-sample`` and ``f1-best-sample`` score as the paper does.
    """

    name: ClassVar[str] = "blendfilter"
    Settings = BlendFilterSettings
    settings: BlendFilterSettings

    def __init__(self, retriever: Retriever | None = None, settings: BlendFilterSettings | None = None):
        super().__init__(retriever, settings)
        self.drafts = self.settings.draft and "external" in self.settings.queries
        self.query_blending = QueryBlending(self.settings.question_first, self.drafts)
        if self.names_topic:
            self.topic_naming, self.topic_filter = dspy.Predict(NameTopic), KnowledgeFilter(FilterKnowledgeOnTopic)
        self.knowledge_filter = KnowledgeFilter(JudgePassages if self.settings.judgements else FilterKnowledge)
        self.knowledge_answer = dspy.Predict(AnswerOrGuess if self.settings.preset == "best" else AnswerWithKnowledge)

    @property
    def names_topic(self) -> bool:
        """Return whether the filter is given a topic."""
        return self.settings.topic and not self.settings.judgements and self.settings.filter != "none"

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Blend queries, filter what each of them found, answer from the union of the rest (section 3).

        The prediction has further fields: ``retrieved``, the passages before the filter (``passages`` are those
        after it); ``samples``, the answers that were drawn; and ``misnumbered``, how many numbers of the filter's
        replies were out of range or repeated.
        """
        tasks: list[Callable[[], Any]] = [
            partial(self.blend, tree.question, answer_style),
            partial(self.topic, tree.question, answer_style),
        ]
        (blended, supported), topic = run_parallel(tasks)
        nodes = add_queries(tree, blended)
        sets = [knowledge.passages for knowledge in blended.values()]
        filtered = [Filtered(supported.references)] if supported else self.filter(tree.question, topic, sets)
        mark_kept(tree, nodes, filtered)
        kept = distinct([one.kept for one in filtered])
        samples = [supported] if supported else self.answer(tree.question, answer_style, kept)
        answers = [answer for answer, *_ in samples]
        return answered(
            tree,
            *samples[winner(answers, answer_style)],
            passages=kept,
            retrieved=distinct(sets),
            samples=answers,
            misnumbered=sum(one.misnumbered for one in filtered),
        )

    def blend(self, question: str, answer_style: AnswerStyle) -> tuple[dict[Query, Knowledge], CitedAnswer | None]:
        """Return what each query finds (section 3.2), and the answer if a draft ends the question.

        The two augmentations run at the same time.
        """
        if self.drafts:
            return self.draft(question, answer_style)
        queries = self.settings.queries
        found = {} if queries == ("internal",) else {"original": self.find(question)}
        augmentations: dict[Query, Callable[[], Knowledge]] = {
            "external": lambda: self.external(question, answer_style, found["original"]),
            "internal": lambda: self.find(self.query_blending.internal(question)),
        }
        augmented = [query for query in queries if query != "original"]
        found |= zip(augmented, run_parallel([augmentations[query] for query in augmented]), strict=True)
        return {query: found[query] for query in queries}, None

    def draft(self, question: str, answer_style: AnswerStyle) -> tuple[dict[Query, Knowledge], CitedAnswer | None]:
        """Return what each query of a draft finds, and its answer if no fact is missing and one sample is drawn."""
        queries, knowledge = self.settings.queries, self.find(question)
        found: dict[Query, Knowledge] = {"original": knowledge}
        for _ in range(self.settings.hops):
            supported, external, internal = self.query_blending.drafted(question, answer_style, knowledge.passages)
            if supported and self.settings.samples == 1:
                return found, supported
            if external[0] == knowledge.query:
                break
            each = [self.find(query).passages for query in external]
            found["external"] = knowledge = Knowledge(external[0], distinct(each))
        if "internal" in queries and internal not in external:
            found["internal"] = self.find(internal)
        return {query: found[query] for query in queries if query in found} or found, None

    def external(self, question: str, answer_style: AnswerStyle, knowledge: Knowledge) -> Knowledge:
        """Answer from what was found, and retrieve with that answer and the question (external augmentation)."""
        for _ in range(self.settings.hops):
            knowledge = self.find(self.query_blending.external(question, answer_style, knowledge.passages))
        return knowledge

    def find(self, query: str) -> Knowledge:
        """Return the k passages that the query retrieves."""
        return Knowledge(query, self.retrieve(query, self.settings.k))

    def topic(self, question: str, answer_style: AnswerStyle) -> str | None:
        """Return the topic, which the LM forgets before it filters (section 3.3); None if the filter needs none."""
        if not self.names_topic or answer_style == "yes-no":
            return None
        return str(call(self.topic_naming, question=question).topic)

    def filter(self, question: str, topic: str | None, sets: list[list[Passage]]) -> list[Filtered]:
        """Return what the filter keeps of each query's passages, or of their union (section 3.3, remark 2)."""
        if self.settings.filter == "none":
            return [Filtered(passages) for passages in sets]
        if self.settings.filter == "union":
            sets = [distinct(sets)]
        keep: Any = self.knowledge_filter if topic is None else self.topic_filter
        return run_parallel([partial(keep, question=question, topic=topic, passages=passages) for passages in sets])

    def answer(self, question: str, answer_style: AnswerStyle, passages: list[Passage]) -> list[CitedAnswer]:
        """Return the answers that are drawn and could be read, with their content and references (section 3.4)."""
        inputs = {"question": question, "answer_style": answer_style}
        draw = partial(cited_answer, self.knowledge_answer, passages)
        return usable([partial(draw, config, **inputs) for config in self.sampling()])

    def sampling(self) -> list[dict[str, float]]:
        """Return the LM's options for each sample; those after the first have a rollout of their own."""
        count = self.settings.samples
        if count == 1:
            return [{}]
        spread = [number / (count - 1) for number in range(count)]
        options = [{"temperature": value} for value in spread]
        if self.settings.sampled_by == "top_p":
            options[1:] = [{"temperature": 1.0, "top_p": value} for value in spread[1:]]
        return [one | ({"rollout_id": rollout_of(number)} if number else {}) for number, one in enumerate(options)]


def add_queries(tree: ReasoningTree, blended: dict[Query, Knowledge]) -> list[list[Node]]:
    """Add the queries to the tree, each with its passages below it; return the passages' nodes, query by query."""
    added = []
    for blend, knowledge in blended.items():
        query = tree.grow(None, query=knowledge.query, blend=blend)
        added.append(
            [tree.grow(query, query=knowledge.query, source="passage", passage=one) for one in knowledge.passages]
        )
    return added


def mark_kept(tree: ReasoningTree, nodes: list[list[Node]], filtered: list[Filtered]) -> None:
    """Mark the passages that passed the filter: their query's own filter, or the filter of all queries."""
    filters = filtered if len(filtered) == len(nodes) else filtered * len(nodes)
    for below, left in zip(nodes, filters, strict=True):
        kept = {passage.id for passage in left.kept}
        for node in below:
            tree.update(node, ended="kept" if node.passage and node.passage.id in kept else "filtered out")
