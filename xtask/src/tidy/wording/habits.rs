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

/// The pattern, its exceptions (none if empty), and what to write instead.
const EVERYWHERE: &[(&str, &str, &str)] = &[
    (r"\banew\b", "", "again; from scratch; re-create"),
    (r"\b[Bb]eside\b", "", "next to; alongside; in addition to; compared with"),
    (
        r"\btold\b",
        r"\b(?:unless|cannot be|it was|it is) told\b|\btold (?:apart|from|otherwise|to|who|which|where|whether)\b",
        "reported; notified; shown",
    ),
    (
        r"\btells?\b",
        r"\btells? (?:\w+ ){0,3}(?:apart|from)\b|\btells? (?:all|every|each) |\bcan(?:not)? tell\b",
        "reports; shows; says; notifies",
    ),
    (
        r"\b(?:hears?|heard)\b",
        r"\b(?:hears?|heard) from\b|\bheard of\b",
        "receives; is notified of",
    ),
    (
        r"\b(?:is|are|was|were|be) said\b",
        r"\bmay be said\b|\b(?:is|are|was|were|be) said (?:about|to)\b",
        "is reported; is listed; the message says",
    ),
    (
        r"\b(?:stands|stood)\b|\b[Hh]ow [^.;,]{1,25} stand\b|\b(?:may|can|must|not|should) stand\b",
        r"\b(?:stands|stood) (?:in )?for\b",
        "is; the status of; appears",
    ),
    (
        r"\b(?:lies|lie|lay) (?:in|on|at|beside|below|under|there|apart|alone|around|outside|far|before)\b",
        r"\b(?:a|or) lie |\b(?:lies|lie|lay) \w+ (?:one side|with)\b",
        "is; is located; is stored",
    ),
    (
        r"\b(?:is|are|was|were) (?:not |still |already |only )?there\b",
        r"\b(?:is|are|was|were) (?:\w+ )?there (?:is|are|any|a|an|no|such)\b",
        "exists; is present; is missing",
    ),
    (
        r"\b(?:come|comes|came) to\b",
        r"\b(?:come|comes|came) to (?:be|fill|life)\b",
        "amounts to; results in; reaches",
    ),
    (r"\b(?:goes|go|gone|went) on\b", "", "continues; resumes"),
    (
        r"\b(?:takes?|taken|took|taking|gives?|given|gave|giving) (?:it |them |the [a-z]+ )?back\b",
        "",
        "rolls back; undoes; returns; releases",
    ),
    (r"\bput(?:s|ting)? (?:it |them |the [a-z]+ )?aside\b", "", "quarantined; kept as a copy"),
    (
        r"\bin the way of\b|\bstands? in the way\b|\b(?:nobody is|row) in the way\b",
        "",
        "blocks; prevents; conflicts with",
    ),
    (r"\b(?:let|lets|letting) (?:it |them |that |this )?be\b", "", "leave unchanged; ignore"),
    (r"\bmend(?:s|ed|ing)?\b", "", "fix; repair"),
    (r"\b(?:is|are|was|were|be|been|being|not) looked at\b", "", "checked; examined; read"),
    (
        r"\bso (?:many|much|few|long|large)\b",
        r"\bso (?:many|much|few|long|large) (?:as|that|more|so)\b",
        "this many; up to the limit; N",
    ),
    (r"\bof late\b|\blately\b", "", "recently"),
    (r"\bmeanwhile\b", r"[;:] meanwhile\b", "in the meantime; or leave it out"),
    (r"\bonce more\b", "", "again"),
    (
        r"\b(?:is|are|was|were|be) no [a-z]+",
        r"[Tt]here (?:is|are|was|were) no [a-z]+|\b(?:is|are|was|were|be) no (?:longer|more|such|need|reason|way|doubt|other|better|worse)\b",
        "is not a …",
    ),
    (r"\b[Nn]obody\b", "", "no one; no process; nothing; or the passive"),
    (
        r"\b[Ww]hoever [a-z]+",
        r"\b[Ww]hoever (?:can|has access|may|sends|sent|made|writes|had a|just|has just)\b",
        "the caller; the process that; any client that",
    ),
    (r"\bbut for\b", "", "except for; apart from"),
    (r"\b[Nn]othing of\b", "", "none of; no part of"),
    (r"\bof what\b", "", "of the …: name the thing"),
    (r"\bby (?:itself|themselves)\b", "", "automatically; on its own; alone"),
    (
        r"\b(?:stays?|stayed|keeps?|kept|left|leaves?|is|are|all|else|embedded|files|ones|everything|texts?|written) (?:\w+ )?as (?:it|they) (?:is|are|was|were)\b",
        "",
        "unchanged; verbatim",
    ),
    (r"\bas [^.,;:]{1,30} (?:has|have) it\b", "", "as in X; the way X does it"),
    (
        r",? and (?:it|they|he) (?:has|have) (?:them|it|one|none)\b",
        "",
        "say what is the case: the limit is reached",
    ),
    (r"\b(?:is|are|was|were) to [a-z]+", r"\b(?:is|are) to be sure\b", "should; must; will"),
    (
        r"\b(?:is|are|was|were) (?:the |a |an )?[A-Za-z`_]+[’']s(?: ?[.,;:)]|$| alone\b| to )",
        "",
        "belongs to; is up to; comes from",
    ),
];

/// Clauses as sentences; a question may begin like them.
const IN_SENTENCES: &[(&str, &str, &str)] = &[
    (r"(?:^|[.;:] )Who\b[^.;:?]*(?:[.;:]|$)", "", "a client that …; the process that …"),
    (r"(?:^|[.;:] )What\b[^.;:?]*(?:[.;:]|$)", "", "name the thing: the …, data that …"),
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
    let composed = [
        ((made.as_str(), not_made.as_str(), "create; creates; created"), Scope::Everywhere),
        ((r"^\W*\w\S*(?: \S+)?$", "", "a sentence that makes sense alone"), Scope::Summaries),
        ((bare_preposition.as_str(), "", "a noun first: “Size of …”"), Scope::Summaries),
    ];
    let all = everywhere.chain(in_sentences).chain(composed);
    // A boundary between ASCII words is found much faster than one between words of Unicode.
    let compile = |expression: &str| {
        let expression = expression.replace(r"\b", r"(?-u:\b)");
        Regex::new(&expression).expect("a constant expression")
    };
    let habits = all.map(|((pattern, except, instead), scope)| Habit {
        pattern: compile(pattern),
        except: (!except.is_empty()).then(|| compile(except)),
        instead,
        scope,
    });
    habits.collect()
}
