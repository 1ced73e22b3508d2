"""Experts: small networks of which each input uses a mixture, and how many of them it may use."""

from manylabel.expert.adaptive import AdaptiveSelection
from manylabel.expert.bank import ExpertBank, start_alike
from manylabel.expert.load import GateLoad

__all__ = ["AdaptiveSelection", "ExpertBank", "GateLoad", "start_alike"]
