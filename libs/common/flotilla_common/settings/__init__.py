"""Settings: the same names as flag, environment variable and YAML key, checked as a whole before anything starts."""

from flotilla_common.settings.load import SettingsError, known_flags, load, of_command, split_flags
from flotilla_common.settings.schema import Settings

__all__ = ["Settings", "SettingsError", "known_flags", "load", "of_command", "split_flags"]
