"""Guard prompts and replies: no input may end a section of the prompt, or begin one in a reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import dspy
from dspy.adapters.baml_adapter import BAMLAdapter

from ..common.errors import QuestreeError
from ..common.secrets import without_secrets
from ..common.text import changed_texts, neutralise

_AND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)")  # a text that was escaped before is not escaped twice
_LESS = re.compile("<")
_KEY = re.compile(r"""["']\s*(\w[\w -]{0,63}?)\s*["']\s*:""")
_BRACES = str.maketrans("{}`", "()'")

ADAPTERS: dict[str, type[dspy.Adapter]] = {
    "chat": dspy.ChatAdapter,
    "json": dspy.JSONAdapter,
    "xml": dspy.XMLAdapter,
    "baml": BAMLAdapter,
}
"""DSPy's adapters that can be used here, by their short names."""


def adapter_named(name: str) -> dspy.Adapter | None:
    """Return a new adapter, to be configured; None for "chat", which is used where none is configured.

    None of them repeats a failed request in another adapter's form; see `adapter_in_use`.
    """
    if name == "xml":
        return dspy.XMLAdapter(use_json_adapter_fallback=False)
    return None if name == "chat" else ADAPTERS[name]()


def adapter_name() -> str:
    """Return the short name of the adapter in use, or the class of one that is not DSPy's.

    Raises:
        QuestreeError: as `adapter_in_use`.
    """
    kind = type(adapter_in_use())
    return next((name for name, one in ADAPTERS.items() if one is kind), kind.__name__)


def adapter_in_use() -> dspy.Adapter:
    """Return the adapter that is configured; DSPy's own without its fallback, if none is.

    The fallback would double every failed call, and take the same reply from the cache.

    Raises:
        QuestreeError: it is DSPy's `TwoStepAdapter`.
    """
    if isinstance(dspy.settings.adapter, dspy.TwoStepAdapter):
        raise QuestreeError(
            "TwoStepAdapter cannot be used here: its second LM reads each reply out of sight, so that no budget, "
            "deadline, record or capsule would hold these calls. Use dspy.ChatAdapter, JSONAdapter or XMLAdapter."
        )
    return dspy.settings.adapter or dspy.ChatAdapter(use_json_adapter_fallback=False)


def guarded(inputs: dict[str, Any], signature: type[dspy.Signature], adapter: dspy.Adapter) -> dict[str, Any]:
    """Return the inputs with every text neutralised: passages, what was read in them, and earlier replies alike.

    ``ChatAdapter`` separates fields by ``[[ ## name ## ]]``, which `neutralise` takes out. ``XMLAdapter`` puts inputs
    between tags: tags with the name of a field are broken, and the rest is escaped, so that a reply which repeats an
    input can be read. ``JSONAdapter`` takes the first object in a reply: in inputs, braces become parentheses, and no
    word is a key. `ChatAdapter` of ours takes an object that is the whole reply: in inputs, no key is a field's name.
    """
    safe: dict[str, Any] = changed_texts(inputs, _guard(adapter, {*signature.fields, *inputs}))
    return safe


def complete_demonstrations(predict: dspy.Predict) -> list[Any]:
    """Return the predictor's demonstrations that hold each of its fields.

    DSPy's optimizers give every predictor rows of the task as demonstrations. What a row does not say of a predictor's
    fields stands in the prompt as 'Not supplied for this particular example.', which teaches nonsense.
    """
    return [demo for demo in predict.demos if all(name in demo for name in predict.signature.fields)]


def shown_demonstrations(predict: dspy.Predict, adapter: dspy.Adapter) -> list[dict[str, Any]]:
    """Return the predictor's complete demonstrations as they are sent: guarded as inputs are, with "null" for None.

    They come from rows of a task, from earlier replies, or from a file. DSPy would show None as a field that was not
    supplied.
    """
    guard, outputs = _guard(adapter, predict.signature.fields), predict.signature.output_fields
    is_chat = not isinstance(adapter, (dspy.JSONAdapter, dspy.XMLAdapter))

    def shown(name: str, value: Any) -> Any:
        if value is None:
            return "null"
        escaped = name in outputs and (is_chat or outputs[name].annotation is str or not isinstance(value, str))
        return changed_texts(value, neutralise if escaped else guard)  # the adapters escape most of a reply themselves

    return [{name: shown(name, value) for name, value in demo.items()} for demo in complete_demonstrations(predict)]


def make_writable(reply: dspy.Prediction) -> None:
    """Remove what no file should hold from a reply, in place, as `without_secrets` does."""
    for name, value in without_secrets(dict(reply)).items():
        reply[name] = value


def _guard(adapter: dspy.Adapter, names: Iterable[str]) -> Callable[[str], str]:
    """Return the function that removes from a text all that the adapter would read as a field, these or others."""
    written = "|".join(names).replace("_", "[_. -]?")  # spellings that a reply may have
    if isinstance(adapter, dspy.XMLAdapter):
        tags = re.compile(rf"<(?=\s*/?\s*(?:{written})\b)", re.IGNORECASE)
        return lambda text: _LESS.sub("&lt;", _AND.sub("&amp;", tags.sub("< ", neutralise(text))))
    if isinstance(adapter, dspy.JSONAdapter):
        return lambda text: _KEY.sub(r"\1 –", neutralise(text).translate(_BRACES))
    keys = re.compile(rf"""["']\s*({written})\s*["']\s*(?=:)""", re.IGNORECASE)
    return lambda text: keys.sub(r"\1 ", neutralise(text))
