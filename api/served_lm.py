"""The LM behind an address."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import dspy
from dspy.utils.exceptions import LMConfigurationError

from .common.errors import QuestreeError
from .lm.call import TIMEOUT
from .lm.options import takes_temperature
from .lm.retries import RETRIES
from .retrieval.serving.access import is_loopback
from .settings import RunSettings


def served_lm(settings: RunSettings) -> dspy.LM:
    """Return the LM behind an address, with what the settings say of its requests."""
    server: dict[str, Any] = {}
    if settings.api_base is not None:
        _keep_from_proxies(settings.api_base)
        # Local servers ask for no key, but the client does.
        server = {"api_base": settings.api_base, "api_key": os.environ.get("OPENAI_API_KEY", "none")}
    given, takes_one = None if settings.temperature == "none" else settings.temperature, takes_temperature(settings.lm)
    try:
        lm = dspy.LM(
            settings.lm,
            temperature=given if given or takes_one else None,
            timeout=settings.timeout or TIMEOUT,
            max_tokens=settings.reply_tokens,
            num_retries=RETRIES if settings.retries is None else settings.retries,
            **server,
        )
    except LMConfigurationError as error:
        raise QuestreeError(f"--lm {settings.lm} cannot be asked so: {error}") from None
    if given and given != 1 and not takes_one:
        raise QuestreeError(f"--lm {settings.lm} takes no temperature. Leave --temperature out, or give none.")
    return lm


def _keep_from_proxies(address: str) -> None:
    """Keep the requests to a server on this machine from a proxy of the environment, which would read the key."""
    with suppress(ValueError):  # no address; whoever asks there says so
        if is_loopback(host := urlsplit(address).hostname or ""):
            for name in ("NO_PROXY", "no_proxy"):
                direct = os.environ.get(name, "").split(",")
                os.environ[name] = ",".join(filter(None, {**dict.fromkeys(direct), host: None}))
