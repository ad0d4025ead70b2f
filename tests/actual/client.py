"""Drives a budget app, made of `actualpy`, by lines of JSON like `client.js`."""

import datetime
import decimal
import json
import pathlib
import shutil
import sys
import warnings

import httpx
from actual import Actual
from actual.database import Transactions
from actual.queries import create_account, create_transaction, get_accounts, get_transactions
from sqlmodel import select

warnings.simplefilter("ignore")


class Client:
    def sign_in(self, address, password, dir, token=None):
        """Logs in, and sets the password first if none is set yet.

        With a token, uses the token instead of logging in.
        """
        self.login = {"base_url": address, "token": token}
        if not token:
            self.login |= {"password": password, "bootstrap": True}
        self.folder = pathlib.Path(dir)
        self.use(Actual(**self.login))

    def use(self, actual):
        self.actual = actual.__enter__()
        # All later openings use this login.
        self.login = {"base_url": self.login["base_url"], "token": actual._token}

    def user(self):
        return self.actual.validate().data.model_dump(by_alias=True)

    def here(self):
        self.actual.set_file(self.actual.file.file_id)
        return {"file": self.actual.file.file_id, "group": self.actual.file.group_id}

    def create(self, name):
        actual = Actual(**self.login, data_dir=self.make("created"))
        self.use(actual)
        actual.create_budget(name)
        actual.upload_budget()
        return self.here()

    def make(self, name):
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def open(self, group, key=None):
        """Opens the copy in the client's own folder, or else downloads the budget."""
        folder = self.make("opened")
        self.use(Actual(**self.login, data_dir=folder, file=group, encryption_password=key))
        return self.here()

    def again(self, key=None):
        """Deletes the client's own copy and downloads the budget again."""
        file, folder = self.actual.file.file_id, self.actual.data_dir
        self.actual.__exit__(None, None, None)
        shutil.rmtree(folder)
        return self.open(file, key)

    def files(self):
        files = self.actual.list_user_files().data
        fields = lambda one: (one.file_id, one.group_id, one.name, one.encrypt_key_id)
        return [dict(zip(("file", "group", "name", "key"), fields(one))) for one in files]

    def account(self, name):
        return create_account(self.actual.session, name).id

    def import_(self, account, **numbers):
        first, count = numbers["from"], numbers["count"]
        for at in range(count):
            create_transaction(
                self.actual.session,
                datetime.date(2024, 1 + at % 12, 1 + at % 28),
                account,
                f"Payee {at % 20}",
                f"note {first + at}",
                amount=decimal.Decimal(first + at + 1) / 100,
                imported_id=f"{account} {first + at}",
            )
        return count

    def edit(self, imported, set):
        by_id = select(Transactions).where(Transactions.financial_id == imported)
        transaction = self.actual.session.exec(by_id).one()
        for name, value in set.items():
            setattr(transaction, name, value)

    def sync(self):
        """Sends the local changes, then fetches those of other clients."""
        self.actual.commit()
        self.actual.sync()

    def state(self):
        session = self.actual.session
        # A sync writes fetched changes past this session, so its objects may be outdated.
        session.expire_all()
        transactions = [
            (
                one.id,
                one.financial_id,
                one.get_date().isoformat(),
                one.amount,
                one.notes,
                one.account.name,
                one.payee.name if one.payee else None,
            )
            for one in get_transactions(session)
        ]
        balances = {one.name: round(one.balance * 100) for one in get_accounts(session)}
        name = self.actual.get_metadata()["budgetName"]
        return {"name": name, "balances": balances, "transactions": transactions}

    def encrypt(self, key):
        self.actual.encrypt(key)
        return self.here()

    def reset(self):
        self.actual.reupload_budget()
        return self.here()

    def rename(self, name):
        self.actual.rename_budget(name)

    def delete(self):
        self.actual.delete_budget()

    def change_password(self, password):
        self.actual.reset_password(password)


def main():
    client = Client()
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("do").replace("-", "_")
        try:
            method = getattr(client, "import_" if name == "import" else name)
            answer = {"ok": method(**request)}
        except Exception as error:
            print(repr(error), file=sys.stderr)
            refused = isinstance(error, httpx.HTTPStatusError)
            named = f"{type(error).__name__}: {error}"
            answer = {"error": error.response.text if refused else named}
        print(json.dumps(answer), flush=True)


main()
