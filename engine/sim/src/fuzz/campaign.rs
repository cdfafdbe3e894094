//! Runs the targets on stable Rust: the corpus first, then mutations of it for as long as there is time.

use std::fs;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::mutate::mutate;
use super::Target;
use crate::dice::Dice;

/// Inputs between two looks at the clock.
const ROUND_INPUTS: u64 = 50;

/// What came of one target.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Inputs that were tried.
    pub inputs: u64,
    /// The first input that broke a rule, where it was put, and what was broken.
    pub failure: Option<(PathBuf, String)>,
}

/// The folder that holds the corpus.
pub fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The corpus of a target, by name, so that a seed means the same on each machine.
pub fn corpus(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let mut files: Vec<PathBuf> = fs::read_dir(corpus_folder().join(target.name))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    files.iter().map(fs::read).collect()
}

/// Runs `target` over its corpus and then over mutations of it, from `seed`, for `time`.
pub fn run(target: &Target, seed: u64, time: Duration, failures: &Path) -> io::Result<Outcome> {
    let corpus = corpus(target)?;
    let mut inputs = 0;
    for input in &corpus {
        inputs += 1;
        if let Some(failure) = try_input(target, input, failures)? {
            return Ok(Outcome { inputs, failure: Some(failure) });
        }
    }
    let (begun, mut dice) = (Instant::now(), Dice::new(seed));
    while !corpus.is_empty() && begun.elapsed() < time {
        for _ in 0..ROUND_INPUTS {
            inputs += 1;
            let (input, other) = (&corpus[dice.size(0..corpus.len())], &corpus[dice.size(0..corpus.len())]);
            let input = mutate(input, other, &mut dice);
            if let Some(failure) = try_input(target, &input, failures)? {
                return Ok(Outcome { inputs, failure: Some(failure) });
            }
        }
    }
    Ok(Outcome { inputs, failure: None })
}

/// Runs `target` on one input; one that breaks a rule is kept as a file.
pub fn try_input(target: &Target, input: &[u8], failures: &Path) -> io::Result<Option<(PathBuf, String)>> {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) else { return Ok(None) };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    fs::create_dir_all(failures)?;
    let file = failures.join(format!("{}.input", target.name));
    fs::write(&file, input)?;
    Ok(Some((file, text.unwrap_or_else(|| "a panic without words".to_owned()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::TARGETS;

    #[test]
    fn every_target_has_a_corpus_and_passes_it() {
        for target in &TARGETS {
            let inputs = corpus(target).expect(target.name);
            assert!(inputs.len() > 2, "{}", target.name);
            inputs.iter().for_each(|input| (target.run)(input));
        }
    }

    #[test]
    fn an_input_that_breaks_a_target_is_kept() {
        let target = Target { name: "always", run: |_| panic!("always") };
        let folder = std::env::temp_dir().join(format!("waxlog-sim-{}", std::process::id()));
        let (file, why) = try_input(&target, b"x", &folder).expect("a folder").expect("a failure");
        assert_eq!((fs::read(file).expect("kept"), why.as_str()), (b"x".to_vec(), "always"));
        fs::remove_dir_all(folder).expect("removed");
    }
}
