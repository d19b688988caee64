"""A retriever behind an address that is at fault: what any server does wrong, and rankings that are none."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from questree.retrieval import Retriever

from .faulty_server import TRANSPORT, Fault, Schedule, at_fault

Results = dict[str, Any]


def _ranking(change: Callable[[list[Any]], list[Any] | None]) -> Callable[[Results], Results | None]:
    """The results with another first ranking; None where it cannot be changed so."""

    def changed(results: Results) -> Results | None:
        first, *others = results["results"]
        new = change(first)
        return None if new is None else {**results, "results": [new, *others]}

    return changed


def _out_of_order(found: list[Any]) -> list[Any] | None:
    return found[::-1] if found[0]["score"] > found[-1]["score"] else None


RETRIEVER_FAULTS = (
    *TRANSPORT,
    Fault("another index", change=lambda results: {**results, "fingerprint": "another"}),
    Fault("no ranking", change=lambda results: {**results, "results": []}),
    Fault("a ranking too many", change=lambda results: {**results, "results": [*results["results"], []]}),
    Fault("a passage twice", change=_ranking(lambda found: [found[0], *found[:-1]] if len(found) > 1 else None)),
    Fault("out of order", change=_ranking(_out_of_order)),
    Fault("a passage without text", change=_ranking(lambda found: [{**found[0], "text": None}, *found[1:]])),
    Fault("too many passages", change=_ranking(lambda found: [*found, {**found[-1], "id": "one more"}])),
    Fault("a score that is none", change=_ranking(lambda found: [{**found[0], "score": float("nan")}, *found[1:]])),
    Fault("401", 401, b'{"error": {"message": "a token, please"}}'),
    Fault("404", 404, b"nothing here"),
)
"""What a retriever's server does wrong. None of it may reach a program as passages."""


@contextmanager
def faulty_retriever(retriever: Retriever, schedule: Schedule) -> Iterator[str]:
    """The retriever behind an address that is at fault, but for its health; for `RemoteRetriever`."""
    health: dict[str, Any] = {"status": "ok", "name": retriever.name, "fingerprint": retriever.fingerprint}
    health |= {"passages": None, "similarity": False, "most_passages": 4_096}

    def answer(path: str, body: bytes) -> tuple[int, Any]:
        if path == "/health":
            return 200, health
        asked = json.loads(body)
        rankings = retriever.batch(asked["queries"], asked["k"])
        found = [[one.model_dump(include={"id", "title", "text", "score"}) for one in ranking] for ranking in rankings]
        return 200, {"fingerprint": retriever.fingerprint, "results": found}

    with at_fault(answer, schedule) as address:
        yield address
