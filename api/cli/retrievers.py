"""questree retrievers"""

FUSION = "A+B: several of these as one, by reciprocal rank; needs ids that mean the same passage in each"
SERVER = "an index in another process, shared by many workers; needs `questree serve-retriever INDEX` there"
EMBEDDED = "the same without a server, for trials: one process at a time, and it compares with every passage"
LINKED = "any of the others, and the passages that its best ones lead to by the names in them"
OWN = "a retriever of your own: an object, a function from a query to passages, or a class of such"
COLLECTION = "a collection of Qdrant, on one machine or on many: BM25 gathers, late interaction reranks, in one request"


def retrievers() -> None:
    """List what --retriever can name: kinds of index, servers, collections of Qdrant, your own, and several fused."""
    from rich.table import Column, Table
    from rich.text import Text

    from ..retrieval.index_folder import KINDS
    from ..retrieval.retriever_names import RETRIEVERS
    from .screen import Screen

    table = Table(Column("--retriever", overflow="fold"), "made with", "what it is")
    for name, kind in KINDS.items():
        table.add_row("FOLDER", f"questree index --kind {name}", Text(kind.description))
    table.add_row("http://HOST:PORT", "questree serve-retriever", Text(SERVER))
    table.add_row("qdrant://HOST:PORT/COLLECTION", "questree index --engine", Text(COLLECTION))
    table.add_row("qdrant:FOLDER/COLLECTION", "questree index --engine", Text(EMBEDDED))
    for name in RETRIEVERS.names():
        table.add_row(name, "installed", Text("of an installed package"))
    table.add_row("PACKAGE:NAME", "your code", Text(OWN))
    table.add_row("linked:NAME", "linked: before a name", Text(LINKED))
    table.add_row("FOLDER+FOLDER", "+ between names", Text(FUSION))
    Screen().print(table)
