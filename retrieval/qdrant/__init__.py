"""Passages in a collection of Qdrant: gathered by BM25 and put into order by late interaction, in one request."""
