"""The one form of a refused setting."""

from __future__ import annotations

from manylabel.error import ConfigError


def require(holds: bool, setting: str, value: object, rule: str) -> None:
    """Stop with a message that names the setting unless `holds`. Write conditions that NaN fails."""
    if not holds:
        raise ConfigError(f"{setting} must be {rule}, not {value!r}")
