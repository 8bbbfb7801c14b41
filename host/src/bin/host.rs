//! The `host` program: `hostel` under the name that its card gives it.

fn main() -> std::process::ExitCode {
    hostel::cli::main()
}
