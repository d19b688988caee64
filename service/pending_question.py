"""A question on its way: it is asked once, may be followed by many, and ends when nobody follows it any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Literal

import anyio
import dspy

from ..lm.episode import EpisodeStep
from ..lm.failure import Failure
from ..lm.progress import CallBegun, CallEnded, Event
from ..lm.spent import Spent, total
from ..pages.asked_question import AskedQuestion, state_after
from ..programs import ReasoningTree
from ..programs.answer import Answered
from ..programs.streams import NodeChanged, NodeGrown, Searching, Written

BEAT = 15.0
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
def waiting_event(place: int) -> Waiting:
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
                    with anyio.move_on_after(BEAT):
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

    def done(self, prediction: dspy.Prediction) -> None:
        """Note what the program returned."""
        answered = Answered.of(prediction)
        self.asked.take(answered)
        self.asked.spent = total([self._restating, answered.spent])
        self.end(state_after(answered), answered.failure)

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
