"""Self-consistency, around any program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dspy
from pydantic import Field

from ...signatures import AnswerStyle
from ..majority import sample, winner
from ..program import Program, ProgramSettings, answered
from ..tree import ReasoningTree


class SelfConsistencySettings(ProgramSettings):
    """What is sampled, and how often.

    Attributes:
        of: the name of the program that reasons.
        program: its settings; those that are not given have their defaults.
        samples: how many times it reasons.
        temperature: at which all its calls are sampled.
    """

    of: str = "cot"
    program: Mapping[str, Any] = Field(default_factory=dict)
    samples: int = Field(default=5, ge=1)
    temperature: float = Field(default=0.7, gt=0)


class SelfConsistency(Program):
    """Self-consistency (Wang et al., ICLR 2023, arXiv 2203.11171): several samples, and the majority's answer.

    The paper samples 40 chains of thought; here any program can be sampled, five times by default. Of samples that
    agree, the first one's reasoning and references are given; of equally frequent answers, the one that came first.

    Args:
        program: the program that reasons, built as ``settings.of`` and ``settings.program`` say; `build` does this.
        settings: see `SelfConsistencySettings`.
    """

    name = "self-consistency"
    searches = False
    Settings = SelfConsistencySettings
    settings: SelfConsistencySettings

    def __init__(self, program: Program, settings: SelfConsistencySettings | None = None):
        super().__init__(settings=settings)
        self.retriever = program.retriever
        self.program = program
        self.reader, self.duplicates = program.reader, program.duplicates

    @property
    def lacks_retriever(self) -> bool:
        """Return whether the program inside needs a retriever, and was given none."""
        return self.program.lacks_retriever

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Reason several times, each time on a new tree; add these trees to this one, that of the answer last."""
        samples = sample(
            lambda: self.program.reason(ReasoningTree(question=tree.question), answer_style),
            self.settings.samples,
            self.settings.temperature,
        )
        answers = [str(sampled.answer) for sampled in samples]
        chosen = samples[winner(answers, answer_style)]
        for sampled in [*(sampled for sampled in samples if sampled is not chosen), chosen]:
            tree.graft(sampled.tree)
        return answered(
            tree,
            chosen.answer,
            chosen.final_content,
            chosen.references,
            chosen.get("rests_on") != "guess",
            passages=chosen.passages,
            samples=answers,
        )
