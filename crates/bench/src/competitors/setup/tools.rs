//! Checks which tools for building drivers of the lab are missing on a machine, and how to install
//! them.

use std::process::Command;

use serde::Serialize;
use utoipa::ToSchema;

use super::process;
use super::steps::VERSION_TIME_MAX;

/// A program, a command that shows whether it works, and its packages for each of [`MANAGERS`].
struct SetupTool {
    name: &'static str,
    probe: &'static [&'static str],
    packages: [&'static str; MANAGERS.len()],
}

const TOOLS: [SetupTool; 5] = [
    SetupTool { name: "npm", probe: &["npm", "--version"], packages: ["npm"; MANAGERS.len()] },
    SetupTool {
        name: "a C++ compiler",
        probe: &["c++", "--version"],
        packages: ["g++", "gcc-c++", "gcc", "g++"],
    },
    SetupTool { name: "make", probe: &["make", "--version"], packages: ["make"; MANAGERS.len()] },
    SetupTool {
        name: "python3",
        probe: &["python3", "--version"],
        packages: ["python3", "python3", "python", "python3"],
    },
    SetupTool {
        name: "Python's ensurepip",
        probe: &["python3", "-c", "import ensurepip"],
        packages: ["python3-venv", "python3-pip", "python", "python3"],
    },
];

/// Package managers, each with its command to install a package.
const MANAGERS: [(&str, &str); 4] = [
    ("apt-get", "apt-get install"),
    ("dnf", "dnf install"),
    ("pacman", "pacman -S"),
    ("apk", "apk add"),
];

/// Tools that are missing on this machine.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct MissingTools {
    /// The names of the missing tools.
    pub(crate) names: Vec<&'static str>,
    /// The command that installs the tools; null if the system's package manager is unknown.
    pub(crate) install: Option<String>,
}

impl MissingTools {
    /// Returns the tools that are missing on this machine, or `None` if none is.
    pub(crate) fn here() -> Option<Self> {
        let missing: Vec<&SetupTool> = TOOLS.iter().filter(|tool| !works(tool.probe)).collect();
        if missing.is_empty() {
            return None;
        }
        let manager = MANAGERS.iter().position(|(name, _)| works(&[name, "--version"]));
        let install = manager.map(|manager| {
            let mut packages: Vec<&str> =
                missing.iter().map(|tool| tool.packages[manager]).collect();
            packages.dedup();
            format!("{} {}", MANAGERS[manager].1, packages.join(" "))
        });
        Some(Self { names: missing.iter().map(|tool| tool.name).collect(), install })
    }

    /// Returns the text for people.
    pub(crate) fn text(&self) -> String {
        let names = self.names.join(", ");
        match &self.install {
            Some(install) => format!("missing tools: {names}; install them with `{install}`"),
            None => {
                format!("missing tools: {names}; install them with the system's package manager")
            }
        }
    }
}

fn works(program: &[&str]) -> bool {
    let [name, arguments @ ..] = program else { return false };
    let output = process::run(Command::new(name).args(arguments), "", VERSION_TIME_MAX);
    output.is_ok_and(|output| output.check().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_or_fails_does_not_work() {
        assert!(works(&["sh", "-c", "exit 0"]));
        assert!(!works(&["sh", "-c", "exit 1"]));
        assert!(!works(&["no-such-program-of-anybody"]));
    }

    #[test]
    fn what_is_missing_is_said_with_what_installs_it() {
        let mut missing = MissingTools {
            names: vec!["npm", "make"],
            install: Some("apt-get install npm make".to_owned()),
        };
        let expected = "missing tools: npm, make; install them with `apt-get install npm make`";
        assert_eq!(missing.text(), expected);
        missing.install = None;
        assert!(missing.text().ends_with("install them with the system's package manager"));
    }
}
