//! `waxlog completions`: what a shell needs to complete commands.

use std::io::Write;

use structopt::clap::{App, Shell};
use structopt::StructOpt;

use crate::failure::Failure;

/// Prints the completions of a shell.
#[derive(StructOpt)]
#[structopt(
    after_help = "EXAMPLE:\n    waxlog completions bash > ~/.local/share/bash-completion/completions/waxlog"
)]
pub(crate) struct Completions {
    /// bash, zsh or fish
    #[structopt(possible_values = &["bash", "zsh", "fish"])]
    shell: Shell,
    /// The name that the commands are called by: waxlog or buzz
    #[structopt(long, default_value = "waxlog", possible_values = &["waxlog", "buzz"])]
    name: String,
}

impl Completions {
    /// Writes the script; `parser` gives the parser under a name.
    pub(crate) fn run<'a>(
        &self,
        parser: impl Fn(&str) -> App<'a, 'a>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        // The generator panics when it cannot write.
        let mut script = Vec::new();
        parser(&self.name).gen_completions_to(self.name.clone(), self.shell, &mut script);
        Ok(out.write_all(&script)?)
    }
}
