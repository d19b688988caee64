"""How the API's description tells of requests that are refused."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel


class Error(BaseModel):
    """Why a request is refused, in the form of OpenAI's.

    Attributes:
        message: for a person.
        type: ``server_error`` from status 500 on, else ``invalid_request_error``.
        param: always null.
        code: for a program.
    """

    message: str
    type: str
    param: None
    code: str


class ErrorReply(BaseModel):
    """The reply to a request that is refused."""

    error: Error


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the responses of a route: these statuses, those of every route, and any other in the same form."""
    every = sorted({*statuses, 401, 403, 503})
    told: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorReply, "description": HTTPStatus(status).phrase} for status in every
    }
    # FastAPI describes its own 422 where there is no default; here a request that does not fit gets a 400
    return told | {"default": {"model": ErrorReply, "description": "Any other refusal"}}
