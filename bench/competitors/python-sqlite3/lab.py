"""The lab's driver of Python's own sqlite3. The plan and the answer are Warren's Format 12."""

import platform
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from plan import drive  # noqa: E402


def connect(path):
    return sqlite3.connect(path, isolation_level=None)


drive("sqlite3", platform.python_version(), connect)
