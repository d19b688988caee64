"""What an LM is given and gives back, so that no input ends a section of the prompt or begins one in a reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import dspy

from ..common.text import changed_texts, neutralise, without_surrogates

_BRACES = str.maketrans("{}`", "()'")
_WITH_MARKERS = {"trajectory"}  # DSPy's ReAct writes it, with markers of its own; `Acting` guards what stands between


def guarded(inputs: dict[str, Any], signature: type[dspy.Signature], adapter: dspy.Adapter) -> dict[str, Any]:
    """The inputs with every text neutralised: passages, what was read in them, and earlier replies alike.

    ``ChatAdapter`` parts fields by ``[[ ## name ## ]]``, which `neutralise` takes out. ``XMLAdapter`` writes inputs as
    they are between tags: tags with the name of a field are parted. ``JSONAdapter`` takes the first object that it
    sees in a reply: in inputs, braces become parentheses, and a field's
    name is no key.
    """
    safe = _for(adapter, signature)
    return {
        name: value if name in _WITH_MARKERS else changed_texts(value, lambda text: safe(neutralise(text)))
        for name, value in inputs.items()
    }


def writable(prediction: dspy.Prediction) -> None:
    """Take out of a reply, in place, what could not be written to a file."""
    for name, value in prediction.items():
        prediction[name] = changed_texts(value, without_surrogates)


def _for(adapter: dspy.Adapter, signature: type[dspy.Signature]) -> Callable[[str], str]:
    names = "|".join(signature.fields)
    if isinstance(adapter, dspy.XMLAdapter):
        tags = re.compile(rf"<(?=\s*/?\s*(?:{names})\b)", re.IGNORECASE)
        return lambda text: tags.sub("< ", text)
    if isinstance(adapter, dspy.JSONAdapter):
        keys = re.compile(rf"""["']\s*({names})\s*["']\s*:""", re.IGNORECASE)
        return lambda text: keys.sub(r"\1 –", text.translate(_BRACES))
    return lambda text: text
