"""The baselines of the papers."""
