//! What the worker holds: an open database.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Date, Function, Uint8Array};
use protocol::{ClientList, ClientRequest};
use replica::{CellEdit, Phrase, Progress, Receipt, Replica, SyncOptions};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::params_from_iter;
use serde_json::Value;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::AbortSignal;
use zeroize::Zeroizing;

use crate::failure::{Failure, Result};
use crate::fetch::{Fetch, Turns};
use crate::packed::{PackedRows, Packer};
use crate::parameters;
use crate::storage::{Key, Storage};
use crate::watch::Watch;

const KEY_BYTES: usize = 32;

/// An open database.
#[wasm_bindgen(js_name = Replica)]
pub struct WasmReplica {
    storage: Storage,
    /// `None` only while the file is replaced, and after `close`. What waits for the network keeps
    /// it open: the worker ends that first.
    open: RefCell<Option<Rc<Open>>>,
    name: String,
}

struct Open {
    replica: Replica,
    watch: Watch,
}

/// Opens a database, or makes it.
#[wasm_bindgen(js_name = openReplica)]
pub async fn open_replica(name: String, key: JsValue, in_memory: bool) -> Result<WasmReplica> {
    let key = read_key(&key)?;
    let storage = if in_memory { Storage::in_memory() } else { Storage::take(&name, key).await? };
    let opened = open(&storage, &name);
    if opened.is_err() {
        storage.release()?;
    }
    Ok(WasmReplica { open: RefCell::new(Some(Rc::new(opened?))), storage, name })
}

fn read_key(key: &JsValue) -> Result<Option<Key>> {
    if key.is_undefined() {
        return Ok(None);
    }
    if let Some(words) = key.as_string() {
        return Ok(Some(Key::Passphrase(Zeroizing::new(words))));
    }
    let bytes = Zeroizing::new(Uint8Array::new(key).to_vec());
    let bytes = <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).ok();
    let bytes = bytes.ok_or_else(|| Failure::new("invalid_key", "a key has 32 bytes"))?;
    Ok(Some(Key::Raw(Zeroizing::new(bytes))))
}

fn open(storage: &Storage, name: &str) -> Result<Open> {
    let mut db = storage.connect()?;
    let watch = Watch::start(&mut db)?;
    let replica = Replica::shared(db, name, &storage.identity()?)?;
    Ok(Open { replica, watch })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "after 1970")]
fn now_ms() -> u64 {
    Date::now() as u64
}

#[wasm_bindgen(js_class = Replica)]
impl WasmReplica {
    fn opened(&self) -> Result<Rc<Open>> {
        let open = self.open.borrow().clone();
        open.ok_or_else(|| Failure::new("closed", "this database is closed"))
    }

    /// Closes the database for as long as `work` takes.
    fn reopening<T>(&self, work: impl FnOnce(&Storage) -> Result<T>) -> Result<T> {
        self.open.replace(None);
        let done = work(&self.storage);
        self.open.replace(Some(Rc::new(open(&self.storage, &self.name)?)));
        done
    }

    /// Runs one statement; or several, if there are no parameters. The rows are the last one's.
    pub fn run(&self, sql: &str, parameters: &Array) -> Result<PackedRows> {
        let open = self.opened()?;
        let db = open.replica.connection();
        let before = db.total_changes();
        let mut packer = Packer::default();
        if parameters.length() > 0 || is_kept(sql) {
            let parameters = params_from_iter(parameters::read(parameters)?);
            packer = Packer::run(&mut *db.prepare_cached(sql)?, parameters)?;
        } else {
            let mut batch = rusqlite::Batch::new(db, sql);
            while let Some(mut statement) = batch.next()? {
                packer = Packer::run(&mut statement, [])?;
            }
        }
        Ok(packer.finish(db.total_changes() - before))
    }

    /// Runs a statement once for each list of parameters; returns how many rows it changed.
    #[wasm_bindgen(js_name = runMany)]
    #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
    pub fn run_many(&self, sql: &str, parameters: &Array) -> Result<f64> {
        let open = self.opened()?;
        let db = open.replica.connection();
        let before = db.total_changes();
        let mut statement = db.prepare_cached(sql)?;
        for list in parameters.iter() {
            statement.execute(params_from_iter(parameters::read(&Array::from(&list))?))?;
        }
        Ok((db.total_changes() - before) as f64)
    }

    /// Whether a transaction is open.
    #[wasm_bindgen(js_name = inTransaction)]
    pub fn in_transaction(&self) -> Result<bool> {
        Ok(!self.opened()?.replica.connection().is_autocommit())
    }

    /// The tables that a statement reads, those behind views too.
    #[wasm_bindgen(js_name = tablesRead)]
    pub fn tables_read(&self, sql: &str) -> Result<Vec<String>> {
        let open = self.opened()?;
        open.watch.tables_read(open.replica.connection(), sql)
    }

    /// The tables that were written to since this was asked last.
    #[wasm_bindgen(js_name = takeChanged)]
    pub fn take_changed(&self) -> Result<Vec<String>> {
        Ok(self.opened()?.watch.take_written())
    }

    /// Begins to track these tables, all or none.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen's signature")]
    pub fn track(&self, tables: Vec<String>) -> Result<()> {
        self.opened()?.replica.track(&tables)?;
        Ok(())
    }

    /// Registers this database as a device of an account. Of one that is not new, and that the
    /// server knows nothing of, nothing is sent before there is a phrase, or `beginAccount`.
    #[wasm_bindgen(js_name = signIn)]
    pub async fn sign_in(&self, request: SignIn, signal: AbortSignal, turns: Turns) -> Result<()> {
        let SignIn { server, login, password, name, is_new } = request;
        let mut transport = Fetch::new(&server, signal, turns);
        let request = ClientRequest { login, password, name };
        let open = self.opened()?;
        let replica = &open.replica;
        if is_new { replica.begin_account() } else { replica.ask_form() }?;
        Ok(replica.sign_in_async(&mut transport, &server, &request).await?)
    }

    /// The user says that the account is new.
    #[wasm_bindgen(js_name = beginAccount)]
    pub fn begin_account(&self) -> Result<()> {
        Ok(self.opened()?.replica.begin_account()?)
    }

    /// Forgets this device's token.
    #[wasm_bindgen(js_name = signOut)]
    pub fn sign_out(&self) -> Result<()> {
        Ok(self.opened()?.replica.sign_out()?)
    }

    /// This device's secret, if it is registered.
    pub fn token(&self) -> Result<Option<String>> {
        Ok(self.opened()?.replica.token()?)
    }

    /// Brings this database and the server to the same set of messages; returns the report.
    pub async fn sync(
        &self,
        on_progress: Function,
        signal: AbortSignal,
        turns: Turns,
    ) -> Result<String> {
        let open = self.opened()?;
        let replica = &open.replica;
        let mut transport = self.transport(signal, turns)?;
        let mut progress = |progress| tell(&on_progress, progress);
        let options = SyncOptions { adopt: false, now_ms: &now_ms, progress: &mut progress };
        let report = replica.sync_async(&mut transport, options).await?;
        Ok(report.to_json().to_string())
    }

    /// Listens to the server until it ends.
    pub async fn listen(
        &self,
        on_state: Function,
        signal: AbortSignal,
        turns: Turns,
    ) -> Result<()> {
        let (transport, token) = (self.transport(signal, turns)?, self.secret()?);
        Ok(transport.listen(&token, &on_state).await?)
    }

    fn transport(&self, signal: AbortSignal, turns: Turns) -> Result<Fetch> {
        let server = self.opened()?.replica.server()?.ok_or(replica::Error::NoServer)?;
        Ok(Fetch::new(&server, signal, turns))
    }

    fn secret(&self) -> Result<String> {
        Ok(self.opened()?.replica.token()?.ok_or(replica::Error::NoServer)?)
    }

    /// How the database stands.
    pub fn status(&self) -> Result<String> {
        Ok(self.opened()?.replica.status()?.to_json().to_string())
    }

    /// How the server and the other devices stand beside it.
    pub async fn receipt(&self, signal: AbortSignal, turns: Turns) -> Result<String> {
        let (transport, token) = (self.transport(signal, turns)?, self.secret()?);
        let list: ClientList = transport.get("/v1/clients", &token).await?;
        let open = self.opened()?;
        let replica = &open.replica;
        replica.remember_devices(&list)?;
        Ok(Receipt::of(&replica.status()?, &list).to_json(&list).to_string())
    }

    /// Writes one cell by somebody who says what they saw in it; returns what became of it.
    pub fn edit(
        &self,
        table: &str,
        key: &Array,
        column: &str,
        value: &JsValue,
        seen: &JsValue,
    ) -> Result<String> {
        let key: Vec<_> = key.iter().map(|part| parameters::value(&part)).collect::<Result<_>>()?;
        let (value, seen) = (parameters::value(value)?, parameters::value(seen)?);
        let edit = CellEdit { table, key: &key, column, value, seen };
        Ok(self.opened()?.replica.edit(&edit, now_ms())?.name().to_owned())
    }

    /// Every change of a row until the last sync.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen's signature")]
    pub fn history(&self, table: &str, key: Vec<String>) -> Result<String> {
        let entries = self.opened()?.replica.history(table, &key)?;
        let entries: Value = entries.iter().map(replica::HistoryEntry::to_json).collect();
        Ok(entries.to_string())
    }

    /// The lost edits.
    pub fn conflicts(&self) -> Result<String> {
        let conflicts = self.opened()?.replica.conflicts()?;
        let conflicts: Value = conflicts.iter().map(replica::Conflict::to_json).collect();
        Ok(conflicts.to_string())
    }

    /// Lets a lost edit be, on all devices.
    pub fn dismiss(&self, id: &str) -> Result<()> {
        self.opened()?.replica.dismiss(id, now_ms())?;
        Ok(())
    }

    /// Writes a lost edit into its table again.
    pub fn restore(&self, id: &str) -> Result<()> {
        self.opened()?.replica.restore(id, now_ms())?;
        Ok(())
    }

    /// Makes history of what was written since the last sync.
    pub fn record(&self) -> Result<()> {
        Ok(self.opened()?.replica.record(now_ms())?)
    }

    /// The rows of a table that were deleted last.
    pub fn deleted(&self, table: &str, count_max: u32) -> Result<String> {
        let rows = self.opened()?.replica.deleted_rows(table, count_max as usize, now_ms())?;
        Ok(rows.iter().map(replica::DeletedRow::to_json).collect::<Value>().to_string())
    }

    /// The rows that are held back.
    pub fn held(&self) -> Result<String> {
        let rows = self.opened()?.replica.held_rows()?;
        Ok(rows.iter().map(replica::HeldRow::to_json).collect::<Value>().to_string())
    }

    /// Shows a row that is held back with another value in one column.
    pub fn give(&self, id: &str, column: &str, value: &str) -> Result<()> {
        self.opened()?.replica.give(id, column, value, now_ms())?;
        Ok(())
    }

    /// Joins a row that is held back with the visible row that has its place.
    pub fn join(&self, id: &str) -> Result<()> {
        self.opened()?.replica.join(id, now_ms())?;
        Ok(())
    }

    /// Deletes a row that is held back, on all devices.
    #[wasm_bindgen(js_name = letGo)]
    pub fn let_go(&self, id: &str) -> Result<()> {
        self.opened()?.replica.let_go(id, now_ms())?;
        Ok(())
    }

    /// The recovery phrase, if there is one.
    pub fn phrase(&self) -> Result<Option<String>> {
        let phrase = self.opened()?.replica.phrase()?;
        Ok(phrase.map(|phrase| phrase.words().to_string()))
    }

    /// Encrypts end to end from here on, or, of an account in plain, from the next sync on; returns
    /// the words.
    #[wasm_bindgen(js_name = createPhrase)]
    pub fn create_phrase(&self) -> Result<String> {
        Ok(self.opened()?.replica.make_phrase()?.words().to_string())
    }

    /// Takes the other devices' words.
    #[wasm_bindgen(js_name = usePhrase)]
    pub fn use_phrase(&self, words: String) -> Result<()> {
        let words = Zeroizing::new(words);
        Ok(self.opened()?.replica.set_phrase(&Phrase::parse(&words)?)?)
    }

    /// The database file.
    pub fn export(&self) -> Result<Uint8Array> {
        let bytes = self.reopening(Storage::export)?;
        Ok(bytes.as_slice().into())
    }

    /// Replaces the database by a file, if that opens.
    pub fn import(&self, file: &Uint8Array) -> Result<()> {
        self.reopening(|storage| storage.import(&file.to_vec()))
    }

    /// Whether the file has a key.
    #[wasm_bindgen(js_name = isEncrypted)]
    pub fn is_encrypted(&self) -> bool {
        self.storage.is_encrypted()
    }

    /// Whether this is the file's key, or it has none where there is none.
    #[wasm_bindgen(js_name = hasKey)]
    pub fn has_key(&self, key: &JsValue) -> Result<bool> {
        Ok(self.storage.has_key(read_key(key)?.as_ref()))
    }

    /// Encrypts the file with another key, or with none, if `from` is the one that it has.
    pub fn rekey(&self, from: &JsValue, to: &JsValue) -> Result<()> {
        let (from, to) = (read_key(from)?, read_key(to)?);
        if !self.storage.has_key(from.as_ref()) {
            return Err(Failure::new("wrong_key", "this is not the key of the file"));
        }
        self.reopening(|storage| storage.rekey(to))
    }

    /// Gives the file free.
    pub fn close(&self) -> Result<()> {
        self.open.replace(None);
        self.storage.release()
    }
}

/// Whom to register, and where.
#[wasm_bindgen]
pub struct SignIn {
    server: String,
    login: String,
    password: String,
    name: String,
    is_new: bool,
}

#[wasm_bindgen]
impl SignIn {
    #[wasm_bindgen(constructor)]
    pub fn new(
        server: String,
        login: String,
        password: String,
        name: String,
        is_new: bool,
    ) -> Self {
        Self { server, login, password, name, is_new }
    }
}

/// Whether to keep the statement prepared: it is one, and what it does it does when it is run; some
/// PRAGMAs are done when they are prepared. Where that is not plain to see, it is prepared each time.
fn is_kept(sql: &str) -> bool {
    let sql = sql.trim();
    let first = sql.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_plain = !first.is_empty() && !first.eq_ignore_ascii_case("pragma");
    is_plain && !sql.trim_end_matches(';').contains(';')
}

fn tell(on_progress: &Function, progress: Progress) {
    let (stage, done, total) = match progress {
        Progress::Received(done, total) => ("received", done, total),
        Progress::Sent(done, total) => ("sent", done, total),
        Progress::Applied(done) => ("applied", done, 0),
    };
    #[expect(clippy::cast_precision_loss, reason = "counts of messages")]
    let (done, total) = (done as f64, total as f64);
    // Whoever listens may fail; the sync goes on.
    drop(on_progress.call3(&JsValue::NULL, &stage.into(), &done.into(), &total.into()));
}
