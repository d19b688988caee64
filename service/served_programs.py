"""The programs that are served, and what is said of them: their LM, their index and documents, what was compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property

import dspy

from ..common.registry import described
from ..lm.models import is_simulated, not_known
from ..optimize.result import compiled_parts
from ..pages.question_page import Offered
from ..programs import Program
from ..retrieval import Retriever
from ..retrieval.documents.indexed import IndexedDocuments


class ServedPrograms:
    """Programs by the names that clients use; the first is the default.

    Args:
        lm: that they ask; None for DSPy's own setting.
        examples: questions that can be answered, for the Ask page.
    """

    def __init__(self, programs: Mapping[str, dspy.Module], lm: dspy.BaseLM | None, examples: Sequence[str]):
        self.programs, self.examples = dict(programs), examples
        self._lm: dspy.BaseLM = lm or dspy.settings.lm
        self.documents = IndexedDocuments(one.retriever for one in programs.values() if isinstance(one, Program))
        self._parts = cache(compiled_parts)  # each question tells them

    @property
    def names(self) -> list[str]:
        """Return the names of the programs."""
        return list(self.programs)

    @property
    def simulated(self) -> bool:
        """Return whether the LM is a simulated one."""
        return is_simulated(self._lm)

    @cached_property
    def offered(self) -> Offered:
        """Return what the Ask page says of the service."""
        lines = {name: described(type(one).__doc__)[0] for name, one in self.programs.items()}
        lines |= {name: f"{lines[name]} Compiled: {parts}." for name in lines if (parts := self._compiled(name))}
        indexes = {facts["Index"] for name in self.names if (facts := self.about(name)).get("Index")}
        searched = f"Searches {' and '.join(sorted(indexes))} and asks" if indexes else "Asks"
        about = f"{searched} {self._lm.model}."
        return Offered(lines, about, self.examples, self.simulated, not_known(self._lm, ""))

    def _compiled(self, name: str) -> str:
        """Return what a program has that its code has not; of one whose class takes more than settings, nothing."""
        program = self.programs[name]
        with suppress(TypeError):
            return self._parts(program) if isinstance(program, Program) else ""
        return ""

    def about(self, name: str) -> dict[str, str]:
        """Return what a program is made of: LM, index, program and settings."""
        program = self.programs[name]
        told = {"LM": str(self._lm.model)}
        if isinstance(program, Program):
            retriever = program.retriever
            told |= {"Index": _named(retriever)} if retriever else {}
            told["Program"] = f"{program.name}, compiled: {parts}" if (parts := self._compiled(name)) else program.name
            changed = program.settings.model_dump(exclude_defaults=True)
            told["Settings"] = (
                ", ".join(f"{what}={value}" for what, value in changed.items()) or "as they are by default"
            )
        return told


def _named(retriever: Retriever) -> str:
    """Return which index it is: its folder, or else its fingerprint, and its kind or address."""
    return (
        f"{retriever.folder} ({retriever.name})" if retriever.folder else f"{retriever.name} ({retriever.fingerprint})"
    )
