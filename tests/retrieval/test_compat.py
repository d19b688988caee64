"""What colbert-ai's extensions need of their surroundings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from questree.retrieval.late_interaction.compat import _own_extensions_folder, colbert_ready, load_extensions


def test_a_lock_that_a_killed_compilation_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path))
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    with _own_extensions_folder():
        left = Path(os.environ["TORCH_EXTENSIONS_DIR"]) / "some_cpp" / "lock"
        left.parent.mkdir()
        left.touch()
    assert "TORCH_EXTENSIONS_DIR" not in os.environ
    with _own_extensions_folder():
        assert not left.exists()


def test_a_folder_that_the_user_names_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    (tmp_path / "some_cpp").mkdir()
    (tmp_path / "some_cpp" / "lock").touch()
    with _own_extensions_folder():
        assert os.environ["TORCH_EXTENSIONS_DIR"] == str(tmp_path)
    assert (tmp_path / "some_cpp" / "lock").exists()
    assert not (tmp_path / "torch_extensions").exists()


def test_the_sources_are_compiled_as_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with colbert_ready():
        from colbert.modeling.colbert import ColBERT
        from colbert.search.index_storage import IndexScorer
        from colbert.search.strided_tensor import StridedTensor

    for user in (ColBERT, IndexScorer, StridedTensor):
        monkeypatch.setattr(user, "loaded_extensions", True, raising=False)
        monkeypatch.delattr(user, "loaded_extensions")
        monkeypatch.setattr(user, "try_load_torch_extensions", lambda on_gpu: pytest.fail("one compiled on its own"))
    functions = [(ColBERT, "segmented_maxsim"), (StridedTensor, "segmented_lookup")]
    functions += [(IndexScorer, "filter_pids"), (IndexScorer, "decompress_residuals")]
    for user, name in functions:
        monkeypatch.setattr(user, name, None, raising=False)
    load_extensions()
    assert all(callable(getattr(user, name)) for user, name in functions)
    rows = torch.arange(10.0).view(5, 2)
    found = StridedTensor.segmented_lookup(rows, torch.tensor([0, 1]), torch.tensor([2, 1]), torch.tensor([0, 4]))
    assert torch.equal(found, rows[[0, 1, 4]])
