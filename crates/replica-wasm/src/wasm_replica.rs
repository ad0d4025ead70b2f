//! What the worker holds: an open database.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Date, Function, Uint8Array};
use protocol::{DeviceList, ErrorCode, RegisterDeviceRequest};
use replica::{CellEdit, RecoveryPhrase, Replica, SyncContext, SyncProgress, SyncStatus};
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::params_from_iter;
use serde::Serialize;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use web_sys::AbortSignal;
use zeroize::Zeroizing;

use crate::browser_storage::{BrowserStorage, StorageKey};
use crate::fetch_transport::{ConnectionLock, FetchTransport};
use crate::js_parameters;
use crate::packed_rows::{PackedRows, RowPacker};
use crate::table_watcher::TableWatcher;
use crate::wasm_error::{Result, WasmError};

const KEY_BYTES: usize = 32;

/// An open database.
#[wasm_bindgen(js_name = Replica)]
pub struct WasmReplica {
    storage: BrowserStorage,
    /// `None` only while the file is replaced, and after `close`. What waits for the network keeps
    /// it open: the worker ends that first.
    open: RefCell<Option<Rc<OpenDatabase>>>,
    name: String,
}

struct OpenDatabase {
    replica: Replica,
    watch: TableWatcher,
}

/// Opens a database, or makes it.
#[wasm_bindgen(js_name = openReplica)]
pub async fn open_replica(name: String, key: JsValue, in_memory: bool) -> Result<WasmReplica> {
    let key = read_key(&key)?;
    let storage = if in_memory {
        BrowserStorage::in_memory()
    } else {
        BrowserStorage::acquire(&name, key).await?
    };
    let opened = open(&storage, &name);
    if opened.is_err() {
        storage.release()?;
    }
    Ok(WasmReplica { open: RefCell::new(Some(Rc::new(opened?))), storage, name })
}

fn read_key(key: &JsValue) -> Result<Option<StorageKey>> {
    if key.is_undefined() {
        return Ok(None);
    }
    if let Some(words) = key.as_string() {
        return Ok(Some(StorageKey::Passphrase(Zeroizing::new(words))));
    }
    let bytes = Zeroizing::new(Uint8Array::new(key).to_vec());
    let bytes = <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).ok();
    let bytes =
        bytes.ok_or_else(|| WasmError::new(ErrorCode::InvalidKey, "a key must have 32 bytes"))?;
    Ok(Some(StorageKey::Raw(Zeroizing::new(bytes))))
}

fn open(storage: &BrowserStorage, name: &str) -> Result<OpenDatabase> {
    let mut db = storage.connect()?;
    let watch = TableWatcher::start(&mut db)?;
    let replica = Replica::on_shared_connection(db, name, &storage.identity()?)?;
    Ok(OpenDatabase { replica, watch })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "after 1970")]
fn now_ms() -> u64 {
    Date::now() as u64
}

#[wasm_bindgen(js_class = Replica)]
impl WasmReplica {
    fn open_database(&self) -> Result<Rc<OpenDatabase>> {
        let open = self.open.borrow().clone();
        open.ok_or_else(|| WasmError::new(ErrorCode::Closed, "this database is closed"))
    }

    /// Closes the database for as long as `work` takes.
    fn while_closed<T>(&self, work: impl FnOnce(&BrowserStorage) -> Result<T>) -> Result<T> {
        self.open.replace(None);
        let done = work(&self.storage);
        self.open.replace(Some(Rc::new(open(&self.storage, &self.name)?)));
        done
    }

    /// Runs one statement; or several, if there are no parameters. The rows are the last one's.
    pub fn run(&self, sql: &str, parameters: &Array) -> Result<PackedRows> {
        let open = self.open_database()?;
        let db = open.replica.connection();
        let before = db.total_changes();
        let mut packer = RowPacker::default();
        if parameters.length() > 0 || is_cacheable(sql) {
            let parameters = params_from_iter(js_parameters::read(parameters)?);
            packer = RowPacker::run(&mut *db.prepare_cached(sql)?, parameters)?;
        } else {
            let mut batch = rusqlite::Batch::new(db, sql);
            while let Some(mut statement) = batch.next()? {
                packer = RowPacker::run(&mut statement, [])?;
            }
        }
        Ok(packer.finish(db.total_changes() - before))
    }

    /// Runs a statement once for each list of parameters; returns how many rows it changed.
    #[wasm_bindgen(js_name = runMany)]
    #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
    pub fn run_many(&self, sql: &str, parameters: &Array) -> Result<f64> {
        let open = self.open_database()?;
        let db = open.replica.connection();
        let before = db.total_changes();
        let mut statement = db.prepare_cached(sql)?;
        for list in parameters.iter() {
            statement.execute(params_from_iter(js_parameters::read(&Array::from(&list))?))?;
        }
        Ok((db.total_changes() - before) as f64)
    }

    /// Whether a transaction is open.
    #[wasm_bindgen(js_name = inTransaction)]
    pub fn in_transaction(&self) -> Result<bool> {
        Ok(!self.open_database()?.replica.connection().is_autocommit())
    }

    /// The tables that a statement reads, those behind views too.
    #[wasm_bindgen(js_name = tablesRead)]
    pub fn tables_read(&self, sql: &str) -> Result<Vec<String>> {
        let open = self.open_database()?;
        open.watch.tables_read(open.replica.connection(), sql)
    }

    /// The tables that were written to since this was asked last.
    #[wasm_bindgen(js_name = takeChangedTables)]
    pub fn take_changed_tables(&self) -> Result<Vec<String>> {
        Ok(self.open_database()?.watch.take_written())
    }

    /// Begins to track these tables, all or none.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen's signature")]
    pub fn track(&self, tables: Vec<String>) -> Result<()> {
        self.open_database()?.replica.track(&tables)?;
        Ok(())
    }

    /// Registers this database as a device of an account. Of one that is not new, and that the
    /// server knows nothing of, nothing is sent before there is a recovery phrase, or
    /// `confirmNewAccount`.
    #[wasm_bindgen(js_name = signIn)]
    pub async fn sign_in(
        &self,
        request: SignInRequest,
        signal: AbortSignal,
        turns: ConnectionLock,
    ) -> Result<()> {
        let SignInRequest { server, login, password, device_name, is_new } = request;
        let mut transport = FetchTransport::new(&server, signal, turns);
        let request = RegisterDeviceRequest { login, password, name: device_name };
        let open = self.open_database()?;
        let replica = &open.replica;
        if is_new {
            replica.confirm_new_account()
        } else {
            replica.require_account_confirmation()
        }?;
        Ok(replica.sign_in_async(&mut transport, &server, &request).await?)
    }

    /// The user says that the account is new.
    #[wasm_bindgen(js_name = confirmNewAccount)]
    pub fn confirm_new_account(&self) -> Result<()> {
        Ok(self.open_database()?.replica.confirm_new_account()?)
    }

    /// Forgets this device's token.
    #[wasm_bindgen(js_name = signOut)]
    pub fn sign_out(&self) -> Result<()> {
        Ok(self.open_database()?.replica.sign_out()?)
    }

    /// This device's secret, if it is registered.
    pub fn token(&self) -> Result<Option<String>> {
        Ok(self.open_database()?.replica.token()?)
    }

    /// Brings this database and the server to the same set of messages; returns the report.
    pub async fn sync(
        &self,
        on_progress: Function,
        signal: AbortSignal,
        turns: ConnectionLock,
    ) -> Result<String> {
        let open = self.open_database()?;
        let replica = &open.replica;
        let mut transport = self.transport(signal, turns)?;
        let mut progress = |progress| report_progress(&on_progress, progress);
        let options =
            SyncContext { create_missing: false, now_ms: &now_ms, progress: &mut progress };
        let report = replica.sync_async(&mut transport, options).await?;
        json(&report)
    }

    /// Listens to the server until it ends.
    pub async fn listen(
        &self,
        on_state: Function,
        signal: AbortSignal,
        turns: ConnectionLock,
    ) -> Result<()> {
        let (transport, token) = (self.transport(signal, turns)?, self.require_token()?);
        Ok(transport.listen(&token, &on_state).await?)
    }

    fn transport(&self, signal: AbortSignal, turns: ConnectionLock) -> Result<FetchTransport> {
        let server =
            self.open_database()?.replica.server()?.ok_or(replica::Error::ServerNotConfigured)?;
        Ok(FetchTransport::new(&server, signal, turns))
    }

    fn require_token(&self) -> Result<String> {
        Ok(self.open_database()?.replica.token()?.ok_or(replica::Error::ServerNotConfigured)?)
    }

    /// The state of the database, without asking the server.
    pub fn status(&self) -> Result<String> {
        json(&self.open_database()?.replica.status()?)
    }

    /// Asks the server how far it and the account's devices are.
    #[wasm_bindgen(js_name = syncStatus)]
    pub async fn sync_status(&self, signal: AbortSignal, turns: ConnectionLock) -> Result<String> {
        let (transport, token) = (self.transport(signal, turns)?, self.require_token()?);
        let list: DeviceList = transport.get("/v1/devices", &token).await?;
        let open = self.open_database()?;
        let replica = &open.replica;
        replica.store_device_names(&list)?;
        json(&SyncStatus::new(&replica.status()?, &list))
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
        let key: Vec<_> =
            key.iter().map(|part| js_parameters::value(&part)).collect::<Result<_>>()?;
        let (value, seen) = (js_parameters::value(value)?, js_parameters::value(seen)?);
        let edit = CellEdit { table, key: &key, column, value, seen };
        Ok(self.open_database()?.replica.edit(&edit, now_ms())?.name().to_owned())
    }

    /// Every change of a row until the last sync.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen's signature")]
    pub fn history(&self, table: &str, key: Vec<String>) -> Result<String> {
        json(&self.open_database()?.replica.history(table, &key)?)
    }

    /// The lost edits.
    pub fn conflicts(&self) -> Result<String> {
        json(&self.open_database()?.replica.conflicts()?)
    }

    /// Dismisses a lost edit on all devices.
    #[wasm_bindgen(js_name = dismissLostEdit)]
    pub fn dismiss_lost_edit(&self, id: &str) -> Result<()> {
        self.open_database()?.replica.dismiss(id, now_ms())?;
        Ok(())
    }

    /// Writes a lost edit into its table again.
    #[wasm_bindgen(js_name = restoreLostEdit)]
    pub fn restore_lost_edit(&self, id: &str) -> Result<()> {
        self.open_database()?.replica.restore(id, now_ms())?;
        Ok(())
    }

    /// Records what was written since the last sync in the history.
    #[wasm_bindgen(js_name = recordHistory)]
    pub fn record_history(&self) -> Result<()> {
        Ok(self.open_database()?.replica.record_history(now_ms())?)
    }

    /// The rows of a table that were deleted last.
    #[wasm_bindgen(js_name = deletedRows)]
    pub fn deleted_rows(&self, table: &str, limit: u32) -> Result<String> {
        let rows = self.open_database()?.replica.deleted_rows(table, limit as usize, now_ms())?;
        json(&rows)
    }

    /// The hidden rows.
    #[wasm_bindgen(js_name = hiddenRows)]
    pub fn hidden_rows(&self) -> Result<String> {
        json(&self.open_database()?.replica.hidden_rows()?)
    }

    /// Shows a hidden row with another value in one column.
    #[wasm_bindgen(js_name = resolveHiddenRow)]
    pub fn resolve_hidden_row(&self, id: &str, column: &str, value: &str) -> Result<()> {
        self.open_database()?.replica.resolve_hidden_row(id, column, value, now_ms())?;
        Ok(())
    }

    /// Merges a hidden row into the visible row that has its place.
    #[wasm_bindgen(js_name = mergeHiddenRow)]
    pub fn merge_hidden_row(&self, id: &str) -> Result<()> {
        self.open_database()?.replica.merge_hidden_row(id, now_ms())?;
        Ok(())
    }

    /// Deletes a hidden row, on all devices.
    #[wasm_bindgen(js_name = deleteHiddenRow)]
    pub fn delete_hidden_row(&self, id: &str) -> Result<()> {
        self.open_database()?.replica.delete_hidden_row(id, now_ms())?;
        Ok(())
    }

    /// The recovery phrase, if there is one.
    #[wasm_bindgen(js_name = recoveryPhrase)]
    pub fn recovery_phrase(&self) -> Result<Option<String>> {
        let phrase = self.open_database()?.replica.recovery_phrase()?;
        Ok(phrase.map(|phrase| phrase.words().to_string()))
    }

    /// Encrypts end to end from here on, or, of an account in plain, from the next sync on; returns
    /// the words.
    #[wasm_bindgen(js_name = createRecoveryPhrase)]
    pub fn create_recovery_phrase(&self) -> Result<String> {
        Ok(self.open_database()?.replica.create_recovery_phrase()?.words().to_string())
    }

    /// Takes the other devices' words.
    #[wasm_bindgen(js_name = enterRecoveryPhrase)]
    pub fn enter_recovery_phrase(&self, words: String) -> Result<()> {
        let words = Zeroizing::new(words);
        Ok(self.open_database()?.replica.set_recovery_phrase(&RecoveryPhrase::parse(&words)?)?)
    }

    /// The database file.
    pub fn export(&self) -> Result<Uint8Array> {
        let bytes = self.while_closed(BrowserStorage::export)?;
        Ok(bytes.as_slice().into())
    }

    /// Replaces the database by a file, if that opens.
    pub fn import(&self, file: &Uint8Array) -> Result<()> {
        self.while_closed(|storage| storage.import(&file.to_vec()))
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
            return Err(WasmError::new(ErrorCode::WrongKey, "the key does not match the file"));
        }
        self.while_closed(|storage| storage.rekey(to))
    }

    /// Gives the file free.
    pub fn close(&self) -> Result<()> {
        self.open.replace(None);
        self.storage.release()
    }
}

/// Whom to register, and where.
#[wasm_bindgen]
pub struct SignInRequest {
    server: String,
    login: String,
    password: String,
    device_name: String,
    is_new: bool,
}

#[wasm_bindgen]
impl SignInRequest {
    #[wasm_bindgen(constructor)]
    pub fn new(
        server: String,
        login: String,
        password: String,
        device_name: String,
        is_new: bool,
    ) -> Self {
        Self { server, login, password, device_name, is_new }
    }
}

/// Whether to keep the statement prepared: it is one, and what it does it does when it is run; some
/// PRAGMAs are done when they are prepared. Where that is not plain to see, it is prepared each time.
fn is_cacheable(sql: &str) -> bool {
    let sql = sql.trim();
    let first = sql.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_plain = !first.is_empty() && !first.eq_ignore_ascii_case("pragma");
    is_plain && !sql.trim_end_matches(';').contains(';')
}

fn report_progress(on_progress: &Function, progress: SyncProgress) {
    let (stage, done, total) = match progress {
        SyncProgress::Received(done, total) => ("received", done, total),
        SyncProgress::Sent(done, total) => ("sent", done, total),
        SyncProgress::Applied(done) => ("applied", done, 0),
    };
    #[expect(clippy::cast_precision_loss, reason = "counts of messages")]
    let (done, total) = (done as f64, total as f64);
    // Whoever listens may fail; the sync goes on.
    drop(on_progress.call3(&JsValue::NULL, &stage.into(), &done.into(), &total.into()));
}

/// For JavaScript: the types are in `web/client/src/shared/json-types.ts`.
fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).expect("such values have string keys and no other serializer"))
}
