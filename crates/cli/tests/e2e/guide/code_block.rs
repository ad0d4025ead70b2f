//! The blocks of code of a Markdown document.

/// A block between two lines of three backticks.
pub(crate) struct CodeBlock<'a> {
    /// The word after the backticks, or an empty text.
    pub(crate) language: &'a str,
    /// The second word after the backticks: the block is the content of a file with this name.
    pub(crate) file_name: Option<&'a str>,
    /// The lines, without the indent of the backticks.
    pub(crate) lines: Vec<&'a str>,
}

impl<'a> CodeBlock<'a> {
    /// All blocks of a document, in their order.
    pub(crate) fn all(document: &'a str) -> Vec<Self> {
        let mut blocks = Vec::new();
        let mut lines = document.lines();
        while let Some(line) = lines.next() {
            let Some((indent, info)) = line.split_once("```") else { continue };
            if !indent.trim().is_empty() || info.contains('`') {
                continue;
            }
            let mut words = info.split_whitespace();
            let code = lines.by_ref().take_while(|line| line.trim() != "```");
            blocks.push(Self {
                language: words.next().unwrap_or_default(),
                file_name: words.next(),
                lines: code.map(|line| line.strip_prefix(indent).unwrap_or(line)).collect(),
            });
        }
        blocks
    }
}
