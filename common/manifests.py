"""Manifests: JSON files that say what a folder holds and who wrote it, so that nothing damaged or foreign is used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from .errors import QuestreeError
from .files import file_hash
from .json_files import parse_json, read_bytes

T = TypeVar("T")

_version = lru_cache(version)  # which reads and parses the metadata of the package


class FileRecord(BaseModel):
    """A file as it was when the folder that it lies in was finished."""

    model_config = ConfigDict(frozen=True)

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileRecord:
        """Return the record of a file as it is now."""
        return cls(bytes=path.stat().st_size, sha256=file_hash(path))


@dataclass(frozen=True)
class ManifestKind:
    """What the manifests of one kind of folder have in common, and what a user is told when one cannot be used.

    Attributes:
        what: the kind of folder, for messages: ``index``, ``run``.
        format: the number of the format that this version writes and reads.
        again: what to do about a folder that cannot be used, as a clause: ``build it again``.
        sealed: whether the manifest holds a ``checksum`` of its other fields (see `checksum_of`).
        error: the class of the errors.
    """

    what: str
    format: int
    again: str
    sealed: bool = False
    error: type[QuestreeError] = QuestreeError

    def read(self, path: Path, parse: Callable[[dict[str, Any]], T]) -> T:
        """Return what `parse` makes of a manifest, after its format and its checksum were checked.

        Raises:
            QuestreeError: if it is absent, damaged or changed, or another version wrote it.
        """
        try:
            content = parse_json(read_bytes(path))
            written, way = int(content["format"]), self.again
            if written != self.format:
                age, way = ("a newer", f"upgrade questree, or {way}") if written > self.format else ("an older", way)
                raise self.error(
                    f"{path} was written by {age} questree (its format is {written}, and {self.format} here); {way}."
                )
            if self.sealed and content.get("checksum") != checksum_of(content):
                raise self.error(f"{path.parent} is damaged: its {path.name} was changed after it was written; {way}.")
            return parse(content)
        except FileNotFoundError:
            raise self.error(
                f"{path.parent} is incomplete or no {self.what}: it has no {path.name}; {self.again}."
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise self.error(f"{path} is damaged or foreign ({problem}); {self.again}.") from problem

    def check_files(self, folder: Path, files: Mapping[str, FileRecord], *, full: bool) -> None:
        """Compare files with their records.

        Args:
            folder: the folder that the names of the files begin from.
            files: the record of each file by its name.
            full: compare checksums as well as sizes.

        Raises:
            QuestreeError: if a file is missing or not what it was, or lies outside the folder.
        """
        for name, record in files.items():
            if fault := _fault(folder, name, record, full=full):
                raise self.error(f"{folder}/{repr(name)[1:-1]} is damaged: {fault}; {self.again}.")


def _fault(folder: Path, name: str, record: FileRecord, *, full: bool) -> str:
    """Return what is wrong with a file, or nothing."""
    path = folder / name
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        return "it lies outside the folder whose manifest names it"
    if not path.is_file():
        return "it is missing"
    if path.stat().st_size != record.bytes:
        return f"it has {path.stat().st_size} bytes, and had {record.bytes} when it was written"
    return "its checksum differs" if full and file_hash(path) != record.sha256 else ""


def json_hash(value: Any, *, ascii: bool = False) -> str:
    """Return the SHA-256, as hex digits, of a value written as JSON with its keys sorted.

    Args:
        value: anything that JSON can hold; other things count by their text.
        ascii: escape all characters beyond ASCII, as some stored fingerprints do.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=ascii, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def checksum_of(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest: the hash of all its fields but ``checksum``."""
    return json_hash({name: value for name, value in manifest.items() if name != "checksum"})


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = _version(package)
    return found
