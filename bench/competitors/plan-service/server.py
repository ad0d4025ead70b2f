"""Starts the plan service as docs/reference/formats/7-competitor-drivers.md describes.

A plan comes on standard input, the address goes to standard output, and the service ends when
standard input does.
"""

import json
import os
import platform
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.metadata import version
from pathlib import Path

START_SECONDS_MAX = 50
END_SECONDS_MAX = 10
DOES = (
    "a pool of connections to one SQLite file for all users, one transaction per request; "
    "WAL with synchronous NORMAL does not flush before the answer, FULL and a rollback journal do; "
    "not encrypted; a change that is known is found by a SELECT and left out; "
    "todos are kept by last writer; no fingerprint"
)


def about():
    made_of = [f"{name} {version(name)}" for name in ["fastapi", "sqlalchemy", "uvicorn"]]
    return {
        "server": "plan-service",
        "version": ", ".join([*made_of, f"SQLite {sqlite3.sqlite_version}"]),
        "runtime": f"Python {platform.python_version()}",
        "does": DOES,
    }


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(plan, port):
    environment = dict(
        os.environ,
        PLAN_DATABASE=str(Path(plan["folder"]).absolute() / "plan.sqlite"),
        PLAN_JOURNAL_MODE=plan["journal_mode"] or "WAL",
        PLAN_SYNCHRONOUS=plan["synchronous"] or "NORMAL",
    )
    command = [sys.executable, "-m", "uvicorn", "service:app", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", str(plan["workers"])]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log"]
    command += ["--log-level", "critical"]
    here = Path(__file__).parent
    # Standard output is reserved for the one line of this program.
    return subprocess.Popen(
        command, cwd=here, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr
    )


def settings(service, address):
    """Waits until the service answers, and returns the settings that the service reads back."""
    end = time.monotonic() + START_SECONDS_MAX
    while service.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
    raise RuntimeError(f"the service does not answer (status {service.poll()})")


def main():
    if sys.argv[1:] == ["about"]:
        print(json.dumps(about()))
        return
    plan = json.loads(sys.stdin.readline())
    port = free_port()
    service = start(plan, port)
    try:
        address = f"http://127.0.0.1:{port}"
        print(json.dumps({"address": address, "settings": settings(service, address)}), flush=True)
        sys.stdin.read()
    finally:
        service.terminate()
        try:
            service.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            service.kill()


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(1)
