/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-devices/device-facts.h"

#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <strings.h>

enum {
        IDENTITY_MAX = 160
};

void device_facts_done(DeviceFacts *facts) {
        free(facts->syspath);
        free(facts->subsystem);
        free(facts->sysname);
        free(facts->node);
        strv_free(facts->links);
        free(facts->vendor);
        free(facts->product);
        free(facts->serial);
        free(facts->interface);
        free(facts->part);
        free(facts->place);
        string_map_done(&facts->properties);
        *facts = (DeviceFacts){ 0 };
}

/* ---- rules ---- */

static const char *without_prefix(const char *number) {
        if (strncasecmp(number, "0x", 2) == 0)
                number += 2;
        while (number[0] == '0' && number[1])
                number++;
        return number;
}

static bool has_number(const char *number, const char *wanted) {
        return !wanted ||
               (number && strcasecmp(without_prefix(number), without_prefix(wanted)) == 0);
}

static bool text_is_wanted(const char *text, const char *wanted) {
        return !wanted || streq_ptr(text, wanted);
}

static bool has_properties(const DeviceFacts *facts, const StringMap *wanted) {
        for (size_t i = 0; i < wanted->n; i++) {
                const char *value = string_map_get(&facts->properties, wanted->items[i].key);

                if (!value || fnmatch(strna(wanted->items[i].value), value, 0) != 0)
                        return false;
        }
        return true;
}

static bool has_path(const DeviceFacts *facts, const char *pattern) {
        if (fnmatch(pattern, facts->node, FNM_PATHNAME) == 0)
                return true;
        strv_foreach(link, facts->links)
                if (fnmatch(pattern, *link, FNM_PATHNAME) == 0)
                        return true;
        return false;
}

bool device_facts_match(const DeviceFacts *facts, const NodeDeviceConfig *config) {
        const DeviceMatch *match = config->match;

        if (!facts->node)
                return false;
        if (!match)
                return has_path(facts, config->path);
        return text_is_wanted(facts->subsystem, match->subsystem) &&
               has_number(facts->vendor, match->vendor) &&
               has_number(facts->product, match->product) &&
               text_is_wanted(facts->serial, match->serial) &&
               has_properties(facts, &match->properties);
}

/* ---- identity ---- */

/* The name without its first number, which the kernel assigns in order of arrival: "ttyUSB0"
 * becomes "ttyUSB", "pcmC0D1p" becomes "pcmCD1p". Disks are numbered by letters, so their subsystem
 * is used. */
static char *kind_of(const DeviceFacts *facts) {
        size_t head = strcspn(facts->sysname, "0123456789"),
               number = strspn(facts->sysname + head, "0123456789");

        if (streq(strna(facts->subsystem), "block"))
                return strdup("block");
        return text_format("%.*s%s", (int) head, facts->sysname, facts->sysname + head + number);
}

static void make_safe(char *text) {
        static const char others[] = "-_.:+";

        for (char *p = text; *p; p++)
                if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                      (*p >= '0' && *p <= '9') || strchr(others, *p)))
                        *p = '_';
        if (strlen(text) > IDENTITY_MAX)
                text[IDENTITY_MAX] = '\0';
}

char *device_facts_identity(const DeviceFacts *facts) {
        cleanup_free char *kind = kind_of(facts);
        char *text = NULL;
        int r = -ENOMEM;

        if (!kind)
                return NULL;
        if (facts->serial)
                r = text_appendf(&text, "%s-%s:%s-%s", kind, strna(facts->vendor),
                                 strna(facts->product), facts->serial);
        else if (facts->place)
                r = text_appendf(&text, "%s-%s", kind, facts->place);
        else
                r = text_appendf(&text, "%s-%s", strna(facts->subsystem), facts->sysname);
        if (r >= 0 && facts->serial && facts->interface)
                r = text_appendf(&text, "-if%s", facts->interface);
        if (r >= 0 && (facts->serial || facts->place) && facts->part)
                r = text_appendf(&text, "-%s", facts->part);
        if (r < 0) {
                free(text);
                return NULL;
        }
        make_safe(text);
        return text;
}

/* ---- messages ---- */

static int add_condition(char **text, const char *name, const char *value) {
        if (!value)
                return 0;
        return text_appendf(text, "%s%s %s", *text ? ", " : "", name, value);
}

char *node_device_describe(const NodeDeviceConfig *config) {
        const DeviceMatch *match = config->match;
        char *text = NULL;
        int r;

        if (!match)
                return text_format("path %s", config->path);
        r = add_condition(&text, "subsystem", match->subsystem);
        if (r >= 0)
                r = add_condition(&text, "vendor", match->vendor);
        if (r >= 0)
                r = add_condition(&text, "product", match->product);
        if (r >= 0)
                r = add_condition(&text, "serial", match->serial);
        for (size_t i = 0; i < match->properties.n && r >= 0; i++)
                r = add_condition(&text, match->properties.items[i].key,
                                  strna(match->properties.items[i].value));
        if (r >= 0)
                return text;
        free(text);
        return NULL;
}
