//! A scenario of everything that writes to the accounts' file, on an empty data directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::{FaultRun, FaultScenario, RegisteredDevice, register};
use crate::fixture::{ADMIN, FaultedServer, PASSWORD};

pub(crate) struct AccountsScenario;

/// The changes to accounts that were acknowledged.
#[derive(Default)]
pub(crate) struct LeftAccounts {
    is_made: bool,
    /// The passwords of which one must be valid.
    passwords: BTreeSet<String>,
    tokens: BTreeMap<&'static str, RegisteredDevice>,
    is_revoked: bool,
    may_be_revoked: bool,
}

const OTHER_PASSWORD: &str = "another pass-phrase of ada's";

impl FaultScenario for AccountsScenario {
    type Left = LeftAccounts;

    const NAME: &'static str = "accounts";

    fn prepare(base: &Path) -> Self {
        std::fs::create_dir_all(base).unwrap();
        Self
    }

    fn run(&self, server: &FaultedServer, run: &mut FaultRun) -> LeftAccounts {
        let ledger = &mut run.ledger;
        let mut left = LeftAccounts::default();
        let account = json!({"login": "ada", "password": PASSWORD});
        let made = ledger.call(server, ("POST", "/v1/accounts"), ADMIN, &account);
        left.is_made = made.is_some_and(|answer| answer.status == 201);
        left.passwords.insert(PASSWORD.to_owned());
        if let Some(one) = register(ledger, server, "", PASSWORD, "one") {
            for name in ["two", "three"] {
                let other = register(ledger, server, &one.token, "", name);
                left.tokens.extend(other.map(|other| (name, other)));
            }
            ledger.push(server, &one.token, 20);
            left.tokens.insert("one", one);
        }
        if let (Some(one), Some(two)) = (left.tokens.get("one"), left.tokens.get("two")) {
            let path = format!("/v1/devices/{}", two.id);
            let revoked = ledger.call(server, ("DELETE", &path), &one.token, &Value::Null);
            left.is_revoked = revoked.is_some_and(|answer| answer.status == 204);
            left.may_be_revoked = true;
        }
        let change = json!({"login": "ada", "password": PASSWORD, "new_password": OTHER_PASSWORD});
        let changed = ledger.call(server, ("PUT", "/v1/accounts/password"), "", &change);
        left.passwords.insert(OTHER_PASSWORD.to_owned());
        if changed.is_some_and(|answer| answer.status == 204) {
            left.passwords.remove(PASSWORD);
        }
        if let Some(one) = left.tokens.get("one") {
            ledger.push(server, &one.token, 20);
        }
        left
    }

    fn is_back(&self, server: &FaultedServer, run: &mut FaultRun, left: &mut LeftAccounts) -> bool {
        let ledger = &mut run.ledger;
        let Some(one) = left.tokens.get("one") else {
            let account = json!({"login": "probe", "password": PASSWORD});
            let made = ledger.call(server, ("POST", "/v1/accounts"), ADMIN, &account);
            return made.is_some_and(|answer| [201, 409].contains(&answer.status));
        };
        ledger.push(server, &one.token, 1)
            && register(ledger, server, &one.token, "", "probe").is_some()
    }

    fn check(
        &self,
        server: &FaultedServer,
        run: &mut FaultRun,
        left: &LeftAccounts,
    ) -> Vec<String> {
        let ledger = &mut run.ledger;
        let mut wrong = Vec::new();
        for (name, device) in &left.tokens {
            let call = ("GET", "/v1/sync/delta?cursor=0");
            let status = ledger.call(server, call, &device.token, &Value::Null);
            let status = status.map(|answer| answer.status);
            let is_right = match *name {
                "two" if left.is_revoked => status == Some(401),
                "two" if left.may_be_revoked => [Some(200), Some(401)].contains(&status),
                _ => status == Some(200),
            };
            if !is_right {
                wrong.push(format!("DEVICE {name} gets {status:?}"));
            }
        }
        if left.is_made {
            let holds =
                |password: &&String| register(ledger, server, "", password, "afterwards").is_some();
            let count = left.passwords.iter().filter(holds).count();
            if count != 1 {
                wrong.push(format!("PASSWORDS: {count} of {} hold", left.passwords.len()));
            }
        }
        if let Some(one) = left.tokens.get("one") {
            wrong.extend(run.ledger.check_vault(server, &one.token));
        }
        wrong
    }
}
