"""Modelglass without pages: open, inspect, measure and run neural-network model files."""

from core.errors import ModelError
from core.opening import open_model

__all__ = ["ModelError", "open_model"]
