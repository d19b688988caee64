"""Annotated questions that can be shown: a step's answer stands in a sentence of a passage about the step's subject.

Annotations also call a passage the support of an answer if it merely contains the answer somewhere. What is shown
was written by people: the question, the queries of its steps, and sentences of passages. What does not meet this is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from ...common.errors import QuestreeError
from ...common.placeholders import numbers_in
from ...common.sentences import sentences
from ...data.task import AnnotatedStep, resolved_steps
from ...metrics import all_stand_in, claim_terms, normalise, stands_in
from ...metrics.found_passages import gold_names, names_as, normalise_title
from ...retrieval import Passage, Retriever

_SEARCHED = 10  # passages among which those of a step are looked for
DISTRACTORS = 2
_LONGEST_QUERY, _LONGEST_SENTENCE, _LONGEST_TOLD = 30, 35, 20  # words; a long sentence told again teaches copying
_ODD = re.compile(  # relations that read badly, or that annotators use in several senses; annotators' slips
    r"the capital of\?|tributary|an instance of|a subclass of|shares a border|a part of|contain\?|\b(?:end|start)\?"
    r"|follow\?|series is|present\?|administrative|participant|residence|did .+ live\?|is .+ by\?|^What the\b"
    r"|^Which is the\b|past away|\bthe the\b|it's first|\.\?|[`´]",
    re.IGNORECASE,
)
_ASKING = r"Who|Whose|What|Which|Where|When|How|Did|Was|Were|Is|Are|Does"
_QUESTION = re.compile(rf"(?:\w+ (?:which|what|whose|whom)|{_ASKING})\b.*\?")
_SAID = {  # what a sentence says of its subject if it tells what is asked
    r"\b(?:wrote|written|author)\b": r"\b(?:writ\w+|wrote|author|by)\b",
    r"\b(?:born|birth\w*)\b": r"\b(?:born|birth\w*|native)\b",
    r"\b(?:died?|death)\b": r"\b(?:died|death|killed)\b",
    r"\bburied|burial\b": r"\b(?:buried|burial|grave|tomb)\b",
    r"\bheadquarters\b": r"\b(?:headquarter\w*|based)\b",
    r"\b(?:manufacture\w*|producer?)\b": r"\b(?:manufacture\w*|produce\w*|made)\b",
    r"\b(?:spouse|husband|wife|married|marry)\b": r"\b(?:spouse|husband|wife|married|widow)\b",
    r"\b(?:perform\w*|sang|singer)\b": r"\b(?:perform\w*|sang|sung|singer|song|single|album|recorded)\b",
    r"\b(?:starred|cast|actor|actress)\b": r"\b(?:starr\w+|cast|actor|actress|plays|played)\b",
}
_RELATIVE = re.compile(
    r"\b(?:brother|sister|sibling|son|daughter|child|father|mother|parent|wife|husband|spouse|uncle|aunt|nephew|niece"
    r"|cousin|grand\w+)s?\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\b[a-z]{4,}\b")
_ASKS = {"what", "which", "when", "where", "does", "were", "have", "from", "that", "with", "many", "much", "name"}
_PRONOUN = re.compile(r"(?:He|She|They|It|His|Her|Their|Its|This|These|That|There)\b")
_GARBLED = re.compile(r"``|''|\(\s*[;,)]|\s[,;]|\[|\]|\|")


@dataclass(frozen=True)
class AnnotatedFact:
    """A step of a question, and the sentence that states its answer."""

    query: str
    answer: str
    passage: Passage

    @property
    def can_be_told(self) -> bool:
        """Return whether the sentence can be told as it is: it is short, and can be read without its title."""
        return not _PRONOUN.match(self.passage.text) and len(self.passage.text.split()) <= _LONGEST_TOLD


@dataclass(frozen=True)
class AnnotatedLesson:
    """What an annotated question can show.

    Attributes:
        plan: the queries in order, with ``#1`` for the first answer; empty if the question, or one of them, reads
            badly.
        facts: those steps that a passage states, in order.
        distractors: passages that were found but do not help.
    """

    question: str
    answer_style: str
    answer: str
    plan: tuple[str, ...]
    answers: tuple[str, ...]
    facts: tuple[AnnotatedFact, ...]
    distractors: tuple[Passage, ...]

    @property
    def whole(self) -> tuple[AnnotatedFact, ...]:
        """Return all facts if every step is one, and their sentences can be told one after the other; else none."""
        readable = all(fact.can_be_told for fact in self.facts)
        apart = len({fact.passage.id for fact in self.facts}) == len(self.facts)
        return self.facts if readable and apart and len(self.facts) == len(self.plan) else ()


def annotated(examples: Sequence[dspy.Example]) -> list[dspy.Example]:
    """Return the examples whose steps have answers and depend only on earlier steps."""
    found = [example for example in examples if _shows_steps(example)]
    if not found:
        raise QuestreeError(
            f"None of the {len(examples)} training questions has `steps`, the annotated decomposition that "
            "demonstrations are made of, each with its answer, in their order (#1 stands for the answer of the first). "
            "Add them to the questions, or take another optimizer: bootstrap-few-shot."
        )
    return found


def _shows_steps(example: dspy.Example) -> bool:
    """Return whether an example has steps in order, which lead to its one answer."""
    steps: Sequence[Mapping[str, Any]] = example.get("annotated_steps") or []
    return bool(steps and example.get("answers") != [] and not example.get("needed")) and all(
        step.get("answer") and all(1 <= number <= earlier for number in numbers_in(step["question"]))
        for earlier, step in enumerate(steps)
    )


def apart_from(examples: Sequence[dspy.Example], asked: Sequence[dspy.Example]) -> list[dspy.Example]:
    """Return the examples that do not end with the same fact as one of the questions ``asked``.

    Data sets make several questions that end with the same hops. A demonstration of one would tell the other's answer.
    """
    ends = {end for one in asked for end in _ends(one)}
    left = [one for one in examples if ends.isdisjoint(_ends(one))]
    if examples and not left:
        raise QuestreeError(
            f"Each of the {len(examples)} training questions ends with the fact that a question to be scored ends "
            "with, so it would tell that answer: give other training questions."
        )
    return left


def _ends(example: dspy.Example) -> list[object]:
    """Return what identifies the last fact of an example: its last step's answer and passage, and all gold passages."""
    gold = frozenset(_gold(example))
    steps = example.get("annotated_steps") or []
    last = steps[-1] if steps else {}
    title, answer = last.get("support_title"), last.get("answer")
    return [*([gold] if gold else []), *([(normalise_title(title), normalise(answer))] if title and answer else [])]


def _gold(example: dspy.Example) -> list[str]:
    return gold_names(example.get("gold_passages") or (), example.get("gold_titles") or ())


def _is_gold(passage: Passage, example: dspy.Example) -> bool:
    return not {*_gold(example)}.isdisjoint(names_as([passage], example.get("gold_passages") or ()))


def read_lesson(example: dspy.Example, retriever: Retriever | None) -> AnnotatedLesson | None:
    """Return what an annotated example shows; None if it cannot be shown, or there is nothing to find passages with."""
    steps = resolved_steps(example)
    if retriever is None or not _shows_steps(example):
        return None
    asked = [one for one in steps if _is_well_worded(one.question) and is_of_one(one.question, one.support_title or "")]
    found = retriever.batch([f"{step.support_title or ''} {step.question}".strip() for step in asked], _SEARCHED)
    facts = [fact for pair in zip(asked, found, strict=True) if (fact := _fact(example, *pair))]
    plan = tuple(step["question"] for step in example.annotated_steps)
    claim = example.answer_style in ("label", "two-label")
    readable = len(asked) == len(steps) and (claim or _is_well_worded(example.question))
    if not facts and not readable:
        return None
    others = {passage.id: passage for passages in found for passage in passages}.values()
    answers = tuple(str(step.answer) for step in steps)
    distractors = [cut for one in others if (cut := _distractor(one, example, [*plan], answers))][:DISTRACTORS]
    return AnnotatedLesson(
        example.question,
        example.answer_style,
        example.answer,
        plan if readable else (),
        answers,
        tuple(facts),
        tuple(distractors),
    )


def _is_well_worded(query: str) -> bool:
    """Return whether a query is a question that reads well and names what it is about."""
    short = len(query.split()) <= _LONGEST_QUERY
    return short and bool(_QUESTION.fullmatch(query) and claim_terms(query)) and not _ODD.search(query)


def _fact(example: dspy.Example, step: AnnotatedStep, found: Sequence[Passage]) -> AnnotatedFact | None:
    """Return the step with the first sentence of its gold passages that states the answer; None if none does."""
    for passage in found:
        titled = not step.support_title or normalise_title(passage.title) == normalise_title(step.support_title)
        if not titled or not _is_gold(passage, example):
            continue
        for sentence in sentences(passage.text):
            if states(step.question, step.answer or "", passage.title, sentence):
                cut = passage.model_copy(update={"text": sentence})
                return AnnotatedFact(step.question, step.answer or "", cut)
    return None


def states(query: str, answer: str, title: str, sentence: str) -> bool:
    """Return whether a sentence states the answer to a query about the query's own subject.

    The passage is about that subject, by its title. The sentence holds the answer, and names what the query names
    beside the title. It says what is asked: that somebody was born, or else all words of the query. And it names
    nobody's relative before the answer, unless one is asked for: "his brother studied in Leiden" tells where somebody
    else studied.
    """
    if not _is_readable(sentence) or not stands_in(sentence, answer):
        return False
    names, subject = claim_terms(query), title.partition(" (")[0]
    if not is_of_one(query, title):
        return False
    about = stands_in(query, subject) or any(stands_in(subject, name) for name in names)
    if not about or not all(all_stand_in(f"{subject}. {sentence}", name) for name in names):
        return False
    before = sentence.casefold().partition(answer.casefold())[0]  # all of it, if the answer is written otherwise there
    if _RELATIVE.search(before) and not _RELATIVE.search(query):
        return False
    if wanted := [said for asked, said in _SAID.items() if re.search(asked, query, re.IGNORECASE)]:
        return all(re.search(said, sentence, re.IGNORECASE) for said in wanted)
    words = set(_WORD.findall(query)) - _ASKS
    return all(word[:5] in sentence.casefold() for word in words)


def is_of_one(query: str, title: str) -> bool:
    """Return whether a query says which of several things of one name it means, as the title does in brackets.

    "Who starred in No Escape?" does not: there are several films of that name, and "(1994 film)" is one of them.
    """
    subject, _, kind = title.partition(" (")
    return not stands_in(query, subject) or all(stands_in(query, word) for word in kind.rstrip(")").split())


def _is_readable(sentence: str) -> bool:
    """Return whether it is a short sentence, and no part of a table such as match results."""
    whole = sentence[:1] in '"“' or sentence[:1].isupper()
    figures = 6 * sum(map(str.isdigit, sentence)) > len(sentence)
    short = len(sentence.split()) <= _LONGEST_SENTENCE
    return whole and sentence.endswith(".") and short and not figures and not _GARBLED.search(sentence)


def _distractor(passage: Passage, example: dspy.Example, plan: Sequence[str], answers: Sequence[str]) -> Passage | None:
    """Return a passage, cut to its first readable sentence, if it is no gold one and tells nothing of the question.

    It holds none of the answers, and what it is about is named neither in the question nor in its steps.
    """
    named = " ".join([example.question, *plan, *answers])
    telling = any(stands_in(passage.shown(), one) for one in answers) or stands_in(named, passage.title.split(" (")[0])
    if telling or _is_gold(passage, example):
        return None
    cut = next(filter(_is_readable, sentences(passage.text)), None)
    return passage.model_copy(update={"text": cut}) if cut else None
