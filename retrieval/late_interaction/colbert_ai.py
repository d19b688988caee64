"""What colbert-ai 0.2.22 needs to be dependable here: a private process state, silence, and nothing to compile.

All of colbert-ai is imported inside `colbert_ready`. Only PLAID uses it.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import threading
import warnings
from collections.abc import Iterator

import numpy as np
import torch

logger = logging.getLogger(__name__)

_SET_BY_COLBERT = ("TOKENIZERS_PARALLELISM", "CUDA_VISIBLE_DEVICES", "TORCH_FORCE_WEIGHTS_ONLY_LOAD")
_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def colbert_ready() -> Iterator[None]:
    """Import colbert-ai; what it changes in the process is undone when the block ends.

    Inside the block tensors load without unpickling, and colbert-ai's prints go to the debug log. One thread at a time.
    """
    with _one_at_a_time, _kept_state(), _quiet():
        os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
        _import()
        yield


@functools.cache
def _import() -> None:
    """Import colbert-ai, and give it torch's functions for the C++ and CUDA that it would compile for minutes."""
    import multiprocessing

    method = multiprocessing.get_start_method(allow_none=True)
    from colbert.indexing.codecs.residual import ResidualCodec
    from colbert.search.index_storage import IndexScorer
    from colbert.search.strided_tensor import StridedTensor

    multiprocessing.set_start_method(method, force=True)
    for user in (ResidualCodec, IndexScorer, StridedTensor):
        user.loaded_extensions = True
    StridedTensor.segmented_lookup = staticmethod(looked_up)
    ResidualCodec.decompress_residuals = staticmethod(decompressed)


def looked_up(rows: torch.Tensor, _: object, lengths: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """Return the runs of rows that begin at these offsets, one after the other."""
    moved = offsets - (lengths.cumsum(0) - lengths)
    return rows.index_select(0, torch.arange(int(lengths.sum())) + moved.repeat_interleave(lengths))


def decompressed(
    residuals: torch.Tensor,
    weights: torch.Tensor,
    reversed_bits: torch.Tensor,
    buckets: torch.Tensor,
    codes: torch.Tensor,
    centroids: torch.Tensor,
    *_: object,
) -> torch.Tensor:
    """Return the (rows, dim) that codes and packed residuals stand for, before they are normalised.

    Args:
        residuals: (rows, bytes) uint8.
        weights: (buckets,) what each bucket of a residual stands for.
        reversed_bits, buckets: (256,) and (256, 8 / nbits): which buckets a byte names.
        codes: (rows,) the numbers of centroids.
        centroids: (centroids, dim).
    """
    meanings = weights[buckets[reversed_bits.long()].long()].squeeze(1)  # of one number a byte torch selects faster
    found = meanings.index_select(0, residuals.flatten().int()).view(len(residuals), -1)
    return centroids.index_select(0, codes.int()).add_(found)


@contextlib.contextmanager
def _kept_state() -> Iterator[None]:
    """Restore environment, random generators and warnings, whatever happens in the block."""
    import random

    environment = {name: os.environ.get(name) for name in _SET_BY_COLBERT}
    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)
        for name, value in environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Send colbert-ai's prints and progress bars to the debug log."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            yield
    finally:
        if text := printed.getvalue().strip():
            logger.debug("colbert-ai: %s", text)
