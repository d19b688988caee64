"""The file of a capsule: a zip of JSON files, of which the first lists the others with their sizes and checksums.

A capsule may come from anyone. Nothing is unpacked onto the disk: members are read into memory, each no further than
its listed size, and a member is used only if its name, its size and its checksum are those in the list.
"""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from ...common.errors import QuestreeError
from ...common.files import replacing
from ...common.json_files import parse_json, read_bytes, validate
from ...common.manifests import checksum_of
from ...common.packed_files import UNREADABLE

FORMAT = 1
MANIFEST = "capsule.json"

LARGEST = 1 << 30  # bytes of a capsule
LARGEST_MEMBER = 1 << 30  # bytes of a member, unpacked
LARGEST_MANIFEST = 16 << 20
MOST_MEMBERS = 2000
RATIO = 500  # a member's bytes for each packed one, at most: prompts repeat one another
_SLACK = 1 << 20  # bytes that any member may unpack to
_UNREADABLE = (*UNREADABLE, ValueError, RuntimeError, zipfile.BadZipFile, struct.error)
_DATE = (1980, 1, 1, 0, 0, 0)  # the same runs give the same file

MemberName = Annotated[str, StringConstraints(pattern=r"^runs/\d{1,4}/(run|records|exchanges)\.jsonl?$")]


class CapsuleError(QuestreeError):
    """A capsule that cannot be read, or must not be."""


class Member(BaseModel):
    """A member as it was when the capsule was written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int = Field(ge=0, le=LARGEST_MEMBER)
    sha256: str


class Manifest(BaseModel):
    """What a capsule says of itself.

    Attributes:
        format: the number of the format.
        facts: for a person: the runs, their programs and questions, versions and machines.
        members: all other members, by name.
        checksum: of all the rest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    facts: dict[str, JsonValue]
    members: dict[MemberName, Member] = Field(max_length=MOST_MEMBERS)
    checksum: str


def write_archive(path: Path, members: Mapping[str, bytes], facts: Mapping[str, Any]) -> None:
    """Write a capsule, which is there whole or not at all.

    Raises:
        QuestreeError: if it cannot be written, or would be larger than one may be.
    """
    largest = max(members.items(), key=lambda member: len(member[1]))
    if len(members) > MOST_MEMBERS or len(largest[1]) > LARGEST_MEMBER:
        raise QuestreeError(
            f"{len(members)} members, {largest[0]} the largest, are too much for one capsule; pack fewer runs."
        )
    listed = {name: Member(bytes=len(content), sha256=_sha256(content)) for name, content in members.items()}
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "facts": json.loads(json.dumps(facts)),
        "members": {name: member.model_dump() for name, member in listed.items()},
    }
    manifest["checksum"] = checksum_of(manifest)
    first = json.dumps(manifest, indent=1, ensure_ascii=False).encode()
    try:
        with replacing(path) as unfinished, zipfile.ZipFile(unfinished, "w") as archive:
            for name, content in {MANIFEST: first, **members}.items():
                archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise QuestreeError(f"Cannot write {path}: {error.strerror}; make room, or name another file.") from error


class Archive:
    """A capsule that was opened: its list is checked, its members are checked as they are read.

    Args:
        path: of the file.

    Raises:
        CapsuleError: if it is none, or breaks a rule; says which.
    """

    def __init__(self, path: Path):
        self.path = path
        if not path.exists():
            raise CapsuleError(f"There is no file {path}.")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(read_bytes(path, LARGEST)))
            self._infos = self._listed()
            self.manifest = self._manifest()
        except _UNREADABLE as problem:
            raise CapsuleError(f"{path} is no capsule, or a damaged one: {problem}.") from problem

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises:
            CapsuleError: if it is not what the list says.
        """
        listed = self.manifest.members.get(name)
        if listed is None:
            raise CapsuleError(f"{self.path}: {name} is missing.")
        try:
            content = self._unpack(name, listed.bytes)
            if len(content) != listed.bytes or _sha256(content) != listed.sha256:
                raise ValueError("its bytes were changed after it was written")
        except _UNREADABLE as problem:
            raise CapsuleError(f"{self.path}: {name} is damaged: {problem}.") from problem
        return content

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        """Return the zip's entries by name.

        Raises:
            ValueError: if they are too many, or one is a link, a folder, encrypted, or stands there twice.
        """
        entries = self._zip.infolist()
        if len(entries) > MOST_MEMBERS + 1:
            raise ValueError(f"it has {len(entries):,} members, and may have {MOST_MEMBERS:,}")
        found: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG) or entry.is_dir():
                raise ValueError(f"{entry.filename!r} is a {'link' if kind == stat.S_IFLNK else 'folder or device'}")
            if entry.flag_bits & 1:
                raise ValueError(f"{entry.filename!r} is encrypted")
            if entry.filename in found:
                raise ValueError(f"{entry.filename!r} stands there twice")
            if entry.file_size > _SLACK + RATIO * entry.compress_size:
                raise ValueError(
                    f"{entry.filename!r} unpacks to {entry.file_size:,} bytes, over {RATIO} times its size"
                )
            found[entry.filename] = entry
        return found

    def _manifest(self) -> Manifest:
        if MANIFEST not in self._infos:
            raise ValueError(f"it has no {MANIFEST}")
        content = parse_json(self._unpack(MANIFEST, LARGEST_MANIFEST))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}: another version of questree wrote it")
        if content.get("checksum") != checksum_of(content):
            raise ValueError(f"its {MANIFEST} was changed after it was written")
        manifest = validate(Manifest, content)
        if unlisted := self._infos.keys() - manifest.members.keys() - {MANIFEST}:
            raise ValueError(f"{min(unlisted)!r} is not in its list")
        if missing := manifest.members.keys() - self._infos.keys():
            raise ValueError(f"{min(missing)} is missing")
        return manifest

    def _unpack(self, name: str, most: int) -> bytes:
        """Return the bytes of an entry, one more than the most at most."""
        entry = self._infos[name]
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("it is compressed in an unknown way")
        with self._zip.open(entry) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ValueError(f"it unpacks to more than {most:,} bytes")
        return content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
