"""One question that was asked: its gold, its answer, what was found, cited and spent, and what the answer is worth.

Asking and scoring are two steps. `record_answer` makes a record of a program's prediction; `score` needs that record
and no LM, so any metric can be run over what was answered before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from math import isfinite
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..common.errors import QuestreeError
from ..common.event_loop import no_coroutine
from ..common.secrets import holds_secret, without_secrets
from ..common.text import without_surrogates
from ..lm.episode import Dropped
from ..lm.failure import CallFailedError, Failure, Where, first_line, raised_in
from ..lm.spent import Spent
from ..metrics import METRICS, Gold, citation_scores, precision, ranked, recall_at_k, s_precision
from ..metrics.found_passages import answer_stands_in, answers_in_passages, gold_names, names_as
from ..programs import ReasoningTree
from ..programs.answer import Answered
from ..programs.tree import without_repeats
from ..retrieval import Passage
from .identity import digest

ScoreFunction = Callable[..., Any]
"""``(example, prediction, trace=None)``, as DSPy has it; its name is its ``name``, or the function's own."""


logger = logging.getLogger(__name__)

METRICS_VERSION = 4
"""The version of the measures: what was measured by another is measured anew, from what was answered."""

RECALL_AT, CONTEXTS = (2, 5, 15), (5, 15)
"""The numbers of passages at which recall, and whole chains and answers, of every program are measured."""
_BY = ("", "title ")


COLUMNS = {
    *("program", "questions", "score", "answered", "difference", "p", "failed", "calls", "words_in", "words_out"),
    *("rounds", "seconds", "cached", "cost", "simulated", "answered alone", "LM calls", "words in", "words out"),
    *(f"{one}_{end}" for one in ("score", "grounded", "answered", "difference") for end in ("low", "high")),
    *("id", "question", "answers", "answer", "failure", "final_content", "references", "sources", "tokens", "kind"),
    *("hops", "documents", "documents a call", "evidences", "skc", "amp", "citation_precision", "citation_recall"),
    *("grounded", "rests_on", *(f"answer@{k}" for k in CONTEXTS), *(f"{by}chain@{k}" for by in _BY for k in CONTEXTS)),
    *("chain_cited", *(f"{by}chain cited" for by in _BY)),
    *(f"{by}{kind}@{k}" for by in _BY for kind in ("recall", "precision") for k in (*RECALL_AT, "all")),
    *(f"{by}{kind} kept" for by in _BY for kind in ("recall", "precision", "s-precision")),
}
"""The names of the other columns of results, which the figures of a metric of that name would replace."""

JUDGE = "judge "
"""How the name of each metric begins that is an LM as a judge."""


class MetricError(QuestreeError):
    """A metric that raised an error or gave no number; the answer that it was to score is kept."""


class Record(Answered):
    """What a run keeps of a question: the answer, its gold and its scores; one line of JSON.

    It holds all that a metric needs: ``metric("f1")(record.example, record.prediction)`` scores it.

    Attributes:
        id: unique in its task.
        inputs: digest of what the program was given.
        gold: digest of the example's other fields, which metrics may look at; likewise.
        gold_answers: the example's ``answers``.
        answer_style: the form of the answer.
        answers_are_regex: whether the gold answers are regular expressions.
        passages: what the answer rests on.
        seen: every passage that was found, in the order in which all programs are measured (`ranked`).
        sources: knowledge source of each node on the final path (SearChain, table 2).
        rounds: of interaction that the tree grew in (SearChain, table 5); 0 if nothing grew.
        scores: by the metric's name; 0 if the question failed.
        gold_passages: what tells the gold passages from all others; empty if only their titles are known.
        gold_sentences: the gold paragraphs with their supporting sentences, where the data set tells them.
        retrieval: what was found, by name (`retrieval_scores`); recall and precision only if gold passages or titles
            are known.
        dropped: what was left out of prompts so that they fit the LM's window.
        trace: where its MLflow trace stands in MLflow's pages, of whichever store: ``experiments/…/traces/…``; empty
            if it was not traced.
        kind: the data set's own type of question.
        extras: the further fields of the program's prediction, as JSON.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    question: str
    inputs: str = ""
    gold: str = ""
    gold_answers: tuple[str, ...] = ()
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
    extras: dict[str, Any] = Field(default_factory=dict)

    @property
    def example(self) -> dspy.Example:
        """Return the question, as it was asked, with its gold side."""
        names = ("id", "question", "answer_style", "answers_are_regex", "kind", "hops")
        fields: dict[str, Any] = {name: getattr(self, name) for name in names}
        fields |= {"answers": list(self.gold_answers)} | {name: list(getattr(self, name)) for name in _GOLD}
        return dspy.Example(**fields).with_inputs("question", "answer_style")

    @property
    def prediction(self) -> dspy.Prediction:
        """Return the program's prediction, as metrics take it."""
        fields = self.answer_fields | {name: getattr(self, name) for name in _BESIDE} | self.extras
        lists = {name: list(fields[name]) for name in ("references", "passages", "seen")}
        return dspy.Prediction(**fields | lists)


_GOLD = ("gold_titles", "gold_passages", "gold_sentences")
"""What an example and a record both have as lists; a record's gold answers are the example's ``answers``."""
_BESIDE = ("passages", "seen", "dropped")
"""What a prediction and a record both have, beside the fields of `Answered`."""


def question_id(example: dspy.Example) -> str:
    """Return the example's id; if it has none, one that is made from its question."""
    return str(example.get("id") or digest(example.question))


def metric_name(metric: ScoreFunction) -> str:
    """Return the name under which a metric's scores are kept."""
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__))


def checked_metrics(
    metrics: ScoreFunction | Sequence[ScoreFunction], examples: Iterable[dspy.Example]
) -> list[ScoreFunction]:
    """Return the metrics of a run, one or several, if they can score its questions: nothing has been asked yet."""
    given: Any = metrics  # whatever it is
    listed = [given] if callable(given) or isinstance(given, str) else list(given)
    if not listed:
        raise QuestreeError("There is no metric; give one at least, for example questree.metrics.metric('f1').")
    for place, one in enumerate(listed):
        name = metric_name(checked_metric(one))
        if METRICS.get(name, one) != one:
            raise QuestreeError(f"{name!r} is the name of a metric of ours: give yours another name.")
        if name in COLUMNS and (place or name != "score"):  # of the first it is the score
            raise QuestreeError(f"{name!r} is the name of another column of the results: give another.")
        if any(name == metric_name(other) and one != other for other in listed[:place]):
            raise QuestreeError(f"Two metrics are called {name!r}: give them different names.")
    graded = [one for one in listed if hasattr(one, "check")]
    for example in examples if graded else ():
        asked = f"The question {question_id(example)!r}"
        if not example.get("answers"):
            raise QuestreeError(
                f"{asked} has no gold answers, and {graded[0].name} goes by them: give it a list of texts as `answers`."
            )
        for metric in graded:
            try:
                metric.check(Gold.of(example))
            except QuestreeError as error:
                raise QuestreeError(f"{asked} cannot be scored: {error}") from error
    return listed


def checked_metric(given: Any) -> ScoreFunction:
    """Return what was given if it can be a metric."""
    if not callable(given) or isinstance(given, type):
        raise QuestreeError(
            f"{given!r} is no metric: give a function (example, prediction, trace=None), or one of ours by "
            "questree.metrics.metric(NAME)."
        )
    checked: ScoreFunction = given
    return checked


def keeps_scores(metric: ScoreFunction) -> bool:
    """Return whether a metric's stored scores stand: ours, and those that were paid for; other code may change."""
    return METRICS.get(metric_name(metric)) is metric or bool(judges_among([metric]))


def judges_among(metrics: Sequence[ScoreFunction]) -> dict[str, Any]:
    """Return the metrics that ask an LM which is paid for, by name."""
    return {name: metric for metric in metrics if (name := metric_name(metric)).startswith(JUDGE)}


def scored_alone(records: Iterable[Record], names: Sequence[str]) -> tuple[Record, ...]:
    """Return the records with the scores by these metrics alone."""
    return tuple(
        one.model_copy(update={"scores": {name: one.scores[name] for name in names if name in one.scores}})
        for one in records
    )


_ASKED = {"question", "answer_style", "inputs"}


def up_to_date(record: Record, example: dspy.Example) -> Record | None:
    """Return the record with the example's gold side; None if the program would be given something else now.

    If its gold side differs, it is without the scores that may go by that. A judge was paid for, and goes by the
    answers alone.
    """
    fields = example_fields(example)
    changed = {name for name, value in fields.items() if getattr(record, name) != value}
    if changed & _ASKED:
        return None
    if not changed:
        return record
    fields["retrieval"] = retrieval_scores(record.prediction, example)
    fields["scores"] = {} if "gold_answers" in changed else by_judges(record)
    return record.model_copy(update=fields)


def by_judges(record: Record) -> dict[str, float]:
    """Return the scores that an LM gave as a judge, by its name as a metric."""
    return {name: score for name, score in record.scores.items() if name.startswith(JUDGE)}


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
    if holds_secret(line.encode()):  # to look into every text of a prediction takes longer than to look at its line
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
    """Return the record of a question at which the program itself went wrong, with what was found and spent before."""
    said = without_secrets(f"{type(error).__name__}: {error}")[:500]
    failure = Failure(cause="error", message=said, where=Where(program=program, step=raised_in(error)))
    seen = ranked([], found)
    lost = dspy.Prediction(passages=seen, seen=seen, failure=failure, spent=spent, seconds=seconds)
    return record_answer(example, lost)


def score(record: Record, example: dspy.Example, metrics: Sequence[ScoreFunction]) -> Record:
    """Return the record with the scores that it does not have yet; a failed question scores 0.

    Where the LM that a metric asks gives no usable reply, that score is missing, with a warning. The first metric is
    the run's score: it scores every answer. The example may have more fields than the record.

    Raises:
        MetricError: if a metric raises another error or gives no finite number, if its LM does not take the key, or
            if the first one cannot score; names the metric and the question.
    """
    prediction, scores = record.prediction, dict(record.scores)
    for place, metric in enumerate(metrics):
        name = metric_name(metric)
        if name in scores:
            continue
        try:
            scores[name] = 0.0 if record.failure else _score(metric, name, example, prediction)
        except MetricError as error:
            cause = error.__cause__
            if place == 0 or not isinstance(cause, CallFailedError) or cause.failure.cause == "auth":
                raise
            logger.warning("%s This score is missing; the same command asks for it again.", error)
    return record.model_copy(update={"scores": scores})


def _score(metric: ScoreFunction, name: str, example: dspy.Example, prediction: dspy.Prediction) -> float:
    place = f"The metric {name!r} cannot score the answer to question {question_id(example)!r}"
    try:
        value = float(no_coroutine(metric(example, prediction), metric_name(metric)))
    except Exception as error:
        raise MetricError(f"{place}: {type(error).__name__}: {error}.") from error
    if not isfinite(value):
        raise MetricError(f"{place}: it gave {value}.")
    return value


def retrieval_scores(prediction: dspy.Prediction, gold: Mapping[str, Any] | dspy.Example) -> dict[str, float]:
    """Return what a question's retrieval, and its citations, were worth.

    ``recall@2``, ``@5``, ``@15`` and ``@all``, and ``precision@all``, of the passages that were seen, in the common
    order; ``chain@5`` and ``@15``, whether all gold passages are among them; ``recall``, ``precision`` and
    ``s-precision`` "kept" of those that the answer rests on; ``chain cited``, whether it cites all gold passages. If
    only the titles of the gold passages are known, each name begins with ``title``. ``answer@5`` and ``@15``: whether a
    gold answer stands in them. Also ``documents``, the different passages that were looked at, and ``evidences`` (ToR,
    table 5); ``skc`` and ``amp`` of the citations (SearChain, section 4.3.4), their precision and recall; ``skc`` and
    ``citation_recall`` also where nothing is cited.

    Args:
        prediction: of the question; one that does not tell what was seen has no recall@k.
        gold: the example; the titles of its gold passages are taken where these are not known.
    """
    scores: dict[str, float | None] = {}
    passages, titles = gold.get("gold_passages") or (), gold.get("gold_titles") or ()
    tree, evidence, told = prediction.get("tree"), prediction.get("evidence"), prediction.get("seen")
    if (passages or titles) and prediction.get("passages") is not None:
        wanted = gold_names(passages, titles)
        kept, seen = (names_as(found, passages) for found in (prediction.passages, told or prediction.passages))
        found: dict[str, float | None] = {}
        if told is not None:
            found = {f"recall@{k}": recall_at_k(seen, wanted, k) for k in RECALL_AT}
            found |= {f"chain@{k}": found[f"recall@{k}"] == 1 for k in CONTEXTS}
        found |= {"recall@all": recall_at_k(seen, wanted), "precision@all": precision(seen, wanted)}
        found |= {"recall kept": recall_at_k(kept, wanted), "precision kept": precision(kept, wanted)}
        found["s-precision kept"] = s_precision(kept, wanted)
        found["chain cited"] = recall_at_k(names_as(prediction.get("references") or (), passages), wanted) == 1
        scores = {name if passages else f"title {name}": value or 0.0 for name, value in found.items()}
    answers = answers_in_passages(gold.get("answers") or (), gold.get("answer_style") or "short")
    if answers and told is not None:
        are_regex = bool(gold.get("answers_are_regex"))
        scores |= {f"answer@{k}": float(answer_stands_in(told[:k], answers, are_regex)) for k in CONTEXTS}
    scores |= {} if tree is None else {"documents": len(tree.passages())}
    scores |= {} if evidence is None else {"evidences": len(evidence)}
    if tree is not None and prediction.get("final_content") is not None:
        scores |= citation_scores(prediction)
    return {name: float(value) for name, value in scores.items() if value is not None}


def plain(value: Any) -> Any:
    """Return the value as JSON; for an object that JSON does not know, its kind alone, never what is in it."""
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
        **{name: tuple(example.get(name) or ()) for name in _GOLD},
    }
