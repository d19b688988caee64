"""Who may ask a server of ours: this machine, or whoever brings its token."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

from ...common.errors import QuestreeError

TOKEN_VARIABLE = "QUESTREE_TOKEN"
_SHORTEST_TOKEN = 16


def check_binding(host: str, token: str | None) -> None:
    """Refuse to listen to other machines without a token."""
    if token is None and not is_loopback(host):
        raise QuestreeError(
            f"{host} can be reached from other machines, so this server needs a token: put a long random one into a "
            f"file (--token-file) or into {TOKEN_VARIABLE}. Or stay on this machine: --host 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches the address; a name counts only if it is ``localhost``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(file: Path | None = None) -> str | None:
    """Return the token in a file, else in the variable ``QUESTREE_TOKEN``, or None if there is neither."""
    try:
        given = os.environ.get(TOKEN_VARIABLE) if file is None else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        raise QuestreeError(f"The token cannot be read from {file}: {problem}") from None
    if given is None or (file is None and not given):
        return None
    token, where = given.strip(), file or TOKEN_VARIABLE
    if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise QuestreeError(
            f"The token in {where} must be {_SHORTEST_TOKEN} printable ASCII characters or more. "
            'Make one: python -c "import secrets; print(secrets.token_urlsafe())"'
        )
    return token
