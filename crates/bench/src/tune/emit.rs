//! Formats settings as code: each framework has one file with its functions, and one row in a
//! table.
//!
//! A snippet opens `app.db`, or the path that its caller passes, and sets every connection's
//! PRAGMAs, in their order. Settings that only a new file or `VACUUM` accepts are in a comment.
//! Another snippet prints the settings of a live connection, for `warren doctor --settings`. A
//! test runs each snippet with its framework (`crates/cli/tests/e2e/emit.rs`).

mod better_sqlite3;
mod check;
mod django;
mod drift;
mod go;
mod jdbc;
mod python;
pub(crate) mod recipe;
mod rusqlite;
mod sqlalchemy;

pub use self::recipe::PragmaRecipe;

/// A framework for which settings are written as code.
#[derive(Debug)]
pub struct TargetFramework {
    /// The framework's name for `--emit`.
    pub name: &'static str,
    /// The characters that begin a comment.
    comment: &'static str,
    write: fn(&PragmaRecipe) -> String,
    /// Formats one PRAGMA like the framework's snippet does.
    pub line: fn(&str, &str) -> String,
    check: fn() -> String,
}

/// All frameworks, sorted by name.
pub const FRAMEWORKS: &[TargetFramework] = &[
    TargetFramework {
        name: "better-sqlite3",
        comment: "//",
        write: better_sqlite3::write,
        line: better_sqlite3::line,
        check: better_sqlite3::check,
    },
    TargetFramework {
        name: "django",
        comment: "#",
        write: django::write,
        line: django::line,
        check: django::check,
    },
    TargetFramework {
        name: "drift",
        comment: "//",
        write: drift::write,
        line: drift::line,
        check: drift::check,
    },
    TargetFramework {
        name: "go",
        comment: "//",
        write: go::write,
        line: go::line,
        check: go::check,
    },
    TargetFramework {
        name: "jdbc",
        comment: "//",
        write: jdbc::write,
        line: jdbc::line,
        check: jdbc::check,
    },
    TargetFramework {
        name: "python",
        comment: "#",
        write: python::write,
        line: python::line,
        check: python::check,
    },
    TargetFramework {
        name: "rusqlite",
        comment: "//",
        write: rusqlite::write,
        line: rusqlite::line,
        check: rusqlite::check,
    },
    TargetFramework {
        name: "sqlalchemy",
        comment: "#",
        write: sqlalchemy::write,
        line: sqlalchemy::line,
        check: sqlalchemy::check,
    },
];

const ONCE: &str = "Run once per file, not per connection, while no other program has it open:";

impl TargetFramework {
    /// Returns the framework of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        FRAMEWORKS.iter().find(|framework| framework.name == name)
    }

    /// Returns the snippet that prints the settings of a live connection.
    pub fn check(&self) -> String {
        check::explained(self.comment, &(self.check)())
    }

    /// Returns the snippet that applies the recipe.
    pub fn write(&self, recipe: &PragmaRecipe) -> String {
        let mut comments: Vec<String> = recipe.risk().map(str::to_owned).into_iter().collect();
        if !recipe.file_settings.is_empty() {
            let once = recipe.file_settings.iter();
            let once = once.map(|(name, value)| format!("PRAGMA {name} = {value};"));
            let once = once.collect::<Vec<_>>().join(" ");
            comments.push(ONCE.to_owned());
            comments
                .push(format!("  sqlite3 app.db \"PRAGMA journal_mode = DELETE; {once} VACUUM;\""));
        }
        let comments = comments.iter().map(|line| format!("{} {line}\n", self.comment));
        comments.collect::<String>() + &(self.write)(recipe)
    }
}

#[cfg(test)]
mod tests {
    use engine::Profile;

    use super::*;
    use crate::tune::emit::recipe::{CORRUPTS, LOSES};

    fn recipe() -> PragmaRecipe {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        PragmaRecipe {
            connection_settings: vec![pair("busy_timeout", "5000"), pair("journal_mode", "WAL")],
            file_settings: vec![pair("page_size", "8192")],
        }
    }

    #[test]
    fn every_snippet_has_every_setting_once_and_in_order() {
        for framework in FRAMEWORKS {
            let text = framework.write(&recipe());
            let command =
                "sqlite3 app.db \"PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; VACUUM;\"";
            let mut lines = text.lines();
            let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
            assert!(first.starts_with(framework.comment), "{first}");
            assert!(second.starts_with(framework.comment) && second.ends_with(command), "{second}");
            let code = lines.collect::<Vec<_>>().join("\n").to_lowercase();
            let places: Vec<usize> = ["busy_timeout", "journal_mode"]
                .iter()
                .map(|name| code.find(name).unwrap())
                .collect();
            assert!(places.is_sorted(), "{}: {code}", framework.name);
            assert!(code.replace('_', "").contains("5000") && code.contains("wal"), "{code}");
            assert!(!code.contains("page_size"), "{code}");
        }
    }

    #[test]
    fn a_line_of_a_snippet_is_in_it() {
        for framework in FRAMEWORKS {
            let line = (framework.line)("busy_timeout", "5000");
            assert!(framework.write(&recipe()).contains(&line), "{line}");
        }
    }

    #[test]
    fn a_snippet_that_prints_is_short_and_asks_for_everything() {
        for framework in FRAMEWORKS {
            let text = framework.check();
            let code = text.lines().filter(|line| !line.starts_with(framework.comment));
            assert!(code.count() <= 22, "{text}");
            assert!(text.lines().all(|line| line.len() <= 100), "{text}");
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let has = |name: &str| text.split(|c: char| !is_part(c)).any(|word| word == name);
            let asked = check::PRAGMAS.iter().flat_map(|names| names.split(' '));
            for name in asked.chain(["sqlite_version", "SQLITE_TMPDIR", "TMPDIR"]) {
                assert!(has(name), "{name}: {text}");
            }
            assert!(text.contains(&format!("framework={}", framework.name)), "{text}");
        }
    }

    #[test]
    fn a_snippet_says_what_a_power_loss_does() {
        let check = |name: &str, risk: Option<&str>| {
            let recipe = PragmaRecipe::from_profile(Profile::by_name(name).unwrap());
            assert_eq!(recipe.risk(), risk, "{name}");
            let text = TargetFramework::by_name("go").unwrap().write(&recipe);
            match risk {
                Some(risk) => assert!(text.starts_with(&format!("// {risk}\n")), "{text}"),
                None => assert!(!text.contains("power loss"), "{text}"),
            }
        };
        check("server", Some(LOSES));
        check("synchronous-off", Some(CORRUPTS));
        check("mail-production", None);
    }

    #[test]
    fn names_are_sorted_and_found() {
        assert!(FRAMEWORKS.is_sorted_by_key(|framework| framework.name));
        for framework in FRAMEWORKS {
            let found = TargetFramework::by_name(framework.name).unwrap();
            assert_eq!(found.name, framework.name);
        }
        assert!(TargetFramework::by_name("cobol").is_none());
    }

    #[test]
    fn a_profile_waits_for_locks_first_and_keeps_apart_what_a_file_keeps() {
        let recipe = PragmaRecipe::from_profile(Profile::SERVER);
        let settings = &recipe.connection_settings;
        assert_eq!(settings[0].0, "busy_timeout");
        assert_eq!(recipe.file_settings, [("auto_vacuum".to_owned(), "INCREMENTAL".to_owned())]);
        assert!(settings.iter().any(|(name, value)| name == "journal_mode" && value == "WAL"));
    }
}
