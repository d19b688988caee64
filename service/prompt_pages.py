"""The routes of the pages of prompts: what each program says to its LM, and what compilation has changed in it."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from ..pages.prompts_page import prompts_page
from ..programs import Program
from ..programs.composed import Composed
from ..programs.prompts import rendered_prompts
from ..programs.registry import build_kind
from ..retrieval.serving.server_limits import Refused
from .questions import Service


def prompt_routes(service: Service) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @routes.get("/prompts")
    def first() -> str:
        return page(service.names[0])

    @routes.get("/prompts/{name:path}")
    def page(name: str) -> str:
        program = service.programs.get(name)
        if not isinstance(program, Program):
            raise Refused(404, "no program of this name is served", "not_found")
        prompts, before = rendered_prompts(program), None
        if not isinstance(program, Composed):  # its members were compiled apart from one another
            before = rendered_prompts(build_kind(type(program), program.settings.model_dump()))
        if before is None or [one.text for one in before] == [one.text for one in prompts]:
            return prompts_page(f"The prompts of {name}", prompts, programs=service.names)
        title = f"What compilation changed in {name}"
        return prompts_page(title, prompts, before, programs=service.names)

    return routes
