"""What surrounded a run and is no part of its identity, but must be the same for it to be replayed."""

from __future__ import annotations

import os
import platform
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ..common.errors import QuestreeError
from ..lm.guard import adapter_in_use
from ..lm.window import known_window, reply_tokens
from ..programs import REGISTRY, Program, build
from ..programs.composed import Composed
from ..programs.modules.reader import LMReader
from ..programs.states import CompiledState, compiled_state, members_of
from .identity import duplicates_facts, lms_of, state_digest, versions


class Environment(BaseModel):
    """What is written beside a run, in ``environment.json``.

    Attributes:
        versions: of Python and the packages that a result depends on.
        machine: system, processor and number of cores.
        program: the name that it is built by, ``package:name`` if it is of another package; None if there is none, or
            an older version wrote this.
        prompts: whether the program's prompts are those of the code (``coded``), or compiled ones; ``own``: there is no
            name that it is built by.
        state: of a compiled program, its prompts and demonstrations; None if it is not compiled, or a demonstration is
            not JSON.
        adapter: the class of DSPy's that wrote the prompts.
        options: options of the LM that a request may depend on.
        retries: of a failed request, by default.
        window: the LM's, by DSPy's list of models.
        compares: whether the retriever compares texts.
        duplicates: whether queries are compared otherwise than by their words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    versions: dict[str, str]
    machine: dict[str, str]
    program: str | None = None
    prompts: Literal["coded", "compiled", "own"]
    state: CompiledState | None = None
    adapter: str
    options: dict[str, JsonValue]
    retries: int = Field(ge=0)
    window: int | None = Field(ge=1)
    compares: bool
    duplicates: bool


_OPTIONS = ("temperature", "max_tokens", "top_p", "seed", "reasoning_effort", "rollout_id", "n")


def environment_of(program: Program) -> Environment:
    """Return what surrounds a program and its LM now; of several LMs, the first."""
    lm, prompts = lms_of(program)[0], _prompts_of(program)
    kwargs = {} if lm is None else {**lm.kwargs, "max_tokens": reply_tokens(lm.kwargs)}
    options = {name: kwargs[name] for name in _OPTIONS if kwargs.get(name) is not None}
    return Environment(
        versions=versions(),
        machine={"system": platform.platform(), "processor": platform.machine(), "cores": str(os.cpu_count())},
        program=_name_of(program),
        prompts=prompts,
        state=_state_of(program) if prompts == "compiled" else None,
        adapter=type(adapter_in_use()).__name__,
        options=options,
        retries=0 if lm is None else lm.num_retries,
        window=None if lm is None else known_window(lm),
        compares=getattr(program.retriever, "similarity", None) is not None,
        duplicates=bool(duplicates_facts(program)),
    )


def _name_of(program: Program) -> str | None:
    return REGISTRY.name_of(type(members_of(program)[0]))


def _prompts_of(program: Program) -> Any:
    first, name = members_of(program)[0], _name_of(program)
    if name is None:
        return "own"
    parts = {name: getattr(first, name, None) for name in ("retriever", "reader", "duplicates")}
    if isinstance(parts["reader"], LMReader):  # it has a prompt, which may have been compiled
        parts["reader"] = LMReader()
    coded = build(name, program.settings.model_dump(), **parts)
    same = not isinstance(program, Composed) and state_digest(coded) == state_digest(program)
    return "coded" if same else "compiled"


def _state_of(program: Program) -> CompiledState | None:
    try:
        return compiled_state(program)
    except QuestreeError:  # the program can be asked all the same; only its runs cannot be packed
        return None
