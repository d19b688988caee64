"""What an LM is given and returns: no input may end a section of the prompt, or begin one in a reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import dspy

from ..common.secrets import without_secrets
from ..common.text import changed_texts, neutralise, without_surrogates

_BRACES = str.maketrans("{}`", "()'")
_WITH_MARKERS = {"trajectory"}  # written by DSPy's ReAct, with markers of its own; `Acting` guards the texts in it


def guarded(inputs: dict[str, Any], signature: type[dspy.Signature], adapter: dspy.Adapter) -> dict[str, Any]:
    """Return the inputs with every text neutralised: passages, what was read in them, and earlier replies alike.

    ``ChatAdapter`` separates fields by ``[[ ## name ## ]]``, which `neutralise` takes out. ``XMLAdapter`` puts inputs
    between tags: tags with the name of a field are broken. ``JSONAdapter`` takes the first object in a reply: in
    inputs, braces become parentheses, and the name of a field is no key.
    """
    texts = {name: value for name, value in inputs.items() if name not in _WITH_MARKERS}
    safe: dict[str, Any] = changed_texts(texts, neutralise)
    break_up = _breaker(adapter, signature)
    if break_up is not None:
        safe = changed_texts(safe, break_up)
    return inputs | safe


def complete_demonstrations(predict: dspy.Predict) -> list[Any]:
    """Return the predictor's demonstrations that hold each of its fields.

    DSPy's optimizers give every predictor rows of the task as demonstrations. What a row does not say of a predictor's
    fields stands in the prompt as 'Not supplied for this particular example.', which teaches nonsense.
    """
    return [demo for demo in predict.demos if all(name in demo for name in predict.signature.fields)]


def shown_demonstrations(predict: dspy.Predict) -> list[dict[str, Any]]:
    """Return the predictor's complete demonstrations as they are sent: null is a word in them.

    DSPy takes None for a field that was not supplied.
    """
    return [
        {name: "null" if value is None else value for name, value in demo.items()}
        for demo in complete_demonstrations(predict)
    ]


def make_writable(reply: dspy.Prediction) -> None:
    """Take halves of surrogate pairs, which no file holds, and secrets, which none should, out of a reply, in place."""
    for name, value in without_secrets(changed_texts(dict(reply), without_surrogates)).items():
        reply[name] = value


def _breaker(adapter: dspy.Adapter, signature: type[dspy.Signature]) -> Callable[[str], str] | None:
    """Return the function that breaks up what the adapter would read as a field; None if there is nothing more."""
    names = "|".join(signature.fields)
    if isinstance(adapter, dspy.XMLAdapter):
        tags = re.compile(rf"<(?=\s*/?\s*(?:{names})\b)", re.IGNORECASE)
        return lambda text: tags.sub("< ", text)
    if isinstance(adapter, dspy.JSONAdapter):
        keys = re.compile(rf"""["']\s*({names})\s*["']\s*:""", re.IGNORECASE)
        return lambda text: keys.sub(r"\1 –", text.translate(_BRACES))
    return None
