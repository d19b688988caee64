"""The verdict of passages on one step's answer (SearChain, section 3.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import dspy

from ...common.text import text_or_none
from ...lm.call import call
from ...lm.window import shown_of
from ...metrics import agree, all_stand_in, normalise, rouge_l, stands_in, telling_sentence, without_marks
from ...retrieval import Passage, Span
from ...signatures.verdict import CheckStep, Stance
from ..demonstrations import note
from ..references import first_of, marked_in, numbered
from . import StepModule

_BETWEEN = re.compile(r"\s*[;\n]\s*(?![^\[【]*[\]】])")  # between answers; not between the numbers of a mark
_NAME = re.compile(r"[^\W\d_a-z][^\d]*")  # a name: it begins with a capital letter, and is no date


@dataclass(frozen=True)
class Verdict:
    """The verdict of passages on a step.

    Attributes:
        stance: what the passages say of the proposed answer; "supports" also if none was proposed and they hold one.
        query: the query that was looked up.
        passage: the one that answers the query; None if none does.
        answer: as the passage has it; None if no passage answers.
        span: a reader's span and its score.
        evidence: the part of a long answer that the passage holds; no passage holds all of it word for word.
        remembered: an answer that no passage is known to hold: the LM's from memory, or, if none was proposed, one that
            it misquotes from a passage.
        certain: whether the LM is certain of what it remembers; off for a misquoted answer, about which it is not
            asked.
        others: a verdict for each further answer of the passages, if several fit.
    """

    stance: Stance
    query: str
    passage: Passage | None = None
    answer: str | None = None
    span: Span | None = None
    evidence: str | None = None
    remembered: str | None = None
    certain: bool = True
    others: tuple[Verdict, ...] = ()

    @property
    def support(self) -> str | None:
        """Return the sentence of the passage that holds the answer, or the evidence for a long one."""
        return sentence_with(self.evidence or self.answer, self.passage, self.query)

    @property
    def is_of_several_passages(self) -> bool:
        """Return whether its answers come from more than one passage."""
        return len({one.passage.id for one in (self, *self.others) if one.passage}) > 1

    def united(self, further: Verdict) -> Verdict:
        """Return the verdict, extended by the answers of a further one that it lacks."""
        known = {normalise(one.answer or "") for one in (self, *self.others)}
        more = (one for one in (further, *further.others) if one.answer and normalise(one.answer) not in known)
        return replace(self, others=(*self.others, *more))


class StepCheck(StepModule):
    """Asks the LM which passage answers a query, and whether the proposed answer agrees with it."""

    def __init__(self) -> None:
        super().__init__()
        self.check = dspy.Predict(CheckStep)

    def forward(self, question: str, query: str, proposed: str | None, passages: list[Passage]) -> Verdict:
        """Return the verdict. An answer does not count if the passage that the LM names does not hold it."""
        if not passages:
            return Verdict("silent", query)
        proposed_answer = proposed or ""
        reply = call(
            self.check, question=question, query=query, proposed_answer=proposed_answer, passages=numbered(passages)
        )
        shown = shown_of(passages, reply)
        note(reply, kind="supports, none proposed" if reply.verdict == "supports" and not proposed else reply.verdict)
        (found, passage), *others = several(reply.found, reply.passage_number, shown, proposed_answer)
        if found is None and passage is not None and reply.verdict != "silent":
            found = title_meant(reply.found, passage, query)
        if passage is None or found is None or reply.verdict == "silent" or not holds(passage, found):
            misquoted, remembered = found if proposed is None else None, text_or_none(without_marks(reply.remembered))
            return Verdict("silent", query, remembered=misquoted or remembered, certain=misquoted is None)
        span, given = Span(text=found, score=1.0), tuple(Verdict("supports", query, by, text) for text, by in others)
        if proposed is None:
            return Verdict("supports", query, passage, found, span, others=given)
        answer = more_exact(proposed, found, passage)
        if reply.verdict == "supports" or answer == proposed:  # the passage itself holds the whole proposed answer
            return Verdict("supports", query, passage, answer, span, others=given)
        return Verdict("contradicts", query, passage, found, span, others=given)


def several(
    said: str, number: int, passages: Sequence[Passage], proposed: str
) -> list[tuple[str | None, Passage | None]]:
    """Return each answer in a reply such as "Ann Lee; Bo Ek [3]", with its passage.

    The first has the passage of this number; the others have the marked one, or any that holds them. Only answers that
    their passage holds count; those that agree with the proposed one come first. If none counts, the first is returned
    unchanged.
    """
    first, *more = _BETWEEN.split(said)
    alone = text_or_none(without_marks(first)), first_of([number], passages)
    found = {normalise(alone[0]): alone} if alone[0] and alone[1] and holds(alone[1], alone[0]) else {}
    for part in more:
        text = text_or_none(without_marks(part)) or ""
        read = [*(first_of([one], passages) for one in (*marked_in(part), number)), *passages]
        passage = next((one for one in read if one and text and holds(one, text)), None)
        if passage:
            found.setdefault(normalise(text), (text, passage))
    return sorted(found.values(), key=lambda pair: not agree(pair[0] or "", proposed)) or [alone]


def title_meant(said: str, passage: Passage, query: str) -> str | None:
    """Return the passage's title if the LM says exactly its name: "Unknown" means the passage "Unknown (2011 film)".

    Otherwise "Unknown" is no answer. Return None if it is not that name, or if the query itself names it: then
    something about it was asked, and was not found.
    """
    name = passage.title.partition(" (")[0]
    return text_or_none(passage.title) if name and name == said.strip() and name not in query else None


def agree_at_length(answer: str, passage: Passage, alpha: float) -> bool:
    """Return whether a long answer agrees with a passage: by ROUGE-L (SearChain, section 3.2)."""
    return rouge_l(answer, [passage.text]) > alpha


def independent_passages(answer: str, queries: Sequence[str], passages: Sequence[Passage]) -> int:
    """Count the passages that hold an answer independently.

    Those that say nearly the same count once. Those that repeat a query, as planted ones do, do not count.
    """
    from ...retrieval.defences import trusted

    return len(trusted(queries, [passage for passage in passages if holds(passage, answer)]))


def more_exact(proposed: str, found: str, passage: Passage) -> str:
    """Return the proposed answer if it contains the found one and the passage holds it; else the found one."""
    return proposed if stands_in(proposed, found) and stands_in(passage.shown(), proposed) else found


def fuller_name(recalled: str, found: str) -> str | None:
    """Return the recalled name if it contains the found one, or if that only describes it: "his brother Richard"."""
    described = found[:1].islower() and _NAME.fullmatch(recalled)
    return recalled if described or (recalled != found and stands_in(recalled, found)) else None


def holds(passage: Passage, answer: str) -> bool:
    """Return whether the answer stands in the passage; of a list, each item by itself."""
    return all_stand_in(passage.shown(), answer)


def sentence_with(answer: str | None, passage: Passage | None, query: str) -> str | None:
    """Return the sentence of the passage that tells the answer to the query; None if no passage holds an answer.

    An answer that no single sentence holds gives the whole text.
    """
    if not answer or passage is None or not holds(passage, answer):
        return None
    return telling_sentence(query, answer, passage.title, passage.text) or passage.text
