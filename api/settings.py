"""The settings that every command shares: from the command line, the environment, and a TOML file, in that order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from .common.errors import QuestreeError

CONFIG_FILE = Path("questree.toml")


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


class RunSettings(BaseSettings):
    """What a run is made of. Each is an option (``--api-base``), a variable (``QUESTREE_API_BASE``) and a TOML key.

    Attributes:
        task: a task's name, or a JSONL file of questions.
        split: train, dev or test.
        limit: at most so many questions, a seeded sample; None takes all.
        seed: of every random choice.
        lm: a DSPy model name, ``simulated``, or ``recorded:FILE``.
        api_base: address of an OpenAI-compatible server for the LM.
        reply_tokens: room for a reply; None leaves it to the model.
        window: tokens that a prompt and its reply may have together; None takes what DSPy knows of the model.
        timeout: seconds that one LM request may take.
        retries: of an LM request that the server turned away (429, 5xx) or did not answer.
        deadline: seconds that a question may take.
        retriever: folder of an index, ``http://host:port`` of a retriever server, or several of these joined by ``+``.
        reader: ``lm``, the folder of a reader, or the name of a DPR reader.
        duplicates: tells repeated queries: ``exact``, ``retriever``, a cross-encoder, or a calibrated one's folder.
        defence: leaves out passages that look planted; one of `questree.retrieval.defences.DEFENCES`.
        concurrency: questions that are answered at the same time.
        max_failures: the run stops when more questions than this have failed; None for never.
        max_calls, max_tokens, max_cost: budget of the run, of all programs together; what stands from `window` on is
            one policy, kept with the run (`questree.optimize.RunPolicy`, which also has the defaults).
        tracking_uri: where MLflow keeps its runs; ``none`` for no tracking.
        out: folder that the command writes.
    """

    model_config = SettingsConfigDict(env_prefix="QUESTREE_", extra="ignore", frozen=True)

    task: str = "mini"
    split: str = "dev"
    limit: int | None = Field(default=None, ge=1)
    seed: int = 0
    lm: str = "simulated"
    api_base: str | None = None
    reply_tokens: int | None = Field(default=None, ge=1)
    window: int | None = Field(default=None, ge=1)
    timeout: float | None = Field(default=None, gt=0)
    retries: int | None = Field(default=None, ge=0)
    deadline: float | None = Field(default=None, gt=0)
    retriever: Annotated[str, BeforeValidator(_as_text)] | None = None
    reader: str = "lm"
    duplicates: str = "exact"
    defence: Literal["none", "agreement", "reader"] = "none"
    concurrency: int = Field(default=4, ge=1)
    max_failures: int | None = Field(default=None, ge=0)
    max_calls: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    tracking_uri: str = "sqlite:///mlflow.db"
    out: Path | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line before environment before file."""
        return init_settings, env_settings, _file_settings(settings_cls, init_settings)


def _file_settings(cls: type[BaseSettings], given: PydanticBaseSettingsSource) -> TomlConfigSettingsSource:
    config = given().get("config") or CONFIG_FILE
    return _KnownKeys(cls, toml_file=config)


class _KnownKeys(TomlConfigSettingsSource):
    """A TOML file whose unknown keys are mistakes, not decoration."""

    def __call__(self) -> dict[str, Any]:
        found = super().__call__()
        unknown = set(self.toml_data) - set(self.settings_cls.model_fields)
        if unknown:
            known = ", ".join(self.settings_cls.model_fields)
            raise QuestreeError(f"{self.toml_file_path}: unknown settings {', '.join(sorted(unknown))}; known: {known}")
        return found


def run_settings(config: Path | None = None, **given: Any) -> RunSettings:
    """The settings of a command.

    Args:
        config: a TOML file; ``questree.toml`` in the working folder where None, if there is one.
        given: what the user typed; None counts as not given.

    Raises:
        QuestreeError: if the file is missing or no TOML, or a value does not fit; says which and why.
    """
    if config is not None and not config.is_file():
        raise QuestreeError(f"No settings file at {config}.")
    typed: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if config is not None:
        typed["config"] = config
    try:
        return RunSettings(**typed)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']} (got {e['input']!r})" for e in error.errors())
        raise QuestreeError(f"These settings do not fit: {problems}") from None
    except ValueError as error:  # tomllib's
        raise QuestreeError(f"{config or CONFIG_FILE} is no TOML file: {error}") from None
