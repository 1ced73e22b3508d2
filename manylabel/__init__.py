"""manylabel recognises everything in an image at once."""

__version__ = "0.1.0"
