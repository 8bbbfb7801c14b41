//! `hostel mcp`, driven by the official SDK and the official inspector (`tests/mcp/checks.py`).

use hostel_tests::mcp_clients::{Sdk, check};

macro_rules! checks {
    ($sdk:ident $($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                check(Sdk::$sdk, stringify!($name));
            }
        )+
    };
}

checks! { Second
    stdio_list stdio_call stdio_unknown stdio_stream stdio_cancel stdio_malformed stdio_vanishes stdio_resources stdio_wait stdio_codes
    stdio_twenty stdio_inspector
    http_all http_twenty http_doors http_reconnect http_vanishes http_wait http_codes http_unread http_resume http_resume_sdk
    http_background http_resources http_inspector snippets http_snippets stdio_same_id http_same_id http_ended
    stdio_elicit stdio_elicit_newest stdio_elicit_late stdio_elicit_vanishes http_elicit http_elicit_late http_elicit_slow http_elicit_vanishes
    elicit_none elicit_fails elicit_cancelled
}

/// As most clients of today do it.
mod first_sdk {
    use super::{Sdk, check};

    checks! { First
        stdio_list stdio_call stdio_stream stdio_cancel stdio_elicit stdio_elicit_late stdio_resources
        http_all http_twenty http_snippets http_elicit http_resources http_resume_sdk elicit_none elicit_fails
    }
}
