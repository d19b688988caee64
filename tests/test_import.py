"""Importing Questree changes nothing in the modules of others, and a question loads little of it."""

import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path

import pytest

from questree.common.lazy import exported
from questree.data import MINI_CORPUS, load_task
from questree.retrieval import build_index
from questree.simulate import Mind, SimulatedEngine, Traits, World
from questree.simulate.server import running_lm

LOOK = """
import importlib, inspect, pkgutil, sys
import dspy, httpcore, httpx, json_repair
import dspy._vendor.lm15.transports, dspy.adapters.baml_adapter, dspy.clients.execution, httpcore._backends.sync

THEIRS = ("dspy", "httpcore", "httpx", "json_repair", "litellm")
HEAVY = ("mlflow", "torch")  # take ten seconds to import, and are none of theirs

def attributes():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in THEIRS:
            continue
        for own, value in list(vars(module).items()):
            found[name, own] = repr(value) if own.isupper() and isinstance(value, (dict, list, set)) else id(value)
            if inspect.isclass(value) and value.__module__.partition(".")[0] in THEIRS:
                found |= {(name, own, one): id(kept) for one, kept in vars(value).items() if not one.startswith("__")}
    return found

before = attributes()
import questree
sys.modules |= dict.fromkeys(HEAVY)
for module in pkgutil.walk_packages(questree.__path__, "questree."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert error.name.partition(".")[0] in HEAVY, error
after = attributes()
assert len(before) > 10_000
print(*(".".join(name) for name in before if after.get(name) != before[name]))
"""


def test_importing_questree_changes_no_attribute_of_another_library():
    offline = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    seen = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False, env=offline)
    assert (seen.stdout.split(), seen.returncode) == ([], 0), seen.stderr


ASK = """
import sys
from questree.cli import main
sys.argv = ["questree", "ask", *sys.argv[1:]]
try:
    main()
except SystemExit:
    print(*(name for name in sys.modules if name.partition(".")[0] == "questree"))
"""


@pytest.mark.parametrize(("is_served", "most"), [(True, 90), (False, 100)])
def test_a_question_loads_only_what_it_needs(is_served, most, tmp_path):
    """The simulated LM, which stands in for an LM of the user's, is some fourteen modules more, with its questions."""
    folder = build_index(MINI_CORPUS, tmp_path / "bm25", kind="bm25")
    asked = next(one for one in load_task("mini").questions["dev"] if len(one.steps) > 1)
    with running_lm(SimulatedEngine(Mind(World([asked]), Traits()))) as address:
        lm = ["--lm", "openai/simulated", "--api-base", address] * is_served
        command = [sys.executable, "-c", ASK, asked.question, "--retriever", str(folder), *lm]
        key = {**os.environ, "OPENAI_API_KEY": "none", "QUESTREE_CACHE": str(tmp_path)}
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=key)
    loaded = ran.stdout.splitlines()[-1].split()
    assert asked.answers[0] in ran.stdout
    assert "questree.programs.searchain" in loaded, ran.stderr
    assert len(loaded) <= most
    assert not [name for name in loaded if "baselines." in name or name in ("torch", "mlflow")]
    assert is_served != ("questree.simulate" in loaded)


LIGHT = """
import sys

def loaded(*heavy):
    print(*(name for name in heavy if name in sys.modules), sep=",")

import questree.metrics
questree.metrics.metric("f1")
loaded("dspy", "numpy", "pydantic", "nltk", "rouge_score", "torch")
import questree.cli
loaded("dspy", "torch", "mlflow", "transformers", "colbert", "pydantic")
import questree.retrieval
loaded("torch", "numpy", "colbert", "bm25s", "transformers", "dspy", "qdrant_client")
import questree.data
questree.data.load_task("mini")
loaded("datasets", "dspy", "torch", "pyarrow")
"""


def test_metrics_help_and_tasks_load_no_heavy_library():
    ran = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == [""] * 4, ran.stderr


@pytest.mark.parametrize("package", ["", ".data", ".data.tasks", ".metrics", ".programs", ".retrieval", ".simulate"])
def test_every_exported_name_is_there(package):
    module = import_module(f"questree{package}")
    assert len(exported(module.__name__)) >= 5
    assert all(getattr(module, name).__class__ for name in exported(module.__name__))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


PRIVATE = {  # what the package uses of others that they promise to nobody
    ("dspy", "dspy/clients/lm.py"): [
        "self._engine_store =",
        "self._engine_lock =",
        "def _reap_closed_loops(",
        "self._async_engine_spec =",
    ],
    ("dspy", "dspy/clients/execution.py"): [
        "def _delay(",
        '"_fn_identifier"',
        "def _select_engine(",
        "key = (loop, lm.model, lm.model_type, timeouts,",
    ],
    ("dspy", "dspy/adapters/xml_adapter.py"): ["def _elements_to_value(", "def _group_children("],
    ("dspy", "dspy/teleprompt/bootstrap.py"): ["def _prepare_predictor_mappings("],
    ("dspy", "dspy/_vendor/lm15/transports/_sync.py"): ["def _send_request(", "self._pool ="],
    ("dspy", "dspy/_vendor/lm15/transports/_async.py"): ["def _send_request(", "def _do_stream("],
    ("dspy", "dspy/_vendor/lm15/transports/_types.py"): ["self._chunks ="],
    ("qdrant-client", "qdrant_client/qdrant_client.py"): ["self._client"],
    ("scikit-learn", "sklearn/ensemble/_hist_gradient_boosting/gradient_boosting.py"): [
        "self._baseline_prediction =",
        "self._predictors =",
    ],
}


@pytest.mark.parametrize(("library", "file"), PRIVATE, ids=lambda one: one.rpartition("/")[2])
def test_what_is_private_to_a_library_is_still_there(library, file):
    installed = distribution(library)
    source = Path(installed.locate_file(file)).read_text(encoding="utf-8")
    gone = [name for name in PRIVATE[library, file] if name not in source]
    assert not gone, f"{library} {installed.version} has no {', '.join(gone)} in {file}"
