"""The base of every question-answering program: its inputs, its prediction, and how it fails."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, Literal, TypeVar, get_args

import dspy
from pydantic import BaseModel, ConfigDict, model_validator

from ..common.errors import QuestreeError
from ..common.event_loop import off_loop, run
from ..common.secrets import without_secrets
from ..common.sentences import sentences
from ..common.text import neutralise, stated, text_or_none
from ..lm.episode import episode, next_place, step
from ..lm.failure import CallFailedError, CannotAskError, Failure, raised_in
from ..lm.limits import check_deadline, deadline, time_left
from ..lm.parallel import AbandonedError, within
from ..lm.progress import is_told, tell
from ..lm.scope import scope
from ..lm.spent import Spent, other_callbacks
from ..metrics import normalise, ranked
from ..retrieval import Passage, Retriever, asking
from ..retrieval.contracts import check_found
from ..signatures import AnswerStyle
from .answer import Abstain, settle_answer
from .basis import standing_of
from .references import distinct, settle_marks, supported_by, without_loose_marks
from .streams import Searching, told_growth
from .tree import ReasoningTree
from .tree_views import prediction_in_notebook, program_in_notebook

T = TypeVar("T")

MAX_QUESTION_WORDS, MAX_QUESTION_CHARACTERS = 1000, 20_000  # some scripts have no spaces, and some texts have no words


class ProgramSettings(BaseModel):
    """The setting of every program; each program adds its own.

    Attributes:
        abstain: which answers are left out: "unsupported": those that no passage holds, of a list item by item;
            "unsure": those that are a guess.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    abstain: Abstain = "off"


class MethodSettings(ProgramSettings):
    """Settings of a method that has two presets: the best that we know, and the paper's.

    Attributes:
        preset: "paper" takes the values of `PAPER` for every setting that is not given.
    """

    PAPER: ClassVar[dict[str, Any]] = {}
    IDLE: ClassVar[dict[str, tuple[str, Any]]] = {}
    """Settings that have no effect if another one has this value; an ablation over them would have equal rows."""

    preset: Literal["best", "paper"] = "best"

    @model_validator(mode="before")
    @classmethod
    def _fill_in_paper(cls, given: Any) -> Any:
        """Add the paper's values to what was given."""
        return {**cls.PAPER, **given} if isinstance(given, dict) and given.get("preset") == "paper" else given


class Program(dspy.Module):
    """A question-answering program. A subclass writes `reason`; this class turns failures into failed predictions.

    Args:
        retriever: where passages come from, DSPy's retrievers included (`as_retriever`); None for programs that
            use none. All copies share it.
        settings: saved with the program; each subclass has settings of its own. None for the defaults.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[BaseModel]] = ProgramSettings
    searches: ClassVar[bool] = True
    """Whether it uses a retriever. A program that uses none drops the one that it is given."""
    default_optimizer: ClassVar[str] = "bootstrap-random-search"
    """The optimizer that compiles it, unless another one is named."""
    reader: Any = None
    duplicates: Any = None
    """Parts of some programs, see SearChain; all copies share them."""

    def __init__(self, retriever: Retriever | Callable[..., Any] | None = None, settings: BaseModel | None = None):
        super().__init__()
        given = retriever if self.searches else None
        self.retriever = given if given is None or isinstance(given, Retriever) else _adapted(given)
        self.settings = settings or self.Settings()
        index = f", from the index {self.retriever.name}, with citations" if self.retriever else ""
        self.__doc__ = f"Answer a question that needs several facts{index}."  # for `dspy.Tool`

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer a question, as `forward` says. `dspy.Tool` offers an LM the two arguments that are named below."""
        return super().__call__(*args, **kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Answer a question as a call does, and let the event loop run: `dspy.Tool` takes it as well."""
        return await super().acall(*args, **kwargs)

    _repr_html_ = program_in_notebook

    @abstractmethod
    def reason(self, tree: ReasoningTree, answer_style: AnswerStyle) -> dspy.Prediction:
        """Answer ``tree.question`` by this method: let the tree grow, and end with `answered`."""

    def forward(
        self,
        question: str,
        answer_style: AnswerStyle = "short",
        watch: Callable[[ReasoningTree], None] | None = None,
        history: Sequence[str] = (),
    ) -> dspy.Prediction:
        """Answer one question.

        Args:
            question: in the user's words; field markers in it are neutralised.
            answer_style: the form of the answer.
            watch: is called with the tree each time it changes.
            history: earlier questions and answers, in order. One more call then makes the question complete in itself:
                ``tree.question`` is the question that was answered.

        Returns:
            ``dspy.Prediction(answer, answers, others, nearest, rests_on, final_content, references, passages, seen,
            tree, failure, spent, dropped, seconds)``. ``answers`` are the items of the answer, ``others`` and
            ``nearest`` what else fits and what was left out (`Answered`). ``rests_on`` says whether passages, the LM's
            memory or a guess decide the answer (`basis`). ``[n]`` in ``final_content`` is ``references[n-1]``.
            ``passages`` are those that the answer rests on; ``seen`` is every passage that was found, in the order that
            `ranked` defines. ``answer`` is empty if the LM finds none, and NOT ENOUGH INFO in the style ``label``, in
            which no answer means that; ``final_content`` then tells how far it came. ``failure`` is None, or says what
            went wrong: then ``answer`` is empty, the tree holds the reasoning until the failure, and ``passages`` is
            all that was found.
            ``dropped`` lists what was left out of prompts so that they fit the LM's window.

        Raises:
            CannotAskError: there is no LM, no key, no server at its address, or no retriever.
        """
        began = time.perf_counter()
        text = neutralise(question).strip() if isinstance(question, str) else ""
        tree = ReasoningTree(question=text).watched_by(told_growth(watch))
        with episode() as kept, deadline():
            try:
                _check_question(question, tree.question, answer_style)
                if history:
                    from .modules.follow_ups import restated  # imported here, as most questions do not need it

                    tree.question = neutralise(restated(tree.question, history)).strip()
                if self.lacks_retriever:  # checked before the LM is asked for a query
                    raise self._without_retriever()
                with asking(tree.question):
                    prediction = self.reason(tree, answer_style)
            except CallFailedError as error:
                self._add_where(error)
                if not scope().counts_failures and self._cannot_ask(error.failure, kept.spent):
                    raise CannotAskError(error) from None  # hides DSPy's hundred lines, which `__context__` has
                found = distinct([ranked([], kept.found), tree.passages()])
                prediction = answered(tree, "", "", [], passages=found)
                prediction.failure = error.failure
            tree.watched_by(None)
        if "answers" not in prediction:  # otherwise another program that it asked has settled it
            settle_answer(prediction, answer_style, getattr(self.settings, "abstain", "off"))
        prediction.seen = distinct([ranked(prediction.passages, kept.found), tree.passages()])
        prediction.spent, prediction.dropped = kept.spent, kept.dropped
        prediction.seconds = time.perf_counter() - began
        answer = prediction.answer
        del prediction["answer"]
        prediction.answer = answer  # now the last field, which `dspy.majority` counts
        return prediction

    @property
    def lacks_retriever(self) -> bool:
        """Return whether it needs a retriever with these settings, and has none."""
        if self.retriever is not None or not self.searches or not getattr(self.settings, "retrieval", True):
            return False
        return "retriever" in signature(type(self).__init__).parameters

    def _cannot_ask(self, failure: Failure, spent: Spent) -> bool:
        """Return whether every other question would fail for the same reason: no reply came before this failure."""
        if failure.cause == "retrieval":
            return self.lacks_retriever
        return failure.cause in ("auth", "unreachable") and spent.calls == spent.cached

    async def aforward(self, *given: Any, **how: Any) -> dspy.Prediction:
        """Answer one question as `forward` does, and let the event loop run whenever it waits."""
        forward: Callable[..., dspy.Prediction] = object.__getattribute__(self, "forward")
        return await run(partial(forward, *given, **how))

    def retrieve(self, query: str, k: int) -> list[Passage]:
        """Return the retriever's passages, none for a query without words; if it fails, the question fails."""
        retriever = self.retriever
        if retriever is None:
            raise self._without_retriever()
        if not query.strip():  # the LM wrote no query, so nothing is found
            return []
        if is_told():
            tell(Searching(query=query))

        def search(query: str, k: int) -> list[Passage]:
            found = self.from_retriever("a search", lambda: check_found(retriever(query, k)), remote=retriever.remote)
            return without_secrets(found) if retriever.remote else found  # a server may repeat its token

        heard: Callable[..., list[Passage]] = _Search(search) if other_callbacks() else search
        given = {"query": query, "k": k}
        found: list[Passage] = step("search", retriever.name, given, list[Passage], partial(heard, **given))
        next_place()  # keeps the places of later steps, by which the simulated LM draws samples
        return found

    def from_retriever(self, what: str, task: Callable[[], T], *, remote: bool) -> T:
        """Return the result of a retriever's task; if it fails, or the question's time is over, the question fails.

        Args:
            what: names the task in the message of a failure.
            task: a search, or a comparison of texts.
            remote: whether a server does it. A task in this process is always waited for, since its thread would go on
                using the cores.
        """
        check_deadline(what)
        try:
            return within(time_left(), task) if remote else off_loop(task)
        except CallFailedError:
            raise
        except AbandonedError as error:
            raise CallFailedError("deadline", f"the question's time was over during {what}: {error}") from error
        except Exception as error:
            raise CallFailedError("retrieval", f"{type(error).__name__}: {error}") from error

    def compare(self, by: str, inputs: dict[str, Any], returns: Any, task: Callable[[], Any], *, remote: bool) -> Any:
        """Return the result of a comparison of texts. It is a step of the question; if it fails, the question fails.

        Args:
            by: the name of what compares.
            inputs: the texts to compare, for the record of the step.
            returns: the type of the result.
            task: the comparison.
            remote: whether a server does it.
        """
        take = partial(self.from_retriever, "a comparison of texts", task, remote=remote)
        return step("comparison", by, inputs, returns, take)

    def _without_retriever(self) -> CallFailedError:
        return CallFailedError("retrieval", f"{self.name} needs a retriever; give it one, or --retriever INDEX")

    def _add_where(self, error: CallFailedError) -> None:
        """Add the program, the step and the predictor to a failure."""
        predict = error.predict
        if predict is None:
            error.add_where(program=self.name, step=raised_in(error))
            return
        path = next((path for path, one in self.named_predictors() if one is predict), predict.signature.__name__)
        step, _, predictor = path.rpartition(".")
        error.add_where(program=self.name, step=step, predictor=predictor)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """Return the predictors with their names, as DSPy does, but without walking through the history of LM calls."""
        return [*super(Program, copy.copy(self)).named_parameters()]  # a copy has no history

    def load_state(self, state: dict[str, Any], *, allow_unsafe_lm_state: bool = False) -> None:
        """Load a state as DSPy does, and keep the names of the signatures, which DSPy drops."""
        names = signature_names(self)
        super().load_state(state, allow_unsafe_lm_state=allow_unsafe_lm_state)
        restore_names(self, names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        """Return a copy with its own demonstrations. Teleprompters copy programs often; no index or LM is copied."""
        for shared in (self.retriever, self.reader, self.duplicates, *(one.lm for one in self.predictors())):
            if shared is not None and not isinstance(shared, dspy.Module):
                memo[id(shared)] = shared
        clone = type(self).__new__(type(self))
        memo[id(self)] = clone
        # The history holds every LM call so far: copying it would take most of a teleprompter's time.
        clone.__dict__.update(copy.deepcopy({**self.__dict__, "history": []}, memo))
        return clone

    def deepcopy(self) -> Program:
        """Return a copy as ``copy.deepcopy`` does: DSPy's own method falls back to copying the index."""
        return copy.deepcopy(self)


_CALLED: list[Any] = [Program.__call__, Program.acall]
for _called in _CALLED:
    _called.__annotations__ = {"question": str, "answer_style": AnswerStyle}
    _called.__signature__ = Signature(
        [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            Parameter("question", Parameter.POSITIONAL_OR_KEYWORD, annotation=str),
            Parameter("answer_style", Parameter.POSITIONAL_OR_KEYWORD, default="short", annotation=AnswerStyle),
        ]
    )


class _Search(dspy.Retrieve):
    """Shows a search to DSPy's callbacks: MLflow makes a span of the type RETRIEVER of it."""

    def __init__(self, search: Callable[[str, int], list[Passage]]):
        super().__init__()
        self._search = search

    def forward(self, query: str, k: int) -> list[Passage]:
        """Return what the search finds."""
        return self._search(query, k)


class _ShownPrediction(dspy.Prediction):
    """A prediction that a notebook shows with its tree, and `print` on a few lines."""

    _repr_html_ = prediction_in_notebook

    def __str__(self) -> str:
        """Return the answer, its state, the text and its references."""
        cited = [f"[{number}] {passage.cited()}" for number, passage in enumerate(self.references, start=1)]
        answer = self.answer or (f"no answer ({self.failure})" if self.failure else "")
        return "\n".join(filter(None, [answer, self.final_content, *cited, str(standing_of(self))]))


def checked_program(given: Any) -> Program:
    """Return the given value if it is a program.

    Raises:
        QuestreeError: if it is none, but a name for example.
    """
    if not isinstance(given, Program):
        raise QuestreeError(f"{given!r:.60} is no program; questree.program('searchain') makes one of a name.")
    return given


def answered(
    tree: ReasoningTree, answer: str, final_content: str, references: list[Passage], sure: bool = True, **fields: Any
) -> dspy.Prediction:
    """Return the prediction of a question that was answered.

    Args:
        tree: the reasoning.
        answer: as the LM gave it. Marks are removed, as their numbers would not be those of ``references``. One that
            says that there is no answer, such as null, becomes empty.
        final_content: marks that point to no reference are removed. Without an answer, one that only says that there
            is none becomes empty.
        references: mark ``[n]`` is ``references[n-1]``.
        sure: False if the LM says that it guesses: the answer then rests on a guess, whatever is cited.
        fields: others of the prediction; ``passages`` are all of the tree if they are not given.
    """
    text = as_answer(answer, references)
    content = without_loose_marks(final_content, len(references))
    if text and not sure:
        fields["rests_on"] = "guess"
    return _ShownPrediction(
        answer=text,
        final_content=content if text or stated(sentences(content)) else "",
        references=references,
        passages=fields.pop("passages", tree.passages()),
        tree=tree,
        failure=None,
        **fields,
    )


def as_answer(text: str | None, references: list[Passage]) -> str:
    """Return an LM's answer without marks; empty if it says that there is none."""
    answer = without_loose_marks(str(text or ""), 0).strip()
    titles = {normalise(passage.title.split(" (")[0]) for passage in references} - {""}
    return answer if normalise(answer) in titles else text_or_none(answer) or ""  # a film may be called Unknown


def answered_from(
    tree: ReasoningTree, answer: str, content: str, passages: list[Passage], **fields: Any
) -> dspy.Prediction:
    """Return the prediction of an answer whose content marks some of the passages, as `answered`.

    A mark that its passage does not support is taken out.
    """
    content, references = settle_marks(content, passages, supported_by(tree.question))
    return answered(tree, answer, content, references, passages=passages, **fields)


def signature_names(program: dspy.Module) -> dict[str, str]:
    """Return the names of the predictors' signatures."""
    return {name: predictor.signature.__name__ for name, predictor in program.named_predictors()}


def restore_names(program: dspy.Module, names: Mapping[str, str]) -> None:
    """Restore the signatures' names, which DSPy drops when it changes one; failures and capsules show them."""
    for name, predictor in program.named_predictors():
        predictor.signature.__name__ = names[name]


def _check_question(given: Any, question: str, answer_style: str) -> None:
    words, characters, styles = len(question.split()), len(question), get_args(AnswerStyle)
    faults = {  # a server may pass on any value: MLflow's chat task gives a list of messages
        f"the question is of the type {type(given).__name__}; give a text": not isinstance(given, str),
        "the question is empty; ask something": not question,
        f"the question has {words} words; at most {MAX_QUESTION_WORDS} are read": words > MAX_QUESTION_WORDS,
        f"the question has {characters:,} characters; at most {MAX_QUESTION_CHARACTERS:,} are read": (
            characters > MAX_QUESTION_CHARACTERS
        ),
        f"there is no answer style {str(answer_style)[:40]!r}; take {', '.join(styles)}": answer_style not in styles,
    }
    for fault, is_found in faults.items():
        if is_found:
            raise CallFailedError("question", fault)


def _adapted(given: Callable[..., Any]) -> Retriever:
    from ..retrieval import as_retriever  # only now: most retrievers are ours

    return as_retriever(given)
