"""Makes random edits in a bookshop of any framework, and reports what its rows must contain.

    python app.py FILE make                   creates the tables, and the user if there is one
    python app.py FILE edit NAME SEED COUNT   prints {"added": [fact…], "removed": [fact…]}
    python app.py FILE facts                  prints [fact…], sorted: the rows' values without keys
    python app.py FILE faults                 prints [fault…]: values and references of other rows
"""

import json
import random
import sys


GENRES = ["crime", "drama", "epic", "fable", "farce", "myth", "poem", "satire"]


def faults(shop):
    """Yields the rows whose values or references belong to another row: each row names itself."""
    names = {genre.id: genre.name for genre in shop.genres()}
    for genre in shop.genres():
        if genre.about != f"about {genre.name}":
            yield f"{genre.name}: {genre.about}"
    for pitch in shop.pitches():
        if pitch.note != f"note of {pitch.words}":
            yield f"{pitch.words}: {pitch.note}"
        genre = names.get(pitch.genre_id, "of no genre")
        if not pitch.words.startswith(f"{genre} "):
            yield f"{pitch.words} is {genre}"


class Editor:
    """Makes random edits, with names that no other editor uses."""

    def __init__(self, shop, name, seed):
        self.shop, self.name = shop, name
        self.random = random.Random(seed)
        self.number = 0
        self.added, self.removed, self.drafts = [], [], []

    def fresh(self, what):
        self.number += 1
        return f"{what} {self.number} of {self.name}"

    def some(self, things):
        return self.random.choice(things) if things else None

    def edit(self):
        kinds = [self.book, self.book, self.tag, self.draft, self.undraft, self.pages]
        self.random.choice(kinds)()
        self.random.choice([self.pitch, self.pitch, self.withdraw])()

    def pitch(self):
        """Adds a pitch. The names of genres are unique, and two editors may add the same genre."""
        name = self.random.choice(GENRES)
        genre = self.shop.genre(name) or self.shop.add_genre(name, f"about {name}")
        words = self.fresh(name)
        self.shop.add_pitch(genre, words, f"note of {words}")

    def withdraw(self):
        """Deletes a random pitch of any editor, and a random genre without pitches."""
        pitches = self.shop.pitches()
        if pitches:
            self.shop.delete(self.random.choice(pitches))
        genres = [genre for genre in self.shop.genres() if not self.shop.has_pitches(genre)]
        if genres:
            self.shop.delete(self.random.choice(genres))

    def author(self):
        known = self.shop.authors()
        if known and self.random.random() < 0.5:
            return self.some(known)
        name = self.fresh("author")
        self.added.append(name)
        return self.shop.add_author(name)

    def book(self):
        title, author, follows = self.fresh("book"), self.author(), self.some(self.shop.books())
        kind = self.random.choice(["book", "comic", "covered"])
        artist = self.author() if kind == "comic" else None
        cover = self.random.choice(["red", "blue"]) if kind == "covered" else None
        self.shop.add_book(title, author, follows, artist, cover)
        self.added.append(f"{title} by {author.name}")
        self.added.append(f"log of {title}")
        if follows:
            self.added.append(f"{title} follows {follows.title}")
        if artist:
            self.added.append(f"{title} drawn by {artist.name}")
        if cover:
            self.added.append(f"{title} in {cover}")

    def tag(self):
        book = self.some(self.shop.books())
        if book is None:
            return
        tags = [tag for tag in self.shop.tags() if self.random.random() < 0.2][:2]
        name = self.fresh("tag")
        tags.append(self.shop.add_tag(name))
        self.shop.tag(book, tags)
        self.added.extend(f"{book.title} is {tag.name}" for tag in tags)

    def draft(self):
        book = self.some(self.shop.books())
        if book is None:
            return
        words = self.fresh("draft")
        self.shop.add_draft(book, words)
        self.drafts.append((words, f"{words} of {book.title}"))
        self.added.append(f"{words} of {book.title}")

    def undraft(self):
        if self.drafts:
            words, fact = self.drafts.pop(self.random.randrange(len(self.drafts)))
            self.shop.delete_draft(words)
            self.removed.append(fact)

    def pages(self):
        book = self.some(self.shop.books())
        if book is not None:
            self.shop.set_pages(book, self.random.randrange(1000))


def main(open_shop):
    """Runs a command. `open_shop` takes the path of a file and whether to create its tables."""
    file, command, *arguments = sys.argv[1:]
    shop = open_shop(file, command == "make")
    if command == "edit":
        name, seed, count = arguments
        editor = Editor(shop, name, seed)
        for _ in range(int(count)):
            editor.edit()
        print(json.dumps({"added": editor.added, "removed": editor.removed}))
    elif command == "facts":
        print(json.dumps(sorted(shop.facts())))
    elif command == "faults":
        print(json.dumps(list(faults(shop))))
    else:
        print(json.dumps(None))
