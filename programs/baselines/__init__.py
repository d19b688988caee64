"""The baselines of the papers, one file each."""
