//! Defines the habits of unidiomatic English that `tidy` reports, each with plain English for it.

use std::sync::LazyLock;

use regex::Regex;

/// The texts that a habit is searched in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Everywhere,
    /// All texts except headings, which may be clauses.
    Sentences,
    /// The first paragraphs of doc comments.
    Summaries,
}

pub(super) struct Habit {
    pub(super) pattern: Regex,
    /// Matches that contain one of `pattern` make it good English.
    pub(super) except: Option<Regex>,
    pub(super) instead: &'static str,
    pub(super) scope: Scope,
}

/// Things that are created, not made.
const THINGS: &str = "(?i:accounts?|files?|folders?|director(?:y|ies)|tables?|vaults?|databases?|\
                      index(?:es)?|keys?|users?|budgets?|tokens?|sites?|cop(?:y|ies)|baselines?)";

const PREPOSITIONS: &str = "(?:Of|On|In|For|By|From|To|With|Without|As|At|After|Before|Below|\
                            Above|Between|Beside|Under|Into|Than|Or|And|Until|Since|Through|\
                            Among|Per|Where|When|So|Like)";

/// A pattern, its exceptions (none if empty), what to write instead, and an example.
type HabitRow = (&'static str, &'static str, &'static str, &'static str);

const EVERYWHERE: &[HabitRow] = &[
    (r"\banew\b", "", "again; from scratch; re-create", "The index is created anew."),
    (
        r"\b[Bb]eside\b",
        "",
        "next to; alongside; in addition to; compared with",
        "A file is beside it.",
    ),
    (
        r"\btold\b",
        r"\b(?:unless|cannot be|it was|it is) told\b|\btold (?:apart|from|otherwise|to|who|which|where|whether)\b",
        "reported; notified; shown",
        "The server is told of it.",
    ),
    (
        r"\btells?\b",
        r"\btells? (?:\w+ ){0,3}(?:apart|from)\b|\btells? (?:all|every|each) |\bcan(?:not)? tell\b",
        "reports; shows; says; notifies",
        "The command tells the user.",
    ),
    (
        r"\b(?:hears?|heard)\b",
        r"\b(?:hears?|heard) from\b|\bheard of\b",
        "receives; is notified of",
        "The caller hears of the limit.",
    ),
    (
        r"\b(?:is|are|was|were|be) said\b",
        r"\bmay be said\b|\b(?:is|are|was|were|be) said (?:about|to)\b",
        "is reported; is listed; the message says",
        "The reason is said below.",
    ),
    (
        r"\b(?:stands|stood)\b|\b[Hh]ow [^.;,]{1,25} stand\b|\b(?:may|can|must|not|should) stand\b",
        r"\b(?:stands|stood) (?:in )?for\b",
        "is; the status of; appears",
        "The row stands in the table.",
    ),
    (
        r"\b(?:lies|lie|lay) (?:in|on|at|beside|below|under|there|apart|alone|around|outside|far|before)\b",
        r"\b(?:a|or) lie |\b(?:lies|lie|lay) \w+ (?:one side|with)\b",
        "is; is located; is stored",
        "The file lies in a folder.",
    ),
    (
        r"\b(?:is|are|was|were) (?:not |still |already |only )?there\b",
        r"\b(?:is|are|was|were) (?:\w+ )?there (?:is|are|any|a|an|no|such)\b",
        "exists; is present; is missing",
        "The file is still there.",
    ),
    (
        r"\b(?:come|comes|came) to\b",
        r"\b(?:come|comes|came) to (?:be|fill|life)\b",
        "amounts to; results in; reaches",
        "It comes to 3 MB.",
    ),
    (r"\b(?:goes|go|gone|went) on\b", "", "continues; resumes", "The sync goes on."),
    (
        r"\b(?:takes?|taken|took|taking|gives?|given|gave|giving) (?:it |them |the [a-z]+ )?back\b",
        "",
        "rolls back; undoes; returns; releases",
        "It gives the lock back.",
    ),
    (
        r"\bput(?:s|ting)? (?:it |them |the [a-z]+ )?aside\b",
        "",
        "quarantined; kept as a copy",
        "The file is put aside.",
    ),
    (
        r"\bin the way of\b|\bstands? in the way\b|\b(?:nobody is|row) in the way\b",
        "",
        "blocks; prevents; conflicts with",
        "A row in the way of another.",
    ),
    (
        r"\b(?:let|lets|letting) (?:it |them |that |this )?be\b",
        "",
        "leave unchanged; ignore",
        "They let it be.",
    ),
    (r"\bmend(?:s|ed|ing)?\b", "", "fix; repair", "Warren mends the file."),
    (
        r"\b(?:is|are|was|were|be|been|being|not) looked at\b",
        "",
        "checked; examined; read",
        "The page is not looked at.",
    ),
    (
        r"\bso (?:many|much|few|long|large)\b",
        r"\bso (?:many|much|few|long|large) (?:as|that|more|so)\b",
        "this many; up to the limit; N",
        "It keeps so many rows.",
    ),
    (r"\bof late\b|\blately\b", "", "recently", "It changed of late."),
    (
        r"\bmeanwhile\b",
        r"[;:] meanwhile\b",
        "in the meantime; or leave it out",
        "Rows that came meanwhile.",
    ),
    (r"\bonce more\b", "", "again", "It syncs once more."),
    (
        r"\b(?:is|are|was|were|be) no [a-z]+",
        r"[Tt]here (?:is|are|was|were) no [a-z]+|\b(?:is|are|was|were|be) no (?:longer|more|such|need|reason|way|doubt|other|better|worse)\b",
        "is not a …",
        "That is no error.",
    ),
    (r"\b[Nn]obody\b", "", "no one; no process; nothing; or the passive", "The file is nobody's."),
    (
        r"\b[Ww]hoever [a-z]+",
        r"\b[Ww]hoever (?:can|has access|may|sends|sent|made|writes|had a|just|has just)\b",
        "the caller; the process that; any client that",
        "Whoever waits gets it.",
    ),
    (r"\bbut for\b", "", "except for; apart from", "All but for one."),
    (r"\b[Nn]othing of\b", "", "none of; no part of", "Nothing of it is kept."),
    (r"\bof what\b", "", "of the …: name the thing", "It is a list of what changed."),
    (r"\bby (?:itself|themselves)\b", "", "automatically; on its own; alone", "It ends by itself."),
    (
        r"\b(?:stays?|stayed|keeps?|kept|left|leaves?|is|are|all|else|embedded|files|ones|everything|texts?|written) (?:\w+ )?as (?:it|they) (?:is|are|was|were)\b",
        "",
        "unchanged; verbatim",
        "It stays as it is.",
    ),
    (
        r"\bas [^.,;:]{1,30} (?:has|have) it\b",
        "",
        "as in X; the way X does it",
        "The order is as SQL has it.",
    ),
    (
        r",? and (?:it|they|he) (?:has|have) (?:them|it|one|none)\b",
        "",
        "say what is the case: the limit is reached",
        "It counts to ten, and it has them.",
    ),
    (
        r"\b(?:is|are|was|were) to [a-z]+",
        r"\b(?:is|are) to be sure\b",
        "should; must; will",
        "The writer is to stop.",
    ),
    (
        r"\b(?:is|are|was|were) (?:the |a |an )?[A-Za-z`_]+[’']s(?: ?[.,;:)]|$| alone\b| to )",
        "",
        "belongs to; is up to; comes from",
        "The choice is the caller's.",
    ),
];

/// Clauses as sentences; a question may begin like them.
const IN_SENTENCES: &[HabitRow] = &[
    (
        r"(?:^|[.;:] )Who\b[^.;:?]*(?:[.;:]|$)",
        "",
        "a client that …; the process that …",
        "Who asks gets it.",
    ),
    (
        r"(?:^|[.;:] )What\b[^.;:?]*(?:[.;:]|$)",
        "",
        "name the thing: the …, data that …",
        "Ask first. What it says is shown.",
    ),
];

pub(super) static HABITS: LazyLock<Vec<Habit>> = LazyLock::new(all);

fn all() -> Vec<Habit> {
    let made = format!(
        r"\b(?:makes?|making|made) (?:an?|the|its|new|another|no|one|each) (?:new |empty |compact )?{THINGS}\b|\b{THINGS}(?: that)? (?:is|are|was|were|be) made\b"
    );
    let not_made = format!(
        r"\b(?:makes|made) (?:a|the) copy due\b|\b{THINGS}(?: that)? (?:is|are|was|were|be) made (?:of|up|from|by)\b"
    );
    let bare_preposition = format!(r"^{PREPOSITIONS}\b[^,;:.]*\.?$");
    let everywhere = EVERYWHERE.iter().map(|habit| (*habit, Scope::Everywhere));
    let in_sentences = IN_SENTENCES.iter().map(|habit| (*habit, Scope::Sentences));
    let made = (made.as_str(), not_made.as_str(), "create; created", "");
    let alone = "a sentence that makes sense alone";
    let short = (r"^\W*\w\S*(?: \S+)?$", "", alone, "");
    let noun = "a noun first: “Size of …”";
    let bare = (bare_preposition.as_str(), "", noun, "");
    let composed = [(made, Scope::Everywhere), (short, Scope::Summaries), (bare, Scope::Summaries)];
    let all = everywhere.chain(in_sentences).chain(composed);
    let habits = all.map(|((pattern, except, instead, _), scope)| Habit {
        pattern: compile(pattern),
        except: (!except.is_empty()).then(|| compile(except)),
        instead,
        scope,
    });
    habits.collect()
}

fn compile(expression: &str) -> Regex {
    // A boundary between ASCII words is found much faster than one between words of Unicode.
    let expression = expression.replace(r"\b", r"(?-u:\b)");
    Regex::new(&expression).expect("a constant expression")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_example_has_its_habit() {
        for (pattern, except, _, example) in EVERYWHERE.iter().chain(IN_SENTENCES) {
            assert!(compile(pattern).is_match(example), "{example}");
            assert!(except.is_empty() || !compile(except).is_match(example), "{example}");
        }
    }
}
