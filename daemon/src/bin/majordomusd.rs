//! The daemon. See `majordomusd --help`.

fn main() -> std::process::ExitCode {
    majordomus::daemon::main()
}
