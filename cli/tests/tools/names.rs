//! The names that lead to the binary: for whoever starts it, and for commands.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};

use crate::client::{Server, Stage, WAXLOG};

#[test]
fn under_the_name_of_what_it_replaces_it_is_the_server() {
    let stage = Stage::new();
    let link = stage.path("buzz-dev-mcp");
    symlink(WAXLOG, &link).expect("a link");
    // With a secret, so that it starts itself anew under the same name.
    let mut command = stage.command(&link);
    command.env("ANTHROPIC_API_KEY", "canary");
    let mut server = Server::start(command);
    assert_eq!(server.greet()["serverInfo"]["name"], "buzz-dev-mcp");
    assert_eq!(server.finish().0, Some(0));
}

#[test]
fn commands_find_all_names_in_one_folder_of_their_owner_before_all_else() {
    let stage = Stage::new();
    let mut server = stage.server();
    let command = "for n in buzz rg tree git-credential-nostr git-sign-nostr; do dirname $(command -v $n); done | sort -u";
    let folder = server.stdout(command);
    assert_eq!(folder.lines().count(), 1, "{folder}");
    assert_eq!(server.stdout(&format!("stat -c %a {folder}")), "700\n");
    assert!(server.stdout("echo $PATH").starts_with(&format!("{}:", folder.trim_end())));
    assert_eq!(
        server.stdout("buzz --help > /dev/null; bash -c 'command -v rg > /dev/null && echo inherited'"),
        "inherited\n"
    );
    let unknown = server.shell("buzz no-such-command");
    assert_ne!(unknown["exit_code"], 0);
}

#[test]
fn tree_and_rg_look_through_the_workspace() {
    let stage = Stage::new();
    for (name, content) in
        [(".gitignore", "skip\n"), ("skip", "alpha\n"), ("b.txt", "alpha\nbeta"), ("a.rs", "Alpha\n")]
    {
        stage.write(name, content);
    }
    let programs = stage.programs(&["bash", "sort"]);
    let mut server = stage.server_with(&[("PATH", &programs.to_string_lossy())]);
    assert_eq!(server.stdout("tree"), "./  [3]\na.rs  [1]\nb.txt  [2]\n");
    assert_eq!(server.stdout("rg -n -i ALPHA -g '*.*' | sort"), "a.rs:1:Alpha\nb.txt:1:alpha\n");
    assert_eq!(server.stdout("printf 'x\\ny\\n' | rg y"), "y\n", "what is piped in is searched");
    assert_eq!(server.stdout("rg zzz; echo $?; rg --no-such-flag x 2> /dev/null; echo $?"), "1\n2\n");
    assert_eq!(
        server.stdout("tree --bad 2> /dev/null; echo $?; tree nowhere 2> /dev/null; echo $?"),
        "2\n2\n"
    );
    let said = server.shell("rg --no-such-flag x; tree --bad");
    let said = said["stderr"].as_str().expect("text");
    assert!(
        said.contains("rg: unknown flag --no-such-flag") && said.contains("tree: unknown flag --bad"),
        "{said}"
    );
}

#[test]
fn a_ripgrep_that_is_installed_is_the_one_that_searches() {
    let stage = Stage::new();
    let programs = stage.programs(&["bash"]);
    let rg = programs.join("rg");
    fs::write(&rg, "#!/usr/bin/env bash\necho \"real: $*\"\nexit 7\n").expect("written");
    fs::set_permissions(&rg, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut server = stage.server_with(&[("PATH", &programs.to_string_lossy())]);
    let searched = server.shell("rg -x --any 'a b'");
    assert_eq!((&searched["stdout"], &searched["exit_code"]), (&"real: -x --any a b\n".into(), &7.into()));
}
