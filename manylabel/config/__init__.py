"""Settings: frozen dataclasses, read from strict YAML and `--set` overrides, written out whole with every run.

The help text of each field is its documentation. An unknown key is an error that names the closest one.
Parts that can be exchanged (head, loss, …) are a registry name with options: `head: {name: linear, dropout: 0.1}`
or just `head: linear`. Their options are checked by the registry that owns them.
"""

from manylabel.config.kind import KIND_DEFAULTS, KindDefaults, register_kind
from manylabel.config.migrate import migrated
from manylabel.config.option import Part, option
from manylabel.config.parse import as_stored, dump, parse, plain
from manylabel.config.recipe import (
    config_of,
    left_out_of_heads,
    load_recipe,
    load_yaml,
    make_config,
    merge,
    names_tasks,
    override,
    recipe_folder,
    recipe_names,
)
from manylabel.config.schema import (
    LABELS,
    AdaptConfig,
    AugmentConfig,
    BackboneConfig,
    Config,
    DataConfig,
    ScenesConfig,
    TaskConfig,
    TrainConfig,
    ZeroShotConfig,
)
from manylabel.config.shorthand import has_one_task, note_options
from manylabel.config.vit import ExpertsConfig, VitConfig

__all__ = [
    "KIND_DEFAULTS",
    "LABELS",
    "AdaptConfig",
    "AugmentConfig",
    "BackboneConfig",
    "Config",
    "DataConfig",
    "ExpertsConfig",
    "KindDefaults",
    "Part",
    "ScenesConfig",
    "TaskConfig",
    "TrainConfig",
    "VitConfig",
    "ZeroShotConfig",
    "as_stored",
    "config_of",
    "dump",
    "has_one_task",
    "left_out_of_heads",
    "load_recipe",
    "load_yaml",
    "make_config",
    "merge",
    "migrated",
    "names_tasks",
    "note_options",
    "option",
    "override",
    "parse",
    "plain",
    "recipe_folder",
    "recipe_names",
    "register_kind",
]
