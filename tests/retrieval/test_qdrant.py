"""A collection of Qdrant: in a folder, before a stand-in for a server, and on the server of `QDRANT_URL`, if set."""

import os
import pickle
import sqlite3
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import dspy
import pytest
from bomb import Bomb
from library_parts import parts_of_libraries, replaced
from tiny_world import QUESTIONS, SURE

from questree.common.errors import CheckpointError, CorpusError, IndexRefused, QuestreeError
from questree.programs import build
from questree.retrieval import BM25Retriever, BM25Settings, Passage, load_index
from questree.retrieval.base import reopened
from questree.retrieval.indexes import chunks
from questree.retrieval.late_interaction.encoder import Encoder
from questree.retrieval.qdrant import embedded
from questree.retrieval.qdrant.address import QdrantAddress
from questree.retrieval.qdrant.collection import Collection
from questree.retrieval.qdrant.layout import QdrantSettings
from questree.retrieval.qdrant.searcher import QdrantRetriever
from questree.retrieval.qdrant.upload import add, upload
from questree.retrieval.retriever_names import named_members, open_retriever
from questree.retrieval.serving import remote_requests
from questree.retrieval.serving.listener import running
from questree.retrieval.serving.remote_requests import RemoteError, RemoteSettings
from questree.simulate import Mind, SimulatedEngine, World
from questree.simulate.server import running_lm as serving

from .conftest import interrupted, make_checkpoint, stop_after
from .fake_qdrant import FakeQdrant

QUERY = "amber fjord willow summit"
ALL = QdrantSettings(candidates=10_000)

pytestmark = [
    pytest.mark.skipif(find_spec("qdrant_client") is None, reason="needs questree[qdrant]"),
    pytest.mark.usefixtures("loaded_once"),
]


@pytest.fixture
def small(monkeypatch):
    """Chunks and requests of few passages."""
    monkeypatch.setattr(chunks, "CHUNK", 32)
    monkeypatch.setattr("questree.retrieval.qdrant.upload._POINTS_TOGETHER", 16)


@pytest.fixture(scope="module")
def fake() -> Iterator[tuple[FakeQdrant, str]]:
    server = FakeQdrant()
    with running(server) as address:  # type: ignore[arg-type]
        yield server, address.replace("http", "qdrant")


@pytest.fixture(scope="module", params=["folder", "stand-in", "server"])
def place(request, tmp_path_factory) -> Iterator[Callable[[], str]]:
    """Gives an address that holds nothing yet; what is made there is removed in the end."""
    if request.param == "folder":
        folder = tmp_path_factory.mktemp("qdrant")
        yield lambda: f"qdrant:{folder}/c{uuid.uuid4().hex}"
    elif request.param == "stand-in":
        _, address = request.getfixturevalue("fake")
        yield lambda: f"{address}/c{uuid.uuid4().hex}"
    elif "QDRANT_URL" not in os.environ:
        pytest.skip("needs a server of Qdrant: QDRANT_URL=http://host:6333")
    else:
        made: list[str] = []
        base = os.environ["QDRANT_URL"].rstrip("/").replace("http", "qdrant", 1)
        yield lambda: made.append(f"{base}/questree-test-{uuid.uuid4().hex}") or made[-1]  # type: ignore[func-returns-value]
        for address in made:
            Collection(QdrantAddress.parse(address)).drop()


@pytest.fixture(scope="module")
def address(place, passages, tiny_checkpoint) -> str:
    at = place()
    upload(passages, at, checkpoint=tiny_checkpoint, settings=ALL)
    return at


@pytest.fixture
def retriever(address) -> QdrantRetriever:
    return QdrantRetriever(address)


def _true(place: Callable[[], str]) -> str:
    """An address in a folder, or on a true server: for tests that take long, and to which a stand-in adds nothing."""
    if (at := place()).startswith("qdrant://127.0.0.1") and "QDRANT_URL" not in os.environ:
        pytest.skip("the folder says as much as a stand-in")
    return at


def ids(found: list[Passage]) -> list[str]:
    return [passage.id for passage in found]


# What every retriever promises


def test_it_is_opened_by_its_address_and_travels_by_it(address, retriever):
    assert named_members(f"{address}/") == (str(QdrantAddress.parse(address)),)
    opened = open_retriever(address)
    assert (opened.name, opened.fingerprint) == ("qdrant", retriever.fingerprint)
    assert ids(pickle.loads(pickle.dumps(opened))(QUERY, k=3)) == ids(retriever(QUERY, k=3))
    with pytest.raises(IndexRefused, match="saved with other"):
        reopened(QdrantRetriever, address, "other")


# The ranking


def test_with_all_gathered_it_ranks_as_exact_search(retriever, exact_folder, passages):
    everything = {p.id: p.score for p in load_index(exact_folder)(QUERY, k=len(passages))}
    found = retriever(QUERY, k=len(passages))
    assert len(found) > 60
    assert [p.score for p in found] == pytest.approx([everything[p.id] for p in found], abs=1e-4)


def test_a_corpus_without_words_is_refused(place, tiny_checkpoint):
    with pytest.raises(CorpusError, match="holds a word"):
        upload([Passage(id="a", text="?!")], place(), checkpoint=tiny_checkpoint)


def test_bm25_gathers(place, passages, tiny_checkpoint):
    upload(passages, at := _true(place), checkpoint=tiny_checkpoint, settings=QdrantSettings(candidates=9))
    gathered = ids(BM25Retriever.from_passages(passages)(QUERY, k=9))
    assert set(ids(QdrantRetriever(at)(QUERY, k=3))) <= set(gathered)
    assert sorted(ids(QdrantRetriever(at)(QUERY, k=9))) == sorted(gathered)


# Uploading, resuming, adding


def content(address: str) -> list[Any]:
    """All points of a collection, with their vectors."""
    collection = Collection(QdrantAddress.parse(address))
    name = collection.address.collection
    count = collection.state().manifest.corpus.passages + 100  # more than there should be
    points = collection.ask(lambda client: client.retrieve(name, range(count), with_vectors=True))
    return sorted((point.id, point.payload, point.vector["words"], point.vector["tokens"]) for point in points)


def test_an_interrupted_upload_goes_on(small, place, passages, tiny_checkpoint, monkeypatch):
    at, order = _true(place), {"checkpoint": tiny_checkpoint, "settings": ALL}
    upload(passages, whole := place(), **order)
    with interrupted(50, KeyboardInterrupt(), "the same command goes on"):
        upload(passages, at, **order)
    with pytest.raises(IndexRefused, match=r"is unfinished: run the command"):
        QdrantRetriever(at)
    with pytest.raises(IndexRefused, match=r"is unfinished: run the command.*and then add"):
        add(passages, at)
    encoded, told = stop_after(monkeypatch, -1), []
    manifest = upload(passages, at, **order, progress=told.append)
    assert encoded == [len(passages) - 48]  # 32 of a whole chunk, and a request of 16
    assert (told[-1].done, told[-1].kept) == (len(passages), 48)
    assert content(at) == content(whole)
    upload(passages, at, **order)  # again: nothing is missing
    assert encoded == [len(passages) - 48]
    assert QdrantRetriever(at).fingerprint == manifest.fingerprint


def test_adding_encodes_only_what_is_new(small, place, passages, tiny_checkpoint, monkeypatch):
    upload(passages[:70], at := place(), checkpoint=tiny_checkpoint, settings=ALL)
    before = QdrantRetriever(at)
    with pytest.raises(CorpusError, match="'p69'"):
        add(passages[69:], at)
    assert ids(before(QUERY, k=3)) == ids(QdrantRetriever(at)(QUERY, k=3))
    with interrupted(30, KeyboardInterrupt()):
        add(passages[70:], at)
    with pytest.raises(IndexRefused, match=r"is being written, as the index \w+, and held \w+ when this run began"):
        before("kelp lagoon", k=3)
    with pytest.raises(IndexRefused, match=r"another, unfinished index .*add what was being added"):
        add(passages[80:], at)
    encoded = stop_after(monkeypatch, -1)
    manifest = add(passages[70:], at)
    assert encoded == [len(passages) - 96]  # two requests of the first chunk had arrived
    assert manifest.corpus.passages == len(content(at)) == len(passages)
    for passage in (passages[3], passages[-3]):
        assert QdrantRetriever(at)(passage.shown(), k=1)[0].id == passage.id


def test_a_collection_of_before_is_searched_and_added_to_as_it_was_made(place, passages, tiny_checkpoint, monkeypatch):
    made = partial(BM25Settings, without_accents=False)
    made.OLDER = BM25Settings.OLDER
    with monkeypatch.context() as before:
        before.setattr("questree.retrieval.qdrant.upload.BM25Settings", made)
        upload([*passages[:60], Passage(id="é", text="zébré")], at := _true(place), checkpoint=tiny_checkpoint)
    collection, state = Collection.held(at)
    old = {**state.manifest.settings["bm25"]}
    del old["without_accents"]
    manifest = state.manifest.model_copy(update={"settings": {**state.manifest.settings, "bm25": old}})
    collection.mark(state.model_copy(update={"manifest": manifest}))
    add([Passage(id="à", text="zàbrà")], at)
    found = QdrantRetriever(at).batch(["zebre", "zébré", "zabra", "zàbrà"], k=1)
    assert [ids(one) for one in found] == [[], ["é"], [], ["à"]]


# Drift


@pytest.mark.parametrize("part", ["corpus", "checkpoint", "settings"])
def test_another_index_is_not_written_over(place, passages, tiny_checkpoint, tiny_config, tmp_path, part):
    upload(passages[:20], at := _true(place), checkpoint=tiny_checkpoint)
    other = {"corpus": passages[:20], "checkpoint": tiny_checkpoint, "settings": None}
    if part == "checkpoint":
        other["checkpoint"] = make_checkpoint(tmp_path, tiny_config, seed=2)
    other |= {"corpus": passages[:21]} if part == "corpus" else {}
    other |= {"settings": QdrantSettings(quantization="none")} if part == "settings" else {}
    with pytest.raises(IndexRefused, match=r"holds another index \(20 passages of .*--overwrite.*--add"):
        upload(other.pop("corpus"), at, **other)


def test_a_machine_that_computes_otherwise_goes_on_as_it_was_begun(place, passages, tiny_checkpoint, monkeypatch):
    load, at, made = Encoder.load, _true(place), set()
    for usual in ("bfloat16", "float32"):  # on each machine

        def loaded(checkpoint, precision, usual=usual):
            return load(checkpoint, usual if precision == "auto" else precision)

        monkeypatch.setattr(Encoder, "load", loaded)
        made.add(upload(passages[:20], at, checkpoint=tiny_checkpoint).fingerprint)
    assert len(made) == 1


def test_what_is_replaced_by_request_is_refused_by_those_who_search_it(place, passages, tiny_checkpoint):
    upload(passages[:20], at := place(), checkpoint=tiny_checkpoint)
    searched = QdrantRetriever(at)
    upload(passages[20:50], at, checkpoint=tiny_checkpoint, overwrite=True)
    with pytest.raises(IndexRefused, match=r"holds the index \w+, and held \w+ when.*Start the run anew"):
        searched("amber", k=2)
    assert {p.id for p in QdrantRetriever(at)(QUERY, k=50)} <= {p.id for p in passages[20:50]}


def test_an_upload_that_another_one_replaces_ends_and_writes_nothing(fake, passages, tiny_checkpoint, monkeypatch):
    monkeypatch.setattr("questree.retrieval.qdrant.upload._POINTS_TOGETHER", 1)
    at, began = f"{fake[1]}/c{uuid.uuid4().hex}", []

    def replace(at_work):
        if at_work.done and not began:
            began.append(True)
            upload(passages[20:21], at, checkpoint=tiny_checkpoint, overwrite=True)

    with pytest.raises(IndexRefused, match="Another upload has replaced the index"):
        upload(passages[:2], at, checkpoint=tiny_checkpoint, progress=replace)
    there = Collection(QdrantAddress.parse(at))
    assert there.count() == 1
    assert there.state().finished


def test_a_checkpoint_that_changed_is_refused(place, passages, tiny_config, tmp_path):
    upload(passages[:20], at := _true(place), checkpoint=make_checkpoint(tmp_path, tiny_config, seed=4))
    make_checkpoint(tmp_path, tiny_config, seed=5)
    for use in (QdrantRetriever, lambda at: add(passages[20:], at)):
        with pytest.raises(IndexRefused, match="stale: it was built with another checkpoint"):
            use(at)


def test_what_is_not_ours_is_left_alone(place, passages, tiny_checkpoint):
    from qdrant_client import models

    at = place()
    with pytest.raises(IndexRefused, match=r"no index at .*questree index CORPUS --engine qdrant:"):
        QdrantRetriever(at)
    collection = Collection(QdrantAddress.parse(at))
    collection.ask(
        lambda client: client.create_collection(
            collection.address.collection, {"x": models.VectorParams(size=4, distance=models.Distance.DOT)}
        )
    )
    for use in (QdrantRetriever, lambda at: upload(passages, at, checkpoint=tiny_checkpoint, overwrite=True)):
        with pytest.raises(IndexRefused, match=r"is no index of questree's.*left as it is"):
            use(at)


# Servers that are not well


@pytest.fixture
def unwell(fake, passages, tiny_checkpoint, monkeypatch):
    """A stand-in, the address of a collection there, a way to connect with few retries, and the pauses it takes."""
    server, base = fake
    upload(passages[:20], at := f"{base}/c{uuid.uuid4().hex}", checkpoint=tiny_checkpoint)
    waits: list[float] = []
    settings = RemoteSettings(retries=3, first_pause=0.5, longest_pause=4)
    monkeypatch.setattr(remote_requests, "sleep", waits.append)
    yield server, at, lambda: QdrantRetriever(at, settings), waits
    server.faults, server.version, server.key, server.after = [], "1.20.0", None, lambda asked: None


@pytest.mark.parametrize(("status", "pause"), [(500, 0.5), (503, 0.5), (429, 0.5), (429, 3)])
def test_a_fault_in_passing_is_asked_again_and_then_the_server_is_named(unwell, status, pause):
    server, _, connect, waits = unwell
    retriever = connect()
    fault = (status, {} if pause == 0.5 else {"Retry-After": str(pause)}, b"busy")
    server.faults = [fault] * 2
    assert len(retriever("amber", k=2)) == 2
    assert len(waits) == 2
    assert pause <= waits[0] <= 1.25 * pause
    server.faults = [fault] * 9
    with pytest.raises(RemoteError, match=rf"Qdrant at http.* no answer in 4 attempts.*HTTP {status}.*/readyz"):
        retriever("basin")


def test_a_server_that_goes_away_half_way_keeps_what_it_has(small, fake, passages, tiny_checkpoint, monkeypatch):
    server, base = fake
    at = f"{base}/c{uuid.uuid4().hex}"
    puts = lambda: sum(asked.endswith(f"PUT /collections/{at.rpartition('/')[2]}/points") for asked in server.asked)  # noqa: E731
    server.after = lambda asked: server.faults.extend([(503, {}, b"gone")] * 5 if puts() == 3 else [])
    monkeypatch.setattr(remote_requests, "sleep", lambda seconds: None)
    with pytest.raises(
        RemoteError, match=r"gave no answer in 5 attempts.*What is uploaded stays.*the same command goes"
    ):
        upload(passages, at, checkpoint=tiny_checkpoint, settings=ALL)
    server.after, server.faults = lambda asked: None, []
    encoded = stop_after(monkeypatch, -1)
    upload(passages, at, checkpoint=tiny_checkpoint, settings=ALL)
    assert encoded == [len(passages) - 48]
    assert len(content(at)) == len(passages)


def test_an_old_server_and_what_is_no_qdrant_are_named(unwell):
    server, _, connect, _ = unwell
    server.version = "1.12.4"
    with pytest.raises(RemoteError, match=r"version 1\.12\.4, and 1\.16 is the first.*Upgrade"):
        connect()
    for answer in (b"<html>", b'{"title": 3}'):
        server.faults = [(200, {}, answer)]
        with pytest.raises(
            RemoteError, match=r"gave an answer that qdrant-client [\d.]+ does not understand.*minor version"
        ):
            connect()


def test_the_key_comes_from_the_environment_alone(unwell, monkeypatch):
    server, at, connect, _ = unwell
    server.key = "a-key-of-qdrant-that-is-long"
    with pytest.raises(RemoteError, match=r"HTTP 401.*Put its key into QDRANT_API_KEY"):
        connect()
    monkeypatch.setenv("QDRANT_API_KEY", server.key)
    assert connect()("amber", k=1)
    for address in (at.replace("//", "//me:secret@"), at.replace("//", "//secret@"), f"{at}?api_key=secret"):
        with pytest.raises(QuestreeError) as refused:
            open_retriever(address)
        assert "secret" not in str(refused.value)


def test_without_the_client_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(QuestreeError, match=r"no package 'qdrant_client' here: pip install 'questree\[qdrant\]'"):
        upload([Passage(id="a", text="amber")], f"qdrant:{tmp_path}/c")


# Addresses and folders


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("qdrant://host/c", "qdrant://host:6333/c"),
        ("qdrant://HOST:7000/c/", "qdrant://host:7000/c"),
        ("qdrants://[::1]/c", "qdrants://[::1]:6333/c"),
        ("qdrant:/folder/of/c", "qdrant:/folder/of/c"),
    ],
)
def test_an_address_has_one_form(given, meant):
    assert str(QdrantAddress.parse(given)) == meant
    assert str(QdrantAddress.parse(meant)) == meant
    assert named_members(given) == (meant,)


@pytest.mark.parametrize(
    "given",
    [
        *("qdrant:", "qdrant:c", "qdrant:/", "qdrant:f/a*b", "qdrants:f/c", "http://host/c"),
        *("qdrant://host", "qdrant://:1/c", "qdrant://host:x/c", "qdrant://host/a/b", "qdrant:///c"),
    ],
)
def test_what_is_no_address_is_refused(given):
    with pytest.raises(QuestreeError, match="Write qdrant://HOST:6333/COLLECTION"):
        QdrantAddress.parse(given)


def test_a_folder_serves_one_process(tmp_path, passages, tiny_checkpoint):
    from qdrant_client import QdrantClient

    other = QdrantClient(path=str(tmp_path))
    for use in (QdrantRetriever, lambda at: upload(passages, at, checkpoint=tiny_checkpoint)):
        with pytest.raises(QuestreeError, match=r"Another process has opened .*run a Qdrant server"):
            use(f"qdrant:{tmp_path}/c")
    other.close()


def test_where_no_folder_is_none_is_made(tmp_path, passages):
    with pytest.raises(IndexRefused, match="no index at"):
        open_retriever(f"qdrant:{tmp_path}/typo/c")
    with pytest.raises(CorpusError):
        upload(tmp_path / "typo.jsonl", f"qdrant:{tmp_path}/q/c")
    with pytest.raises(CheckpointError):
        upload(passages, f"qdrant:{tmp_path}/q/c", checkpoint=tmp_path / "typo")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_folder_and_a_full_disk_are_named(small, tmp_path, passages, tiny_checkpoint, monkeypatch):
    from qdrant_client.local.local_collection import CollectionPersistence

    at, persist, left = f"qdrant:{tmp_path}/q/c", CollectionPersistence.persist, [40]

    def full(self, point):
        left[0] -= 1
        if not left[0]:
            raise sqlite3.OperationalError("database or disk is full")
        persist(self, point)

    monkeypatch.setattr(CollectionPersistence, "persist", full)
    with pytest.raises(QuestreeError, match=r"cannot be read or written: database or disk is full. Make room"):
        upload(passages[:60], at, checkpoint=tiny_checkpoint)
    encoded = stop_after(monkeypatch, -1)
    upload(passages[:60], at, checkpoint=tiny_checkpoint)
    assert encoded == [60 - 39]
    (tmp_path / "q" / "collection" / "c" / "storage.sqlite").write_bytes(b"garbage " * 1000)
    with pytest.raises(IndexRefused, match="cannot be opened as a folder"):
        QdrantRetriever(at)


PLANTED = {
    "in a point": (
        ["UPDATE points SET point = :bomb WHERE rowid = 3"],
        r"cannot be opened.*posix\.mkdir, which is no point",
    ),
    "behind a view, which may show another one at the next look": (
        [
            "ALTER TABLE points RENAME TO kept",
            "CREATE VIEW points AS SELECT rowid, id, iif(random() % 9, point, id) AS point FROM kept",
            "UPDATE kept SET point = :bomb WHERE rowid = 3",
        ],
        r"cannot be opened.*CREATE VIEW points.*, which is no table",
    ),
}


@pytest.mark.parametrize("where", PLANTED)
def test_a_planted_pickle_does_not_run(where, tmp_path, passages, tiny_checkpoint):
    statements, refused = PLANTED[where]
    upload(passages[:5], at := f"qdrant:{tmp_path}/q/c", checkpoint=tiny_checkpoint)
    with sqlite3.connect(tmp_path / "q" / "collection" / "c" / "storage.sqlite") as points:
        for statement in statements:
            points.execute(statement, {"bomb": pickle.dumps(Bomb(tmp_path / "went-off"))})
    points.close()
    with pytest.raises(IndexRefused, match=refused):
        QdrantRetriever(at)
    assert not (tmp_path / "went-off").exists()


def test_nothing_of_another_library_is_replaced_while_a_question_is_answered_from_a_folder(
    tmp_path, passages, tiny_checkpoint, monkeypatch
):
    class Looking(SimulatedEngine):
        def reply_to(self, request):
            found.append(replaced(before))
            return super().reply_to(request)

    upload(passages[:5], at := f"qdrant:{tmp_path}/q/c", checkpoint=tiny_checkpoint)
    embedded._close()
    embedded._OPEN.clear()
    before, found = parts_of_libraries(), list[set[str]]()
    with serving(Looking(Mind(World(QUESTIONS), SURE))) as address:
        lm = dspy.LM("openai/simulated", api_base=address, api_key="none")
        clients = lm._engine_store
        with dspy.context(lm=lm, adapter=None):
            answered = build("oner", {}, retriever=QdrantRetriever(at))(question=QUESTIONS[0].question)
    assert answered.failure is None
    assert found == [set()]
    assert replaced(before) == set()
    assert lm._engine_store is clients


def test_the_command_makes_it_and_adds_to_it(questree, workplace, corpus_file, passages, tiny_checkpoint):
    (more := workplace / "more.jsonl").write_text('{"id": "new", "text": "cedar ember"}\n')
    made = questree(
        "index", corpus_file, "--engine", "qdrant:at/c", "--checkpoint", tiny_checkpoint, "--set", "candidates=50"
    )
    assert (made.code, "120 passages, qdrant, " in made.out) == (0, True)
    assert "use it with --retriever qdrant:at/c" in made.out
    added = questree("index", more, "--engine", "qdrant:at/c", "--add")
    assert "121 passages, qdrant" in added.out
    assert open_retriever("qdrant:at/c").settings.candidates == 50
