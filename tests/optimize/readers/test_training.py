"""A reader is trained, interrupted, gone on with, and read with, on encoders of a few thousand weights."""

import json
from dataclasses import replace

import pytest
from reliability.tiny_encoders import KINDS, save_encoder
from safetensors.torch import load_file

from questree.common.errors import CheckpointError, QuestreeError
from questree.evaluation.identity import reader_facts
from questree.optimize.readers import TrainingSettings, leave_out_seen, pairs_of, train_reader
from questree.programs import SearChain
from questree.retrieval import DPRReader, Passage

SHORT = TrainingSettings(epochs=3, batch_size=3, negatives=2, learning_rate=1e-3, window=48, checkpoint_every=2, seed=5)


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, other):
    assert one.keys() == other.keys()
    return all((one[name] == other[name]).all() for name in one)


def train(examples, encoder, out, settings=SHORT, **how):
    return train_reader(examples, pairs_of(examples), out, encoder=str(encoder), settings=settings, **how)


@pytest.fixture(scope="module")
def whole(examples, encoder, tmp_path_factory):
    """A training without interruption: nine steps."""
    out = tmp_path_factory.mktemp("whole")
    trained = train(examples, encoder, out)
    assert (trained.step, trained.steps, trained.finished) == (9, 9, True)
    return trained


def test_an_interrupted_training_ends_with_the_same_weights(examples, encoder, whole, tmp_path):
    def kill(progress):
        if progress.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(examples, encoder, tmp_path, on_progress=kill)
    steps = []
    again = train(examples, encoder, tmp_path, on_progress=lambda progress: steps.append(progress.step))
    assert steps == list(range(5, 10))  # from the checkpoint of step 4
    assert again.finished
    assert again.history == whole.history
    assert same(weights(tmp_path), weights(whole.folder))
    manifests = [json.loads((folder / "questree-reader.json").read_text()) for folder in (tmp_path, whole.folder)]
    assert manifests[0] == manifests[1]


def test_another_seed_gives_other_weights(examples, encoder, whole, tmp_path):
    settings = SHORT.model_copy(update={"seed": 6})
    train(examples, encoder, tmp_path, settings)
    assert not same(weights(tmp_path), weights(whole.folder))


def test_a_reader_is_written_through_no_link(examples, encoder, tmp_path):
    (tmp_path / "victim").write_text("precious")
    for file in ("config.json", "tokenizer.json", ".questree-reader.json.unfinished"):
        (tmp_path / file).symlink_to(tmp_path / "victim")
    settings = SHORT.model_copy(update={"epochs": 1})
    train(examples, encoder, tmp_path, settings)
    assert (tmp_path / "victim").read_text() == "precious"
    assert DPRReader.load(str(tmp_path))


def test_a_finished_training_does_nothing_more(examples, encoder, whole):
    before = (whole.folder / "model.safetensors").stat().st_mtime_ns
    again = train(examples, encoder, whole.folder, on_progress=lambda progress: pytest.fail("no step is left"))
    assert again.finished
    assert len(again.history) == 3
    assert (whole.folder / "model.safetensors").stat().st_mtime_ns == before


def test_the_time_is_up_and_what_was_learnt_is_kept(examples, encoder, whole, tmp_path):
    stopped = train(examples, encoder, tmp_path, minutes=1e-9)
    assert (stopped.step, stopped.finished) == (1, False)
    early = DPRReader.load(tmp_path)
    assert early("where is the amber?", examples[0].passage)  # a reader from the first look on
    assert train(examples, encoder, tmp_path).finished
    assert (tmp_path / "model.safetensors").is_file()
    runs = [reader_facts(SearChain(reader=reader)) for reader in (early, DPRReader.load(tmp_path))]
    assert runs[0]["fingerprint"] != runs[1]["fingerprint"]  # what was asked with the first is another run


def test_what_it_learnt_is_read(examples, encoder, tmp_path):
    settings = TrainingSettings(epochs=25, batch_size=4, negatives=1, learning_rate=5e-3, window=48)
    trained = train(examples, encoder, tmp_path, settings)
    first, last = trained.history[0], trained.history[-1]
    assert last["mean_loss"] < first["mean_loss"] / 2
    assert last["dev_span_f1"] > 0.7
    reader = DPRReader.load(tmp_path)
    spans = reader.read_many([(example.question, example.passage) for example in examples])
    assert sum(span.text in example.answers for span, example in zip(spans, examples, strict=True)) >= 6
    assert reader.threshold == json.loads((tmp_path / "questree-reader.json").read_text())["threshold"]
    singly = [reader(example.question, example.passage) for example in examples]
    assert [span.text for span in singly] == [span.text for span in spans]
    assert [span.score for span in singly] == pytest.approx([span.score for span in spans], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_any_encoder_of_the_family_becomes_a_reader(examples, tmp_path, kind):
    encoder = save_encoder(tmp_path / "encoder", kind)
    settings = SHORT.model_copy(update={"max_steps": 1, "window": 400})
    out = tmp_path / "reader"
    trained = train(examples, encoder, out, settings)
    assert trained.finished
    long = Passage(id="long", text="the sand of the wood " * 60)
    assert DPRReader.load(out)("where is the amber?", long).text in long.text


def test_another_training_in_the_same_folder_is_refused(examples, encoder, whole):
    for changed in ({"settings": SHORT.model_copy(update={"epochs": 4})}, {"examples": examples[:5]}):
        given = {"examples": examples, "dev": pairs_of(examples), "settings": SHORT, **changed}
        with pytest.raises(QuestreeError, match=r"holds another run: (epochs|questions) was"):
            train_reader(**given, out=whole.folder, encoder=str(encoder))


def test_nothing_to_train_on_and_damage_are_told(examples, encoder, tmp_path):
    lost = [example.__class__(example.id, example.question, ("elsewhere",), example.passage) for example in examples]
    with pytest.raises(QuestreeError, match="None of 8 questions"):
        train_reader(lost, pairs_of(examples), tmp_path, encoder=str(encoder), settings=SHORT)
    trained = train_reader([*examples, lost[0]], pairs_of(examples), tmp_path, encoder=str(encoder), settings=SHORT)
    assert trained.unanswerable == 1
    (tmp_path / "training" / "state.pt").write_bytes(b"PK")
    with pytest.raises(QuestreeError, match=r"state\.pt is damaged"):
        train(examples, encoder, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"{}")
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        DPRReader.load(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be loaded as a AutoModel"):
        train_reader(examples, pairs_of(examples), tmp_path / "new", encoder=str(tmp_path), settings=SHORT)


def test_a_reader_knows_which_passages_it_was_trained_on(examples, encoder, tmp_path):
    train_reader(examples[:5], pairs_of(examples), tmp_path, encoder=str(encoder), settings=SHORT)
    other_question = replace(examples[0], question="which?", id="new")
    assert leave_out_seen([other_question, *examples[4:]], tmp_path) == examples[5:]
    assert leave_out_seen(examples, tmp_path / "nowhere") == examples
    (tmp_path / "training" / "run.json").write_text("{")
    with pytest.raises(QuestreeError, match="is damaged"):
        leave_out_seen(examples, tmp_path)
