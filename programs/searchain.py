"""Search-in-the-Chain."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import dspy
from pydantic import Field

from ..retrieval import DuplicateCheck, Reader, Retriever
from ..retrieval.duplicates import ExactDuplicates
from ..signatures import AnswerStyle
from ..signatures.chain_of_query import CompleteChain, CorrectChain
from .modules.chain_of_query import (
    ChainOfQuery,
    Continuation,
    PublishedChainOfQuery,
    RevisedChain,
    Tracing,
)
from .modules.reader import LMReader
from .modules.verdict import StepCheck
from .program import MethodSettings, Program
from .searchain_best import FilledSearChain
from .searchain_paper import PublishedSearChain
from .tree import ReasoningTree


class SearChainSettings(MethodSettings):
    """How SearChain reasons; ``preset=paper`` is algorithm 1 with the values of section 4.1.

    Attributes:
        max_rounds: r_max, how many chains the LM is asked for.
        k: how many passages are looked at for each query (paper: 1).
        check: what compares passages and answers, where no trained reader is given: one call to the LM that sees the
            recalled answer (verdict), or the LM as a reader that does not see it (reader; the paper's, with a DPR
            reader).
        continuation: how the chain goes on after a correction or completion. "fill": what was found becomes the
            node's answer and is filled into the later queries, and the LM is asked for a new rest only where nothing
            was found. "ask": the LM is asked for the node's answer and a new rest each time (paper).
        agreement: when a short answer agrees with the reader's span. "words": one stands in the other, as whole words.
            "string": the span stands in the answer, as characters (paper); an answer that agrees is kept as it is.
        theta: the reader's score above which a passage may overrule the LM; None takes the reader's own
            threshold (1.5 for a DPR reader).
        alpha: the ROUGE-L of answer and passage above which a long answer agrees with the passage.
        min_independent_passages: how many passages must say independently what takes the place of an answer that the
            LM recalled. One that repeats the question word for word, as planted ones do, is none (paper: 0, any will
            do).
        skip_repeats: whether a query that was processed before is passed over.
        retrieval: off, the first chain answers alone (table 1, SearChain w/o IR).
        verification: off, a passage never overrules an answer that the LM is sure of.
        completion: off, what the LM does not know stays unsolved, and what it only guesses stays a guess.
    """

    PAPER: ClassVar[dict[str, Any]] = {
        "k": 1,
        "check": "reader",
        "continuation": "ask",
        "agreement": "string",
        "min_independent_passages": 0,
    }
    IDLE: ClassVar[dict[str, tuple[str, Any]]] = dict.fromkeys(("agreement", "theta", "alpha"), ("check", "verdict"))

    max_rounds: int = Field(default=5, ge=1)
    k: int = Field(default=3, ge=1)
    check: Literal["verdict", "reader"] = "verdict"
    continuation: Literal["fill", "ask"] = "fill"
    agreement: Literal["words", "string"] = "words"
    theta: float | None = None
    alpha: float = Field(default=0.35, ge=0, le=1)
    min_independent_passages: int = Field(default=1, ge=0)
    skip_repeats: bool = True
    retrieval: bool = True
    verification: bool = True
    completion: bool = True


class SearChain(Program):
    """Search-in-the-Chain (Xu et al., WWW 2024, arXiv 2304.14732v7, algorithm 1): retrieval checks a chain of queries.

    The LM plans a whole chain of queries; retrieval walks it node by node; the first node that needs help ends the
    round, and the chain goes on from that node, which opens a new branch of the tree. `PublishedSearChain` does this
    as the paper says (``preset=paper``), `FilledSearChain` at fewer calls. Beside this, by default a node is checked
    with its recalled answer in view, in one call over k passages, instead of by a reader that sees one passage and no
    answer: variants of a name are then no contradiction.

    With either preset:

    - A reference is cited only where the passage holds the step's answer, or agrees with a long one; the paper cites
      every passage of the path.
    - The algorithm records the reader's span as the answer of a helped node, the text (3.2) the LM's new answer:
      the node keeps both, and the LM's is traced.
    - A helped node's successor takes its place on the path; the old node stays in the tree, beside the path.
      Its source is the help that it got, also where the LM kept its answer (table 2).
    - A repeated query shares what was found the first time; an unsolved one is never taken for a repetition
      (as in the authors' client).

    Args:
        retriever: finds passages for each query; may be None where ``settings.retrieval`` is off.
        reader: a trained reader that checks answers in the place of the LM.
        settings: see `SearChainSettings`.
        duplicates: tells whether a query repeats an earlier one; by its words where None.
    """

    name: ClassVar[str] = "searchain"
    Settings = SearChainSettings
    settings: SearChainSettings

    def __init__(
        self,
        retriever: Retriever | None = None,
        reader: Reader | None = None,
        settings: SearChainSettings | None = None,
        duplicates: DuplicateCheck | None = None,
    ):
        super().__init__(retriever, settings)
        retrieves = self.settings.retrieval
        fills_in = retrieves and self.settings.continuation == "fill"
        self.way = FilledSearChain if fills_in else PublishedSearChain
        self.chain_of_query = ChainOfQuery() if fills_in else PublishedChainOfQuery(retrieval=retrieves)
        self.reader = reader or (LMReader() if retrieves and self.settings.check == "reader" else None)
        if retrieves and self.reader is None:
            self.step_check = StepCheck()
        if fills_in:
            self.revised_chain = RevisedChain()
        elif retrieves:
            self.corrected_chain, self.completed_chain = Continuation(CorrectChain), Continuation(CompleteChain)
        self.tracing = Tracing()
        self.duplicates = duplicates or ExactDuplicates()

    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Reason in the paper's way, or in ours."""
        return self.way(self, tree, answer_style).reason()


class SearChainWithoutRetrievalSettings(SearChainSettings):
    """SearChain's settings; there is one round, and nothing to verify or complete with.

    Attributes:
        retrieval: off.
    """

    retrieval: Literal[False] = False


class SearChainWithoutRetrieval(SearChain):
    """SearChain w/o IR (Xu et al., WWW 2024, table 1): the first chain of query answers alone."""

    name = "searchain-without-retrieval"
    searches = False
    Settings = SearChainWithoutRetrievalSettings  # type: ignore[assignment]  # narrower than SearChain's

    def __init__(self, retriever: Retriever | None = None, settings: SearChainWithoutRetrievalSettings | None = None):
        super().__init__(settings=settings)
