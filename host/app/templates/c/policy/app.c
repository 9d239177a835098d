// A policy that denies changes during a freeze.
#include "json.h"
#include "policy.h"

#define SETTINGS                                                                                                      \
    "{\"type\":\"object\",\"properties\":{\"reason\":{\"type\":\"string\",\"minLength\":1,"                          \
    "\"description\":\"Reason for the freeze, shown to callers, for example release day.\"}},"                       \
    "\"required\":[\"reason\"],\"additionalProperties\":false}"

typedef exports_tollgate_host_judge_list_problem_t problems_t;

// Every text that a function returns is a copy: the bindings free it.
void exports_tollgate_host_judge_describe(exports_tollgate_host_judge_manifest_t *policy) {
    memset(policy, 0, sizeof *policy);
    policy_string_dup(&policy->name, "my-policy");
    policy_string_dup(&policy->version, "0.1.0");
    policy_string_dup(&policy->summary, "Denies changes during a freeze.");
    policy->config_schema.is_some = true;
    policy_string_dup(&policy->config_schema.val, SETTINGS);
    policy->phase = EXPORTS_TOLLGATE_HOST_JUDGE_PHASE_REQUEST;
}

// Takes the reason of the settings. False if it is blank.
static bool reason_of(policy_string_t *settings, text_t *reason) {
    if (!text_of(settings->ptr, settings->len, "reason", reason)) {
        return false;
    }
    size_t spaces = 0;
    while (spaces < reason->len && reason->ptr[spaces] <= ' ') {
        spaces++;
    }
    return spaces < reason->len;
}

// The host has checked the settings against the schema.
bool exports_tollgate_host_judge_configure(policy_string_t *settings, problems_t *problems) {
    text_t reason;
    if (reason_of(settings, &reason)) {
        return true;
    }
    problems->len = 1;
    problems->ptr = calloc(1, sizeof *problems->ptr);
    policy_string_dup(&problems->ptr[0].key, "reason");
    policy_string_dup(&problems->ptr[0].message, "the freeze needs a reason");
    return false;
}

bool exports_tollgate_host_judge_before_call(exports_tollgate_host_judge_request_t *request,
                                             exports_tollgate_host_judge_tuple2_verdict_list_note_t *judged,
                                             policy_string_t *problem) {
    memset(judged, 0, sizeof *judged);
    judged->f0.tag = EXPORTS_TOLLGATE_HOST_JUDGE_VERDICT_PASS;
    if (request->effect == TOLLGATE_HOST_COMPONENT_EFFECT_READ) {
        return true;
    }
    text_t reason;
    if (!reason_of(&request->settings, &reason)) {
        policy_string_dup(problem, "the settings have no reason");
        return false;
    }
    const char *frozen = "changes are frozen: ";
    policy_string_t told = {malloc(strlen(frozen) + reason.len), strlen(frozen) + reason.len};
    memcpy(told.ptr, frozen, strlen(frozen));
    memcpy(told.ptr + strlen(frozen), reason.ptr, reason.len);
    judged->f0.tag = EXPORTS_TOLLGATE_HOST_JUDGE_VERDICT_DENY;
    policy_string_dup(&judged->f0.val.deny.code, "FROZEN");
    judged->f0.val.deny.reason = told;
    policy_string_dup(&judged->f0.val.deny.remediation, "Wait until the freeze is over.");
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
