"""A scripted LM, a retriever and a reader that look up a list: for tests that go call by call."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dspy.lm15 import Message, Request, Response, TextPart, Usage, response_to_events

from questree.retrieval import Passage, Retriever, Span


class ScriptedEngine:
    """Gives its replies in order, each a dict of output fields, a raw text, or an exception to raise."""

    def __init__(self, replies: list[Any]):
        self.replies = list(replies)
        self.prompts: list[str] = []
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Response:
        self.requests.append(request)
        self.prompts.append(request.messages[-1].text or "")
        if not self.replies:
            raise AssertionError(f"an unexpected call: {self.prompts[-1][:400]}")
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        text, finish = reply if isinstance(reply, tuple) else (reply, "stop")
        if isinstance(text, dict):
            text = "".join(f"[[ ## {name} ## ]]\n{_shown(value)}\n\n" for name, value in text.items())
        usage = Usage(input_tokens=10, output_tokens=5, total_tokens=15)
        return Response(
            id=None, model="scripted", message=Message.assistant([TextPart(text)]), finish_reason=finish, usage=usage
        )

    def stream(self, request: Request) -> Iterator[Any]:
        return iter(response_to_events(self.complete(request)))

    def close(self) -> None:
        pass


class FunctionEngine(ScriptedEngine):
    """Gives what a function of the request gives."""

    def __init__(self, give: Callable[[Request], Response]):
        super().__init__([])
        self.give = give

    def complete(self, request: Request) -> Response:
        return self.give(request)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class FoundRetriever(Retriever):
    """Gives the passages that are listed for exactly this query, and remembers what it was asked."""

    name = "list"
    fingerprint = "list"

    def __init__(self, found: Mapping[str, list[Passage]]):
        self.found, self.queries = found, list[str]()

    def __call__(self, query: str, k: int = 1) -> list[Passage]:
        self.queries.append(query)
        return self.found.get(query, [])[:k]

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        return [self(query, k) for query in queries]


class ListRetriever(FoundRetriever):
    """Gives one passage of the text that is listed for the query."""

    def __init__(self, found: dict[str, str]):
        texts = enumerate(found.items())
        super().__init__({query: [Passage(id=f"p{n}", title=f"T{n}", text=text)] for n, (query, text) in texts})


class GivingRetriever(Retriever):
    """Gives its passages in their order, whatever is asked, and remembers what and how many."""

    name, fingerprint = "table", "table-1"

    def __init__(self, given: Iterable[Passage]):
        self.given, self.asked = list(given), list[tuple[list[str], int]]()

    def batch(self, queries: list[str], k: int = 1) -> list[list[Passage]]:
        self.asked.append((queries, k))
        return [self.given[:k] for _ in queries]


class ListReader:
    """Reads the span that is listed for the query."""

    name = "list"
    threshold = 1.5
    read_many = None

    def __init__(self, spans: dict[str, tuple[str, float]]):
        self.spans = spans

    def __call__(self, query: str, passage: Passage) -> Span:
        text, score = self.spans.get(query, ("", -5.0))
        return Span(text=text, score=score)
