"""One model for several tasks (AdaMV-MoE): a shared vision transformer, and for each task its own head and router."""
