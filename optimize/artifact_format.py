"""What the files of an artifact may hold: prompts, demonstrations, how the LM samples, and facts to show.

An artifact may come from anyone. Nothing else is let through: an address, a header or another model would send the
user's key and questions to a stranger.
"""

from __future__ import annotations

import json
import logging
from typing import Annotated, Any, Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError, model_validator

from ..common.errors import QuestreeError
from ..common.secrets import without_secrets
from ..common.text import changed_texts, without_surrogates
from ..programs import Program
from .composed import Demonstrations, Lesson, Majority, NearestDemonstrations

LESSONS = "lessons.json"

MemberFile = Annotated[str, StringConstraints(pattern=r"^program(-\d{1,3})?\.json$")]
ArtifactFile = Annotated[str, StringConstraints(pattern=r"^(program(-\d{1,3})?|lessons)\.json$")]
Lessons = Annotated[list[Lesson], Field(max_length=20_000)]  # each becomes a vector of 16 KB

_EMPTY: dict[str, Any] = {"lm": None, "traces": [], "train": []}
"""Parts of DSPy's state that stay empty: an LM has an address, and what the other two hold is read by nobody."""
_MARK = "<CUSTOM-TYPE-"  # a text between two of these marks enters a prompt as what it describes

logger = logging.getLogger(__name__)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LMSettings(_Part):
    """How a predictor samples: the only settings of an LM that a file may set."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    n: int | None = Field(default=None, ge=1, le=64)
    seed: int | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)


class SavedField(_Part):
    """How a prompt introduces a field of a signature."""

    prefix: str
    description: str


class SavedSignature(_Part):
    """The instructions of a signature, and its fields in their order."""

    instructions: str
    fields: list[SavedField]


class PredictorState(_Part):
    """A predictor as it is saved.

    Attributes:
        signature: its prompt.
        demos: its demonstrations; values by the names of fields.
        config: how it samples.
    """

    signature: SavedSignature
    demos: list[dict[str, JsonValue]]
    config: LMSettings = LMSettings()

    @model_validator(mode="before")
    @classmethod
    def _take_off_what_is_empty(cls, part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        return {name: value for name, value in part.items() if name not in _EMPTY or value != _EMPTY[name]}

    def for_dspy(self) -> dict[str, Any]:
        """Return the prompt and the demonstrations as ``dspy.Predict`` loads them."""
        return {
            "signature": self.signature.model_dump(),
            "demos": [dspy.Example(demo) for demo in self.demos],
            "lm": None,
        }


ProgramState = dict[str, PredictorState]
"""The states of a program's predictors by their names."""


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
    form: Literal["single", "majority", "nearest"]
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
        if len(set(self.members)) < len(self.members) or (len(self.members) > 1 and self.form != Majority.form):
            raise ValueError(f"{self.form} has {len(self.members)} members")
        if self.form == NearestDemonstrations.form and self.k is None:
            raise ValueError("k is missing")
        return self

    def facts(self) -> dict[str, Any]:
        """Return what a person wants to know: all but fingerprints and checksums, as JSON."""
        return self.model_dump(mode="json", exclude_unset=True, exclude={"signatures", "files", "checksum"})


def to_json(content: Any) -> str:
    """Return content as JSON that can be read back, without half characters, secrets and what `refuse_marks` refuses.

    Raises:
        TypeError, ValueError: if JSON cannot hold it.
    """
    shown = without_secrets(content)
    text: str = without_surrogates(json.dumps(shown, indent=1, ensure_ascii=False, allow_nan=False))
    return text.replace(_MARK, f"< {_MARK[1:]}")


def refuse_marks(content: Any) -> None:
    """Refuse a text that DSPy would send as an image or a file, which may stand at any address.

    Raises:
        ValueError: if there is one in the content.
    """

    def check(text: str) -> str:
        if _MARK in text:
            raise ValueError("a text holds DSPy's mark for images and files")
        return text

    changed_texts(content, check)


def state_of(program: Program) -> dict[str, Any]:
    """Return the state of a program's predictors as JSON, in DSPy's form; `take_state` takes it back.

    Raises:
        QuestreeError: if a demonstration holds what JSON cannot.
    """
    state = {name: {**part, **_EMPTY} for name, part in program.dump_state().items()}
    for name, predictor in program.named_predictors():
        if config := _settings_to_save(name, predictor.config):
            state[name]["config"] = config
    try:
        content: dict[str, Any] = json.loads(to_json(state))
    except (TypeError, ValueError) as error:
        raise QuestreeError(f"A demonstration of {program.name} cannot be saved as JSON: {error}.") from error
    return content


def take_state(program: Program, state: ProgramState) -> None:
    """Give a program's predictors the prompts, demonstrations and settings of a saved state.

    Raises:
        ValueError: if the state is that of other predictors; names the first that differs.
    """
    predictors = dict(program.named_predictors())
    for name in sorted({*predictors, *state}):
        if name not in state or name not in predictors:
            raise ValueError(f"{name} is {'missing' if name in predictors else f'no predictor of {program.name}'}")
        fields = len(state[name].signature.fields)
        if fields != len(predictors[name].signature.fields):
            raise ValueError(f"{name} has {len(predictors[name].signature.fields)} fields, and not {fields}")
    check_demonstrations(program, {name: part.demos for name, part in state.items()})
    program.load_state({name: part.for_dspy() for name, part in state.items()})
    for name, predictor in program.named_predictors():
        predictor.update_config(**state[name].config.model_dump(exclude_none=True))


def check_demonstrations(program: Program, demonstrations: Demonstrations) -> None:
    """Check that demonstrations are those of the program's predictors, and that DSPy can write them into a prompt.

    Raises:
        ValueError: if one is of another predictor, or has a list or an object where its signature has a text.
    """
    predictors = dict(program.named_predictors())
    for name, demos in demonstrations.items():
        if name not in predictors:
            raise ValueError(f"{name} is no predictor of {program.name}")
        texts = {field for field, info in predictors[name].signature.fields.items() if info.annotation is str}
        for field in (
            field for demo in demos for field in texts & demo.keys() if isinstance(demo[field], (list, dict))
        ):
            raise ValueError(f"a demonstration of {name} has no text in {field}")


def _settings_to_save(name: str, config: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for setting, value in config.items():
        try:
            kept |= LMSettings(**{setting: value}).model_dump(exclude_none=True)
        except ValidationError:
            logger.warning("The setting %s of %s is not saved.", setting, name)
    return kept
