//! Our credentials for Keystone, read from the words of a cloud, in the form in which Keystone takes them.

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::words::Words;

/// The credentials. Only [`Self::request`] puts the secret into what is sent.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    /// `password`, or `application_credential`.
    method: &'static str,
    /// Who we are, as this method names it.
    who: Value,
    /// The scope of the token. An application credential has its own, and Keystone answers 401 to another.
    scope: Option<Value>,
    /// The project, if it is written down. An application credential does not count: it can be replaced at any time, and
    /// leads to the same cloud.
    pub(super) project: Option<String>,
    /// What must not be shown.
    pub(super) secret: SecretString,
}

impl Credentials {
    /// Reads them.
    ///
    /// # Errors
    /// One sentence without a value.
    pub(super) fn read(words: &Words) -> Result<Self, String> {
        let auth = Auth(words);
        let given = text(words, "auth_type");
        let usual = match auth.word("application_credential_secret") {
            Some(_) => "v3applicationcredential",
            None => "password",
        };
        match given.as_deref().unwrap_or(usual) {
            "password" | "v3password" => {
                let (secret, user) = (auth.secret("password")?, auth.user()?);
                let (scope, project) = auth.scope()?;
                Ok(Self { method: "password", who: user, scope: Some(scope), project, secret })
            }
            "v3applicationcredential" => {
                let (secret, who) = (auth.secret("application_credential_secret")?, auth.application()?);
                Ok(Self { method: "application_credential", who, scope: None, project: None, secret })
            }
            _ => Err("auth_type must be password or v3applicationcredential".to_owned()),
        }
    }

    /// The body that asks for a token. It holds the secret.
    pub(super) fn request(&self) -> Vec<u8> {
        let (method, secret, mut who) = (self.method, self.secret.expose_secret(), self.who.clone());
        let of_method = match method {
            "password" => {
                who["password"] = secret.into();
                json!({ "user": who })
            }
            _ => {
                who["secret"] = secret.into();
                who
            }
        };
        let mut auth = json!({ "identity": { "methods": [method], method: of_method } });
        if let Some(scope) = &self.scope {
            auth["scope"] = scope.clone();
        }
        json!({ "auth": auth }).to_string().into_bytes()
    }
}

/// A word that is not secret.
pub(super) fn text(words: &Words, key: &str) -> Option<String> {
    words.get(key).map(|value| value.expose_secret().to_owned()).filter(|text| !text.is_empty())
}

/// The words under `auth`.
struct Auth<'w>(&'w Words);

impl Auth<'_> {
    fn word(&self, key: &str) -> Option<String> {
        text(self.0, &format!("auth.{key}"))
    }

    fn secret(&self, key: &str) -> Result<SecretString, String> {
        let value = self.0.get(&format!("auth.{key}")).filter(|value| !value.expose_secret().is_empty());
        value.cloned().ok_or_else(|| format!("there is no {key}: set it under auth, best in secure.yaml"))
    }

    fn application(&self) -> Result<Value, String> {
        match (self.word("application_credential_id"), self.word("application_credential_name")) {
            (Some(id), _) => Ok(json!({ "id": id })),
            (None, Some(name)) => Ok(json!({ "name": name, "user": self.user()? })),
            (None, None) => Err("an application credential needs application_credential_id, or application_credential_name and its user".to_owned()),
        }
    }

    fn user(&self) -> Result<Value, String> {
        match (self.word("user_id"), self.word("username")) {
            (Some(id), _) => Ok(json!({ "id": id })),
            (None, Some(name)) => {
                let domain = self.domain("user", "project");
                let (key, domain) = domain.ok_or("username needs user_domain_name or user_domain_id")?;
                Ok(json!({ "name": name, "domain": { key: domain } }))
            }
            (None, None) => Err("there is no username and no user_id under auth".to_owned()),
        }
    }

    /// The scope, and its project for people. Without a scope Keystone gives a token that has no services.
    fn scope(&self) -> Result<(Value, Option<String>), String> {
        match (self.word("project_id"), self.word("project_name"), self.word("system_scope")) {
            (Some(id), _, _) => Ok((json!({ "project": { "id": id } }), Some(id))),
            (None, Some(name), _) => {
                let domain = self.domain("project", "user");
                let (key, domain) =
                    domain.ok_or("project_name needs project_domain_name or project_domain_id")?;
                let shown = format!("{name} in {domain}");
                Ok((json!({ "project": { "name": name, "domain": { key: domain } } }), Some(shown)))
            }
            (None, None, Some(all)) if all == "all" => Ok((json!({ "system": { "all": true } }), None)),
            (None, None, Some(_)) => Err("system_scope must be all".to_owned()),
            (None, None, None) => Err("there is no project_name and no project_id under auth".to_owned()),
        }
    }

    /// Its own domain, else the other's, else the file's default one: by its id or by its name. Some of Keystone's databases
    /// distinguish capital letters.
    fn domain(&self, whose: &str, other: &str) -> Option<(&'static str, String)> {
        [whose, other, "default"].into_iter().find_map(|who| {
            let id = self.word(&format!("{who}_domain_id")).map(|id| ("id", id));
            id.or_else(|| self.word(&format!("{who}_domain_name")).map(|name| ("name", name)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[(&str, &str)]) -> Result<Credentials, String> {
        Credentials::read(&words.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect())
    }

    fn asked(words: &[(&str, &str)]) -> Value {
        serde_json::from_slice(&read(words).unwrap().request()).unwrap()
    }

    #[test]
    fn a_password_comes_with_its_scope() {
        let words = [
            ("auth.username", "alerter"),
            ("auth.user_domain_name", "Default"),
            ("auth.password", "p\"w"),
            ("auth.project_name", "ops"),
            ("auth.project_domain_id", "default"),
        ];
        assert_eq!(
            asked(&words),
            json!({"auth": {
                "identity": {"methods": ["password"], "password": {"user":
                    {"name": "alerter", "domain": {"name": "Default"}, "password": "p\"w"}}},
                "scope": {"project": {"name": "ops", "domain": {"id": "default"}}}}})
        );
        let system = [("auth.user_id", "u"), ("auth.password", "p"), ("auth.system_scope", "all")];
        assert_eq!(asked(&system)["auth"]["scope"], json!({"system": {"all": true}}));
    }

    /// Keystone answers 401 to an application credential with a scope, also if the file names a project.
    #[test]
    fn an_application_credential_comes_without_a_scope() {
        let secret = ("auth.application_credential_secret", "s");
        let by_id = [secret, ("auth.application_credential_id", "i"), ("auth.project_name", "ops")];
        assert_eq!(
            asked(&by_id),
            json!({"auth": {"identity": {"methods": ["application_credential"],
                "application_credential": {"id": "i", "secret": "s"}}}})
        );
        let by_name = [
            secret,
            ("auth.application_credential_name", "n"),
            ("auth.username", "u"),
            ("auth.user_domain_id", "default"),
        ];
        assert_eq!(
            asked(&by_name)["auth"]["identity"]["application_credential"],
            json!({"name": "n", "secret": "s", "user": {"name": "u", "domain": {"id": "default"}}})
        );
    }

    #[test]
    fn a_name_is_in_its_own_domain_or_in_the_others() {
        let base = [("auth.username", "a"), ("auth.password", "s3kr1t"), ("auth.project_name", "ops")];
        for (more, user, project) in [
            (vec![("auth.user_domain_name", "U")], json!({"name": "U"}), json!({"name": "U"})),
            (
                vec![("auth.user_domain_id", "u"), ("auth.project_domain_name", "P")],
                json!({"id": "u"}),
                json!({"name": "P"}),
            ),
            (vec![("auth.default_domain_id", "d")], json!({"id": "d"}), json!({"id": "d"})),
        ] {
            let words: Vec<_> = base.into_iter().chain(more).collect();
            let auth = &asked(&words)["auth"];
            assert_eq!(auth["identity"]["password"]["user"]["domain"], user);
            assert_eq!(auth["scope"]["project"]["domain"], project);
        }
        assert!(read(&base).unwrap_err().contains("user_domain_name"));
    }
}
