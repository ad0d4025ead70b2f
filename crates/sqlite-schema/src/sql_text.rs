//! Splits SQL text into words, for facts that SQLite reports in no other way.

/// Returns the words of a statement, without quoted names, string literals and comments.
pub fn words(sql: &str) -> Vec<&str> {
    let words = tokens(sql).into_iter();
    words
        .filter(|token| token.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$'))
        .collect()
}

/// Splits SQL into words, quoted names, string literals, comments and the characters between them.
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

/// Quotes an identifier for SQL.
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the module of a virtual table, by the statement that created it: the word after USING.
/// Returns `None` for any other statement.
pub fn virtual_table_module(sql: &str) -> Option<&str> {
    let mut tokens = tokens(sql).into_iter().filter(|token| !is_blank(token));
    let is_virtual = tokens.next()?.eq_ignore_ascii_case("CREATE")
        && tokens.next()?.eq_ignore_ascii_case("VIRTUAL");
    let module = tokens.skip_while(|token| !token.eq_ignore_ascii_case("USING")).nth(1)?;
    is_virtual.then(|| unquote(module))
}

/// Checks whether a token is space or a comment.
pub fn is_blank(token: &str) -> bool {
    token.trim().is_empty() || token.starts_with("--") || token.starts_with("/*")
}

/// Removes the quotes from a token that may be a name.
pub fn unquote(token: &str) -> &str {
    token.trim_matches(['"', '`', '[', ']', '\''])
}
