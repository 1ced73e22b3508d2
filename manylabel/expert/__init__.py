"""Experts: small networks of which each input uses a mixture, and how many of them it may use."""

from manylabel.expert.adaptive import AdaptiveSelection
from manylabel.expert.balance import importance_loss, load_loss, z_loss
from manylabel.expert.bank import ExpertBank, start_alike
from manylabel.expert.gate_summary import GateSummary, gate_summaries
from manylabel.expert.load import ExpertUse, GateLoad, Gates
from manylabel.expert.mlp_bank import MLPBank
from manylabel.expert.router import Router, Routing
from manylabel.expert.similarity import expert_similarity
from manylabel.expert.sparse import SparseExperts

__all__ = [
    "AdaptiveSelection",
    "ExpertBank",
    "ExpertUse",
    "GateLoad",
    "GateSummary",
    "Gates",
    "MLPBank",
    "Router",
    "Routing",
    "SparseExperts",
    "expert_similarity",
    "gate_summaries",
    "importance_loss",
    "load_loss",
    "start_alike",
    "z_loss",
]
