"""What `flask doctor` says."""

import config
from core import doctor


def seen(service, check, **environ):
    """What doctor says about one part: its level and its words."""
    settings = config.load({"DATA_DIR": str(service.data_dir), **environ}) if environ else service.settings
    return next((level, words) for name, level, words in doctor.examine(settings) if name == check)
