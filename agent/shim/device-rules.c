/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/device-rules.h"

#include "common/array.h"
#include "common/json-text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- devices as text ---- */

static char *next_word(char **rest) {
        char *word = *rest ? strsep(rest, " ") : NULL;

        return word && word[0] ? word : NULL;
}

static bool is_access(const char *text) {
        return text[0] && strlen(text) <= 3 && strspn(text, "rwm") == strlen(text);
}

int live_device_parse(char *text, LiveDevice *ret) {
        char *rest = text, *type = next_word(&rest), *number = next_word(&rest),
             *access = next_word(&rest), *mode = next_word(&rest), *owner = next_word(&rest);

        *ret = (LiveDevice){ .host_path = next_word(&rest), .path = next_word(&rest) };
        if (!type || !number || !access || !mode || !owner || !ret->host_path || !ret->path || rest)
                return -EBADMSG;
        if (type[1] || !strchr("cb", type[0]) || !is_access(access) ||
            strncmp(ret->path, "/dev/", 5) != 0 || !ret->path[5] ||
            sscanf(number, "%u:%u", &ret->major, &ret->minor) != 2 ||
            sscanf(mode, "%o", &ret->mode) != 1 ||
            sscanf(owner, "%u:%u", &ret->uid, &ret->gid) != 2)
                return -EBADMSG;
        ret->type = type[0];
        (void) snprintf(ret->access, sizeof(ret->access), "%s", access);
        return 0;
}

static unsigned access_bits(const char *text) {
        unsigned bits = 0;

        for (; *text; text++)
                bits |= *text == 'r' ? DEVICE_READ : *text == 'w' ? DEVICE_WRITE : DEVICE_MKNOD;
        return bits;
}

/* ---- rules ---- */

static int append_rule(DeviceRules *rules, const DeviceRule *rule) {
        DeviceRule *item;

        if (rules->n == DEVICE_RULES_MAX)
                return -E2BIG;
        item = ARRAY_APPEND(rules->items, rules->n);
        if (!item)
                return -ENOMEM;
        *item = *rule;
        return 0;
}

static DeviceRule rule_of(const LiveDevice *device) {
        return (DeviceRule){ .type = device->type,
                             .access = access_bits(device->access),
                             .major = device->major,
                             .minor = device->minor,
                             .is_allowed = true };
}

static bool rules_equal(const DeviceRule *a, const DeviceRule *b) {
        return a->type == b->type && a->access == b->access && a->major == b->major &&
               a->minor == b->minor && a->is_allowed == b->is_allowed;
}

int device_rules_add(DeviceRules *rules, const LiveDevice *device) {
        const DeviceRule rule = rule_of(device);

        return append_rule(rules, &rule);
}

static int64_t number_in(const json_t *json, const char *key) {
        const json_t *value = json_object_get(json, key);

        return json_is_integer(value) ? json_integer_value(value) : -1;
}

static DeviceRule read_rule(const json_t *json) {
        const char *type = json_text(json, "type"), *access = json_text(json, "access");

        if (!type)
                type = "a";
        return (DeviceRule){ .type = *type,
                             .access = access ? access_bits(access) : DEVICE_ALL,
                             .major = number_in(json, "major"),
                             .minor = number_in(json, "minor"),
                             .is_allowed = json_is_true(json_object_get(json, "allow")) };
}

/* The devices that the OCI runtime specification gives each container, and device nodes of any
 * kind, which cannot be opened. */
static int append_default_rules(DeviceRules *rules) {
        static const DeviceRule defaults[] = {
                { 'c', DEVICE_MKNOD, -1, -1, true }, { 'b', DEVICE_MKNOD, -1, -1, true },
                { 'c', DEVICE_ALL, 1, 3, true },     { 'c', DEVICE_ALL, 1, 5, true },
                { 'c', DEVICE_ALL, 1, 7, true },     { 'c', DEVICE_ALL, 1, 8, true },
                { 'c', DEVICE_ALL, 1, 9, true },     { 'c', DEVICE_ALL, 5, 0, true },
                { 'c', DEVICE_ALL, 5, 2, true },     { 'c', DEVICE_ALL, 136, -1, true },
        };
        int r = 0;

        for (size_t i = 0; i < N_ELEMENTS(defaults) && r >= 0; i++)
                r = append_rule(rules, &defaults[i]);
        return r;
}

/* Removes the last equal rule, because another provider may have added the same device. */
static void remove_rule(DeviceRules *rules, const DeviceRule *rule) {
        for (size_t i = rules->n; i-- > 0;)
                if (rules_equal(&rules->items[i], rule)) {
                        ARRAY_REMOVE(rules->items, rules->n, i);
                        return;
                }
}

int device_rules_load(const json_t *config, const LiveDevice *first, size_t n_first,
                      DeviceRules *ret) {
        const json_t *list = json_object_get(
                json_object_get(json_object_get(config, "linux"), "resources"), "devices");
        DeviceRules rules = { 0 }, given = { 0 };
        const json_t *item;
        size_t i;
        int r = 0;

        json_array_foreach(list, i, item) {
                const DeviceRule rule = read_rule(item);

                if (r >= 0)
                        r = append_rule(&given, &rule);
        }
        for (i = 0; i < n_first; i++) {
                const DeviceRule rule = rule_of(&first[i]);

                remove_rule(&given, &rule);
        }
        /* The first rule applies to all devices. */
        for (i = 0; i < given.n && r >= 0; i++) {
                r = append_rule(&rules, &given.items[i]);
                if (r >= 0 && i == 0)
                        r = append_default_rules(&rules);
        }
        free(given.items);
        if (r < 0)
                free(rules.items);
        else
                *ret = rules;
        return r;
}

bool device_rules_allow_all(const DeviceRules *rules) {
        for (size_t i = 0; i < rules->n; i++)
                if (!rules->items[i].is_allowed)
                        return false;
        return rules->n > 0 && rules->items[0].type == 'a';
}

static bool concerns(const DeviceRule *rule, const LiveDevice *device) {
        return (rule->type == 'a' || rule->type == device->type) &&
               (rule->major < 0 || rule->major == device->major) &&
               (rule->minor < 0 || rule->minor == device->minor) &&
               (rule->access & access_bits(device->access)) == access_bits(device->access);
}

bool device_rules_allow(const DeviceRules *rules, const LiveDevice *device) {
        for (size_t i = rules->n; i-- > 0;)
                if (concerns(&rules->items[i], device))
                        return rules->items[i].is_allowed;
        return false;
}
