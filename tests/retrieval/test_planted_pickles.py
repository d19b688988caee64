"""A pickle in any file of an index, with all checksums put right, does not run, whatever else comes of it."""

import pickle
import shutil
from pathlib import Path

import numpy
import pytest
import torch
from bomb import Bomb
from manifests import rewrite_manifest

from questree.common.files import file_hash
from questree.retrieval import load_index
from questree.retrieval.indexes.contents import NAME


def as_pickle(bomb: Bomb, file: Path) -> None:
    file.write_bytes(pickle.dumps(bomb))


def as_tensors(bomb: Bomb, file: Path) -> None:
    torch.save({"weights": bomb}, file)


def as_array(bomb: Bomb, file: Path) -> None:
    with file.open("wb") as opened:
        numpy.save(opened, numpy.array([bomb], dtype=object), allow_pickle=True)


def put_right(folder: Path, file: Path) -> None:
    name = file.relative_to(folder).as_posix()
    now = {"bytes": file.stat().st_size, "sha256": file_hash(file)}
    rewrite_manifest(folder, lambda manifest: manifest["files"][name].update(now))


@pytest.fixture(params=["bm25", "exact", "colbert", "rerank", "dense"])
def index(request, index_of):
    return index_of(request.param)


@pytest.mark.parametrize(("plant", "files"), [(as_pickle, "*"), (as_tensors, "*.pt"), (as_array, "*.npy")])
def test_a_planted_pickle_does_not_run(plant, files, index, tmp_path):
    """A pickle as such stands in any file, one in torch's or numpy's format in files that those read."""
    folder = Path(shutil.copytree(index, tmp_path / "index"))
    planted = sorted(path for path in folder.rglob(files) if path.is_file() and path.name != NAME)
    if not planted:
        pytest.skip("it holds no such file")
    refused = 0
    for file in planted:
        genuine = file.read_bytes()
        plant(Bomb(tmp_path / "went-off"), file)
        put_right(folder, file)
        try:
            load_index(folder)("amber basin", k=3)
        except Exception:  # what it should be was sealed, and whoever forges that is owed no explanation
            refused += 1
        assert not (tmp_path / "went-off").exists()
        file.write_bytes(genuine)
        put_right(folder, file)
    assert refused > 0
    assert load_index(folder)("amber basin", k=3)
