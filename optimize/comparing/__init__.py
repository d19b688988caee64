"""Programs on the same questions: tables with paired differences, a page of plots, the papers' figures beside them."""
