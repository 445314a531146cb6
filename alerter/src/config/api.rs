//! `[api]`: where the API is served beside the control socket, and who may use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drivers::Step;
use marks::host::HostPatterns;
use marks::register::Register;
use secrecy::{ExposeSecret as _, SecretSlice};
use sha2::{Digest as _, Sha256};
use site::{Section, is_plain_name, must_be_absolute, read_private};

use super::listen::{Addresses, Served};
use super::routes::Route;
use super::values::patterns;

/// The addresses with what is needed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// `uri`, `owner` and `group`.
    pub served: Served,
    /// `[api.tokens.NAME]`: who may ask.
    pub tokens: Vec<Token>,
}

/// Reads `[api]`; without the table there is none.
pub(super) fn read(
    root: &mut Section<'_, '_>,
    register: Register,
    routes: &[Arc<Route>],
    addresses: &mut Addresses,
) -> Option<Api> {
    let mut around = Around { register, routes, known: BTreeMap::new(), named: BTreeSet::new() };
    let api = table(root.section("api"), addresses, &mut around);
    check_routes(root, routes, &around.named);
    api
}

/// Nothing is served without a token: the control socket is for root.
fn table<'a>(
    mut section: Section<'a, '_>,
    addresses: &mut Addresses,
    around: &mut Around<'a, '_>,
) -> Option<Api> {
    let is_there = section.entries().next().is_some();
    let served = addresses.read_for_tokens(&mut section);
    let has_token = !section.section("tokens").sections().is_empty();
    let tokens = tokens(section.section("tokens"), around);
    if is_there && !section.has("uri") {
        section.missing("[api] has no uri: set it to an address, such as \"tcp://127.0.0.1:7420\"");
    }
    if is_there && !has_token {
        section
            .missing("[api] has no token, so nobody could use it: add [api.tokens.NAME] with a token-file");
    }
    section.finish();
    served.map(|served| Api { served, tokens })
}

/// What tokens are checked against.
struct Around<'a, 'r> {
    register: Register,
    routes: &'r [Arc<Route>],
    /// The tokens that were read already.
    known: BTreeMap<Digest, &'a str>,
    /// The routes that any of them names.
    named: BTreeSet<String>,
}

fn tokens<'a>(mut section: Section<'a, '_>, around: &mut Around<'a, '_>) -> Vec<Token> {
    section.only_tables("token");
    let names = section.sections();
    names.into_iter().filter_map(|name| token(section.named_section(name), name, around)).collect()
}

/// Two names for one token would leave it open who sent a request.
fn token<'a>(mut section: Section<'a, '_>, name: &'a str, around: &mut Around<'a, '_>) -> Option<Token> {
    if !is_plain_name(name) {
        section.complain_here("a token's name must be 1 to 64 letters, digits, '-' or '_'");
    }
    let file = section.text("token-file", |text| {
        let file = PathBuf::from(text);
        Token::read(&file).map(|digest| (file, digest))
    });
    let routes = section.texts("routes", |text| confirmed_route(around.routes, text)).unwrap_or_default();
    let routes: Vec<String> = routes.into_iter().map(str::to_owned).collect();
    around.named.extend(routes.iter().cloned());
    let hosts = patterns(&mut section, "hosts").and_then(|hosts| HostPatterns::from_entries(hosts).ok());
    let trust_marks = section.flag("trust-marks");
    if !section.has("token-file") {
        let title = section.title().to_owned();
        section
            .missing(format!("[{title}] has no token-file: set it to a file with the token in its one line"));
    }
    if trust_marks == Some(true) && around.register != Register::None {
        section.complain(
            "trust-marks",
            "with a register the cluster has to prove every mark: remove trust-marks",
        );
    }
    let other = file.as_ref().and_then(|(_, digest)| around.known.insert(*digest, name));
    if other.is_some() {
        section.complain("token-file", "another name has the same token: give each name its own");
    }
    section.finish();
    let (file, _) = file?;
    let (name, trust_marks) = (name.to_owned(), trust_marks.unwrap_or(false));
    Some(Token { name, file, trust_marks, routes, hosts })
}

fn confirmed_route(routes: &[Arc<Route>], name: &str) -> Result<(), String> {
    match routes.iter().find(|route| route.step == Step::Failure && route.name.as_str() == name) {
        None => Err("there is no route of this name".to_owned()),
        Some(route) if route.driver.about().confirms_later => Ok(()),
        Some(_) => Err("the answer of this route acknowledges: set ack = \"callback\" for it".to_owned()),
    }
}

/// A route that waits for a callback needs the API: the control socket is for root on this controller alone.
fn check_routes(root: &mut Section<'_, '_>, routes: &[Arc<Route>], named: &BTreeSet<String>) {
    let why = match root.section("api").has("uri") {
        false => "no receiver could confirm a mark: add [api] with a uri, or let the answer acknowledge",
        true => {
            "no receiver could confirm a mark: name the route in routes of the receiver's [api.tokens.NAME]"
        }
    };
    for route in
        routes.iter().filter(|route| route.step == Step::Failure && route.driver.about().confirms_later)
    {
        if root.section("api").has("uri") && named.contains(route.name.as_str()) {
            continue;
        }
        let mut kind = root.section(route.driver.about().kind);
        let Some(key) = kind.sections().into_iter().find(|key| *key == route.name.as_str()) else { continue };
        kind.named_section(key).complain("ack", why);
    }
}

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
        assert_eq!([ONE, OTHER, "", &ONE[1..]].map(name), [Some("one"), Some("other"), None, None]);
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
