//! Reports environment variables that look like settings but are not.
//!
//! They do not prevent a start: Kubernetes sets variables such as `WARREN_SERVICE_HOST` in each
//! process for a service of the name `warren`.

use std::env;
use std::ffi::OsString;

use clap::Command;

use super::definition::{PREFIX, name, variable};
use super::{config_file, definition};

/// Logs a warning for each variable that begins like a setting's but is ignored.
pub(crate) fn warn_of_unknown_variables() {
    for (unknown, meant) in unknown(&definition(), env::vars_os().map(|(variable, _)| variable)) {
        let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        tracing::warn!(
            variable = unknown,
            "unknown setting: this environment variable is ignored{hint}"
        );
    }
}

/// Returns the unknown variables, each with the one that was probably meant.
fn unknown(
    definition: &Command,
    variables: impl Iterator<Item = OsString>,
) -> Vec<(String, Option<String>)> {
    let names = variables.filter_map(|variable| variable.into_string().ok());
    let mut unknown: Vec<_> = names.filter(|name| is_unknown(definition, name)).collect();
    unknown.sort_unstable();
    let meant = |unknown: &String| {
        let text = unknown[PREFIX.len()..].to_lowercase();
        Some(variable(name(config_file::nearest(definition, &text)?)))
    };
    unknown.into_iter().map(|unknown| (unknown.clone(), meant(&unknown))).collect()
}

fn is_unknown(definition: &Command, found: &str) -> bool {
    let mut known = definition.get_arguments().map(|arg| variable(name(arg)));
    found.starts_with(PREFIX) && found != "WARREN_CONFIG" && known.all(|known| known != found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_misspelt_is_found_with_the_one_that_is_meant() {
        let variables = ["HOME", "WARREN_CONFIG", "WARREN_LISTEN", "WARREN_LISTN", "WARREN_ZZZ"];
        let variables = variables.map(OsString::from).into_iter();
        let found = unknown(&definition(), variables);
        let expected = [("WARREN_LISTN", Some("WARREN_LISTEN")), ("WARREN_ZZZ", None)];
        let expected =
            expected.map(|(unknown, meant)| (unknown.to_owned(), meant.map(str::to_owned)));
        assert_eq!(found, expected);
    }
}
