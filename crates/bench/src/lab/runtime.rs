//! The same configurations through other drivers: libraries of Node, in several releases, and of
//! Python.
//!
//! # Not here
//! - How a driver is built → `crate::rivals`. How a library carries out a plan → `bench/rivals`.

mod driver;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use indicatif::ProgressBar;
use serde::Serialize;

pub use self::driver::About;
use self::driver::Driver;
use crate::rivals::setup::{Kind, Missing};
use crate::rivals::{self, Absent, Found, Wanted};

/// Which drivers there are on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Drivers {
    /// They say who they are.
    pub present: Vec<About>,
    /// By name, with the reason.
    absent: Vec<Absent>,
}

/// Builds and installs the drivers in the folder `rivals`.
pub fn setup(rivals: &Path, bar: &ProgressBar) -> Drivers {
    let found = find(rivals, &rivals::target(rivals), Missing::Build, bar);
    let present = found.present.into_iter().map(|driver| driver.about).collect();
    Drivers { present, absent: found.absent }
}

fn find(rivals: &Path, target: &Path, missing: Missing, bar: &ProgressBar) -> Found<Driver> {
    let wanted = Wanted { kind: Kind::Lab, names: None, missing };
    rivals::find(wanted, rivals, target, bar, Driver::start)
}

impl fmt::Display for Drivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = self.present.iter().map(|about| {
            let ciphers = if about.ciphers.is_empty() { ", no encrypted files" } else { "" };
            format!("present: {about} (SQLite {}{ciphers})", about.sqlite)
        });
        let lines: Vec<String> = present.chain(self.absent.iter().map(Absent::note)).collect();
        f.write_str(&lines.join("\n"))
    }
}
