"""A program made better: scored, given to an optimizer, scored again; watched, paid for and kept meanwhile."""
