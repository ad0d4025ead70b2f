//! Groups the commands in `warren --help` by tasks.

use clap::Command;

/// The headings, and the names of the commands below each.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Sync a SQLite file",
        &[
            "track",
            "untrack",
            "sync",
            "clone",
            "status",
            "inspect",
            "conflicts",
            "history",
            "erase",
            "recovery-phrase",
            "device",
        ],
    ),
    ("Run a server", &["serve", "account", "backup", "restore", "storage", "actual-budget"]),
    ("Keep mail", &["mail"]),
    ("Work on any SQLite file", &["doctor", "recover", "vacuum", "tune", "bench"]),
    ("Set up the shell and scripts", &["completions", "man", "json-schema"]),
];

/// Replaces the list of commands in the help with one list per group.
pub(crate) fn group_commands(command: Command) -> Command {
    let width = GROUPS.iter().flat_map(|group| group.1).map(|name| name.len()).max().unwrap_or(0);
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        format!("  {literal}{name:width$}{literal:#}  {about}\n")
    };
    let group = |(heading, names): &(&str, &[&str])| {
        let lines: String = names.iter().map(line).collect();
        format!("{header}{heading}:{header:#}\n{lines}\n")
    };
    let groups: String = GROUPS.iter().map(group).collect();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::CliArgs;

    /// The maximum width of a summary next to the command's name, on a terminal of the usual width.
    const SUMMARY_CHARS_MAX: usize = 80;

    #[test]
    fn every_command_that_is_not_hidden_is_in_one_group() {
        let command = CliArgs::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.1).copied().collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn every_command_has_a_summary_of_one_line() {
        fn check(command: &Command) {
            let name = command.get_name();
            let about = command.get_about().unwrap_or_else(|| panic!("{name} has no summary"));
            let about = about.to_string();
            assert!(about.len() <= SUMMARY_CHARS_MAX, "{name}: {about}");
            command.get_subcommands().for_each(check);
        }
        CliArgs::command().get_subcommands().for_each(check);
    }

    #[test]
    fn every_argument_has_a_help_text() {
        fn check(command: &Command) {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                assert!(arg.get_help().is_some(), "{} {arg}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&CliArgs::command());
    }
}
