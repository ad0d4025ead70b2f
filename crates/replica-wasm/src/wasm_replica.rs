//! Exports an open database to the browser's worker.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Date, Function, Uint8Array};
use protocol::{DeviceList, ErrorCode, RegisterDeviceRequest};
use replica::{
    AccountCheck, CellEdit, RecoveryPhrase, Replica, SyncContext, SyncProgress, SyncStatus,
};
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
    /// The open database; `None` only while the file is replaced, and after `close`. Calls that
    /// wait for the network keep it open, so the worker ends them first.
    open: RefCell<Option<Rc<OpenDatabase>>>,
    name: String,
}

struct OpenDatabase {
    replica: Replica,
    watch: TableWatcher,
}

/// Opens a database, or creates it.
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

    /// Closes the database during `work`.
    fn while_closed<T>(&self, work: impl FnOnce(&BrowserStorage) -> Result<T>) -> Result<T> {
        self.open.replace(None);
        let done = work(&self.storage);
        self.open.replace(Some(Rc::new(open(&self.storage, &self.name)?)));
        done
    }

    /// Runs one statement, or several without parameters. The rows are those of the last one.
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

    /// Runs a statement once for each list of parameters. Returns the number of changed rows.
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

    /// Returns whether a transaction is open.
    #[wasm_bindgen(js_name = inTransaction)]
    pub fn in_transaction(&self) -> Result<bool> {
        Ok(!self.open_database()?.replica.connection().is_autocommit())
    }

    /// Returns the tables that a statement reads, including those of views.
    #[wasm_bindgen(js_name = tablesRead)]
    pub fn tables_read(&self, sql: &str) -> Result<Vec<String>> {
        let open = self.open_database()?;
        open.watch.tables_read(open.replica.connection(), sql)
    }

    /// Returns the tables that were written to since the last call.
    #[wasm_bindgen(js_name = takeChangedTables)]
    pub fn take_changed_tables(&self) -> Result<Vec<String>> {
        Ok(self.open_database()?.watch.take_written())
    }

    /// Starts tracking these tables, all or none.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen's signature")]
    pub fn track(&self, tables: Vec<String>) -> Result<()> {
        self.open_database()?.replica.track(&tables)?;
        Ok(())
    }

    /// Registers this database as a device of an account. If the account is not new, and the server
    /// has not reported its encryption mode, nothing is sent before there is a recovery phrase, or
    /// `confirmNewAccount` was called.
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
        let check = AccountCheck::Login;
        replica.check_account(&server, &request.login, check)?;
        if is_new {
            replica.confirm_new_account()
        } else {
            replica.require_account_confirmation()
        }?;
        Ok(replica.sign_in_async(&mut transport, &server, &request, check).await?)
    }

    /// Returns an error if this database belongs to another account.
    #[wasm_bindgen(js_name = checkAccount)]
    pub fn check_account(&self, server: &str, login: &str) -> Result<()> {
        self.open_database()?.replica.check_account(server, login, AccountCheck::Login)?;
        Ok(())
    }

    /// Records the user's confirmation that the account is new.
    #[wasm_bindgen(js_name = confirmNewAccount)]
    pub fn confirm_new_account(&self) -> Result<()> {
        Ok(self.open_database()?.replica.confirm_new_account()?)
    }

    /// Forgets this device's token.
    #[wasm_bindgen(js_name = signOut)]
    pub fn sign_out(&self) -> Result<()> {
        Ok(self.open_database()?.replica.sign_out()?)
    }

    /// Returns this device's token, if it is registered.
    pub fn token(&self) -> Result<Option<String>> {
        Ok(self.open_database()?.replica.token()?)
    }

    /// Brings this database and the server to the same set of messages, and returns the report.
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

    /// Subscribes to the server's events until the stream ends.
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

    /// Returns the state of the database, without a request to the server.
    pub fn status(&self) -> Result<String> {
        json(&self.open_database()?.replica.status()?)
    }

    /// Requests the sync status of the server and of the account's devices.
    #[wasm_bindgen(js_name = syncStatus)]
    pub async fn sync_status(&self, signal: AbortSignal, turns: ConnectionLock) -> Result<String> {
        let (transport, token) = (self.transport(signal, turns)?, self.require_token()?);
        let list: DeviceList = transport.get("/v1/devices", &token).await?;
        let open = self.open_database()?;
        let replica = &open.replica;
        replica.store_device_names(&list)?;
        json(&SyncStatus::new(&replica.status()?, &list))
    }

    /// Writes one cell for an author who saw `seen` in it, and returns the outcome.
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

    /// Returns every change of a row until the last sync.
    #[expect(clippy::needless_pass_by_value, reason = "wasm-bindgen's signature")]
    pub fn history(&self, table: &str, key: Vec<String>) -> Result<String> {
        json(&self.open_database()?.replica.history(table, &key)?)
    }

    /// Returns the lost edits.
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

    /// Records all writes since the last sync in the history.
    #[wasm_bindgen(js_name = recordHistory)]
    pub fn record_history(&self) -> Result<()> {
        Ok(self.open_database()?.replica.record_history(now_ms())?)
    }

    /// Returns the most recently deleted rows of a table.
    #[wasm_bindgen(js_name = deletedRows)]
    pub fn deleted_rows(&self, table: &str, limit: u32) -> Result<String> {
        let rows = self.open_database()?.replica.deleted_rows(table, limit as usize, now_ms())?;
        json(&rows)
    }

    /// Returns the hidden rows.
    #[wasm_bindgen(js_name = hiddenRows)]
    pub fn hidden_rows(&self) -> Result<String> {
        json(&self.open_database()?.replica.hidden_rows()?)
    }

    /// Makes a hidden row visible with another value in one column.
    #[wasm_bindgen(js_name = resolveHiddenRow)]
    pub fn resolve_hidden_row(&self, id: &str, column: &str, value: &str) -> Result<()> {
        self.open_database()?.replica.resolve_hidden_row(id, column, value, now_ms())?;
        Ok(())
    }

    /// Merges a hidden row into the visible row that it collides with.
    #[wasm_bindgen(js_name = mergeHiddenRow)]
    pub fn merge_hidden_row(&self, id: &str) -> Result<()> {
        self.open_database()?.replica.merge_hidden_row(id, now_ms())?;
        Ok(())
    }

    /// Deletes a hidden row on all devices.
    #[wasm_bindgen(js_name = deleteHiddenRow)]
    pub fn delete_hidden_row(&self, id: &str) -> Result<()> {
        self.open_database()?.replica.delete_hidden_row(id, now_ms())?;
        Ok(())
    }

    /// Returns the recovery phrase, if there is one.
    #[wasm_bindgen(js_name = recoveryPhrase)]
    pub fn recovery_phrase(&self) -> Result<Option<String>> {
        let phrase = self.open_database()?.replica.recovery_phrase()?;
        Ok(phrase.map(|phrase| phrase.words().to_string()))
    }

    /// Enables end-to-end encryption from now on, or from the next sync on if the account is plain.
    /// Returns the recovery phrase.
    #[wasm_bindgen(js_name = createRecoveryPhrase)]
    pub fn create_recovery_phrase(&self) -> Result<String> {
        Ok(self.open_database()?.replica.create_recovery_phrase()?.words().to_string())
    }

    /// Sets the recovery phrase of the other devices.
    #[wasm_bindgen(js_name = enterRecoveryPhrase)]
    pub fn enter_recovery_phrase(&self, words: String) -> Result<()> {
        let words = Zeroizing::new(words);
        Ok(self.open_database()?.replica.set_recovery_phrase(&RecoveryPhrase::parse(&words)?)?)
    }

    /// Returns the bytes of the database file.
    pub fn export(&self) -> Result<Uint8Array> {
        let bytes = self.while_closed(BrowserStorage::export)?;
        Ok(bytes.as_slice().into())
    }

    /// Replaces the database by a file, if that opens and belongs to no other account.
    pub fn import(&self, file: &Uint8Array) -> Result<()> {
        let own = self.open_database()?.replica.account()?;
        self.while_closed(|storage| storage.import(&file.to_vec(), own.as_ref()))
    }

    /// Returns whether the file has a key.
    #[wasm_bindgen(js_name = isEncrypted)]
    pub fn is_encrypted(&self) -> bool {
        self.storage.is_encrypted()
    }

    /// Returns whether this is the file's key, or, without a key, whether the file has none.
    #[wasm_bindgen(js_name = hasKey)]
    pub fn has_key(&self, key: &JsValue) -> Result<bool> {
        Ok(self.storage.has_key(read_key(key)?.as_ref()))
    }

    /// Encrypts the file with another key, or decrypts it, if `from` is its present key.
    pub fn rekey(&self, from: &JsValue, to: &JsValue) -> Result<()> {
        let (from, to) = (read_key(from)?, read_key(to)?);
        if !self.storage.has_key(from.as_ref()) {
            return Err(WasmError::new(ErrorCode::WrongKey, "the key does not match the file"));
        }
        self.while_closed(|storage| storage.rekey(to))
    }

    /// Closes the database and releases its file.
    pub fn close(&self) -> Result<()> {
        self.open.replace(None);
        self.storage.release()
    }
}

/// The parameters of a registration.
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

/// Returns whether to keep the statement prepared: it must be a single one that takes effect only
/// when it runs, unlike some PRAGMAs, which act when they are prepared. In doubt, it is not kept.
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
    // The callback may fail; the sync continues.
    drop(on_progress.call3(&JsValue::NULL, &stage.into(), &done.into(), &total.into()));
}

/// Serializes a value for JavaScript: the types are in `web/client/src/shared/json-types.ts`.
fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).expect("such values have string keys and no other serializer"))
}
