//! Scenarios on a real Pacemaker cluster.

use std::process::ExitCode;
use std::time::Instant;
use tests::lab::{self, Lab, Shape, cib};

fn main() -> ExitCode {
    if let Some(code) = lab::play_another_part() {
        return code;
    }
    lab::machine::check().unwrap();
    let t = Instant::now();
    let shape = Shape { controllers: 2, remotes: 1 };
    let lab = Lab::boot(shape, None).unwrap();
    println!("booted {:?}", t.elapsed());
    lab.configure(&cib::Configuration { shape, alerter: false }).unwrap();
    println!("ready {:?}", t.elapsed());
    if std::env::args().nth(1).is_some() {
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
    lab.power_off("compute1").unwrap();
    lab.wait_for("lost", 60, |v| v.is_lost("compute1")).unwrap();
    println!("lost {:?}", t.elapsed());
    lab.wait_until_ready().unwrap();
    println!("back {:?}", t.elapsed());
    println!("{:#?} {:?}", lab.bmc().record(), lab.fencings("compute1").unwrap());
    ExitCode::SUCCESS
}
