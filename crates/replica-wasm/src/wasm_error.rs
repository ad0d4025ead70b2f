//! Converts errors to JavaScript's form: an `Error` with a `code`.

use js_sys::{Error, Reflect};
use protocol::ErrorCode;
use rsqlite_vfs::VfsErrorCode;
use sqlite_wasm_vfs::sahpool::OpfsSAHError;
use wasm_bindgen::JsValue;

/// An error with its code.
#[derive(Debug)]
pub struct WasmError {
    code: ErrorCode,
    message: String,
}

pub(crate) type Result<T, E = WasmError> = std::result::Result<T, E>;

impl WasmError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<WasmError> for JsValue {
    fn from(failure: WasmError) -> Self {
        let error = Error::new(&failure.message);
        // A new object always accepts a member.
        drop(Reflect::set(&error, &"code".into(), &failure.code.as_str().into()));
        error.into()
    }
}

impl From<replica::Error> for WasmError {
    fn from(error: replica::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<rusqlite::Error> for WasmError {
    fn from(error: rusqlite::Error) -> Self {
        replica::Error::from(error).into()
    }
}

impl From<OpfsSAHError> for WasmError {
    fn from(error: OpfsSAHError) -> Self {
        Self::new(opfs_code(&error), error.to_string())
    }
}

fn opfs_code(error: &OpfsSAHError) -> ErrorCode {
    match error {
        OpfsSAHError::NotSupported => ErrorCode::StorageUnavailable,
        OpfsSAHError::Opfs { value, .. } => exception_code(&exception_name(value)),
        OpfsSAHError::Backend(fault) if fault.code() == VfsErrorCode::Full => ErrorCode::DiskFull,
        // The first error is why the operation failed; the second only left a file behind.
        OpfsSAHError::Cleanup { error, .. } => opfs_code(error),
        _ => ErrorCode::StorageFailed,
    }
}

/// Returns the exception's name, or an empty text if the thrown value has none.
fn exception_name(thrown: &JsValue) -> String {
    Reflect::get(thrown, &"name".into()).ok().and_then(|name| name.as_string()).unwrap_or_default()
}

/// Returns the code for an exception of the browser's files, by the exception's name. The File
/// System standard (<https://fs.spec.whatwg.org>) defines which exception stands for which fault;
/// messages differ between browsers and versions.
fn exception_code(name: &str) -> ErrorCode {
    match name {
        // Another worker has the file, or had it a moment ago.
        "NoModificationAllowedError" | "InvalidStateError" => ErrorCode::Busy,
        "QuotaExceededError" => ErrorCode::DiskFull,
        "NotAllowedError" | "SecurityError" | "TypeError" => ErrorCode::StorageUnavailable,
        _ => ErrorCode::StorageFailed,
    }
}
