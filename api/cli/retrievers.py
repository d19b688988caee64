"""questree retrievers"""

FUSION = "A+B: several of these as one, by reciprocal rank; needs ids that mean the same passage in each"
SERVER = "an index in another process, shared by many workers; needs `questree serve-retriever INDEX` there"
EMBEDDED = "the same without a server, for trials: one process at a time, and it compares with every passage"
COLLECTION = "a collection of Qdrant, on one machine or on many: BM25 gathers, late interaction reranks, in one request"


def retrievers() -> None:
    """List what --retriever can name: the kinds of index, servers of them, collections of Qdrant, and several fused."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..retrieval.index_folder import KINDS

    table = Table("--retriever", "made with", "what it is")
    for name, kind in KINDS.items():
        table.add_row("FOLDER", f"questree index --kind {name}", Text(kind.description))
    table.add_row("http://HOST:PORT", "questree serve-retriever", Text(SERVER))
    table.add_row("qdrant://HOST:PORT/COLLECTION", "questree index --engine", Text(COLLECTION))
    table.add_row("qdrant:FOLDER/COLLECTION", "questree index --engine", Text(EMBEDDED))
    table.add_row("FOLDER+FOLDER", "+ between names", Text(FUSION))
    Console().print(table)
