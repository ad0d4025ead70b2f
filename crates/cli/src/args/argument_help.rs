//! Converts the help of an argument to Markdown, for the documents that are generated from the
//! definitions.

use clap::Arg;

/// The help text of an argument, and its default if the text describes it in words.
pub(crate) struct ArgumentHelp {
    /// The text: one paragraph that ends with a period. Only pairs of backticks are markup.
    pub(crate) text: String,
    /// A default that depends on something: "10000, or fewer if the open-file limit is low".
    pub(crate) default_in_words: Option<String>,
}

impl ArgumentHelp {
    pub(crate) fn from_arg(arg: &Arg) -> Self {
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, default) =
            match help.strip_suffix(']').and_then(|help| help.rsplit_once(" [default: ")) {
                Some((text, default)) => (text, Some(default.to_owned())),
                None => (help.as_str(), None),
            };
        let text = escape_markdown(text.trim_end_matches('.')) + ".";
        Self { text, default_in_words: default }
    }
}

/// Returns the default values of an argument as code, with a separator; `None` if there are none.
pub(crate) fn default_values(arg: &Arg, separator: &str) -> Option<String> {
    let values = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let values: Vec<_> = values.collect();
    (!values.is_empty()).then(|| format!("`{}`", values.join(separator)))
}

/// Escapes Markdown: only pairs of backticks keep their meaning.
pub(crate) fn escape_markdown(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| {
        let is_code = index % 2 == 1;
        if is_code { part.to_owned() } else { part.replace('<', "\\<").replace('*', "\\*") }
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(help: &'static str, text: &str, default: Option<&str>) {
        let help = ArgumentHelp::from_arg(&Arg::new("x").help(help));
        assert_eq!((help.text.as_str(), help.default_in_words.as_deref()), (text, default));
    }

    #[test]
    fn a_help_text_is_a_sentence_without_markup() {
        check("As in <em>, `<b>` and `*`.", "As in \\<em>, `<b>` and `*`.", None);
        check("Size [default: twice\nthe other]", "Size.", Some("twice the other"));
    }

    #[test]
    fn default_values_are_code() {
        let arg = Arg::new("x").default_values(["1000", "20000"]);
        assert_eq!(default_values(&arg, " ").as_deref(), Some("`1000 20000`"));
        assert_eq!(default_values(&Arg::new("x"), " "), None);
    }
}
