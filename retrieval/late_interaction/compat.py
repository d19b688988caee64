"""What colbert-ai 0.2.22 needs to be dependable here: a private process state, quiet, its C++ compiled once.

All of colbert-ai is imported inside `colbert_ready`. Only PLAID uses it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import io
import logging
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...common.caches import cache_folder
from ...common.errors import QuestreeError
from ...common.files import in_turn

logger = logging.getLogger(__name__)

_CPP_SOURCES = {  # the module that each defines, which holds one function of the same name
    "segmented_maxsim_cpp": "modeling/segmented_maxsim.cpp",
    "filter_pids_cpp": "search/filter_pids.cpp",
    "decompress_residuals_cpp": "search/decompress_residuals.cpp",
    "segmented_lookup_cpp": "search/segmented_lookup.cpp",
}
_SET_BY_COLBERT = ("TOKENIZERS_PARALLELISM", "CUDA_VISIBLE_DEVICES", "TORCH_FORCE_WEIGHTS_ONLY_LOAD")
_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def colbert_ready() -> Iterator[None]:
    """Import colbert-ai; what it changes in the process is undone when the block ends.

    Inside the block tensors load without unpickling, and colbert-ai's prints go to the debug log. One thread at a time.
    """
    with _one_at_a_time, _kept_environment(), _quiet():
        os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
        _import()
        yield


@functools.cache
def _import() -> None:
    import multiprocessing

    method = multiprocessing.get_start_method(allow_none=True)
    import colbert.indexing.collection_indexer
    import colbert.search.index_storage  # noqa: F401

    multiprocessing.set_start_method(method, force=True)


@contextlib.contextmanager
def _kept_environment() -> Iterator[None]:
    """Restore environment, random generators and warnings, whatever happens in the block."""
    import random

    import numpy as np
    import torch

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


def load_extensions() -> None:
    """Load colbert-ai's C++ (on a GPU, CUDA) extensions; they are compiled once for each machine, and torch keeps them.

    Raises:
        QuestreeError: if there is no C++ compiler, or it fails.
    """
    import torch

    _put_ninja_on_path()
    if not any(shutil.which(compiler) for compiler in (os.environ.get("CXX", "c++"), "c++", "g++", "clang++")):
        raise QuestreeError(
            "PLAID search needs a C++ compiler and none is found. Install one (Debian: apt install g++; macOS: "
            "xcode-select --install), or use exact search, which needs none: --kind exact."
        )
    with colbert_ready():
        from colbert.indexing.codecs.residual import ResidualCodec
        from colbert.modeling.colbert import ColBERT
        from colbert.search.index_storage import IndexScorer
        from colbert.search.strided_tensor import StridedTensor

        on_gpu = torch.cuda.is_available()
        if hasattr(ResidualCodec if on_gpu else StridedTensor, "loaded_extensions"):
            return
        logger.info("Loading colbert-ai's C++ extensions; the first time they are compiled (a minute or two).")
        try:
            with _own_extensions_folder():
                if on_gpu:
                    ResidualCodec.try_load_torch_extensions(on_gpu)
                    return
                functions = _compiled_together()
                ColBERT.segmented_maxsim = functions["segmented_maxsim_cpp"]
                IndexScorer.filter_pids = functions["filter_pids_cpp"]
                IndexScorer.decompress_residuals = functions["decompress_residuals_cpp"]
                StridedTensor.segmented_lookup = functions["segmented_lookup_cpp"]
                for user in (ColBERT, IndexScorer, StridedTensor):
                    user.loaded_extensions = True
        except (RuntimeError, OSError, ImportError) as problem:
            raise QuestreeError(
                f"colbert-ai's C++ extensions could not be compiled: {str(problem).strip().splitlines()[0]} "
                "Mend the compiler, or use exact search, which needs none: --kind exact."
            ) from problem


def _compiled_together() -> dict[str, Any]:
    """Compile colbert-ai's C++ sources as one file; return the function of each module.

    Nearly all of a compilation is torch's headers: four sources on their own take 180 seconds, together 50.
    """
    import colbert
    from torch.utils.cpp_extension import load_inline

    folder = Path(colbert.__file__).parent
    together = "".join(
        f'#undef TORCH_EXTENSION_NAME\n#define TORCH_EXTENSION_NAME {name}\n#include "{folder / source}"\n'
        for name, source in _CPP_SOURCES.items()
    )
    library = load_inline("plaid_cpp", [f"{together}PYBIND11_MODULE(plaid_cpp, m) {{}}\n"], extra_cflags=["-O3"])
    functions = {}
    for name in _CPP_SOURCES:
        spec = importlib.util.spec_from_file_location(name, library.__file__)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        functions[name] = getattr(module, name)
    return functions


@contextlib.contextmanager
def _own_extensions_folder() -> Iterator[None]:
    """Set the folder of compiled extensions: one for each environment, unless ``TORCH_EXTENSIONS_DIR`` names one.

    In torch's own folder two environments overwrite each other's, and a killed compilation leaves a lock there for
    which every later one waits for ever. In ours, a lock that dies with its process lets one process in at a time.
    """
    if "TORCH_EXTENSIONS_DIR" in os.environ:
        yield
        return
    import torch

    environment = hashlib.sha256(f"{sys.prefix} {torch.__version__}".encode()).hexdigest()[:12]
    folder = cache_folder() / "torch_extensions" / environment
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TORCH_EXTENSIONS_DIR"] = str(folder)
    try:
        with in_turn(folder / "questree.lock", "compiling PLAID's search"):
            for left_behind in folder.glob("*/lock"):
                left_behind.unlink()
            yield
    finally:
        del os.environ["TORCH_EXTENSIONS_DIR"]


def _put_ninja_on_path() -> None:
    """Find ``ninja`` beside the interpreter or in its package, for a virtual environment that is not activated."""
    if shutil.which("ninja"):
        return
    places = [Path(sys.executable).parent]
    spec = importlib.util.find_spec("ninja")
    if spec and spec.origin:
        places.append(Path(spec.origin).parent / "data" / "bin")
    for place in places:
        if shutil.which("ninja", path=str(place)):
            os.environ["PATH"] = os.pathsep.join([str(place), os.environ.get("PATH", "")])
            return
    raise QuestreeError("PLAID search needs `ninja` and it is not found. Install it: pip install ninja")
