"""Whether a corpus can answer questions at all: which answers and gold passages stand in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any
from unicodedata import normalize as in_form

from ..common.errors import QuestreeError
from ..data import Question
from ..metrics import Interval, normalise, normalise_title, passage_fingerprint, share_interval
from ..metrics.answer_scores import pattern_in
from ..metrics.found_passages import answers_in_passages, gold_names, is_fingerprint
from ..retrieval import Passage, Retriever
from ..retrieval.indexes.contents import PassageStore
from .retrieval_measures import CONTEXTS

if TYPE_CHECKING:
    import dspy

_REPORT_EVERY = 10_000  # passages
_LOOKED_AT = 5_000_000  # passages, some seconds
_NAMED = 3


@dataclass(frozen=True)
class AuditedQuestion:
    """The parts of a question that a corpus holds.

    Attributes:
        gold: for each gold passage, whether the corpus has it.
        by_title: whether only the titles of the gold passages are known.
        steps: for each annotated step with an answer to look for, whether that stands in a passage.
        answer: whether a gold answer stands in a passage, or every item of a list; None for questions that are answered
            with yes or no, a label, a count or a text of their own, which no passage holds word for word.
        absent: whether the task says that the corpus does not tell the answer.
    """

    id: str
    gold: tuple[bool, ...]
    by_title: bool
    steps: tuple[bool, ...]
    answer: bool | None
    absent: bool = False

    @property
    def answerable(self) -> bool:
        """Return whether the corpus may answer the question: the answers of its steps, and its own, stand in passages.

        Where there is no such answer to look for, every gold passage must be there. A question without an answer is
        answered by saying so.
        """
        if self.absent:
            return True
        answers = self.steps if self.answer is None else (*self.steps, self.answer)
        return all(answers or self.gold)


@dataclass(frozen=True)
class Audit:
    """The parts of several questions that a corpus holds.

    Attributes:
        questions: in their order.
    """

    questions: tuple[AuditedQuestion, ...]
    passages: int

    @property
    def shares(self) -> dict[str, Interval]:
        """Return the share of each part that the corpus holds, with Wilson intervals; unknown parts are absent."""
        with_answer = [asked for asked in self.questions if not asked.absent]
        looked = {
            "gold passages": [gold for asked in self.questions if not asked.by_title for gold in asked.gold],
            "gold passages, by title": [gold for asked in self.questions if asked.by_title for gold in asked.gold],
            "answers of steps": [step for asked in with_answer for step in asked.steps],
            "final answers": [asked.answer for asked in with_answer if asked.answer is not None],
            "questions that can be answered": [asked.answerable for asked in with_answer],
            "questions without an answer that lack a step": [
                not all(asked.steps) for asked in self.questions if asked.absent and asked.steps
            ],
        }
        return {name: share_interval(sum(found), len(found)) for name, found in looked.items() if found}

    @property
    def unanswerable(self) -> tuple[AuditedQuestion, ...]:
        """Return the questions that the corpus cannot answer."""
        return tuple(asked for asked in self.questions if not asked.answerable)


def audit(
    questions: Sequence[Question], retriever: Retriever, on_progress: Callable[[str, int, int], None] | None = None
) -> Audit:
    """Look once through the corpus of a retriever for the gold passages and the answers of questions.

    An answer stands in a passage if its title or text holds it as whole words, as the metric ``answer-recall`` has it.
    Of a list, every item has to stand in one. Where a task has no answer for a question but its steps, and the answers
    of all of them stand there, the corpus may tell what the task says that it does not.
    An answer that stands there proves little: a corpus may hold the name and not tell the fact.

    Args:
        on_progress: called with the name of what is counted, the number done, and their total.
    """
    if not questions:
        raise QuestreeError("There are no questions to audit; choose another split or a higher limit.")
    corpora = list(_corpora(retriever))
    total, looked, seen = sum(map(len, corpora)), _Looked(questions), set[str]()
    for done, passage in enumerate((corpus[place] for corpus in corpora for place in range(len(corpus))), start=1):
        if passage.id not in seen:  # members of a fusion mostly have one corpus
            seen.add(passage.id)
            looked.at(passage)
        if on_progress and (done % _REPORT_EVERY == 0 or done == total):
            on_progress("passages", done, total)
    return Audit(tuple(map(looked.standing, questions)), len(seen))


def context_shares(questions: Sequence[Question], retriever: Retriever) -> dict[str, Interval]:
    """Return the shares of questions whose answer, and whose whole chain, stand in the first passages of a search."""
    found = retriever.batch([asked.question for asked in questions], max(CONTEXTS))
    held: dict[str, list[bool]] = {}
    for k, (asked, passages) in product(CONTEXTS, zip(questions, found, strict=True)):
        looked = _Looked([asked])
        list(map(looked.at, passages[:k]))
        one = looked.standing(asked)
        if one.answer is not None:
            held.setdefault(f"answer among the first {k}", []).append(one.answer)
        if one.gold:
            held.setdefault(f"whole chain among the first {k}{', by title' * one.by_title}", []).append(all(one.gold))
    return {name: share_interval(sum(of), len(of)) for name, of in held.items()}


def missing_gold(examples: Sequence[dspy.Example], retriever: Retriever) -> str:
    """Return a warning on gold ids that no passage of a retriever's corpus has; empty where it cannot be checked.

    Corpora of more than five million passages are left to `audit`.
    """
    asked = {id: one.id for one in examples for id in one.get("gold_passages") or () if not is_fingerprint(id)}
    missing, composed = set(asked), set[str]()
    try:
        corpora = list(_corpora(retriever)) if asked else []
        if not corpora or sum(map(len, corpora)) > _LOOKED_AT:
            return ""
        for id in chain.from_iterable(map(_ids, corpora)):
            missing.discard(id)
            if not id.isascii():
                composed.add(in_form("NFC", id))
    except (QuestreeError, ValueError):  # the corpus is behind an address, or forged: a search raises that error
        return ""
    if not missing:
        return ""
    told = f"{len(missing)} of {len(asked)} gold passages stand nowhere in the index, so that no search finds them: "
    told += ", ".join(f"{id!r} of question {asked[id]!r}" for id in sorted(missing)[:_NAMED])
    spelt = sum(in_form("NFC", id) in composed for id in missing)
    also = f"; {spelt} of them stand there in another form of Unicode (NFC, NFD)" if spelt else ""
    return f"{told}{' …' if len(missing) > _NAMED else ''}{also}. The ids must be those of the corpus."


def _ids(corpus: Any) -> Iterator[str]:
    return corpus.ids() if isinstance(corpus, PassageStore) else (corpus[place].id for place in range(len(corpus)))


def _corpora(retriever: Any) -> Iterator[Any]:
    """Yield the corpus of a retriever, or those of its members."""
    if retriever.passages is not None:
        yield retriever.passages
    elif members := getattr(retriever, "members", ()):
        for member in members:
            yield from _corpora(member)
    else:
        raise QuestreeError(f"The corpus behind {retriever.name} is not in this process; name the folder of its index.")


class _Looked:
    """The texts and gold passages that are looked for in a corpus, and those found so far."""

    def __init__(self, questions: Sequence[Question]):
        self.names = {name for asked in questions for name in asked.known_gold()}
        self.patterns = {one for asked in questions if asked.answers_are_regex for one in asked.answers}
        self.found: set[str] = set()
        self.titles: set[str] = set()
        self.matched: set[str] = set()
        self.said: set[tuple[str, ...]] = set()
        self.phrases: dict[str, set[tuple[str, ...]]] = {}
        for asked in questions:
            for answers in (*_steps(asked), *_own(asked)):
                for phrase in filter(None, map(_words, answers)):
                    self.phrases.setdefault(phrase[0], set()).add(phrase)

    def at(self, passage: Passage) -> None:
        """Look at a passage."""
        text = f"{passage.title} {passage.text}"
        self.titles.add(normalise_title(passage.title))
        if self.names:
            self.found |= self.names & {passage.id, passage_fingerprint(passage.title, passage.text)}
        self.matched |= {one for one in self.patterns - self.matched if pattern_in(text, [one])}
        words = _words(text)
        for place, word in enumerate(words):
            for phrase in self.phrases.get(word, ()):
                if words[place : place + len(phrase)] == phrase:
                    self.said.add(phrase)

    def standing(self, asked: Question) -> AuditedQuestion:
        """Return the parts of a question that were found."""
        by_title, own = not asked.known_gold(), _own(asked)
        there = self.titles if by_title else self.found
        steps, items = ([self._says(one) for one in answers] for answers in (_steps(asked), own))
        gold = tuple(name in there for name in gold_names(asked.known_gold(), asked.gold_titles))
        known = all(items) if items else None
        if asked.answers_are_regex and asked.answers:
            known = not self.matched.isdisjoint(asked.answers)
        return AuditedQuestion(asked.id, gold, by_title, tuple(steps), known, not asked.answers)

    def _says(self, spellings: Sequence[str]) -> bool:
        return any(_words(one) in self.said for one in spellings)


def _steps(asked: Question) -> list[list[str]]:
    """Return the answer of each step that a passage can hold."""
    return [[one] for one in answers_in_passages([step.answer for step in asked.steps if step.answer], "short")]


def _own(asked: Question) -> list[list[str]]:
    """Return the gold answers that a passage can hold: the spellings of each that is needed."""
    style = "short" if asked.needed else "count" if asked.kind == "count" else asked.style  # no passage holds a count
    items = [] if asked.answers_are_regex else [answers_in_passages(item, style) for item in asked.items]
    return [item for item in items if item]


def _words(text: str) -> tuple[str, ...]:
    return tuple(normalise(text).split())
