"""Explanations: where in an image a model finds a label."""

from manylabel.explain.api import explain
from manylabel.explain.explainer import Explainer
from manylabel.explain.explanation import Explanation
from manylabel.explain.method import METHODS

__all__ = ["METHODS", "Explainer", "Explanation", "explain"]
