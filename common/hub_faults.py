"""Why the Hugging Face hub gave nothing. Its client raises errors of its own, of HTTP and of files."""

from __future__ import annotations

from collections.abc import Iterator

from .secrets import without_secrets

_KNOWN = {
    "GatedRepoError": "it is given to those only who asked its owner for it",
    "RevisionNotFoundError": "it has no such revision",
    "RepositoryNotFoundError": "there is no such repository, or it is private and no token is set (HF_TOKEN)",
}
_NO_ANSWER = ("TransportError", "ConnectionError", "OfflineModeIsEnabled")  # of httpx and its successor, of requests


def hub_fault(error: Exception) -> str:
    """Return why the hub gave nothing, in one line without a full stop at its end."""
    chain = list(_chain(error))
    known = next((words for name, words in _KNOWN.items() if any(_is(one, name) for one in chain)), None)
    if known:
        return known
    if any(getattr(getattr(one, "response", None), "status_code", None) in (401, 403) for one in chain):
        return "the hub wants a token that may do this (HF_TOKEN)"
    if unanswered := [one for one in chain if any(_is(one, name) for name in _NO_ANSWER)]:
        return f"the hub cannot be reached ({_first_line(unanswered[-1])}); behind a proxy, name it in HTTPS_PROXY"
    said = _first_line(error.__cause__ or error)
    return f"what answers is not the hub ({said})" if _is(error, "JSONDecodeError") else said


def _is(error: BaseException, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(error).__mro__)


def _first_line(error: BaseException) -> str:
    lines = filter(None, map(str.strip, str(error).splitlines()))
    return without_secrets(next(lines, type(error).__name__))[:300].rstrip(".")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
