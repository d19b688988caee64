"""One finished question: what was asked, answered, found, cited and spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, Field

from ..lm.failure import Failure, Where, raised_in
from ..lm.ledger import Dropped, Spent
from ..metrics import citation_scores, precision, recall_at_k, s_precision
from ..programs import ReasoningTree
from ..retrieval import Passage
from .identity import digest

ScoreFunction = Callable[..., Any]
"""``(example, prediction, trace=None)``, as DSPy has it; its name is its ``name``, or the function's own."""


class Cited(BaseModel):
    """A passage by id and title; its text stands in the tree and in the corpus."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str = ""


class Record(BaseModel):
    """What a run keeps of a question; one line of JSON.

    Attributes:
        id: the question's, unique in its task.
        answers: the gold answers.
        references: what ``final_content`` cites: ``[n]`` is ``references[n-1]``.
        passages: what retrieval found, best or first first.
        sources: knowledge source of each node on the final path (SearChain, table 2).
        scores: by the metric's name; 0 where the question failed.
        retrieval: what was found, by name (`retrieval_scores`); recall and precision only where the gold passages
            are known.
        failure: why there is no answer; None where there is one.
        dropped: what was left out of prompts so that they fit the LM's window.
        seconds: wall time of the question.
        kind: the data set's own type of question.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    question: str
    answers: tuple[str, ...] = ()
    answer: str = ""
    final_content: str = ""
    references: tuple[Passage, ...] = ()
    passages: tuple[Cited, ...] = ()
    gold_titles: tuple[str, ...] = ()
    tree: ReasoningTree | None = None
    sources: tuple[str, ...] = ()
    scores: dict[str, float] = Field(default_factory=dict)
    retrieval: dict[str, float] = Field(default_factory=dict)
    failure: Failure | None = None
    spent: Spent = Spent()
    dropped: tuple[Dropped, ...] = ()
    seconds: float = 0.0
    kind: str | None = None
    hops: int | None = None

    @property
    def rounds(self) -> int:
        """Rounds of interaction that the tree grew in (SearChain, table 5); 0 where nothing grew."""
        return max((node.round for node in self.tree.nodes), default=0) if self.tree else 0


def question_id(example: dspy.Example) -> str:
    """The example's id; where it has none, one that is made from its question."""
    return str(example.get("id") or digest(example.question))


def metric_name(metric: ScoreFunction) -> str:
    """Under which name a metric's scores are kept."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))


def record(example: dspy.Example, prediction: dspy.Prediction, metrics: Sequence[ScoreFunction]) -> Record:
    """The record of a question that has been asked."""
    passages = prediction.get("passages") or []
    gold_titles = tuple(example.get("gold_titles") or ())
    failure = prediction.get("failure")
    return Record(
        **_of_example(example),
        answer=prediction.get("answer") or "",
        final_content=prediction.get("final_content") or "",
        references=tuple(prediction.get("references") or ()),
        passages=_cited(passages),
        gold_titles=gold_titles,
        tree=prediction.get("tree"),
        sources=_sources(prediction),
        scores={metric_name(m): 0.0 if failure else float(m(example, prediction)) for m in metrics},
        retrieval=retrieval_scores(prediction, gold_titles),
        failure=failure,
        spent=prediction.get("spent") or Spent(),
        dropped=tuple(prediction.get("dropped") or ()),
        seconds=prediction.get("seconds") or 0.0,
    )


def record_of_error(
    example: dspy.Example, program: str, error: Exception, seconds: float, metrics: Sequence[ScoreFunction]
) -> Record:
    """Return the record of a question at which the program itself went wrong."""
    return Record(
        **_of_example(example),
        gold_titles=tuple(example.get("gold_titles") or ()),
        scores={metric_name(metric): 0.0 for metric in metrics},
        failure=Failure(
            cause="error",
            message=f"{type(error).__name__}: {error}"[:500],
            where=Where(program=program, step=raised_in(error)),
        ),
        seconds=seconds,
    )


def retrieval_scores(prediction: dspy.Prediction, gold_titles: Sequence[str]) -> dict[str, float]:
    """What a question's retrieval, and the citing of it, was worth.

    ``recall``, ``precision`` and ``s-precision`` of ``prediction.passages``; the same "before the filter" where the
    prediction tells what was ``retrieved`` (BlendFilter); ``documents``, the different passages that were looked at,
    and ``evidences`` (ToR, table 5); ``skc`` and ``amp`` of the citations (SearChain, section 4.3.4), where there are
    any.
    """
    scores: dict[str, float] = {}
    for suffix, passages in ((" before the filter", prediction.get("retrieved")), ("", prediction.get("passages"))):
        titles = [passage.title for passage in passages or []]
        if gold_titles and passages is not None:
            scores[f"recall{suffix}"] = recall_at_k(titles, gold_titles, k=max(1, len(titles))) or 0.0
            scores[f"precision{suffix}"] = precision(titles, gold_titles) or 0.0
            scores[f"s-precision{suffix}"] = float(s_precision(titles, gold_titles) or 0.0)
    if prediction.get("tree") is not None:
        scores["documents"] = len(prediction.tree.passages())
    if prediction.get("evidence") is not None:
        scores["evidences"] = len(prediction.evidence)
    if prediction.get("references"):
        cited = citation_scores(prediction)
        scores |= {name: value for name, value in cited.items() if value is not None}
    return scores


def _of_example(example: dspy.Example) -> dict[str, Any]:
    return {
        "id": question_id(example),
        "question": example.question,
        "answers": tuple(example.get("answers") or ()),
        "kind": example.get("kind"),
        "hops": example.get("hops"),
    }


def _cited(passages: Iterable[Passage]) -> tuple[Cited, ...]:
    return tuple(Cited(id=passage.id, title=passage.title) for passage in passages)


def _sources(prediction: dspy.Prediction) -> tuple[str, ...]:
    tree: ReasoningTree | None = prediction.get("tree")
    path = tree.last_path() if tree else []
    return tuple(node.source for node in path if node.source != "passage" and node.blend is None)
