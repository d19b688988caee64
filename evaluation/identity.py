"""Who did it: the facts that tell one run, and one artifact, from another. Never a key, never an address."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import dspy
from pydantic import TypeAdapter

from ..common.manifests import json_hash
from ..programs import Program
from ..simulate import is_simulated

_PACKAGES = ("questree", "dspy", "mlflow", "colbert-ai", "transformers", "torch")
_LM_TRAITS = ("temperature", "max_tokens", "top_p", "seed", "reasoning_effort")


def digest(value: Any) -> str:
    """16 hex digits that any change of the value (anything JSON can hold) changes."""
    return json_hash(value)[:16]


def lm_facts(lm: dspy.BaseLM | None = None) -> dict[str, Any]:
    """The LM's name, how it samples, and whether it is simulated; of the configured one where None is given."""
    lm = lm or dspy.settings.lm
    if lm is None:
        return {"name": "none", "simulated": False}
    traits = {key: lm.kwargs[key] for key in _LM_TRAITS if lm.kwargs.get(key) is not None}
    return {"name": str(lm.model), **traits, "simulated": is_simulated(lm)}


def retriever_facts(program: Program) -> dict[str, str]:
    """Name and fingerprint of the program's retriever; empty where it has none."""
    if program.retriever is None:
        return {}
    return {"name": program.retriever.name, "fingerprint": program.retriever.fingerprint}


def reader_name(program: Program) -> str | None:
    """The name of the program's reader; None where it has none."""
    return getattr(getattr(program, "reader", None), "name", None)


def reader_facts(program: Program) -> dict[str, Any]:
    """Name and threshold of the program's reader: another threshold is another run; empty where it has none."""
    reader = getattr(program, "reader", None)
    return {} if reader is None else {"name": reader.name, "threshold": reader.threshold}


def state_digest(program: Program) -> str:
    """Changes with the demonstrations and instructions of the program, and with nothing else."""
    state = {name: {**part, "lm": None} for name, part in program.dump_state().items()}
    return digest(state)


def signature_fingerprints(program: Program) -> dict[str, dict[str, str]]:
    """For each predictor, its signature's name and a fingerprint of all that it puts into a prompt.

    Ask it of a program as the code makes it: a compiled one may have instructions of its own.
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
    """Versions of Python and of the packages that a result depends on, those that are installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
