"""A question as a stream of events: each node as it grows and changes, each LM call, and the prediction at the end."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from typing import Annotated, Any, Literal

import dspy
from pydantic import PlainSerializer

from ..common.event_loop import no_coroutine
from ..lm.parallel import on_thread
from ..lm.progress import Event, is_told, listener, tell, telling
from ..retrieval import Passage, asked_question
from ..signatures import AnswerStyle
from .tree import Node, ReasoningTree
from .tree_views import node_line


class NodeGrown(Event):
    """A node has grown.

    Attributes:
        node: as it is now.
    """

    kind: Literal["node_grown"] = "node_grown"
    node: Node

    def __str__(self) -> str:
        """Return a line for a person to read."""
        return node_line(self.node)


class NodeChanged(NodeGrown):
    """A node has changed."""

    kind: Literal["node_changed"] = "node_changed"  # type: ignore[assignment]


class Searching(Event):
    """A search begins.

    Attributes:
        query: what is searched for.
    """

    kind: Literal["searching"] = "searching"
    query: str

    def __str__(self) -> str:
        """Return a line for a person to read."""
        return f"searching “{self.query}” …"


class Written(Event):
    """More of the answer's text is written.

    Attributes:
        text: all of it so far, with settled marks; the final text may differ.
    """

    kind: Literal["written"] = "written"
    text: str


class Writing:
    """Receives a reply from DSPy in pieces, and sends events with the text of its final content.

    Args:
        settle: returns a text with its settled marks, and the passages that they cite.
    """

    def __init__(self, settle: Callable[[str], tuple[str, list[Passage]]]):
        self._settle, self._reply, self._told, self._length = settle, "", "", 0

    async def send(self, chunk: Any) -> None:
        """Take a piece."""
        self._reply += chunk.choices[0].delta.content or ""
        draft = _UNFINISHED.sub("", _content_so_far(self._reply))
        if len(draft) < self._length + _PIECE:
            return
        text, self._length = self._settle(draft)[0], len(draft)
        if (told := listener()) and text.startswith(self._told) and text != self._told:
            self._told = text
            told.hear(Written(text=text))


_PIECE = 24  # characters: marks are looked up anew for each
_UNFINISHED = re.compile(r"\s*(?:[\[【][^\]】]*|\S*)\Z")  # the last word, or a mark without its end
_CONTENT = re.compile(
    r"(?:\[\[ ## final_content ## \]\]|<final_content>)\s*(.*?)\s*(?=\[\[ ## |</final_content>|\Z)", re.DOTALL
)
_JSON = re.compile(r'"final_content"\s*:\s*"((?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*)', re.DOTALL)


def _content_so_far(reply: str) -> str:
    """Return the final content as far as a part of a reply holds it, in the form of any of DSPy's adapters."""
    if found := _JSON.search(reply):
        return str(json.loads(f'"{found[1]}"', strict=False))
    found = _CONTENT.search(reply)
    return found[1] if found else ""


def new_line(event: NodeGrown, told: set[str]) -> str | None:
    """Return the line of a node that grew or changed; None for a repeated line, as two paths may find one passage.

    Args:
        told: the earlier lines; this one is added.
    """
    line = str(event)
    if line in told:
        return None
    told.add(line)
    return line


def _as_fields(prediction: dspy.Prediction) -> dict[str, Any]:
    from .answer import as_fields  # not loaded by `questree ask`, which writes no event as JSON

    return as_fields(prediction)


class Done(Event):
    """The question is answered, or has failed.

    Attributes:
        prediction: what the program returned.
    """

    kind: Literal["done"] = "done"
    prediction: Annotated[dspy.Prediction, PlainSerializer(_as_fields)]


def told_growth(
    watch: Callable[[ReasoningTree], None] | None,
) -> Callable[[ReasoningTree, Node, bool], None] | None:
    """Return a function that sends an event for each node that grows or changes, and then calls ``watch``.

    Return None if there is neither stream nor ``watch``. A program inside another one sends no events: a stream shows
    only the tree of the outer program.
    """
    tells = is_told() and asked_question() is None
    if watch is None and not tells:
        return None

    def tell_and_watch(tree: ReasoningTree, node: Node, grown: bool) -> None:
        if tells:
            tell(NodeGrown(node=node) if grown else NodeChanged(node=node))
        if watch is not None:
            no_coroutine(watch(tree), "watch")

    return tell_and_watch


class Stream:
    """The events of one question. Read it with ``for`` or ``async for``, also several times and at the same time.

    The question is asked at once. A reader who begins later gets all events from the beginning. When the last reader
    leaves before the end, the question ends: it sends nothing more to the LM.
    """

    def __init__(self, program: dspy.Module, question: str, answer_style: AnswerStyle):
        self._events: list[Event] = []
        self._error: BaseException | None = None
        self._wakers: set[Callable[[], Any]] = set()
        self._lock = threading.Lock()
        self.followed = True
        on_thread(partial(self._run, partial(program, question=question, answer_style=answer_style)))

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, waiting for each."""
        arrived = threading.Event()
        with self._woken(arrived.set):
            for number in count():
                while not self._has(number):
                    arrived.wait()
                    arrived.clear()
                yield self._events[number]
                if isinstance(self._events[number], Done):
                    return

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield the events, and let the event loop run meanwhile."""
        arrived = asyncio.Event()
        with self._woken(partial(asyncio.get_running_loop().call_soon_threadsafe, arrived.set)):
            for number in count():
                while not self._has(number):
                    await arrived.wait()
                    arrived.clear()
                yield self._events[number]
                if isinstance(self._events[number], Done):
                    return

    def _run(self, ask: Callable[[], dspy.Prediction]) -> None:
        try:
            with dspy.context(send_stream=None), telling(self):
                prediction = ask()
            self.hear(Done(prediction=prediction))
        except BaseException as error:
            self._error = error
            self._wake()

    def hear(self, event: Event) -> None:
        """Take an event, and wake the readers."""
        self._events.append(event)
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            wakers = list(self._wakers)
        for wake in wakers:
            with suppress(RuntimeError):  # an event loop that has ended
                wake()

    def _has(self, number: int) -> bool:
        """Return whether there is an event of this number.

        Raises:
            Exception: what the program raised.
        """
        if number < len(self._events):
            return True
        if self._error is not None:
            raise self._error
        return False

    @contextmanager
    def _woken(self, wake: Callable[[], Any]) -> Iterator[None]:
        with self._lock:
            self._wakers.add(wake)
        try:
            yield
        finally:
            with self._lock:
                self._wakers.discard(wake)
                self.followed = bool(self._wakers)


def stream(program: dspy.Module, question: str, answer_style: AnswerStyle = "short") -> Stream:
    """Ask a question and return its events, to be read with ``for`` or ``async for``.

    Returns:
        `NodeGrown`, `NodeChanged`, `Searching`, `CallBegun` and `CallEnded` in the order in which they happen, and
        `Done` with the prediction at the end. Each has a ``kind``, and ``model_dump_json()`` writes it.

    Raises:
        TypeError: if ``program`` is no program, but a name for example.
    """
    if not isinstance(program, dspy.Module):
        raise TypeError(f"Give a program, such as questree.program('searchain'), and not {program!r:.80}.")
    return Stream(program, question, answer_style)
