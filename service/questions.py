"""The service: programs by name, and the questions that they are asked, each in its turn."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timezone
from functools import partial

import anyio
import anyio.to_thread
import dspy

from ..common.errors import QuestreeError, unknown_name
from ..common.event_loop import run
from ..evaluation.traces import about
from ..lm.episode import episode
from ..lm.failure import CallFailedError, Failure, counting_failures, first_line
from ..lm.models import not_known
from ..lm.options import ask_without
from ..lm.progress import telling
from ..pages.asked_question import AskedQuestion
from ..programs import ReasoningTree
from ..programs.modules.follow_ups import restated
from ..retrieval.serving.server_limits import Refused
from ..signatures import AnswerStyle
from .kept_questions import KeptQuestions
from .pending_question import BEAT, PendingQuestion, Restated, waiting_event
from .queue import Queue
from .served_programs import ServedPrograms
from .service_limits import ServiceLimits

logger = logging.getLogger(__name__)

_LONGEST = 10  # questions of a thread


class Service(ServedPrograms):
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
        super().__init__(programs, lm, examples)
        self.kept, self.limits, self.traces = kept, limits or ServiceLimits(), traces
        steps = [] if self.limits.stream_lm else [step for one in programs.values() for step in one.predictors()]
        for step in steps:
            ask_without(step.lm or self._lm, "stream")
        self._queue = Queue(self.limits)
        self._questions: dict[str, PendingQuestion] = {}

    def ask(
        self,
        question: str,
        *,
        client: str,
        program: str | None = None,
        answer_style: AnswerStyle = "short",
        seconds: float | None = None,
        patience: float = 0.0,
        history: Sequence[str] = (),
        after: str = "",
    ) -> PendingQuestion:
        """Take a question; it is answered in the background, in its turn.

        Args:
            question: in the user's words.
            client: who asks, for the limit of each client.
            program: by name; the first one where None.
            answer_style: the form of the answer.
            seconds: that it may take; never more than the service's own limit.
            patience: seconds that it goes on without a follower.
            history: what was said before it, in order; of more than the thread, if one is given.
            after: the id of the question that it goes on from.

        Raises:
            Refused: there is no such program, no room, no such question before it, or follow-ups are not taken.
        """
        if after and not self.thread(after):
            raise Refused(404, "the question that it goes on from has not ended, or is not kept here", "not_found")
        for asked in self.thread(after):
            history = [*history, f"user: {asked.said or asked.tree.question}", f"assistant: {asked.told}"]
        if history and not self.limits.follow_ups:
            raise Refused(400, "one question at a time, complete in itself: no follow-ups", "invalid_request")
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
            after=after,
        )
        taken = PendingQuestion(asked, client, patience)
        self._questions[asked.id] = taken
        most = self.limits.seconds
        taken.task = asyncio.create_task(self._answer(taken, history, min(most, seconds or most)))
        taken.task.add_done_callback(lambda _: self._forget(taken))
        taken.leave_later(patience or BEAT)  # in case nobody ever begins to follow it
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

    def thread(self, id: str) -> list[AskedQuestion]:
        """Return a question that has ended, behind those that it went on from; none if there is none of this id."""
        found = list[AskedQuestion]()
        while id and len(found) < _LONGEST and isinstance(asked := self.find(id), AskedQuestion):
            found.insert(0, asked)
            id = asked.after
        return found

    async def close(self) -> None:
        """Stop what is on its way, and keep it."""
        await asyncio.gather(*(question.stopped() for question in self._questions.values()))

    async def _answer(self, question: PendingQuestion, history: Sequence[str], seconds: float) -> None:
        """Wait for a turn, answer the question, and keep it however it ended."""
        try:
            with anyio.move_on_after(seconds) as time_left:
                turn = self._queue.turn(lambda place: question.hear(waiting_event(place)))
                async with turn:
                    await self._run(question, history)
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

    async def _run(self, question: PendingQuestion, history: Sequence[str]) -> None:
        asked = question.asked
        asked.state, asked.place = "running", None
        with dspy.context(lm=self._lm), counting_failures(), telling(question), episode() as kept:
            if history:
                restate = partial(restated, asked.tree.question, history)
                question.hear(Restated(question=await run(restate)))
            program = self.programs[asked.program]
            with self.traces(), about(asked.id) as traced:
                prediction = await program.acall(question=asked.tree.question, answer_style=asked.answer_style)
            question.steps, asked.trace = kept.ordered, traced.place
        question.done(prediction)

    async def _keep(self, question: PendingQuestion) -> None:
        try:
            await anyio.to_thread.run_sync(self.kept.keep, question.asked, question.steps)
        except QuestreeError as error:
            logger.warning("%s Its page is in memory until the server ends.", error)
            self.kept.hold(question.asked)
