//! Our credentials for Keystone, read from the words of a cloud.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

use super::words::Words;

/// A name with its domain: alone it is ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// Keystone's own id.
    Id(String),
    /// A name, and its domain.
    Name(String, Domain),
}

/// A domain, by its id or by its name. Some of Keystone's databases distinguish capital letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// By id.
    Id(String),
    /// By name.
    Name(String),
}

/// A token's scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// One project.
    Project(Named),
    /// The whole system.
    System,
}

/// The credentials.
#[derive(Clone)]
pub(super) enum Credentials {
    /// `password`.
    Password {
        /// The user.
        user: Named,
        /// The password.
        password: SecretString,
        /// The scope.
        scope: Scope,
    },
    /// `v3applicationcredential`: it has its own scope, and Keystone refuses another one beside it.
    Application {
        /// Its id, or its name with its user.
        which: Application,
        /// Its secret.
        secret: SecretString,
    },
}

/// An application credential, by its id or by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Application {
    /// By id.
    Id(String),
    /// By name, and its user.
    Name(String, Named),
}

impl Credentials {
    /// Reads them.
    ///
    /// # Errors
    /// One sentence without a value.
    pub(super) fn read(words: &Words) -> Result<Self, String> {
        let auth = |key: &str| text(words, &format!("auth.{key}"));
        let given = text(words, "auth_type");
        let has_application = auth("application_credential_secret").is_some();
        let kind = match (given.as_deref(), has_application) {
            (None, true) => "v3applicationcredential",
            (None, false) => "password",
            (Some(given), _) => given,
        };
        match kind {
            "password" | "v3password" => {
                let password = secret(words, "password")?;
                Ok(Self::Password { user: user(&auth)?, password, scope: scope(&auth)? })
            }
            "v3applicationcredential" => {
                let secret = secret(words, "application_credential_secret")?;
                Ok(Self::Application { which: application(&auth)?, secret })
            }
            _ => Err("auth_type must be password or v3applicationcredential".to_owned()),
        }
    }

    /// The project, if it is written down. An application credential does not count: it can be replaced at any time, and
    /// leads to the same cloud.
    pub(super) fn project(&self) -> Option<String> {
        match self {
            Self::Password { scope: Scope::Project(Named::Id(id)), .. } => Some(id.clone()),
            Self::Password { scope: Scope::Project(Named::Name(name, domain)), .. } => {
                let (Domain::Id(domain) | Domain::Name(domain)) = domain;
                Some(format!("{name} in {domain}"))
            }
            Self::Password { scope: Scope::System, .. } | Self::Application { .. } => None,
        }
    }

    /// What must not be shown.
    pub(super) fn secret(&self) -> &SecretString {
        match self {
            Self::Password { password, .. } => password,
            Self::Application { secret, .. } => secret,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password",
            Self::Application { .. } => "Application",
        })
    }
}

/// A word that is not secret.
pub(super) fn text(words: &Words, key: &str) -> Option<String> {
    words.get(key).map(|value| value.expose_secret().to_owned()).filter(|text| !text.is_empty())
}

fn secret(words: &Words, key: &str) -> Result<SecretString, String> {
    let value = words.get(&format!("auth.{key}")).filter(|value| !value.expose_secret().is_empty());
    value.cloned().ok_or_else(|| format!("there is no {key}: set it under auth, best in secure.yaml"))
}

fn application(auth: &impl Fn(&str) -> Option<String>) -> Result<Application, String> {
    match (auth("application_credential_id"), auth("application_credential_name")) {
        (Some(id), _) => Ok(Application::Id(id)),
        (None, Some(name)) => Ok(Application::Name(name, user(auth)?)),
        (None, None) => Err("an application credential needs application_credential_id, or application_credential_name and its user".to_owned()),
    }
}

fn user(auth: &impl Fn(&str) -> Option<String>) -> Result<Named, String> {
    match (auth("user_id"), auth("username")) {
        (Some(id), _) => Ok(Named::Id(id)),
        (None, Some(name)) => domain(auth, "user", "project")
            .map(|domain| Named::Name(name, domain))
            .ok_or_else(|| "username needs user_domain_name or user_domain_id".to_owned()),
        (None, None) => Err("there is no username and no user_id under auth".to_owned()),
    }
}

/// Without a scope Keystone gives a token that has no services.
fn scope(auth: &impl Fn(&str) -> Option<String>) -> Result<Scope, String> {
    match (auth("project_id"), auth("project_name"), auth("system_scope")) {
        (Some(id), _, _) => Ok(Scope::Project(Named::Id(id))),
        (None, Some(name), _) => domain(auth, "project", "user")
            .map(|domain| Scope::Project(Named::Name(name, domain)))
            .ok_or_else(|| "project_name needs project_domain_name or project_domain_id".to_owned()),
        (None, None, Some(all)) if all == "all" => Ok(Scope::System),
        (None, None, Some(_)) => Err("system_scope must be all".to_owned()),
        (None, None, None) => Err("there is no project_name and no project_id under auth".to_owned()),
    }
}

/// Its own domain, else the other's, else the file's default one.
fn domain(auth: &impl Fn(&str) -> Option<String>, whose: &str, other: &str) -> Option<Domain> {
    let of = |who: &str| {
        let id = auth(&format!("{who}_domain_id")).map(Domain::Id);
        id.or_else(|| auth(&format!("{who}_domain_name")).map(Domain::Name))
    };
    of(whose).or_else(|| of(other)).or_else(|| of("default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[(&str, &str)]) -> Result<Credentials, String> {
        Credentials::read(&words.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect())
    }

    #[test]
    fn a_name_is_in_its_own_domain_or_in_the_others() {
        let base = [("auth.username", "a"), ("auth.password", "s3kr1t"), ("auth.project_name", "ops")];
        for (more, user, project) in [
            (vec![("auth.user_domain_name", "U")], Domain::Name("U".into()), Domain::Name("U".into())),
            (
                vec![("auth.user_domain_id", "u"), ("auth.project_domain_name", "P")],
                Domain::Id("u".into()),
                Domain::Name("P".into()),
            ),
            (vec![("auth.default_domain_id", "d")], Domain::Id("d".into()), Domain::Id("d".into())),
        ] {
            let words: Vec<_> = base.into_iter().chain(more).collect();
            let Credentials::Password { user: found, scope, .. } = read(&words).unwrap() else {
                unreachable!()
            };
            assert_eq!(found, Named::Name("a".into(), user));
            assert_eq!(scope, Scope::Project(Named::Name("ops".into(), project)));
        }
        assert!(read(&base).unwrap_err().contains("user_domain_name"));
    }
}
