"""Replies in the form that steps store, and an LM that returns stored replies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import dspy
from dspy.lm15 import FinishReason, Message, Request, Response, TextPart, ThinkingPart, Usage
from dspy.utils import exceptions
from dspy.utils.exceptions import LMError

from .episode import EpisodeStep, Fault


def replies_of(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the replies in entries of a `dspy.LM` history: text, reasoning and why each ended."""
    replies = []
    for entry in history:
        output = (entry.get("outputs") or [None])[0]
        said = output if isinstance(output, dict) else {"text": output}
        told = {"reasoning": said.get("reasoning_content"), "finish": finish_reason(entry.get("response"))}
        text = None if said.get("text") is None else str(said["text"])
        replies.append({"text": text, **{name: str(one) for name, one in told.items() if one}})
    return replies


NATIVE = "native_finish_reason"  # LiteLLM's name for the server's own word, where LiteLLM replaces it
_TOOLS = {"tool_call", "tool_calls", "function_call"}  # DSPy's words for an end by a tool
_WHOLE = {"", "none", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed", "tool_use"}
_CUT = re.compile(r"(model_)?length|max_(\w+_)?tokens|.*context_window\w*")  # Mistral, Anthropic, Gemini, Databricks


def end_of(word: Any) -> str:
    """Return the end that a server's word means: an end by a tool, else ``stop``, ``length`` or, of a reply that is not
    whole for any other reason, ``content_filter``.
    """
    said = "" if word is None else str(word).strip().casefold()
    if said in _TOOLS:
        return said
    return "stop" if said in _WHOLE else "length" if _CUT.fullmatch(said) else "content_filter"


def finish_reason(response: Any) -> str | None:
    """Return why a reply ended, as its server says."""
    if hasattr(response, "finish_reason"):
        first = ((response.provider_data or {}).get("choices") or [{}])[0]
        native = first.get(NATIVE) if response.finish_reason == "content_filter" else None
        return str(native or response.finish_reason)
    choices = getattr(response, "choices", None)
    native = choices and (getattr(choices[0], "provider_specific_fields", None) or {}).get(NATIVE)
    return str(native or choices[0].finish_reason) if choices else None


def fault_of(error: LMError) -> Fault:
    """Return the fault to store for a request that got no reply."""
    kind = next(one for one in type(error).__mro__ if one.__module__ == exceptions.__name__)  # DSPy's own errors
    return Fault(error=kind.__name__, message=error.message, status=error.status)


def stored_lm(lm: dspy.BaseLM, step: EpisodeStep) -> dspy.LM:
    """Return an LM of the same name and options that returns the replies of a step, or fails as the step did."""
    return dspy.LM(lm.model, engine=_StoredEngine(step), cache=False, num_retries=0, **lm.kwargs)


class _StoredEngine:
    """An engine, as DSPy 3.4 has them, that gives the replies of one step."""

    def __init__(self, step: EpisodeStep):
        self.fault = step.fault or Fault(error="LMConfigurationError", message="no further reply is stored")
        self.replies = [one for one in step.outcome if isinstance(one, dict)] if isinstance(step.outcome, list) else []

    def complete(self, request: Request) -> Response:
        """Return the next reply.

        Raises:
            LMError: as in the stored run.
        """
        if not self.replies:
            kind = getattr(exceptions, self.fault.error, LMError)
            is_error = isinstance(kind, type) and issubclass(kind, LMError)
            raise (kind if is_error else LMError)(self.fault.message, status=self.fault.status)
        reply = self.replies.pop(0)
        parts = [TextPart(str(reply.get("text") or ""))]
        thoughts = [ThinkingPart(str(reply["reasoning"]))] if reply.get("reasoning") else []
        said, end = reply.get("finish"), end_of(reply.get("finish"))
        finish: Any = end if end in get_args(FinishReason) else "stop"
        told = {"choices": [{NATIVE: said}]}
        message = Message.assistant([*thoughts, *parts])
        return Response(None, request.model, message, finish_reason=finish, usage=Usage(), provider_data=told)

    def close(self) -> None:
        """Do nothing: nothing is held open."""
