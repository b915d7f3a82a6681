//! The daemon's companion. See `majordomusctl --help`.

fn main() -> std::process::ExitCode {
    majordomus::ctl::main()
}
