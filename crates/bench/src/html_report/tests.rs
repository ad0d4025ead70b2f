use std::sync::LazyLock;

use super::sample;
use super::*;
use crate::confidence_interval::MedianDifference;
use crate::matrix;

/// HTML elements that have no end tag; every SVG element has one.
const VOID: [&str; 1] = ["meta"];

fn page() -> String {
    let settings = [ReportSetting::new("Durability", "Disk <fsync>")];
    render(&HtmlPage {
        title: "Transactions & \"competitors\"",
        lead: "Each figure is a <median>.",
        machine: &sample::machine(),
        command: "warren bench tps --rows 1000 --only 'a&b'",
        settings: &settings,
        configurations: &[],
        tables: &sample::tables(),
        matrices: &[],
        goals: &sample::goals(),
        notes: &["A figure of another machine is not ours: 1 < 2.".to_owned()],
    })
}

/// Returns the names of the elements in order, with their ends as `/name`.
fn elements(page: &str) -> Vec<&str> {
    let tags = page.split('<').skip(1).map(|rest| {
        let (tag, _) = rest.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "open quotes: {tag}");
        tag.split([' ', '\n']).next().expect("a name")
    });
    tags.filter(|name| *name != "!DOCTYPE").collect()
}

#[track_caller]
fn check_ends(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for element in elements(page) {
        match element.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if VOID.contains(&element) => {}
            None => open.push(element),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn every_element_ends_where_it_should() {
    check_ends(&page());
}

#[test]
fn every_text_is_escaped() {
    let page = page();
    for text in [
        "<title>Transactions &amp; &quot;competitors&quot;</title>",
        "Each figure is a &lt;median&gt;.",
        "<span>'a&amp;b'</span> </code>",
        "Disk &lt;fsync&gt;",
        "&lt;b&gt;through&lt;/b&gt; other stores &amp; a network",
        "a &lt;script&gt;alert('x')&lt;/script&gt; &amp; &quot;quotes&quot;",
        "not ours: 1 &lt; 2.",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!elements(&page).contains(&"script"));
}

#[test]
fn every_row_is_there_with_its_figures() {
    let page = page();
    for table in sample::tables() {
        let (_, section) = page.split_once(&format!("<section id=\"{}\"", table.name)).unwrap();
        let (section, _) = section.split_once("</section>").unwrap();
        let (_, section) = section.split_once("<table>").unwrap();
        let columns = format::columns(&table);
        for (index, row) in table.rows.iter().enumerate() {
            let name = html! { th scope="row" { (row.name) } }.into_string();
            let (_, cells) = section.split_once(name.trim_end_matches("</th>")).expect(&row.name);
            let (cells, _) = cells.split_once("</tr>").unwrap();
            for figure in columns.iter().map(|column| &column.cells[index]) {
                let figure = figure.as_ref();
                assert!(cells.contains(figure.map_or(NONE, |figure| &figure.value)), "{cells}");
                let range = figure.and_then(|figure| figure.range.as_deref());
                assert!(cells.contains(range.unwrap_or_default()), "{cells}");
            }
        }
    }
    assert!(page.contains("121,922") && page.contains("412 <small>398–420</small>"));
}

#[test]
fn what_was_found_stands_first_and_what_was_not_is_pale() {
    let difference = |ratio: f64| Some(MedianDifference::from_ratios(&[ratio; 9], 2));
    let mut tables = sample::tables();
    tables.truncate(1);
    for (row, ratio) in tables[0].rows.iter_mut().skip(1).zip([1.0, 1.5]) {
        row.difference = difference(ratio);
    }
    let page = render(&HtmlPage { tables: &tables, ..empty_page() });
    let (short, rest) = page.split_once("<main>").unwrap();
    assert!(short.contains("Compared with <b>bare SQLite, one thread</b>."), "{short}");
    assert!(short.contains("<small>no difference found</small>"), "{short}");
    assert!(short.contains("<a href=\"#transfers\">Transfers</a> faster by 50 %"), "{short}");
    assert_eq!(rest.matches("<g class=\"same\">").count(), 1);
    assert!(rest.contains("Pale: no difference found."));
}

#[test]
fn a_matrix_is_the_first_chart_and_has_every_verdict_in_words() {
    let (matrix, tables) = matrix::sample::matrix();
    let page = render(&HtmlPage { matrices: &[matrix], tables: &tables, ..empty_page() });
    check_ends(&page);
    let (before, rest) = page.split_once("<section class=\"matrix\" id=\"matrix-20\"").unwrap();
    assert!(!before.contains("<figure") && rest.contains("<figure"), "{before}");
    assert!(before.contains("<a href=\"#matrix-20\"><b>20 messages of 10 bytes</b></a>"));
    let (matrix, _) = rest.split_once("</section>").unwrap();
    for expected in [
        "<a href=\"#20-list\">select</a>",
        "<td>1,000/s <small>baseline</small></td>",
        "<td class=\"faster-2\"><span aria-hidden=\"true\">▲ </span>2.50×",
        "<span class=\"said\">, 2.5 times as fast</span>",
        "<td><span aria-hidden=\"true\">= </span>1.00×",
        "<span class=\"said\">, no difference found</span>",
        "<td class=\"few\"><span aria-hidden=\"true\">? </span>0.020× <small>50.0 ms</small>",
        "<span class=\"said\">, too few rounds for a verdict</span>",
        "<td>4.10 MB</td>",
        "<td class=\"idle\" colspan=\"4\">not measured: has no effect here</td>",
        "&lt;other&gt;",
    ] {
        assert!(matrix.contains(expected), "{expected}: {matrix}");
    }
}

#[test]
fn bars_of_too_few_rounds_are_hatched_and_say_so() {
    let (_, tables) = matrix::sample::matrix();
    let page = render(&HtmlPage { tables: &tables, ..empty_page() });
    check_ends(&page);
    assert_eq!(page.matches("<pattern id=\"hatch\"").count(), 1);
    assert_eq!(page.matches("url(").count(), page.matches("fill=\"url(#hatch)\"").count());
    let chart = |name: &str| {
        let (_, section) = page.split_once(&format!("<section id=\"{name}\"")).unwrap();
        section.split_once("</figure>").unwrap().0
    };
    let few = chart("20-setup");
    assert_eq!(few.matches("fill=\"url(#hatch)\"").count(), 1, "{few}");
    for expected in [
        "<g class=\"few\">",
        "too few rounds for a verdict</title>",
        ">too few rounds: </tspan>0.020×",
        " Hatched: too few rounds for a verdict.",
    ] {
        assert!(few.contains(expected), "{expected}: {few}");
    }
    for name in ["20-insert", "20-list"] {
        let enough = chart(name);
        assert!(!enough.contains("hatch") && !enough.contains("Hatched"), "{enough}");
    }
}

fn empty_page() -> HtmlPage<'static> {
    static MACHINE: LazyLock<MachineInfo> = LazyLock::new(sample::machine);
    HtmlPage {
        title: "Empty",
        lead: "",
        machine: &MACHINE,
        command: "",
        settings: &[],
        configurations: &[],
        tables: &[],
        matrices: &[],
        goals: &[],
        notes: &[],
    }
}

#[test]
fn goals_stand_before_the_figures() {
    let page = page();
    let (short, _) = page.split_once("<main>").unwrap();
    let goal = "<dt>transactions a second, at least 2 times the baseline</dt>";
    assert!(short.contains(goal), "{short}");
    let reached = "<a href=\"#transfers\">transfers 3.00 (2.90–3.10)</a> <b>met</b>";
    assert!(short.contains(reached), "{short}");
}

#[test]
fn curves_are_lines_and_the_rest_are_bars() {
    let page = page();
    assert_eq!(page.matches("<figure class=\"lines\">").count(), 1);
    assert_eq!(page.matches("<figure class=\"bars\">").count(), 3);
    assert_eq!(page.matches("<rect class=\"bar\"").count(), 3 + 4 + 1, "what never ran has no bar");
    assert_eq!(page.matches("<title>Disk, ").count(), 5);
    for axis in [">requests/s</text>", ">waiting</text>"] {
        assert_eq!(page.matches(axis).count(), 1, "{axis}");
    }
}

#[test]
fn the_page_needs_nothing_else() {
    let page = page();
    for word in ["://", "url(", "@import", "src=", "<link", "<script", "NaN", "inf%", "infem"] {
        assert!(!page.contains(word), "{word}");
    }
    let targets = page.split("href=\"").skip(1);
    for target in targets.map(|rest| rest.split('"').next().unwrap()) {
        let id = target.strip_prefix('#').expect("within the page");
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{target}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(page(), page());
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let tables = [ResultTable {
        name: "empty".to_owned(),
        unit: "transactions".into(),
        title: "Nothing".to_owned(),
        rows: Vec::new(),
    }];
    let page = render(&HtmlPage { tables: &tables, ..empty_page() });
    assert!(!page.contains("<figure") && !page.contains("<footer") && page.contains("Nothing"));
}
