"""SearChain without retrieval."""

from __future__ import annotations

from typing import Literal

from ...retrieval import Retriever
from ..searchain import SearChain, SearChainSettings


class SearChainWithoutRetrievalSettings(SearChainSettings):
    """As SearChain's; there is one round, and nothing to verify or complete with.

    Attributes:
        retrieval: off.
    """

    retrieval: Literal[False] = False


class SearChainWithoutRetrieval(SearChain):
    """SearChain w/o IR (Xu et al., WWW 2024, table 1): the first chain of query answers alone.

    Args:
        settings: see `SearChainWithoutRetrievalSettings`.
    """

    name = "searchain-without-retrieval"
    searches = False
    Settings = SearChainWithoutRetrievalSettings  # type: ignore[assignment]  # narrower than SearChain's

    def __init__(self, retriever: Retriever | None = None, settings: SearChainWithoutRetrievalSettings | None = None):
        super().__init__(settings=settings or SearChainWithoutRetrievalSettings())
