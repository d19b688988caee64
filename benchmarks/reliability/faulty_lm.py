"""What an LM's server does wrong in ways of its own: replies that are none, and prompts that it finds too long."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from questree.simulate import SimulatedEngine
from questree.simulate.server import chat_completion, request_of

from .faulty_server import TRANSPORT, Fault, Schedule, at_fault

_SECTION = re.compile(r"\[\[ ## (?!completed)(\w+) ## \]\]\n(.*?)(?=\n*\[\[ ## |\Z)", re.DOTALL)
_TOOL_CALL = {"id": "1", "type": "function", "function": {"name": "run", "arguments": "{"}}
_TYPED = re.compile(r"\s*([\[{]|-?\d+(\.\d+)?\s*$|(true|false|null|none)\s*$)", re.IGNORECASE)

Completion = dict[str, Any]


def _saying(change: Callable[[str], str | None]) -> Callable[[Completion], Completion | None]:
    """The completion with another text."""

    def changed(completion: Completion) -> Completion | None:
        text = change(completion["choices"][0]["message"]["content"])
        return None if text is None else _with_message(completion, content=text)

    return changed


def _with_message(completion: Completion, **fields: Any) -> Completion:
    (choice,) = completion["choices"]
    return {**completion, "choices": [{**choice, "message": {**choice["message"], **fields}}]}


def _without_last_field(text: str) -> str | None:
    sections = list(_SECTION.finditer(text))
    return text[: sections[-1].start()] if sections else None


def _with_another_first_field(text: str) -> str | None:
    """The first field once more, at the end and with another value."""
    found = _SECTION.search(text)
    if found is None:
        return None
    return f"{text}\n\n[[ ## {found[1]} ## ]]\nsomething else\n\n[[ ## completed ## ]]"


def _with_a_value(written: str, text: str) -> str | None:
    """Put this in the place of one value that should be a list, a number or a truth value."""
    for found in _SECTION.finditer(text):
        if _TYPED.match(found[2]):
            return f"{text[: found.start(2)]}{written}{text[found.end(2) :]}"
    return None


def _total(usage: dict[str, int]) -> dict[str, int]:
    return {"total_tokens": usage["total_tokens"]}


def _cut(completion: Completion) -> Completion:
    """Cut at the token limit, in the middle of the last field: what is left may still parse."""
    content = completion["choices"][0]["message"]["content"]
    cut = _with_message(completion, content=content[: max(1, len(content) * 2 // 3)])
    return {**cut, "choices": [{**cut["choices"][0], "finish_reason": "length"}]}


def _refusal(kind: str, status: int, message: str, **more: Any) -> Fault:
    return Fault(kind, status, json.dumps({"error": {"message": message, **more}}).encode())


_LENGTH = "This model's maximum context length is"
OVERFLOWS = (
    *(
        _refusal(f"overflow, {server}", status, message)
        for server, status, message in (
            ("OpenAI", 400, f"{_LENGTH} 8192 tokens. However, your messages resulted in 9001 tokens."),
            ("newer OpenAI", 400, "Your input exceeds the context window of this model. Please adjust your input."),
            ("vLLM", 400, f"'max_tokens' is too large: 1024. {_LENGTH} 4096 tokens and your request has 3900 input "
                          "tokens (1024 > 4096 - 3900)."),
            ("llama.cpp", 400, "the request exceeds the available context size. try increasing the context size"),
            ("Ollama", 500, "the input length exceeds the context length"),
            ("Anthropic", 400, "prompt is too long: 208310 tokens > 200000 maximum"),
            ("Gemini", 400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
            ("Mistral", 400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
                             "context length"),
        )
    ),
    Fault(
        "overflow, TGI",
        422,
        b'{"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` '
        b'tokens and 1024 `max_new_tokens`", "error_type": "validation"}',
    ),
    Fault("overflow, proxy", 413, b"<html>413 Request Entity Too Large</html>"),
)  # fmt: skip
"""A prompt that is too long, in the words of several servers (in their form; the figures are made up)."""

NO_USAGE = Fault("no usage", change=lambda completion: {key: completion[key] for key in completion if key != "usage"})
TOTAL_ONLY = Fault("usage in total", change=lambda completion: {**completion, "usage": _total(completion["usage"])})
MALFORMED = (
    Fault("empty reply", change=lambda completion: _with_message(completion, content="")),
    Fault("null reply", change=lambda completion: _with_message(completion, content=None)),
    Fault("truncated", change=_cut),
    Fault("no choices", change=lambda completion: {**completion, "choices": []}),
    Fault("error with status 200", change=lambda completion: {"error": {"message": "overloaded", "code": 529}}),
    Fault("no fields", change=_saying(lambda text: "I would rather not say.")),
    Fault("field missing", change=_saying(_without_last_field)),
    Fault("field repeated", change=_saying(_with_another_first_field)),
    Fault("wrong type", change=_saying(partial(_with_a_value, "[it, {depends"))),
    Fault("deep JSON in a field", change=_saying(partial(_with_a_value, "[" * 20_000))),
    Fault("a tool call", change=lambda completion: _with_message(completion, content=None, tool_calls=[_TOOL_CALL])),
    Fault("half a character", change=_saying(lambda text: _SECTION.sub("\\g<0>\ud83d", text))),
    Fault("only marks", change=_saying(lambda text: "[[ ## " * 2_000)),
    NO_USAGE,
    TOTAL_ONLY,
)
"""Replies that are not what was asked for; the four that a client can make do with are among them."""

AT_ONCE = (
    _refusal("401", 401, "Incorrect API key provided", code="invalid_api_key"),
    _refusal("402", 402, "Your account has no credit left", code="insufficient_quota"),
    _refusal("403", 403, "This key may not use this model"),
    _refusal("404", 404, "The model `simulated` does not exist", code="model_not_found"),
)
"""Refusals that no second request changes."""

LM_FAULTS = (*TRANSPORT, *MALFORMED, *OVERFLOWS, *AT_ONCE)

CAUSES: dict[str, frozenset[str]] = {
    **{fault.kind: frozenset({"server"}) for fault in TRANSPORT},
    **{fault.kind: frozenset({"rate-limit"}) for fault in TRANSPORT if fault.status == 429},
    **dict.fromkeys(("reset", "dropped", "no HTTP", "half a chunk"), frozenset({"unreachable"})),
    "429 for a day": frozenset({"rate-limit", "deadline"}),
    **dict.fromkeys(("stall", "drip"), frozenset({"timeout", "deadline"})),
    "504": frozenset({"timeout"}),
    **{fault.kind: frozenset({"unparsable"}) for fault in MALFORMED},
    "truncated": frozenset({"truncated"}),
    **dict.fromkeys(("no choices", "error with status 200"), frozenset({"server"})),
    **{fault.kind: frozenset({"context-window"}) for fault in OVERFLOWS},
    **{fault.kind: frozenset({"auth"}) for fault in AT_ONCE},
    "404": frozenset({"refused"}),
}
"""As which a question may fail that met the fault."""


@contextmanager
def faulty_lm(engine: SimulatedEngine, schedule: Schedule) -> Iterator[str]:
    """The simulated LM behind an OpenAI-compatible address that is at fault; gives its ``api_base``."""

    def answer(path: str, body: bytes) -> tuple[int, Any]:
        if not path.endswith("/chat/completions"):
            return 404, {"error": {"message": f"nothing at {path}"}}
        return 200, chat_completion(engine.reply_to(request_of(json.loads(body))))

    with at_fault(answer, schedule) as address:
        yield f"{address}/v1"
