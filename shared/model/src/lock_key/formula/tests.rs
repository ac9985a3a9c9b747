//! Keys that the original libraries computed, and what has no key.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

/// What the libraries computed; the file says which ones, and how.
fn vectors() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("vectors.json")).unwrap();
    file["vectors"].as_array().unwrap().clone()
}

fn key(formula: KeyFormula, name: &str, namespace: Option<&str>) -> DerivedKey {
    match formula.derive(name, namespace) {
        Ok(Derivation::Key(key)) => key,
        other => panic!("{formula} of {name:?}: {other:?}"),
    }
}

#[test]
fn every_formula_gives_the_keys_of_the_original_library() {
    let mut seen = BTreeSet::new();
    for vector in vectors() {
        let text = |field: &str| vector[field].as_str();
        let formula = KeyFormula::parse(text("formula").unwrap()).unwrap();
        if matches!(formula, KeyFormula::Hashtext | KeyFormula::HashtextExtended) {
            // The server computes these; a test on a server compares them.
            continue;
        }
        let (name, namespace) = (text("name").unwrap(), text("namespace"));
        assert_eq!(key(formula, name, namespace).to_string(), text("key").unwrap(), "{vector}");
        seen.insert(formula.as_str());
    }
    // The two that have no library: a number as it is, and our own.
    let without = ["hashtext", "hashtextextended", "integer", "sexton"];
    let others = KeyFormula::ALL.map(KeyFormula::as_str);
    let others: BTreeSet<_> = others.into_iter().filter(|name| !without.contains(name)).collect();
    assert_eq!(seen, others, "the file has keys of each formula");
}

#[test]
fn a_formula_keeps_its_name() {
    for formula in KeyFormula::ALL {
        assert_eq!(KeyFormula::parse(formula.as_str()), Some(formula));
        assert_eq!(serde_json::to_value(formula).unwrap(), formula.as_str());
        assert_eq!(serde_json::from_value::<KeyFormula>(formula.as_str().into()).unwrap(), formula);
    }
}

#[test]
fn our_own_formula_is_the_hash_of_namespace_and_name_in_53_bits() {
    // printf 'billing/monthlyInvoices' | sha256sum
    let digest = u64::from_str_radix("eda677d8556d99ef", 16).unwrap();
    let expected = (digest >> 11) as i64;
    let found = key(KeyFormula::Sexton, "monthlyInvoices", Some("billing"));
    assert_eq!(found, DerivedKey::Bigint(expected));
    for number in 0..1_000 {
        let name = number.to_string();
        let DerivedKey::Bigint(key) = key(KeyFormula::Sexton, &name, Some("n")) else { panic!() };
        assert!((0..=MAX_KEY).contains(&key), "{key}");
        assert_eq!(key as f64 as i64, key, "a double holds it");
    }
    let refused = KeyFormula::Sexton.derive("a", None);
    assert_eq!(refused, Err(DeriveError::NamespaceMissing(KeyFormula::Sexton)));
    assert_eq!(KeyFormula::Sexton.derive("c", Some("a/b")), Err(DeriveError::NamespaceSlash));
}

#[test]
fn a_number_is_its_own_key_unless_node_rounds_it() {
    for (text, number) in [("5101", 5101), ("-1", -1), ("9007199254740991", MAX_KEY)] {
        assert_eq!(key(KeyFormula::Integer, text, None), DerivedKey::Bigint(number));
    }
    for (text, rounded) in [
        ("9007199254740993", "9007199254740992"),
        ("-9007199254740993", "-9007199254740992"),
        ("9223372036854775807", "9223372036854775808"),
    ] {
        let error = KeyFormula::Integer.derive(text, None).unwrap_err().to_string();
        assert!(error.contains(&format!("reads it as {rounded} ")), "{text}: {error}");
    }
    for text in ["", "5101.0", "five", "9223372036854775808", " 1"] {
        let error = KeyFormula::Integer.derive(text, None).unwrap_err();
        assert_eq!(error, DeriveError::NotInteger(text.to_owned()));
    }
}

#[test]
fn what_has_no_key_is_refused() {
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    for formula in KeyFormula::ALL {
        for text in [&long, "a\0b"] {
            assert_eq!(formula.derive(text, None), Err(DeriveError::Text), "{formula}");
        }
        if !formula.takes_namespace() {
            let refused = formula.derive("1", Some("n"));
            assert_eq!(refused, Err(DeriveError::NamespaceUnused(formula)));
        }
    }
    // The one text of these whose hash is -2^31 has an absolute value that no integer holds.
    let smallest = "polygenelubricants";
    assert_eq!(java_hash(smallest), i32::MIN);
    assert_eq!(key(KeyFormula::Article, smallest, None), DerivedKey::Bigint(1 << 31));
    let refused = KeyFormula::Article.derive(smallest, Some("billing"));
    assert_eq!(refused, Err(DeriveError::PairOverflow(smallest.to_owned())));
}

#[test]
fn a_prefix_is_read_as_ruby_reads_a_number() {
    for (text, number) in [
        ("", 0),
        ("abc", 0),
        ("12abc", 12),
        (" \n+7", 7),
        ("-1", u32::MAX),
        ("1_000", 1_000),
        ("1__0", 1),
        ("_1", 0),
        ("4294967297", 1),
    ] {
        assert_eq!(ruby_integer(text), number, "{text:?}");
    }
}

#[test]
fn a_key_says_where_the_server_lists_its_lock() {
    let columns = |classid, objid, objsubid| Some(LockColumns { classid, objid, objsubid });
    assert_eq!(DerivedKey::Bigint(5101).lock_columns(), columns(0, 5101, 1));
    assert_eq!(DerivedKey::Bigint(-1).lock_columns(), columns(u32::MAX, u32::MAX, 1));
    assert_eq!(DerivedKey::Bigint(1 << 32).lock_columns(), columns(1, 0, 1));
    let pair = DerivedKey::Pair { class: -2, object: 3 };
    assert_eq!(pair.lock_columns(), columns(u32::MAX - 1, 3, 2));
    let row = DerivedKey::Row { table: "INT_LOCK", key: String::new() };
    assert_eq!(row.lock_columns(), None);
}
