//! Programs that run until somebody stops them.

use super::called::{Called, behind_runners};

/// Scripts of a package that are servers or watchers by their names.
const SCRIPTS: [&str; 4] = ["dev", "start", "serve", "watch"];

/// Arguments with which a program only says something and ends.
const QUESTIONS: [&str; 4] = ["--help", "-h", "--version", "-v"];

/// Options of package managers that take a value, in front of what they do.
const VALUED: [&str; 11] =
    ["--prefix", "-C", "--cwd", "--dir", "--filter", "-F", "-w", "--workspace", "--mode", "-p", "--package"];

/// Options of `docker compose` that take a value, in front of what it does.
const COMPOSE_VALUED: [&str; 11] = [
    "-f",
    "--file",
    "-p",
    "--project-name",
    "--profile",
    "--env-file",
    "--project-directory",
    "--ansi",
    "-H",
    "--host",
    "--context",
];

/// Returns whether what is called runs until somebody stops it, and is not only asked for its help or version.
pub(super) fn is_server(called: &Called) -> bool {
    let is_asked = called.arguments.iter().any(|argument| QUESTIONS.contains(&argument.as_str()));
    !called.is_timed && !is_asked && serves(&called.name, &called.arguments)
}

fn serves(name: &str, arguments: &[String]) -> bool {
    let has = |options: &[&str]| arguments.iter().any(|argument| options.contains(&argument.as_str()));
    match name {
        "npm" | "pnpm" | "yarn" | "bun" => package_manager(&plain(arguments, &VALUED)),
        "npx" | "bunx" | "pnpx" | "uvx" | "pipx" | "poetry" | "uv" | "pipenv" => {
            let mut rest = plain(arguments, &VALUED);
            if rest.first().is_some_and(|word| word == "run") {
                rest.remove(0);
            }
            runs(rest)
        }
        "docker" | "podman" => match plain(arguments, &COMPOSE_VALUED).split_first() {
            Some((verb, rest)) => verb == "compose" && is_up(rest, arguments),
            None => false,
        },
        "docker-compose" | "podman-compose" => is_up(&plain(arguments, &COMPOSE_VALUED), arguments),
        "next" => arguments.first().is_some_and(|verb| verb == "dev"),
        "vite" => match plain(arguments, &[]).first().map(String::as_str) {
            Some("build") => has(&["--watch", "-w"]),
            Some("optimize") => false,
            _ => true,
        },
        "gunicorn" => !has(&["--check-config", "--print-config"]),
        "nodemon" | "uvicorn" => true,
        _ if is_python(name) => {
            let at = arguments.iter().position(|argument| argument == "-m" || !argument.starts_with('-'));
            let module = at.filter(|at| arguments[*at] == "-m").and_then(|at| arguments.get(at + 1));
            module.is_some_and(|module| matches!(module.as_str(), "http.server" | "uvicorn" | "gunicorn"))
        }
        _ => false,
    }
}

/// `python`, `python3`, `python3.12`.
fn is_python(name: &str) -> bool {
    name.strip_prefix("python")
        .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

fn package_manager(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["exec" | "dlx" | "x", rest @ ..] => runs(rest.iter().map(|word| (*word).to_owned()).collect()),
        ["run" | "run-script", script, ..]
        | ["workspace", _, "run", script, ..]
        | ["workspace", _, script, ..]
        | [script, ..] => SCRIPTS.contains(script),
        [] => false,
    }
}

fn runs(words: Vec<String>) -> bool {
    behind_runners(words).is_some_and(|called| serves(&called.name, &called.arguments))
}

/// `docker compose up`, unless it leaves the containers running and returns.
fn is_up(words: &[String], arguments: &[String]) -> bool {
    let returns = ["-d", "--detach", "--wait", "--no-start"];
    words.first().is_some_and(|verb| verb == "up")
        && !arguments.iter().any(|argument| returns.contains(&argument.as_str()))
}

/// Returns the arguments from the first on that is no option. Options in front of it may take a value.
fn plain(arguments: &[String], valued: &[&str]) -> Vec<String> {
    let mut at = 0;
    let mut words = Vec::new();
    while let Some(argument) = arguments.get(at) {
        at += 1;
        if words.is_empty() && valued.contains(&argument.as_str()) {
            at += 1;
        } else if !argument.starts_with('-') {
            words.push(argument.clone());
        } else if !words.is_empty() && valued.contains(&argument.as_str()) {
            at += 1;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> bool {
        let words = text.split_whitespace().map(str::to_owned).collect();
        is_server(&behind_runners(words).unwrap())
    }

    #[test]
    fn servers_and_watchers_are_known() {
        for text in [
            "npm run dev",
            "npm start",
            "npm --prefix web run serve",
            "pnpm --filter app dev",
            "yarn watch",
            "yarn workspace app dev",
            "bun run start -- --port 1",
            "npx vite",
            "npm exec vite",
            "docker compose up",
            "docker compose -f a.yml up --build",
            "docker-compose up web",
            "next dev",
            "vite",
            "vite preview",
            "vite build --watch",
            "nodemon app.js",
            "uvicorn app:app",
            "poetry run uvicorn app:app",
            "gunicorn app",
            "python -m http.server",
            "python3.12 -u -m http.server 8000",
            "python3 -m uvicorn app:app",
        ] {
            assert!(of(text), "{text}");
        }
    }

    #[test]
    fn what_ends_by_itself_is_none() {
        for text in [
            "npm run build",
            "npm install",
            "npm run dev -- --help",
            "npm -v",
            "yarn",
            "timeout 5 npm start",
            "docker compose up -d",
            "docker compose up --detach",
            "docker compose down",
            "docker run dev",
            "next build",
            "vite build",
            "vite --version",
            "uvicorn --help",
            "gunicorn --check-config app",
            "python3 -m json.tool",
            "python3 serve.py -m http.server",
            "pythonic -m http.server",
            "echo npm start",
            "npx tsc",
        ] {
            assert!(!of(text), "{text}");
        }
    }
}
