import json
import logging

import dspy
import numpy as np
import pytest

from questree.common.errors import CheckpointError, IndexRefused, QuestreeError
from questree.common.text import words_in
from questree.data import Question
from questree.evaluation import evaluate
from questree.evaluation.capsule import pack, replay
from questree.metrics import metric
from questree.programs.registry import build
from questree.retrieval import (
    BM25Retriever,
    BuildProgress,
    LinkedRetriever,
    Passage,
    add_to_index,
    build_index,
    load_index,
    open_retriever,
)
from questree.retrieval.adapted import as_retriever
from questree.retrieval.indexes.contents import canonical
from questree.retrieval.linked import links, names, pool
from questree.retrieval.linked import retriever as linked_retriever
from questree.retrieval.linked.calibration import calibrate, cases_of
from questree.retrieval.linked.choice import Choice, Trees, with_alike
from questree.retrieval.linked.links import Links
from questree.retrieval.linked.retriever import linked, links_folder, make_links, up_to_date
from questree.retrieval.lists import Lists
from questree.retrieval.serving.app import create_app
from questree.retrieval.serving.client import RemoteRetriever
from questree.retrieval.serving.listener import running
from questree.simulate import simulated_lm

PEOPLE = ["Ada Falk", "Bo Lind", "Cai Moss", "Dora Penn", "Elin Rask", "Finn Sorby", "Gro Tveit", "Hal Umber"]
TOWNS = ["Arvik", "Bruneby", "Corsund", "Dalholm", "Elverby", "Fossvik", "Granholm", "Hestvik"]
FILMS = ["Amber Tide", "Broken Lantern", "Copper Moon", "Distant Harbour", "Empty Orchard", "Falling Snow"]
QUESTION = "In which town was the director of the film Copper Moon born?"


def world() -> list[Passage]:
    films = [(film, f"{film} is a silent drama film by {who}.") for film, who in zip(FILMS, PEOPLE, strict=False)]
    people = [(who, f"{who} grew up in {town} and liked boats.") for who, town in zip(PEOPLE, TOWNS, strict=True)]
    towns = [(town, f"{town} is a town on the coast.") for town in TOWNS]
    other = [
        (f"Birds of region {n}", "A forest with many birds, of which some are born in spring.") for n in "ABCDEFGH"
    ]
    return [
        Passage(id=f"w{n}", title=title, text=text) for n, (title, text) in enumerate([*films, *people, *towns, *other])
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_index(world(), tmp_path_factory.mktemp("linked") / "world", kind="linked")


@pytest.fixture(scope="module")
def retriever(folder):
    return load_index(folder)


def links_of(*texts: tuple[str, str]) -> tuple[Links, list[set[str]]]:
    """The links between passages of these titles and texts; and which titles each names."""
    passages = [Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(texts)]
    made = Links.of_passages(BM25Retriever.from_passages(passages))
    titled = {int(made.title_of[n]): passage.title for n, passage in enumerate(passages)}
    return made, [{titled[int(t)] for t in made.links.of(np.array([n]))[1]} for n in range(len(passages))]


def test_one_search_brings_what_the_words_do_not_find(retriever):
    found = retriever(QUESTION, k=2)
    assert {passage.title for passage in found} == {"Copper Moon", "Cai Moss"}
    assert found[1].linked_from == found[0].title
    assert "Cai Moss" not in {passage.title for passage in retriever.base(QUESTION, k=6)}


def test_a_passage_says_what_it_is_linked_from():
    passage = Passage(id="1", title="Corsund", text="On the coast.", linked_from="Cai Moss")
    assert passage.cited() == "Corsund (1): On the coast. (linked from Cai Moss)"
    assert Passage.model_validate_json(passage.model_dump_json()) == passage
    assert canonical(passage) == canonical(passage.model_copy(update={"linked_from": ""}))
    assert "Cai" not in passage.shown()


def test_the_longest_title_at_each_place_is_named():
    titles = np.sort(
        np.array([names.title_hash(t) for t in ("New York", "New York City", "City Hall", "Hall")], np.uint64)
    )
    texts = [words_in("In New York City Hall"), [], words_in("New"), words_in("York of New York")]
    text, title = names.named_titles(texts, titles)
    named = {t: names.title_hash(t) for t in ("New York", "New York City", "City Hall")}
    assert list(zip(text.tolist(), titles[title].tolist(), strict=True)) == [
        (0, named["New York City"]), (0, named["City Hall"]), (3, named["New York"]),
    ]  # fmt: skip
    assert not len(names.named_titles([[], []], titles)[0])


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Born on May 4, 1931.", "On 4 May 1931 it rained."),
        ("In 1931.", "Since 1931"),
        ("The Amber Palace burnt.", "Near Amber Palace's gate"),
        ("President Jon Amber spoke.", "Jon Amber slept."),
    ],
)
def test_names_that_two_texts_share(text, other):
    assert names.names_in(text) & names.names_in(other)
    assert not names.names_in("The house of Lords. It is 東京") & names.names_in("the end of the day. He said It: 東京")


@pytest.mark.parametrize(
    ("title", "text", "called"),
    [
        ("", "The Magic Flute (1791) is an opera.", "Magic Flute"),
        ("", "Kiss and Tell is a film.", "Kiss and Tell"),
        ("", "Arvik, a town on the coast, was burnt.", "Arvik"),
        ("", "Form B 12 was replaced.", "Form B 12"),
        ("", "The old building was sold to Mara Holm.", ""),
        ("", "nothing is named here.", ""),
        ("Handbook › Leave › Parental leave", "Ask Mara Holm is what it says.", "Parental leave"),
        ("Leave", "Arvik is a town.", "Leave"),
    ],
)
def test_what_other_texts_call_a_passage(title, text, called):
    assert names.called(Passage(id="1", title=title, text=text), bare=True) == called


MANY = [f"Place {one}{other}x" for one in "abcdefghij" for other in "abcdefghijklmnopqrst"]


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        ([("Amber", "Near Cold Bay."), ("Cold Bay", "cold bay, Amber")], [{"Cold Bay"}, {"Amber"}]),
        ([("", "Cold Bay is a town."), ("", "He lives in Cold Bay.")], [set(), {""}]),
        ([("", "Cold Bay is a town."), ("Harbour", "He lives in Cold Bay.")], [set(), set()]),  # others have titles
        ([("Terms › Leave day", "A day."), ("", "A leave day is paid.")], [set(), {"Terms › Leave day"}]),
        ([("Berland (country)", "A country."), ("", "Berland has no title.")], [set(), {"Berland (country)"}]),
        ([("東京都", "日本の首都"), ("歴史", "東京都の歴史。")], [set(), {"東京都"}]),
        ([("中國 (日本)", "一個國家"), ("河流", "中國的河流")], [set(), {"中國 (日本)"}]),
        ([("1984", "In 1931."), ("1931", "1984 and 1931.")], [set(), set()]),
        ([("The", "The This. Ohio"), ("This is it", "The The. This is it.")], [set(), set()]),
        ([("Amber", "Amber is Amber, and Amber.")], [set()]),  # itself
        ([("Same", "In Same.")] * 50 + [("Other", "The Same.")], [set()] * 50 + [{"Same"}]),
        ([("Planted", " and ".join(MANY)), *((one, "Nothing.") for one in MANY)], [{*MANY[: links.NAMED]}]),
        ([("Ab", "Ob."), ("Ob", "Ab. 12 34"), ("?!", "?! Ob"), ("12 34", "")], [set()] * 4),
        ([("a b c d e f g Amber", "Ohio"), ("Ohio", "a b c d e f g Amber")], [{"Ohio"}, set()]),
    ],
)
def test_which_titles_a_passage_is_linked_to(texts, named):
    assert links_of(*texts)[1][: len(named)] == named


def test_a_planted_passage_draws_a_bounded_number_of_others(monkeypatch):
    made, _ = links_of(("Planted", " and ".join(MANY)), *((title, "Nothing.") for title in MANY))
    assert max(np.diff(made.links.starts).max(), np.diff(made.names.starts).max()) == links.NAMED
    monkeypatch.setattr(links, "JOINED", 20)
    made, _ = links_of(*[("Same Title", "In Arvik, by the Common Name.")] * 50, ("Other", "The Same Title."))
    assert [int(np.diff(one.starts).max(initial=0)) for one in (made.bearers, made.mentions, made.named)] == [1, 1, 0]


@pytest.mark.parametrize(
    "passage",
    [lambda n: ("", f"Berta Amber met number {n}."), lambda n: ("Berta Amber", f"Berta Amber met {n}."),
     lambda n: ("Berta Amber" if n else "", f"Berta Amber met number {n}.")],
    ids=["a shared name", "the same title", "a title named by one"],
)  # fmt: skip
def test_a_search_looks_at_a_bounded_part_of_the_corpus(monkeypatch, passage):
    told = [passage(n) for n in range(300)]
    words = BM25Retriever.from_passages(
        Passage(id=str(n), title=title, text=text) for n, (title, text) in enumerate(told)
    )
    question = pool.QuestionTerms("number 7", words, Links.of_passages(words))
    assert len(pool.gather(question, np.array([0]), np.array([0])).positions) > 1
    monkeypatch.setattr(pool, "_REACH", 200)
    assert len(pool.gather(question, np.array([0]), np.array([0])).positions) == 1


def test_passages_without_titles_are_linked_by_names(tmp_path):
    passages = [one.model_copy(update={"title": ""}) for one in world()]
    bare = load_index(build_index(passages, tmp_path / "bare", kind="linked"))
    found = bare(QUESTION, k=30)
    assert "w8" in {one.id for one in found} - {one.id for one in bare.base(QUESTION, k=30)}
    assert {one.linked_from for one in found} == {""}


def test_what_is_mapped_is_what_was_made(folder, tmp_path):
    made, count = Links.of_passages(BM25Retriever.from_passages(world())), len(world())
    folder = folder / "version-1"
    read = Links.load(folder, count)
    for name, value in vars(made).items():
        one, other = (value, getattr(read, name))
        pairs = [(one.starts, other.starts), (one.items, other.items)] if isinstance(one, Lists) else [(one, other)]
        assert all(np.array_equal(*pair) for pair in pairs), name
    with pytest.raises(IndexRefused, match=f"not of its {count + 1}"):
        Links.load(folder, count + 1)
    with pytest.raises(IndexRefused, match="cannot be read"):
        Links.load(tmp_path, count)


def test_links_are_made_at_first_use_and_follow_their_index(tmp_path, caplog, monkeypatch):
    passages, index = world(), tmp_path / "a+b"
    build_index(passages[:-9], index, kind="bm25")
    with caplog.at_level(logging.WARNING):
        first = open_retriever(f"linked:{index}")
    assert "Making the links" in caplog.text
    assert first(QUESTION, k=3) == open_retriever(f"linked:{index}")(QUESTION, k=3)
    add_to_index(passages[-9:], index)
    assert not up_to_date(index)
    with pytest.raises(IndexRefused, match=r"found the passage 'w\d+', which the links do not know"):
        first.over(load_index(index))("Hestvik birds of region H", k=3)
    with monkeypatch.context() as patch:
        patch.setattr(linked_retriever, "build_index", lambda *_, **__: pytest.fail("links are added, not built again"))
        again = open_retriever(f"linked:{index}")
    assert up_to_date(index)
    assert again.fingerprint != first.fingerprint
    build_index(passages, tmp_path / "at once", kind="bm25")
    assert again(QUESTION, k=9) == open_retriever(f"linked:{tmp_path / 'at once'}")(QUESTION, k=9)


def test_links_that_are_there_are_used_without_writing(folder, tmp_path, monkeypatch):
    index = build_index(world(), tmp_path / "index", kind="bm25")
    make_links(index)
    monkeypatch.setattr(linked_retriever, "in_turn", lambda lock_file, what: pytest.fail("nothing is to be made"))
    there = {path: path.stat().st_mtime_ns for place in (tmp_path, folder.parent) for path in place.rglob("*")}
    for name in (index, folder):
        assert open_retriever(f"linked:{name}")(QUESTION, k=3)
    assert {path: path.stat().st_mtime_ns for place in (tmp_path, folder.parent) for path in place.rglob("*")} == there


@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize("cut", [1, 9, 15, len(world()) - 1])
def test_added_passages_bring_the_links_that_all_would_have(tmp_path, cut, titled):
    long = Passage(
        id="long", title="Region A Birds", text="In Arvik there was Amber Tide of Region A."
    )  # a longer title
    passages = [*world()[::-1], long]
    passages = passages if titled else [one.model_copy(update={"title": ""}) for one in passages]
    whole, added = tmp_path / "whole", tmp_path / "added"
    build_index(passages, whole, kind="linked")
    build_index(passages[:-cut], added, kind="linked")
    read: list[BuildProgress] = []
    add_to_index(passages[-cut:], added, progress=read.append)
    (linked_again,) = (one.total for one in read if one.stage == "linking")
    assert cut <= linked_again < len(passages) or cut > 20
    (made,), (grown,) = (sorted(folder.glob("version-*/links")) for folder in (whole, added))
    assert all(file.read_bytes() == (grown / file.name).read_bytes() for file in made.iterdir())
    assert load_index(added)(QUESTION, k=9) == load_index(whole)(QUESTION, k=9)


def test_the_first_title_ends_the_links_by_first_names():
    texts = [("", "Cold Bay is a town."), ("", "He lives in Cold Bay."), ("Mara Holm", "She likes boats.")]
    passages = [Passage(id=text, title=title, text=text) for title, text in texts]
    before, words = Links.of_passages(BM25Retriever.from_passages(passages[:2])), BM25Retriever.from_passages(passages)
    assert len(before.links.items) == 1
    assert len(Links.of_passages(words, before=before).links.items) == 0


def test_an_old_passage_is_linked_to_a_title_that_comes_later():
    texts = [("Harbour", "It lies in New York City."), ("New York", "A place."), ("New York City", "The city.")]
    passages = [Passage(id=title, title=title, text=text) for title, text in texts]
    before, words = Links.of_passages(BM25Retriever.from_passages(passages[:2])), BM25Retriever.from_passages(passages)
    for made, titles in ((before, ["New York"]), (Links.of_passages(words, before=before), ["New York City"])):
        named = made.links.of(np.array([0]))[1]
        assert made.titles[named].tolist() == [names.title_hash(title) for title in titles]


def test_links_go_over_any_retriever_of_their_passages(folder, retriever, tmp_path):
    build_index(world(), tmp_path / "words", kind="bm25")
    fused = open_retriever(f"linked:{tmp_path / 'words'}+{folder}")
    assert isinstance(fused, LinkedRetriever)
    assert fused.name.startswith("linked fusion")
    assert "Cai Moss" in {one.title for one in fused(QUESTION, k=5)}
    named = open_retriever(f"linked:{tmp_path / 'words'}@{folder}")
    assert named(QUESTION, k=4) == retriever(QUESTION, k=4)
    assert links_folder(folder) == make_links(folder) == folder  # its own
    elsewhere = as_retriever(lambda query: [Passage(id="w2", title="Copper Moon", text="A film.")])
    assert {one.title for one in linked(elsewhere, [], folder)(QUESTION, k=3)} >= {"Copper Moon", "Cai Moss"}
    with pytest.raises(QuestreeError, match="no folder on this machine"):
        linked(elsewhere, [])
    with pytest.raises(IndexRefused, match="holds no links"):
        linked(elsewhere, [], tmp_path / "words")


def test_what_is_shipped_is_small_and_has_a_card():
    assert len((choice := Choice.load()).model_dump_json()) < 100_000
    assert {"trained on", "task unseen"} <= set(choice.card)


@pytest.mark.parametrize(
    ("name", "value"),
    [("right", [0, 1, 2]), ("feature", [99, -1, -1]), ("feature", [0, -1, 0]), ("roots", [3]), ("number", [1.0])],
)
def test_a_damaged_choice_is_refused(tmp_path, name, value):
    trees = {"base": 0.0, "roots": [0], "feature": [0, -1, -1], "right": [2, 1, 2], "number": [0.5, -1.0, 1.0]}
    file = tmp_path / "choice.json"
    Choice(first=Trees(**trees), second=Trees(**trees)).save(file)
    assert Choice.load(file).first.scores(np.array([[0.5], [0.6]], np.float32)).tolist() == [-1, 1]
    file.write_text(json.dumps({"format": 1, "first": trees | {name: value}, "second": trees, "card": {}}))
    with pytest.raises(CheckpointError, match="calibrate again"):
        Choice.load(file)


def questions() -> dict[str, list[Question]]:
    every = [
        Question(id=f"{n}{word}", task="mine", question=f"{word} was the maker of {film} raised in?", answers=(town,),
                 gold_titles=(film, who, town), style="short", split="train")
        for word in ("Where", "Which town", "What place", "In what town")
        for n, (film, who, town) in enumerate(zip(FILMS, PEOPLE, TOWNS, strict=False))
    ]  # fmt: skip
    return {"train": every[:20], "test": [*every[20:], every[0].model_copy(update={"gold_titles": ("Nowhere",)})]}


def test_a_choice_of_ones_own_is_kept_beside_the_links_and_used(tmp_path):
    folder = build_index(world(), tmp_path / "own", kind="linked")
    before = load_index(folder)
    choice, measured = calibrate(before, questions())
    assert choice.fingerprint == calibrate(before, questions())[0].fingerprint
    assert [recall.n for recall, _ in measured.values()] == [20, 4, 4, 4]
    assert choice.card["measured"]
    assert before.choice_file == tmp_path / "own.choice.json"
    choice.save(before.choice_file)
    after = load_index(folder)
    assert after.choice.card == choice.card
    assert after.fingerprint != before.fingerprint
    with pytest.raises(QuestreeError, match="of 0 questions to train on and of 4"):
        calibrate(before, {"test": questions()["test"]})


def test_our_trees_score_as_scikit_learn_does(retriever):
    from sklearn.ensemble import HistGradientBoostingClassifier

    from questree.retrieval.linked.calibration import as_trees

    draw = np.random.default_rng(3)
    numbers = draw.normal(size=(500, 6)).astype(np.float32)
    model = HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=7, random_state=0)
    model.fit(numbers, numbers[:, 0] * numbers[:, 1] + numbers[:, 2] > 0)
    difference = as_trees(model).scores(numbers) - model.decision_function(numbers)
    assert np.quantile(np.abs(difference), 0.98) < 1e-3  # a threshold is rounded to five digits
    assert cases_of(retriever, questions()["train"])[0].gold.tolist() == [0, 6, 14]


def test_what_it_finds_over_http_is_what_it_finds_in_process(retriever):
    with running(create_app(retriever)) as address:
        remote = RemoteRetriever(address)
        assert remote.fingerprint == retriever.fingerprint
        assert remote.batch([QUESTION, "birds"], k=5) == retriever.batch([QUESTION, "birds"], k=5)
        assert any(passage.linked_from for passage in remote(QUESTION, k=5))


def test_a_question_that_it_searched_for_is_replayed(retriever, tmp_path):
    asked = dspy.Example(id="1", question=QUESTION, answers=["Corsund"]).with_inputs("question")
    with dspy.context(lm=simulated_lm([], cache=False), adapter=None):
        evaluate(build("oner-cot", {}, retriever=retriever), [asked], metric("cover-em"), out=tmp_path / "run")
    pack([tmp_path / "run"], tmp_path / "run.capsule")
    [run] = replay(tmp_path / "run.capsule")
    assert [question.same for question in run.questions] == [True]


def test_a_build_that_was_interrupted_goes_on(retriever, tmp_path):
    def stop(how_far: BuildProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(world(), tmp_path / "world", kind="linked", progress=stop)
    with pytest.raises(IndexRefused):
        load_index(tmp_path / "world")
    again = load_index(build_index(world(), tmp_path / "world", kind="linked"))
    assert (again.fingerprint, again(QUESTION, k=5)) == (retriever.fingerprint, retriever(QUESTION, k=5))


class _Asked:
    """A question of a common and a telling word; the passages 0, 8 and 9 hold the telling one."""

    idf, titles = np.array([1.0, 4.0]), ()

    def weights(self, positions):
        return np.array([[1.0, place in (0, 8, 9)] for place in positions])


@pytest.mark.parametrize(
    ("ranking", "order"),
    [
        (np.array([0, 9, 8, 1]), [0, 1, 2, 3, 4, 8, 9, 5, 6, 7]),
        (np.array([1, 0, 9, 8]), [0, 1, 2, 3, 4, 8, 9, 5, 6, 7]),  # the best holds what all hold
        (np.array([0, 1, 2, 3]), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),  # by words nothing is like the best
    ],
)
def test_what_holds_the_telling_words_of_the_best_comes_after_the_first_five(ranking, order):
    positions, scores = with_alike(_Asked(), ranking, np.arange(10), np.arange(10.0, 0, -1))
    assert positions.tolist() == order
    assert sorted(scores, reverse=True) == scores.tolist()


def test_a_question_that_names_a_title_asks_for_no_other_like_it(monkeypatch):
    monkeypatch.setattr(_Asked, "titles", (1,))
    positions, _ = with_alike(_Asked(), np.array([0, 9, 8, 1]), np.arange(10), np.arange(10.0, 0, -1))
    assert positions.tolist() == list(range(10))


def test_a_document_is_joined_with_its_parts_and_with_those_that_link_to_it():
    def names_of(source, text=""):
        return names.documents_of(Passage(id=source, text=text, source=source))

    team = names_of("staff/teams.md#heads")
    assert team == names_of("staff/teams.md#sites")
    assert len(team) == 1
    assert team < names_of("staff/leave.html", "See [the teams](teams.md#heads) and [all](https://a.example/b).")
    assert team < names_of("index.md", "[Teams](<staff/teams.md>)")
    assert not team & names_of("other.md", "[x](teams.md)")
    assert names_of("", "[Teams](staff/teams.md)") == set()
