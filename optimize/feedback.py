"""Feedback on an answer, or on one step on the way to it, for an optimizer that reflects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import dspy

from ..common.text import neutralise
from ..data.task import resolved_steps
from ..evaluation.records import plain
from ..metrics import agree, exact_match, normalise, read_label, read_yes_no, stands_in
from ..metrics.found_passages import gold_names, names_as, normalise_title
from ..programs.demonstrations import TraceStep
from ..programs.tree import Node, ReasoningTree
from ..retrieval import Passage
from ..signatures.chain_of_query import PlannedStep, Step

_LOST = ("rejected", "filtered out")
_PLANS, _TELLS = ("every plan",), ("the final content",)


class _Remark(NamedTuple):
    """What went wrong, and in which steps.

    Attributes:
        about: texts that stand in the steps that had part in it; or ``_PLANS``, ``_TELLS``.
        given: whether only steps that were given the texts had part in it, and not those that wrote them.
    """

    text: str
    about: Sequence[str]
    given: bool = False


def feedback(
    example: dspy.Example, prediction: Any, right: bool, step: TraceStep | None = None, *, full: bool = True
) -> str:
    """Return the verdict on an answer in words, with a line for each thing that went wrong.

    Args:
        example: has ``answers`` or ``answer``; without ``gold_passages`` or ``gold_titles`` nothing is said of what was
            found.
        prediction: a program's; None if it gave none.
        right: whether the metric takes the answer.
        step: whose instructions are to be written anew. Remarks on faults that it had no part in are then left out:
            queries that stand in neither its inputs nor its reply, articles never found if it writes no query,
            citations if it does not write the final content. A wrong answer's origin is added.
        full: whether an answer that the metric takes has the full score; if not, the right one is named as well.
    """
    if prediction is None:
        return "No answer was given."
    if prediction.get("failure") is not None:
        return f"No answer was given: {prediction.failure}."
    tree, answer = prediction.get("tree"), prediction.get("answer")
    remarks = [] if tree is None else [*_steps(tree, example), *_searches(tree, example), *_citations(tree, prediction)]
    lines = [one.text for one in remarks if step is None or _takes_part(step, one, tree)]
    if step is not None and tree is not None:
        lines += _facts(step, tree, example)
    if step is not None and not right:
        told = lines + _origin(step, answer) or _wrong_memories(step, example)
        lines = told or ["No fault of this step by itself is known."]
    if not right and (said := example.get("feedback")):
        lines.append(f"A user said {neutralise(said)}")
    return "\n".join([_verdict(example, answer, right, step, full), *dict.fromkeys(lines)])


def _verdict(example: dspy.Example, answer: Any, right: bool, step: TraceStep | None, full: bool) -> str:
    gold, needed = example.get("answers") or [example.get("answer")], example.get("needed")
    all_of = (" and " if needed else " or ").join(map(repr, gold))
    wanted = "to give none: the corpus does not tell it" if example.get("answers") == [] and not any(gold) else all_of
    told = f"The answer {answer!r}" if step is None else f"In the end, the answer {answer!r} to {example.question!r}"
    if right and full:
        return f"{told} is right."
    if right:
        return f"{told} is good enough, without the full score; right is {wanted}."
    if not answer:
        return f"In the end, {example.question!r} got no answer; right is {wanted}."
    if not needed and exact_match(str(answer), list(map(str, gold))):  # the metric asks for more
        return f"{told} is right, but the metric does not accept what was given."
    return f"{told} is wrong; right is {wanted}."


def _takes_part(step: TraceStep, remark: _Remark, tree: ReasoningTree) -> bool:
    _, inputs, reply = step
    written = _text(dict(reply))
    if remark.about == _TELLS or "final_content" in reply:
        return remark.about == _TELLS and "final_content" in reply
    if remark.about == _PLANS:
        return any(_holds(written, _queries(node)) for node in tree.nodes)
    return _holds(_text(inputs) + ("" if remark.given else written), remark.about)


def _origin(step: TraceStep, answer: Any) -> list[str]:
    """Return where a wrong answer came from, as far as known: the step's inputs, or its reply."""
    _, inputs, reply = step
    wrong = str(answer or "")
    if normalise(wrong) and normalise(str(reply.get("answer"))) == normalise(wrong) and _is_closed(wrong):
        return [f"The wrong answer {wrong!r} was given in this reply."]
    if not wrong or _is_closed(wrong):  # such words can stand anywhere
        return []
    given = {name: value for name, value in inputs.items() if name != "passages"}  # passages use it for something else
    if stands_in(_text(given), wrong):
        return [f"The wrong answer {wrong!r} stands in what this step was given."]
    return [f"The wrong answer {wrong!r} began in this reply."] if stands_in(_text(dict(reply)), wrong) else []


def _facts(step: TraceStep, tree: ReasoningTree, example: dspy.Example) -> list[str]:
    """Return the facts of a reading that no quote proves, and the annotated answers in its passages that none tells."""
    _, inputs, reply = step
    if "evidence" not in reply:
        return []
    facts, proven = [one.fact.strip() for one in reply.evidence], {node.query for node in tree.nodes if node.support}
    shown = _text({"passages": inputs.get("passages")})
    return [f"No quote proves the fact {fact!r}." for fact in facts if fact not in proven] + [
        f"No fact of this reply tells {answer!r}, which answers {queries[-1]!r}; a passage holds it."
        for queries, answer in _annotated(example)
        if not _is_closed(answer) and stands_in(shown, answer) and not any(stands_in(fact, answer) for fact in facts)
    ]


def _wrong_memories(step: TraceStep, example: dspy.Example) -> list[str]:
    """Return the recalled answers of a plan that differ from the annotated ones."""
    true = {normalise(query): answer for queries, answer in _annotated(example) for query in queries}
    wrong = list[str]()
    for planned in (one for value in step[2].values() if isinstance(value, list) for one in value):
        if isinstance(planned, Step | PlannedStep):
            memory = planned.answer if isinstance(planned, Step) else planned.recalled
            right = true.get(normalise(planned.query))
            if memory and right and not agree(memory, right):
                wrong.append(f"What this reply remembers for {planned.query!r}, {memory!r}, is wrong; it is {right!r}.")
    return wrong


def _annotated(example: dspy.Example) -> list[tuple[list[str], str]]:
    """Return the annotated answers, each with its query: as it is annotated, and with the earlier answers in it."""
    as_annotated = [step["question"] for step in example.get("annotated_steps") or []]
    return [
        ([query, step.question], step.answer)
        for query, step in zip(as_annotated, resolved_steps(example), strict=True)
        if step.answer
    ]


def _is_closed(answer: str) -> bool:
    return bool(read_yes_no(answer) or read_label(answer))


def _text(fields: dict[str, Any]) -> str:
    return json.dumps(plain(fields), ensure_ascii=False)


def _holds(text: str, parts: Sequence[str]) -> bool:
    return any(json.dumps(part, ensure_ascii=False)[1:-1] in text for part in parts)


def _queries(node: Node) -> Sequence[str]:
    """Return the node's query as it was planned, and as it was looked up."""
    return [query for query in (node.template, node.query) if query]


def _steps(tree: ReasoningTree, example: dspy.Example) -> Iterator[_Remark]:
    """Yield the recalled answers that passages replaced, and the queries left without an answer."""
    known, replaced = _known_answers(example), {node.replaces for node in tree.nodes}
    for node in tree.nodes:
        old = None if node.replaces is None else tree.nodes[node.replaces].answer
        if old and node.support and old != node.answer:
            told, spoilt = f"The answer {old!r}, recalled for {node.query!r}, was", normalise(old) in known
            if spoilt:
                told = f"{told} right, and {node.answer!r} was put in its place."
            elif normalise(node.answer or "") in known:
                told = f"{told} wrong; a passage corrected it to {node.answer!r}."
            else:
                told = f"{told} replaced by {node.answer!r}, from a passage; neither is known to be right."
            yield _Remark(told, _queries(node), given=spoilt)
        if node.source == "unsolved" and node.stance is not None and node.id not in replaced:
            yield _Remark(f"The query {node.query!r} was left without an answer.", _queries(node))


def _known_answers(example: dspy.Example) -> set[str]:
    """Return the right answers to the question and, as far as they are annotated, to its steps."""
    told = [*(example.get("answers") or [example.get("answer")]), *(answer for _, answer in _annotated(example))]
    return {normalise(str(answer)) for answer in told if answer}


def _searches(tree: ReasoningTree, example: dspy.Example) -> Iterator[_Remark]:
    """Yield the queries that found no gold passage, and the gold passages that were not found, or were lost again."""
    passages, titles = example.get("gold_passages") or [], example.get("gold_titles") or []
    gold = gold_names(passages, titles)
    if not gold:
        return
    found: dict[str, set[str]] = {}
    for node in tree.nodes:
        found.setdefault(node.query, set()).update(names_as(_found(node), passages))
        if _found(node) and found[node.query].isdisjoint(gold):
            yield _Remark(f"The query {node.query!r} found no passage that the answer needs.", _queries(node))
    missing = [name for name in gold if not any(name in names for names in found.values())]
    if missing:
        yield from (_Remark(told, _PLANS) for told in _never_found(tree, example, len(missing)))
    for node in tree.nodes:
        if node.passage and node.ended == "no query" and missing:
            yield _Remark("Something was still missing here, but no query was written.", [node.passage.text])
        if node.passage and node.ended in _LOST and not {*gold}.isdisjoint(names_as([node.passage], passages)):
            told = f"The passage {node.passage.title!r}, which the answer needs, was {node.ended}."
            yield _Remark(told, [node.passage.text])


def _never_found(tree: ReasoningTree, example: dspy.Example, missing: int) -> list[str]:
    """Return the articles that no query found, with the queries that they answer where annotations tell it."""
    seen = {normalise_title(passage.title) for node in tree.nodes for passage in _found(node)}
    answers = {step.support_title: f"answers {step.question!r}" for step in resolved_steps(example)}
    titles = dict.fromkeys([*filter(None, answers), *(example.get("gold_titles") or [])])
    return [
        f"No query found the article {title!r}, which {answers.get(title, 'the answer needs')}."
        for title in titles
        if normalise_title(title) not in seen
    ] or [f"No query found {missing} of the passages that the answer needs."]


def _found(node: Node) -> tuple[Passage, ...]:
    return node.found or ((node.passage,) if node.passage else ())


def _citations(tree: ReasoningTree, prediction: Any) -> Iterator[_Remark]:
    """Yield the answers on the path without support, and the supported ones that are not cited."""
    behind, cited = tree.nodes_behind_answer(), {passage.id for passage in prediction.get("references") or []}
    for node in behind:
        if node.stance == "silent" and node.answer:
            told = f"No passage supports the answer {node.answer!r} to {node.query!r}."
            yield from (_Remark(told, about) for about in (_queries(node), _TELLS))
        if node.support and node.passage and node.passage.id not in cited:
            told = f"The final content has no mark for {node.answer!r}, which stands in the passage"
            yield _Remark(f"{told} {node.passage.title!r}.", _TELLS)
