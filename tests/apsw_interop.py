"""Creates and reads files with apsw's SQLite3 Multiple Ciphers, for the interoperability tests.

    apsw_interop.py make|read FILE CIPHER   < KEY

KEY is 32 bytes in hex. `make` creates a file with 1,000 rows. `read` prints, as JSON, the number of
rows of each table, or the error.
"""

import json
import sys

import apsw


def connect(file, cipher, key):
    db = apsw.Connection(file)
    assert db.pragma("cipher", cipher) == cipher
    if cipher == "chacha20":
        answer = db.pragma("key", "raw:" + key)
    else:
        # The other ciphers have no raw keys: the passphrase consists of exactly these bytes.
        answer = db.pragma("hexkey", b"raw:".hex() + key)
    assert answer == "ok", answer
    return db


def make(db):
    db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT)")
    rows = [(i, f"entry {i}") for i in range(1, 1001)]
    with db:
        db.executemany("INSERT INTO entry VALUES (?, ?)", rows)
    return {}


def read(db):
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    counts = {name: db.execute(f'SELECT count(*) FROM "{name}"').get for name in tables}
    return counts | {"integrity_check": db.pragma("integrity_check")}


def main():
    action, file, cipher = sys.argv[1:]
    db = connect(file, cipher, sys.stdin.read().strip())
    try:
        print(json.dumps({"make": make, "read": read}[action](db)))
    except apsw.Error as error:
        print(json.dumps({"error": type(error).__name__}))
        sys.exit(1)
    finally:
        db.close()


main()
