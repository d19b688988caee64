"""Find the reply in an LM's text, without thoughts and without the tokens with which a chat template divides turns.

If a server does not separate the two, thoughts stand before the reply, between tokens of the model's family, and may
hold drafts of fields that are rejected later. Or it sends a whole reply as thoughts. No input can write such a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_BEGIN = re.compile(  # <think>, Mistral, Cohere, Kimi, gpt-oss, Gemma
    r"<(?:\w{1,20}:)?think(?:ing)?>|\[THINK\]|<\|START_THINKING\|>|◁think▷|<\|channel\|>analysis|<\|channel>thought"
)
_END = re.compile(  # a chat template may have begun the thoughts in the prompt
    r"</(?:\w{1,20}:)?think(?:ing)?>|\[/THINK\]|<\|END_THINKING\|>|◁/think▷|<channel\|>"
    r"|<\|end\|>\s{0,4}<\|start\|>assistant"
    r"|<\|channel\|>(?!analysis)[^<]{0,80}(?:<\|constrain\|>[^<]{0,20})?<\|message\|>"
)
_UNMARKED = re.compile(r"\A\s*analysis(.*)assistantfinal", re.DOTALL)  # gpt-oss if a server leaves out its tokens
_TURN_END = re.compile(  # text after it is no reply: the LM went on writing the next turn
    r"<\|(?:im_end|eot_id|eom_id|end|return|call|endoftext|end_of_text|eos|endofturn|END_RESPONSE|END_OF_TURN_TOKEN)\|>"
    r"|<[|｜]end▁of▁sentence[|｜]>|<turn\|>|<end_of_turn>|<eos>|\[EOS\]|</s>(?=\s*(?:[<\[]|\Z))"
)
_TOKEN = re.compile(r"(?:<[|｜][^\s<>|｜]{1,64}[|｜]>|<s>(?=\[))(?:assistant\b)?")
_AROUND = " \t\r\n*_`#"


def without_thoughts(completion: str, fields: Iterable[str]) -> str:
    """Return the reply that an LM's text holds.

    If nothing follows the thoughts, they are the reply if they begin or end as one and name every field once; otherwise
    they may hold a rejected draft.

    Raises:
        ValueError: if there are thoughts, and no reply.
    """
    *thoughts, reply = _END.split(_UNMARKED.sub(r"\1</think>", completion, count=1))
    if not _BEGIN.search(reply) and (_plain(reply) or not thoughts):
        return _plain(reply)
    whole = next(filter(None, (_plain(_BEGIN.sub("", one)) for one in (reply, *reversed(thoughts)))), "")
    is_framed = whole.lstrip(_AROUND).startswith(("[[", "{", "<")) or whole.rstrip(_AROUND).endswith(("]]", "}", ">"))
    if is_framed and all(_times_named(name, whole) == 1 for name in fields):
        return whole
    raise ValueError(
        "all of the LM's text is thoughts (`reasoning_content`, <think>) and holds no whole reply, or several; let the "
        "LM think less, or start its server with the reasoning parser of the model's family, or with none"
    )


def _times_named(field: str, text: str) -> int:
    """Count how often a text names a field as any of the adapters writes it."""
    name = re.escape(field).replace("_", "[_ ]")
    return len(re.findall(rf"""(?:##\s{{0,4}}|[<"']){name}(?:\s{{0,4}}##|["']\s{{0,4}}:|>)""", text, re.IGNORECASE))


def _plain(text: str) -> str:
    """Return the first turn of a text that is not empty, without the tokens of a chat template."""
    return next(filter(None, (_TOKEN.sub("", turn).strip() for turn in _TURN_END.split(text))), "")
