"""Documents as a corpus: read, split into passages that know where they stand, and kept in step with their folder."""
