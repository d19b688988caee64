"""What a capsule holds of each run: what was asked, the answers, and all that was said from outside the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from ...common.json_files import parse_json, validate
from ...lm.exchanges import Exchange
from ..records import Record
from ..surroundings import Surroundings
from .archive import Archive, CapsuleError

_Line = TypeVar("_Line", bound=BaseModel)


class Header(BaseModel):
    """What a run is about.

    Attributes:
        name: of the run.
        identity: program, settings, LM, retriever (`run_identity`).
        policy: under which it was asked.
        surroundings: what else must be the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    identity: dict[str, JsonValue]
    policy: dict[str, JsonValue]
    surroundings: Surroundings


class Asked(BaseModel):
    """The exchanges of a question.

    Attributes:
        digests: one for each exchange; a changed prompt has another.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    exchanges: list[Exchange]
    digests: list[str] = Field(default_factory=list)


class PackedRun(BaseModel):
    """A run as a capsule holds it."""

    model_config = ConfigDict(frozen=True)

    header: Header
    records: tuple[Record, ...]
    asked: dict[str, list[Exchange]]


def members_of(number: int, run: PackedRun) -> dict[str, bytes]:
    """Return the members that hold a run, by name."""
    asked = (
        Asked(id=id, exchanges=exchanges, digests=[one.digest for one in exchanges])
        for id, exchanges in run.asked.items()
    )
    return {
        f"runs/{number}/run.json": run.header.model_dump_json(indent=1).encode(),
        f"runs/{number}/records.jsonl": _lines(one.model_dump_json() for one in run.records),
        f"runs/{number}/exchanges.jsonl": _lines(one.model_dump_json(exclude_defaults=True) for one in asked),
    }


def read_runs(path: Path) -> Iterator[PackedRun]:
    """Yield the runs of a capsule, each as it is read.

    Raises:
        CapsuleError: if the capsule, or a member, is damaged; names it.
    """
    archive = Archive(path)
    for number in range(sum(name.endswith("/run.json") for name in archive.manifest.members)):
        yield _read_run(archive, number)


def _read_run(archive: Archive, number: int) -> PackedRun:
    header, records, asked = (f"runs/{number}/{name}" for name in ("run.json", "records.jsonl", "exchanges.jsonl"))
    by_id: dict[str, list[Exchange]] = {}
    for one in _read_lines(archive, asked, Asked):
        if one.digests != [exchange.digest for exchange in one.exchanges]:
            raise CapsuleError(f"{archive.path}: {asked}: a digest of {one.id!r} is not that of its request.")
        by_id[one.id] = one.exchanges
    try:
        read = Header.model_validate(parse_json(archive.read(header)))
    except (ValueError, ValidationError) as problem:
        raise _damaged(archive, header, problem) from problem
    return PackedRun(header=read, records=tuple(_read_lines(archive, records, Record)), asked=by_id)


def _read_lines(archive: Archive, name: str, kind: type[_Line]) -> Iterator[_Line]:
    for line in archive.read(name).splitlines():
        try:
            yield kind.model_validate(parse_json(line))
        except (ValueError, ValidationError) as problem:
            raise _damaged(archive, name, problem) from problem


def _damaged(archive: Archive, name: str, problem: Exception) -> CapsuleError:
    return CapsuleError(f"{archive.path}: {name} holds something else than it should: {str(problem)[:300]}.")


def _lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def identity_of(run: PackedRun, part: str) -> dict[str, Any]:
    """Return a part of what the run is about; empty if there is none."""
    return validate(dict[str, Any], run.header.identity.get(part) or {})
