"""Programs by name. To add one: its file in this folder or in baselines/, and its class here."""

from __future__ import annotations

from .baselines.auto_cot import AutoCoT
from .baselines.cot import ChainOfThought
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
