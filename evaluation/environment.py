"""The surroundings of a run: no part of its identity, but they must be the same for a replay."""

from __future__ import annotations

import os
import platform
from contextlib import suppress

from pydantic import BaseModel, ConfigDict, Field

from ..common.errors import QuestreeError
from ..lm.window import known_window
from ..programs import REGISTRY, Program, build
from ..programs.composed import Composed
from ..programs.modules.reader import LMReader
from ..programs.states import CompiledState, compiled_state, members_of
from .identity import lms_of, state_digest, versions


class Environment(BaseModel):
    """What is stored beside the identity of a run.

    Attributes:
        program: the name to build it by, ``package:name`` if it is from another package; None if it has none.
        compiled: whether the program's prompts differ from the code's.
        state: of a compiled program, its prompts and demonstrations; None if a demonstration is not JSON.
        retries: of a failed request, by default.
        compares: whether the retriever compares texts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    versions: dict[str, str]
    machine: dict[str, str]
    program: str | None
    compiled: bool
    state: CompiledState | None
    retries: int = Field(ge=0)
    window: int | None = Field(ge=1)
    compares: bool


def environment_of(program: Program) -> Environment:
    """Return the present surroundings of a program and its LM; of several LMs, the first counts."""
    lm, name = lms_of(program)[0], REGISTRY.name_of(type(members_of(program)[0]))
    compiled, state = name is not None and _is_compiled(program, name), None
    if compiled:
        with suppress(QuestreeError):  # the program can be asked all the same; only its runs cannot be packed
            state = compiled_state(program)
    return Environment(
        versions=versions(),
        machine={"system": platform.platform(), "processor": platform.machine(), "cores": str(os.cpu_count())},
        program=name,
        compiled=compiled,
        state=state,
        retries=0 if lm is None else lm.num_retries,
        window=None if lm is None else known_window(lm),
        compares=getattr(program.retriever, "similarity", None) is not None,
    )


def _is_compiled(program: Program, name: str) -> bool:
    if isinstance(program, Composed):
        return True
    parts = {part: getattr(program, part, None) for part in ("retriever", "reader", "duplicates")}
    if isinstance(parts["reader"], LMReader):  # it has a prompt, which may have been compiled
        parts["reader"] = LMReader()
    return state_digest(build(name, program.settings.model_dump(), **parts)) != state_digest(program)
