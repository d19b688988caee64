"""What a user's settings name, as objects: task, LM, retriever, reader, duplicate check, tracking, programs."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .common.errors import IndexRefused, QuestreeError
from .common.secrets import remember_address
from .retrieval.retriever_names import named_members, open_members
from .settings import RunSettings

if TYPE_CHECKING:
    import dspy

    from .data import Task
    from .evaluation import Tracking
    from .programs import Program
    from .retrieval import DuplicateCheck, Reader, Retriever
    from .retrieval.base import IndexRetriever

logger = logging.getLogger(__name__)

RECORDED = "recorded:"


class Parts:
    """The parts that settings name. Each is made when it is first asked for, and only once."""

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

        Raises:
            QuestreeError: the file of those left out cannot be read, or names a question that the task does not have.
        """
        every = [example for split in splits.split(",") for example in self.task.examples(split.strip())]
        return [example for example in every if example.id not in self.left_out][:limit]

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Return the ids of the questions that ``--leave-out`` names.

        Raises:
            QuestreeError: as `examples`.
        """
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
        """Return the LM that ``--lm`` names: simulated, recorded, or any that DSPy knows.

        Raises:
            QuestreeError: the task or file behind a simulated one cannot be read; or there is an address, and no name.
        """
        name, temperature = self.settings.lm, self.settings.temperature or None
        if name == "simulated" and self.settings.api_base and "lm" not in self.settings.model_fields_set:
            raise QuestreeError(
                "--api-base is the address of an LM, and none is named: --lm openai/MODEL. Without it the simulated LM "
                "would answer, here in this process."
            )
        if name == "simulated":
            from .data import load_task
            from .simulate import simulated_lm

            # several tasks where a reader is calibrated
            tasks = [load_task(task.strip()) for task in self.settings.task.split(",")]
            questions = [one for task in tasks for questions in task.questions.values() for one in questions]
            return simulated_lm(questions, temperature=temperature)
        if name.startswith(RECORDED):
            from .simulate import recorded_lm

            return recorded_lm(Path(name.removeprefix(RECORDED)), temperature=temperature)
        return _served_lm(self.settings)

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
        """Return the retriever that the settings name, with their reranker and their defence around it.

        Raises:
            QuestreeError: as `undefended`; or the defence needs a reader, and none is named.
            CheckpointError: the reranker cannot be had.
        """
        if self.settings.defence == "none":
            return self._reranked(self.undefended)
        from .retrieval.defences import defended

        reader = self.reader if self.settings.defence == "reader" else None
        return defended(self._reranked(self.undefended), self.settings.defence, reader)

    def _reranked(self, retriever: Retriever) -> Retriever:
        """Return the retriever with what ``--rerank`` names in front of it."""
        if self.settings.rerank is None:
            return retriever
        if self.settings.rerank == "lm":
            from .programs.modules.reranker import LMRerankedRetriever

            return LMRerankedRetriever(retriever)
        from .retrieval import RerankedRetriever

        return RerankedRetriever.load(retriever, self.settings.rerank)

    @cached_property
    def undefended(self) -> Retriever:
        """Return the retriever that ``--retriever`` names; for the bundled task, one that is made on first use.

        Raises:
            QuestreeError: none is named, or it cannot be used; says which command makes one.
        """
        if self.settings.retriever is not None:
            return _open_once(named_members(self.settings.retriever))
        if self.settings.task != "mini":
            raise QuestreeError(
                "No index is named. Make one with `questree index CORPUS --out DIR` and name it: --retriever DIR."
            )
        from .common.caches import cache_folder
        from .data import MINI_CORPUS

        return load_or_build(MINI_CORPUS, cache_folder() / "indexes" / "mini")

    @cached_property
    def reader(self) -> Reader | None:
        """Return the reader that ``--reader`` names, with its stored threshold; None for the LM, which programs have.

        Raises:
            QuestreeError: the reader cannot be had.
        """
        from .retrieval.calibrated import ReaderManifest, stored
        from .retrieval.retriever_names import READERS

        name = self.settings.reader
        if name == "lm":
            return None
        if READERS.means(name):
            return READERS.named(name)
        manifest = stored(ReaderManifest, name)
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
        """Return the check that ``--duplicates`` names, with its stored threshold; None for SearChain's own, by words.

        Raises:
            QuestreeError: the retriever has no embeddings to compare by.
            CheckpointError: the cross-encoder cannot be had.
        """
        from .retrieval import CrossEncoderDuplicates, RetrieverDuplicates
        from .retrieval.calibrated import DuplicatesManifest, stored
        from .retrieval.retriever_names import DUPLICATES

        name, retriever = self.settings.duplicates, self.settings.retriever
        if name == "exact":
            return None
        if name != "retriever" and DUPLICATES.means(name):
            return DUPLICATES.named(name)
        manifest = stored(DuplicatesManifest, name)
        threshold = manifest.threshold if manifest else None
        if name == "retriever" or (manifest and manifest.kind == "retriever"):
            chosen_with = manifest.calibration.get("retriever") if manifest else None
            if chosen_with not in (None, retriever):
                logger.warning("%s was calibrated with %s; the retriever here is %s.", name, chosen_with, retriever)
            return RetrieverDuplicates.of(self.retriever, threshold=threshold)
        return CrossEncoderDuplicates.load((manifest and manifest.model) or name, threshold=threshold)

    @cached_property
    def tracking(self) -> Tracking:
        """Return where runs are tracked."""
        from .evaluation import Tracking

        uri = self.settings.tracking_uri
        return Tracking.off() if uri == "none" else Tracking(uri=uri, experiment=self.settings.experiment)

    def program(self, name: str, **program_settings: Any) -> Program:
        """Return a registered program, uncompiled, or a compiled one.

        Args:
            name: as in `questree.programs.PROGRAMS`, of another package, or ``package:name``; or a
                folder, ``runs:/…``, ``models:/…`` or ``hf://…`` of a compiled one.
            program_settings: of an uncompiled program; a compiled one has its own.

        Raises:
            QuestreeError: there is no such program or setting, or a part of it cannot be had.
        """
        from .programs import REGISTRY, allow, build, takes_retriever

        if REGISTRY.means(name):
            allow(name, program_settings)
            searches = takes_retriever(name, program_settings)
            retriever = self.retriever if searches else None
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

    @property
    def allowed_code(self) -> list[str]:
        """Return the programs of other packages that a file may name."""
        return [name for name in (self.settings.allow_code or "").split(",") if name]

    def compiled(self, place: str, *, allow_changed_signatures: bool = False) -> Program:
        """Return a compiled program. No stand-in takes the place of the LM and the index that it was compiled with.

        Raises:
            QuestreeError: as `program`; or it was compiled with another LM or index than the default ones, and the
                settings name none.
        """
        from .optimize import load
        from .optimize.artifact import read_artifact

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
        compiled_over = manifest.retriever
        if not compiled_over and "retriever" not in told:  # of a program that does not search
            retriever = None
        elif "retriever" not in told and self.retriever.fingerprint != compiled_over.get("fingerprint"):
            raise QuestreeError(
                f"{place} was compiled over the index {compiled_over.get('name')!r} "
                f"({compiled_over.get('fingerprint')}). Name it: --retriever, QUESTREE_RETRIEVER or model_config."
            )
        else:
            retriever = self.retriever
        return load(
            artifact,
            retriever=retriever,
            reader=self.reader,
            duplicates=self.duplicates,
            allow_changed_signatures=allow_changed_signatures or self.settings.allow_changed_signatures,
            allow_code=self.allowed_code,
        )


def load_or_build(corpus: Path, folder: Path) -> IndexRetriever:
    """Return the index of exactly these passages: the one in the folder, or a new one in its place.

    Where another process makes it, this one waits for that.
    """
    from .common.files import in_turn
    from .retrieval import build_index, load_index

    with suppress(IndexRefused):
        return load_index(folder, corpus=corpus)
    with in_turn(folder.with_name(f".{folder.name}.in-turn"), f"making the index {folder}"):
        with suppress(IndexRefused):
            return load_index(folder, corpus=corpus)
        return load_index(build_index(corpus, folder, overwrite=True))


@lru_cache(maxsize=4)
def _open_once(members: tuple[str, ...]) -> Retriever:
    return open_members(members)


def _served_lm(settings: RunSettings) -> dspy.LM:
    """Return the LM behind an address, with what the settings say of its requests.

    Raises:
        QuestreeError: DSPy knows that the model takes no such temperature, or more tokens for a reply.
    """
    import dspy
    from dspy.utils.exceptions import LMConfigurationError

    from .lm.call import RETRIES, TIMEOUT, takes_temperature

    server: dict[str, Any] = {}
    if settings.api_base is not None:
        _keep_from_proxies(settings.api_base)
        # Local servers ask for no key, but the client does.
        server = {"api_base": settings.api_base, "api_key": os.environ.get("OPENAI_API_KEY", "none")}
    greedy = 0.0 if takes_temperature(settings.lm) else None
    try:
        return dspy.LM(
            settings.lm,
            temperature=settings.temperature or greedy,
            timeout=settings.timeout or TIMEOUT,
            max_tokens=settings.reply_tokens,
            num_retries=RETRIES if settings.retries is None else settings.retries,
            **server,
        )
    except LMConfigurationError as error:
        raise QuestreeError(f"--lm {settings.lm} cannot be asked so: {error}") from None


def _keep_from_proxies(address: str) -> None:
    """Keep the requests to a server on this machine from a proxy of the environment, which would read the key."""
    from .retrieval.serving.access import is_loopback

    with suppress(ValueError):  # no address; whoever asks there says so
        if is_loopback(host := urlsplit(address).hostname or ""):
            for name in ("NO_PROXY", "no_proxy"):
                direct = os.environ.get(name, "").split(",")
                os.environ[name] = ",".join(filter(None, {**dict.fromkeys(direct), host: None}))
