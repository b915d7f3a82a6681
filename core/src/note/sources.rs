//! Which web addresses are worth a line under External sources: not localhost, CI or temporary ones
//! (notes.md "Sections").

/// Hosts (and everything below them) that serve nothing to another reader, or only for hours.
const PASSING_HOSTS: [&str; 28] = [
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home.arpa",
    "test",
    "invalid",
    "example",
    "example.com",
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "trycloudflare.com",
    "loca.lt",
    "serveo.net",
    "localhost.run",
    "gitpod.io",
    "app.github.dev",
    "transfer.sh",
    "tmpfiles.org",
    "file.io",
    "0x0.st",
    "circleci.com",
    "travis-ci.com",
    "travis-ci.org",
    "buildkite.com",
];

/// Parts of a path that name a run of a CI system.
const CI_PATHS: [&str; 7] = [
    "/actions/runs/",
    "/-/pipelines/",
    "/-/jobs/",
    "/_build/",
    "/job/",
    "/check-runs/",
    "/buildstatus/",
];

/// Keys of a query that grant access or expire.
const PASSING_KEYS: [&str; 9] = [
    "x-amz-signature",
    "x-goog-signature",
    "signature",
    "sig",
    "token",
    "access_token",
    "api_key",
    "apikey",
    "expires",
];

/// Whether another reader could open the address next year.
pub fn is_lasting(url: &str) -> bool {
    let lower = url.to_lowercase();
    let Some(rest) = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"))
    else {
        return false;
    };
    if url.len() > 500
        || url.chars().any(|c| c.is_whitespace() || c.is_control() || "<>\"`\\".contains(c))
    {
        return false;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return false;
    }
    is_lasting_host(authority)
        && !CI_PATHS.iter().any(|part| path.contains(part))
        && !has_passing_key(path)
}

fn is_lasting_host(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host,
        _ => authority,
    };
    let host = host.trim_end_matches('.');
    // Bare names are machines of a local network, bare numbers say nothing to a reader.
    let named = host.contains('.') && !host.starts_with('[');
    let numeric = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    let passing = PASSING_HOSTS.iter().any(|known| {
        host.strip_suffix(known).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
    });
    named && !numeric && !passing && !host.split('.').any(|label| matches!(label, "jenkins" | "ci"))
}

fn has_passing_key(path: &str) -> bool {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    query.split('&').any(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        PASSING_KEYS.contains(&key)
    })
}

#[cfg(test)]
mod tests {
    use super::is_lasting;

    #[test]
    fn public_pages_last() {
        for url in [
            "https://docs.rs/jiff",
            "http://man7.org/linux/man-pages/man2/link.2.html",
            "https://github.com/o/r/issues/1",
            "https://한국.kr/x?q=1#sig=2",
            "https://host.org:8443/a",
        ] {
            assert!(is_lasting(url), "{url}");
        }
    }

    #[test]
    fn local_ci_and_temporary_addresses_do_not() {
        for url in [
            "http://localhost:3000/x",
            "http://127.0.0.1/",
            "https://[::1]:80/",
            "http://192.168.1.4/a",
            "https://box.local",
            "http://buildhost/x",
            "https://github.com/o/r/actions/runs/1",
            "https://gitlab.com/g/p/-/pipelines/7",
            "https://app.circleci.com/pipelines/1",
            "https://ci.corp.org/job/x",
            "https://a1b2.ngrok-free.app/",
            "https://b.s3.amazonaws.com/k?X-Amz-Signature=aa",
            "https://h.org/?token=abc",
            "https://user:pw@h.org/",
            "file:///etc/passwd",
            "akb://v/doc/x.md",
            "https://h.org/a b",
            "https://h.org/`x`",
            "",
        ] {
            assert!(!is_lasting(url), "{url}");
        }
    }
}
