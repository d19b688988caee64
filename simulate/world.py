"""What is true by annotated questions: a fact for each way to ask for an answer, and how passages tell it."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..common.placeholders import fill_in, numbers_in
from ..data import Question
from ..metrics import contains, normalise, passage_fingerprint
from ..metrics.found_passages import is_fingerprint
from .phrases import describe
from .prompt import split_title

_EDGES = ".,;:!?()\"'“”"
_YEAR = re.compile(r"^(?:1\d|20)\d\d$")
_Way = tuple[str, tuple[str, ...]]  # a query, and the facts needed for its answer
_ASKS = re.compile(r"\b(who|whom|whose|where|when|year|city|town|country|state|river|how many|how long)\b")


@dataclass(frozen=True)
class WorldFact:
    """The answer to one query.

    Attributes:
        query: in words; the same words, normalised, are the same fact.
        titles: of the passages that hold the answer: empty where no passage states it, None where the data do not
            say, and any passage may.
        gold: fingerprints of the question's gold passages; empty where only titles are known.
        needs: the keys of the facts that a model has to know to know this one: itself, or those that it is put
            together from ("where was the one who wrote X born").
        kind: of answer (`find_kind`), so that a wrong one can be of the same kind.
    """

    query: str
    answers: tuple[str, ...]
    titles: tuple[str, ...] | None
    needs: tuple[str, ...]
    kind: str
    gold: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return what identifies the fact."""
        return normalise(self.query)


class World:
    """The facts and the questions that a simulated model can be asked about.

    Every step of a question is a fact, with the true answers of earlier steps in its words, or with descriptions
    in their place. The whole question is a fact, too. Where two questions disagree on a fact, the earlier one holds.
    """

    def __init__(self, questions: Iterable[Question]):
        self.questions = tuple(remembered(one) for one in questions if one.answers)
        self._by_words = {normalise(question.question): question for question in reversed(self.questions)}
        self._facts: dict[str, WorldFact] = {}
        for question in self.questions:
            for fact in _facts(question):
                self._facts.setdefault(fact.key, fact)
        self._alike: dict[str, list[str]] = {}
        for fact in self._facts.values():
            if len(fact.needs) == 1 and fact.answers[0] not in self._alike.setdefault(fact.kind, []):
                self._alike[fact.kind].append(fact.answers[0])

    @property
    def fingerprint(self) -> str:
        """Return a hash of everything in it: two worlds with the same one are the same."""
        rows = "\n".join(question.model_dump_json(exclude=unknown_of(question)) for question in self.questions)
        return hashlib.blake2b(rows.encode(), digest_size=8).hexdigest()

    def question(self, words: str) -> Question | None:
        """Return the question in these words, if it is one of the world's."""
        return self._by_words.get(normalise(words))

    def fact(self, query: str) -> WorldFact | None:
        """Return the fact that the query asks for, if it is one of the world's."""
        return self._facts.get(normalise(query))

    def alike(self, kind: str, other_than: tuple[str, ...] = ()) -> list[str]:
        """Return the answers of that kind which are not among the given ones."""
        true = {normalise(answer) for answer in other_than}
        return [answer for answer in self._alike.get(kind, []) if normalise(answer) not in true]


def remembered(question: Question) -> Question:
    """Return the question as a mind keeps it: without paragraphs, and its gold passages by fingerprint.

    A prompt shows a passage's title and text. So a gold passage is known from them or not at all: where the task
    tells ids alone, none is kept, and titles stand for the passages.
    """
    gold = question.known_gold()
    seen = gold if all(map(is_fingerprint, gold)) else ()
    return question.model_copy(update={"paragraphs": (), "gold_passages": seen})


def unknown_of(question: Question) -> set[str]:
    """Return the fields of a remembered question that are left out where it is written down, as they hold nothing."""
    return {"paragraphs"} | {
        name for name in ("gold_passages", "needed", "written_by", "feedback") if not getattr(question, name)
    }


def find_kind(query: str, answer: str = "") -> str:
    """Return a rough kind of answer: ``year``, ``number``, or what the query asks with, such as ``who`` or ``city``."""
    if _YEAR.match(answer):
        return "year"
    if answer[:1].isdigit():
        return "number"
    found = _ASKS.search(query.lower())
    return found[1] if found else "other"


def _facts(question: Question) -> Iterator[WorldFact]:
    """Yield the facts of one question: its steps in every way they can be asked, and the question itself."""
    asked: list[list[_Way]] = []  # for each step
    for step in question.steps:
        asked.append(list(_ways(step.question, asked, [earlier.answer for earlier in question.steps])))
        last = len(asked) == len(question.steps) and question.style != "list"
        if step.answer:
            answers = (step.answer, *(question.answers if last and is_among(step.answer, question.answers) else ()))
            titles = (step.support_title,) if step.support_title else question.gold_titles or None
            for query, needs in asked[-1]:
                yield WorldFact(query, answers, titles, needs, find_kind(query, step.answer), question.gold_passages)
    yield _whole(question, [ways[0][1][-1] for ways, step in zip(asked, question.steps, strict=True) if step.answer])


def _ways(template: str, asked: list[list[_Way]], answers: list[str | None]) -> Iterator[_Way]:
    """Yield the ways to ask a step: each earlier answer in its words is named, or described in one of its own ways."""
    numbers = sorted({number for number in numbers_in(template) if number <= len(asked)})
    true = normalise(fill_in(template, answers[: len(asked)]))
    options: list[list[_Way]] = []
    for number in numbers:
        answer = answers[number - 1]
        named: list[_Way] = [(answer, ())] if answer else []
        options.append(named + [(describe(query), needs) for query, needs in asked[number - 1]])
    for combination in itertools.product(*options):
        fillings: list[str | None] = [None] * len(asked)
        for number, (text, _) in zip(numbers, combination, strict=True):
            fillings[number - 1] = text
        needs = [need for _, earlier in combination for need in earlier]
        yield fill_in(template, fillings), tuple(dict.fromkeys([*needs, true]))


def _whole(question: Question, step_keys: list[str]) -> WorldFact:
    """Return the question itself as a fact."""
    titles: tuple[str, ...] | None = question.gold_titles or None
    if question.style != "short":
        titles = ()
    elif question.steps:
        last = question.steps[-1]
        stated = is_among(last.answer or "", question.answers)
        titles = () if not stated else (last.support_title,) if last.support_title else titles
    needs = tuple(dict.fromkeys(step_keys)) or (normalise(question.question),)
    kind = find_kind(question.question, question.answers[0])
    answers = ("; ".join(question.answers),) if question.style == "list" else question.answers
    return WorldFact(question.question, answers, titles, needs, kind, question.gold_passages)


def is_among(answer: str, answers: tuple[str, ...]) -> bool:
    """Tell whether the answer is one of the answers, but for how it is written."""
    return normalise(answer) in {normalise(one) for one in answers}


def supports(passage: str, titles: Iterable[str] | None, gold: Collection[str]) -> bool:
    """Tell whether the passage is a supporting one: one of ``gold`` where that is known, with one of the titles.

    ``gold`` are fingerprints. Any title will do where the titles are None.
    """
    title, text = split_title(passage)
    fits = titles is None or normalise(title) in {normalise(one) for one in titles}
    return fits and (not gold or passage_fingerprint(title, text) in gold)


def is_gold(passage: str, question: Question) -> bool:
    """Tell whether the passage is one of the question's gold passages; by title where only titles are known."""
    return supports(passage, None if question.gold_passages else question.gold_titles, question.gold_passages)


@lru_cache(maxsize=4096)  # one passage is read for one fact in many prompts
def find_answer(fact: WorldFact, passage: str) -> str:
    """Return the fact's answer as it stands in the passage; empty if the passage is not about the fact."""
    if not supports(passage, fact.titles, fact.gold):
        return ""
    text = split_title(passage)[1]
    return next((span for answer in fact.answers if (span := _find_run(answer, text))), "")


def _find_run(answer: str, text: str) -> str:
    """Return the run of words in the text that is the answer but for case and articles; empty where there is none.

    One with the answer's own article is taken first: "The Hague" and not "Hague"; else the shortest.
    """
    if not contains(text, answer):
        return ""
    wanted, words = normalise(answer), text.split()
    most = len(wanted.split()) + 2  # articles may stand in between
    runs = [" ".join(words[i : i + n]).strip(_EDGES) for i in range(len(words)) for n in range(1, most + 1)]
    right = (run for run in runs if normalise(run) == wanted)
    return min(right, key=lambda run: (run.casefold() != answer.casefold(), len(run)), default="")
