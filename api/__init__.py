"""Questree: multi-hop question answering as DSPy programs."""
