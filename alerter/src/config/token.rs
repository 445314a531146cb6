//! Tokens of the API: a file for each, compared in constant time.

use std::path::{Path, PathBuf};

use marks::host::HostPatterns;
use secrecy::{ExposeSecret as _, SecretSlice};
use sha2::{Digest as _, Sha256};

use site::{must_be_absolute, read_private};

/// A shorter token could be guessed.
const SHORTEST: usize = 32;

/// The digest of a token.
pub type Digest = [u8; 32];

/// Somebody who may use the API. It holds no secret, only the place of the secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// Their name in the journal.
    pub name: String,
    /// `token-file`: its one line is the token.
    pub file: PathBuf,
    /// `trust-marks`: whether their report alone makes a mark where there is no cluster.
    pub trust_marks: bool,
    /// `routes`: those whose marks they may confirm or refuse; none where it is absent.
    pub routes: Vec<String>,
    /// `hosts`: those that they may report as failed or as back; none where it is absent.
    pub hosts: Option<HostPatterns>,
}

impl Token {
    /// Reads a token's file: one line of at least 32 printable characters without a blank, which only its owner can read.
    ///
    /// # Errors
    /// One sentence, without anything that stands in the file.
    pub fn read(file: &Path) -> Result<Digest, String> {
        must_be_absolute(file)?;
        let bytes = SecretSlice::from(read_private(file)?);
        let token = bytes.expose_secret().trim_ascii();
        let is_word = token.iter().all(u8::is_ascii_graphic);
        match token.len() >= SHORTEST && is_word {
            true => Ok(digest(token)),
            false => Err(format!(
                "the token must be one line of at least {SHORTEST} printable ASCII characters, without a blank"
            )),
        }
    }

    /// Whether this is the token that the file has now: one that was replaced or removed counts no more.
    ///
    /// # Errors
    /// As [`Token::read`].
    fn is(&self, given: &Digest) -> Result<bool, String> {
        Ok(is_same(&Self::read(&self.file)?, given))
    }
}

/// Whose token was given, and which files cannot be used, one sentence each. All are compared, so that the time shows nothing.
pub(crate) fn whose<'t>(tokens: &'t [Token], given: &[u8]) -> (Option<&'t Token>, Vec<String>) {
    let (given, mut found, mut unusable) = (digest(given), None, Vec::new());
    for token in tokens {
        match token.is(&given) {
            Ok(true) => found = Some(token),
            Ok(false) => {}
            Err(why) => unusable.push(format!("the token of {} cannot be used: {why}", token.name)),
        }
    }
    (found, unusable)
}

fn digest(token: &[u8]) -> Digest {
    Sha256::digest(token).into()
}

/// Compares every byte, however early two differ.
fn is_same(one: &Digest, other: &Digest) -> bool {
    one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const ONE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "0123456789abcdef0123456789abcdeF";

    fn write(file: &Path, text: &str, mode: u32) {
        let _not_there_yet = fs::remove_file(file);
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_token_is_one_long_word_that_only_its_owner_can_read() {
        let room = tempfile::tempdir().unwrap();
        let file = room.path().join("token");
        for (text, mode, good) in [
            (ONE, 0o600, true),
            ("0123456789abcdef0123456789abcdef\n", 0o400, true),
            (ONE, 0o640, false),
            (ONE, 0o604, false),
            (&ONE[1..], 0o600, false),
            ("", 0o600, false),
            ("0123456789abcdef 0123456789abcdef", 0o600, false),
            ("0123456789abcdef\n0123456789abcdef", 0o600, false),
        ] {
            write(&file, text, mode);
            let read = Token::read(&file);
            assert_eq!(read.is_ok(), good, "{text} {mode:o}");
            assert!(!read.is_err_and(|why| why.contains("0123")), "nothing of it is said");
        }
        assert!(Token::read(Path::new("token")).is_err());
    }

    /// What stands in the file now counts: a token that was replaced, or taken away, opens nothing any more.
    #[test]
    fn a_token_is_what_its_file_says_now() {
        let room = tempfile::tempdir().unwrap();
        let token =
            |name: &str| Token { name: name.into(), file: room.path().join(name), ..Token::default() };
        let tokens = [token("one"), token("other")];
        for (token, text) in tokens.iter().zip([ONE, OTHER]) {
            write(&token.file, text, 0o600);
        }
        let name = |given: &str| whose(&tokens, given.as_bytes()).0.map(|token| token.name.as_str());
        assert_eq!(
            [name(ONE), name(OTHER), name(""), name(&ONE[1..])],
            [Some("one"), Some("other"), None, None]
        );
        write(&tokens[0].file, &"x".repeat(40), 0o600);
        assert_eq!([name(ONE), name(&"x".repeat(40))], [None, Some("one")]);
        fs::remove_file(&tokens[0].file).unwrap();
        assert_eq!([name(&"x".repeat(40)), name(OTHER)], [None, Some("other")]);
        assert_eq!(whose(&tokens, b"").1.len(), 1);
    }

    /// The broken variant stops at the first byte that differs, or compares none.
    #[test]
    fn a_difference_anywhere_counts() {
        let one = digest(b"x");
        assert!(is_same(&one, &one));
        for at in 0..one.len() {
            let mut other = one;
            other[at] ^= 1;
            assert!(!is_same(&one, &other), "{at}");
        }
    }
}
