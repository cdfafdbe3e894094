//! The help of the groups.

use std::process::Command;

use crate::stage::WAXLOG;

/// The groups and their commands.
const COMMANDS: [(&str, &[&str]); 11] = [
    ("mem", &["ls", "get", "hash", "set", "patch", "rm"]),
    ("repos", &["create", "get", "list", "bind", "protect"]),
    ("issues", &["create", "get", "list", "status"]),
    ("pr", &["open", "update", "get", "list", "status"]),
    ("patches", &["send", "get", "list", "status"]),
    ("emoji", &["list", "set", "rm", "export", "import"]),
    ("social", &["publish", "set-contacts", "event", "notes", "contacts", "set-list", "list"]),
    ("notes", &["set", "get", "ls", "rm"]),
    ("workflows", &["list", "get", "create", "update", "delete", "trigger", "runs", "approve"]),
    ("agents", &["draft-create", "draft-update", "archive", "unarchive", "archived"]),
    ("moderation", &["ban", "unban", "timeout", "untimeout", "resolve", "reports", "restricted", "audit"]),
];

fn help(arguments: &[&str]) -> String {
    let output = Command::new(WAXLOG).args(arguments).arg("--help").output().expect("runs");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn each_group_lists_its_commands_and_no_other() {
    for (group, commands) in COMMANDS {
        let text = help(&[group]);
        let (_, listed) = text.split_once("SUBCOMMANDS:\n").unwrap();
        let names = listed
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter_map(|line| line.split(' ').next());
        let mut names: Vec<_> = names.filter(|name| !name.is_empty() && *name != "waxlog").collect();
        let mut wanted = commands.to_vec();
        names.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{group}");
    }
}

#[test]
fn each_command_shows_an_example() {
    for (group, commands) in COMMANDS {
        for command in commands {
            let text = help(&[group, command]);
            let example = format!("EXAMPLE:\n    waxlog {group} {command}");
            let is_shown = text.contains(&example) || text.contains(&format!("| waxlog {group} {command}"));
            assert!(is_shown, "{group} {command}: {text}");
        }
    }
}
