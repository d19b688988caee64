"""What a user's settings name, as objects: task, LM, retriever, reader, duplicate check, tracking."""

from __future__ import annotations

import logging
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from .common.errors import QuestreeError
from .common.secrets import remember_address
from .retrieval.retriever_names import named_members, open_members
from .settings import RunSettings

if TYPE_CHECKING:
    import dspy

    from .data import Task
    from .evaluation import Tracking
    from .retrieval import DuplicateCheck, Reader, Retriever

logger = logging.getLogger(__name__)

RECORDED = "recorded:"


class Parts:
    """The parts that settings name. Each is made when it is first used, and only once.

    Each raises a `QuestreeError` if it cannot be had: it says what is missing and what makes it.
    """

    def __init__(self, settings: RunSettings):
        self.settings = settings
        for address in (
            settings.api_base,
            settings.tracking_uri,
            *(settings.retriever or "").removeprefix("linked:").split("+"),
        ):
            remember_address(address)

    @cached_property
    def task(self) -> Task:
        """Return the task, with its splits."""
        from .data import load_task

        return load_task(self.settings.task, seed=self.settings.seed)

    def examples(self, splits: str, limit: int | None) -> list[dspy.Example]:
        """Return the first ``limit`` questions of one split, or of several: ``dev,test``, but those left out.

        Of several splits those that the task lacks are left out with a word.
        """
        from .data import SPLITS

        named, task = [split.strip() for split in splits.split(",")], self.task
        absent = [split for split in named if split in SPLITS and not task.questions.get(split)]
        if absent and len(absent) < len(named):
            logger.warning("%s has no questions in split %s; the others are asked.", task.name, ", ".join(absent))
            named = [split for split in named if split not in absent]
        every = [example for split in named for example in task.examples(split)]
        return [example for example in every if example.id not in self.left_out][:limit]

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Return the ids of the questions that ``--leave-out`` names."""
        from .common.json_files import read_text

        file = self.settings.leave_out
        if file is None:
            return frozenset()
        try:
            ids = [line.strip() for line in read_text(file).split("\n") if line.strip()]
        except (OSError, ValueError) as error:
            raise QuestreeError(f"Cannot read the ids of questions from {file}: {error}") from error
        known = {question.id for questions in self.task.questions.values() for question in questions}
        if unknown := [id for id in ids if id not in known]:
            raise QuestreeError(
                f"{file} names {len(unknown)} questions that {self.task.name} does not have, {unknown[0]!r} for one."
            )
        logger.warning("Questions of %s that are left out, as %s says: %d.", self.task.name, file, len(ids))
        return frozenset(ids)

    @cached_property
    def lm(self) -> dspy.LM:
        """Return the LM that ``--lm`` names: simulated, recorded, or any that DSPy knows."""
        name, given = self.settings.lm, self.settings.temperature
        temperature = None if given == "none" else given or None
        if name == "simulated" and self.settings.api_base and "lm" not in self.settings.model_fields_set:
            raise QuestreeError(
                "--api-base is the address of an LM, and none is named: --lm openai/MODEL. Without it the simulated LM "
                "would answer, here in this process."
            )
        if name == "simulated":
            from .data import load_task
            from .simulate import simulated_lm

            questions = [one for some in load_task(self.settings.task).questions.values() for one in some]
            return simulated_lm(questions, temperature=temperature)
        if name.startswith(RECORDED):
            from .simulate import recorded_lm

            return recorded_lm(Path(name.removeprefix(RECORDED)), temperature=temperature)
        from .served_lm import served_lm

        return served_lm(self.settings)

    def use_lm(self) -> None:
        """Configure DSPy with the LM, its adapter, its cache on disk, and the limits of the settings."""
        import dspy

        from .lm.guard import adapter_named
        from .lm.kept_replies import use_lm_cache
        from .lm.limits import limit_process

        use_lm_cache(self.settings.api_base)
        dspy.configure(lm=self.lm, adapter=adapter_named(self.settings.adapter))
        limit_process(self.settings.limits)

    @cached_property
    def retriever(self) -> Retriever:
        """Return the retriever that the settings name, with their reranker and their defence around it."""
        retriever, rerank, defence = self.undefended, self.settings.rerank, self.settings.defence
        if rerank == "lm":
            from .programs.modules.reranker import LMRerankedRetriever

            retriever = LMRerankedRetriever(retriever)
        elif rerank is not None:
            from .retrieval import RerankedRetriever

            retriever = RerankedRetriever.load(retriever, rerank)
        if defence == "none":
            return retriever
        from .retrieval.defences import defended

        return defended(retriever, defence, self.reader if defence == "reader" else None)

    @cached_property
    def undefended(self) -> Retriever:
        """Return the retriever that ``--retriever`` names; for a bundled task, one that is made on first use."""
        if self.settings.retriever is not None:
            return _open_once(named_members(self.settings.retriever))
        from .data import BUNDLED, MINI_CORPUS

        if self.settings.task not in BUNDLED:
            raise QuestreeError(
                "No index is named. Make one with `questree index CORPUS --out DIR` and name it: --retriever DIR."
            )
        from .common.files import cache_folder
        from .retrieval.index_builder import load_or_build

        return load_or_build(MINI_CORPUS, cache_folder() / "indexes" / "mini")

    @cached_property
    def reader(self) -> Reader | None:
        """Return the reader that ``--reader`` names, with its stored threshold; None for the LM, a program's own."""
        name = self.settings.reader
        if name == "lm":
            return None
        from .retrieval.calibrated import stored
        from .retrieval.retriever_names import READERS

        if READERS.means(name):
            return READERS.named(name)
        manifest = stored(name)
        if manifest is None or manifest.kind != "lm":
            from .retrieval import DPRReader

            return DPRReader.load(name, threshold=None if manifest is None else manifest.threshold)
        from .programs.modules.reader import LMReader

        if manifest.model != self.settings.lm:
            logger.warning("%s holds the threshold of %s; the LM here is %s.", name, manifest.model, self.settings.lm)
        reader = LMReader()
        reader.threshold = reader.threshold if manifest.threshold is None else manifest.threshold
        return reader

    @cached_property
    def duplicates(self) -> DuplicateCheck | None:
        """Return the check that ``--duplicates`` names; None for the one by words."""
        name = self.settings.duplicates
        if name == "exact":
            return None
        from .retrieval import CrossEncoderDuplicates, RetrieverDuplicates
        from .retrieval.retriever_names import DUPLICATES

        if name != "retriever" and DUPLICATES.means(name):
            return DUPLICATES.named(name)
        if name == "retriever":
            return RetrieverDuplicates.of(self.retriever)
        return CrossEncoderDuplicates.load(name)

    @cached_property
    def tracking(self) -> Tracking:
        """Return where runs are tracked."""
        from .evaluation import Tracking

        uri = self.settings.tracking_uri
        return Tracking(uri="" if uri == "none" else uri, experiment=self.settings.experiment)

    @property
    def allowed_code(self) -> list[str]:
        """Return the programs of other packages that a file may name."""
        return [name for name in (self.settings.allow_code or "").split(",") if name]


_open_once = lru_cache(maxsize=4)(open_members)
