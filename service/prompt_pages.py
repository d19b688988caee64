"""The pages of the prompts of the programs that are served."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from ..pages.prompts_page import prompts_page
from ..programs import Program, build_kind
from ..programs.composed import Composed
from ..programs.prompts import rendered_prompts
from ..retrieval.serving.server_limits import Refused
from .ask_api import Served

routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@routes.get("/prompts")
def first_prompts(service: Served) -> str:
    """Return the page of the first program's prompts."""
    return prompts_of(service.names[0], service)


@routes.get("/prompts/{name:path}")
def prompts_of(name: str, service: Served) -> str:
    """Return the page of a program's prompts."""
    program = service.programs.get(name)
    if not isinstance(program, Program):
        raise Refused(404, "no program of this name is served", "not_found")
    shown, before = rendered_prompts(program), None
    if not isinstance(program, Composed):  # its members were compiled apart from one another
        before = rendered_prompts(build_kind(type(program), program.settings.model_dump()))
    if before is None or [one.text for one in before] == [one.text for one in shown]:
        return prompts_page(f"The prompts of {name}", shown, programs=service.names)
    return prompts_page(f"What compilation changed in {name}", shown, before, programs=service.names)
