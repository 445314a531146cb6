//! `POST /v1/send-test`: a message that says that it is a test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use journal::{Done, Journal, NewHistory};
use marks::id::{FencingId, MarkId};
use marks::time::Timestamp;
use tokio::task::JoinSet;

use super::answer::{Answer, Asked, Refusal};
use super::api::TestAnswer;
use crate::config::Route;
use crate::state::Shared;
use crate::words::named_up_to;
use drivers::{Driver, Message, Step};

/// What a test message may take beyond its route's limit.
const TEST_SLACK: Duration = Duration::from_secs(2);

pub(super) async fn send_test(
    State(shared): State<Arc<Shared>>,
    Asked { user, reason, request }: Asked,
) -> Answer<Vec<TestAnswer>> {
    let answers = test_routes(&shared, request.route.as_deref()).await?;
    let said = answers.clone();
    shared.base.store.run(move |journal| note_tests(journal, &said, &reason, &user)).await?;
    Ok(Json(answers))
}

/// One row for each: who sent it, and what came of it.
fn note_tests(journal: &mut Journal, answers: &[TestAnswer], reason: &str, actor: &str) -> Done {
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    for answer in answers {
        let detail = format!("a test message was sent ({}){why}", answer.kind);
        journal.append_history(&NewHistory {
            route: Some(&answer.route),
            ..NewHistory::new(Timestamp::now(), "test-sent", &detail, actor)
        })?;
    }
    Ok(())
}

/// All routes at once: the slowest decides how long it takes.
async fn test_routes(shared: &Shared, asked: Option<&str>) -> Result<Vec<TestAnswer>, Refusal> {
    let wanted = |route: &&Arc<Route>| {
        let is_named = asked.is_none_or(|name| route.name.as_str() == name);
        is_named && route.step == Step::Failure
    };
    let mut tests = JoinSet::new();
    for (number, route) in shared.base.settings().routes.iter().filter(wanted).cloned().enumerate() {
        tests.spawn(async move { (number, test(route.name.as_str(), &*route.driver).await) });
    }
    if tests.is_empty() {
        return Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "unknown-route",
            "there is no route of this name: see `nova-host-alerter status`",
        ));
    }
    let mut answers = tests.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    let rejected = shared.base.store.run(|journal| journal.rejected_hosts()).await?;
    Ok(answers.into_iter().map(|(_, answer)| with_rejected(answer, &rejected)).collect())
}

/// So many hosts are named.
const NAMED: usize = 5;

/// Beside what the endpoint said: what that does not prove.
fn with_rejected(answer: TestAnswer, rejected: &BTreeMap<String, BTreeSet<String>>) -> TestAnswer {
    let hosts = rejected.get(&answer.route);
    let Some(hosts) = hosts.filter(|_| answer.accepted) else { return answer };
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let (count, named) = (hosts.len(), named_up_to(&hosts, NAMED));
    let detail = format!(
        "{}; but the route rejects the marks of {count} host(s) at present: {named}; see `nova-host-alerter status`",
        answer.detail
    );
    TestAnswer { detail, ..answer }
}

/// One test message, within the route's limit; waiting for a place among other exchanges counts too.
async fn test(name: &str, driver: &dyn Driver) -> TestAnswer {
    let id = MarkId::from(FencingId::generate());
    let body = driver.test_body(&id, Timestamp::now());
    let exchange = driver.deliver(Message {
        step: Step::Failure,
        id: &id,
        body: &body,
        ambiguous: 0,
        attempts: 1,
        is_released: false,
    });
    let (accepted, kind, detail) =
        match tokio::time::timeout(driver.about().limit + TEST_SLACK, exchange).await {
            Err(_) => (false, "busy", BUSY.to_owned()),
            Ok(outcome) => match outcome.failure() {
                None => (true, outcome.as_str(), ACCEPTED.to_owned()),
                Some(failure) => (false, failure.kind, failure.detail.clone()),
            },
        };
    TestAnswer { route: name.to_owned(), accepted, kind: kind.into(), detail }
}

const BUSY: &str = "the route was busy with other messages for the whole time limit: try again";
const ACCEPTED: &str = "the endpoint accepted the test message: the connection and the credentials work; the mark of a host may still be rejected";
