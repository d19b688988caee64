"""Loading a transformers model by name or folder, with an error that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..common.errors import CheckpointError


def load_model(model_class: str, name: str | Path, *, device: str | None = None) -> tuple[Any, Any, str]:
    """The model (in evaluation mode), its fast tokenizer, and the device that it is on.

    Args:
        model_class: of transformers, such as ``DPRReader``.
        name: a folder, or a name on the hub (then it is downloaded once).
        device: ``cuda``, ``cpu``; by default the GPU where there is one.

    Raises:
        CheckpointError: it cannot be found, fetched or loaded, or it is a model of another kind.
    """
    import torch
    import transformers

    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    local = Path(name).expanduser().is_dir()
    try:
        with _quiet():
            found = {"local_files_only": local, "trust_remote_code": False}
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(name), **found)
            model, weights = getattr(transformers, model_class).from_pretrained(
                str(name), output_loading_info=True, **found
            )
    except Exception as problem:  # transformers and the hub raise many kinds, all meaning that it is not to be had
        raise CheckpointError(
            f"{name} cannot be loaded as a {model_class} ({type(problem).__name__}: "
            f"{str(problem).strip().splitlines()[0] if str(problem).strip() else 'no reason given'}). "
            "Name a local folder, or a model on the hub that can be reached."
        ) from problem
    # transformers draws what is missing at random and goes on; a pooler alone, which nothing here uses, may be missing
    if missing := sorted(key for key in weights["missing_keys"] if "pooler" not in key):
        raise CheckpointError(f"{name} is no {model_class}: it has no weights for {missing[0]}. Name another model.")
    return model.to(chosen).eval(), tokenizer, chosen


@contextmanager
def _quiet() -> Iterator[None]:
    """No bars, and no report of weights that this class leaves out: both would stand between a command's own lines."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
