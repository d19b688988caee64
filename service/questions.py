"""Questions on their way: each is asked once, may be followed by many, and ends when nobody follows it any more."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime, timezone
from functools import cache, cached_property, partial
from typing import Literal

import anyio
import anyio.to_thread
import dspy

from ..common.errors import QuestreeError, unknown_name
from ..common.event_loop import run
from ..common.registry import described
from ..evaluation.traces import about
from ..lm.call import ask_without, call
from ..lm.episode import EpisodeStep, episode
from ..lm.failure import CallFailedError, Failure, counting_failures, first_line
from ..lm.models import is_simulated, not_known
from ..lm.progress import CallBegun, CallEnded, Event, telling
from ..lm.spent import Spent, total
from ..optimize.result import compiled_parts
from ..pages.asked_question import AskedQuestion
from ..pages.question_page import Offered
from ..programs import Program, ReasoningTree
from ..programs.streams import NodeChanged, NodeGrown, Searching, Written
from ..retrieval import Retriever
from ..retrieval.serving.server_limits import Refused
from ..signatures import AnswerStyle
from ..signatures.subquestions import RestateQuestion
from .kept_questions import KeptQuestions
from .queue import Queue
from .service_limits import ServiceLimits

logger = logging.getLogger(__name__)

_TURNS, _CHARACTERS = 10, 2000  # the last turns, and of each its beginning: what a follow-up goes back to
_BEAT = 15.0
"""Seconds after which a follower who has nothing to hear is sent a sign of life."""


class Restated(Event):
    """The question, which ended a conversation, is complete in itself now.

    Attributes:
        question: in the LM's words.
    """

    kind: Literal["restated"] = "restated"
    question: str

    def __str__(self) -> str:
        """Return a line for a person to read."""
        return f"The question, from the conversation: {self.question}"


class Waiting(Event):
    """The question waits for its turn.

    Attributes:
        place: in the queue, from 1.
    """

    kind: Literal["waiting"] = "waiting"
    place: int


@cache
def waiting(place: int) -> Waiting:
    """Return the event of a place: all who wait hear of each turn, so a full queue would hold a million of them."""
    return Waiting(place=place)


_DOING = {
    "planning": ("Plan", "Revise", "Correct", "Complete", "Propose"),
    "reading what was found": ("Check", "Judge", "Read", "Rank", "Review", "Filter", "Confirm", "Take", "Summarize"),
    "writing": ("Answer", "Trace", "Edit"),
}


@cache
def doing(signature: str) -> str:
    """Return what an LM call does, in a word or two: its signature's name begins with a verb."""
    return next((words for words, verbs in _DOING.items() if signature.startswith(verbs)), "asking the LM")


class Ended(Event):
    """The question has ended: answered, failed or stopped.

    Attributes:
        asked: all that is known of it.
    """

    kind: Literal["done"] = "done"
    asked: AskedQuestion


class PendingQuestion:
    """A question on its way, on one event loop. The program tells it what happens (`questree.lm.progress.telling`).

    Attributes:
        asked: all that is known of it by now.
        client: who asked.
        steps: what was asked for it outside the program.
        events: what its followers hear, so far.
        followed: always True: a question that nobody follows is cancelled.
        patience: seconds that it goes on without a follower.
    """

    def __init__(self, asked: AskedQuestion, client: str, patience: float):
        self.asked, self.client, self.patience = asked, client, patience
        self.steps: Sequence[EpisodeStep] = ()
        self.followed = True
        self.task: asyncio.Task[None] | None = None
        self._began = time.perf_counter()
        self.events: list[Event] = []
        self._ended = False
        self._news = asyncio.Event()
        self._followers = 0
        self._last_seen = 0.0
        self._restating = Spent()
        self._sought = ""

    def now(self) -> AskedQuestion:
        """Return what is known by now, with the seconds so far."""
        if not self.asked.finished:
            self.asked.seconds = time.perf_counter() - self._began
        return self.asked

    def stop(self) -> None:
        """Stop the question: nothing more is asked for it."""
        if self.task is not None and not self.asked.finished:
            self.task.cancel()

    async def stopped(self) -> None:
        """Stop the question, and return when it has ended."""
        self.stop()
        if self.task is not None:
            await asyncio.wait([self.task])

    async def follow(self, after: int = 0) -> AsyncGenerator[list[tuple[int, Event]], None]:
        """Yield the events with their numbers from ``after`` on, to the end: those that are there at a time together.

        Now and then there is none, as a sign of life.
        """
        with self.following():
            while True:
                if told := list(enumerate(self.events[after:], start=after)):
                    after += len(told)
                    yield told
                elif self._ended:
                    return
                else:
                    news = self._news
                    with anyio.move_on_after(_BEAT):
                        await news.wait()
                    if not news.is_set():
                        yield []

    @contextmanager
    def following(self) -> Iterator[None]:
        """Count a follower inside the block; when the last one has left, patience begins to run out."""
        self._followers += 1
        try:
            yield
        finally:
            self._followers -= 1
            self.leave_later(self.patience)

    def leave_later(self, seconds: float) -> None:
        """Stop the question after a time in which nobody followed it."""
        loop = asyncio.get_running_loop()
        self._last_seen = seen = loop.time()

        def stop_if_alone() -> None:
            if not self._followers and self._last_seen == seen:
                self.stop()

        if seconds:
            loop.call_later(seconds, stop_if_alone)
        else:
            stop_if_alone()

    def hear(self, event: Event) -> None:
        """Take an event of the program, and tell it to the followers."""
        asked = self.asked
        if isinstance(event, NodeChanged):
            asked.tree.nodes[event.node.id] = event.node
        elif isinstance(event, NodeGrown):
            asked.tree.nodes.append(event.node)
        elif isinstance(event, Searching):
            asked.doing, self._sought = f"searching “{event.query}”", f" for “{event.query}”"
        elif isinstance(event, CallBegun):
            said = doing(event.signature)
            asked.doing = said + (self._sought if said.startswith("reading") else "")
        elif isinstance(event, CallEnded):
            asked.spent = total([asked.spent, event.spent])
        elif isinstance(event, Written):
            asked.writing = event.text
        elif isinstance(event, Waiting):
            asked.place = event.place
        elif isinstance(event, Restated):
            asked.said, asked.tree = asked.tree.question, ReasoningTree(question=event.question)
            self._restating = asked.spent
        self._tell(event)

    def done(self, said: dspy.Prediction) -> None:
        """Note what the program returned."""
        asked = self.asked
        asked.answer, asked.final_content, asked.references = said.answer, said.final_content, said.references
        asked.rests_on = said.get("rests_on")
        asked.spent, asked.tree = total([self._restating, said.spent]), said.tree
        self.end("answered" if said.failure is None else "failed", said.failure)

    def end(self, state: Literal["answered", "failed", "stopped"], failure: Failure | None = None) -> None:
        """Note how it ended, and why there is no answer."""
        asked = self.now()
        asked.state, asked.failure, asked.place, asked.doing, asked.writing = state, failure, None, "", ""

    def tell_end(self) -> None:
        """Tell the followers that nothing more comes."""
        self._ended = True
        self._tell(Ended(asked=self.asked))

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()
        self._news = asyncio.Event()


def _named(retriever: Retriever) -> str:
    """Return which index it is: its folder, or else its fingerprint, and its kind or address."""
    return (
        f"{retriever.folder} ({retriever.name})" if retriever.folder else f"{retriever.name} ({retriever.fingerprint})"
    )


class Service:
    """Programs by name, and the questions that they are asked. All of it runs on one event loop.

    Args:
        programs: by the names that clients use; the first is the default.
        kept: where questions are kept.
        limits: how much is taken on at a time.
        lm: that the programs ask; None for DSPy's own setting.
        examples: questions that can be answered, for the Ask page.
        traces: gives what writes a question's trace to MLflow.
    """

    def __init__(
        self,
        programs: Mapping[str, dspy.Module],
        kept: KeptQuestions,
        limits: ServiceLimits | None = None,
        lm: dspy.BaseLM | None = None,
        examples: Sequence[str] = (),
        traces: Callable[[], AbstractContextManager[None]] = nullcontext,
    ):
        self.programs, self.kept, self.limits = dict(programs), kept, limits or ServiceLimits()
        self.examples, self.traces = examples, traces
        self._lm: dspy.BaseLM = lm or dspy.settings.lm
        steps = [] if self.limits.stream_lm else [step for one in programs.values() for step in one.predictors()]
        for step in steps:
            ask_without(step.lm or self._lm, "stream")
        self._queue = Queue(self.limits)
        self._parts = cache(compiled_parts)  # each question tells them
        self._questions: dict[str, PendingQuestion] = {}

    @property
    def names(self) -> list[str]:
        """Return the names of the programs."""
        return list(self.programs)

    @property
    def simulated(self) -> bool:
        """Return whether the LM is a simulated one."""
        return is_simulated(self._lm)

    @cached_property
    def offered(self) -> Offered:
        """Return what the Ask page says of the service."""
        lines = {name: described(type(one).__doc__)[0] for name, one in self.programs.items()}
        lines |= {name: f"{lines[name]} Compiled: {parts}." for name in lines if (parts := self._compiled(name))}
        indexes = {facts["Index"] for name in self.names if (facts := self.about(name)).get("Index")}
        searched = f"Searches {' and '.join(sorted(indexes))} and asks" if indexes else "Asks"
        about = f"{searched} {self._lm.model}."
        return Offered(lines, about, self.examples, self.simulated, not_known(self._lm, ""))

    def _compiled(self, name: str) -> str:
        """Return what a program has that its code has not; of one whose class takes more than settings, nothing."""
        program = self.programs[name]
        with suppress(TypeError):
            return self._parts(program) if isinstance(program, Program) else ""
        return ""

    def about(self, name: str) -> dict[str, str]:
        """Return what a program is made of: LM, index, program and settings."""
        program = self.programs[name]
        told = {"LM": str(self._lm.model)}
        if isinstance(program, Program):
            retriever = program.retriever
            told |= {"Index": _named(retriever)} if retriever else {}
            told["Program"] = f"{program.name}, compiled: {parts}" if (parts := self._compiled(name)) else program.name
            changed = program.settings.model_dump(exclude_defaults=True)
            told["Settings"] = (
                ", ".join(f"{what}={value}" for what, value in changed.items()) or "as they are by default"
            )
        return told

    def ask(
        self,
        question: str,
        *,
        client: str,
        program: str | None = None,
        answer_style: AnswerStyle = "short",
        seconds: float | None = None,
        patience: float = 0.0,
        conversation: Sequence[str] = (),
    ) -> PendingQuestion:
        """Take a question; it is answered in the background, in its turn.

        Args:
            question: in the user's words.
            client: who asks, for the limit of each client.
            program: by name; the first one where None.
            answer_style: the form of the answer.
            seconds: that it may take; never more than the service's own limit.
            patience: seconds that it goes on without a follower.
            conversation: what was said before it, in order.

        Raises:
            Refused: there is no such program, or no room.
        """
        name = program or self.names[0]
        self.check_name(name)
        self._queue.enter(client)
        asked = AskedQuestion(
            id=secrets.token_urlsafe(12),  # nobody can guess it
            program=name,
            answer_style=answer_style,
            asked_at=datetime.now(timezone.utc),
            tree=ReasoningTree(question=question.strip()),
            simulated=self.simulated,
            not_known=not_known(self._lm, question),
            about=self.about(name),
        )
        taken = PendingQuestion(asked, client, patience)
        self._questions[asked.id] = taken
        most = self.limits.seconds
        taken.task = asyncio.create_task(self._answer(taken, conversation, min(most, seconds or most)))
        taken.task.add_done_callback(lambda _: self._forget(taken))
        taken.leave_later(patience or _BEAT)  # in case nobody ever begins to follow it
        return taken

    def check_name(self, name: str) -> None:
        """Refuse a name that is no program's.

        Raises:
            Refused: with 404, and the name that may be meant.
        """
        if name not in self.programs:
            raise Refused(404, unknown_name("program", name[:80], self.names), "model_not_found")

    def find(self, id: str) -> PendingQuestion | AskedQuestion | None:
        """Return a question that is on its way, or one that was kept; None if there is none of this id."""
        return self._questions.get(id) or self.kept.find(id)

    async def close(self) -> None:
        """Stop what is on its way, and keep it."""
        await asyncio.gather(*(question.stopped() for question in self._questions.values()))

    async def _answer(self, question: PendingQuestion, conversation: Sequence[str], seconds: float) -> None:
        """Wait for a turn, answer the question, and keep it however it ended."""
        try:
            with anyio.move_on_after(seconds) as time_left:
                turn = self._queue.turn(lambda place: question.hear(waiting(place)))
                async with turn:
                    await self._run(question, conversation)
            if time_left.cancelled_caught:
                late = Failure(cause="deadline", message=f"there was no answer within {seconds:g} s")
                question.end("failed", late)
        except asyncio.CancelledError:
            question.end("stopped")
        except CallFailedError as error:
            question.end("failed", error.failure)
        except Exception as error:
            logger.exception("A question failed.")
            fault = Failure(cause="error", message=f"{type(error).__name__}: {first_line(error)}")
            question.end("failed", fault)
        with anyio.CancelScope(shield=True):
            await self._keep(question)

    def _forget(self, question: PendingQuestion) -> None:
        """Take a question out of the count, and tell its end; one that was stopped before it began ends here."""
        self._queue.leave(question.client)
        del self._questions[question.asked.id]
        if not question.asked.finished:
            question.end("stopped")
        question.tell_end()

    async def _run(self, question: PendingQuestion, conversation: Sequence[str]) -> None:
        asked = question.asked
        asked.state, asked.place = "running", None
        with dspy.context(lm=self._lm), counting_failures(), telling(question), episode() as kept:
            if conversation:
                restate = partial(self._restate, asked.tree.question, conversation)
                question.hear(Restated(question=await run(restate)))
            program = self.programs[asked.program]
            with self.traces(), about(asked.id) as traced:
                prediction = await program.acall(question=asked.tree.question, answer_style=asked.answer_style)
            question.steps, asked.trace = kept.ordered, traced.place
        question.done(prediction)

    def _restate(self, question: str, conversation: Sequence[str]) -> str:
        turns = [turn[:_CHARACTERS] for turn in conversation[-_TURNS:]]
        with episode():
            reply = call(dspy.Predict(RestateQuestion), conversation=turns, question=question)
        return str(reply.restated).strip() or question

    async def _keep(self, question: PendingQuestion) -> None:
        try:
            await anyio.to_thread.run_sync(self.kept.keep, question.asked, question.steps)
        except QuestreeError as error:
            logger.warning("%s Its page is in memory until the server ends.", error)
            self.kept.hold(question.asked)
