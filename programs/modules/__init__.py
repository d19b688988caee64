"""Modules: steps that ask an LM, composed by the programs. The signatures stand in files of the same names."""
