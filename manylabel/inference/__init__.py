"""What a trained model says of images."""
