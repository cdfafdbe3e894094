//! The waxlog binary.
use waxlog_agent::config::Environment;

fn main() {
    env_logger::Builder::new().filter_level(log::LevelFilter::Info).format_target(false).init();
    if let Err(error) = waxlog_agent::serve::serve(Environment::of_process(), env!("CARGO_PKG_VERSION")) {
        log::error!("{error}");
        std::process::exit(2);
    }
}
