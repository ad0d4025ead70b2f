"""Runs the emitted snippet (the second argument) of a framework (the first argument), and prints
each PRAGMA that the other arguments name, as two connections see it."""

import json
import runpy
import sys

framework, snippet, *pragmas = sys.argv[1:]
names = runpy.run_path(snippet)


def read(execute):
    return {pragma: str(execute(f"PRAGMA {pragma}").fetchone()[0]) for pragma in pragmas}


def plain():
    return [read(names["connect"]().execute) for _ in range(2)]


def sqlalchemy():
    with names["engine"].connect() as one, names["engine"].connect() as other:
        return [read(connection.exec_driver_sql) for connection in (one, other)]


def django():
    import django
    from django.conf import settings
    from django.db import connection

    settings.configure(DATABASES=names["DATABASES"])
    django.setup()

    def fresh():
        connection.close()
        with connection.cursor() as cursor:
            return read(cursor.execute)

    return [fresh(), fresh()]


print(json.dumps({"python": plain, "sqlalchemy": sqlalchemy, "django": django}[framework]()))
