//! Errors as JavaScript has them: an `Error` with a `code`.

use js_sys::{Error, Reflect};
use protocol::ErrorCode;
use sqlite_wasm_vfs::sahpool::OpfsSAHError;
use wasm_bindgen::JsValue;

/// Why something was not done.
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
        // An object that was just made takes a member.
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
        let code = match &error {
            OpfsSAHError::NotSupported => ErrorCode::StorageUnavailable,
            OpfsSAHError::Opfs { message, .. } => opfs_code(message),
            _ => ErrorCode::StorageFailed,
        };
        Self::new(code, error.to_string())
    }
}

/// By the name of the browser's exception, which begins its message.
fn opfs_code(message: &str) -> ErrorCode {
    let has = |name| message.contains(name);
    if has("NoModificationAllowedError") || has("InvalidStateError") {
        // Another worker has the file, or had it a moment ago.
        ErrorCode::Busy
    } else if has("QuotaExceededError") {
        ErrorCode::DiskFull
    } else if has("SecurityError") || has("NotAllowedError") || has("TypeError") {
        ErrorCode::StorageUnavailable
    } else {
        ErrorCode::StorageFailed
    }
}
