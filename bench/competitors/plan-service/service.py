"""The published plan service: FastAPI, SQLAlchemy's ORM, SQLite.

It is written in the usual way: plain `def` endpoints, a session per request, a pool of
connections, and the article's PRAGMAs on each connection. Tokens are looked up in a table. There
are no passwords and no limits, and the file is not encrypted.
"""

import os
import secrets
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from sqlalchemy import ForeignKey, UniqueConstraint, create_engine, event, func, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

LIMIT_DEFAULT = 100
LIMIT_MAX = 40_000
JOURNAL_MODE = os.environ["PLAN_JOURNAL_MODE"]
SYNCHRONOUS = os.environ["PLAN_SYNCHRONOUS"]

# The pool has one connection for each of FastAPI's threads, so that no request waits for one.
engine = create_engine(f"sqlite:///{os.environ['PLAN_DATABASE']}", pool_size=40)


@event.listens_for(engine, "connect")
def set_pragmas(connection, _record):
    for name, value in [
        ("journal_mode", JOURNAL_MODE),
        ("synchronous", SYNCHRONOUS),
        ("temp_store", "MEMORY"),
        ("cache_size", 2000),
        ("mmap_size", 134217728),
    ]:
        connection.execute(f"PRAGMA {name} = {value}")


class Base(DeclarativeBase):
    pass


class Client(Base):
    __tablename__ = "clients"
    token: Mapped[str] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(index=True)
    name: Mapped[str]


class Todo(Base):
    __tablename__ = "todos"
    user: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    title: Mapped[str]
    updated_at: Mapped[int]


class Change(Base):
    __tablename__ = "changes"
    __table_args__ = (UniqueConstraint("user", "change_id"), {"sqlite_autoincrement": True})
    cursor: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(index=True)
    change_id: Mapped[str]
    client: Mapped[str] = mapped_column(ForeignKey("clients.token"))
    todo_id: Mapped[str]
    title: Mapped[str]
    updated_at: Mapped[int]


Base.metadata.create_all(engine)
make_session = sessionmaker(engine)
app = FastAPI(title="Plan")


class NewClient(BaseModel):
    user: str
    name: str


class Registered(BaseModel):
    token: str


class Delta(BaseModel):
    change_id: str
    todo_id: str
    title: str
    updated_at: int


class Upload(BaseModel):
    """In the article, an upload contains one change."""

    changes: list[Delta]


class Uploaded(BaseModel):
    stored: int
    cursor: int


class Download(BaseModel):
    changes: list[Delta]
    cursor: int
    more: bool


def open_session():
    with make_session() as session:
        yield session


Database = Annotated[Session, Depends(open_session)]


def authenticate(database: Database, authorization: Annotated[str, Header()]) -> Client:
    client = database.get(Client, authorization.removeprefix("Bearer "))
    if client is None:
        raise HTTPException(401, "unknown token")
    return client


Caller = Annotated[Client, Depends(authenticate)]


@app.get("/healthz")
def healthz(database: Database) -> dict[str, str | int]:
    names = ["journal_mode", "synchronous", "temp_store", "cache_size", "mmap_size"]
    return {name: database.scalar(text(f"PRAGMA {name}")) for name in names}


@app.post("/v1/clients", status_code=201)
def register(database: Database, new: NewClient) -> Registered:
    token = secrets.token_urlsafe(32)
    database.add(Client(token=token, user=new.user, name=new.name))
    database.commit()
    return Registered(token=token)


@app.post("/v1/sync/delta")
def upload(database: Database, caller: Caller, request: Upload) -> Uploaded:
    stored = sum(store(database, caller, delta) for delta in request.changes)
    newest = select(func.max(Change.cursor)).where(Change.user == caller.user)
    cursor = database.scalar(newest) or 0
    database.commit()
    return Uploaded(stored=stored, cursor=cursor)


def store(database: Session, caller: Client, delta: Delta) -> int:
    """Stores a change unless it is known, and returns how many changes it stored.

    The last writer of a todo wins.
    """
    known = select(Change.cursor).where(
        Change.user == caller.user, Change.change_id == delta.change_id
    )
    if database.scalar(known) is not None:
        return 0
    todo = database.get(Todo, (caller.user, delta.todo_id))
    if todo is None:
        fields = delta.model_dump(exclude={"change_id", "todo_id"})
        database.add(Todo(user=caller.user, id=delta.todo_id, **fields))
    elif todo.updated_at < delta.updated_at:
        todo.title, todo.updated_at = delta.title, delta.updated_at
    database.add(Change(user=caller.user, client=caller.token, **delta.model_dump()))
    return 1


def page(database: Session, user: str, cursor: int, limit: int) -> Download:
    after = select(Change).where(Change.user == user, Change.cursor > cursor)
    rows = database.scalars(after.order_by(Change.cursor).limit(limit + 1)).all()
    changes, more = rows[:limit], len(rows) > limit
    return Download(
        changes=[Delta.model_validate(row, from_attributes=True) for row in changes],
        cursor=changes[-1].cursor if changes else cursor,
        more=more,
    )


@app.get("/v1/sync/delta")
def download(
    database: Database,
    caller: Caller,
    cursor: int = 0,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT,
) -> Download:
    return page(database, caller.user, cursor, limit)


@app.get("/v1/sync/full")
def full(caller: Caller) -> StreamingResponse:
    user = caller.user

    def lines():
        cursor, more = 0, True
        with make_session() as session:
            while more:
                part = page(session, user, cursor, 1_000)
                cursor, more = part.cursor, part.more
                yield part.model_dump_json() + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")
