//! `git-sign-nostr`: signs commits and tags and checks their signatures, called by git as it calls gpg.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::PublicKey;

use super::credential::{auth_tag, AUTH_TAG_VARIABLE};
use super::envelope::Envelope;
use super::key::{self, KeyError};

/// Largest object that is signed or checked, in bytes.
const OBJECT_MAX_BYTES: u64 = 100 * 1024 * 1024;
/// Longest signature that is read, in bytes.
const SIGNATURE_MAX_BYTES: u64 = 64 * 1024;
/// The key's name where a signature does not tell it.
const UNKNOWN_KEY: &str = "0000000000000000";
const SECONDS_PER_DAY: u32 = 86_400;

/// Why nothing was signed or checked.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// Neither of the two things that git asks for.
    #[error("usage: git-sign-nostr [--status-fd=N] -bsau KEY, or --verify FILE -")]
    Usage,
    /// There is no key to sign with.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The object is no commit or tag.
    #[error("the object has more than {OBJECT_MAX_BYTES} bytes, which is the limit")]
    TooLarge,
    /// A file or pipe failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The signature has no text form.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// What git asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// Where git reads what came of it.
    status_fd: Option<u32>,
    /// The key to sign with, as git's settings have it.
    sign_with: Option<String>,
    /// The file with the signature to check.
    verify: Option<PathBuf>,
}

/// Does what the arguments say, with the object on `input`. Gives whether it is well: a bad signature is none.
pub fn run(
    arguments: &[String],
    input: impl Read,
    mut output: impl Write,
    now: u64,
) -> Result<bool, SignError> {
    let asked = Asked::read(arguments);
    let mut status = Status::open(asked.status_fd);
    match (&asked.sign_with, &asked.verify) {
        (_, Some(signature)) => {
            let text = read_limited(std::fs::File::open(signature)?, SIGNATURE_MAX_BYTES)?;
            let verdict = verify(text.as_deref(), input)?;
            status.say(&verdict.lines())?;
            Ok(matches!(verdict, Verdict::Good { .. }))
        }
        (Some(key), None) => {
            let object = read_limited(input, OBJECT_MAX_BYTES)?.ok_or(SignError::TooLarge)?;
            let (text, lines) = sign(key, &object, u32::try_from(now).unwrap_or(u32::MAX))?;
            output.write_all(text.as_bytes())?;
            output.flush()?;
            status.say(&lines)?;
            Ok(true)
        }
        (None, None) => Err(SignError::Usage),
    }
}

impl Asked {
    /// Reads git's arguments. What is not known is passed over: git may come to say more.
    fn read(arguments: &[String]) -> Self {
        let mut asked = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--status-fd" => asked.status_fd = rest.next().and_then(|fd| fd.parse().ok()),
                "--verify" => asked.verify = rest.next().map(PathBuf::from),
                "-bsau" => asked.sign_with = Some(rest.next().cloned().unwrap_or_default()),
                other => {
                    if let Some(fd) = other.strip_prefix("--status-fd=") {
                        asked.status_fd = fd.parse().ok();
                    }
                }
            }
        }
        asked
    }
}

/// The signature, and what git is told.
fn sign(key: &str, object: &[u8], time: u32) -> Result<(String, String), SignError> {
    let keys = key::load(PublicKey::parse(key.trim()).ok())?;
    let owner = attestation(&keys.public_key());
    let envelope = Envelope::sign(&keys, object, time, owner.as_ref());
    let lines = format!("BEGIN_SIGNING\nSIG_CREATED D 8 1 00 {time} {}\n", envelope.pk);
    Ok((envelope.armored()?, lines))
}

/// The owner's attestation of `agent`. One that is not true would only spoil the signature.
fn attestation(agent: &PublicKey) -> Option<OwnerTag> {
    let tag = auth_tag()?;
    let checked = OwnerTag::from_tag(&tag).and_then(|tag| tag.verify(agent).map(|()| tag));
    if let Err(error) = &checked {
        eprintln!("git-sign-nostr: signing without {AUTH_TAG_VARIABLE}: {error}");
    }
    checked.ok()
}

/// What a signature is worth.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Good { signer: String, time: u32, is_own: bool },
    Bad { signer: String },
    Unreadable,
}

fn verify(text: Option<&[u8]>, object: impl Read) -> Result<Verdict, SignError> {
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    let Some(envelope) = text.and_then(Envelope::read) else { return Ok(Verdict::Unreadable) };
    let Some(object) = read_limited(object, OBJECT_MAX_BYTES)? else { return Ok(Verdict::Unreadable) };
    let signer = envelope.pk.clone();
    if !envelope.is_of(&object) {
        return Ok(Verdict::Bad { signer });
    }
    if let (Some(owner), Some(agent)) = (envelope.owner(), envelope.signer()) {
        match owner.verify(&agent) {
            Ok(()) => eprintln!("git-sign-nostr: the signer was attested by {}", owner.owner),
            Err(error) => eprintln!("git-sign-nostr: the owner's attestation does not hold: {error}"),
        }
    }
    let own = key::setting("user.signingkey")?.and_then(|key| PublicKey::parse(key.trim()).ok());
    Ok(Verdict::Good { is_own: own.is_some() && own == envelope.signer(), signer, time: envelope.t })
}

impl Verdict {
    fn lines(&self) -> String {
        match self {
            Verdict::Good { signer, time, is_own } => {
                let trust = if *is_own { "TRUST_FULLY" } else { "TRUST_UNDEFINED" };
                format!(
                    "NEWSIG\nGOODSIG {signer} {signer}\nVALIDSIG {signer} {} {time} 0 - - - - - {signer}\n\
                     {trust} 0 shell\n",
                    date(*time)
                )
            }
            Verdict::Bad { signer } => format!("NEWSIG\nBADSIG {signer} {signer}\n"),
            Verdict::Unreadable => format!("ERRSIG {UNKNOWN_KEY} 0 0 00 0 9\n"),
        }
    }
}

/// Where git reads what came of it.
enum Status {
    To(Box<dyn Write>),
    Nowhere,
}

impl Status {
    fn open(fd: Option<u32>) -> Self {
        match fd {
            None | Some(2) => Status::To(Box::new(io::stderr())),
            Some(1) => Status::To(Box::new(io::stdout())),
            Some(fd) => match OpenOptions::new().write(true).open(format!("/dev/fd/{fd}")) {
                Ok(file) => Status::To(Box::new(file)),
                Err(error) => {
                    eprintln!("git-sign-nostr: nothing can be said on descriptor {fd}: {error}");
                    Status::Nowhere
                }
            },
        }
    }

    fn say(&mut self, lines: &str) -> io::Result<()> {
        let Status::To(out) = self else { return Ok(()) };
        for line in lines.lines() {
            writeln!(out, "[GNUPG:] {line}")?;
        }
        out.flush()
    }
}

/// All of `input`, unless it is more than `limit` bytes.
fn read_limited(input: impl Read, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit))
}

/// The day of a time, in UTC, as `YYYY-MM-DD`.
fn date(seconds: u32) -> String {
    let (mut days, mut year) = (seconds / SECONDS_PER_DAY, 1970_u32);
    let is_leap =
        |year: u32| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u32::from(is_leap(year)) {
        days -= 365 + u32::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u32::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_arguments_are_understood_in_both_spellings() {
        let read =
            |words: &[&str]| Asked::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let signing = read(&["--status-fd=2", "-bsau", "key"]);
        assert_eq!(signing, Asked { status_fd: Some(2), sign_with: Some("key".to_owned()), verify: None });
        let checking = read(&["--keyid-format=long", "--status-fd", "1", "--verify", "/f", "-"]);
        assert_eq!(checking, Asked { status_fd: Some(1), sign_with: None, verify: Some("/f".into()) });
    }

    #[test]
    fn a_day_is_told_in_utc() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_700_000_000, "2023-11-14"),
            (u32::MAX, "2106-02-07"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }

    #[test]
    fn git_is_told_what_a_signature_is_worth() {
        let good = Verdict::Good { signer: "ab".to_owned(), time: 1_700_000_000, is_own: true };
        assert_eq!(
            good.lines(),
            "NEWSIG\nGOODSIG ab ab\nVALIDSIG ab 2023-11-14 1700000000 0 - - - - - ab\nTRUST_FULLY 0 shell\n"
        );
        let bad = Verdict::Bad { signer: "ab".to_owned() };
        assert_eq!(bad.lines(), "NEWSIG\nBADSIG ab ab\n");
        assert_eq!(verify(Some(b"no signature"), io::empty()).expect("judged"), Verdict::Unreadable);
        assert_eq!(Verdict::Unreadable.lines(), "ERRSIG 0000000000000000 0 0 00 0 9\n");
    }
}
