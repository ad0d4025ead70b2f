//! The words of an SQL text, for what SQLite tells in no other way.

/// The words of a statement that are no names in quotes, no texts and no comments.
pub fn words(sql: &str) -> Vec<&str> {
    let words = tokens(sql).into_iter();
    words
        .filter(|token| token.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$'))
        .collect()
}

/// Words, names in quotes, texts and comments.
pub fn tokens(sql: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = match first {
            '\'' | '"' | '`' => 1 + rest[1..].find(first).map_or(rest.len() - 1, |end| end + 1),
            '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// An identifier in SQL, in quotes.
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The module that answers for a virtual table, by the statement that made it: the word behind
/// USING. `None` for any other statement.
pub fn virtual_table_module(sql: &str) -> Option<&str> {
    let mut tokens = tokens(sql).into_iter().filter(|token| !is_blank(token));
    let is_virtual = tokens.next()?.eq_ignore_ascii_case("CREATE")
        && tokens.next()?.eq_ignore_ascii_case("VIRTUAL");
    let module = tokens.skip_while(|token| !token.eq_ignore_ascii_case("USING")).nth(1)?;
    is_virtual.then(|| unquote(module))
}

/// Whether a token is space or a comment.
pub fn is_blank(token: &str) -> bool {
    token.trim().is_empty() || token.starts_with("--") || token.starts_with("/*")
}

/// A token that may be a name, without its quotes.
pub fn unquote(token: &str) -> &str {
    token.trim_matches(['"', '`', '[', ']', '\''])
}
