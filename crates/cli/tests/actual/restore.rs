//! A test of `warren actual-budget restore`: a budget that was deleted in an app is restored.

use serde_json::json;

use crate::operator::OperatorFixture;

#[test]
fn a_deleted_budget_is_brought_back_with_everything_in_it() {
    let operator = OperatorFixture::new();
    let mut ada = operator.client(&operator.warren, "ada");
    let place = ada.create("Home");
    ada.account("Bank");
    ada.import("Bank", 0, 10);
    ada.sync();
    let before = ada.state();
    let (code, _) = operator.refused(&["restore", &place.file]);
    assert_eq!(code, "budget_not_deleted");
    let (code, _) = operator.refused(&["restore", "Home"]);
    assert_eq!(code, "budget_not_found");

    ada.run(&json!({"do": "delete"}));
    assert_eq!(ada.files(), []);
    assert_eq!(operator.json(&["restore", "Home"])["file_id"], *place.file);
    let files = ada.files();
    assert_eq!((files.len(), &files[0].file, &*files[0].name), (1, &place.file, "Home"));
    let mut ben = operator.client(&operator.warren, "ben");
    assert_eq!(ben.open(&place, None), place);
    ben.state().check_equal(&before);
    ben.import("Bank", 10, 1);
    ben.sync();

    // If two budgets have the same name, the id selects one.
    ben.run(&json!({"do": "delete"}));
    let second = ada.create("Home");
    ada.run(&json!({"do": "delete"}));
    let (code, message) = operator.refused(&["restore", "Home"]);
    assert_eq!(code, "ambiguous_name");
    assert!([&place, &second].iter().all(|one| message.contains(&one.file)), "{message}");
    operator.json(&["restore", &place.file]);
    assert_eq!(ada.files()[0].file, place.file);
}
