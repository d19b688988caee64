"""An LM that answers by what it is asked, in whichever order; a retriever that finds several passages."""

import json
import re
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from dspy.lm15 import Request, Response
from fakes import ScriptedEngine

from questree.retrieval import Passage, Retriever

_VALUE = r"\[\[ ## {} ## \]\]\n(.*?)\n\n(?:\[\[ ## |Respond with)"


class Asked:
    """One call: which field it asks for first, and what it is given."""

    def __init__(self, request: Request):
        self.text = request.messages[-1].text or ""
        self.temperature, self.top_p = request.config.temperature, request.config.top_p
        found = re.search(r"starting with the field `\[\[ ## (\w+) ## \]\]`", self.text)
        self.wants = found[1] if found else ""

    @property
    def fields(self) -> list[str]:
        """All fields that it asks for."""
        return re.findall(r"`\[\[ ## (?!completed)(\w+) ## \]\]`", self.text.rpartition("Respond with")[2])

    def given(self, field: str) -> Any:
        """An input field's value; None where the prompt has no such field."""
        found = re.search(_VALUE.format(field), self.text, re.DOTALL)
        if found is None:
            return None
        return json.loads(found[1]) if found[1].startswith(("[", "{")) else found[1]

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of the passages given."""
        return tuple(re.sub(r"^\[\d+\] ", "", shown).split(" | ")[0] for shown in self.given("passages") or [])

    def __repr__(self) -> str:
        return f"{self.wants}({'+'.join(self.titles)})"


def calls(engine: ScriptedEngine) -> list[Asked]:
    """Return what an engine was asked, call by call."""
    return [Asked(request) for request in engine.requests]


def searching(query: str | Callable[[], str], **more: Any) -> Callable[[Asked], dict[str, Any]]:
    """Return an LM's replies that write a query wherever one is wanted; ``more`` are other fields."""
    numbers = count()

    def reply(asked: Asked) -> dict[str, Any]:
        wanted = {"query", "search", "follow_up", "follow_ups", "tentative", "thought"}.intersection(asked.fields)
        q = query() if wanted and callable(query) else query
        acted = bool(asked.given("trajectory"))
        told = {
            **dict.fromkeys(("query", "search", "follow_up", "next_query"), q),
            **{name: [q] for name in ("plan", "follow_ups", "uncertain")},
            "planned_chain": [{"query": q, "recalled": None, "sure": False}],
            "steps_planned": [{"asks": "lookup", "query": q}],
            **{"tentative": f"It is {q}.", "thought": f"It is {q}.", "searches_needed": "one"},
            **{"last_adds": True, "complete": False, "promise": 0.5, "passage_number": 0, "verdict": "silent"},
            **{name: [] for name in ("rest", "new_notes", "references")},
            "answer": "null" if "search" in asked.fields and not acted else f"A{next(numbers)}",
            "sure": True,
        } | ({"search": ""} if acted else {})
        return {name: (told | more).get(name, "text") for name in asked.fields}

    return reply


class Gate:
    """Lets calls through once it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def wait(self, timeout: float) -> None:
        assert self.opened.wait(timeout)


class AnsweringEngine(ScriptedEngine):
    """Replies what ``reply`` says of a call, which may first have to wait: for others in flight, or at a gate."""

    def __init__(self, reply: Callable[[Asked], Any], meet: Callable[[Asked], Any] | None = None):
        super().__init__([])
        self.reply, self.meet = reply, meet
        self.asked: list[Asked] = []
        self.lock = threading.Lock()

    def complete(self, request: Request) -> Response:
        asked = Asked(request)
        barrier = self.meet(asked) if self.meet else None
        if barrier is not None:
            barrier.wait(timeout=20)
        with self.lock:
            self.asked.append(asked)
            self.replies = [self.reply(asked)]
            return super().complete(request)

    @property
    def calls(self) -> list[str]:
        """The calls in the order in which they were answered."""
        return [repr(asked) for asked in self.asked]


class TableRetriever(Retriever):
    """Finds the passages whose titles are listed for the query; each one's id is its title."""

    name = "table"
    fingerprint = "table"

    def __init__(self, found: dict[str, str]):
        self.found = found
        self.queries: list[tuple[str, int]] = []

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        self.queries.append((query, k))
        return [Passage(id=title, title=title, text=f"text of {title}") for title in self.found.get(query, "")][:k]

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        return [self(query, k) for query in queries]


class AlikeRetriever(TableRetriever):
    """One that offers embeddings: titles of the same letter, in either case, are near-duplicates."""

    def similarity(self, texts: list[str], others: list[str]) -> list[list[float]]:
        return [[0.95 if text[0].lower() == other[0].lower() else 0.1 for other in others] for text in texts]
