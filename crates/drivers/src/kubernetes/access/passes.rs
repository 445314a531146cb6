//! The passes of a plugin: each is kept until it ends or is refused.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::pass::Pass;
use super::site::Site;
use super::trouble::Trouble;

/// A pass is not used for this long before its end, or for half of its life: clocks differ, and an exchange takes its time.
const REST: SignedDuration = SignedDuration::from_secs(60);

/// What the plugin gave last. The lock is held while it runs, so that one run serves all that wait.
#[derive(Default)]
pub(super) struct Passes(Mutex<Option<Given>>);

struct Given {
    /// A site whose files have changed gets a new pass.
    site: Arc<Site>,
    pass: Arc<Pass>,
    until: Option<Timestamp>,
}

fn last_use(now: Timestamp, end: Timestamp) -> Timestamp {
    let rest = REST.min(end.duration_since(now) / 2);
    end.checked_sub(rest).unwrap_or(end)
}

impl Passes {
    /// A pass until `end`, never the plugin's refused one.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn get(
        &self,
        site: &Arc<Site>,
        refused: Option<&Arc<Pass>>,
        end: Instant,
    ) -> Result<Arc<Pass>, Trouble> {
        let Some(plugin) = &site.plugin else { return Ok(Arc::clone(&site.own)) };
        let mut given = timeout_at(end, self.0.lock()).await.map_err(|_| Trouble::Late)?;
        let before = given.as_ref().filter(|given| given.is_usable(site, refused, Timestamp::now()));
        if let Some(before) = before {
            return Ok(Arc::clone(&before.pass));
        }
        let credential = plugin.run(end).await?;
        let until = credential.end.map(|end| last_use(Timestamp::now(), end));
        let pass = site.pass_of(plugin, credential).map(Arc::new).map_err(Trouble::NoCredentials)?;
        *given = Some(Given { site: Arc::clone(site), pass: Arc::clone(&pass), until });
        Ok(pass)
    }
}

impl Given {
    fn is_usable(&self, site: &Arc<Site>, refused: Option<&Arc<Pass>>, now: Timestamp) -> bool {
        Arc::ptr_eq(&self.site, site)
            && self.until.is_none_or(|until| until > now)
            && refused.is_none_or(|refused| !Arc::ptr_eq(refused, &self.pass))
    }
}
