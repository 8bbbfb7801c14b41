//! The way there and back.

use super::*;
use crate::{ErrorKind, ProbeStatus};

/// Answers with what differs from every default.
struct Odd;
impl TerminalEnvironmentProvider for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }
    fn is_available(&self) -> bool {
        true
    }
    fn create_environment(&self, request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        Err(Error::new(ErrorKind::UNAVAILABLE, format!("{request:?}")))
    }
    fn display_name(&self) -> String {
        "Odd One".into()
    }
    fn is_remote(&self) -> bool {
        false
    }
    fn is_container(&self) -> bool {
        false
    }
    fn skip_container_guards(&self) -> bool {
        true
    }
    fn cache_path_base(&self) -> Option<String> {
        Some("/cache".into())
    }
    fn strip_env_keys(&self) -> Vec<String> {
        vec!["ODD_TOKEN".into()]
    }
    fn session_isolated_when_nonpersistent(&self) -> bool {
        true
    }
    fn default_cwd(&self) -> Option<String> {
        Some("/w".into())
    }
    fn guest_home(&self) -> Option<String> {
        Some("/home/odd".into())
    }
    fn costs_to_create(&self) -> bool {
        true
    }
    fn config_schema(&self) -> Value {
        serde_json::json!({"region": {"type": "string"}})
    }
    fn resolve_config(&self, config: Value) -> Result<Value, Error> {
        Ok(serde_json::json!({"was": config}))
    }
}

/// Panics wherever it can.
struct Panics;
impl TerminalEnvironmentProvider for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }
    fn is_available(&self) -> bool {
        panic!("is_available")
    }
    fn create_environment(&self, _request: CreateEnvironment) -> Result<Box<dyn Environment>, Error> {
        panic!("create")
    }
    fn display_name(&self) -> String {
        panic!("display_name")
    }
    fn description(&self) -> String {
        panic!("description")
    }
    fn is_remote(&self) -> bool {
        panic!("is_remote")
    }
    fn env_description(&self) -> String {
        panic!("env_description")
    }
    fn is_container(&self) -> bool {
        panic!("is_container")
    }
    fn cache_path_base(&self) -> Option<String> {
        panic!("cache_path_base")
    }
    fn strip_env_keys(&self) -> Vec<String> {
        panic!("strip_env_keys")
    }
    fn config_schema(&self) -> Value {
        panic!("config_schema")
    }
    fn doctor_checks(&self) -> Vec<DoctorCheck> {
        panic!("doctor_checks")
    }
}

fn foreign(provider: impl TerminalEnvironmentProvider) -> ForeignProvider {
    ForeignProvider::new(PluginProvider::crossing(Box::new(provider))).unwrap()
}

#[test]
fn every_attribute_survives_the_round_trip() {
    let odd = foreign(Odd);
    assert_eq!((odd.name(), odd.display_name().as_str()), ("odd", "Odd One"));
    assert_eq!(odd.description(), "Run commands in a Odd One environment");
    assert_eq!(odd.probe(), Probe::ready(""));
    assert!(odd.is_available() && !odd.is_remote() && !odd.is_container() && odd.skip_container_guards());
    assert!(odd.session_isolated_when_nonpersistent() && odd.costs_to_create());
    assert_eq!(odd.cache_path_base().as_deref(), Some("/cache"));
    assert_eq!(odd.strip_env_keys(), ["ODD_TOKEN"]);
    assert_eq!(odd.default_cwd().as_deref(), Some("/w"));
    assert_eq!(odd.guest_home().as_deref(), Some("/home/odd"));
    assert_eq!(odd.config_schema()["region"]["type"], "string");
    assert_eq!(odd.resolve_config(serde_json::json!({"a": 1})).unwrap()["was"]["a"], 1);
    assert!(odd.check_requirements(&Value::Null).is_ok());
    let request = CreateEnvironment { task_id: "t:1".into(), persistent: true, ..Default::default() };
    let error = odd.create_environment(request.clone()).err().unwrap();
    assert_eq!(error.message(), format!("{request:?}"));
}

#[test]
fn an_attribute_that_panics_gives_its_default_and_guards_stay_on() {
    let provider = foreign(Panics);
    assert!(!provider.is_available());
    assert_eq!(provider.display_name(), "panics");
    assert_eq!(provider.description(), "Run commands in a panics environment");
    assert!(provider.is_remote() && provider.is_container());
    assert!(!provider.skip_container_guards(), "the guard must stay on");
    assert_eq!(provider.probe().status, ProbeStatus::UNAVAILABLE);
    assert!(!provider.doctor_checks()[0].ok);
    assert_eq!(provider.config_schema(), serde_json::json!({}));
    assert_eq!(provider.cache_path_base(), None);
    assert_eq!(provider.try_strip_env_keys().unwrap_err().kind(), ErrorKind::PANICKED);
    let error = provider.create_environment(CreateEnvironment::default()).err().unwrap();
    assert_eq!(error.message(), "`create_environment` panicked: create");
}

#[test]
fn a_flag_is_true_only_if_it_says_so_cleanly() {
    let provider = foreign(Odd);
    assert!(provider.flag("flag", RResult::ROk(1), false));
    for odd in [0, 2, 7, u8::MAX] {
        assert!(!provider.flag("flag", RResult::ROk(odd), true), "{odd}");
    }
}

#[test]
fn an_attribute_that_panics_says_so_to_whoever_wants_to_know() {
    let provider = foreign(Panics);
    assert_eq!(provider.try_is_remote().unwrap_err().message(), "`is_remote` panicked: is_remote");
    assert!(provider.try_doctor_checks().is_err() && provider.try_cache_path_base().is_err());
    assert!(!foreign(Odd).try_is_remote().unwrap());
}
