"""Migrates a bookshop's tables like a migration tool does: `migrations.py TOOL FILE`.

Each tool adds a column and changes the type of another one, for which it must rebuild the table.
`django_default` only adds a column.
"""

import sqlite3
import sys


def django(file):
    import django_app

    django_app.open_shop(file, make=False)
    from django.db import connection, models
    from django_shop.models import Book

    with connection.schema_editor() as editor:
        before = Book._meta.get_field("pages")
        after = models.PositiveBigIntegerField(default=0)
        after.set_attributes_from_name("pages")
        after.model = Book
        editor.alter_field(Book, before, after, strict=True)
    with connection.schema_editor() as editor:
        subtitle = models.CharField(max_length=100, null=True)
        subtitle.set_attributes_from_name("subtitle")
        editor.add_field(Book, subtitle)
        editor.add_index(Book, models.Index(fields=["title"], name="by_title"))


def django_default(file):
    """Adds a column whose default Django writes to every row, but not to the declaration."""
    import django_app

    django_app.open_shop(file, make=False)
    from django.db import connection, models
    from django_shop.models import Book

    with connection.schema_editor() as editor:
        stars = models.PositiveIntegerField(default=3)
        stars.set_attributes_from_name("stars")
        editor.add_field(Book, stars)


def alembic(file):
    import sqlalchemy
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    with sqlalchemy.create_engine(f"sqlite:///{file}").begin() as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("book", recreate="always") as batch:
            batch.add_column(sqlalchemy.Column("subtitle", sqlalchemy.String))
            batch.alter_column("pages", type_=sqlalchemy.BigInteger)
            batch.create_index("by_title", ["title"])


def rails(file):
    """Copies the table to a temporary table and back, like ActiveRecord's SQLite adapter
    (`alter_table`, `copy_table`). These are the adapter's statements, so no Ruby is needed."""
    with sqlite3.connect(file, isolation_level=None) as db:
        db.execute("PRAGMA defer_foreign_keys = ON")
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("BEGIN")
        columns = [row[1] for row in db.execute('PRAGMA table_info("book")')]
        names = ", ".join(f'"{name}"' for name in columns)
        foreign_keys = (
            'FOREIGN KEY ("author_id") REFERENCES "author" ("id"), '
            'FOREIGN KEY ("follows_id") REFERENCES "book" ("id")'
        )
        types = {"id": "integer PRIMARY KEY AUTOINCREMENT NOT NULL", "pages": "bigint NOT NULL"}
        types |= {"author_id": "integer NOT NULL", "follows_id": "integer"}
        declared = [f'"{name}" {types.get(name, "varchar")}' for name in columns]
        fields = ", ".join(declared)
        db.execute(f'CREATE TEMPORARY TABLE "abook" ({fields})')
        db.execute(f'INSERT INTO "abook" ({names}) SELECT {names} FROM "book"')
        db.execute('DROP TABLE "book"')
        db.execute(f'CREATE TABLE "book" ({fields}, "subtitle" varchar, {foreign_keys})')
        db.execute(f'INSERT INTO "book" ({names}) SELECT {names} FROM "abook"')
        db.execute('DROP TABLE "abook"')
        db.execute('CREATE INDEX "by_title" ON "book" ("title")')
        db.execute("COMMIT")


tool, file = sys.argv[1:]
tools = {"django": django, "django_default": django_default, "alembic": alembic, "rails": rails}
tools[tool](file)
print("null")
