"""Questions that workers of a cluster answer: what they are sent, and what they make of it.

A worker is sent the settings of the command, the program by its name, settings and prompts, and the question: all as
JSON. It makes program, retriever, reader and LM from these names, as the command does, and loads each once. It sends
back the question's record and what was asked for it, as JSON, which is checked before it is kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from .common.errors import QuestreeError
from .common.secrets import without_secrets
from .evaluation.identity import run_identity
from .evaluation.pools import EventLoop, Pool, Threads
from .evaluation.records import Record, plain, question_id, record_error
from .evaluation.run import Asking, answer
from .lm.episode import EpisodeStep
from .lm.limits import limited
from .lm.spent import Spent
from .optimize.artifact import Artifact, Manifest, load, manifest_of
from .parts import Parts
from .programs import Program, allow
from .retrieval.indexes.cluster import ClusterError, WorkerLostError, Workers, connected
from .settings import RunSettings, chosen, run_settings


class _Described(BaseModel):
    """A program, as a worker makes it.

    Attributes:
        manifest: of the program, as it is saved.
        rollout: of the LM's replies, where a run is repeated.
        identity: what must come of it, or the records would be of another run; settings, retriever and reader too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    manifest: Manifest
    rollout: int | None
    identity: dict[str, Any]


_REPLY = TypeAdapter(tuple[Record, list[EpisodeStep]])
"""What a worker sends back."""


@contextmanager
def answering(settings: RunSettings) -> Iterator[RemoteAnswerers]:
    """Start the workers that the settings ask for; they end with the block."""
    given = settings.model_dump(mode="json", exclude={*chosen("TRACKING CLUSTER out")})
    with (
        connected(str(settings.on), settings.workers) as cluster,
        cluster.waiting(f"{__name__}:Answering", given, jobs=settings.concurrency) as workers,
    ):
        yield RemoteAnswerers(workers)


class RemoteAnswerers:
    """Answers questions by workers: the `questree.evaluation.run.Answerers` of a run."""

    def __init__(self, workers: Workers):
        self._workers = workers

    def __call__(self, program: Program) -> Asking:
        """Return what asks a program there; it is called on several threads and waits for the answer."""
        lm = dspy.settings.lm
        rollout = None if lm is None else lm.kwargs.get("rollout_id")
        described = _Described(manifest=manifest_of(program), rollout=rollout, identity=_identity(program))
        shared = self._workers.share(described.model_dump_json())
        return partial(self._ask, program.name, shared)

    def _ask(self, program: str, shared: Any, example: dspy.Example) -> tuple[Record, list[EpisodeStep]]:
        began = time.perf_counter()
        fields = {"inputs": sorted(example.inputs().keys()), "fields": plain(dict(example))}
        try:
            reply = self._workers.do(shared, json.dumps(fields))
        except WorkerLostError as error:
            return record_error(example, program, error, time.perf_counter() - began, Spent(), []), []
        try:
            record, steps = _REPLY.validate_json(reply)
        except ValidationError as error:
            raise ClusterError(f"A worker sent back what is no record: {error.errors()[0]['msg']}.") from error
        if record.id != question_id(example):
            raise ClusterError(f"A worker answered {record.id!r} when asked {question_id(example)!r}.")
        return record, steps


def _identity(program: Program) -> Any:
    return json.loads(json.dumps(run_identity(program, task="")))


class Answering:
    """What a worker does: it answers questions with what the settings of the command name."""

    def __init__(self, given: dict[str, Any]):
        self._parts = Parts(run_settings(**given))
        self._parts.use_lm()
        self._program, self._lock = lru_cache(maxsize=None)(self._made), Lock()
        policy = self._parts.settings.policy
        self._pool: Pool = EventLoop() if policy.event_loop else Threads(policy.concurrency)

    def __call__(self, program: str, asked: str) -> bytes:
        """Answer a question; return its record."""
        return self._pool.start(partial(self._answer, program), asked).result()

    def _answer(self, described: str, asked: str) -> bytes:
        fields = json.loads(asked)
        with self._lock:  # each is made once
            program, lm = self._program(described)
        with limited(self._parts.settings.policy), dspy.context(lm=lm):
            reply = answer(program, dspy.Example(**fields["fields"]).with_inputs(*fields["inputs"]))
        return json.dumps(without_secrets(_REPLY.dump_python(reply, mode="json"))).encode()

    def _made(self, description: str) -> tuple[Program, dspy.LM]:
        """Make a program and its LM."""
        described = _Described.model_validate_json(description)
        parts, manifest, lm = self._parts, described.manifest, self._parts.lm
        allow(manifest.program.name, manifest.program.settings)
        retriever = parts.retriever if manifest.retriever else None
        artifact = Artifact(Path("the program that was sent"), manifest)
        program = load(artifact, retriever=retriever, reader=parts.reader, duplicates=parts.duplicates)
        if described.rollout is not None:
            lm = lm.copy(rollout_id=described.rollout)
        with dspy.context(lm=lm):
            made = _identity(program)
        for name, value in described.identity.items():
            if made[name] != value:
                raise QuestreeError(f"Its {name} is {made[name]}, and not {value} as where the command runs.")
        return program, lm
