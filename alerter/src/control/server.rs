//! The daemon's end of the control socket.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::extract::connect_info::Connected;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, Extension, FromRequest, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::IncomingStream;
use axum::{Json, Router};
use journal::{Journal, JournalError, NewHistory};
use marks::host::HostName;
use marks::id::{FencingId, MarkId};
use marks::mark::MarkRow;
use marks::time::Timestamp;
use serde::de::DeserializeOwned;
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::api::{
    Away, ChangeAnswer, ClusterStatus, Daemon, ErrorAnswer, Health, Kind, Reason, ReleaseRequest,
    RouteStatus, TestAnswer, TestRequest, UnmarkRequest,
};
use super::caller::{Caller, OPERATOR};
use super::retry::retry;
use super::{decisions, events, left, reload, remote};
use crate::cluster::{Cluster, missed_sentence};
use crate::config::{NoticeWay, Route};
use crate::drivers::{Driver, Message, Outcome, Step};
use crate::intake::{account, roll};
use crate::listen;
use crate::plain::blanked;
use crate::shared::Shared;
use crate::steer::groups;

/// What a test message may take beyond its route's limit.
const TEST_SLACK: Duration = Duration::from_secs(2);

/// The bound socket; its file goes with it.
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Whether the kernel takes this path.
    ///
    /// # Errors
    /// One sentence for the operator.
    pub fn check_path(path: &Path) -> Result<(), String> {
        let bytes = path.as_os_str().len();
        if bytes <= listen::PATH_MAX {
            return Ok(());
        }
        let (path, most) = (path.display(), listen::PATH_MAX);
        Err(format!(
            "the control socket would be {path}, which has {bytes} bytes, and the system takes {most}: take a shorter path for the journal"
        ))
    }

    /// Whether a socket could be made there; nothing is made.
    ///
    /// # Errors
    /// What stands in the way.
    pub fn check(path: &Path) -> anyhow::Result<()> {
        Self::check_path(path).map_err(anyhow::Error::msg)?;
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
            anyhow::bail!("the control socket {} cannot be made: a directory stands there", path.display());
        }
        Ok(())
    }

    /// Binds the socket for root alone. A file left by a killed daemon is replaced: the journal's lock, which the
    /// caller holds, says that no other daemon lives.
    ///
    /// # Errors
    /// The directory or the socket cannot be made.
    pub fn bind(path: &Path) -> anyhow::Result<Self> {
        Self::check(path)?;
        let told = || format!("the control socket {} cannot be made", path.display());
        if let Some(directory) = path.parent() {
            listen::make_directory(directory).with_context(told)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).with_context(told),
            _ => {}
        }
        let listener = UnixListener::bind(path).with_context(told)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).with_context(told)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Answers until `stop`.
    pub async fn serve(self, shared: Arc<Shared>, stop: CancellationToken) {
        let service = router(shared).into_make_service_with_connect_info::<Peer>();
        let serving = async { axum::serve(self.listener, service).await };
        tokio::select! {
            () = stop.cancelled() => {}
            ended = serving => if let Err(error) = ended {
                tracing::error!(%error, "the control socket failed");
            }
        }
        let _already_gone = fs::remove_file(&self.path);
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/health", get(health))
        .route("/v1/status", get(status))
        .route("/v1/unmark", post(unmark))
        .route("/v1/release", post(release))
        .route("/v1/retry", post(retry))
        .route("/v1/send-test", post(send_test))
        .merge(remote::api())
        .merge(decisions::routes())
        .merge(events::routes())
        .merge(reload::routes())
        .layer(middleware::from_fn(only_root))
        .with_state(shared)
}

/// Who is at the other end, by the kernel's word.
#[derive(Clone, Copy, Debug)]
struct Peer {
    uid: Option<u32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Self { uid: stream.io().peer_cred().ok().map(|peer| peer.uid()) }
    }
}

/// Root, or whoever the daemon itself runs as: nobody else, whatever the file's mode has become.
async fn only_root(ConnectInfo(peer): ConnectInfo<Peer>, mut request: Request, next: Next) -> Response {
    let ours = nix::unistd::geteuid().as_raw();
    if let Some(uid) = peer.uid.filter(|uid| *uid == 0 || *uid == ours) {
        let name = request.headers().get(OPERATOR).map(|name| String::from_utf8_lossy(name.as_bytes()));
        let caller = Caller::Local { uid, name: name.map(Cow::into_owned) };
        request.extensions_mut().insert(caller);
        return next.run(request).await;
    }
    let refusal = Refusal::new(
        StatusCode::FORBIDDEN,
        "not-root",
        "only root may use the control socket: run the command with sudo",
    );
    refusal.into_response()
}

/// An answer that is no success.
pub(super) struct Refusal(StatusCode, ErrorAnswer);

impl Refusal {
    pub(super) fn new(status: StatusCode, kind: &str, message: &str) -> Self {
        Self(status, ErrorAnswer { kind: kind.to_owned(), message: message.to_owned() })
    }

    pub(super) fn bad(kind: &str, message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, kind, message)
    }

    #[cfg(test)]
    pub(super) fn sentence(&self) -> &str {
        &self.1.message
    }

    pub(super) fn absent(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.kind(), &error.to_string())
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        Self::bad("request", &rejection.body_text())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

pub(super) type Answer<T> = Result<Json<T>, Refusal>;

/// A JSON body whose faults come back as our own answer.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Shared>> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &Arc<Shared>) -> Result<Self, Refusal> {
        let Json(body) = Json::from_request(request, state).await?;
        Ok(Self(body))
    }
}

async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    Json(health_of(&shared))
}

fn health_of(shared: &Shared) -> Health {
    health_for(shared, Timestamp::now()).0
}

/// With its reasons, each with what it is about.
fn health_for(shared: &Shared, now: Timestamp) -> (Health, Vec<Reason>) {
    let wedged = shared.supervisor.wedged();
    let sentence = |time: Duration| {
        let seconds = time.as_secs();
        format!(
            "nothing is told: the engine has not got on for {seconds} s; look at the journal's disk and at the load of this controller"
        )
    };
    let wedge = wedged.map(|time| Reason::of(Kind::Other, sentence(time)));
    let all: Vec<Reason> = wedge.into_iter().chain(shared.named_reasons(now)).collect();
    let reasons = all.iter().map(|reason| reason.message.clone()).collect();
    (Health { healthy: wedged.is_none(), degraded: !all.is_empty(), reasons }, all)
}

async fn status(State(shared): State<Arc<Shared>>) -> Answer<Daemon> {
    let state = Arc::clone(&shared);
    let read = move |journal: &mut Journal| daemon(&state, journal, Timestamp::now());
    Ok(Json(shared.store.run(read).await?))
}

/// What the daemon says of itself, as far as the journal is needed read from this one.
pub(crate) fn daemon(shared: &Shared, journal: &Journal, now: Timestamp) -> Result<Daemon, JournalError> {
    let orders = decisions::sentences(journal, now)?;
    let (waiting, groups) = (journal.waiting()?, groups::groups(journal, shared, now)?);
    let rejected = journal.rejected_hosts()?;
    let (settings, (health, reasons)) = (shared.settings(), health_for(shared, now));
    let mut routes = Vec::new();
    for route in &settings.routes {
        let name = route.name.as_str();
        let rejected = rejected.get(name).map_or(0, BTreeSet::len);
        let rejects_all = shared.troubles().rejects_all(name) && !journal.has_others_than_rejected(name)?;
        let count = waiting.get(name).copied().unwrap_or(0);
        routes.push(RouteStatus { rejected, rejects_all, ..route_status(shared, route, count) });
    }
    Ok(Daemon {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        controller: shared.controller.clone(),
        health,
        routes,
        cluster: shared.cluster.as_ref().map(|cluster| cluster_status(shared, cluster)),
        groups,
        orders,
        reasons,
        unaccounted: account::unaccounted(shared, Instant::now()),
    })
}

fn cluster_status(shared: &Shared, cluster: &Cluster) -> ClusterStatus {
    let seen = shared.seen();
    let age = seen.view.as_ref().map(|view| view.taken.elapsed().as_millis());
    let rules = &shared.settings().hosts;
    let guests = seen.cib.as_ref().map(|cib| roll::guests(rules, cib)).unwrap_or_default();
    let guests = guests.into_iter().filter_map(|guest| {
        let host = guest.host?.to_string();
        Some(Away { message: format!("{host}: {}", guest.why.detail), host })
    });
    let missed = seen.missed_for(rules.audit_after).into_iter();
    let missed =
        missed.map(|(host, time)| Away { message: missed_sentence(&host, time), host: host.to_string() });
    let away: Vec<Away> = missed.chain(guests).collect();
    ClusterStatus {
        register: cluster.register().as_str().to_owned(),
        permitted: seen.view.as_ref().is_some_and(|view| view.permits().is_ok()),
        age_ms: age.map(|age| u64::try_from(age).unwrap_or(u64::MAX)),
        entries: seen.register.as_ref().map_or(0, |entries| entries.sound.len()),
        warnings: away.iter().map(|away| away.message.clone()).collect(),
        away,
    }
}

fn route_status(shared: &Shared, route: &Route, waiting: usize) -> RouteStatus {
    let troubles = shared.troubles();
    let trouble = troubles.of(route.name.as_str());
    let lanes = shared.lanes();
    let is_parked = lanes.get(route.name.as_str()).is_some_and(|lane| lane.endpoint.is_parked());
    RouteStatus {
        name: route.name.as_str().to_owned(),
        driver: route.driver.kind().to_owned(),
        endpoint: route.driver.endpoint(),
        required: route.required,
        limit_ms: u64::try_from(route.driver.limit().as_millis()).unwrap_or(u64::MAX),
        waiting,
        failing_since: trouble.map(|t| t.since.0),
        failure: trouble.map(|t| t.kind.clone()),
        detail: trouble.map(|t| t.detail.clone()),
        refuses: is_parked && trouble.is_some(),
        rejected: 0,
        rejects_all: false,
    }
}

async fn unmark(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<UnmarkRequest>,
) -> Answer<ChangeAnswer> {
    if MarkId::parse(&request.target).is_err() {
        return Err(Refusal::bad(
            "mark",
            "this is no mark's id: a host's marks end with PATCH /v1/hosts/{host}",
        ));
    }
    if request.reason.trim().is_empty() {
        return Err(Refusal::bad("reason", "unmark needs a reason: it stands in the history"));
    }
    let marks = unfinished_marks_of(&shared, &request.target).await?;
    let (user, reason) = (caller.signed(&request.user), plain(&request.reason));
    let state = Arc::clone(&shared);
    let (changed, left) = shared
        .store
        .run(move |journal| {
            let now = Timestamp::now();
            let mut ended = 0;
            for mark in &marks {
                // Where nothing is open but its return, that is meant; not one that the first word has just promised.
                let is_ended = journal.dismiss(*mark, &reason, &user, now)?
                    || journal.dismiss_returns(*mark, request.returns, (&reason, &user), now)? > 0;
                ended += usize::from(is_ended);
                if is_ended {
                    tracing::info!(%mark, "{user} has ended the mark: nothing more of it is told ({reason})");
                }
            }
            let mut left = left::behind(journal, &state, &marks)?;
            for mark in marks.iter().filter(|_| ended == 0) {
                left.push(format!(
                    "a return that is still to be sent ends with `nova-host-alerter unmark {mark} --return --reason TEXT` alone"
                ));
            }
            Ok((ended, left))
        })
        .await?;
    let waiting = shared.store.run(|journal| journal.waiting()).await?;
    shared.troubles().keep_only(|route| waiting.contains_key(route));
    shared.poke.notify_one();
    Ok(Json(ChangeAnswer {
        changed,
        message: [format!("{} mark(s) of {} ended by you", changed, plain(&request.target))]
            .into_iter()
            .chain(left)
            .collect::<Vec<_>>()
            .join("; "),
    }))
}

async fn release(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<ReleaseRequest>,
) -> Answer<ChangeAnswer> {
    if request.reason.trim().is_empty() {
        return Err(Refusal::bad(
            "reason",
            "a release needs a reason: it tells what Pacemaker did not confirm",
        ));
    }
    let target = match (request.target, request.group) {
        (Some(target), None) => target,
        (None, Some(group)) => {
            let user = caller.signed(&request.user);
            return decisions::release_group(&shared, &group, &request.reason, &user).await;
        }
        _ => return Err(Refusal::bad("scope", "name a host, a mark or a group, one of them")),
    };
    let marks = newest_mark_of(&shared, &target).await?;
    let (user, reason) = (caller.signed(&request.user), plain(&request.reason));
    let is_id = MarkId::parse(&target).is_ok();
    let release = move |journal: &mut Journal| {
        let now = Timestamp::now();
        let (mut released, mut nameless) = (0, false);
        for mark in marks {
            let is_new = journal.release(mark, &reason, &user, now)?.is_some();
            let mut was_held = journal.release_held(mark, &reason, &user, now)? > 0;
            // To another place a return goes by its mark's id alone: whoever names a host means its failure.
            was_held |= is_id && journal.release_elsewhere(mark, &reason, &user, now)? > 0;
            released += usize::from(is_new || was_held);
            nameless |= journal.mark(mark)?.is_some_and(|row| row.settled.is_none() && row.fqdn.is_none());
            if is_new || was_held {
                tracing::info!(%mark, "{user} has released the mark: it may go ({reason})");
            }
        }
        Ok((released, nameless))
    };
    let (changed, nameless) = shared.store.run(release).await?;
    shared.seen().news = true;
    shared.poke.notify_one();
    let target = plain(&target);
    let message = match changed {
        _ if nameless => format!(
            "{target} is held all the same (no-fqdn): set [hosts] domain in {}, or its full name in [hosts.names], then run `nova-host-alerter reload`",
            shared.settings().file.display()
        ),
        0 => format!(
            "the newest mark of {target} is settled, or released already: to release an older one, give its id"
        ),
        changed => format!("{changed} mark(s) of {target} released by you"),
    };
    Ok(Json(ChangeAnswer { changed, message }))
}

/// The open marks that a host name or a mark's id stands for, and settled ones that a route which is not required has not
/// taken yet.
pub(super) async fn unfinished_marks_of(shared: &Shared, target: &str) -> Result<Vec<MarkId>, Refusal> {
    those_of(shared, target, is_unfinished).await
}

/// Whether anything of a mark is open; a damaged row may be.
pub(super) fn is_unfinished(journal: &Journal, mark: &MarkRow) -> Result<bool, JournalError> {
    let deliveries = journal.deliveries_of(mark.id)?;
    let any_open = deliveries.sound.iter().any(|delivery| !delivery.state.is_final());
    Ok(mark.settled.is_none() || any_open || !deliveries.damaged.is_empty())
}

/// The mark of an id, or a host's last one: an operator who looks at the host now vouches for no older one.
async fn newest_mark_of(shared: &Shared, target: &str) -> Result<Vec<MarkId>, Refusal> {
    let is_id = MarkId::parse(target).is_ok();
    let is_newest = move |journal: &Journal, mark: &MarkRow| {
        let all = journal.marks_of(&mark.node)?.sound;
        let newest = all.iter().map(|other| (other.failure_time, other.id)).max();
        Ok(is_id || newest == Some((mark.failure_time, mark.id)))
    };
    those_of(shared, target, is_newest).await
}

/// The marks of a host, or the mark of an id, for which `is_meant` holds.
async fn those_of(
    shared: &Shared,
    target: &str,
    is_meant: impl Fn(&Journal, &MarkRow) -> Result<bool, JournalError> + Send + 'static,
) -> Result<Vec<MarkId>, Refusal> {
    let (id, host) = (MarkId::parse(target).ok(), HostName::parse(target).ok());
    let read = move |journal: &mut Journal| {
        let by_id = id.map(|id| journal.mark(id)).transpose()?.flatten();
        let by_host = host.map(|host| journal.marks_of(&host)).transpose()?;
        let found = by_id.into_iter().chain(by_host.into_iter().flat_map(|rows| rows.sound));
        let mut marks = Vec::new();
        for mark in found {
            if is_meant(journal, &mark)? {
                marks.push(mark.id);
            }
        }
        Ok(marks)
    };
    let marks = shared.store.run(read).await?;
    if marks.is_empty() {
        Err(Refusal::absent("no open mark has this host name or id: see `nova-host-alerter list`"))
    } else {
        Ok(marks)
    }
}

async fn send_test(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    Body(request): Body<TestRequest>,
) -> Answer<Vec<TestAnswer>> {
    let answers = match &request.notice {
        Some(name) => vec![test_notice(&shared, name).await?],
        None => test_routes(&shared, &request).await?,
    };
    let actor = caller.signed(&request.user);
    let (said, reason) = (answers.clone(), plain(&request.reason));
    shared.store.run(move |journal| note_tests(journal, &said, &reason, &actor)).await?;
    Ok(Json(answers))
}

/// One row for each: who sent it, and what came of it.
fn note_tests(
    journal: &mut Journal,
    answers: &[TestAnswer],
    reason: &str,
    actor: &str,
) -> Result<(), JournalError> {
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    for answer in answers {
        let detail = format!("a test message was sent ({}){why}", answer.kind);
        journal.append_history(&NewHistory {
            at: Timestamp::now(),
            event: "test-sent",
            mark: None,
            node: None,
            route: Some(&answer.route),
            outcome: None,
            detail: &detail,
            actor,
        })?;
    }
    Ok(())
}

/// All routes at once: the slowest decides how long it takes.
async fn test_routes(shared: &Shared, request: &TestRequest) -> Result<Vec<TestAnswer>, Refusal> {
    let wanted = |route: &&Arc<Route>| {
        let is_named = request.route.as_deref().is_none_or(|name| route.name.as_str() == name);
        is_named && route.step == Step::Failure
    };
    let mut tests = JoinSet::new();
    for (number, route) in shared.settings().routes.iter().filter(wanted).cloned().enumerate() {
        tests.spawn(async move { (number, test(route.name.as_str(), &*route.driver).await) });
    }
    if tests.is_empty() {
        return Err(Refusal::absent("there is no route of this name: see `nova-host-alerter status`"));
    }
    let mut answers = tests.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    let rejected = shared.store.run(|journal| journal.rejected_hosts()).await?;
    Ok(answers.into_iter().map(|(_, answer)| with_rejected(answer, &rejected)).collect())
}

/// So many hosts are named.
const NAMED: usize = 5;

/// Beside what the endpoint said: what that does not prove.
fn with_rejected(answer: TestAnswer, rejected: &BTreeMap<String, BTreeSet<String>>) -> TestAnswer {
    let hosts = rejected.get(&answer.route);
    let Some(hosts) = hosts.filter(|_| answer.accepted) else { return answer };
    let (count, named) =
        (hosts.len(), hosts.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", "));
    let more = match count.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let detail = format!(
        "{}; but the route rejects the marks of {count} host(s) at present: {named}{more}; look at `nova-host-alerter status`",
        answer.detail
    );
    TestAnswer { rejected: count, detail, ..answer }
}

/// The log takes everything.
async fn test_notice(shared: &Shared, name: &str) -> Result<TestAnswer, Refusal> {
    let settings = shared.settings();
    let found = settings.notices.iter().find(|target| target.name.as_str() == name);
    let target = found.ok_or_else(|| {
        Refusal::absent("there is no notice target of this name: see [notice] in the configuration")
    })?;
    let answer = match &target.way {
        NoticeWay::Driver(driver) => test(name, &**driver).await,
        NoticeWay::Syslog => {
            tracing::warn!(condition = "test", "this is a test of notice target {name}");
            test_answer(name, &Outcome::Acknowledged { reference: None })
        }
    };
    Ok(answer)
}

/// One test message. Whoever waits for it knows the limit of one; waiting for a place among other exchanges is not part of it.
async fn test(name: &str, driver: &dyn Driver) -> TestAnswer {
    let id = MarkId::from(FencingId::generate());
    let body = driver.test_body(&id, Timestamp::now());
    let exchange = driver.deliver(Message { step: Step::Failure, id: &id, body: &body, ambiguous: 0 });
    match tokio::time::timeout(driver.limit() + TEST_SLACK, exchange).await {
        Ok(outcome) => test_answer(name, &outcome),
        Err(_) => TestAnswer {
            route: name.to_owned(),
            accepted: false,
            kind: "busy".into(),
            detail: "the route was busy with other messages for as long as one may take: try again".into(),
            rejected: 0,
        },
    }
}

fn test_answer(name: &str, outcome: &Outcome) -> TestAnswer {
    let route = name.to_owned();
    match outcome.failure() {
        None => TestAnswer {
            route,
            accepted: true,
            kind: outcome.as_str().into(),
            detail: "the endpoint accepted the test message: it can be reached and lets us in, which does not say that it takes the mark of a host".into(),
            rejected: 0,
        },
        Some(failure) => TestAnswer {
            route,
            accepted: false,
            kind: failure.kind.into(),
            detail: failure.detail.clone(),
            rejected: 0,
        },
    }
}

/// A user's name as far as it is safe in a log.
pub(super) fn person(name: &str) -> String {
    let name: String = plain(name).chars().take(64).collect();
    if name.is_empty() { "root".to_owned() } else { name }
}

/// What the register keeps of a text, in bytes.
const TEXT_MAX: usize = 1024;

/// A text as far as it is safe in a log, and no longer than the register keeps it.
pub(crate) fn plain(text: &str) -> String {
    let letters = blanked(text.trim()).take(512);
    let mut room = TEXT_MAX;
    let fits = |c: &char| {
        room = room.saturating_sub(c.len_utf8());
        room > 0
    };
    letters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant counts letters alone: what is longer never gets into the register.
    #[test]
    fn a_reason_is_cut_to_what_the_register_keeps() {
        assert_eq!(plain(" a\nb "), "a b");
        assert_eq!(plain(&"a".repeat(600)).len(), 512);
        let long = plain(&"€".repeat(600));
        assert!(long.len() <= TEXT_MAX && long.chars().count() > 300, "{}", long.len());
    }
}
