"""The manifest of a reader: its model, its threshold, and what that was chosen on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..common.errors import CheckpointError, QuestreeError
from ..common.files import replacing
from ..common.json_files import validate
from ..common.manifests import ManifestKind

FORMAT = 1
_KIND = ManifestKind("calibrated reader", FORMAT, "calibrate anew", error=CheckpointError)


class ReaderManifest(BaseModel):
    """The manifest of a reader with a threshold, a JSON file that is written last.

    Attributes:
        format: of this file.
        kind: ``dpr``, in DPR's published layout; ``lm``, the LM itself, for its threshold: ``model`` is the LM that was
            calibrated.
        model: where the model is, if not in this folder.
        threshold: None until it is calibrated.
        calibration: what the threshold was chosen on, and its scores there.
        window: how many tokens of query, title and text it reads.
        longest_answer: the most tokens of a span.
    """

    model_config = ConfigDict(frozen=True)

    FILE: ClassVar[str] = "questree-reader.json"

    format: int = FORMAT
    kind: Literal["dpr", "lm"]
    model: str | None = None
    threshold: float | None = None
    calibration: dict[str, Any] = {}
    window: int = Field(default=350, ge=1, le=1 << 20)
    longest_answer: int = Field(default=10, ge=1, le=1 << 20)


def folder_of(name: str | Path) -> Path | None:
    """Return the folder that a name stands for, or None: ``lm`` is the LM wherever it is typed, ``./lm`` a folder."""
    folder = Path(name).expanduser()
    return folder if name != "lm" and folder.is_dir() else None


def stored(name: str | Path) -> ReaderManifest | None:
    """Return the manifest of a folder, or None if the name is no folder, or one without such a manifest."""
    folder = folder_of(name)
    if folder is None or not (file := folder / ReaderManifest.FILE).is_file():
        return None
    return _KIND.read(file, lambda content: validate(ReaderManifest, content))


def store(folder: Path, manifest: ReaderManifest) -> None:
    """Write a manifest; it is there whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / manifest.FILE) as unfinished:
            unfinished.write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as problem:
        raise QuestreeError(f"{folder} cannot be written: {problem.strerror}; choose another folder.") from problem
