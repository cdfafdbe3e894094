//! `waxlog keys`: the identity of this home, in a file that only its user can read.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde_json::json;
use structopt::StructOpt;
use waxlog_agent::config::{read_home, Environment};
use waxlog_nostr::{Keys, Secret};

use crate::failure::Failure;
use crate::home::HomeOption;

/// The file in the home that holds the secret key in hex.
pub(crate) const IDENTITY_FILE: &str = "identity";
const PRIVATE: u32 = 0o600;
/// The longest text that is read as a key, in bytes.
const MAX_KEY_BYTES: u64 = 1024;

/// Makes and shows your identity.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog keys new")]
pub(crate) enum KeysCommand {
    /// Makes a new identity and keeps it in the home.
    #[structopt(after_help = "EXAMPLE:\n    waxlog keys new")]
    New {
        #[structopt(flatten)]
        put: Put,
    },
    /// Shows the public key.
    #[structopt(after_help = "EXAMPLE:\n    waxlog keys show --json")]
    Show {
        #[structopt(flatten)]
        home: HomeOption,
        /// Shows the secret key too
        #[structopt(long)]
        secret: bool,
        /// Prints JSON
        #[structopt(long)]
        json: bool,
    },
    /// Keeps the secret key that stdin gives: 64 hex digits or nsec1...
    #[structopt(after_help = "EXAMPLE:\n    waxlog keys import < key-file")]
    Import {
        #[structopt(flatten)]
        put: Put,
    },
}

// What the commands have that write the file. (A doc comment here would become the help of those commands.)
#[derive(StructOpt)]
pub(crate) struct Put {
    #[structopt(flatten)]
    home: HomeOption,
    /// Replaces the identity that is there; without a copy of it, it is lost
    #[structopt(long)]
    replace: bool,
    /// Prints JSON
    #[structopt(long)]
    json: bool,
}

impl KeysCommand {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            KeysCommand::New { put } => put.keep(&Keys::generate(), out),
            KeysCommand::Import { put } => put.keep(&read_key(io::stdin().lock())?, out),
            KeysCommand::Show { home, secret, json } => {
                let file = home.folder()?.join(IDENTITY_FILE);
                let keys = read(&file)?.ok_or_else(|| {
                    let file = file.display();
                    Failure::Check(format!("there is no identity in {file}; `waxlog keys new` makes one"))
                })?;
                show(&keys, *secret, *json, out)
            }
        }
    }
}

impl Put {
    fn keep(&self, keys: &Keys, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.home.folder()?.join(IDENTITY_FILE);
        write(&file, keys, self.replace)?;
        show(keys, false, self.json, out)
    }
}

/// The identity that the home keeps, if any.
pub(crate) fn stored_identity() -> Result<Option<Keys>, Failure> {
    let home = read_home(&Environment::of_process()).map_err(|error| Failure::SetUp(error.to_string()))?;
    read(&home.join(IDENTITY_FILE))
}

/// The key that a file holds; none if there is no file.
pub(crate) fn read(file: &Path) -> Result<Option<Keys>, Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) => Secret::new(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io(format!("cannot read {}", file.display()), &error)),
    };
    let keys = Keys::parse(text.expose().trim());
    keys.map(Some).map_err(|error| Failure::SetUp(format!("{}: {error}", file.display())))
}

/// The key that a file holds; made there if there is no file, so that what it signs stays its own.
pub(crate) fn kept(file: &Path) -> Result<Keys, Failure> {
    if let Some(keys) = read(file)? {
        return Ok(keys);
    }
    let made = Keys::generate();
    write(file, &made, false)?;
    Ok(made)
}

fn read_key(from: impl Read) -> Result<Keys, Failure> {
    let mut text = String::new();
    from.take(MAX_KEY_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Failure::io("cannot read the key from stdin", &error))?;
    let text = Secret::new(text);
    Keys::parse(text.expose().trim()).map_err(|error| Failure::Check(format!("stdin: {error}")))
}

/// Puts the file in place whole, and never over another unless that is wanted.
pub(crate) fn write(file: &Path, keys: &Keys, replace: bool) -> Result<(), Failure> {
    let failed = |error: &io::Error| Failure::io(format!("cannot write {}", file.display()), error);
    let folder = file.parent().unwrap_or(Path::new("."));
    create_private(folder).map_err(|error| failed(&error))?;
    let mut draft = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(PRIVATE))
        .tempfile_in(folder)
        .map_err(|error| failed(&error))?;
    writeln!(draft, "{}", keys.secret_hex().expose()).map_err(|error| failed(&error))?;
    draft.as_file().sync_all().map_err(|error| failed(&error))?;
    let placed = match replace {
        true => draft.persist(file),
        false => draft.persist_noclobber(file),
    };
    placed.map(drop).map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Check(format!(
            "there is an identity in {} already; show it with `waxlog keys show`, or give --replace",
            file.display()
        )),
        _ => failed(&refused.error),
    })
}

fn create_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn show(keys: &Keys, secret: bool, as_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let public = keys.public_key();
    let mut rows = vec![("pubkey", public.to_hex()), ("npub", public.to_npub())];
    if secret {
        rows.push(("secret", keys.secret_hex().expose().clone()));
        rows.push(("nsec", keys.nsec().expose().clone()));
    }
    if as_json {
        let object: serde_json::Map<_, _> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        return Ok(writeln!(out, "{}", serde_json::Value::from(object))?);
    }
    for (name, value) in rows {
        writeln!(out, "{name:6}  {value}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_identity_is_kept_for_its_user_only_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/home").join(IDENTITY_FILE);
        assert!(read(&file).unwrap().is_none());
        let keys = Keys::generate();
        write(&file, &keys, false).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, PRIVATE);
        assert_eq!(read(&file).unwrap().unwrap().public_key(), keys.public_key());
    }

    #[test]
    fn an_identity_is_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(IDENTITY_FILE);
        let (first, second) = (Keys::generate(), Keys::generate());
        write(&file, &first, false).unwrap();
        assert!(matches!(write(&file, &second, false), Err(Failure::Check(_))));
        assert_eq!(read(&file).unwrap().unwrap().public_key(), first.public_key());
        write(&file, &second, true).unwrap();
        assert_eq!(read(&file).unwrap().unwrap().public_key(), second.public_key());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, PRIVATE);
    }

    #[test]
    fn the_secret_is_shown_on_request_only() {
        let keys = Keys::generate();
        let shown = |secret, json| {
            let mut out = Vec::new();
            show(&keys, secret, json, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        for json in [false, true] {
            assert!(shown(false, json).contains(&keys.public_key().to_hex()));
            assert!(!shown(false, json).contains(keys.secret_hex().expose()));
            assert!(!shown(false, json).contains("nsec"));
            assert!(shown(true, json).contains(keys.secret_hex().expose()));
        }
    }

    #[test]
    fn a_key_on_stdin_may_end_with_a_newline() {
        let keys = Keys::generate();
        let text = format!("{}\n", keys.nsec().expose());
        assert_eq!(read_key(text.as_bytes()).unwrap().public_key(), keys.public_key());
        let error = read_key("nsec1canary\n".as_bytes()).unwrap_err().to_string();
        assert!(!error.contains("canary"), "{error}");
    }
}
