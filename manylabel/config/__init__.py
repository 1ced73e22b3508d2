"""Settings: frozen dataclasses, read from strict YAML and `--set` overrides, written out whole with every run.

The help text of each field is its documentation. An unknown key is an error that names the closest one.
Parts that can be exchanged (head, loss, …) are a registry name with options: `head: {name: linear, dropout: 0.1}`
or just `head: linear`. Their options are checked by the registry that owns them.
"""

from manylabel.config.multitask import (
    SELECTION_PRESETS,
    ExpertsConfig,
    MultiTaskConfig,
    SelectionConfig,
    StepsConfig,
    TaskConfig,
    VitConfig,
)
from manylabel.config.option import Part, option
from manylabel.config.parse import dump, parse, plain
from manylabel.config.recipe import (
    load_recipe,
    load_yaml,
    make_config,
    merge,
    override,
    recipe_folder,
    recipe_names,
)
from manylabel.config.schema import (
    OWN_LOSS,
    AugmentConfig,
    BackboneConfig,
    Config,
    DataConfig,
    ScenesConfig,
    TrainConfig,
    ZeroShotConfig,
)

__all__ = [
    "OWN_LOSS",
    "SELECTION_PRESETS",
    "AugmentConfig",
    "BackboneConfig",
    "Config",
    "DataConfig",
    "ExpertsConfig",
    "MultiTaskConfig",
    "Part",
    "ScenesConfig",
    "SelectionConfig",
    "StepsConfig",
    "TaskConfig",
    "TrainConfig",
    "VitConfig",
    "ZeroShotConfig",
    "dump",
    "load_recipe",
    "load_yaml",
    "make_config",
    "merge",
    "option",
    "override",
    "parse",
    "plain",
    "recipe_folder",
    "recipe_names",
]
