"""The state of a program's predictors as JSON: their prompts, their demonstrations, how they sample.

A state may come from anyone, so nothing else is accepted: an address, a header or another model could send the
user's key and questions to a stranger.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from copy import copy
from typing import Any, Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from ..common.errors import QuestreeError
from ..common.secrets import without_secrets
from ..common.text import changed_texts, without_surrogates
from .composed import Composed, Demonstrations, Lesson, Majority, NearestDemonstrations
from .program import Program

_EMPTY: dict[str, Any] = {"lm": None, "traces": [], "train": []}
"""Parts of DSPy's state that stay empty: an LM has an address, and nothing reads the other two."""
_MARK = "<CUSTOM-TYPE-"  # DSPy replaces a text between two of these marks by the image or file that it describes

logger = logging.getLogger(__name__)


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LMSettings(_Saved):
    """How a predictor samples: the only settings of an LM that a file may set."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    n: int | None = Field(default=None, ge=1, le=64)
    seed: int | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)


class SavedField(_Saved):
    """How a prompt introduces a field of a signature."""

    prefix: str
    description: str


class SavedSignature(_Saved):
    """The instructions of a signature, and its fields in their order."""

    instructions: str
    fields: list[SavedField]


class PredictorState(_Saved):
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


ProgramState = dict[str, PredictorState]
"""The states of a program's predictors by their names."""

Form = Literal["single", "majority", "nearest"]
"""How a program is made of its members."""


class CompiledState(_Saved):
    """All that a compiled program has in addition to its code.

    Attributes:
        form: how its members are joined.
        members: the state of each.
        lessons: of a program that chooses its demonstrations by question.
        k: how many of them it shows.
    """

    form: Form = "single"
    members: list[ProgramState] = Field(min_length=1)
    lessons: list[Lesson] = Field(default=[], max_length=20_000)  # each becomes a vector of 16 KB
    k: int | None = Field(default=None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _refuse_marks(cls, content: Any) -> Any:
        """Refuse a text that DSPy would send as an image or a file, which could be at any address."""

        def check(text: str) -> str:
            if _MARK in text:
                raise ValueError("a text holds DSPy's mark for images and files")
            return text

        changed_texts(content, check)
        return content

    @model_validator(mode="after")
    def _check_form(self) -> CompiledState:
        if len(self.members) != 1 and self.form != Majority.form:
            raise ValueError(f"{self.form} has {len(self.members)} members")
        if self.form == NearestDemonstrations.form and self.k is None:
            raise ValueError("k is missing")
        return self

    def program(self, make: Callable[[], Program]) -> Program:
        """Return the program of this state; ``make`` makes a member that is not compiled.

        Raises:
            ValueError: if the state belongs to other predictors, or a lesson's demonstration does not fit them.
        """
        members = [make() for _ in self.members]
        for member, state in zip(members, self.members, strict=True):
            take_state(member, state)
        if self.form == Majority.form:
            return Majority(members)
        if self.form == NearestDemonstrations.form:
            assert self.k is not None, "checked in reading"
            for lesson in self.lessons:
                check_demonstrations(members[0], lesson.demonstrations)
            return NearestDemonstrations(members[0], list(self.lessons), self.k)
        return members[0]


def to_json(content: Any) -> str:
    """Return content as JSON that can be read back, without lone surrogates, secrets and DSPy's mark of images.

    Raises:
        TypeError, ValueError: if JSON cannot hold it.
    """
    shown = without_secrets(content)
    text: str = without_surrogates(json.dumps(shown, indent=1, ensure_ascii=False, allow_nan=False))
    return text.replace(_MARK, f"< {_MARK[1:]}")


def state_of(program: Program) -> dict[str, Any]:
    """Return the state of a program's predictors as JSON, in DSPy's form; `take_state` takes it back.

    Raises:
        QuestreeError: if a demonstration holds what JSON cannot.
    """
    state = {name: {**part, **_EMPTY} for name, part in state_without_lms(program).items()}
    for name, predictor in program.named_predictors():
        if config := _settings_to_save(name, predictor.config):
            state[name]["config"] = config
    try:
        content: dict[str, Any] = json.loads(to_json(state))
    except (TypeError, ValueError) as error:
        raise QuestreeError(f"A demonstration of {program.name} cannot be saved as JSON: {error}.") from error
    return content


def state_without_lms(program: Program) -> dict[str, Any]:
    """Return DSPy's state of the predictors without their LMs: DSPy cannot write an LM with its own engine."""
    bare = {name: copy(predictor) for name, predictor in program.named_predictors()}
    for predictor in bare.values():
        predictor.lm = None
    return {name: predictor.dump_state() for name, predictor in bare.items()}


def take_state(program: Program, state: ProgramState) -> None:
    """Give a program's predictors the prompts, demonstrations and settings of a saved state.

    Raises:
        ValueError: if the state belongs to other predictors; names the first that differs.
    """
    predictors = dict(program.named_predictors())
    for name in sorted({*predictors, *state}):
        if name not in state or name not in predictors:
            raise ValueError(f"{name} is {'missing' if name in predictors else f'no predictor of {program.name}'}")
        fields = len(state[name].signature.fields)
        if fields != len(predictors[name].signature.fields):
            raise ValueError(f"{name} has {len(predictors[name].signature.fields)} fields, and not {fields}")
    check_demonstrations(program, {name: part.demos for name, part in state.items()})
    program.load_state(
        {
            name: {"signature": part.signature.model_dump(), "demos": list(map(dspy.Example, part.demos)), "lm": None}
            for name, part in state.items()
        }
    )
    for name, predictor in program.named_predictors():
        predictor.update_config(**state[name].config.model_dump(exclude_none=True))


def members_of(program: Program) -> list[Program]:
    """Return the programs that this one is made of; itself, if it is not composed."""
    return program.members if isinstance(program, Composed) else [program]


def compiled_state(program: Program) -> CompiledState:
    """Return the whole state of a compiled program.

    Raises:
        QuestreeError: if a demonstration holds what JSON cannot.
    """
    content: dict[str, Any] = {
        "form": program.form if isinstance(program, Composed) else "single",
        "members": [state_of(member) for member in members_of(program)],
    }
    if isinstance(program, NearestDemonstrations):
        lessons = [lesson.model_dump(mode="json") for lesson in program.lessons]
        content |= {"lessons": json.loads(to_json(lessons)), "k": program.k}
    return CompiledState.model_validate(content)


def check_demonstrations(program: Program, demonstrations: Demonstrations) -> None:
    """Check that demonstrations are those of the program's predictors, and that DSPy can write them into a prompt.

    Raises:
        ValueError: if one belongs to another predictor, or has a list or an object where its signature has a text.
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
    saved: dict[str, Any] = {}
    for setting, value in config.items():
        try:
            saved |= LMSettings(**{setting: value}).model_dump(exclude_none=True)
        except ValidationError:
            logger.warning("The setting %s of %s is not saved.", setting, name)
    return saved
