//! Warns about files that contain secrets and that other users can read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

use crate::output::Printer;

/// Warns if other users can read a file into which a token or a recovery phrase was just written.
/// The command does not change its mode, because that is up to the owner.
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
