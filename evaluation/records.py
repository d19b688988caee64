"""The record of a question that was asked: its gold side, its answer, what was found, and its scores.

Asking and scoring are separate: `record_answer` makes a record of a program's prediction, and
`questree.evaluation.record_scores` scores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from math import isfinite
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..common.errors import QuestreeError
from ..common.secrets import holds_secret, without_secrets
from ..common.text import without_surrogates
from ..lm.episode import Dropped
from ..lm.failure import Failure, Where, first_line, raised_in
from ..lm.spent import Spent
from ..metrics import ranked
from ..programs.answer import Answered
from ..programs.tree import ReasoningTree, without_repeats
from ..retrieval import Passage
from .identity import digest
from .retrieval_measures import retrieval_scores

METRICS_VERSION = 4
"""The version of the retrieval measures: those of another version are computed anew from the stored answers."""


class Record(Answered):
    """What a run stores of a question: the answer, its gold side and its scores; one line of JSON.

    It holds all that a metric needs: ``metric("f1")(record.example, record.prediction)`` scores it.

    Attributes:
        id: unique in its task.
        inputs: digest of what the program was given.
        gold: digest of the example's other fields, which metrics may use.
        gold_answers: the example's ``answers``; none if the corpus does not tell it.
        needed: of a question whose answer is a list, each item with its spellings.
        answer_style: the form of the answer.
        answers_are_regex: whether the gold answers are regular expressions.
        passages: those that the answer rests on.
        seen: every passage that was found, in the order in which all programs are measured (`ranked`).
        sources: knowledge source of each node on the final path (SearChain, table 2).
        rounds: of interaction that the tree grew in (SearChain, table 5); 0 if nothing grew.
        scores: by the metric's name; 0 if the question failed.
        gold_passages: what identifies the gold passages; empty if only their titles are known.
        gold_sentences: the gold paragraphs with their supporting sentences, where the data set tells them.
        retrieval: what was found, by name (`retrieval_scores`); recall and precision only if gold passages or titles
            are known.
        dropped: what was left out of prompts so that they fit the LM's window.
        trace: where its MLflow trace stands in MLflow's pages, of whichever store: ``experiments/…/traces/…``; empty
            if it was not traced.
        kind: the data set's own type of question.
        self_written: whether the LM that was asked wrote the question.
        extras: the further fields of the program's prediction, as JSON.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    question: str
    inputs: str = ""
    gold: str = ""
    gold_answers: tuple[str, ...] = ()
    needed: tuple[tuple[str, ...], ...] = ()
    answer_style: str = "short"
    answers_are_regex: bool = False
    passages: tuple[Passage, ...] = ()
    seen: tuple[Passage, ...] = ()
    gold_titles: tuple[str, ...] = ()
    gold_passages: tuple[str, ...] = ()
    gold_sentences: tuple[dict[str, Any], ...] = ()
    sources: tuple[str, ...] = ()
    rounds: int = 0
    scores: dict[str, float] = Field(default_factory=dict)
    retrieval: dict[str, float] = Field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    trace: str = Field(default="", pattern=r"^(experiments/[\w-]+/traces/[\w:./-]+)?$")
    kind: str | None = None
    hops: int | None = None
    self_written: bool = False
    extras: dict[str, Any] = Field(default_factory=dict)

    @property
    def gold_answer(self) -> str:
        """Return the canonical gold answer, or all items of a list; empty if the corpus does not tell it."""
        return "; ".join(self.gold_answers if self.needed else self.gold_answers[:1])

    @property
    def example(self) -> dspy.Example:
        """Return the question, as it was asked, with its gold side."""
        names = ("id", "question", "answer_style", "answers_are_regex", "kind", "hops")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields |= {"answers": list(self.gold_answers)} | {name: list(getattr(self, name)) for name in _GOLD}
        fields |= {"needed": list(map(list, self.needed))} if self.needed else {}
        return dspy.Example(**fields).with_inputs("question", "answer_style")

    @property
    def prediction(self) -> dspy.Prediction:
        """Return the program's prediction, as metrics take it."""
        fields = self.answer_fields | {name: getattr(self, name) for name in _BESIDE} | self.extras
        lists = {name: list(fields[name]) for name in ("references", "passages", "seen")}
        return dspy.Prediction(**fields | lists)


_GOLD = ("gold_titles", "gold_passages", "gold_sentences")
"""The lists that an example and a record both have; a record's gold answers are the example's ``answers``."""
_BESIDE = ("passages", "seen", "dropped")
"""The fields that a prediction and a record both have, beside those of `Answered`."""


def question_id(example: dspy.Example) -> str:
    """Return the example's id; if it has none, one that is made from its question."""
    return str(example.get("id") or digest(example.question))


def check_example(example: dspy.Example) -> None:
    """Refuse an example that no record can hold, before anything is asked."""
    try:
        if isinstance(example.get("answers"), str):
            raise ValueError("answers is one text, not a list of texts")
        Record.model_validate_json(Record(**example_fields(example)).model_dump_json())
    except (AttributeError, TypeError, ValueError) as error:
        fault = first_line(error)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])).replace("gold_answers", "answers")
            fault = f"{place}: {first['msg']}"
        raise QuestreeError(
            f"The question {example.get('id') or example.get('question')!r} cannot be asked: {fault}. "
            "It needs a text as question, a list of texts as answers, and with_inputs(...)."
        ) from error


def record_answer(example: dspy.Example, prediction: dspy.Prediction) -> Record:
    """Return the record of a question that was asked, without scores and without secrets.

    Raises:
        ValueError: if the prediction is none, or has something in it that could not be read back: one such line would
            spoil the run.
    """
    record = _record(example, prediction)
    line = record.model_dump_json()
    if holds_secret(line.encode()):  # checking every text of a prediction takes longer than checking its line
        record = _record(example, dspy.Prediction(**without_secrets(dict(prediction))))
        line = record.model_dump_json()
    Record.model_validate_json(line)
    return record


def _record(example: dspy.Example, prediction: dspy.Prediction) -> Record:
    gold, answered = example_fields(example), Answered.of(prediction)
    found = {name: tuple(prediction.get(name) or ()) for name in _BESIDE}
    tree = answered.tree or ReasoningTree(question="")
    path, told = without_repeats(tree.nodes_behind_answer()), {*Answered.model_fields, *_BESIDE}
    return Record(
        **gold | answered.answer_fields | found,
        sources=tuple(node.source for node in path if node.source != "passage" and node.blend is None),
        rounds=max((node.round for node in tree.nodes), default=0),
        retrieval=retrieval_scores(prediction, example),
        extras={name: plain(value) for name, value in prediction.items() if name not in told},
    )


def record_error(
    example: dspy.Example,
    program: str,
    error: Exception,
    seconds: float,
    spent: Spent,
    found: Sequence[Sequence[Passage]],
) -> Record:
    """Return the record of a question at which the program raised an error, with what was found and spent before."""
    said = without_secrets(f"{type(error).__name__}: {error}")[:500]
    failure = Failure(cause="error", message=said, where=Where(program=program, step=raised_in(error)))
    seen = ranked([], found)
    lost = dspy.Prediction(passages=seen, seen=seen, failure=failure, spent=spent, seconds=seconds)
    return record_answer(example, lost)


def plain(value: Any) -> Any:
    """Return the value as JSON; for an object that JSON does not know, only its type, never its content."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json"))
    if isinstance(value, dict):
        return {without_surrogates(str(key)): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(vars(value))
    return f"<{type(value).__name__}>"


def example_fields(example: dspy.Example) -> dict[str, Any]:
    """Return what a record holds of its example, by field."""
    return {
        "id": question_id(example),
        "question": example.question,
        "inputs": digest(plain(dict(example.inputs()))),
        "gold": digest([METRICS_VERSION, plain(dict(example.labels()))]),
        "answer_style": example.get("answer_style") or "short",
        "answers_are_regex": bool(example.get("answers_are_regex")),
        "kind": example.get("kind"),
        "hops": example.get("hops"),
        "gold_answers": tuple(example.get("answers") or ()),
        "needed": tuple(map(tuple, example.get("needed") or ())),
        **{name: tuple(example.get(name) or ()) for name in _GOLD},
    }
