//! Files with secrets that others may read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

use crate::output::Printer;

/// Tells if others may read a file that a token or a phrase was just put into. Its mode is its
/// owner's business.
pub(crate) fn warn_if_readable_by_others(file: &Path, output: Printer) -> anyhow::Result<()> {
    const READ_BY_OTHERS: u32 = 0o044;
    let metadata = fs::metadata(file).with_context(|| file.display().to_string())?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & READ_BY_OTHERS != 0 {
        let file = file.display();
        output.line(format_args!(
            "warning: {file} contains secrets of this device and is readable by other users (mode \
             {mode:04o}); run `chmod 600 {file}`"
        ));
    }
    Ok(())
}
