"""The lab's driver of apsw-sqlite3mc. The plan and the answer are Warren's Format 12."""

import sys
from pathlib import Path

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from plan import drive  # noqa: E402

drive("apsw-sqlite3mc", apsw.apsw_version(), apsw.Connection)
