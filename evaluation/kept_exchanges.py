"""What was asked for a question, as a line of a run's folder: packed, since prompts repeat one another."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, TypeAdapter, field_validator

from ..common.json_files import LARGEST, parse_json
from ..common.secrets import without_secrets
from ..common.text import without_surrogates
from ..lm.exchanges import Exchange
from ..lm.policy import Limits

_MANY = TypeAdapter(list[Exchange])


class KeptExchanges(BaseModel):
    """One line of ``exchanges.jsonl``.

    Attributes:
        id: the question's.
        packed: the exchanges as JSON, compressed by zlib, in base64.
        limits: under which it was asked; None if that is not known.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    packed: str
    limits: Limits | None = None

    @classmethod
    def of(cls, id: str, exchanges: Sequence[Exchange], limits: Limits | None = None) -> KeptExchanges:
        """Return the line of a question, without secrets."""
        ordered = sorted(exchanges, key=lambda one: one.place)
        plain = without_secrets([one.model_dump(mode="json", exclude_defaults=True) for one in ordered])
        text = without_surrogates(json.dumps(plain, ensure_ascii=False))
        return cls(id=id, packed=base64.b64encode(zlib.compress(text.encode())).decode(), limits=limits)

    @field_validator("packed")
    @classmethod
    def _check(cls, packed: str) -> str:
        _unpacked(packed)
        return packed

    def exchanges(self) -> list[Exchange]:
        """Return the exchanges in the order of the program."""
        return _MANY.validate_python(parse_json(_unpacked(self.packed)))


def _unpacked(packed: str) -> bytes:
    """Return the bytes that were packed.

    Raises:
        ValueError: if they are damaged, or too many.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(base64.b64decode(packed, validate=True), LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacking.eof:
        raise ValueError(f"it unpacks to more than {LARGEST:,} bytes, or was cut")
    return content
