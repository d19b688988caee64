"""What the papers ask of stored runs, answered without asking an LM."""
