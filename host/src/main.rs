//! The `hostel` program.

fn main() -> std::process::ExitCode {
    hostel::cli::main()
}
