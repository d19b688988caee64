"""BlendFilter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import dspy
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..lm.parallel import together
from ..retrieval import Passage, Retriever
from ..signatures import AnswerStyle
from .demonstrations import Judgement, TraceStep
from .evidence import distinct
from .modules import KnowledgeAnswer, KnowledgeFilter, QueryBlending, TopicNaming
from .modules.knowledge import Filtered
from .modules.sampling import majority
from .program import Program, answered
from .tree import Node, ReasoningTree

Query = Literal["original", "external", "internal"]


class BlendFilterSettings(BaseModel):
    """How BlendFilter retrieves and filters; the defaults are those of section 4 and appendix D.

    Attributes:
        queries: which of the blended queries are used, at least one.
        k: how many passages each of them retrieves.
        hops: how often the external query is augmented anew from what the last one found (remark 1).
        filter: each query's passages by themselves and then united ("each"), united and then filtered ("union",
            remark 2), or not at all ("none").
        topic: whether the LM names the question's topic, to set aside what it knows of it. Yes-no questions
            skip that (appendix D).
        samples: how many final answers are drawn, at temperatures spread evenly from 0 to 1; the one that most
            agree on is given. One is drawn at the LM's own temperature.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    queries: tuple[Query, ...] = Field(default=get_args(Query), min_length=1)
    k: int = Field(default=5, ge=1)
    hops: int = Field(default=1, ge=1)
    filter: Literal["each", "union", "none"] = "each"
    topic: bool = True
    samples: int = Field(default=1, ge=1)

    @field_validator("queries")
    @classmethod
    def _in_order(cls, queries: tuple[Query, ...]) -> tuple[Query, ...]:
        """Each once, in the paper's order: the same set is the same setting."""
        return tuple(query for query in get_args(Query) if query in queries)


@dataclass(frozen=True)
class Knowledge:
    """What one of the blended queries found."""

    query: str
    passages: list[Passage]


class BlendFilter(Program):
    """BlendFilter (Wang et al., EMNLP 2024, arXiv 2402.11129).

    Retrieves with the question, with the question behind what an answer from retrieved passages says (external),
    and behind what the LM remembers (internal); the LM filters the passages of each; the answer is read from the
    union of what is left. Calls that do not wait for each other run at the same time.

    Where the paper leaves open: passages that nothing is left of are not replaced, the LM then answers from what
    it knows; of several samples the paper scores the best one, which only a scorer can know: the prediction holds
    all of them, and the majority's is its answer.

    Args:
        retriever: finds the passages.
        settings: see `BlendFilterSettings`.
    """

    name: ClassVar[str] = "blendfilter"
    Settings = BlendFilterSettings
    settings: BlendFilterSettings

    def __init__(self, retriever: Retriever | None = None, settings: BlendFilterSettings | None = None):
        super().__init__(retriever, settings or BlendFilterSettings())
        self.query_blending = QueryBlending()
        self.topic_naming = TopicNaming()
        self.knowledge_filter = KnowledgeFilter(self.settings.topic)
        self.knowledge_answer = KnowledgeAnswer()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Section 3: blend queries, filter what each of them found, answer from the union of what is left.

        Beside the usual fields, the prediction has ``retrieved``, the passages before the filter, while
        ``passages`` are those after it; ``samples``, the answers that were drawn; and ``misnumbered``, how many
        numbers the filter gave that no passage has, or twice.
        """
        tasks: list[Callable[[], Any]] = [
            partial(self.blend, tree.question, answer_style),
            partial(self.topic, tree.question, answer_style),
        ]
        blended, topic = together(tasks)
        nodes = add_queries(tree, blended)
        filtered = self.filter(tree.question, topic, [knowledge.passages for knowledge in blended.values()])
        mark_kept(tree, nodes, filtered)
        kept = distinct([one.kept for one in filtered])
        samples = self.answer(tree.question, answer_style, kept)
        answer, content, references = majority(samples, lambda drawn: drawn[0])
        return answered(
            tree,
            answer,
            content,
            references,
            passages=kept,
            retrieved=distinct([knowledge.passages for knowledge in blended.values()]),
            samples=[sample for sample, _, _ in samples],
            misnumbered=sum(one.misnumbered for one in filtered),
        )

    def blend(self, question: str, answer_style: AnswerStyle) -> dict[Query, Knowledge]:
        """Section 3.2: what each query finds. The two augmentations run at the same time."""
        queries = self.settings.queries
        found = {} if queries == ("internal",) else {"original": self.find(question)}
        augmentations: dict[Query, Callable[[], Knowledge]] = {
            "external": lambda: self.external(question, answer_style, found["original"]),
            "internal": lambda: self.find(self.query_blending.internal(question)),
        }
        augmented = [query for query in queries if query != "original"]
        found |= zip(augmented, together([augmentations[query] for query in augmented]), strict=True)
        return {query: found[query] for query in queries}

    def external(self, question: str, answer_style: AnswerStyle, knowledge: Knowledge) -> Knowledge:
        """External augmentation: answer from what was found, and retrieve with that answer before the question."""
        for _ in range(self.settings.hops):
            knowledge = self.find(self.query_blending.external(question, answer_style, knowledge.passages))
        return knowledge

    def find(self, query: str) -> Knowledge:
        """The k passages that the query retrieves."""
        return Knowledge(query, self.retrieve(query, self.settings.k))

    def topic(self, question: str, answer_style: AnswerStyle) -> str | None:
        """The question's topic, where the filter needs one."""
        if not self.settings.topic or self.settings.filter == "none" or answer_style == "yes-no":
            return None
        topic: str = self.topic_naming(question=question)
        return topic

    def filter(self, question: str, topic: str | None, sets: list[list[Passage]]) -> list[Filtered]:
        """Section 3.3: what is left of each query's passages, or of them all (remark 2)."""
        if self.settings.filter == "none":
            return [Filtered(passages) for passages in sets]
        if self.settings.filter == "union":
            sets = [distinct(sets)]

        def keep(passages: list[Passage]) -> Filtered:
            kept: Filtered = self.knowledge_filter(question=question, passages=passages, topic=topic)
            return kept

        return together([partial(keep, passages) for passages in sets])

    def answer(
        self, question: str, answer_style: AnswerStyle, passages: list[Passage]
    ) -> list[tuple[str, str, list[Passage]]]:
        """Section 3.4: the answer, its content and references; several where several are drawn."""
        count = self.settings.samples
        temperatures = [None] if count == 1 else [n / (count - 1) for n in range(count)]

        def draw(temperature: float | None) -> tuple[str, str, list[Passage]]:
            drawn: tuple[str, str, list[Passage]] = self.knowledge_answer(
                question=question, answer_style=answer_style, passages=passages, temperature=temperature
            )
            return drawn

        return together([partial(draw, temperature) for temperature in temperatures])

    def kind_of(self, step: TraceStep) -> str:
        """Of a filtering, whether it kept all, some or none of the passages."""
        _, given, reply = step
        if "kept" not in reply:
            return ""
        kept = len({number for number in reply.kept if 0 <= number < len(given["passages"])})
        return "all" if kept == len(given["passages"]) else "some" if kept else "none"

    def judgements(self, step: TraceStep) -> list[Judgement]:
        """Of a filtering, each passage."""
        _, given, reply = step
        if "kept" not in reply:
            return []
        return [Judgement([shown], number in reply.kept) for number, shown in enumerate(given["passages"])]


def add_queries(tree: ReasoningTree, blended: dict[Query, Knowledge]) -> list[list[Node]]:
    """The queries as nodes of the tree, each with its passages below it; the passages' nodes, query by query."""
    added = []
    for blend, knowledge in blended.items():
        query = tree.grow(None, query=knowledge.query, blend=blend)
        added.append(
            [tree.grow(query, query=knowledge.query, source="passage", passage=one) for one in knowledge.passages]
        )
    return added


def mark_kept(tree: ReasoningTree, nodes: list[list[Node]], filtered: list[Filtered]) -> None:
    """Write down which passages passed the filter: that of their query, or the one of all queries."""
    filters = filtered if len(filtered) == len(nodes) else filtered * len(nodes)
    for below, left in zip(nodes, filters, strict=True):
        kept = {passage.id for passage in left.kept}
        for node in below:
            tree.update(node, ended="kept" if node.passage and node.passage.id in kept else "filtered out")
