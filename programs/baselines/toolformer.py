"""Search as a tool within the text."""

from __future__ import annotations

from typing import Any

import dspy
from pydantic import Field

from ...lm.call import call
from ...retrieval import Passage, Retriever
from ...signatures import AnswerStyle
from ...signatures.answers import AnswerFromThoughts
from ..modules.searches import NextPiece, search_in_text
from ..program import Program, ProgramSettings, answered_from
from ..references import distinct, numbered_among
from ..tree import ReasoningTree


class ToolformerSettings(ProgramSettings):
    """How often it may search.

    Attributes:
        max_searches: how many searches are made at most; a further call for one ends the text.
        k: passages that a search puts into the text.
    """

    max_searches: int = Field(default=4, ge=1)
    k: int = Field(default=1, ge=1)


class Toolformer(Program):
    """Toolformer-style search (Schick et al., NeurIPS 2023, arXiv 2302.04761; SearChain, table 1) inside the answer.

    The LM writes a text and calls for searches where it needs them; each result is put into the text, and the LM
    continues from there. The paper trains the LM to do so; here the prompt asks for it.
    """

    name = "toolformer"
    Settings = ToolformerSettings
    settings: ToolformerSettings

    def __init__(self, retriever: Retriever | None = None, settings: ToolformerSettings | None = None):
        super().__init__(retriever, settings)
        self.writing = NextPiece()
        self.thoughts_answer = dspy.Predict(AnswerFromThoughts)

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Write and search until the text ends; if it ends without an answer, read the answer from the text."""
        text, written, results, last = list[str](), list[str](), list[Passage](), None
        inputs = dict[str, Any](question=tree.question, answer_style=answer_style)
        for searched in range(self.settings.max_searches + 1):
            continuation, search, answer = self.writing(**inputs, written=written)
            text.append(continuation)
            written = [*written, continuation]
            if search is None or searched == self.settings.max_searches:
                break
            found = self.retrieve(search, self.settings.k)
            last = tree.add_search(last, search, found)
            results = distinct([results, found])
            shown = "; ".join(numbered_among(results, found)) or "nothing found"
            written.append(search_in_text(search, shown))
        if answer is None:
            answer = call(self.thoughts_answer, **inputs, thoughts=written).answer
        return answered_from(tree, answer, " ".join(text), results)
