from literal_loss.bce import VARIANTS, cost

__all__ = ["VARIANTS", "cost"]
