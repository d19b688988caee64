"""Search inside the reasoning, as in trained and prompted search agents."""

from __future__ import annotations

import re

import dspy
from pydantic import Field

from ...common.sentences import sentences
from ...common.text import query_or_none, text_or_none
from ...lm.call import call
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerFromThoughts
from ...signatures.searches import CondensePassages, ReasonOrSearch, SearchInTags
from ..demonstrations import note
from ..modules.searches import NextPiece, search_in_text
from ..program import Program, ProgramSettings, answered_from
from ..references import distinct, numbered_among
from ..tree import ReasoningTree

_TAG = re.compile(r"<(search|answer)>(.*?)(?:</\1>|$)", re.DOTALL | re.IGNORECASE)
_ANY_TAG = re.compile(r"</?(?:search|answer|information)>", re.IGNORECASE)


class SearchAgentSettings(ProgramSettings):
    """How it searches; the defaults are Search-o1's for questions over Wikipedia.

    Attributes:
        max_searches: how many searches are made at most; after the last one, the answer is read from the reasoning.
        k: passages that a search retrieves.
        first_search: passages of a search with the question, with which the reasoning begins; 0 for none.
        tags: whether it writes Search-R1's tags, and the passages enter the reasoning as they are (there k is 3, and a
            model may be used that was trained so); otherwise they are condensed first.
    """

    max_searches: int = Field(default=5, ge=1)
    k: int = Field(default=10, ge=1)
    first_search: int = Field(default=0, ge=0)
    tags: bool = False


class SearchAgent(Program):
    """Search-o1 (Li et al., EMNLP 2025, arXiv 2501.05366), prompted; with ``tags`` as Search-R1 has it.

    The LM reasons and calls for a search where it lacks knowledge. What the search finds is condensed to what helps the
    reasoning (Reason-in-Documents, section 3.4), which goes on from there. Search-o1 needs one unbroken reply of a
    reasoning model; here each piece of reasoning is a call that is given all pieces before it, so that any LM can be
    asked, and every step compiled. A query that was made before is not made again, as in the authors' code. Search-R1
    (Jin et al., COLM 2025, arXiv 2503.09516, section 3.2) trains the LM to write ``<search>`` and ``<answer>``, and
    puts the passages between ``<information>`` tags, not condensed.
    """

    name = "search-agent"
    Settings = SearchAgentSettings
    settings: SearchAgentSettings

    def __init__(self, retriever: Retriever | None = None, settings: SearchAgentSettings | None = None):
        super().__init__(retriever, settings)
        self.reasoning = dspy.Predict(SearchInTags) if self.settings.tags else NextPiece(ReasonOrSearch)
        if not self.settings.tags:
            self.condense_passages = dspy.Predict(CondensePassages)
        self.thoughts_answer = dspy.Predict(AnswerFromThoughts)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Reason and search until the answer is there; if it does not come, read it from the reasoning."""
        question, told, written, last = tree.question, list[str](), list[str](), None
        passages, queries = list[Passage](), set[str]()
        for searched in range(self.settings.max_searches + 1):
            if searched or not self.settings.first_search:
                text, query, answer = self.go_on(question, answer_style, written)
                written, k = [*written, text], self.settings.k
            else:
                text, query, answer, k = "", question, None, self.settings.first_search
            told.append(text)
            if query is None or searched == self.settings.max_searches:
                break
            if query.casefold() in queries:
                written = [*written, *self.as_written(query, "searched before: see there")]
                continue
            queries.add(query.casefold())
            found = self.retrieve(query, k)
            last = tree.add_search(last, query, found, round=searched + 1)
            passages = distinct([passages, found])
            shown = numbered_among(passages, found)
            if self.settings.tags:
                result = "\n".join(_ANY_TAG.sub(" ", text) for text in shown) or "Nothing was found."
            else:
                told.append(finding := self.condense(question, written, query, shown))
                result = finding or "nothing useful"
            written = [*written, *self.as_written(query, result)]
        if answer is None:
            answer = call(self.thoughts_answer, question=question, answer_style=answer_style, thoughts=written).answer
        once = dict.fromkeys(sentence for part in told for sentence in sentences(part))  # findings are often repeated
        return answered_from(tree, answer, " ".join(once), passages)

    def go_on(self, question: str, answer_style: AnswerStyle, written: list[str]) -> tuple[str, str | None, str | None]:
        """Return the next piece of reasoning; the query to search for, None at its end; the answer, if given."""
        if self.settings.tags:
            reply = call(self.reasoning, question=question, answer_style=answer_style, written=written)
            text, query, answer = in_tags(str(reply.turn))
            note(reply, "searches" if query else "ends")
        else:
            text, query, answer = self.reasoning(question=question, answer_style=answer_style, written=written)
        return text, query, None if query else answer

    def as_written(self, query: str, result: str) -> list[str]:
        """Return a search and its result as they stand in the reasoning."""
        if self.settings.tags:
            return [f"<search>{query}</search>", f"<information>{result}</information>"]
        return [search_in_text(query, result)]

    def condense(self, question: str, written: list[str], query: str, shown: list[str]) -> str:
        """Return what helps in the passages, in the LM's words; empty if nothing does."""
        if not shown:
            return ""
        reply = call(self.condense_passages, question=question, written=written, query=query, passages=shown)
        finding = text_or_none(reply.finding) or ""
        note(reply, "some" if finding else "none")
        return finding


def in_tags(turn: str) -> tuple[str, str | None, str | None]:
    """Return the text before the first tag, and what the tag holds: a query, or an answer."""
    found = _TAG.search(turn)
    if found is None:
        return turn.strip(), None, None
    told = re.split("<information>", turn[: found.start()], maxsplit=1, flags=re.IGNORECASE)[0]  # the rest is made up
    if found[1].lower() == "search":
        return told.strip(), query_or_none(found[2]), None
    return told.strip(), None, text_or_none(found[2])
