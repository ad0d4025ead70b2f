//! Tests that the rows of a file reach no account but the one that the file belongs to.

use protocol::{DeviceInfo, DeviceList, ErrorCode, RegisterDeviceRequest};
use replica::{AccountCheck, FileAccount, Replica, Result};

use crate::support::{MemoryServer, TestDevice};

const NOTES: &str = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT);";
const SERVER: &str = "http://server";
const OTHER: &str = "http://other";

fn request(login: &str) -> RegisterDeviceRequest {
    let (password, name) = ("sesame".to_owned(), "test".to_owned());
    RegisterDeviceRequest { login: login.to_owned(), password, name }
}

/// Creates a device of the account `ada` on [`SERVER`], with a row that was sent.
fn adas_device() -> (TestDevice, MemoryServer) {
    let mut server = MemoryServer::default();
    let mut device = TestDevice::tracked(NOTES, &mut server);
    device.write("INSERT INTO note VALUES (1, 'of ada')").unwrap();
    device.sync(&mut server);
    (device, server)
}

fn account(server: &str, login: &str) -> FileAccount {
    FileAccount { server: server.to_owned(), login: login.to_owned() }
}

#[track_caller]
fn check_refused<T: std::fmt::Debug>(result: Result<T>) {
    let refused = result.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AccountDiffers);
    let message = refused.to_string();
    assert!(message.ends_with("belongs to the account ada on http://server"), "{message}");
}

#[test]
fn another_account_is_refused_before_anything_is_sent() {
    let (device, mut server) = adas_device();
    let mut other = MemoryServer::default();
    for (address, login, check) in [
        (SERVER, "eve", AccountCheck::ServerAndLogin),
        (SERVER, "eve", AccountCheck::Login),
        (OTHER, "ada", AccountCheck::ServerAndLogin),
        (OTHER, "eve", AccountCheck::Login),
    ] {
        check_refused(device.replica().sign_in(&mut other, address, &request(login), check));
    }
    assert_eq!(other.clients, 0);
    assert_eq!(device.replica().account().unwrap(), Some(account(SERVER, "ada")));
    assert_eq!(device.sync(&mut server).sent_count, 0);
}

#[test]
fn a_file_that_signed_out_still_belongs_to_its_account() {
    let (device, mut server) = adas_device();
    device.replica().sign_out().unwrap();
    let eve = request("eve");
    let check = AccountCheck::ServerAndLogin;
    check_refused(device.replica().sign_in(&mut server, SERVER, &eve, check));
    // Servers ignore the case of a login, so this is no other account: nothing is sent again.
    device.replica().sign_in(&mut server, SERVER, &request("Ada"), check).unwrap();
    assert_eq!(device.sync(&mut server).sent_count, 0);
}

#[test]
fn an_app_may_choose_another_server_for_the_same_login() {
    let (device, _) = adas_device();
    let mut other = MemoryServer::default();
    let ada = request("ada");
    device.replica().sign_in(&mut other, OTHER, &ada, AccountCheck::Login).unwrap();
    let report = device.sync(&mut other);
    assert_eq!((report.sent_count, report.in_sync), (2, true));
    assert_eq!(device.replica().account().unwrap(), Some(account(OTHER, "ada")));
}

#[test]
fn an_untracked_file_forgets_its_account() {
    let (device, _) = adas_device();
    let replica = Replica::prepare(&device.path).unwrap();
    replica.untrack_all(false).unwrap();
    let replica = Replica::prepare(&device.path).unwrap();
    replica.track_all().unwrap();
    let mut other = MemoryServer::default();
    let check = AccountCheck::ServerAndLogin;
    device.replica().sign_in(&mut other, OTHER, &request("eve"), check).unwrap();
    assert!(device.sync(&mut other).in_sync);
}

#[test]
fn only_a_server_that_knows_the_device_is_followed() {
    let (device, _) = adas_device();
    let device_id = device.replica().remote().unwrap().unwrap().device_id;
    let info = |device_id: &str, current| DeviceInfo {
        device_id: device_id.to_owned(),
        current,
        ..DeviceInfo::default()
    };
    let follow = |devices: Vec<DeviceInfo>| {
        let list = DeviceList { devices, ..DeviceList::default() };
        device.replica().follow_server(OTHER, &list)
    };
    // Any program can answer with an empty body, or with a list of its own.
    for devices in [vec![], vec![info("0123456789abcdef", true)], vec![info(&device_id, false)]] {
        assert_eq!(follow(devices).unwrap_err().code(), ErrorCode::UnexpectedResponse);
    }
    assert_eq!(device.replica().account().unwrap(), Some(account(SERVER, "ada")));
    follow(vec![info("0123456789abcdef", false), info(&device_id, true)]).unwrap();
    assert_eq!(device.replica().account().unwrap(), Some(account(OTHER, "ada")));
}

#[test]
fn of_two_sign_ins_at_the_same_time_the_first_counts() {
    let device = TestDevice::new(NOTES);
    Replica::prepare(&device.path).unwrap().track_all().unwrap();
    let mut slow = MemoryServer::default();
    let path = device.path.clone();
    slow.meanwhile = Some(Box::new(move || {
        let replica = Replica::open(&path).unwrap();
        let (mut fast, check) = (MemoryServer::default(), AccountCheck::ServerAndLogin);
        replica.sign_in(&mut fast, SERVER, &request("ada"), check).unwrap();
    }));
    let check = AccountCheck::ServerAndLogin;
    check_refused(device.replica().sign_in(&mut slow, SERVER, &request("eve"), check));
    assert_eq!(device.replica().account().unwrap(), Some(account(SERVER, "ada")));
}
