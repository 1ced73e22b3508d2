"""What is looked at in a trained model: how its routers decide."""
