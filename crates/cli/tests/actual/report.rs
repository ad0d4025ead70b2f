//! Reports differences to a person at a terminal: the expected values on the left, the found ones
//! on the right.

use std::fmt::Write as _;

use crate::scenario_player::ScenarioFailure;

/// The widths of the columns, in characters.
const PLACE_CHARS: usize = 30;
const VALUE_CHARS: usize = 56;
/// The number of common characters that are shown before the difference of two values.
const BEFORE_CHARS: usize = 12;
const REQUEST_CHARS_MAX: usize = 2 * VALUE_CHARS + PLACE_CHARS;

/// Reports all failures; the text is empty if there are none.
pub(crate) fn report(failures: &[ScenarioFailure]) -> String {
    let mut text = String::new();
    for failure in failures {
        let ScenarioFailure { scenario, step, request, differences } = failure;
        writeln!(text, "\n{scenario}: {step}").unwrap();
        writeln!(text, "  {}", cut(request, 0, REQUEST_CHARS_MAX)).unwrap();
        line(&mut text, "", "expected", "found");
        for difference in differences {
            let side = |value: &Option<String>| {
                value.clone().unwrap_or_else(|| "–".to_owned()).replace('\n', "⏎")
            };
            let (expected, found) = (side(&difference.expected), side(&difference.found));
            let start = common(&expected, &found).saturating_sub(BEFORE_CHARS);
            let fits = expected.chars().count().max(found.chars().count()) <= VALUE_CHARS;
            let start = if fits { 0 } else { start };
            let columns = (cut(&expected, start, VALUE_CHARS), cut(&found, start, VALUE_CHARS));
            line(&mut text, &difference.place, &columns.0, &columns.1);
        }
    }
    if !failures.is_empty() {
        writeln!(text, "\n{} requests were answered otherwise", failures.len()).unwrap();
    }
    text
}

fn line(text: &mut String, place: &str, expected: &str, found: &str) {
    // A place that is too long for its column gets a line of its own.
    let mut place = place;
    if place.chars().count() > PLACE_CHARS {
        writeln!(text, "    {place}").unwrap();
        place = "";
    }
    writeln!(text, "    {place:PLACE_CHARS$} {expected:VALUE_CHARS$} | {found}").unwrap();
}

/// Returns the length of the common prefix in characters.
fn common(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// Returns `chars` characters from `start` on, with a mark where others are left out.
fn cut(text: &str, start: usize, chars: usize) -> String {
    let left = if start > 0 { "…" } else { "" };
    let room = chars - left.chars().count();
    let rest: Vec<char> = text.chars().skip(start).collect();
    let (shown, right) = if rest.len() > room { (room - 1, "…") } else { (rest.len(), "") };
    format!("{left}{}{right}", rest[..shown].iter().collect::<String>())
}

#[test]
fn a_report_has_everything_side_by_side() {
    use crate::compare::ResponseDifference;

    let difference =
        |place: &str, expected: Option<&str>, found: Option<&str>| ResponseDifference {
            place: place.to_owned(),
            expected: expected.map(str::to_owned),
            found: found.map(str::to_owned),
        };
    let same = "s".repeat(100);
    let failure = |differences| ScenarioFailure {
        scenario: "account.json: login".to_owned(),
        step: "a wrong password".to_owned(),
        request: "POST /account/login".to_owned(),
        differences,
    };
    let failures = [
        failure(vec![
            difference("status", Some("400"), Some("200")),
            difference("text", None, Some("a\nb")),
        ]),
        failure(vec![difference(
            "message 2024-03-05T10:04:58.298Z-0001-691885d08c7db775",
            Some(&format!("{same}left")),
            Some(&format!("{same}right{same}")),
        )]),
    ];
    let text = report(&failures);
    let expected = format!(
        "\naccount.json: login: a wrong password\n  POST /account/login\n    {0:30} {1:56} | found\n    \
         {2:30} {3:56} | 200\n    {4:30} {5:56} | a⏎b\n\naccount.json: login: a wrong password\n  \
         POST /account/login\n    {0:30} {1:56} | found\n    message \
         2024-03-05T10:04:58.298Z-0001-691885d08c7db775\n    {0:30} {6:56} | …{7}right{8}…\n\n2 requests \
         were answered otherwise\n",
        "",
        "expected",
        "status",
        "400",
        "text",
        "–",
        "…ssssssssssssleft",
        "s".repeat(12),
        "s".repeat(37),
    );
    assert_eq!(text, expected);
    assert_eq!(report(&[]), "");
}
