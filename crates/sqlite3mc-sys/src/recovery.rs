//! Wraps SQLite's recovery extension (`recover/README.md`), which returns the content of a damaged
//! file as statements for another connection.
//!
//! The extension outputs SQL with every value as a literal, and reading such a literal back loses
//! data or memory: a text ends at its first NUL, and a BLOB takes twice its size. So its SQL
//! function `quote` is replaced by one that keeps the value and returns a parameter, `?3`: all
//! statements of one table then have the same text.
//!
//! # Invariants
//! - The damaged file is only read, on a connection that only the recovery uses until it ends.
//! - The schema of a damaged file is not trusted: its SQL runs on the extension's own connection,
//!   which can open no other file.
//! - A collation that SQLite lacks is replaced by one that compares bytes, so that tables that use
//!   it can be created.
//!
//! # Not here
//! - Pages that cannot be read at all, which would end the recovery → `page_filter.rs`. Executing
//!   the statements → `doctor::recover`.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::functions::FunctionFlags;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ffi};

unsafe extern "C" {
    fn sqlite3_recover_init_sql(
        db: *mut ffi::sqlite3,
        schema: *const c_char,
        take: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int>,
        context: *mut c_void,
    ) -> *mut RecoverHandle;
    fn sqlite3_recover_config(
        handle: *mut RecoverHandle,
        operation: c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn sqlite3_recover_step(handle: *mut RecoverHandle) -> c_int;
    fn sqlite3_recover_errmsg(handle: *mut RecoverHandle) -> *const c_char;
    fn sqlite3_recover_finish(handle: *mut RecoverHandle) -> c_int;
}

const CONFIG_LOST_AND_FOUND: c_int = 1;
const CONFIG_FREELIST_CORRUPT: c_int = 2;

#[repr(C)]
struct RecoverHandle {
    _opaque: [u8; 0],
}

/// A value as it is stored in the damaged file: its text need not be UTF-8.
#[derive(Clone, Debug, PartialEq)]
pub enum RecoveredValue {
    /// The value NULL.
    Null,
    /// A value of storage class INTEGER.
    Integer(i64),
    /// A value of storage class REAL.
    Real(f64),
    /// A value of storage class TEXT, as bytes.
    Text(Vec<u8>),
    /// A value of storage class BLOB.
    Blob(Vec<u8>),
}

impl From<ValueRef<'_>> for RecoveredValue {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(value) => Self::Integer(value),
            ValueRef::Real(value) => Self::Real(value),
            ValueRef::Text(bytes) => Self::Text(bytes.to_vec()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for RecoveredValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Options that recover more than the tables' rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryOptions<'a> {
    /// The name of a table for rows on pages that no table leads to.
    pub lost_and_found: Option<&'a CStr>,
    /// Whether pages that are listed as free count as such pages, too.
    pub includes_free_pages: bool,
}

/// Values of a row, as `quote` has received them.
type SeenValues = Arc<Mutex<Vec<RecoveredValue>>>;

/// Callback that takes a statement and its parameters, the first for `?1`; `false` ends the
/// recovery.
type StatementHandler<'a> = dyn FnMut(&str, &[RecoveredValue]) -> bool + 'a;

/// Context of the extension's callback.
struct StatementSink<'a> {
    values: SeenValues,
    take: Box<StatementHandler<'a>>,
}

/// A running recovery.
pub struct DatabaseRecovery<'a> {
    handle: *mut RecoverHandle,
    /// Pointer from `Box::into_raw`, valid until this is dropped: the extension holds the address.
    sink: *mut StatementSink<'a>,
    /// The extension's own connection, which the extension closes with its last step.
    workspace: Option<Connection>,
    has_begun: bool,
    input: PhantomData<&'a Connection>,
}

thread_local! {
    /// State that is set while this thread's recovery takes its first step.
    static FIRST_STEP: RefCell<Option<FirstStep>> = const { RefCell::new(None) };
}

struct FirstStep {
    values: SeenValues,
    workspace: Option<Connection>,
    attached_count: u32,
}

impl<'a> DatabaseRecovery<'a> {
    /// Prepares the recovery of `input`'s main database. Each statement is passed to `take`.
    pub fn new(
        input: &'a Connection,
        options: RecoveryOptions<'_>,
        take: impl FnMut(&str, &[RecoveredValue]) -> bool + 'a,
    ) -> rusqlite::Result<Self> {
        let sink = StatementSink { values: SeenValues::default(), take: Box::new(take) };
        let sink = Box::into_raw(Box::new(sink));
        // SAFETY: the handle is valid while `input` is borrowed, which is as long as `Self` lives,
        // and this thread's alone; the sink lives until `drop` has ended the recovery; the name
        // ends in a NUL and is copied.
        let handle = unsafe {
            let (db, schema) = (input.handle(), c"main".as_ptr());
            sqlite3_recover_init_sql(db, schema, Some(take_statement), sink.cast())
        };
        let this = Self { handle, sink, workspace: None, has_begun: false, input: PhantomData };
        let mut includes_free_pages = c_int::from(options.includes_free_pages);
        let name = options.lost_and_found.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: the handle is new, or null, which the call reports as an error; the name is null
        // or ends in a NUL and is copied; the number is read during the call.
        unsafe {
            crate::check(sqlite3_recover_config(
                handle,
                CONFIG_LOST_AND_FOUND,
                name.cast_mut().cast(),
            ))?;
            let number = (&raw mut includes_free_pages).cast();
            crate::check(sqlite3_recover_config(handle, CONFIG_FREELIST_CORRUPT, number))?;
        }
        Ok(this)
    }

    /// Takes one step of the recovery. Returns `true` after the last one.
    ///
    /// After the first step, and until the last, [`Self::workspace`] can be queried.
    pub fn step(&mut self) -> rusqlite::Result<bool> {
        let code = if self.has_begun {
            // SAFETY: the handle is valid until `drop`, and only this thread uses it.
            unsafe { sqlite3_recover_step(self.handle) }
        } else {
            self.has_begun = true;
            self.first_step()?
        };
        match code {
            ffi::SQLITE_OK => Ok(false),
            ffi::SQLITE_DONE => {
                self.workspace = None;
                Ok(true)
            }
            code => Err(self.error(code)),
        }
    }

    /// Returns the connection on which the extension works: there `recovery.schema` is the schema
    /// that was found, and `getpage(N)` returns a page's bytes, without those that a cipher stores
    /// at its end.
    pub fn workspace(&self) -> Option<&Connection> {
        self.workspace.as_ref()
    }

    /// Takes the step that opens the workspace, and replaces `quote` there.
    fn first_step(&mut self) -> rusqlite::Result<c_int> {
        // SAFETY: the function has the right signature and is never unloaded; registering it again
        // has no effect.
        crate::check(unsafe { ffi::sqlite3_auto_extension(Some(set_up_workspace)) })?;
        // SAFETY: nothing else uses the sink between the steps.
        let values = Arc::clone(unsafe { &(*self.sink).values });
        FIRST_STEP.set(Some(FirstStep { values, workspace: None, attached_count: 0 }));
        // SAFETY: as in `step`.
        let code = unsafe { sqlite3_recover_step(self.handle) };
        self.workspace = FIRST_STEP.take().and_then(|step| step.workspace);
        Ok(code)
    }

    fn error(&self, code: c_int) -> rusqlite::Error {
        // SAFETY: the handle is valid; the text, if not null, lives until the next call.
        let message = unsafe {
            let text = sqlite3_recover_errmsg(self.handle);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), message)
    }
}

impl Drop for DatabaseRecovery<'_> {
    fn drop(&mut self) {
        // The workspace must be dropped before the extension closes it.
        self.workspace = None;
        // SAFETY: the handle is not used afterwards (null is allowed), and neither is the sink,
        // which came from a box, once the recovery has ended.
        unsafe {
            sqlite3_recover_finish(self.handle);
            drop(Box::from_raw(self.sink));
        }
    }
}

/// Passes a statement to the sink; the extension calls this for each one.
unsafe extern "C" fn take_statement(context: *mut c_void, sql: *const c_char) -> c_int {
    // SAFETY: the context is the sink of a recovery that is in `step`, where nothing else uses it;
    // the text is SQLite's and ends in a NUL.
    let (sink, sql) = unsafe { (&mut *context.cast::<StatementSink<'_>>(), CStr::from_ptr(sql)) };
    let values = std::mem::take(&mut *lock(&sink.values));
    if (sink.take)(&sql.to_string_lossy(), &values) { ffi::SQLITE_OK } else { ffi::SQLITE_ABORT }
}

/// Sets up a recovery's workspace. SQLite calls this for each connection that this process opens;
/// the first that a recovery opens in its first step is its workspace.
unsafe extern "C" fn set_up_workspace(
    db: *mut ffi::sqlite3,
    _message: *mut *mut c_char,
    _api: *const ffi::sqlite3_api_routines,
) -> c_int {
    FIRST_STEP.with_borrow_mut(|step| {
        let Some(step) = step.as_mut().filter(|step| step.workspace.is_none()) else {
            return ffi::SQLITE_OK;
        };
        // SAFETY: SQLite passes an open connection; it is closed after `workspace` is dropped,
        // which does not close it.
        let made = unsafe { Connection::from_handle(db) }.and_then(|workspace| {
            replace_quote(&workspace, Arc::clone(&step.values))?;
            workspace.collation_needed(stand_in_collation)?;
            Ok(workspace)
        });
        // SAFETY: as above; the function needs no data.
        unsafe { ffi::sqlite3_set_authorizer(db, Some(authorize), std::ptr::null_mut()) };
        match made {
            Ok(workspace) => {
                step.workspace = Some(workspace);
                ffi::SQLITE_OK
            }
            Err(_) => ffi::SQLITE_ERROR,
        }
    })
}

/// Allows a workspace to attach one file: the one in memory that the extension itself attaches
/// before it runs any SQL of the damaged file.
unsafe extern "C" fn authorize(
    _data: *mut c_void,
    action: c_int,
    _first: *const c_char,
    _second: *const c_char,
    _schema: *const c_char,
    _trigger: *const c_char,
) -> c_int {
    if action != ffi::SQLITE_ATTACH {
        return ffi::SQLITE_OK;
    }
    FIRST_STEP.with_borrow_mut(|step| match step {
        Some(step) if step.attached_count == 0 => {
            step.attached_count += 1;
            ffi::SQLITE_OK
        }
        _ => ffi::SQLITE_DENY,
    })
}

fn replace_quote(workspace: &Connection, values: SeenValues) -> rusqlite::Result<()> {
    workspace.create_scalar_function("quote", 1, FunctionFlags::SQLITE_UTF8, move |context| {
        let mut values = lock(&values);
        values.push(context.get_raw(0).into());
        Ok(format!("?{}", values.len()))
    })
}

/// Registers a collation that compares bytes, in place of one that only a file's own program has.
pub fn stand_in_collation(db: &Connection, name: &str) -> rusqlite::Result<()> {
    db.create_collation(name, |a: &str, b: &str| a.cmp(b))
}

fn lock(values: &Mutex<Vec<RecoveredValue>>) -> std::sync::MutexGuard<'_, Vec<RecoveredValue>> {
    values.lock().unwrap_or_else(PoisonError::into_inner)
}
