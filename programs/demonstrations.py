"""Which steps of a trace make good demonstrations.

A trace is DSPy's: the calls of one question, in order. The module that made a call notes on the reply (`note`) what
kind of step it was, and which passages it kept and which it rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

import dspy

from ..common.placeholders import numbers_in
from ..data.task import resolved_steps
from ..metrics import agree, normalise
from ..metrics.found_passages import gold_names, names_as
from ..retrieval import Passage
from ..signatures.chain_of_query import PlannedStep, Step, TracedStep
from .tree import ReasoningTree

TraceStep = tuple[dspy.Predict, dict[str, Any], dspy.Prediction]
"""A predictor, its inputs, and its reply."""

T = TypeVar("T")


class Judgement(NamedTuple):
    """A step's decision on some passages of its prompt: one of them is useful, or none is."""

    passages: Sequence[Passage]
    kept: bool


class Note(NamedTuple):
    """Notes of the module that made a call, on the step.

    Attributes:
        kind: of the step, among those of its predictor; empty if there is only one.
        judgements: of passages.
        exemplary: whether it may be a demonstration; off for a text with a mark that had to be taken out.
    """

    kind: str = ""
    judgements: Sequence[Judgement] = ()
    exemplary: bool = True


def note(
    reply: dspy.Prediction, kind: str = "", judgements: Sequence[Judgement] = (), *, exemplary: bool = True
) -> None:
    """Note on a reply what kind of step it makes, and what it decided about passages, as `Note` says.

    A predictor should be shown a step of each kind (of a review: one that accepts, one that searches on, one that
    rejects). None of this is an output field: demonstrations are made of those.
    """
    reply._note = Note(kind, judgements, exemplary)


def noted(step: TraceStep) -> Note:
    """Return what was noted on the reply of a step."""
    found: Note = getattr(step[2], "_note", Note())
    return found


def with_fields(reply: dspy.Prediction, fields: dict[str, Any]) -> dspy.Prediction:
    """Return the reply with other values in these fields, and with what was noted on it."""
    changed = dspy.Prediction(**{**dict(reply.items()), **fields})
    changed._note = getattr(reply, "_note", Note())
    return changed


def as_found(step: TraceStep, tree: ReasoningTree, example: Any = None) -> TraceStep:
    """Return the step without the recalled answers of its plan that turned out to be wrong or unsupported.

    A plan that was corrected or completed later would teach false certainty, and SearChain needs plans that say what is
    not known. A plan stays as it is if nothing was looked up. A recalled answer stays if the verdict supports it, if it
    resembles the final answer from a passage, or if the annotations have it. Any other answer is replaced by the
    annotated one, marked as not sure, or is removed. Later steps that need a removed answer lose theirs too.
    """
    predictor, inputs, reply = step
    plans = {name: value for name, value in reply.items() if _is_plan(value)}
    if not plans or not any(node.found for node in tree.nodes):
        return step
    steps = getattr(example, "annotated_steps", None) or []
    true = {normalise(one["question"]): str(one["answer"]) for one in steps if one.get("answer")}
    solved = len(inputs.get("solved") or [])
    found = {name: [_as_found(planned, tree, true) for planned in value] for name, value in plans.items()}
    return predictor, inputs, with_fields(reply, {name: _consistent(plan, solved) for name, plan in found.items()})


def _is_plan(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Step | PlannedStep) for one in value)


def _as_found(planned: Step | PlannedStep, tree: ReasoningTree, true: Mapping[str, str]) -> Step | PlannedStep:
    recalled = planned.answer if isinstance(planned, Step) else planned.recalled
    looked_up = [node for node in tree.nodes if planned.query in (node.template, node.query)]
    annotated = true.get(normalise(planned.query))
    supported = [node.answer for node in looked_up if node.support and node.answer] + ([annotated] if annotated else [])
    agreed = annotated is None and any(node.stance == "supports" and node.replaces is None for node in looked_up)
    if recalled is None or agreed or any(agree(recalled, one) for one in supported):
        return planned
    if isinstance(planned, Step):
        return planned.model_copy(update={"answer": None})
    return planned.model_copy(update={"recalled": annotated, "sure": False})


def _consistent(plan: Sequence[Step | PlannedStep], solved: int) -> list[Step | PlannedStep]:
    """Return the plan without the answers that depend on an earlier answer that is not recalled.

    The mother of #1 cannot be recalled if #1 is not. The first step's number follows those of the solved steps.
    """
    unknown, steps = set[int](), list[Step | PlannedStep]()
    for number, step in enumerate(plan, start=solved + 1):
        if isinstance(step, PlannedStep):
            if not unknown.isdisjoint(numbers_in(step.query)):
                step = step.model_copy(update={"recalled": None, "sure": False})
            if not step.recalled:
                unknown.add(number)
        steps.append(step)
    return steps


def select_demonstrations(trace: Sequence[TraceStep], example: Any) -> list[TraceStep]:
    """Return the steps to demonstrate; the steps of one predictor are ordered so that their kinds alternate.

    The first steps of a predictor that is called many times are then of different kinds. A step that contradicts the
    example's gold passages, if these are known, is left out, even if the final answer was right.
    """
    sound = [
        step
        for step in trace
        if noted(step).exemplary
        and not contradicts(noted(step).judgements, example)
        and not _tells_wrong(step, example)
    ]
    by_predictor = _group(sound, lambda step: id(step[0]))
    return [step for steps in by_predictor for step in alternate(steps, lambda step: noted(step).kind)]


def contradicts(judgements: Sequence[Judgement], example: Any) -> bool:
    """Return whether a gold passage was rejected, or passages were kept of which none is gold.

    Gold passages are those of the recall measure: those with a gold title, if the task knows no gold passages.
    """
    passages = tuple(getattr(example, "gold_passages", None) or ())
    gold = {*gold_names(passages, tuple(getattr(example, "gold_titles", None) or ()))}
    return bool(gold) and any(
        judged.kept == gold.isdisjoint(names_as(judged.passages, passages)) for judged in judgements
    )


def _tells_wrong(step: TraceStep, example: Any) -> bool:
    """Return whether a solved step in the prompt has another answer than the annotations."""
    true = {normalise(solved.question): solved.answer for solved in resolved_steps(example)}
    shown = [item for value in step[1].values() if isinstance(value, list) for item in value]
    pairs = [(true.get(normalise(item.query)), item.answer) for item in shown if isinstance(item, Step | TracedStep)]
    return any(gold and given and not agree(gold, given) for gold, given in pairs)


def alternate(items: Sequence[T], kind: Callable[[T], Hashable]) -> list[T]:
    """Return the items so that their kinds alternate, in the order in which each kind came first."""
    turns = zip_longest(*([(item,) for item in group] for group in _group(items, kind)))
    return [entry[0] for turn in turns for entry in turn if entry is not None]


def _group(items: Sequence[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())
