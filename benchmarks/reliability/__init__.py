"""Faults, kills, changed bytes, hostile texts and attacks: what is tried against Questree, and what was found."""
