import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree

import pytest
import torch
from reliability.tiny_encoders import save_encoder
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification, DPRConfig
from transformers import DPRReader as Model
from transformers.models.dpr.modeling_dpr import DPRReaderOutput

from questree.common.errors import CheckpointError, QueryError, QuestreeError
from questree.evaluation.identity import duplicates_facts, reader_facts
from questree.programs import SearChain
from questree.retrieval import (
    CrossEncoderDuplicates,
    DPRReader,
    ExactDuplicates,
    Passage,
    RetrieverDuplicates,
    build_index,
    load_index,
)
from questree.retrieval.calibrated import ReaderManifest, store, stored
from questree.retrieval.defences import defended
from questree.retrieval.span_model import best_span

from .conftest import save_tokenizer

PASSAGE = Passage(id="1", title="Amber", text="the harbor, near the island, has a long jetty")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Random weights in the published layout."""
    folder = tmp_path_factory.mktemp("reader")
    config = DPRConfig(
        vocab_size=save_tokenizer(folder),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(2)
        Model(config).save_pretrained(folder)
    return folder


@pytest.fixture
def reader(published):
    return DPRReader.load(published, threshold=0.25)


def logits(start, end, relevance, monkeypatch, reader):
    """Let the model answer with these logits; they stand for the passage's text, at the end of the input."""

    def answer(input_ids, **_):
        full = [torch.full((1, input_ids.shape[1]), 9.0) for _ in range(2)]  # outside the text all is tempting
        for given, values in zip(full, (start, end), strict=True):
            given[0, -1 - len(values) : -1] = torch.tensor(values)
        return DPRReaderOutput(*full, relevance_logits=torch.tensor([relevance]))

    monkeypatch.setattr(reader._model, "forward", answer)


def test_a_span_is_a_piece_of_the_text_with_the_relevance_logit(reader):
    span = reader("which island", PASSAGE)
    assert span.text
    assert span.text in PASSAGE.text
    assert span.score == pytest.approx(_relevance(reader, "which island"))
    assert (reader.threshold, span) == (0.25, reader("which island", PASSAGE))


def _relevance(reader, query):
    parts = (f"{query} [SEP] {PASSAGE.title}", PASSAGE.text)
    encoded = reader._tokenizer(*parts, return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode():
        return float(reader._model(**encoded).relevance_logits[0])


WORDS = ("harbor", "island", "jetty")
SHORT = Passage(id="2", text=" ".join(WORDS))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ([0.0, 5.0, 0.0], [0.0, 5.0, 0.0], "island"),
        ([5.0, 0.0, 0.0], [0.0, 0.0, 5.0], "harbor island jetty"),
        ([0.0, 0.0, 5.0], [5.0, 0.0, 1.0], "jetty"),  # the two best are inverted: the best allowed pair is taken
    ],
)
def test_the_best_span_that_is_one(reader, monkeypatch, start, end, expected):
    logits(start, end, 1.5, monkeypatch, reader)
    assert reader("where", SHORT) == reader("where", SHORT).model_copy(update={"text": expected, "score": 1.5})


def test_a_span_is_not_longer_than_an_answer(reader, monkeypatch):
    long = Passage(id="3", text=" ".join(["amber"] * 20))
    logits([5.0] + [0.0] * 19, [0.0] * 19 + [4.0], 0.0, monkeypatch, reader)
    assert len(reader("where", long).text.split()) <= 10


def test_no_text_in_the_window_is_no_span(reader):
    nowhere = torch.full((4,), float("-inf"))
    assert best_span(nowhere, nowhere, 10) is None
    span = reader("where is it", Passage(id="4", text="   "))
    assert span.text == ""


def test_long_input_is_cut(reader):
    long = PASSAGE.model_copy(update={"text": PASSAGE.text * 50})
    assert reader("where " * 300, long).text in long.text


def test_a_batch_reads_as_single_calls_do(reader):
    passages = [SHORT, PASSAGE, PASSAGE.model_copy(update={"text": PASSAGE.text * 9}), Passage(id="5", text=" ")]
    pairs = [(query, passage) for query in ("which island", "where is the harbor") for passage in passages * 6]
    together, singly = reader.read_many(pairs), [reader(*pair) for pair in pairs]
    assert [span.text for span in together] == [span.text for span in singly]
    assert [span.score for span in together] == pytest.approx([span.score for span in singly], abs=1e-5)
    assert reader.read_many([]) == []
    with pytest.raises(QueryError):
        reader.read_many([("where", SHORT), (" ", SHORT)])


def test_a_threshold_is_stored_with_the_reader(published, reader, tmp_path):
    assert DPRReader.load(published).threshold == 1.5  # SearChain's
    store(tmp_path, ReaderManifest(kind="dpr", model=str(published), threshold=-0.75))
    found = DPRReader.load(tmp_path)
    assert (found.threshold, found.name) == (-0.75, str(tmp_path))
    assert found("which island", PASSAGE) == reader("which island", PASSAGE)
    assert DPRReader.load(tmp_path, threshold=2.0).threshold == 2.0
    store(tmp_path, ReaderManifest(kind="dpr", model=str(published), longest_answer=1))
    assert len(DPRReader.load(tmp_path)("which island", PASSAGE).text.split()) == 1


def test_a_manifest_that_cannot_be_used_is_refused(tmp_path):
    assert stored(tmp_path) is None
    for content, said in (
        ("{}", "damaged"),
        ('{"kind": "spans"}', "damaged"),
        ('{"kind": "dpr", "format": 2}', "upgrade"),
    ):
        (tmp_path / ReaderManifest.FILE).write_text(content)
        with pytest.raises(CheckpointError, match=said):
            DPRReader.load(tmp_path)
    store(tmp_path, ReaderManifest(kind="lm", model="simulated"))
    with pytest.raises(CheckpointError, match="threshold of an LM"):
        DPRReader.load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(QuestreeError, match="cannot be written"):
        store(tmp_path / "file" / "folder", ReaderManifest(kind="lm"))


def test_readers_work_in_threads(reader):
    queries = [f"where is {word}" for word in WORDS] * 8
    expected = [reader(query, PASSAGE) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: reader(query, PASSAGE), queries)) == expected


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be loaded as a DPRReader"):
        DPRReader.load(tmp_path)


def test_code_of_its_own_in_a_models_folder_is_not_run(published, tmp_path):
    for file in published.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    DPRReader.load(tmp_path)  # by transformers' own class, whatever the folder says
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("query", "seen", "expected"),
    [
        ("Who directed it?", ["When?", "who  directed it"], 1),
        ("Who directed it?", ["Who directed them?"], None),
        ("Who?", [], None),
        ("Ｗho?", ["who"], 0),
        ("दिन क्या है?", ["दीन क्या है?"], None),
        ("ปี", ["ปู"], None),
        ("When was C++ made?", ["When was C made?", "When was C# made?"], None),
        ("Who earns €5?", ["Who earns $5?", "Who earns 5%?"], None),
        ("Is C++ “old”?", ["is C++ old"], 0),
        ("What is the root of -5?", ["What is the root of 5?", "What is the root of −5"], 1),
        ("What is .5 of 8?", ["What is 5 of 8?", "What is -.5 of 8?"], None),
        ("Is Python 3.10 new?", ["Is Python 3.1 new?", "Is Python 3 10 new?", "is python 3.10 new"], 2),
        ("What is 1/2?", ["What is 1 2?", "What is 12?"], None),
        ("Who made .NET?", ["Who made net?"], None),
        ("Who wrote the sonata in B♭?", ["Who wrote the sonata in B?"], None),
        ("Who found A*?", ["Who found A?"], None),
        ("Who lived 1883–1924 (in Prague)?", ["who lived 1883-1924, in Prague"], 0),
        ("Who flew the F-16?", ["Who flew the F 16?"], 0),
    ],
)
def test_exact_duplicates(query, seen, expected):
    assert ExactDuplicates()(query, seen) == expected


@pytest.fixture(scope="module", params=[1, 2], ids=["one logit", "two classes"])
def cross_encoder(request, tmp_path_factory, tiny_config):
    folder = tmp_path_factory.mktemp("cross")
    config = tiny_config(save_tokenizer(folder))
    config.num_labels = request.param
    with torch.random.fork_rng():
        torch.manual_seed(3)
        BertForSequenceClassification(config).save_pretrained(folder)
    return CrossEncoderDuplicates.load(folder)


def test_cross_encoder_duplicates_follow_the_threshold(cross_encoder):
    seen = ["amber basin", "harbor", "cedar delta grove"]
    likely = cross_encoder.likeness("amber", seen)
    best = likely.index(max(likely))
    assert all(0 <= p <= 1 for p in likely)
    assert likely == pytest.approx([cross_encoder.likeness("amber", [other])[0] for other in seen], abs=1e-5)
    cross_encoder.threshold = max(likely) - 1e-4
    assert cross_encoder("amber", seen) == best
    cross_encoder.threshold = max(likely) + 1e-4
    assert cross_encoder("amber", seen) is None
    assert cross_encoder("amber", []) is None


def test_the_retriever_tells_what_is_said_in_other_order(exact_folder):
    check = RetrieverDuplicates.of(load_index(exact_folder))
    seen = ["kelp summit willow", "amber basin cedar"]
    alike = check.likeness("cedar basin amber", seen)
    assert alike[1] > alike[0]
    assert check.likeness(seen[1], seen)[1] == pytest.approx(1, abs=1e-3)
    check.threshold = (alike[0] + alike[1]) / 2
    assert check("cedar basin amber", seen) == 1
    check.threshold = alike[1] + 1e-3
    assert check("cedar basin amber", seen) is None
    assert check("amber", []) is None


def test_a_retriever_by_words_has_no_embeddings_to_compare(corpus_file, tmp_path):
    with pytest.raises(QuestreeError, match="no embeddings"):
        RetrieverDuplicates.of(load_index(build_index(corpus_file, tmp_path / "bm25", kind="bm25")))


def trained_further(folder, load):
    """Return the model in a folder, and again after its weights were changed there."""
    before = load(folder)
    file = folder / "model.safetensors"
    save_file({name: 2 * weights for name, weights in load_file(file).items()}, file, metadata={"format": "pt"})
    return before, load(folder)


def test_a_reader_that_was_trained_elsewhere_and_further_is_another_run_and_another_defence(published, tmp_path):
    folder = Path(copytree(published, tmp_path / "reader"))
    readers = trained_further(folder, DPRReader.load)
    facts = [reader_facts(SearChain(reader=one)) for one in readers]
    assert facts[0] != facts[1]
    assert facts[0] == reader_facts(SearChain(reader=readers[0]))
    under = load_index(build_index([PASSAGE], tmp_path / "index", kind="bm25"))
    assert len({defended(under, "reader", one).fingerprint for one in readers}) == 2
    store(tmp_path / "calibrated", ReaderManifest(kind="dpr", model=str(folder), threshold=0.5))
    calibrated = trained_further(folder, lambda _: DPRReader.load(tmp_path / "calibrated"))
    assert len({one.fingerprint for one in (*readers, *calibrated)}) == 3


def test_a_duplicate_check_that_was_trained_further_is_another_run(tmp_path):
    save_encoder(tmp_path)
    AutoModelForSequenceClassification.from_config(BertConfig.from_pretrained(tmp_path)).save_pretrained(tmp_path)
    checks = trained_further(tmp_path, CrossEncoderDuplicates.load)
    facts = [duplicates_facts(SearChain(duplicates=one)) for one in checks]
    assert facts[0] != facts[1]
    assert facts[0]["name"] == facts[1]["name"]
