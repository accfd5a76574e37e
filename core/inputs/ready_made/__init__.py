"""Pictures and signals that ship with Modelglass, written by ``tools/make_ready.py``."""
