// A pack with two tools and a table: it counts the words of a text, and keeps words.
#include <stdio.h>

#include "json.h"
#include "tool_pack.h"

typedef exports_tollgate_host_pack_tool_t tool_t;
typedef exports_tollgate_host_pack_tool_error_t refusal_t;

#define TEXT                                                                                                          \
    "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"maxLength\":100000,"                          \
    "\"description\":\"Text whose words are counted, for example a title.\"}},"                                        \
    "\"required\":[\"text\"],\"additionalProperties\":false}"
#define WORDS                                                                                                         \
    "{\"type\":\"object\",\"properties\":{\"words\":{\"type\":\"integer\","                                             \
    "\"description\":\"Number of words.\"}},\"required\":[\"words\"]}"
#define WORD                                                                                                          \
    "{\"type\":\"object\",\"properties\":{\"word\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100,"             \
    "\"description\":\"Word to keep, for example toll.\"}},"                                                           \
    "\"required\":[\"word\"],\"additionalProperties\":false}"
#define KEPT                                                                                                          \
    "{\"type\":\"object\",\"properties\":{\"kept\":{\"type\":\"integer\","                                              \
    "\"description\":\"Number of words that are kept.\"}},\"required\":[\"kept\"]}"
#define TABLE "CREATE TABLE my_pack_kept (word TEXT PRIMARY KEY);"

// Every text that a function returns is a copy: the bindings free it.
static tool_t tool(const char *name, const char *title, const char *description, const char *input,
                   const char *output) {
    tool_t tool = {.tier = EXPORTS_TOLLGATE_HOST_PACK_TIER_CORE, .idempotent = true};
    tool_pack_string_dup(&tool.name, name);
    tool_pack_string_dup(&tool.title, title);
    tool_pack_string_dup(&tool.description, description);
    tool_pack_string_dup(&tool.input_schema, input);
    tool_pack_string_dup(&tool.output_schema, output);
    return tool;
}

void exports_tollgate_host_pack_describe(exports_tollgate_host_pack_manifest_t *pack) {
    memset(pack, 0, sizeof *pack);
    tool_pack_string_dup(&pack->name, "my-pack");
    tool_pack_string_dup(&pack->version, "0.1.0");
    tool_pack_string_dup(&pack->summary, "Words of texts, counted and kept.");
    pack->tools.len = 2;
    pack->tools.ptr = calloc(2, sizeof *pack->tools.ptr);
    pack->tools.ptr[0] = tool("my_pack_count", "Count words", "Count the words of a text.", TEXT, WORDS);
    pack->tools.ptr[0].effect = TOLLGATE_HOST_COMPONENT_EFFECT_READ;
    pack->tools.ptr[1] = tool("my_pack_keep", "Keep a word", "Keep a word, and count those that are kept.", WORD, KEPT);
    pack->tools.ptr[1].effect = TOLLGATE_HOST_COMPONENT_EFFECT_WRITE;
    pack->migrations.len = 1;
    pack->migrations.ptr = calloc(1, sizeof *pack->migrations.ptr);
    tool_pack_string_dup(&pack->migrations.ptr[0].name, "0001_init");
    tool_pack_string_dup(&pack->migrations.ptr[0].sql, TABLE);
}

static bool refuse(refusal_t *refusal, const char *code, const char *message, const char *remediation) {
    memset(refusal, 0, sizeof *refusal);
    tool_pack_string_dup(&refusal->code, code);
    tool_pack_string_dup(&refusal->message, message);
    tool_pack_string_dup(&refusal->remediation, remediation);
    tool_pack_string_dup(&refusal->context, "{}");
    return false;
}

static bool answer(exports_tollgate_host_pack_reply_t *reply, const char *name, long long number) {
    char json[64];
    snprintf(json, sizeof json, "{\"%s\":%lld}", name, number);
    memset(reply, 0, sizeof *reply);
    tool_pack_string_dup(&reply->structured, json);
    return true;
}

static bool count(text_t text, exports_tollgate_host_pack_reply_t *reply, refusal_t *refusal) {
    long long words = 0;
    bool is_inside = false;
    for (size_t at = 0; at < text.len; at++) {
        bool is_space = text.ptr[at] <= ' ';
        words += !is_space && !is_inside;
        is_inside = !is_space;
    }
    return words > 0 ? answer(reply, "words", words)
                     : refuse(refusal, "NO_WORDS", "the text has no words", "Pass a text with a word in it.");
}

static bool keep(text_t word, exports_tollgate_host_pack_reply_t *reply, refusal_t *refusal) {
    tollgate_host_storage_value_t value = {.tag = TOLLGATE_HOST_STORAGE_VALUE_TEXT};
    value.val.text.ptr = word.ptr;
    value.val.text.len = word.len;
    tollgate_host_storage_list_value_t one = {&value, 1}, none = {NULL, 0};
    tollgate_host_storage_list_row_t rows;
    tollgate_host_storage_error_t error;
    tool_pack_string_t sql;
    uint64_t changed;
    tool_pack_string_set(&sql, "INSERT INTO my_pack_kept (word) VALUES (?1) ON CONFLICT DO NOTHING");
    bool is_done = tollgate_host_storage_execute(&sql, &one, &changed, &error);
    tool_pack_string_set(&sql, "SELECT count(word) FROM my_pack_kept");
    if (!is_done || !tollgate_host_storage_query(&sql, &none, &rows, &error)) {
        return refuse(refusal, "STORAGE", "the word cannot be kept", "Try again.");
    }
    return answer(reply, "kept", rows.ptr[0].ptr[0].val.integer);
}

bool exports_tollgate_host_pack_call(exports_tollgate_host_pack_context_t *cx, tool_pack_string_t *name,
                                     tool_pack_string_t *arguments, exports_tollgate_host_pack_reply_t *reply,
                                     refusal_t *refusal) {
    text_t text;
    // The host has checked the arguments, so each text is there.
    if (text_of(arguments->ptr, arguments->len, "text", &text)) {
        return count(text, reply, refusal);
    }
    if (text_of(arguments->ptr, arguments->len, "word", &text)) {
        return keep(text, reply, refusal);
    }
    return refuse(refusal, "UNKNOWN_TOOL", "there is no such tool", "Call my_pack_count or my_pack_keep.");
}
