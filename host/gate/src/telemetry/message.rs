//! Spans as OTLP messages, named by OpenTelemetry's conventions for MCP.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as otlp;

use super::{Method, Span};

/// Flag `sampled` of W3C, and OTLP's two flags for a parent that is known to be remote.
const SAMPLED: u32 = 1;
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

/// Sender of all messages.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) service_name: String,
    /// The host process, as the ledger names it.
    pub(super) host_id: String,
}

impl Origin {
    pub(super) fn resource(&self) -> Resource {
        Resource {
            attributes: vec![
                text("service.name", &self.service_name),
                text("service.version", env!("CARGO_PKG_VERSION")),
                text("service.instance.id", &self.host_id),
            ],
            ..Resource::default()
        }
    }

    /// Message with these spans.
    pub(super) fn tell(&self, spans: Vec<otlp::Span>) -> ExportTraceServiceRequest {
        let spans = otlp::ScopeSpans {
            scope: Some(scope()),
            spans,
            ..otlp::ScopeSpans::default()
        };
        ExportTraceServiceRequest {
            resource_spans: vec![otlp::ResourceSpans {
                resource: Some(self.resource()),
                scope_spans: vec![spans],
                ..otlp::ResourceSpans::default()
            }],
        }
    }
}

/// Spans of a message that must be sent again.
pub(super) fn untold(message: ExportTraceServiceRequest) -> Vec<otlp::Span> {
    let told = message.resource_spans.into_iter();
    let told = told.flat_map(|told| told.scope_spans);
    told.flat_map(|told| told.spans).collect()
}

pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "tollgate".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// An attribute.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

/// Nanoseconds since 1970.
pub(super) fn nanos(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default().saturating_mul(1_000_000)
}

impl Span {
    /// OTLP form of the span, with new ids.
    pub(super) fn told(&self) -> otlp::Span {
        // Version 4 ids are random and never zero. A span id uses half of one.
        let own = uuid::Uuid::new_v4().into_bytes();
        let trace = self
            .parent
            .map_or_else(|| uuid::Uuid::new_v4().into_bytes(), |parent| parent.trace);
        let remote = self.parent.map_or(0, |_| PARENT_IS_REMOTE);
        let end = nanos(self.ended_ms);
        let duration = u64::try_from(self.duration.as_nanos()).unwrap_or(u64::MAX);
        otlp::Span {
            trace_id: trace.to_vec(),
            span_id: own[8..].to_vec(),
            parent_span_id: self.parent.map(|parent| parent.span.to_vec()).unwrap_or_default(),
            flags: SAMPLED | PARENT_IS_KNOWN | remote,
            name: format!("{} {}", self.method.name(), self.tool),
            kind: otlp::span::SpanKind::Server.into(),
            start_time_unix_nano: end.saturating_sub(duration),
            end_time_unix_nano: end,
            attributes: self.attributes(),
            status: self.error_code.as_ref().map(|code| otlp::Status {
                message: code.clone(),
                code: otlp::status::StatusCode::Error.into(),
            }),
            ..otlp::Span::default()
        }
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let mut attributes = vec![
            text("mcp.method.name", self.method.name()),
            text("tollgate.pack", &self.pack),
            text("tollgate.effect", self.effect.as_str()),
            text("tollgate.op_id", &self.op_id),
        ];
        attributes.extend(match self.method {
            Method::Tool => vec![
                text("gen_ai.operation.name", "execute_tool"),
                text("gen_ai.tool.name", &self.tool),
            ],
            Method::Prompt => vec![text("gen_ai.prompt.name", &self.tool)],
        });
        let known = [
            ("jsonrpc.request.id", &self.request_id),
            ("tollgate.envelope_id", &self.envelope_id),
            ("error.type", &self.error_code),
        ];
        let known = known.into_iter();
        attributes.extend(known.filter_map(|(key, value)| Some(text(key, value.as_deref()?))));
        attributes
    }
}

impl Method {
    /// Name of the method in MCP.
    const fn name(self) -> &'static str {
        match self {
            Method::Tool => "tools/call",
            Method::Prompt => "prompts/get",
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::Parent;
    use super::super::span::tests::span;
    use super::*;

    fn shown(span: &otlp::Span) -> String {
        let attributes = span.attributes.iter().map(|attribute| {
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            match value {
                Some(any_value::Value::StringValue(value)) => format!("\n  {} = {value}", attribute.key),
                other => panic!("{other:?}"),
            }
        });
        format!(
            "{} kind {} from {} to {}, status {:?}{}",
            span.name,
            span.kind,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.status.as_ref().map(|status| (status.code, &status.message)),
            attributes.collect::<String>(),
        )
    }

    #[test]
    fn a_span_has_names_and_ids_and_nothing_of_what_a_call_holds() {
        expect![[r#"
            tools/call slice_show kind 2 from 500000000 to 2000000000, status None
              mcp.method.name = tools/call
              tollgate.pack = gsd
              tollgate.effect = read
              tollgate.op_id = op_1
              gen_ai.operation.name = execute_tool
              gen_ai.tool.name = slice_show
              jsonrpc.request.id = 7"#]]
        .assert_eq(&shown(&span().told()));
        let refused = Span {
            method: Method::Prompt,
            envelope_id: Some("env_2".to_owned()),
            error_code: Some("ENVELOPE_CLOSED".to_owned()),
            ..span()
        };
        expect![[r#"
            prompts/get slice_show kind 2 from 500000000 to 2000000000, status Some((2, "ENVELOPE_CLOSED"))
              mcp.method.name = prompts/get
              tollgate.pack = gsd
              tollgate.effect = read
              tollgate.op_id = op_1
              gen_ai.prompt.name = slice_show
              jsonrpc.request.id = 7
              tollgate.envelope_id = env_2
              error.type = ENVELOPE_CLOSED"#]]
        .assert_eq(&shown(&refused.told()));
    }

    #[test]
    fn a_span_is_in_its_parents_trace_or_begins_one() {
        let parent = Parent {
            trace: [1; 16],
            span: [2; 8],
            is_sampled: true,
        };
        let child = Span {
            parent: Some(parent),
            ..span()
        };
        let (child, root, other) = (child.told(), span().told(), span().told());
        assert_eq!(child.trace_id, [1; 16]);
        assert_eq!(child.parent_span_id, [2; 8]);
        assert_eq!(child.flags, 0x301);
        assert_eq!(root.flags, 0x101);
        assert!(root.parent_span_id.is_empty());
        for told in [&child, &root] {
            assert_eq!((told.trace_id.len(), told.span_id.len()), (16, 8));
        }
        assert_ne!(root.trace_id, other.trace_id);
        assert_ne!(root.span_id, other.span_id);
    }
}
