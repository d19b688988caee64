"""A compiled program as an MLflow model: code and JSON, nothing pickled.

``mlflow models serve -m runs:/RUN_ID/model --env-manager local`` then answers one question or several a request.
Without ``--env-manager local``, and in an image of ``mlflow models build-docker``, MLflow installs what the model
names. The model holds this package's code, if no index offers it.

The LM, the index, the reader and the task of a simulated LM are not in the model: the server's environment names
them, in the variables of the command line (``QUESTREE_LM``, ``QUESTREE_RETRIEVER``, ``QUESTREE_TASK``, …). From Python,
``model_config`` names them: ``mlflow.pyfunc.load_model(address, model_config={"lm": …, "retriever": …})``. A model that
is given neither LM nor index does not load, unless it was compiled with the simulated LM over the bundled index.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import partial
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dspy

from ..evaluation.pools import Threads
from ..lm.failure import counting_failures
from ..lm.limits import Limits
from ..lm.models import is_simulated, not_known
from ..programs import Program
from ..programs.answer import Answered, as_fields

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

CONFIG = (
    *("lm", "api_base", "task", "retriever", "rerank", "reader", "duplicates", "defence", "adapter"),
    *("temperature", "reply_tokens", "concurrency", "allow_changed_signatures", *Limits.model_fields),
)
"""The settings that ``model_config`` may name; MLflow takes only those that the model was logged with."""


def log_model(folder: Path, name: str = "model", register: str | None = None) -> str:
    """Log a saved program as an MLflow model to the open run.

    Args:
        folder: of the artifact.
        name: of the model in the run.
        register: its name in the registry, where it becomes a new version; it is not registered where None.

    Returns:
        The model's address, for ``mlflow models serve`` and ``mlflow.pyfunc.load_model``.
    """
    import mlflow
    from mlflow.utils.logging_utils import suppress_logs

    code, requirements = _own_code()
    # MLflow would log the unset settings below as parameters of the run, over the run's own ``task``
    unlogged = suppress_logs("mlflow.models.model", re.compile("Failed to log model config as params"))
    with unlogged, warnings.catch_warnings():
        # MLflow warns that an input example is missing; the schema is enough, and MLflow would answer an example
        warnings.simplefilter("ignore", UserWarning)
        logged = mlflow.pyfunc.log_model(
            name=name,
            registered_model_name=register,
            python_model=_find("questree.served_model"),  # the script that makes the model, as the front door does
            artifacts={"program": str(folder)},
            signature=_signature(),
            model_config=dict.fromkeys(CONFIG),
            code_paths=code,
            pip_requirements=requirements,
        )
    return str(logged.model_uri)


def _own_code() -> tuple[list[str] | None, list[str]]:
    """Return the code that a model takes along, if no index offers it, and what its environment installs.

    Beside what pip installed from a file, a folder or a repository stands a ``direct_url.json`` (PEP 610). What a build
    leaves in a clone (``questree.egg-info``) has none, and is found first by a Python that was started there.
    """
    found = [*distributions(name="questree")]
    ours = next((one for one in found if one.read_text("direct_url.json")), None)
    if ours is None:
        return None, [f"questree=={found[0].version}"]
    needed = [requirement for requirement in ours.requires or [] if "extra ==" not in requirement]
    return [str(Path(_find("questree")).parent)], needed


def _find(module: str) -> str:
    """Return the path of a module's file."""
    found = find_spec(module)
    assert found is not None, "the package is incomplete"
    return str(found.origin)


def _signature() -> ModelSignature:
    """Return the fields of a request's row and of a reply's row."""
    from mlflow.models import ModelSignature
    from mlflow.types.schema import AnyType, Array, ColSpec, Object, Property, Schema

    passage = Object([Property(name, "string") for name in ("id", "title", "text")] + [Property("score", AnyType())])
    takes = Schema([ColSpec("string", "question"), ColSpec("string", "answer_style", required=False)])
    kinds: dict[Any, Any] = {str: "string", float: "double"}  # others may be null
    gives = {name: kinds.get(field.annotation, AnyType()) for name, field in Answered.model_fields.items()}
    gives |= {"references": Array(passage), "simulated": "boolean"}
    return ModelSignature(takes, Schema([ColSpec(kind, name) for name, kind in gives.items()]))


def answer_all(program: Program, rows: Sequence[dict[str, Any]], concurrency: int) -> list[dict[str, Any]]:
    """Answer the questions of one request; return the answers in their order.

    Args:
        program: a loaded one.
        rows: each with a ``question``, and an ``answer_style`` if it is not short.
        concurrency: questions at the same time.
    """
    return list(Threads(concurrency).map(partial(_answer, program), rows))


def _answer(program: Program, row: dict[str, Any]) -> dict[str, Any]:
    style = row.get("answer_style")
    given = {"answer_style": style} if isinstance(style, str) and style else {}
    with counting_failures():
        prediction = program(question=_question(row.get("question")), **given)
    fields, lm = as_fields(prediction), dspy.settings.lm
    if simulated := is_simulated(lm):
        warning = f"(The LM is simulated: this says nothing about a method. {not_known(lm, prediction.tree.question)}"
        fields["final_content"] = f"{fields['final_content']}\n\n{warning.rstrip()})".lstrip()
    return fields | {"simulated": simulated}


def _question(given: Any) -> Any:
    """Return the question of a row as it was given; one that is no text fails alone, with an error that shows it."""
    from pandas import isna

    if isna(given) is True:  # pandas gives None or nan for a missing value; for a list, isna gives an array
        return ""
    # of {"question": ["…"]} MLflow makes a row with a list
    return given[0] if isinstance(given, list) and len(given) == 1 else given
