"""Passages, and how they are found and read.

Importing the room is light: models and their libraries are imported where one is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import lazily

if TYPE_CHECKING:
    from .adapted import as_retriever as as_retriever
    from .base import NeuralRetriever as NeuralRetriever
    from .base import WrappingRetriever as WrappingRetriever
    from .bm25 import BM25Retriever as BM25Retriever
    from .bm25 import BM25Settings as BM25Settings
    from .contracts import DuplicateCheck as DuplicateCheck
    from .contracts import Reader as Reader
    from .contracts import Retriever as Retriever
    from .contracts import Span as Span
    from .contracts import asked_question as asked_question
    from .contracts import asking as asking
    from .corpora.corpus import BadLine as BadLine
    from .corpora.corpus import read_corpus as read_corpus
    from .dense import DenseRetriever as DenseRetriever
    from .dense import DenseSettings as DenseSettings
    from .dpr_reader import DPRReader as DPRReader
    from .duplicates import CrossEncoderDuplicates as CrossEncoderDuplicates
    from .duplicates import ExactDuplicates as ExactDuplicates
    from .duplicates import RetrieverDuplicates as RetrieverDuplicates
    from .fusion import FusionRetriever as FusionRetriever
    from .index_builder import add_to_index as add_to_index
    from .index_builder import build_index as build_index
    from .index_folder import KINDS as KINDS
    from .index_folder import load_index as load_index
    from .indexes.contents import IndexManifest as IndexManifest
    from .indexes.contents import read_manifest as read_manifest
    from .indexes.index_kind import BuildProgress as BuildProgress
    from .late_interaction.plaid_writer import PlaidSettings as PlaidSettings
    from .late_interaction.rerank import RerankSettings as RerankSettings
    from .linked.retriever import LinkedRetriever as LinkedRetriever
    from .passage import Passage as Passage
    from .reranked import RerankedRetriever as RerankedRetriever
    from .retriever_names import open_retriever as open_retriever
    from .serving.client import RemoteRetriever as RemoteRetriever
    from .serving.remote_requests import RemoteError as RemoteError
    from .serving.remote_requests import RemoteSettings as RemoteSettings

__getattr__ = lazily(__name__)
