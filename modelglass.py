"""Modelglass in Python: ``open_model`` reads a model file, ``show`` opens it in the dashboard.

>>> import modelglass
>>> model = modelglass.open_model("model.onnx")  # doctest: +SKIP
>>> modelglass.show("model.onnx")  # doctest: +SKIP
"""

from app.launch import show
from core import ModelError, open_model

__all__ = ["ModelError", "open_model", "show"]
