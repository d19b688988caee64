"""Loading runs no code, notices any changed byte, and uses no address or key that stands in what is loaded."""

import hashlib
import json
import pickle
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import dspy
import pytest
from bomb import Bomb
from reliability.corruption import corrupt
from tiny_world import PASSAGES, QUESTIONS, SURE

from questree.common.errors import CheckpointError, QuestreeError
from questree.common.manifests import checksum_of
from questree.lm.kept_replies import use_lm_cache
from questree.optimize import load, save
from questree.programs import build
from questree.retrieval import DPRReader, build_index, load_index
from questree.retrieval.late_interaction.checkpoint import late_checkpoint
from questree.retrieval.late_interaction.encoder import Encoder
from questree.settings import RunSettings
from questree.simulate import simulated_lm


@pytest.fixture
def bomb(tmp_path):
    """The pickle, and where it would leave its trace."""
    went_off = tmp_path / "went-off"
    yield pickle.dumps(Bomb(went_off))
    assert not went_off.exists()


def test_the_bomb_goes_off_where_it_is_unpickled(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "went-off")))
    assert (tmp_path / "went-off").exists()


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build_index(list(PASSAGES.values()), tmp_path_factory.mktemp("index") / "bm25", kind="bm25")


@pytest.fixture
def artifact(tmp_path, index):
    return save(build("searchain", {}, retriever=load_index(index)), tmp_path / "program")


def test_a_changed_byte_of_an_artifact_or_an_index_is_noticed(artifact, index, tmp_path):
    copy = Path(shutil.copytree(index, tmp_path / "copy"))
    for folder, reload in (
        (artifact, lambda: load(artifact, retriever=load_index(index))),
        (copy, lambda: load_index(copy)),
    ):
        found = corrupt(folder, 6, 1, reload)
        assert len(found.tried) == len([path for path in folder.rglob("*") if path.is_file()])
        assert found.wrong == []
        reload()


def test_a_pickle_beside_an_artifact_or_in_its_place_is_not_loaded(artifact, index, bomb):
    for name in ("program.pkl", "program.pickle", "metadata.json.pkl"):
        (artifact / name).write_bytes(bomb)
    load(artifact, retriever=load_index(index))
    (artifact / "questree.json").write_bytes(bomb)
    with pytest.raises(QuestreeError):
        load(artifact, retriever=load_index(index))


@pytest.mark.parametrize("kind", ["reader", "checkpoint"])
def test_weights_that_are_pickled_and_code_in_a_model_folder_do_not_run(kind, tmp_path, bomb):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(bomb)
    code = f"import os\nos.mkdir({str(tmp_path / 'went-off')!r})\nclass Config: pass\nclass Model: pass\n"
    (folder / "custom.py").write_text(code)
    config = {
        "model_type": "evil",
        "architectures": ["DPRReader"],
        "auto_map": {
            "AutoConfig": "custom.Config",
            "AutoModel": "custom.Model",
            "AutoTokenizer": ["custom.Model", None],
        },
    }
    for model_type in ("evil", "dpr", "bert", "bert without code"):
        named = {} if model_type.endswith("code") else config
        (folder / "config.json").write_text(json.dumps(named | {"model_type": model_type.split()[0]}))
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
        with pytest.raises(CheckpointError):
            DPRReader.load(folder) if kind == "reader" else Encoder.load(late_checkpoint(folder))


@pytest.mark.parametrize("sealed", [False, True])
def test_a_pickle_in_the_lm_cache_is_not_loaded(sealed, tmp_path, monkeypatch, bomb):
    monkeypatch.setenv("QUESTREE_CACHE", str(tmp_path / "cache"))
    settings = RunSettings()

    def ask():
        use_lm_cache(settings.api_base)
        with dspy.context(lm=simulated_lm(QUESTIONS, SURE), adapter=None):
            return build("direct", {})(question=QUESTIONS[0].question).answer

    answer = ask()
    (store,) = (tmp_path / "cache").rglob("replies.db")
    with closing(sqlite3.connect(store)) as rows, rows:
        for (key,) in rows.execute("SELECT key FROM replies").fetchall():
            seal = hashlib.sha256(key.encode() + b"\0" + bomb).digest()  # whoever plants it can reckon it as well
            rows.execute("UPDATE replies SET reply = ? WHERE key = ?", (seal + bomb if sealed else bomb, key))
        assert rows.total_changes
    assert ask() == answer


def test_an_address_in_a_manifest_is_shown_and_never_used(artifact, index):
    manifest = json.loads((artifact / "questree.json").read_text())
    manifest["lm"] = {"name": "openai/evil", "api_base": "http://127.0.0.1:9/v1"}
    (artifact / "questree.json").write_text(json.dumps(manifest | {"checksum": checksum_of(manifest)}))
    loaded = load(artifact, retriever=load_index(index))
    assert all(predictor.lm is None for predictor in loaded.predictors())
    with dspy.context(lm=simulated_lm(QUESTIONS, SURE, cache=False), adapter=None):
        assert loaded(question=QUESTIONS[0].question).failure is None
