"""What an artifact says of itself: which program it is, how it is made of its members, and facts to show."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from ..programs.composed import NearestDemonstrations
from ..programs.states import Form, check_form

LESSONS = "lessons.json"

MemberFile = Annotated[str, StringConstraints(pattern=r"^program(-\d{1,3})?\.json$")]
ArtifactFile = Annotated[str, StringConstraints(pattern=r"^(program(-\d{1,3})?|lessons)\.json$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SavedProgram(_Part):
    """A program's name, and its settings."""

    name: str
    settings: dict[str, JsonValue]


class SavedPrompt(_Part):
    """A signature as the code had it: its name, and a fingerprint of all that it puts into a prompt."""

    signature: str
    fingerprint: str


class Manifest(BaseModel):
    """What an artifact says of itself.

    Attributes:
        format: the number of the format.
        program: what to build.
        form: how the members are joined.
        members: the file of each member's state.
        k: of a program that chooses demonstrations by question, how many questions' it shows.
        signatures: of each predictor.
        lm: what is known of the LM. It is shown and never used.
        retriever: name and fingerprint of the index that it was compiled over; empty for a program without one.
        reader: the reader's name, or None if the program has none.
        threshold: of an LM that reads.
        versions: of the packages that it was made with.
        files: the checksum of each file.
        checksum: of all the rest.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    format: int
    program: SavedProgram
    form: Form
    members: list[MemberFile] = Field(min_length=1)
    k: int | None = Field(default=None, ge=1)
    signatures: dict[str, SavedPrompt]
    lm: dict[str, JsonValue]
    retriever: dict[str, str]
    reader: str | None = None
    threshold: float | None = None
    versions: dict[str, str]
    files: dict[ArtifactFile, str]
    checksum: str

    @model_validator(mode="after")
    def _check_members(self) -> Manifest:
        needed = [*self.members, *([LESSONS] if self.form == NearestDemonstrations.form else [])]
        if missing := [name for name in needed if name not in self.files]:
            raise ValueError(f"{missing[0]} has no checksum")
        if len(set(self.members)) < len(self.members):
            raise ValueError("a member is named twice")
        check_form(self.form, len(self.members), self.k)
        return self

    def facts(self) -> dict[str, Any]:
        """Return what a person wants to know: all but fingerprints and checksums, as JSON."""
        return self.model_dump(mode="json", exclude_unset=True, exclude={"signatures", "files", "checksum"})
