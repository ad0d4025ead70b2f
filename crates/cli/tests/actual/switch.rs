//! A test that replaces the server under the published apps by Warren, and back.

use crate::actual_server::ActualServer;
use crate::budget_client::{BudgetClient, BudgetLibrary};
use crate::import::published_server::PASSWORD;
use crate::import::{empty_warren, import};

#[test]
fn apps_go_on_with_warren_and_back_on_the_published_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut published = ActualServer::published();
    let address = published.address().to_owned();
    let sign_in = |name| {
        BudgetClient::sign_in(BudgetLibrary::Api, &address, PASSWORD, &folder.path().join(name))
    };
    let mut ada = sign_in("ada");
    let place = ada.create("Home");
    ada.account("Bank");
    ada.import("Bank", 0, 20);
    ada.sync();

    published.kill();
    // No server runs that could receive these.
    ada.import("Bank", 20, 5);
    let mut warren = empty_warren();
    import(&published.data(), &warren.data());
    warren.move_to(&published);
    warren.restart();
    // Ada has neither logged in again nor downloaded anything.
    ada.sync();
    let mut ben = sign_in("ben");
    ben.open(&place, None);
    let state = ben.state();
    state.check_equal(&ada.state());
    assert_eq!(state.imported("Bank"), (0..25).collect::<Vec<_>>());

    warren.kill();
    published.restart();
    // The old server lacks the last five transactions, and gets them from any app that has them.
    ada.sync();
    let mut cleo = sign_in("cleo");
    cleo.open(&place, None);
    cleo.state().check_equal(&state);
}
