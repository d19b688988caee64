"""Programs by name, their settings, and the variants of these that an ablation compares.

To add a program, write its name and its place below: nothing else is needed. It is imported when it is named.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from itertools import product
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from ..common.errors import QuestreeError
from ..common.lazy import PartsByName
from ..common.registry import Registry, settings_of
from .program import Program

logger = logging.getLogger(__name__)

_PLACES = {
    # the methods
    "blendfilter": ".blendfilter:BlendFilter",
    "chain-of-reviews": ".chain_of_reviews:ChainOfReviews",
    "evidence-chain": ".evidence_chain:EvidenceChain",
    "searchain": ".searchain:SearChain",
    "tree-of-reviews": ".tree_of_reviews:TreeOfReviews",
    # baselines without retrieval
    "auto-cot": ".baselines.memory:AutoCoT",
    "cot": ".baselines.memory:ChainOfThought",
    "direct": ".baselines.memory:Direct",
    "recite": ".baselines.memory:Recite",
    "self-ask": ".baselines.subquestions:SelfAsk",
    "self-consistency": ".baselines.self_consistency:SelfConsistency",
    "least-to-most": ".baselines.subquestions:LeastToMost",
    "plan-and-solve": ".baselines.subquestions:PlanAndSolve",
    "searchain-without-retrieval": ".searchain:SearChainWithoutRetrieval",
    # baselines with retrieval
    "adaptive": ".baselines.adaptive:Adaptive",
    "dsp": ".baselines.dsp:DSP",
    "flare": ".baselines.flare:FLARE",
    "ircot": ".baselines.ircot:IRCoT",
    "iter-retgen": ".baselines.iter_retgen:IterRetgen",
    "multi-hop": ".baselines.multi_hop:MultiHop",
    "multi-hop-summaries": ".baselines.multi_hop_summaries:MultiHopSummaries",
    "oner": ".baselines.oner:OneR",
    "oner-cot": ".baselines.oner:OneRCoT",
    "plan-graph": ".baselines.plan_graph:PlanGraph",
    "react": ".baselines.react:ReAct",
    "react-self-consistency": ".baselines.react:ReActSelfConsistency",
    "search-agent": ".baselines.search_agent:SearchAgent",
    "self-ask-retrieval": ".baselines.subquestions:SelfAskRetrieval",
    "plan-and-solve-retrieval": ".baselines.subquestions:PlanAndSolveRetrieval",
    "toolformer": ".baselines.toolformer:Toolformer",
    "tree-of-thought": ".baselines.tree_of_thought:TreeOfThought",
    "verify-and-edit": ".baselines.verify_and_edit:VerifyAndEdit",
}

PROGRAMS: PartsByName[type[Program]] = PartsByName(__package__, _PLACES)
"""Every program of ours, by its name."""


def _read_program(name: str, found: Any) -> type[Program]:
    if not (isinstance(found, type) and issubclass(found, Program)):
        raise TypeError("it is no subclass of questree.programs.Program")
    if not hasattr(found, "name"):
        raise TypeError("the class has no 'name', which every program has")
    return found


REGISTRY = Registry("program", PROGRAMS, _read_program)
"""Our programs, and those of other packages."""


def build(name: str, settings: Mapping[str, Any], **parts: Any) -> Program:
    """Build an uncompiled program.

    Args:
        name: one of `PROGRAMS`, or another that `REGISTRY` knows.
        settings: fields of the program's ``Settings``; the others have their defaults.
        parts: ``retriever``, ``reader``, ``duplicates`` …; those that this program does not take are left out.

    Raises:
        QuestreeError: if there is no such program or setting, or a value does not fit; the message names what fits.
    """
    return build_kind(REGISTRY.known(name), settings, **parts)


def build_kind(kind: type[Program], settings: Mapping[str, Any], **parts: Any) -> Program:
    """Build an uncompiled program of this class; as `build`."""
    checked, taken = settings_of(kind.name, kind.Settings, settings), _parameters(kind)
    if "program" in taken:  # it reasons with another program
        parts["program"] = build(checked.of, checked.program, **parts)
    return kind(**{part: value for part, value in parts.items() if part in taken}, settings=checked)


def allow(name: str, settings: Mapping[str, Any]) -> None:
    """Import a program that a user named as ``package:name``, and the program that it reasons with, if it has one.

    Only names that a user typed may be given here: a name in a file must not run anybody's code.

    Raises:
        QuestreeError: if one cannot be imported, or is no program.
    """
    REGISTRY.allow(name)
    inner = settings.get("of")
    if isinstance(inner, str) and "program" in _parameters(REGISTRY.known(name)):
        nested = settings.get("program")
        allow(inner, nested if isinstance(nested, Mapping) else {})


def saved_name(kind: type[Program]) -> str:
    """Return the name under which a program is saved; from now on this process can load it by that name.

    A program of a script or notebook can be loaded only there; a warning says so, the first time.

    Raises:
        QuestreeError: if it is defined inside a function, so that no name leads to it.
    """
    if name := REGISTRY.name_of(kind):
        return name
    name = f"{kind.__module__}:{kind.__qualname__}"
    if "<locals>" in name:
        raise QuestreeError(f"{kind.__name__} stands inside a function, so that nothing can load it; move it out.")
    if kind.__module__ == "__main__":
        warning = (
            "%s stands in a script or notebook, which alone can load it. Move it into a file that can be imported."
        )
        logger.warning(warning, kind.__name__)
    REGISTRY.keep(name, kind)
    return name


def takes_retriever(name: str, settings: Mapping[str, Any]) -> bool:
    """Return whether the program needs a retriever if it has these settings.

    Raises:
        QuestreeError: as `build` does.
    """
    kind = REGISTRY.known(name)
    checked = settings_of(name, kind.Settings, settings)
    if "program" in _parameters(kind):
        return takes_retriever(checked.of, checked.program)
    return kind.searches and bool(getattr(checked, "retrieval", True))


def variants(
    name: str, over: Sequence[str], values: Sequence[Any] | None = None, given: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Return settings to compare, each by a label such as ``expansion=cot``.

    The program's present value, mostly the default, comes first, if it is among them.

    Args:
        over: settings to vary; for several, every combination. ``preset`` alone also varies, one at a time, each
            setting in which the paper differs, except those that have no effect by themselves.
        values: of the one setting, if its type does not list them all (a number, say).
        given: the other settings, which all of them have: with ``preset=paper`` the defaults are the paper's.

    Raises:
        QuestreeError: if there is no such program or setting, the type of one does not list its values, or one has no
            effect beside the other settings.
    """
    kind = REGISTRY.known(name)
    fields = kind.Settings.model_fields
    unknown = [setting for setting in over if setting not in fields]
    if unknown or not over:
        known = ", ".join(fields)
        raise QuestreeError(f"{name} has no setting {', '.join(unknown) or 'named'}; vary one of: {known}.")
    if values and len(over) > 1:
        raise QuestreeError("Values can be given for one setting at a time.")
    base = settings_of(name, kind.Settings, given or {})
    if list(over) == ["preset"]:
        paper = getattr(base, "PAPER", {})
        singly = {f"{key}={_label(value)}": {key: value} for key, value in paper.items() if not _idle_by(base, key)}
        return {"preset=best": {"preset": "best"}, **singly, "preset=paper": {"preset": "paper"}}
    for setting in over:
        if (by := _idle_by(base, setting)) and by not in over:
            raise QuestreeError(
                f"{setting} has no effect with {by}={_label(getattr(base, by))}: all rows would be equal. Give {by} "
                f"another value (--set), or vary it as well (--over {by})."
            )
    choices = [_choices(setting, fields[setting], values, getattr(base, setting)) for setting in over]
    combinations = [dict(zip(over, combination, strict=True)) for combination in product(*choices)]
    return {
        ", ".join(f"{key}={_label(value)}" for key, value in combination.items()): combination
        for combination in combinations
    }


def _idle_by(settings: Any, setting: str) -> str | None:
    """Return the other setting whose value makes this one ineffective; None if there is none."""
    other, value = getattr(settings, "IDLE", {}).get(setting, (None, None))
    return other if other and getattr(settings, other) == value else None


def _choices(setting: str, field: Any, values: Sequence[Any] | None, first: Any) -> list[Any]:
    """Return the values to compare, first this one if it is one of them."""
    choices = list(values or ()) or _values_of(field.annotation)
    if not choices:
        raise QuestreeError(f"{setting} can be anything: say which values to compare, for example --value 1 --value 2.")
    return sorted(choices, key=lambda value: (tuple(value) if isinstance(value, list) else value) != first)


def _values_of(annotation: Any) -> list[Any]:
    """Return all values of a type that lists them: a bool, a Literal, or a union of such."""
    if annotation is bool:
        return [True, False]
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        parts = [[None] if part is type(None) else _values_of(part) for part in get_args(annotation)]
        return [value for part in parts for value in part] if all(parts) else []
    return []


def _label(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _parameters(kind: type[Program]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(kind.__init__).parameters
