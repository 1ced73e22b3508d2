"""Errors a user can mend: each message says what is wrong, where, and what to do."""


class ManylabelError(Exception):
    """Base of every error we raise on purpose; the command line prints it without a traceback."""


class ConfigError(ManylabelError):
    """A key, value or name in a recipe, a --set override or an option is wrong."""


class DataError(ManylabelError):
    """A label file, a table or a folder of images cannot be used as it is."""


class DecodeError(ManylabelError):
    """These bytes are not an image we can or want to read."""


class WeightsError(ManylabelError):
    """Pre-trained weights cannot be found or do not fit."""


class CheckpointError(ManylabelError):
    """A checkpoint or a feature cache is missing, damaged or belongs to something else."""


class BundleError(ManylabelError):
    """A bundle is missing, damaged or unsafe."""


class EngineError(ManylabelError):
    """Another engine than torch cannot compute a model's outputs, or computes other ones."""


class TrainingError(ManylabelError):
    """Training cannot go on, for example because the loss is not finite."""
