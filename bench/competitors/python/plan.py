"""Contains the code that the lab's drivers for Python share: it carries out a plan.

The plan and the answer are Warren's Format 12. A driver calls `drive` with a function that opens a
connection. The connection commits each statement automatically, and its `execute(sql, values)`
returns a cursor, like the extension of the DB-API.
"""

import json
import os
import platform
import sys
import time

CIPHERS = ["aegis", "aes128cbc", "aes256cbc", "ascon128", "chacha20", "rc4", "sqlcipher"]
# SQLite3 Multiple Ciphers expects a raw key after this prefix.
RAW_KEY = b"raw:".hex()
BODY_SEED = 1


class Random:
    def __init__(self, seed):
        self.state = seed

    def number(self):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.state >> 8


class NoneLeft(Exception):
    """No row is left that `last` could take."""


class Draws:
    """Creates the values that statements bind.

    `begin` must be called before each operation. `by_name` has a function for each name.
    """

    def __init__(self, plan):
        random, rows = Random(plan["seed"]), plan["rows"]
        body_bytes = Random(BODY_SEED)
        body = bytes(body_bytes.number() % 256 for _ in range(plan["body_bytes"]))
        self.newest = rows
        self.added = []
        self.begin()

        def sample(values):
            return lambda: values[random.number() % len(values)]

        self.by_name = {
            "new": self.new,
            "last": self.last,
            "row": lambda: 1 + random.number() % rows,
            "body": lambda: body,
        } | {name: sample(values) for name, values in plan["samples"].items()}

    def begin(self):
        self.fresh = self.taken = None

    def new(self):
        if self.fresh is None:
            self.newest += 1
            self.added.append(self.newest)
            self.fresh = self.newest
        return self.fresh

    def last(self):
        if self.taken is None:
            if not self.added:
                raise NoneLeft
            self.taken = self.added.pop()
        return self.taken


def operation(connection, statements, draws):
    """Returns a function that runs the statements.

    The library keeps prepared statements and finds them by their text.
    """
    todo = [(statement["sql"], [draws.by_name[name] for name in statement["bind"]]) for statement in statements]
    execute, begin = connection.execute, draws.begin

    def run():
        begin()
        for sql, values in todo:
            execute(sql, [draw() for draw in values]).fetchall()

    return run


def measure(connection, step, operations):
    cycle = [operations[name] for name in step["cycle"]]
    size = step["transaction"]
    done = 0
    ended = False

    def work():
        nonlocal done, ended
        try:
            for _ in range(size):
                cycle[done % len(cycle)]()
                done += 1
        except NoneLeft:
            ended = True

    def transaction():
        connection.execute("BEGIN IMMEDIATE")
        work()
        connection.execute("COMMIT")

    run = work if size == 1 else transaction
    now = time.perf_counter
    start = now() + step["warmup_seconds"]
    while not ended and now() < start:
        run()
    before = done
    cpu = time.process_time()
    slowest = 0.0
    begin = at = now()
    while not ended and at - begin < step["seconds"]:
        run()
        after = now()
        slowest = max(slowest, after - at)
        at = after
    return {
        "name": step["name"],
        "operations": done - before,
        "seconds": at - begin,
        "cpu_seconds": time.process_time() - cpu,
        "slowest_us": slowest * 1e6,
    }


def first_of(connection, sql):
    row = connection.execute(sql).fetchone()
    return row[0] if row else None


def has_cipher(connection, cipher):
    try:
        return first_of(connection, f"PRAGMA cipher = '{cipher}'") == cipher
    except Exception:  # Each library has its own error type.
        return False


def about(driver, version, connect):
    connection = connect(":memory:")
    options = connection.execute("PRAGMA compile_options").fetchall()
    who = {
        "driver": driver,
        "version": version,
        "sqlite": first_of(connection, "SELECT sqlite_version()"),
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
        "ciphers": [cipher for cipher in CIPHERS if has_cipher(connection, cipher)],
        "compile_options": sorted(option for (option,) in options),
    }
    connection.close()
    return who


def configure(connection, plan):
    if plan["cipher"] is not None:
        if not has_cipher(connection, plan["cipher"]):
            raise ValueError(f"it has no {plan['cipher']}")
        connection.execute(f"PRAGMA hexkey = '{RAW_KEY}{plan['key']}'").fetchall()
    for name, value in plan["settings"]:
        connection.execute(f"PRAGMA {name} = {value}").fetchall()


def answer(connect, plan):
    if not os.path.exists(plan["database"]):
        raise FileNotFoundError(f"{plan['database']}: there is no such file")
    connection = connect(plan["database"])
    configure(connection, plan)
    draws = Draws(plan)
    operations = {name: operation(connection, todo, draws) for name, todo in plan["operations"].items()}
    steps = [measure(connection, step, operations) for step in plan["steps"]]
    for sql in plan["clean"]:
        connection.execute(sql)
    settings = {name: first_of(connection, f"PRAGMA {name}") for name, _ in plan["settings"]}
    connection.close()
    return {"settings": settings, "steps": steps}


def drive(driver, version, connect):
    """Runs the whole program of a driver."""
    try:
        line = about(driver, version, connect)
        if sys.argv[1:] != ["about"]:
            line |= answer(connect, json.load(sys.stdin))
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
        sys.exit(1)
    print(json.dumps(line))
