// Reads a text of a JSON object. The host passes only valid JSON.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const uint8_t *at, *end;
} json_t;

typedef struct {
    uint8_t *ptr;
    size_t len;
} text_t;

static int peek(json_t *json) {
    while (json->at < json->end && memchr(" \t\r\n", *json->at, 4)) {
        json->at++;
    }
    return json->at < json->end ? *json->at : 0;
}

static uint32_t hex(json_t *json) {
    uint32_t unit = 0;
    for (int digits = 0; digits < 4 && json->at < json->end; digits++) {
        int digit = *json->at++;
        unit = unit * 16 + (digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
    }
    return unit;
}

static void put(text_t *text, uint32_t point) {
    if (point < 0x80) {
        text->ptr[text->len++] = point;
        return;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    text->ptr[text->len++] = (0xff00 >> (more + 1) & 0xff) | point >> 6 * more;
    while (more-- > 0) {
        text->ptr[text->len++] = 0x80 | (point >> 6 * more & 0x3f);
    }
}

// Takes a text with its quotes. In memory it is never longer than in JSON.
static text_t take_text(json_t *json) {
    text_t text = {malloc(json->end - json->at + 1), 0};
    json->at++;
    while (json->at < json->end && *json->at != '"') {
        if (*json->at != '\\') {
            text.ptr[text.len++] = *json->at++;
            continue;
        }
        json->at++;
        int escape = *json->at++;
        const char *from = "bfnrt", *to = "\b\f\n\r\t", *found = strchr(from, escape);
        if (escape == 'u') {
            uint32_t point = hex(json);
            if (point >> 10 == 0x36 && json->end - json->at >= 6) {
                json->at += 2;
                point = 0x10000 + ((point & 0x3ff) << 10) + (hex(json) & 0x3ff);
            }
            put(&text, point);
        } else {
            text.ptr[text.len++] = found ? to[found - from] : escape;
        }
    }
    json->at++;
    text.ptr[text.len] = 0;
    return text;
}

static void skip_value(json_t *json) {
    int depth = 0;
    do {
        int next = peek(json);
        if (next == '"') {
            free(take_text(json).ptr);
            continue;
        }
        depth += (next == '{' || next == '[') - (next == '}' || next == ']');
        json->at++;
    } while (json->at < json->end && (depth > 0 || !strchr(",}", peek(json))));
}

// Takes the next key of an object with its colon. Before the first, `json` is at the object, later behind a value.
static bool next_key(json_t *json, text_t *key) {
    int next = peek(json);
    if (next != '{' && next != ',') {
        return false;
    }
    json->at++;
    if (peek(json) != '"') {
        return false;
    }
    *key = take_text(json);
    peek(json);
    json->at++;
    return true;
}

// True if the object has a text under the key.
static bool text_of(const uint8_t *object, size_t length, const char *key, text_t *text) {
    json_t json = {object, object + length};
    text_t name;
    while (next_key(&json, &name)) {
        bool is_it = name.len == strlen(key) && memcmp(name.ptr, key, name.len) == 0;
        free(name.ptr);
        if (is_it && peek(&json) == '"') {
            *text = take_text(&json);
            return true;
        }
        skip_value(&json);
    }
    return false;
}
