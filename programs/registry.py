"""Programs by name. To add one: its file in this folder or in baselines/, and its class here."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel, ValidationError

from ..common.errors import QuestreeError
from ..common.names import unknown_name
from .baselines.cot import AutoCoT, ChainOfThought
from .baselines.direct import Direct
from .baselines.dsp import DSP
from .baselines.ircot import IRCoT
from .baselines.iter_retgen import IterRetgen
from .baselines.least_to_most import LeastToMost
from .baselines.oner import OneR, OneRCoT
from .baselines.plan_and_solve import PlanAndSolve, PlanAndSolveRetrieval
from .baselines.react import ReAct, ReActSelfConsistency
from .baselines.recite import Recite
from .baselines.searchain_without_retrieval import SearChainWithoutRetrieval
from .baselines.self_ask import SelfAsk, SelfAskRetrieval
from .baselines.self_consistency import SelfConsistency
from .baselines.toolformer import Toolformer
from .baselines.tree_of_thought import TreeOfThought
from .baselines.verify_and_edit import VerifyAndEdit
from .blendfilter import BlendFilter
from .chain_of_reviews import ChainOfReviews
from .program import Program
from .searchain import SearChain
from .tree_of_reviews import TreeOfReviews

_METHODS: list[type[Program]] = [SearChain, TreeOfReviews, ChainOfReviews, BlendFilter]
_WITHOUT_RETRIEVAL: list[type[Program]] = [
    Direct,
    ChainOfThought,
    SelfConsistency,
    AutoCoT,
    Recite,
    SelfAsk,
    LeastToMost,
    PlanAndSolve,
    SearChainWithoutRetrieval,
]
_WITH_RETRIEVAL: list[type[Program]] = [
    OneR,
    OneRCoT,
    SelfAskRetrieval,
    PlanAndSolveRetrieval,
    ReAct,
    ReActSelfConsistency,
    Toolformer,
    VerifyAndEdit,
    TreeOfThought,
    DSP,
    IterRetgen,
    IRCoT,
]
PROGRAMS: dict[str, type[Program]] = {kind.name: kind for kind in [*_METHODS, *_WITHOUT_RETRIEVAL, *_WITH_RETRIEVAL]}


def build(name: str, settings: dict[str, Any], **parts: Any) -> Program:
    """The program of this name as the code makes it, uncompiled.

    Args:
        name: one of `PROGRAMS`.
        settings: by the names in its ``Settings``; what is not given has its default.
        parts: ``retriever``, ``reader``, ``duplicates`` …; those that this kind of program does not take are left out.

    Raises:
        QuestreeError: if there is no such program or setting, or a value does not fit; names what there is.
    """
    kind = kind_named(name)
    taken = inspect.signature(kind.__init__).parameters
    accepted = {part: value for part, value in parts.items() if part in taken}
    return kind(**accepted, settings=_checked(kind, settings))


def kind_named(name: str) -> type[Program]:
    """The class of this name.

    Raises:
        QuestreeError: if there is none; names those there are, and the nearest.
    """
    if name not in PROGRAMS:
        raise QuestreeError(unknown_name("program", name, PROGRAMS))
    return PROGRAMS[name]


def _checked(kind: type[Program], settings: dict[str, Any]) -> BaseModel:
    try:
        return kind.Settings(**settings)
    except ValidationError as error:
        problem = error.errors()[0]
        known = ", ".join(f"{name} ({field.default})" for name, field in kind.Settings.model_fields.items())
        name = ".".join(map(str, problem["loc"]))
        raise QuestreeError(
            f"{kind.name}: {name}={problem['input']!r}: {problem['msg']}. Its settings are: {known}."
        ) from None
