"""The secrets that this process knows, such as keys and passwords, and values without them.

Whatever a server is given it may repeat: in an error, in a reply. So what is kept or shown goes through
`without_secrets` on its way.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache, partial
from html import escape
from typing import TypeVar
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from .text import changed_texts, without_surrogates

T = TypeVar("T")

_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")
_SHORTEST = 8  # characters: what is shorter ("EMPTY") is a placeholder, and would be found in any text
_LONGEST_WORD = 15  # characters: what has letters only and is no longer may be a word of an answer ("disabled")

_remembered: set[str] = set()


def remember_secrets(*secrets: str) -> None:
    """Note texts that are secret from now on; of a header (``Bearer KEY``), also what follows its first word."""
    for secret in secrets:
        _remembered.update({secret, secret.partition(" ")[2]})


def remember_address(address: str | None) -> None:
    """Note the password in an address, in every form that a server sees, and the values after its ``?``."""
    try:
        parts = urlsplit(address or "")
    except ValueError:  # no address; whoever uses it says so
        return
    remember_secrets(*(value for _, value in parse_qsl(parts.query)))
    if parts.password:
        user, password = unquote(parts.username or ""), unquote(parts.password)
        remember_secrets(parts.password, password, b64encode(f"{user}:{password}".encode()).decode())


def without_secrets(value: T) -> T:
    """Return the value with "…" in place of each secret, in every text of it (see `changed_texts`).

    Secrets are those remembered, and the environment's keys, tokens and passwords. Half a surrogate pair becomes ?.
    """
    changed: T = changed_texts(value, partial(_without, _secrets()))
    return changed


def holds_secret(content: bytes) -> bool:
    """Return whether a secret stands in the bytes."""
    return any(secret.encode(errors="replace") in content for secret in _secrets())


def _secrets() -> list[str]:
    """Return the secrets, each as servers write it, the longest first: one may be a part of another."""
    of_environment = {os.environ.get(name, "") for name in os.environ if _is_secret(name)}
    telling = filter(_is_telling, _remembered | of_environment)
    return sorted({form for secret in telling for form in _forms(secret)}, key=len, reverse=True)


@lru_cache(maxsize=4096)
def _forms(secret: str) -> frozenset[str]:
    """Return a secret and what escaping makes of it, also twice: an error often holds the JSON of another."""
    once = {secret, *(escaped(secret) for escaped in _ESCAPES)}
    return frozenset(once | {escaped(form) for form in once for escaped in _ESCAPES})


_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", r"\/"),
    lambda text: repr(text)[1:-1],
    quote,
    quote_plus,
    lambda text: re.sub("%..", lambda found: found[0].lower(), quote_plus(text)),
    escape,
    lambda text: escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),  # as MarkupSafe writes them
)


@lru_cache(maxsize=4096)
def _is_secret(variable: str) -> bool:
    return bool(_VARIABLE.search(variable.upper()))


def _is_telling(secret: str) -> bool:
    return len(secret) > _LONGEST_WORD if secret.isalpha() else len(secret) >= _SHORTEST


def _without(secrets: list[str], text: str) -> str:
    text = without_surrogates(text)
    for secret in secrets:
        text = text.replace(secret, "…")
    return text
