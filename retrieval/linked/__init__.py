"""Linked retrieval: passages name one another, and one search follows that."""
