//! What a client of the protocol can ask for: tools, calls of them, and resources.
//!
//! One of these serves one connection, or one session over HTTP, or one request where the protocol knows no sessions. What it is
//! asked for goes through the same door as every other call of a tool. A tool that fails is a result that says so; errors of
//! the protocol are for requests that cannot be understood.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, DiscoverResult,
    ElicitRequest, ErrorCode, ErrorData, Implementation, InitializeRequestParams, InitializeResult,
    InputRequest, InputRequests, InputRequiredResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::arrival::{Arrival, Bound};
use super::cancel::Heard;
use super::elicit::{self, Ask};
use super::parked::Parked;
use super::progress::Pump;
use super::resources;
use super::running::{Came, Running};
use super::session::Client;
use crate::tools::{self, Answer, AnyTool, Asked, Reply};

/// The question of a call, among those that a request is answered with.
const APPROVAL: &str = "approval";

/// The code of the error that ends a call whose session has ended: of those that the protocol leaves to servers.
const SESSION_ENDED: i32 = -32000;

/// The methods that are served.
const METHODS: [&str; 8] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// What all clients of a server share.
#[derive(Default)]
pub(super) struct Shared {
    parked: Parked,
    listed: OnceLock<Vec<Tool>>,
}

impl Shared {
    /// Returns the tools as they are listed.
    fn tools(&self) -> &[Tool] {
        self.listed.get_or_init(|| tools::all().iter().map(described).collect())
    }
}

fn described(tool: &AnyTool) -> Tool {
    let effects = tool.effects;
    let annotations = ToolAnnotations::with_title(tool.title)
        .read_only(effects.read_only)
        .destructive(effects.destructive)
        .idempotent(effects.idempotent)
        .open_world(effects.open_world);
    Tool::new(tool.name, tool.description, tool.input_schema())
        .with_title(tool.title)
        .with_raw_output_schema(Arc::new(tool.output_schema()))
        .with_annotations(annotations)
}

/// Serves one client.
pub(super) struct Server {
    shared: Arc<Shared>,
    bound: Bound,
}

impl Server {
    pub(super) fn new(shared: &Arc<Shared>, bound: Bound) -> Self {
        Self { shared: Arc::clone(shared), bound }
    }

    /// Returns whose request this is.
    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Client>, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        self.bound.client(parts.and_then(|parts| parts.extensions.get::<Arc<Arrival>>()))
    }

    /// Goes on with a call until it has ended, or waits for a person whom only another request can ask.
    async fn go_on(
        &self,
        client: &Arc<Client>,
        mut running: Running,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _heard = Heard::new(context.ct.clone(), Arc::clone(running.cancel()));
        let token = context.meta.get_progress_token();
        let pump = token.map(|token| Pump::start(running.output(), context.peer.clone(), token));
        let came = loop {
            match running.next().await {
                Came::Ask(ask) if !asks_by_answer(context) => {
                    let asked = tokio::select! {
                        asked = elicit::ask(&context.peer, &ask) => asked,
                        // It may have been cancelled meanwhile.
                        () = running.ended() => Asked::Unanswered,
                    };
                    ask.settle(asked);
                }
                came => break came,
            }
        };
        // Who has taken its request back wants to hear no more of it.
        if let Some(pump) = pump.filter(|_| !context.ct.is_cancelled()) {
            tokio::select! {
                () = pump.finish() => {}
                () = client.calls.over() => {}
            }
        }
        match came {
            // What it had come to is not told: nobody asks for the rest.
            Came::Answer(_) | Came::Ask(_) if client.has_ended() => {
                let message =
                    "the session has ended, and the call with it: all that it had started was killed";
                Err(ErrorData::new(ErrorCode(SESSION_ENDED), message, None))
            }
            Came::Answer(answer) => Ok(result(answer).into()),
            Came::Ask(ask) => self.park(client, running, ask),
        }
    }

    /// Answers a request with the question of its call.
    fn park(&self, client: &Arc<Client>, running: Running, ask: Ask) -> Result<CallToolResponse, ErrorData> {
        let form = elicit::form(&ask.question)?;
        let requests =
            InputRequests::from([(APPROVAL.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
        let name = self.shared.parked.put(client, running, ask).map_err(|error| internal(&error))?;
        Ok(InputRequiredResult::new(Some(requests), Some(name)).into())
    }

    /// Finds the call that a request goes on with, and hands over what was answered.
    fn take_up(
        &self,
        client: &Arc<Client>,
        name: &str,
        request: &CallToolRequestParams,
    ) -> Result<Running, ErrorData> {
        let unknown = || {
            ErrorData::invalid_params(
                "no call waits under this `requestState`; make the call once more",
                None,
            )
        };
        let (running, ask) = self.shared.parked.take(client, name).ok_or_else(unknown)?;
        let answer = request.input_responses.as_ref().and_then(|responses| responses.get(APPROVAL));
        ask.answer(answer.map_or_else(Reply::deny, elicit::read_value));
        Ok(running)
    }
}

/// Whether the protocol of a request lets the server ask only by answering it.
fn asks_by_answer(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

fn result(answer: Answer) -> CallToolResult {
    if answer.is_error() {
        CallToolResult::structured_error(answer.value)
    } else {
        CallToolResult::structured(answer.value)
    }
}

fn internal(error: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Runs on a thread what may take a while.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(internal(&error)))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let ours = Implementation::new("hostel", env!("CARGO_PKG_VERSION")).with_title("Hostel");
        ServerConfig::new(capabilities).with_server_info(ours)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let client = self.client(&context)?;
        let mut answer = self.negotiate_initialize(&request)?;
        answer.instructions = Some(client.instructions.of(&client).await);
        Ok(answer)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let known = self.supported_protocol_versions().into_owned();
        if self.bound.wants_sessions() {
            // Whoever can choose has a session, and so a place of its own.
            let with_sessions = known.into_iter().filter(ProtocolVersion::has_initialize).collect();
            return Ok(DiscoverResult::from_server_info(with_sessions, self.get_info()));
        }
        let mut info = self.get_info();
        let client = self.client(&context)?;
        info.instructions = Some(client.instructions.of(&client).await);
        Ok(DiscoverResult::from_server_info(known, info))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shared.tools().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.tools().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context)?;
        let Some(tool) = tools::all().iter().find(|tool| tool.name == request.name) else {
            let known: Vec<_> = tools::all().iter().map(|tool| format!("`{}`", tool.name)).collect();
            let message = format!(
                "there is no tool `{}`: use one of {}",
                request.name.escape_debug(),
                known.join(", ")
            );
            return Err(ErrorData::invalid_params(message, None));
        };
        let running = if let Some(name) = request.request_state.take() {
            self.take_up(&client, &name, &request)?
        } else {
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            let can_ask = elicit::is_possible(context.client_capabilities().as_ref());
            // A call that waits for a person may be watched by the request that goes on with it.
            let is_heard = context.meta.get_progress_token().is_some() || asks_by_answer(&context);
            Running::start(&client, tool.name, arguments, can_ask, is_heard)
                .map_err(|error| internal(&error))?
        };
        self.go_on(&client, running, &context).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.client(&context)?;
        on_thread(move || resources::list(&client)).await.map(ListResourcesResult::with_all_items)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.client(&context)?;
        on_thread(move || resources::read(&client, &request.uri)).await.map(Into::into)
    }

    /// Answers what the library could not read: it takes a method with parameters that do not fit for one that it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if !METHODS.contains(&method.as_str()) {
            let message = format!("there is no method `{}`", method.escape_debug());
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
        }
        let params = request.params.unwrap_or_default();
        let reason = match method.as_str() {
            "tools/call" => serde_json::from_value::<CallToolRequestParams>(params).err(),
            "resources/read" => serde_json::from_value::<ReadResourceRequestParams>(params).err(),
            _ => None,
        };
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Err(ErrorData::invalid_params(format!("the parameters of `{method}` do not fit{reason}"), None))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }
}
