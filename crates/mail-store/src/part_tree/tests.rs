use proptest::prelude::*;

use super::*;

/// Lists the parts of a message as `depth "header" "body"`.
fn outline(message: &str) -> Vec<(u8, &str, &str)> {
    let tree = PartTree::parse(message.as_bytes());
    let part = |part: &PartRange| {
        (part.depth, &message[part.header..part.body], &message[part.body..part.end])
    };
    tree.parts().iter().map(part).collect()
}

#[test]
fn a_message_without_structure_is_one_part() {
    assert_eq!(outline("A: b\r\n\r\ntext\r\n"), [(0, "A: b\r\n\r\n", "text\r\n")]);
    assert_eq!(outline("A: b\n\ntext"), [(0, "A: b\n\n", "text")]);
    assert_eq!(outline("A: b\r\n"), [(0, "A: b\r\n", "")]);
    assert_eq!(outline("\r\ntext"), [(0, "\r\n", "text")]);
    assert_eq!(outline(""), [(0, "", "")]);
}

#[test]
fn a_multipart_has_its_parts_without_preamble_and_epilogue() {
    let message = "Content-Type: multipart/mixed; boundary=x\r\n\r\npreamble\r\n--x\r\n\r\none\r\n\
                   --x \r\nA: b\r\n\r\n--xy\r\ntwo\r\n\r\n--x--\r\nepilogue\r\n--x\r\n";
    let body = &message[message.find("preamble").unwrap()..];
    let header = "Content-Type: multipart/mixed; boundary=x\r\n\r\n";
    assert_eq!(
        outline(message),
        [(0, header, body), (1, "\r\n", "one"), (1, "A: b\r\n\r\n", "--xy\r\ntwo\r\n")]
    );
}

#[test]
fn an_outer_boundary_ends_the_parts_inside() {
    let message = "Content-Type: multipart/mixed; boundary=a\n\n--a\n\
                   Content-Type: multipart/alternative; boundary=b\n\n\
                   --b\n\none\n--a\n\ntwo\n--a--\n";
    let found = outline(message);
    assert_eq!(found.iter().map(|part| part.0).collect::<Vec<_>>(), [0, 1, 2, 1]);
    assert_eq!((found[1].2, found[2].2, found[3].2), ("--b\n\none", "one", "two"));
}

#[test]
fn a_message_in_a_message_is_a_level_of_its_own() {
    let inner = "Subject: inner\r\n\r\ntext";
    let message = format!("Content-Type: message/rfc822\r\n\r\n{inner}");
    assert_eq!(
        outline(&message),
        [(0, "Content-Type: message/rfc822\r\n\r\n", inner), (1, "Subject: inner\r\n\r\n", "text")]
    );
    let encoded = "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\nQQ==";
    assert_eq!(outline(encoded).len(), 1);
    let digest = "Content-Type: multipart/digest; boundary=x\n\n--x\n\nSubject: a\n\nb\n--x--\n";
    assert_eq!(outline(digest)[1..], [(1, "\n", "Subject: a\n\nb"), (2, "Subject: a\n\n", "b")]);
}

#[test]
fn a_part_can_be_empty_and_a_header_can_end_at_a_boundary() {
    let message = "Content-Type: multipart/mixed; boundary=x\n\n--x\n--x\nA: b\n--x\n\n--x--\n";
    assert_eq!(outline(message)[1..], [(1, "", ""), (1, "A: b\n", ""), (1, "\n", "")]);
}

#[test]
fn the_limits_of_depth_and_count_hold() {
    let deep = "Content-Type: message/rfc822\n\n".repeat(100_000);
    let tree = PartTree::parse(deep.as_bytes());
    assert_eq!(tree.parts().len(), usize::from(PARTS_DEPTH_MAX) + 1);

    let wide =
        "Content-Type: multipart/mixed; boundary=x\n\n".to_owned() + &"--x\n\na\n".repeat(9_999);
    let tree = PartTree::parse(wide.as_bytes());
    assert_eq!(tree.parts().len(), PARTS_COUNT_MAX);
    assert_eq!(tree.parts().last().unwrap().end, wide.len());
}

#[test]
fn leaves_are_the_parts_without_parts() {
    let message = "Content-Type: multipart/mixed; boundary=x\n\n--x\n\
                   Content-Type: message/rfc822\n\n\nin\n--x\n\nb\n--x--\n";
    let tree = PartTree::parse(message.as_bytes());
    let leaves: Vec<&str> = tree.leaves().map(|leaf| &message[leaf.body..leaf.end]).collect();
    assert_eq!(leaves, ["in", "b"]);
}

const PIECES: &[&str] = &[
    "--x\n",
    "--x--\n",
    "--y\n",
    "--y--",
    "\n",
    "\r\n",
    "a",
    "--",
    "Content-Type: multipart/mixed; boundary=x\n",
    "Content-Type: multipart/digest; boundary=y\n",
    "Content-Type: message/rfc822\n",
];

proptest! {
    #[test]
    fn parts_nest_and_read_as_they_were_written(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60),
    ) {
        let message = pieces.concat();
        let tree = PartTree::parse(message.as_bytes());
        let mut above: Vec<PartRange> = Vec::new();
        for part in tree.parts() {
            above.truncate(usize::from(part.depth));
            prop_assert_eq!(above.len(), usize::from(part.depth));
            prop_assert!(part.header <= part.body && part.body <= part.end);
            if let Some(parent) = above.last() {
                prop_assert!(parent.body <= part.header && part.end <= parent.end);
            }
            above.push(*part);
        }
        let read = PartTree::from_bytes(&tree.to_bytes(), message.len()).unwrap();
        prop_assert_eq!(read, tree);
    }
}

#[test]
fn a_boundary_can_have_odd_characters() {
    for (parameter, boundary) in [
        ("\"a b\"", "a b"),
        ("\"a b  \"", "a b"),
        ("\"=_?:+'(),./=;\"", "=_?:+'(),./=;"),
        ("\"a\\\"b\"", "a\"b"),
        ("'x'", "'x'"),
        ("\"--\"", "--"),
        ("\"x--\"", "x--"),
        ("\u{e9}", "\u{e9}"),
        ("x (comment)", "x"),
        ("\"x\"; charset=y", "x"),
        ("x; boundary=y", "x"),
        ("%41", "%41"),
        ("X", "X"),
    ] {
        let header = format!("Content-Type: multipart/mixed; boundary={parameter}\n\n");
        let parts = format!("--{boundary}\n\none\n--{boundary} \n\ntwo\n--{boundary}--\n");
        let message = header.clone() + &parts;
        let expected = [(0, &*header, &*parts), (1, "\n", "one"), (1, "\n", "two")];
        assert_eq!(outline(&message), expected);
    }
}
