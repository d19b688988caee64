"""One LM call: guarded, fitted to the window, retried, counted and limited."""
