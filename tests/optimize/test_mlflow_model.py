import json
import os
import platform
import re
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import dspy
import pandas
import pytest
from fakes import ListRetriever

from questree.common.errors import QuestreeError
from questree.evaluation.tracking import Tracking
from questree.optimize import answer_all, load, log_model, save
from questree.optimize.mlflow_model import CONFIG, _own_code
from questree.programs import SearChain
from questree.retrieval import build_index
from questree.settings import RunSettings


@pytest.fixture(scope="module")
def served(tmp_path_factory, tracking_store):
    """The store, address and folder of a model that was compiled with an LM over an index, and what it warned of."""
    folder = tmp_path_factory.mktemp("served")
    tracking = Tracking(uri=tracking_store(folder))
    with tracking.run("model", {"task": "mini"}) as run, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        with dspy.context(lm=dspy.LM("openai/gpt-4.1-mini", api_key="none")):
            saved = save(SearChain(ListRetriever({})), folder / "program")
        assert log_model(saved).startswith("models:/")
    return tracking, f"runs:/{run.id}/model", folder, warned


@pytest.fixture(scope="module")
def index(_index, tmp_path_factory):
    """An index on disk, as a server opens it."""
    return build_index(_index.passages, tmp_path_factory.mktemp("index") / "mini", kind="bm25")


@pytest.fixture
def opened(served, index, monkeypatch, mlflow):
    """Open the model where the environment, or Python, says this of its surroundings."""
    tracking, address, *_ = served
    mlflow.set_tracking_uri(tracking.uri)

    def opened(config=None, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(f"QUESTREE_{name.upper()}", str(index) if name == "retriever" else value)
        return mlflow.pyfunc.load_model(address, model_config=config)

    return opened


@pytest.fixture
def loaded(opened):
    return opened(lm="simulated", retriever="")


def test_a_served_model_answers_one_question_and_several(loaded, mini):
    one = loaded.predict({"question": mini.dev[0].question})
    assert len(one) == 1
    assert one[0]["failure"] is None
    assert one[0]["answer"]
    assert one[0]["simulated"] is True
    rows = [{"question": e.question, "answer_style": e.answer_style} for e in mini.dev[:3]]
    several = loaded.predict(rows)
    assert [reply["tree"]["question"] for reply in several] == [e.question for e in mini.dev[:3]]
    assert json.loads(json.dumps(several)) == several
    [reply] = loaded.predict({"question": [mini.dev[0].question]})
    assert (reply["tree"]["question"], reply["failure"]) == (mini.dev[0].question, None)


def test_a_model_is_logged_without_a_warning_and_leaves_the_run_s_parameters_alone(served, mlflow):
    assert [str(warned.message) for warned in served[3] if warned.category is UserWarning] == []
    mlflow.set_tracking_uri(served[0].uri)
    assert mlflow.get_run(served[1].split("/")[1]).data.params == {"task": "mini"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "the question is empty"),
        (float("nan"), "the question is empty"),
        (pandas.NA, "the question is empty"),
        (7, "of the type int"),
        (["a", "b"], "of the type list"),
    ],
)
def test_a_row_without_a_text_is_told_as_what_it_is(mini, given, said):
    [reply] = answer_all(mini.program(), [{"question": given}], 1)
    assert reply["failure"]["cause"] == "question"
    assert said in reply["failure"]["message"]


def test_a_model_that_was_told_no_lm_and_no_index_refuses_to_answer(opened):
    with pytest.raises(QuestreeError, match=r"compiled with the LM 'openai/gpt-4.1-mini'.*QUESTREE_LM"):
        opened()
    with pytest.raises(QuestreeError, match=r"compiled over the index list.*QUESTREE_RETRIEVER"):
        opened(lm="simulated")


def test_python_and_the_environment_tell_a_model_its_surroundings(opened, index, mini):
    question = {"question": mini.dev[0].question}
    model = opened({"lm": "simulated", "retriever": str(index)}, adapter="json")
    assert model.predict(question)[0]["answer"]
    assert type(model.unwrap_python_model().adapter).__name__ == "JSONAdapter"
    small = opened(lm="simulated", retriever="", window="50")
    assert small.predict(question)[0]["failure"]["cause"] == "context-window"


def test_python_names_the_task_of_a_simulated_lm_whose_replies_say_what_they_are(opened, index, tmp_path):
    row = {"id": "1", "question": "Which dog lives at the mill of Arden?", "answers": ["Rufus"], "chain": []}
    (tmp_path / "own.jsonl").write_text(json.dumps(row))
    named = {"lm": "simulated", "retriever": str(index)}
    for config, known in ((named, False), ({**named, "task": str(tmp_path / "own.jsonl")}, True)):
        [reply] = opened(config).predict({"question": row["question"]})
        assert "(The LM is simulated: this says nothing about a method." in reply["final_content"]
        assert ("knows only the questions of its task" in reply["final_content"]) is not known
        assert (reply["answer"] == "Rufus") is known


def test_python_names_whatever_the_environment_does(opened, index):
    assert {*CONFIG} <= {*RunSettings.model_fields}
    model = opened({"lm": "simulated", "retriever": str(index), "adapter": "json", "window": 50, "concurrency": 1})
    served = model.unwrap_python_model()
    assert (served.concurrency, served.limits.window, type(served.adapter).__name__) == (1, 50, "JSONAdapter")


def test_a_model_is_told_to_allow_prompts_that_have_changed(opened, index, change_the_plan):
    change_the_plan()
    named = {"lm": "simulated", "retriever": str(index)}
    with pytest.raises(QuestreeError, match=r"PlanChain.*the variable QUESTREE_ALLOW_CHANGED_SIGNATURES=1"):
        opened(named)
    assert opened({**named, "allow_changed_signatures": True})
    assert opened(named, allow_changed_signatures="1")


def test_a_reply_holds_what_the_model_s_signature_says(served, loaded, mini, mlflow):
    from mlflow.types.schema import AnyType, Array

    signature = mlflow.models.get_model_info(served[1]).signature
    kinds = {column.name: column.type for column in signature.outputs}
    python = {"string": str, "long": int, "double": float, "boolean": bool}
    for question in (mini.dev[0].question, ""):
        [reply] = loaded.predict({"question": question})
        assert list(reply) == list(kinds)
        for name, kind in kinds.items():
            wanted = list if isinstance(kind, Array) else object if isinstance(kind, AnyType) else python[kind.name]
            assert isinstance(reply[name], wanted), name


def test_a_model_holds_the_package_s_code_and_names_what_that_needs(served, tmp_path, monkeypatch):
    """``mlflow models serve`` and the image of ``build-docker`` install these lines, and find the code in the model."""
    import yaml
    from click.testing import CliRunner
    from mlflow.models.cli import commands

    monkeypatch.setenv("MLFLOW_TRACKING_URI", served[0].uri)
    words = ("generate-dockerfile", "-m", served[1], "-d", str(tmp_path / "image"))
    ran = CliRunner().invoke(commands, words)
    assert ran.exit_code == 0, ran.output
    [copied] = re.findall(r"^COPY (\S+) /opt/ml/model$", (tmp_path / "image" / "Dockerfile").read_text(), re.MULTILINE)
    model = tmp_path / "image" / copied
    needed = {re.split(r"[^\w-]", line)[0] for line in (model / "requirements.txt").read_text().splitlines()}
    assert {"mlflow", "dspy", "transformers"} <= needed
    assert "questree" not in needed
    assert yaml.safe_load((model / "python_env.yaml").read_text())["python"] == platform.python_version()
    code = (
        "import questree, questree.served_model as s; print(questree.__file__, s.__file__, questree.load_task('mini'))"
    )
    alone = {**os.environ, "PYTHONPATH": str(model / "code")}
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=alone, capture_output=True, text=True)
    front, script, task = ran.stdout.split(maxsplit=2)
    assert {Path(front).parent, Path(script).parent} == {model / "code" / "questree"}, ran.stderr
    assert task.startswith("mini: 74 train")


def test_what_came_from_an_index_is_named_by_its_version(monkeypatch):
    def distribution(origin):
        needed = ["dspy", "ray; extra == 'cluster'"]
        return SimpleNamespace(version="9.9", requires=needed, read_text=lambda name: origin)

    found = [distribution(None)]  # as the egg-info of a build is, which may stand before what is installed
    monkeypatch.setattr("questree.optimize.mlflow_model.distributions", lambda name: found)
    assert _own_code() == (None, ["questree==9.9"])
    found.append(distribution("{}"))
    assert _own_code()[1] == ["dspy"]


def test_a_served_model_holds_no_pickle_and_can_be_loaded_as_a_program(served, mini, mlflow):
    tracking, address, folder, _ = served
    files = [file for file in (folder / "mlartifacts").rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if file.suffix in {".pkl", ".cloudpickle"}]
    mlflow.set_tracking_uri(tracking.uri)
    assert load(address, retriever=mini.index).name == "searchain"
