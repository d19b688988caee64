"""Self-consistency, around any program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dspy
from pydantic import Field

from ...retrieval import DuplicateCheck, Reader, Retriever
from ...signatures import AnswerStyle
from ..demonstrations import Judgement, TraceStep
from ..modules.sampling import majority, sample
from ..program import Program, answered
from ..tree import ReasoningTree
from .baseline import BaselineSettings


class SelfConsistencySettings(BaselineSettings):
    """What is sampled, and how often.

    Attributes:
        of: the name of the program that reasons.
        program: its settings; what is not given has its default.
        samples: how many times it reasons.
        temperature: at which all its calls are sampled.
    """

    of: str = "cot"
    program: Mapping[str, Any] = Field(default_factory=dict)
    samples: int = Field(default=5, ge=1)
    temperature: float = Field(default=0.7, gt=0)


class SelfConsistency(Program):
    """Self-consistency (Wang et al., ICLR 2023, arXiv 2203.11171): several samples, and the majority's answer.

    The paper samples chains of thought, 40 of them; here it is any program, and five by default. Of samples that
    agree, the first one's reasoning and references are given; of equally frequent answers, the one that came first.

    Args:
        retriever, reader, duplicates: for the program inside, where it takes them.
        settings: see `SelfConsistencySettings`.
    """

    name = "self-consistency"
    searches = False
    Settings = SelfConsistencySettings
    settings: SelfConsistencySettings

    def __init__(
        self,
        retriever: Retriever | None = None,
        reader: Reader | None = None,
        settings: SelfConsistencySettings | None = None,
        duplicates: DuplicateCheck | None = None,
    ):
        from ..registry import build  # which knows all programs, this one among them

        settings = settings or SelfConsistencySettings()
        inner = build(settings.of, dict(settings.program), retriever=retriever, reader=reader, duplicates=duplicates)
        super().__init__(inner.retriever, settings)
        self.program = inner

    @classmethod
    def takes_retriever(cls, settings: Mapping[str, Any]) -> bool:
        """Whether the program inside does."""
        from ..registry import kind_named

        return kind_named(settings.get("of", "cot")).takes_retriever(settings.get("program", {}))

    @property
    def reader(self) -> Any:
        """That of the program inside; None where it has none."""
        return getattr(self.program, "reader", None)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Reason several times over, each on a tree of its own; the tree of the answer is grafted on last."""
        samples = sample(
            lambda: self.program.reason(ReasoningTree(question=tree.question), answer_style),
            self.settings.samples,
            self.settings.temperature,
        )
        chosen = majority(samples, lambda one: str(one.answer))
        others = [one for one in samples if one is not chosen]
        for number, one in enumerate([*others, chosen], start=1):
            graft(tree, one.tree, number)
        return answered(
            tree,
            chosen.answer,
            chosen.final_content,
            chosen.references,
            passages=chosen.passages,
            samples=[one.answer for one in samples],
        )

    def kind_of(self, step: TraceStep) -> str:
        """As the program inside."""
        return self.program.kind_of(step)

    def judgements(self, step: TraceStep) -> list[Judgement]:
        """As the program inside."""
        return self.program.judgements(step)


def graft(tree: ReasoningTree, branch: ReasoningTree, round: int) -> None:
    """Put another tree's nodes at the root of this one, in this round."""
    first = len(tree.nodes)

    def moved(id: int | None) -> int | None:
        return None if id is None else first + id

    for node in branch.nodes:
        fields = dict(node) | {"round": round, "replaces": moved(node.replaces), "repeats": moved(node.repeats)}
        del fields["id"], fields["parent"]
        parent = moved(node.parent)
        tree.grow(None if parent is None else tree.nodes[parent], **fields)
