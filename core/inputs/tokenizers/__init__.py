"""Tokenizers by kind: one file each, one line in ``table.KINDS``; ``load.load`` opens them."""
