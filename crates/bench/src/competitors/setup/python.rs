//! Installs competitors for Python: `pip install` into an environment for each.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::steps::{BUILD_TIME_MAX, MissingPolicy, VERSION_TIME_MAX, copy_files, run};
use super::{DriverProgram, InstallMarker};

/// The folder that the lab's drivers for Python share.
pub(super) const SHARED: &str = "python";
const REQUIREMENTS: &str = "requirements.txt";
/// A Python program that prints the version and path of its Python.
const IDENTITY: &str = "import sys; print(sys.version, sys.executable)";

/// Installs into an environment in a copy. Without requirements, the machine's Python is used.
pub(super) fn install(
    main: &str,
    folder: &Path,
    copy: &Path,
    missing: MissingPolicy,
) -> anyhow::Result<DriverProgram> {
    let identity = run(Command::new("python3").args(["-c", IDENTITY]), VERSION_TIME_MAX)
        .context("cannot get the version of python3")?;
    copy_files(folder, copy)?;
    let arguments = vec![copy.join(main)];
    if !copy.join(REQUIREMENTS).is_file() {
        return Ok(DriverProgram { program: "python3".into(), arguments });
    }
    let requirements = std::fs::read_to_string(copy.join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let environment = copy.join("environment");
    let program = environment.join("bin/python");
    // `--clear` empties the folder, so the marker of an old installation does not stay.
    let mark =
        InstallMarker::new(environment.join(".installed"), format!("{identity}{requirements}"));
    if !mark.is_set()? {
        missing.check()?;
        let mut create = Command::new("python3");
        create.args(["-m", "venv", "--clear"]).arg(&environment);
        run(&mut create, BUILD_TIME_MAX).context("python3 -m venv")?;
        let mut pip = Command::new(&program);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        run(pip.arg(copy.join(REQUIREMENTS)), BUILD_TIME_MAX).context("pip install")?;
        mark.set()?;
    }
    Ok(DriverProgram { program, arguments })
}
