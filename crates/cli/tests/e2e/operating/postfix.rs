//! Runs the distribution's Postfix with the page's lines, in front of a server that receives mail.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use postgres_lab::ReservedPort;
use serde_json::json;
use tempfile::TempDir;

use super::{code_block, program, replaced};
use crate::mail::MailFixture;
use crate::mail_delivery::{subjects, with_address};
use crate::processes::{CommandOutput, ServeProcess, as_root, with_input};

const MAIL_PAGE: &str = include_str!("../../../../../docs/operating/mail.md");

/// The parts of Postfix that receive mail and deliver it, in the format of `master.cf`.
const SERVICES: &str = "
    pickup unix n - n 60 1 pickup
    cleanup unix n - n - 0 cleanup
    qmgr unix n - n 300 1 qmgr
    rewrite unix - - n - - trivial-rewrite
    bounce unix - - n - 0 bounce
    defer unix - - n - 0 bounce
    trace unix - - n - 0 bounce
    verify unix - - n - 1 verify
    flush unix n - n 1000? 0 flush
    proxymap unix - - n - - proxymap
    lmtp unix - - n - - lmtp
    error unix - - n - - error
    postlog unix-dgram n - n - 1 postlogd
    anvil unix - - n - 1 anvil
";

/// A running Postfix with a folder of its own, which is stopped on drop.
struct PostfixServer {
    folder: TempDir,
    port: ReservedPort,
}

impl PostfixServer {
    /// Starts Postfix with the page's lines, for a server that receives mail at this address.
    fn start(lmtp: &str) -> Self {
        let folder = TempDir::new().unwrap();
        // Postfix's processes have a user of their own.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let server = Self { folder, port: ReservedPort::new().unwrap() };
        let root = server.folder.path().display();
        let page = replaced(code_block(MAIL_PAGE, "## Postfix"), &[("127.0.0.1:2400", lmtp)]);
        // No client is trusted, so the page's check of recipients applies to the test's clients.
        let main = format!(
            "{page}
            compatibility_level = 3.6
            queue_directory = {root}/queue
            data_directory = {root}/data
            maillog_file = {root}/log
            maillog_file_prefixes = {root}
            inet_interfaces = 127.0.0.1
            inet_protocols = ipv4
            mynetworks = 127.0.0.9
            myhostname = mta.example.com
            mydestination =
            alias_maps =
            smtpd_peername_lookup = no\n"
        );
        let configuration = server.folder.path().join("configuration");
        fs::create_dir(&configuration).unwrap();
        fs::create_dir(server.folder.path().join("queue")).unwrap();
        // A line that begins with a space continues the one before it.
        let unindented =
            |text: &str| text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n") + "\n";
        fs::write(configuration.join("main.cf"), unindented(&main)).unwrap();
        let smtpd = format!("127.0.0.1:{} inet n - n - - smtpd", server.port.number());
        fs::write(configuration.join("master.cf"), unindented(&format!("{smtpd}{SERVICES}")))
            .unwrap();
        let started = server.control("start");
        assert!(started.status.success(), "{}{}", started.stderr, server.log());
        server
    }

    /// Runs `postfix …`, which only root may do.
    fn control(&self, command: &str) -> CommandOutput {
        let mut postfix = as_root(Path::new("/usr/sbin/postfix"));
        postfix.arg("-c").arg(self.folder.path().join("configuration")).arg(command);
        with_input(&mut postfix, "")
    }

    /// Sends a message by SMTP, and returns what the client wrote.
    fn send(&self, recipient: &str, subject: &str) -> CommandOutput {
        let address = format!("127.0.0.1:{}", self.port.number());
        let mut swaks = program("/usr/bin/swaks");
        swaks.args(["--server", &address, "--from", "bob@example.com", "--to", recipient]);
        swaks.args(["--header", &format!("Subject: {subject}"), "--body", ".\n..\nM\u{fc}sli\n"]);
        with_input(&mut swaks, "")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Waits until Postfix has logged a text.
    fn wait_for_log(&self, text: &str) {
        crate::file_modes::wait_until(text, || self.log().contains(text));
    }
}

impl Drop for PostfixServer {
    fn drop(&mut self) {
        self.control("stop");
    }
}

#[test]
fn postfix_delivers_refuses_unknown_recipients_and_keeps_mail_while_the_server_is_down() {
    let mail = with_address();
    let port = ReservedPort::new().unwrap();
    let lmtp = format!("127.0.0.1:{}", port.number());
    let serve = || ServeProcess::start(&mail.0.data, &["--lmtp", &lmtp]);
    let server = serve();
    let postfix = PostfixServer::start(&lmtp);

    postfix.send("ada@example.org", "first").succeeded();
    postfix.send("Ada+lists@Example.org", "second").succeeded();
    let refused = postfix.send("eve@example.org", "refused");
    assert!(refused.stdout.contains("550 5.1.1 <eve@example.org>"), "{}", refused.stdout);
    crate::file_modes::wait_until("two deliveries", || waiting_count(&mail) == 2);
    assert_eq!(subjects(&mail), ["first", "second"]);
    let text = mail.run(&["show", "1"])["text"].clone();
    assert_eq!(text, json!(".\r\n..\r\nM\u{fc}sli\r\n\r\n\r\n"));

    server.stop();
    postfix.send("ada@example.org", "third").succeeded();
    postfix.wait_for_log("status=deferred");
    let server = serve();
    postfix.control("flush").succeeded();
    crate::file_modes::wait_until("the third delivery", || waiting_count(&mail) == 1);
    assert_eq!(subjects(&mail), ["first", "second", "third"]);
    assert!(!postfix.log().contains("status=bounced"), "{}", postfix.log());
    server.stop();
}

/// Returns the number of deliveries that wait for the only account with mail.
fn waiting_count(mail: &MailFixture) -> u64 {
    crate::mail_delivery::spool(mail)["waiting"][0]["deliveries_count"].as_u64().unwrap_or(0)
}
