"""Identity: the facts that tell one run, or one artifact, from another. Keys and addresses do not belong to them."""

from __future__ import annotations

import platform
from typing import Any

import dspy
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from ..common.manifests import installed_versions, json_hash
from ..lm.guard import adapter_name
from ..lm.models import is_simulated
from ..lm.options import options_of
from ..programs import Program
from ..programs.composed import NearestDemonstrations
from ..programs.states import state_without_lms
from ..retrieval.duplicates import ExactDuplicates

_PACKAGES = ("questree", "dspy", "mlflow", "colbert-ai", "transformers", "torch")


def digest(value: Any) -> str:
    """Return 16 hex digits that identify a value that JSON can hold."""
    return json_hash(value)[:16]


def run_identity(program: Program, *, task: str) -> dict[str, Any]:
    """Return what must be the same for a run to be resumed: all that an answer depends on, but no metric."""
    return {
        "program": program.name,
        "settings": program.settings.model_dump(mode="json"),
        "compiled state": state_digest(program),
        "task": task,
        "lm": lms_facts(program),
        "retriever": retriever_facts(program),
        "reader": reader_facts(program),
        "duplicates": duplicates_facts(program),
    }


def lm_facts(lm: dspy.BaseLM | None = None) -> dict[str, Any]:
    """Return the LM's name, how it is asked, and whether it is simulated; None stands for the configured LM.

    The adapter is named unless it is DSPy's `ChatAdapter`, since another one writes other prompts.
    """
    lm = lm or dspy.settings.lm
    if lm is None:
        return {"name": "none", "simulated": False}
    traits = {name: one for name, one in options_of(lm.kwargs).items() if one is not None}
    adapter = adapter_name()
    asked = traits if adapter == "chat" else traits | {"adapter": adapter}
    return {"name": str(lm.model), **asked, "simulated": is_simulated(lm)}


def lms_of(program: Program) -> list[dspy.BaseLM | None]:
    """Return the LM that each predictor of a program asks: its own (``set_lm``), or the configured one."""
    return [predictor.lm or dspy.settings.lm for predictor in program.predictors()] or [dspy.settings.lm]


def lms_facts(program: Program) -> dict[str, Any]:
    """Return `lm_facts` of the LM that the program asks; of several (``set_lm``), those of each predictor's.

    If one of several is simulated, the answers count as simulated.
    """
    of_predictors = {name: lm_facts(predictor.lm) for name, predictor in program.named_predictors()}
    first = next(iter(of_predictors.values()), lm_facts())
    if all(facts == first for facts in of_predictors.values()):
        return first
    names = sorted({facts["name"] for facts in of_predictors.values()})
    simulated = any(facts["simulated"] for facts in of_predictors.values())
    return {"name": ", ".join(names), "of predictors": of_predictors, "simulated": simulated}


def retriever_facts(program: Program) -> dict[str, str]:
    """Return the name and the fingerprint of the program's retriever; nothing if it has none."""
    if program.retriever is None:
        return {}
    return {"name": program.retriever.name, "fingerprint": program.retriever.fingerprint}


def reader_name(program: Program) -> str | None:
    """Return the name of the program's reader; None if it has none."""
    return getattr(getattr(program, "reader", None), "name", None)


def reader_facts(program: Program) -> dict[str, Any]:
    """Return the reader's name and threshold, because another threshold is another run; nothing without a reader."""
    return _model_facts(getattr(program, "reader", None))


def duplicates_facts(program: Program) -> dict[str, Any]:
    """Return the name and threshold of the check of repeated queries; nothing for the one by words, or without one."""
    return _model_facts(getattr(program, "duplicates", None))


def _model_facts(model: Any) -> dict[str, Any]:
    """Return name and threshold; of a model in a folder also its fingerprint: one that is trained further keeps it."""
    if model is None or isinstance(model, ExactDuplicates):
        return {}
    name = getattr(model, "name", None) or getattr(model, "__name__", type(model).__name__)
    trained = getattr(model, "fingerprint", None)
    facts = {"name": str(name), "threshold": getattr(model, "threshold", None)}
    return facts | ({"fingerprint": trained} if trained else {})


def state_digest(program: Program) -> str:
    """Return a digest of the program's demonstrations, instructions and predictors' settings, and of nothing else."""
    state = state_without_lms(program)
    settings = {name: predictor.config for name, predictor in program.named_predictors() if predictor.config}
    more: dict[str, Any] = {"config": settings} if settings else {}
    if isinstance(program, NearestDemonstrations):
        more |= {"lessons": program.lessons, "k": program.k}
    return digest(state | to_jsonable_python(more, fallback=repr))


def signature_fingerprints(program: Program) -> dict[str, dict[str, str]]:
    """Return, for each predictor, its signature's name and a fingerprint of all that the signature puts into a prompt.

    Args:
        program: as the code makes it; a compiled one may have instructions of its own.
    """
    return {name: _fingerprint(predictor.signature) for name, predictor in program.named_predictors()}


def _fingerprint(signature: type[dspy.Signature]) -> dict[str, str]:
    fields = [
        [name, extra["__dspy_field_type"], extra.get("desc"), TypeAdapter(field.annotation).json_schema()]
        for name, field in signature.fields.items()
        for extra in [field.json_schema_extra]
    ]
    content = [signature.__name__, signature.instructions, fields]
    return {"signature": signature.__name__, "fingerprint": digest(content)}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that a result depends on."""
    return {"python": platform.python_version(), **installed_versions(_PACKAGES)}
