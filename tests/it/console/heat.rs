//! The heat map of firings on the overview.

use std::fmt::Write as _;
use std::time::Instant;

use sexton_model::access::Role;

use super::story;
use crate::api::Fixture;

const LOCAL: [&str; 1] = ["Host: localhost"];

/// Applies so many jobs that fire at each of these hours, and at no other time.
async fn apply_jobs(f: &Fixture, hours: &[(usize, usize)]) {
    let mut file = String::new();
    for (hour, number) in hours {
        for at in 0..*number {
            let rest = format!("schedule = \"0 {hour} * * *\"\ntask = \"work\"");
            write!(file, "[[job]]\nname = \"billing.h{hour}n{at:04}\"\n{rest}\n").unwrap();
        }
    }
    let path = f.console.file("hours.toml", &file);
    f.console.run(&["jobs", "apply", "-f", &path]).await.expect(0);
}

async fn page(f: &Fixture, path: &str) -> String {
    let page = f.send_to("GET", path, &LOCAL, "").await.expect(200);
    page.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_overview_names_a_minute_in_which_many_jobs_fire_and_lists_them() {
    let f = Fixture::with_local_role(Some(Role::Viewer)).await;
    // A cell of each colour.
    apply_jobs(&f, &[(0, 40), (3, 8), (6, 16), (9, 24), (12, 32), (15, 24)]).await;
    let hot = page(&f, "/").await;
    assert!(hot.contains("<strong>40 firings at 00:00</strong></a>, 27 % of the day"), "{hot}");
    assert_eq!(hot.matches(" firings at ").count(), 3, "{hot}");
    assert!(hot.contains("1 more minute is hot, too"), "{hot}");
    assert!(
        hot.contains(
            ">billing.h0n0000</a>, <a href=\"/jobs/billing.h0n0001\">billing.h0n0001</a> and 38 more."
        ),
        "{hot}"
    );
    let (_, cell) =
        hot.split_once("<tr><th scope=\"row\">00</th><td class=\"heat-5 hot\"").unwrap();
    let (_, address) = cell.split_once("<a href=\"").unwrap();
    let (address, rest) = address.split_once('"').unwrap();
    assert!(rest.starts_with(">40</a>"), "{rest}");
    let list = page(&f, address).await;
    assert!(list.contains("40 firings of 40 jobs."), "{list}");
    assert_eq!(list.matches("<td>00:00:00</td>").count(), 40);
    story("pages.js", &[&f.site(), "/", address]).await;
}

/// More jobs than are counted.
const MANY: usize = 5_010;

#[tokio::test]
async fn with_thousands_of_jobs_the_overview_says_that_it_counted_the_first() {
    let f = Fixture::with_local_role(Some(Role::Viewer)).await;
    apply_jobs(&f, &[(0, MANY)]).await;
    let begun = Instant::now();
    let page = page(&f, "/").await;
    println!("MEASURED the overview with {MANY} jobs: {} ms", begun.elapsed().as_millis());
    assert!(page.contains("of 5000 jobs, the first by name: there are more"), "{page}");
    assert!(page.contains(" firings at 00:00</strong>"), "{page}");
}
