"""From the names that a user types to the parts that a program is made of."""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common.errors import IndexRefused, QuestreeError
from .retrieval import build_index, load_index
from .retrieval.opening import named_members, open_members
from .settings import RunSettings

if TYPE_CHECKING:
    import dspy

    from .programs import Program
    from .retrieval import DuplicateCheck, Reader, Retriever
    from .retrieval.base import IndexRetriever

logger = logging.getLogger(__name__)

RECORDED = "recorded:"


def build_lm(settings: RunSettings) -> dspy.LM:
    """The LM that ``--lm`` names: simulated, recorded, or any that DSPy knows.

    Raises:
        QuestreeError: if the task or file behind a simulated one cannot be read.
    """
    if settings.lm == "simulated":
        from .data import load_task
        from .simulate import simulated_lm

        tasks = [load_task(name.strip()) for name in settings.task.split(",")]  # readers are calibrated on several
        return simulated_lm([one for task in tasks for questions in task.questions.values() for one in questions])
    if settings.lm.startswith(RECORDED):
        from .simulate import recorded_lm

        return recorded_lm(Path(settings.lm.removeprefix(RECORDED)))
    return _served_lm(settings)


def _served_lm(settings: RunSettings) -> dspy.LM:
    import dspy

    from .lm.call import RETRIES, TIMEOUT

    server: dict[str, Any] = {}
    if settings.api_base is not None:
        # Local servers ask for no key, but the client does.
        server = {"api_base": settings.api_base, "api_key": os.environ.get("OPENAI_API_KEY", "none")}
    return dspy.LM(
        settings.lm,
        timeout=settings.timeout or TIMEOUT,
        max_tokens=settings.reply_tokens,
        num_retries=RETRIES if settings.retries is None else settings.retries,
        **server,
    )


def build_retriever(settings: RunSettings) -> Retriever:
    """The retriever that the settings name, with their defence around it.

    Raises:
        QuestreeError: as `named_retriever` and `defended`.
    """
    from .retrieval.defences import defended

    reader = build_reader(settings) if settings.defence == "reader" else None
    return defended(named_retriever(settings), settings.defence, reader)


def named_retriever(settings: RunSettings) -> Retriever:
    """The retriever that ``--retriever`` names; for the bundled task, one that is made on first use.

    Raises:
        QuestreeError: if none is named, or it cannot be used; says which command makes one.
    """
    if settings.retriever is not None:
        return _retriever(named_members(settings.retriever))
    if settings.task != "mini":
        raise QuestreeError(
            "No index is named. Make one with `questree index CORPUS --out DIR` and name it: --retriever DIR."
        )
    from .common.caches import cache_folder
    from .data import MINI_CORPUS

    return load_or_build(MINI_CORPUS, cache_folder() / "indexes" / "mini")


@lru_cache(maxsize=4)
def _retriever(members: tuple[str, ...]) -> Retriever:
    """Opened once, for all programs of a command."""
    return open_members(members)


@lru_cache(maxsize=1)
def load_or_build(corpus: Path, folder: Path) -> IndexRetriever:
    """The index of exactly these passages: the one that is there, or a new one in its place."""
    try:
        return load_index(folder, corpus=corpus)
    except IndexRefused:
        return load_index(build_index(corpus, folder, overwrite=True))


def build_reader(settings: RunSettings) -> Reader | None:
    """The reader that ``--reader`` names, with its stored threshold; None for the LM, which programs come with."""
    from .retrieval.calibrated import ReaderManifest, stored

    if settings.reader == "lm":
        return None
    manifest = stored(ReaderManifest, settings.reader)
    if manifest is None or manifest.kind != "lm":
        return _span_reader(settings.reader, None if manifest is None else manifest.threshold)
    from .programs.modules import LMReader

    if manifest.model != settings.lm:
        logger.warning("%s holds the threshold of %s; the LM here is %s.", settings.reader, manifest.model, settings.lm)
    reader = LMReader()
    reader.threshold = reader.threshold if manifest.threshold is None else manifest.threshold
    return reader


@lru_cache(maxsize=1)
def _span_reader(name: str, threshold: float | None) -> Reader:
    from .retrieval import DPRReader

    return DPRReader.load(name, threshold=threshold)


def build_duplicates(settings: RunSettings) -> DuplicateCheck | None:
    """The check that ``--duplicates`` names, with its stored threshold; None for the one by words, SearChain's own.

    Raises:
        QuestreeError: the retriever has no embeddings to compare by.
        CheckpointError: the cross-encoder cannot be had.
    """
    from .retrieval import CrossEncoderDuplicates, RetrieverDuplicates
    from .retrieval.calibrated import DuplicatesManifest, stored

    if settings.duplicates == "exact":
        return None
    manifest = stored(DuplicatesManifest, settings.duplicates)
    threshold = manifest.threshold if manifest else None
    if settings.duplicates == "retriever" or (manifest and manifest.kind == "retriever"):
        chosen_with = manifest.calibration.get("retriever") if manifest else None
        if chosen_with not in (None, settings.retriever):
            logger.warning(
                "%s was calibrated with %s; the retriever here is %s.",
                settings.duplicates,
                chosen_with,
                settings.retriever,
            )
        return RetrieverDuplicates.of(build_retriever(settings), threshold=threshold)
    return CrossEncoderDuplicates.load((manifest and manifest.model) or settings.duplicates, threshold=threshold)


def build_program(name: str, settings: RunSettings, **program_settings: Any) -> Program:
    """A registered program by name, uncompiled; or a compiled one, by its folder or MLflow URI.

    Args:
        name: as in `questree.programs.PROGRAMS`, a folder, ``runs:/…`` or ``models:/…``.
        settings: name the index, the reader and the duplicate check.
        program_settings: of the program; a compiled one has its own.
    """
    from .front import load, program
    from .programs import PROGRAMS, takes_retriever

    parts: dict[str, Any] = {"reader": build_reader(settings), "duplicates": build_duplicates(settings)}
    if name in PROGRAMS:
        searches = takes_retriever(name, program_settings)
        return program(name, retriever=build_retriever(settings) if searches else None, **parts, **program_settings)
    if program_settings:
        raise QuestreeError(f"{name} is compiled, and has its settings; --set is for: {', '.join(PROGRAMS)}.")
    if ":/" in name:  # an address in MLflow
        import mlflow

        mlflow.set_tracking_uri(settings.tracking_uri)
    return load(name, retriever=build_retriever(settings), **parts)
