"""Several programs on the same questions: table, plots and page."""
