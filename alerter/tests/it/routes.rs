//! What becomes of a delivery whose route is gone.

use serde_json::Value;

use crate::endpoint::{Endpoint, OK};
use crate::reload::{route as to, said, slow};
use crate::site::{NOBODY, Program};

pub(crate) fn route(name: &str, keys: &str) -> String {
    to(name, &format!("{NOBODY}{name}"), keys)
}

async fn without_route(program: &Program) -> Value {
    program.ask(&["status"]).await["without_route"].clone()
}

/// S1-15, S1-16: a delivery whose route is gone is kept, and made when the route is there again; until then the mark is open
/// and `status` says what to do. The broken variant, which adds nothing at the start, is the poll in between.
#[tokio::test]
async fn a_delivery_whose_route_is_gone_waits_for_it() {
    let ((slow, leave), takes) = (slow().await, Endpoint::saying(OK).await);
    let new = to("new", &slow.url(), "");
    let mut program = Program::with(&route("old", "")).await;
    let mark = program.fence("c1");
    program.wait(async || !program.mark(mark).await["deliveries"][0]["last"].is_null()).await;
    program.stop();
    assert_eq!(without_route(&program).await, 0);
    program.configure(&new);
    assert_eq!(without_route(&program).await, 1, "no daemon has seen the new route yet");

    program.start().await;
    said(&slow, 1).await;
    assert_eq!(program.deliveries(mark).await, ["new in-flight", "old pending"]);
    assert_eq!(without_route(&program).await, 0);
    leave.add_permits(1);
    program.until(mark, "new acknowledged").await;
    assert_eq!(program.mark(mark).await["state"], "open", "it waits for the other one");
    assert_eq!(without_route(&program).await, 1);
    let said = program.say(&["status"]).await;
    assert!(said.contains("the mark of c1 cannot be sent: route old is not configured"), "{said}");
    let said = program.say(&["list"]).await;
    assert!(said.contains("old: connect"), "{said}");

    program.stop();
    program.configure(&(new + &to("old", &takes.url(), "")));
    program.start().await;
    program.until(mark, "old acknowledged").await;
    assert_eq!(program.mark(mark).await["state"], "acknowledged", "with that it is settled");
    assert_eq!((without_route(&program).await, slow.requests().len()), (0.into(), 1));
    program.stop();
    program.configure("[http.all]\nurl = 7\n");
    assert_eq!(without_route(&program).await, Value::Null, "nobody knows what is configured");
}
