"""A comparison as a table, as files and as a page, from handmade records."""

import csv
import io
import json
import re
from base64 import b64decode
from xml.etree import ElementTree

import pytest

from questree.cli.report import evaluation_table
from questree.evaluation.comparison.comparison import files_of
from questree.evaluation.comparison.page import as_page, plots_of
from questree.evaluation.comparison.plots import dot_rows, scatter
from questree.evaluation.comparison.published import published
from questree.evaluation.comparison.rows import Comparison
from questree.evaluation.evaluation import Evaluation
from questree.evaluation.records import Record
from questree.lm.failure import Failure
from questree.lm.spent import Spent
from questree.metrics import Interval
from questree.programs import ReasoningTree
from questree.retrieval import Passage

HOSTILE = '<script>alert(1)</script>|&"'

SVG = "{http://www.w3.org/2000/svg}"


def made(scores, *, rounds=1, failed=0, recall=None, cost=0.0, cached=0, name="cover-em"):
    tree = ReasoningTree(question="q")
    tree.grow(None, query="q", round=rounds)
    records = [
        Record(
            id=str(n),
            question="q",
            tree=tree,
            rounds=rounds,
            scores={name: score, "f1": score / 2},
            passages=() if recall is None else (Passage(id="p", text="a"),),
            retrieval={"recall@5": recall or 0.0, "recall@all": 1.0},
            failure=Failure(cause="timeout", message="m") if n < failed else None,
            spent=Spent(calls=n + 1, words_in=100, words_out=10, cost=cost, cached=cached),
            seconds=2.0,
            hops=2 + n % 2,
        )
        for n, score in enumerate(scores)
    ]
    return Evaluation(name, tuple(records), simulated=name == HOSTILE)


def compared(**evaluations):
    return Comparison(evaluations, "compare", "recorded:musique", "some/lm", "bm25", {"a": "searchain"})


def cells(evaluation):
    """What is printed of an evaluation, by name."""
    table = evaluation_table({"a": evaluation}, details=True)
    names, values, _ = ([str(cell) for cell in column.cells] for column in table.columns)
    return dict(zip(names, values, strict=True))


def test_a_result_is_six_rows_and_the_rest_is_explained():
    table = evaluation_table({"a": made([1, 0], recall=0.75, cost=0.25)})
    named = [str(cell) for cell in table.columns[0].cells]
    assert named == ["cover-em", "grounded", "failed", "calls", "tokens", "cost"]
    explained = evaluation_table({"a": made([1, 0], recall=0.75)}, details=True).columns
    assert "recall@5" in map(str, explained[0].cells)
    assert all(len(str(cell)) > 5 for cell in explained[-1].cells)


def test_a_figure_of_fewer_questions_tells_how_many():
    one = made([1, 0], recall=0.75)
    one.records[0].retrieval["citation_precision"] = 0.5
    [details] = compared(a=one).table.details
    assert (details["citation_precision"], details["recall@all"]) == ("0.500 (n=1)", "1.000")
    assert (cells(one)["citation_precision"], cells(one)["recall@5"]) == ("0.500 (n=1)", "0.750")


def test_an_evaluation_of_a_program_that_does_not_search_has_a_dash_for_recall():
    assert made([1, 0]).retrieval == {}
    assert {name: cell for name, cell in cells(made([1, 0])).items() if "recall" in name} == {"recall": "–"}
    assert cells(made([1, 0], recall=0.75))["recall@5"] == "0.750"


def test_where_the_cache_answered_some_of_the_calls_there_is_no_cost():
    found = compared(a=made([1, 0], cost=0.25), b=made([1, 0], cost=0.1, cached=1))
    assert [line["cost"] for line in found.table.lines] == ["$0.50", "2 of 3 calls cached"]
    assert [(line["cached"], line["cost"]) for line in found.table.numbers] == [(0, 0.5), (1, None)]
    assert [line["cost"] for line in csv.DictReader(io.StringIO(found.table.as_csv()))] == ["0.5", ""]
    costs = [cells(one)["cost"] for one in found.evaluations.values()]
    assert costs == ["$0.50", "$0.20, 2 of 3 calls from the cache"]
    assert cells(made([1], cached=1))["cost"] == "$0.00, 1 of 1 calls from the cache"
    heading, plot = plots_of(found)[1]
    assert "(without b: the cache answered some of the calls)" in heading
    told = ElementTree.tostring(drawn(plot)).decode()
    assert (">a<" in told, ">b<" in told) == (True, False)
    assert not any("cost" in heading for heading, _ in plots_of(compared(b=found.evaluations["b"])))
    assert [row["cost"] for row in found.evaluations["b"].table()] == [None, None]


def test_each_column_says_what_the_records_hold():
    table = compared(a=made([1, 0, 1, 0], rounds=3, recall=0.75, cost=0.25), b=made([0, 0, 1, 0], failed=1)).table
    one, other = table.lines
    assert one["difference to a"] == ""
    assert other["difference to a"].startswith("-0.250 [")
    told = (one["f1"], one["recall@5"], one["failed"], one["LM calls"], one["cost"])
    assert told == ("0.250", "0.750", "0", "2.5", "$1.00")
    assert (other["recall@5"], other["failed"], other["cost"]) == ("–", "1 timeout", "–")
    details = table.details[0]
    assert (details["words in"], details["words out"], details["rounds"], details["seconds"]) == (
        "100", "10", "3.00", "2.00",
    )  # fmt: skip
    assert details["recall@all"] == "1.000"


def test_failed_questions_count_as_wrong_and_the_answered_ones_stand_beside():
    comparison = compared(a=made([0, 0, 1, 1], failed=2), b=made([0, 0, 1, 1]))
    one, other = comparison.table.lines
    assert (one["cover-em"][:5], one["answered alone"][:5]) == ("0.500", "1.000")
    assert (other["cover-em"][:5], other["answered alone"][:5]) == ("0.500", "0.500")
    assert "In every score a failed question counts as wrong" in comparison.table.note
    assert [row["answered"] for row in comparison.table.numbers] == [1.0, 0.5]
    assert "1.000" in str(comparison.evaluations["a"]).partition("answered alone")[2]
    assert "answered alone" not in compared(a=made([1])).table.lines[0]


def test_two_rates_stand_beside_the_scores_where_some_questions_have_no_answer():
    records = made([1, 1, 0, 0]).records
    gold, given = (("x",), ("x",), (), ()), ("x", "", "", "y")
    told = zip(records, gold, given, strict=True)
    told = [{"gold_answers": gold, "answer": one, "answers": (one,) * bool(one)} for _, gold, one in told]
    found = Evaluation("f1", tuple(r.model_copy(update=of) for r, of in zip(records, told, strict=True)))
    comparison = compared(a=found, b=found)
    (line, _), (numbers, _) = comparison.table.lines, comparison.table.numbers
    assert (line["declined"][:5], line["not declined"][:5]) == ("0.500", "0.500")
    assert (numbers["declined"], numbers["not declined"], found.figures()["not_declined"]) == (0.5, 0.5, 0.5)
    assert numbers["declined_low"] < 0.5 < numbers["declined_high"]
    assert "declined 0.500" in str(found)
    assert "Not declined" in as_page(comparison)
    assert "declined" not in as_page(compared(a=made([1]), b=made([1])))


def test_the_page_shows_every_gold_answer_of_a_question_that_flipped():
    both = {"gold_answers": ("Po", "Elbe"), "needed": (("Po",), ("Elbe",))}
    one, other = (made([score]).records[0].model_copy(update=both) for score in (1, 0))
    assert "Po; Elbe" in as_page(compared(a=Evaluation("cover-em", (one,)), b=Evaluation("cover-em", (other,))))


def test_a_difference_of_right_answers_has_a_p_value_for_all_comparisons_together():
    scores = {"a": [0] * 8 + [1], "b": [1] * 7 + [0] * 2, "c": [0] * 8 + [1]}
    comparison = compared(**{name: made(of) for name, of in scores.items()})
    assert [line["p"] for line in comparison.table.lines] == ["", "0.078", "1.000"]  # twice .0391
    assert "adjusted for 2 comparisons (Holm)" in comparison.table.note
    assert "p" not in compared(a=made([0.5]), b=made([1])).table.lines[0]


def test_a_table_says_where_titles_stand_for_passages():
    by_title = Evaluation(
        "f1", tuple(r.model_copy(update={"retrieval": {"title recall@5": 0.5}}) for r in made([1], recall=1).records)
    )
    (line,) = compared(a=by_title).table.lines
    assert line["title recall@5"] == "0.500"
    assert "a title stands for them" in compared(a=by_title).table.note
    assert "a title stands" not in compared(a=made([1], recall=1)).table.note


def test_csv_has_every_number_by_itself():
    first, second = csv.DictReader(io.StringIO(compared(a=made([1, 0]), b=made([0, 0])).table.as_csv()))
    assert float(first["score"]) == 0.5
    assert float(first["score_low"]) <= 0.5 <= float(first["score_high"])
    assert first["difference"] == ""
    assert float(second["difference"]) == -0.5
    assert first["simulated"] == "False"


def test_the_papers_figures_stand_beside_ours_with_their_model():
    lines = compared(a=made([1, 0]), b=made([0, 0])).papers
    (line,) = [line for line in lines if line["metric"] == "cover-em"]
    assert line["program"] == "a"
    assert (line["paper's"], line["ours, some/lm"], line["paper's model"]) == ("17.1", "50.0", "gpt-3.5-turbo")
    assert "Xu et al." in line["source"]
    assert Comparison({"a": made([1])}, task="mini", methods={"a": "searchain"}).papers == []


@pytest.mark.parametrize(
    ("task", "program", "metric", "percent"),
    [
        ("hotpotqa", "searchain", "cover-em", 56.91),
        ("fever", "dsp", "label", 80.65),
        ("eli5", "direct", "rouge-l", 21.90),
        ("musique", "tree-of-reviews", "f1", 43.6),
        ("2wikimultihopqa", "ircot", "em", 39.2),
        ("strategyqa", "blendfilter", "yes-no", 74.4),
    ],
)
def test_a_published_figure_is_that_of_its_task_and_metric(task, program, metric, percent):
    assert [f.percent for f in published(task, {program}) if f.metric == metric] == [percent]


def test_files_hold_names_of_any_kind():
    hostile = Comparison({HOSTILE: made([1, 0]), "b": made([0, 1])}, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    files = files_of(hostile)
    assert set(files) == {"table.md", "table.csv", "comparison.json", "page.html"}
    assert files["page.html"].count('<img class="plot"') == 2
    rows = [line for line in files["table.md"].splitlines() if line[:1] == "|"]
    assert {line.count("|") - line.count(r"\|") for line in rows[:4]} == {10}
    assert {line.count("|") - line.count(r"\|") for line in rows[4:]} == {6}
    assert json.loads(files["comparison.json"])["programs"][0]["program"] == HOSTILE


def test_what_is_simulated_says_so_everywhere():
    comparison = Comparison({"a": made([1, 0], name=HOSTILE)}, stopped="no more of it")
    files, notebook = files_of(comparison), comparison._repr_html_()
    assert all("simulated" in text for text in (*files.values(), notebook))
    assert all(shown in notebook for shown in ("no more of it", "0.500"))
    assert "true" in json.dumps(json.loads(files["comparison.json"])["simulated"])


@pytest.mark.filterwarnings("error")  # all points at one cost
@pytest.mark.parametrize("score", [0.3, 1e5, -5.0])
def test_plots_hold_names_and_scores_of_any_kind_as_text_alone(score):
    around = Interval(score, score - 0.01, score + 0.01, 7)
    points = dict.fromkeys((HOSTILE, "$x_1$", *(f"program-{n}" for n in range(3))), (2.0, around))
    rows = {name: {2: around, 3: Interval(0, 0, 0, 9)} for name in points}
    for image, more in (
        (scatter(points, x="calls", y="score"), ["calls", "score"]),
        (dot_rows(rows, x="score"), ["2 hops (n=7)", "3 hops (n=9)"]),
    ):
        told = [element.text for element in drawn(image).iter(f"{SVG}text")]
        assert {*more, *rows} <= {*told}
    assert scatter(points, x="calls", y="score") == scatter(points, x="calls", y="score")


@pytest.mark.filterwarnings("error")  # one row alone has room
def test_a_plot_fits_twice_into_a_page_tells_numbers_as_people_write_them_and_shows_one_dot_alone():
    score = Interval(0.5, 0.4, 0.6, 7)
    cheap = drawn(scatter({"a": (0.1, score), "b": (0.004, score)}, x="US dollars", y="em"))
    told = {element.text for element in cheap.iter(f"{SVG}text")}
    assert {"0.01", "0.1", "a", "b"} <= told
    assert not [text for text in told if "e" in text and text[0].isdigit()]
    alone = drawn(scatter({"a": (3.7, score)}, x="calls", y="em"))
    assert "3.7" in {element.text for element in alone.iter(f"{SVG}text")}
    hops = drawn(dot_rows({"a": {2: score}}, x="em"))
    points = {float(one.attrib["width"].removesuffix("pt")) for one in (cheap, alone, hops)}
    assert max(points) / 72 * 96 <= 556  # pixels: half of what a window of 1280 has for a page, less the gap


def test_the_page_tells_who_won_and_the_questions_that_flipped():
    found = compared(a=made([1, 0, 1, 0]), b=made([0, 0, 1, 1]), c=made([1, 1, 1, 0]))
    assert [found.won_and_lost(name) for name in "abc"] == [(0, 0), (1, 1), (1, 0)]
    assert [[right for _, right in one] for one in found.flipped] == [
        [True, False, True],
        [False, False, True],
        [False, True, False],
    ]
    page = files_of(found)["page.html"]
    assert "<b>c</b> answers 1 more question than <b>a</b>: it wins 1 and loses 0" in page
    assert (page.count("✓ right"), page.count("✕ wrong")) == (4, 5)


def drawn(image):
    """The drawing in the image of a page."""
    [content] = re.findall(r'^<img class="plot" alt="[^"<>]*" src="data:image/svg\+xml;base64,([\w+/=]*)">$', image)
    return ElementTree.fromstring(b64decode(content))
