//! Files of ranges, sound and otherwise.

use proptest::prelude::*;

use super::*;

fn request(service: &str, first: i64, keys: u32) -> RangeRequest {
    RangeRequest { service: service.to_owned(), first: Some(first), keys: Some(keys) }
}

fn problems(text: &str) -> Vec<String> {
    let problems = parse("keys", text).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn both_forms_give_the_same_ranges() {
    let expected = vec![request("billing", 1_300, 50), request("shop", -7, 3)];
    for text in [
        "service,start,keys\nbilling,1300,50\nshop,-7,3\n",
        "\u{feff}Service, Start, Keys\r\nbilling, 1300, \r\n\r\n\"shop\",\"-7\",\"3\"\r\n",
        "service;start;keys;end\nbilling;1300;;1349\nshop;-7;3;-5",
        "keys,service,start,used,next\n50,billing,1300,2,1302\n3,shop,-7,0,-7\n",
        r#"[{"service": "billing", "start": 1300}, {"start": -7, "keys": 3, "service": "shop"}]"#,
        r#" { "ranges" : [ {"service":"billing","start":1300,"keys":50,"end":1349,"used":1,"next":null,
            "assigned_by":"a \" ]","assigned_at":"2026"} , {"service":"sh\u006fp","start":-7,"keys":3} ] } "#,
    ] {
        assert_eq!(parse("keys", text).map(|file| file.requests), Ok(expected.clone()), "{text}");
    }
    for text in ["[]", "{\"ranges\": []}", "service,start\n"] {
        assert_eq!(parse("keys", text), Ok(RangesFile::default()), "{text}");
    }
}

#[test]
fn every_problem_of_a_table_is_reported_with_line_and_column() {
    let text = "service,start,keys,end\n\
                billing,13x0,50,\n\
                a.b,1,50,50\n\
                ,,0,\n\
                shop,1,50,51\n\
                web,9007199254740991,2,\n\
                few,1\n\
                mail,10,10001,\n\
                mail2,10,,\n\
                mail2,90,,\n";
    let expected = [
        "keys:2:9: start: \"13x0\" is no whole number of 64 bits",
        "keys:3:1: service: \"a.b\" is no service",
        "keys:4:1: service: \"\" is no service",
        "keys:4:2: start: is missing",
        "keys:5:11: end: 50 keys from 1 on end with 50",
        "keys:6:5: start: 9007199254740991 to 9007199254740992 reaches beyond 2^53 - 1",
        "keys:7:1: has 2 values for 4 columns",
        "keys:8:9: keys: 10001 is no number of keys; 1 to 10000",
        "keys:10:1: service: mail2 has a range in line 9 already",
    ];
    let found = problems(text);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (problem, expected) in found.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{expected}: {problem}");
    }
}

#[test]
fn every_problem_of_json_is_reported_with_line_and_column() {
    let text = r#"[
  {"service": "billing", "start": "1300"},
  {"service": 7, "start": 1.5, "kyes": 3},
  {"start": null},
  {"service": "shop", "start": 1, "start": 2},
  {"service": "web", "start": 9223372036854775808}
]"#;
    let expected = [
        "keys:2:35: start: must be a number without quotes",
        "keys:3:15: service: must be text in quotes",
        "keys:3:27: start: \"1.5\" is no whole number",
        "keys:3:40: kyes: is no column; did you mean keys?",
        "keys:4:3: service: is missing",
        "keys:4:13: start: must be a number without quotes",
        "keys:5:44: start: is there twice",
        "keys:6:31: start: \"9223372036854775808\" is no whole number",
    ];
    let found = problems(text);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (problem, expected) in found.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{expected}: {problem}");
    }
}

#[test]
fn a_form_that_breaks_off_is_named_with_its_place() {
    for (text, expected) in [
        ("", "keys:1:1: the file is empty"),
        ("name,start\na,1", "keys:1:1: service: is missing in the first line"),
        ("service\na", "keys:1:1: start: is missing in the first line"),
        ("service,start,start\na,1,1", "keys:1:15: start: is there twice"),
        ("service,start\n\"a,1\n", "keys:2:1: the quotation mark is not closed"),
        ("[", "keys:1:2: expected '{'"),
        ("[{\"service\": \"a\" \"start\": 1}]", "keys:1:18: expected '}'"),
        ("[{\"service\": [1]}]", "keys:1:14: expected a text or a number"),
        ("[{\"service: 1}]", "keys:1:3: the quotation mark is not closed"),
        ("[{1: 1}]", "keys:1:3: expected a field's name in quotes"),
        ("{\"rows\": []}", "keys:1:2: expected \"ranges\""),
        ("[]\n[]", "keys:2:1: nothing may follow the ranges"),
    ] {
        let found = problems(text);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{text}: {found:?}");
    }
    let long = "x".repeat(MAX_FILE_BYTES + 1);
    assert!(problems(&long)[0].contains("bytes; 4194304 at most"));
    let many = format!("service,start\n{}", "a,b\n".repeat(2 * MAX_PROBLEMS));
    let found = problems(&many);
    assert_eq!(found.len(), MAX_PROBLEMS + 1);
    assert!(
        found[MAX_PROBLEMS].ends_with("and more problems behind it"),
        "{}",
        found[MAX_PROBLEMS]
    );
    let rows: Vec<String> =
        (0..=MAX_RANGES).map(|number| format!("s{number},{number}\n")).collect();
    let rows = rows.concat();
    let found = problems(&format!("service,start\n{rows}"));
    assert_eq!(found, ["keys:1:1: the file has 10001 ranges; 10000 at most"]);
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s)[\\[{]?(.|[,;:\"\\[\\]{}\n0-9a]){0,200}") {
        if let Err(problems) = parse("keys", &text) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(problem.line >= 1 && problem.column >= 1);
                prop_assert!(problem.to_string().len() < 2_000);
            }
        }
    }
}
