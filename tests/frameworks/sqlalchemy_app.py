"""The bookshop in SQLAlchemy: keys without AUTOINCREMENT, and a many-to-many table whose key
consists of two foreign keys."""

from sqlalchemy import Column, ForeignKey, Table, create_engine, delete, event, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

import edits


class Base(DeclarativeBase):
    pass


book_tag = Table(
    "book_tag",
    Base.metadata,
    Column("book_id", ForeignKey("book.id"), primary_key=True),
    Column("tag_id", ForeignKey("tag.id"), primary_key=True),
)


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Tag(Base):
    __tablename__ = "tag"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    pages: Mapped[int] = mapped_column(default=0)
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))
    author: Mapped[Author] = relationship(foreign_keys=author_id)
    follows_id: Mapped[int | None] = mapped_column(ForeignKey("book.id"))
    follows: Mapped["Book | None"] = relationship(remote_side=id)
    tags: Mapped[list[Tag]] = relationship(secondary=book_tag)
    kind: Mapped[str]
    __mapper_args__ = {"polymorphic_on": "kind", "polymorphic_identity": "book"}


class Comic(Book):
    """Joined-table inheritance: a comic has the same key as its book."""

    __tablename__ = "comic"
    id: Mapped[int] = mapped_column(ForeignKey("book.id"), primary_key=True)
    artist_id: Mapped[int] = mapped_column(ForeignKey("author.id"))
    artist: Mapped[Author] = relationship(foreign_keys=artist_id)
    __mapper_args__ = {"polymorphic_identity": "comic"}


class Cover(Base):
    __tablename__ = "cover"
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"), primary_key=True)
    book: Mapped[Book] = relationship()
    colour: Mapped[str]


class Draft(Base):
    __tablename__ = "draft"
    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    book: Mapped[Book] = relationship()
    words: Mapped[str]


class Log(Base):
    __tablename__ = "log"
    id: Mapped[int] = mapped_column(primary_key=True)
    book_id: Mapped[int] = mapped_column(ForeignKey("book.id"))
    book: Mapped[Book] = relationship()


class Genre(Base):
    __tablename__ = "genre"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    about: Mapped[str]


class Pitch(Base):
    __tablename__ = "pitch"
    id: Mapped[int] = mapped_column(primary_key=True)
    genre_id: Mapped[int] = mapped_column(ForeignKey("genre.id"))
    words: Mapped[str]
    note: Mapped[str]


def open_shop(file, make):
    engine = create_engine(f"sqlite:///{file}")

    @event.listens_for(engine, "connect")
    def connected(connection, _):
        connection.execute("PRAGMA foreign_keys = ON")

    if make:
        Base.metadata.create_all(engine)
    return Shop(Session(engine))


class Shop:
    def __init__(self, session):
        self.session = session

    def authors(self):
        return self.session.scalars(select(Author).order_by(Author.name)).all()

    def books(self):
        return self.session.scalars(select(Book).order_by(Book.title)).all()

    def tags(self):
        return self.session.scalars(select(Tag).order_by(Tag.name)).all()

    def add(self, thing):
        self.session.add(thing)
        self.session.commit()
        return thing

    def add_author(self, name):
        return self.add(Author(name=name))

    def add_tag(self, name):
        return self.add(Tag(name=name))

    def add_book(self, title, author, follows, artist, cover):
        fields = {"title": title, "author": author, "follows": follows}
        book = Comic(artist=artist, **fields) if artist else Book(**fields)
        if cover:
            self.session.add(Cover(book=book, colour=cover))
        self.session.add(Log(book=book))
        self.add(book)

    def tag(self, book, tags):
        book.tags.extend(tag for tag in tags if tag not in book.tags)
        self.session.commit()

    def add_draft(self, book, words):
        self.add(Draft(book=book, words=words))

    def delete_draft(self, words):
        self.session.execute(delete(Draft).where(Draft.words == words))
        self.session.commit()

    def set_pages(self, book, pages):
        book.pages = pages
        self.session.commit()

    def genre(self, name):
        return self.session.scalars(select(Genre).where(Genre.name == name)).first()

    def genres(self):
        return self.session.scalars(select(Genre).order_by(Genre.name)).all()

    def add_genre(self, name, about):
        return self.add(Genre(name=name, about=about))

    def pitches(self):
        return self.session.scalars(select(Pitch).order_by(Pitch.words)).all()

    def add_pitch(self, genre, words, note):
        self.add(Pitch(genre_id=genre.id, words=words, note=note))

    def has_pitches(self, genre):
        return self.session.scalars(select(Pitch).where(Pitch.genre_id == genre.id)).first()

    def delete(self, thing):
        self.session.delete(thing)
        self.session.commit()

    def facts(self):
        for author in self.authors():
            yield author.name
        for book in self.books():
            yield f"{book.title} by {book.author.name}"
            if book.follows:
                yield f"{book.title} follows {book.follows.title}"
            for tag in book.tags:
                yield f"{book.title} is {tag.name}"
        for comic in self.session.scalars(select(Comic)):
            yield f"{comic.title} drawn by {comic.artist.name}"
        for cover in self.session.scalars(select(Cover)):
            yield f"{cover.book.title} in {cover.colour}"
        for draft in self.session.scalars(select(Draft)):
            yield f"{draft.words} of {draft.book.title}"
        for entry in self.session.scalars(select(Log)):
            yield f"log of {entry.book.title}"


if __name__ == "__main__":
    edits.main(open_shop)
