"""The bookshop in Django, with its users, permissions and the admin's log."""

import os
import sys

import django
from django.conf import settings

import edits


def open_shop(file, make):
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": file}},
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django.contrib.admin",
            "django_shop",
        ],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        USE_TZ=True,
    )
    django.setup()
    if make:
        from django.core.management import call_command

        call_command("migrate", run_syncdb=True, verbosity=0, skip_checks=True)
        from django.contrib.auth.models import User

        if not os.environ.get("NO_USER"):
            User.objects.create_superuser("ada", password="sesame")
    return Shop()


class Shop:
    def __init__(self):
        from django_shop import models

        self.models = models

    def authors(self):
        return list(self.models.Author.objects.order_by("name"))

    def books(self):
        return list(self.models.Book.objects.order_by("title"))

    def tags(self):
        return list(self.models.Tag.objects.order_by("name"))

    def add_author(self, name):
        return self.models.Author.objects.create(name=name)

    def add_tag(self, name):
        return self.models.Tag.objects.create(name=name)

    def add_book(self, title, author, follows, artist, cover):
        from django.db import transaction

        with transaction.atomic():
            fields = {"title": title, "author": author, "follows": follows}
            if artist:
                book = self.models.Comic.objects.create(artist=artist, **fields)
            else:
                book = self.models.Book.objects.create(**fields)
            if cover:
                self.models.Cover.objects.create(book=book, colour=cover)
            self.log(book)

    def log(self, book):
        """Adds an entry to the log, like Django's admin."""
        from django.contrib.admin.models import ADDITION, LogEntry
        from django.contrib.auth.models import User
        from django.contrib.contenttypes.models import ContentType

        LogEntry.objects.create(
            user=User.objects.get(username="ada"),
            content_type=ContentType.objects.get_for_model(self.models.Book),
            object_id=str(book.pk),
            object_repr=book.title,
            action_flag=ADDITION,
        )

    def tag(self, book, tags):
        book.tags.add(*tags)

    def add_draft(self, book, words):
        # This inserts many rows in one statement, like a form with several parts.
        self.models.Draft.objects.bulk_create([self.models.Draft(book=book, words=words)])

    def delete_draft(self, words):
        self.models.Draft.objects.get(words=words).delete()

    def set_pages(self, book, pages):
        book.pages = pages
        book.save(update_fields=["pages"])

    def genre(self, name):
        return self.models.Genre.objects.filter(name=name).first()

    def genres(self):
        return list(self.models.Genre.objects.order_by("name"))

    def add_genre(self, name, about):
        return self.models.Genre.objects.create(name=name, about=about)

    def pitches(self):
        return list(self.models.Pitch.objects.order_by("words"))

    def add_pitch(self, genre, words, note):
        self.models.Pitch.objects.create(genre=genre, words=words, note=note)

    def has_pitches(self, genre):
        return self.models.Pitch.objects.filter(genre=genre).exists()

    def delete(self, thing):
        thing.delete()

    def facts(self):
        from django.contrib.admin.models import LogEntry

        models = self.models
        for author in models.Author.objects.all():
            yield author.name
        for book in models.Book.objects.select_related("author", "follows"):
            yield f"{book.title} by {book.author.name}"
            if book.follows:
                yield f"{book.title} follows {book.follows.title}"
            for tag in book.tags.all():
                yield f"{book.title} is {tag.name}"
        for comic in models.Comic.objects.all():
            yield f"{comic.title} drawn by {comic.artist.name}"
        for cover in models.Cover.objects.all():
            yield f"{cover.book.title} in {cover.colour}"
        for draft in models.Draft.objects.all():
            yield f"{draft.words} of {draft.book.title}"
        for entry in LogEntry.objects.filter(user__username="ada", content_type__model="book"):
            yield f"log of {entry.object_repr}"


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    edits.main(open_shop)
