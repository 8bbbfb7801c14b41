//! `hostel mcp`, driven by the official SDK and the official inspector (`tests/mcp/checks.py`).

use hostel_tests::mcp_clients::check;

macro_rules! checks {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )+
    };
}

checks! {
    stdio_list stdio_call stdio_unknown stdio_stream stdio_cancel stdio_malformed stdio_vanishes stdio_resources
    http_all http_twenty http_doors http_reconnect http_vanishes snippets inspector
    stdio_elicit stdio_elicit_newest stdio_elicit_late stdio_elicit_vanishes http_elicit http_elicit_late http_elicit_slow http_elicit_vanishes
    elicit_none elicit_fails elicit_cancelled
}
