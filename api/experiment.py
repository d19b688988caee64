"""What commands on programs share: programs by name, the questions they are scored on, and how these are asked."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.errors import QuestreeError
from .parts import Parts
from .settings import read_value

if TYPE_CHECKING:
    import dspy

    from .evaluation.record_scores import ScoreFunction
    from .programs import Program

logger = logging.getLogger(__name__)


def _with_settings(name: str) -> tuple[str, dict[str, Any]]:
    """Return a program's name and the settings behind it: ``searchain:preset=paper,k=5``."""
    found = re.fullmatch(r"(.+?):(\w+=.+)", name)
    if found is None:
        return name, {}
    pairs = (one.partition("=") for one in re.split(r",(?=\w+=)", found[2]))
    return found[1], {setting: read_value(value) for setting, _, value in pairs}


SHARED = {"k": 5, **dict.fromkeys(("max_turns", "max_searches", "max_thoughts", "max_steps", "max_follow_ups"), 8)}
"""What baselines have in common in a comparison, where nothing else is said of one."""


def _shared(name: str) -> dict[str, Any]:
    """Return the settings that a program shares with the others of a comparison, if it is a baseline of ours."""
    from .programs import PROGRAMS

    kind = PROGRAMS.get(name)
    ours = kind is not None and kind.__module__.startswith("questree.programs.baselines.")
    return {key: value for key, value in SHARED.items() if kind and ours and key in kind.Settings.model_fields}


class Experiment(Parts):
    """The parts that settings name, and the programs that are made of them."""

    def program(self, name: str, **program_settings: Any) -> Program:
        """Return a registered program, uncompiled, or a compiled one.

        Args:
            name: as in `questree.programs.PROGRAMS`, of another package, or ``package:name``, with settings behind it
                if need be (``searchain:preset=paper,k=5``); or a folder, ``runs:/…``, ``models:/…`` or ``hf://…`` of a
                compiled one.
            program_settings: of an uncompiled program; a compiled one has its own.
        """
        from .programs import REGISTRY, allow, build, takes_retriever

        name, own = _with_settings(name)
        program_settings = own | program_settings
        if REGISTRY.means(name):
            allow(name, program_settings)
            retriever = self.retriever if takes_retriever(name, program_settings) else None
            return build(name, program_settings, retriever=retriever, reader=self.reader, duplicates=self.duplicates)
        if "/" not in name and not Path(name).exists():
            REGISTRY.known(name)  # there is none: it says what there is
        if program_settings:
            raise QuestreeError(f"{name} is compiled, and has its settings; --set is for uncompiled programs.")
        if ":/" in name and not name.startswith("hf://"):  # an address in MLflow
            import mlflow

            if self.settings.tracking_uri == "none":
                raise QuestreeError(
                    f"{name} stands in an MLflow store, and --tracking-uri none names no store: name it, or the folder "
                    "of the program."
                )
            mlflow.set_tracking_uri(self.settings.tracking_uri)
        return self.compiled(name)

    def compiled(self, place: str, *, allow_changed_signatures: bool = False) -> Program:
        """Return a compiled program. No stand-in takes the place of the LM and the index that it was compiled with."""
        from .optimize import load
        from .optimize.artifact import in_words, read_artifact

        artifact = read_artifact(place)
        manifest, told = artifact.manifest, self.settings.model_fields_set
        if "lm" not in told and not manifest.lm.get("simulated"):
            raise QuestreeError(
                f"{place} was compiled with the LM {manifest.lm.get('name')!r}. Say which LM to ask: --lm or "
                "QUESTREE_LM; 'simulated' is for rehearsals."
            )
        if (adapter := manifest.lm.get("adapter", "chat")) != self.settings.adapter:
            told_of = "%s was compiled with the adapter %s and is asked with %s: scores may differ (--adapter)."
            logger.warning(told_of, place, adapter, self.settings.adapter)
        index = manifest.retriever
        if index and "retriever" not in told and self.retriever.fingerprint != index.get("fingerprint"):
            raise QuestreeError(
                f"{place} was compiled over the index {in_words(index)}. Name it: --retriever, "
                "QUESTREE_RETRIEVER or model_config."
            )
        return load(
            artifact,
            retriever=self.retriever if index or "retriever" in told else None,
            reader=self.reader,
            duplicates=self.duplicates,
            allow_changed_signatures=allow_changed_signatures or self.settings.allow_changed_signatures,
            allow_code=self.allowed_code,
        )

    def labelled(self, names: Iterable[str], out: Path, *, alike: bool = False) -> dict[str, Program]:
        """Return programs by the name to show: ``searchain``, ``searchain-compiled``.

        Args:
            out: the folder of the comparison or attack; a compiled program keeps the name that it has there.
            alike: whether baselines have `SHARED` settings, but for those that stand behind their names.
        """
        from .evaluation.comparison.labels import of_compiled, unused
        from .programs import REGISTRY

        programs: dict[str, Program] = {}
        for name in dict.fromkeys(names):
            plain, given = _with_settings(name)
            shared = _shared(plain) if alike else {}
            program = self.program(name, **{key: value for key, value in shared.items() if key not in given})
            own = program.name if REGISTRY.means(name) else name if _with_settings(name)[1] else None
            label = own or of_compiled(program, out, programs)
            programs[unused(label, programs)] = program
        return programs

    def varied(
        self, name: str, over: Sequence[str], values: Sequence[Any] | None, given: Mapping[str, Any]
    ) -> dict[str, Program]:
        """Return a program under several settings by their labels; what it has by default comes first, if it is there.

        Args:
            over: the settings to vary; of several, every combination.
            values: of the one setting, where its type does not list them.
        """
        from .programs import allow, variants

        allow(name, given)
        varied = variants(name, over, values, given)
        if name == "blendfilter" and self.retriever.name == "bm25":  # it heeds no order of words
            if "question_first" in over:
                raise QuestreeError("question_first has no effect with BM25: all rows would be equal.")
            varied = {label: one for label, one in varied.items() if "question_first" not in one}
        if twice := sorted(given.keys() & {setting for one in varied.values() for setting in one}):
            raise QuestreeError(f"{twice[0]} is varied here (--over {' '.join(over)}) and cannot be set as well.")
        return {label: self.program(name, **given, **one) for label, one in varied.items()}

    def questions_for(self, programs: Iterable[Program]) -> list[dspy.Example]:
        """Return the questions to score these programs on."""
        from .evaluation.audit import missing_gold
        from .evaluation.leak import refuse_demonstrated

        programs, examples = list(programs), self.examples(self.settings.split, self.settings.limit)
        searched = next((program.retriever for program in programs if program.retriever is not None), None)
        if searched is not None and (told := missing_gold(examples, searched)):
            logger.warning("%s: %s", self.task.name, told)
        refuse_demonstrated(programs, examples)
        return examples

    def scores(self, names: Sequence[str] | None, judge: str | None = None) -> list[ScoreFunction]:
        """Return these metrics; else the task's own, and for short answers also the two that other papers report.

        Args:
            judge: the name of an LM that judges as well, greedily; the address of ``--lm`` is only its own.
        """
        from .metrics import metric

        own = [self.task.metric, *(["em", "f1"] if self.task.style == "short" else [])]
        scores: list[ScoreFunction] = [metric(one) for one in names or own]
        if judge is None:
            return scores
        from .evaluation.lm_judge import LMJudge

        return [*scores, LMJudge(self.other_lm(judge))]

    def other_lm(self, name: str) -> dspy.LM:
        """Return an LM that judges or checks, greedily; the address of ``--lm`` is only its own."""
        address = self.settings.api_base if name == self.settings.lm else None
        return Parts(self.settings.model_copy(update={"lm": name, "api_base": address, "temperature": 0.0})).lm

    @contextmanager
    def asking(self) -> Iterator[dict[str, Any]]:
        """Configure the LM, and give how questions are asked: within which bounds, and where it is tracked."""
        from .lm.failure import address_of
        from .lm.limits import GivenUpError

        settings = self.settings
        self.use_lm()
        try:
            yield {"seed": settings.seed, "policy": settings.policy, "tracking": self.tracking}
        except GivenUpError as error:
            if error.shared and (address := address_of(self.lm)):  # which no record shows
                error.args = (f"{error} The LM was asked at {address}.",)
            raise

    def folder(self, *names: str, of: Any = None) -> Path:
        """Return the folder of a run: that of the settings, else one whose name is made of these.

        Args:
            names: what is done, with what; a task may be a file.
            of: all that must be the same for a run to go on there; None if the names say it.
        """
        from .evaluation.identity import digest

        plain = ["".join(one if one.isalnum() else "-" for one in Path(name).stem).strip("-") for name in names]
        return self.settings.out or Path("runs") / "-".join([*plain, *([] if of is None else [digest(of)[:8]])])
