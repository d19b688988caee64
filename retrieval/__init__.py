"""Passages, and how they are found and read.

Importing the room is light: models and their libraries are imported where one is loaded.
"""

from .bm25 import BM25Retriever, BM25Settings
from .contracts import DuplicateCheck, Reader, Retriever, Span
from .corpora.reading import BadLine, read_corpus
from .dense.index import DenseRetriever, DenseSettings
from .duplicates import CrossEncoderDuplicates, ExactDuplicates, RetrieverDuplicates
from .fusion import FusionRetriever, FusionSettings
from .indexes.index import add_to_index, build_index, load_index
from .indexes.index_kind import Progress
from .indexes.kinds import KINDS
from .indexes.manifest import Manifest, read_manifest
from .late_interaction.plaid import PlaidSettings
from .opening import open_retriever
from .passage import Passage
from .readers.dpr_reader import DPRReader
from .serving.client import RemoteRetriever
from .serving.exchange import RemoteError, RemoteSettings

__all__ = [
    "KINDS",
    "BM25Retriever",
    "BM25Settings",
    "BadLine",
    "CrossEncoderDuplicates",
    "DPRReader",
    "DenseRetriever",
    "DenseSettings",
    "DuplicateCheck",
    "ExactDuplicates",
    "FusionRetriever",
    "FusionSettings",
    "Manifest",
    "Passage",
    "PlaidSettings",
    "Progress",
    "Reader",
    "RemoteError",
    "RemoteRetriever",
    "RemoteSettings",
    "Retriever",
    "RetrieverDuplicates",
    "Span",
    "add_to_index",
    "build_index",
    "load_index",
    "open_retriever",
    "read_corpus",
    "read_manifest",
]
