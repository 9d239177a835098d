// The policy `require-actor`: denies changes without an actor.
#include "json.h"
#include "policy.h"

void exports_tollgate_host_judge_describe(exports_tollgate_host_judge_manifest_t *policy) {
    memset(policy, 0, sizeof *policy);
    policy_string_dup(&policy->name, "require-actor-c");
    policy_string_dup(&policy->version, "0.1.0");
    policy_string_dup(&policy->summary, "Denies changes without an actor.");
    policy->phase = EXPORTS_TOLLGATE_HOST_JUDGE_PHASE_REQUEST;
}

bool exports_tollgate_host_judge_configure(policy_string_t *settings, exports_tollgate_host_judge_list_problem_t *problems) {
    json_t json = {settings->ptr, settings->ptr + settings->len};
    text_t key;
    problems->len = 0;
    problems->ptr = NULL;
    while (next_key(&json, &key)) {
        problems->ptr = realloc(problems->ptr, (problems->len + 1) * sizeof *problems->ptr);
        problems->ptr[problems->len].key.ptr = key.ptr;
        problems->ptr[problems->len].key.len = key.len;
        policy_string_dup(&problems->ptr[problems->len++].message, "there is no such setting");
        skip_value(&json);
    }
    return problems->len == 0;
}

static bool is_named(exports_tollgate_host_judge_request_t *request) {
    if (request->identity.is_some) {
        return true;
    }
    text_t actor;
    if (!text_of(request->arguments.ptr, request->arguments.len, "actor", &actor)) {
        return false;
    }
    size_t spaces = 0;
    while (spaces < actor.len && actor.ptr[spaces] <= ' ') {
        spaces++;
    }
    return spaces < actor.len;
}

bool exports_tollgate_host_judge_before_call(exports_tollgate_host_judge_request_t *request,
                                             exports_tollgate_host_judge_tuple2_verdict_list_note_t *judged,
                                             policy_string_t *problem) {
    memset(judged, 0, sizeof *judged);
    judged->f0.tag = EXPORTS_TOLLGATE_HOST_JUDGE_VERDICT_PASS;
    if (request->effect != TOLLGATE_HOST_COMPONENT_EFFECT_READ && !is_named(request)) {
        judged->f0.tag = EXPORTS_TOLLGATE_HOST_JUDGE_VERDICT_DENY;
        policy_string_dup(&judged->f0.val.deny.code, "ACTOR_REQUIRED");
        policy_string_dup(&judged->f0.val.deny.reason, "the call has no actor");
        policy_string_dup(&judged->f0.val.deny.remediation, "Pass your name in the argument `actor`.");
    }
    return true;
}

bool exports_tollgate_host_judge_after_call(exports_tollgate_host_judge_request_t *request,
                                            exports_tollgate_host_judge_outcome_t *outcome,
                                            exports_tollgate_host_judge_tuple2_review_list_note_t *judged,
                                            policy_string_t *problem) {
    memset(judged, 0, sizeof *judged);
    judged->f0.tag = EXPORTS_TOLLGATE_HOST_JUDGE_REVIEW_PASS;
    return true;
}
