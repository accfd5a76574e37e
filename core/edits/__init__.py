"""Reversible edits of a model: prepared, checked, committed as revisions, written as new files."""
