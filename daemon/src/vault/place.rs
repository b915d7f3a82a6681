//! Where a note lies in the local vault: names are checked here, before any of them becomes a path.

use super::VaultError;

/// What the URIs of this vault begin with; the note's path follows.
const SCHEME: &str = "vault://local/";

/// Where a note lies in the vault; every part is a plain name.
#[derive(Clone, Debug)]
pub struct Place {
    /// Path of the directory, without slashes around it.
    pub collection: String,
    /// The file's name, with `.md`.
    pub file: String,
}

impl Place {
    /// Checks a collection and a file name. People's own file names may hold what our slugs do not.
    pub fn new(collection: &str, file: &str) -> Result<Self, VaultError> {
        let refused = |what: &str, reason| VaultError::Refused {
            what: what.escape_debug().to_string(),
            reason,
        };
        if collection.len() > 1024 || !collection.split('/').all(is_plain_name) {
            let reason = "a collection is a path of plain names such as `sessions/tasks`";
            return Err(refused(collection, reason));
        }
        let stem = file.strip_suffix(".md").filter(|_| is_plain_name(file));
        if stem.is_none_or(str::is_empty) {
            return Err(refused(file, "a note is a plain name that ends in `.md`"));
        }
        Ok(Self { collection: collection.to_owned(), file: file.to_owned() })
    }

    /// Takes a URI apart.
    pub fn from_uri(uri: &str) -> Result<Self, VaultError> {
        let path = uri.strip_prefix(SCHEME).and_then(|path| path.rsplit_once('/'));
        let Some((collection, file)) = path else {
            let reason = "a note's URI is `vault://local/{collection}/{slug}.md`";
            return Err(VaultError::Refused { what: uri.escape_debug().to_string(), reason });
        };
        Self::new(collection, file)
    }

    /// The path in the vault.
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection, self.file)
    }

    /// The name in the vault.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{}", self.path())
    }
}

/// One component of a path, visible and harmless.
fn is_plain_name(name: &str) -> bool {
    let fits = !name.is_empty() && name.len() <= 255 && !name.starts_with('.');
    fits && name.trim() == name
        && !name.contains(['/', '\\', ':'])
        && !name.chars().any(char::is_control)
}
