"""The settings of a command: from its options, the environment, and a TOML file, in that order."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from .common.errors import QuestreeError, did_you_mean
from .common.files import cache_folder
from .lm.limits import Limits, RunPolicy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=BaseModel)

CONFIG_FILE = Path("questree.toml")
# MLflow's own variables, as they were at the start: MLflow writes the first one itself later on.
MLFLOW_STORE = os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"
MLFLOW_EXPERIMENT = os.environ.get("MLFLOW_EXPERIMENT_NAME") or "questree"


class RunSettings(RunPolicy, BaseSettings):
    """What a run is made of, and its policy.

    A setting is one field, here or in `RunPolicy`. Its option (``--api-base``), whose help stands under the field, its
    variable (``QUESTREE_API_BASE``), its key in a TOML file (``api_base``) and the keyword of `run_settings` follow.
    """

    model_config = SettingsConfigDict(env_prefix="QUESTREE_", extra="ignore", frozen=True)

    program: str = "searchain"
    """Program that is meant where none is named."""
    task: str = "mini"
    """Task by name, package:name, or a file of questions (JSONL, JSON, CSV, Parquet)."""
    split: str = "dev"
    """train, dev or test, or several: dev,test."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many questions, a seeded sample. Default: all."""
    leave_out: Path | None = None
    """File with an id of a question on each line: they are not asked (`questree audit`)."""
    seed: int = 0
    """Seed of every random choice."""
    lm: str = "simulated"
    """A DSPy model name, 'simulated', or 'recorded:FILE'."""
    api_base: str | None = None
    """Address of an OpenAI-compatible server, ending in /v1. Default: what DSPy knows of the model."""
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["none"] = 0.0
    """Temperature that the LM replies at; 0 is greedy decoding, and none sends no temperature. What a program samples
    has its own."""
    reply_tokens: int | None = Field(default=None, ge=1)
    """Tokens that a reply of the LM may have. Default: 4,096, or 16,000 of a model that is known to reason."""
    adapter: Literal["chat", "json", "xml", "baml"] = "chat"
    """DSPy's adapter, which gives prompts and replies their form: chat, json, xml or baml."""
    retriever: str | None = None
    """Folder of an index (`questree index`), http://host:port of a server (`questree serve-retriever`),
    qdrant://host:port/collection, package:name, or several joined by +, fused by rank. Default, for mini and
    mini-lists: their own index."""
    rerank: str | None = None
    """What puts the 50 best passages of each search into its order: 'lm', a cross-encoder by name or folder, or
    colbert: and a ColBERT checkpoint."""
    reader: str = "lm"
    """'lm', a folder of `questree calibrate-reader`, package:name, or a DPR reader's name."""
    duplicates: str = "exact"
    """How to tell that a query repeats another: 'exact' (by its words), 'retriever', a cross-encoder by name
    or folder, or package:name."""
    defence: Literal["none", "agreement", "reader"] = "none"
    """Leave out passages that look planted: none, agreement (they repeat the question, or one another) or reader (a
    trained --reader finds no answer in them)."""
    allow_code: str | None = None
    """Programs of other packages that a file may name, as package:name; several with commas."""
    allow_changed_signatures: bool = False
    """Load a compiled program although prompts in the code have changed since; its own are used."""
    tracking_uri: str = MLFLOW_STORE
    """MLflow's tracking URI, or 'none'."""
    experiment: str = Field(default=MLFLOW_EXPERIMENT, min_length=1)
    """MLflow's experiment of the runs."""
    out: Path | None = None
    """Folder to write. Default: one under runs/ or readers/."""

    @field_validator("retriever", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, Path) else value

    @property
    def policy(self) -> RunPolicy:
        """Return the part that is kept with a run and says how it asks its questions."""
        return RunPolicy(**{name: getattr(self, name) for name in RunPolicy.model_fields})

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of settings, the strongest first: options, environment, file."""
        return init_settings, env_settings, _SettingsFile(settings_cls, init_settings().get("config"))


class _SettingsFile(TomlConfigSettingsSource):
    """A TOML file whose unknown keys are mistakes, and which acts only if somebody has named it once.

    Args:
        named: the file that the user named; None for that of the working folder, which may have come with the folder.
    """

    def __init__(self, settings_cls: type[BaseSettings], named: Path | None):
        self._named, self._digest = named, ""
        super().__init__(settings_cls, toml_file=named or CONFIG_FILE)

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        content = file_path.read_bytes()
        self._digest = hashlib.sha256(f"{file_path.resolve()}\n".encode() + content).hexdigest()
        return tomllib.loads(content.decode())

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        unknown = set(self.toml_data) - set(self.settings_cls.model_fields)
        if unknown:
            known = ", ".join(self.settings_cls.model_fields)
            raise QuestreeError(f"{self.toml_file_path}: unknown settings {', '.join(sorted(unknown))}; known: {known}")
        used = [key for key in found if key not in self.current_state]
        if acting := [key for key in (found if self._named else used) if _acts(key, found[key])]:
            self._check_consent(acting)
        if used and not self._named and self._digest not in _told:
            _told.add(self._digest)
            logger.warning("%s of this folder sets %s.", CONFIG_FILE, ", ".join(used))
        return found

    def _check_consent(self, acting: list[str]) -> None:
        """Remember a file that the user named, and refuse one that was never named as it is now."""
        consent = cache_folder() / "trusted-settings" / self._digest
        if self._named:
            with suppress(OSError):  # then it has to be named each time
                consent.parent.mkdir(parents=True, exist_ok=True)
                consent.touch()
        elif not consent.exists():
            raise QuestreeError(
                f"{CONFIG_FILE} of this folder sets {', '.join(acting)}: that can run code, or send your questions and "
                f"keys to others. Read the file. If you trust it, name it once: --config {CONFIG_FILE}. That is "
                "remembered until the file changes."
            )


_told = set[str]()


def _acts(key: str, value: Any) -> bool:
    """Return whether a setting may run code, or say who gets questions and keys: an address, or ``package:name``."""
    return key in ("api_base", "allow_code") or (key == "lm" and value != "simulated") or ":" in str(value)


def run_settings(config: Path | None = None, **given: Any) -> RunSettings:
    """Return the settings of a command.

    Args:
        config: a TOML file; ``questree.toml`` in the working folder where None, if there is one.
        given: what the user typed; None counts as not given.
    """
    if config is not None and not config.is_file():
        raise QuestreeError(f"No settings file at {config}.")
    _warn_of_mistyped_variables()
    try:
        return as_model(RunSettings, given | {"config": config})
    except ValueError as error:  # tomllib's
        raise QuestreeError(f"{config or CONFIG_FILE} is no TOML file: {error}") from None


def as_model(model: type[Model], given: dict[str, Any]) -> Model:
    """Return a model of what the user typed; None counts as not given."""
    try:
        return model(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')} (got {e['input']!r})"
            for e in error.errors()
        ]
        raise QuestreeError(f"These settings do not fit: {'; '.join(faults)}") from None


GROUPS = {
    "LM": "lm api_base temperature reply_tokens adapter",
    "LIMITS": " ".join(Limits.model_fields),
    "BUDGET": "max_calls max_tokens max_cost",
    "PARTS": "retriever rerank reader duplicates defence",
    "CODE": "allow_code allow_changed_signatures",
    "TRACKING": "tracking_uri experiment",
}
"""Settings that a command takes together, by a word for all of them."""


def chosen(words: str) -> list[str]:
    """Return the names of settings: those that are named, by themselves or by their group, in the order of the help.

    Args:
        words: names and groups; after a minus those that are left out; empty for every setting.
    """
    named = {name for word in words.split() for name in GROUPS.get(word, word).split()}
    named = named if words and words[0] != "-" else {*RunSettings.model_fields} - named
    every = sorted(RunSettings.model_fields, key=RunPolicy.model_fields.__contains__)  # what is run before how
    return [name for name in every if name in named and name != "program"]  # commands have an argument for it


def read_value(text: str) -> Any:
    """Return a typed value: what the text means as JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


_OTHER_VARIABLES = {"cache", "data", "token"}


def _warn_of_mistyped_variables() -> None:
    """Warn of variables that are no setting and have nearly the name of one: a budget of that name bounds nothing."""
    prefix = str(RunSettings.model_config["env_prefix"])
    for name in (variable.removeprefix(prefix) for variable in os.environ if variable.startswith(prefix)):
        known = name.lower() in {*RunSettings.model_fields, *_OTHER_VARIABLES}
        if not known and (meant := did_you_mean(name.lower(), RunSettings.model_fields)):
            logger.warning("%s%s is no setting, and is not read.%s", prefix, name, meant)
