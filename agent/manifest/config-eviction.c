/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/config-eviction.h"

#include "agent/model/duration.h"
#include "agent/model/names.h"
#include "agent/model/quantity.h"
#include "common/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define TRANSITION_DEFAULT_USEC (300 * USEC_PER_SEC)

/* The kubelet's default thresholds, but at most a twentieth of the memory, because a board with 128
 * MiB never has 100 MiB available, and no pod would start. Unless mergeDefaultEvictionSettings is
 * set, a single configured threshold replaces all of them. */
static const struct {
        EvictionSignal signal;
        EvictionAmount value;
} hard_defaults[] = {
        { EVICTION_MEMORY, { .quantity = INT64_C(100) << 20, .fraction = 0.05 } },
        { EVICTION_NODE_FS, { .fraction = 0.10 } },
        { EVICTION_NODE_FS_INODES, { .fraction = 0.05 } },
        { EVICTION_IMAGE_FS, { .fraction = 0.15 } },
        { EVICTION_IMAGE_FS_INODES, { .fraction = 0.05 } },
};

/* An entry of one of the maps. */
typedef struct EvictionSetting {
        const Decoder *decoder;
        const char *map;
        const YamlNode *node; /* of the map */
        const KeyValue *pair;
        EvictionSignal signal;
} EvictionSetting;

static int eviction_setting_error(const EvictionSetting *entry, int r) {
        const DecodePath map = { .key = entry->map };
        const DecodePath path = { .parent = &map, .key = entry->pair->key, .is_map_key = true };

        return decode_error_at(entry->decoder, yaml_node_get(entry->node, entry->pair->key), &path,
                               r);
}

/* NAN if no number precedes the '%'. */
static double parse_percentage(const char *text) {
        char *end;
        double value = strtod(text, &end);

        return end > text && streq(end, "%") ? value / 100 : NAN;
}

/* The messages are those of Kubernetes. A percentage of 0 or 100 disables the threshold. */
static int parse_eviction_percentage(const EvictionSetting *entry, double *ret) {
        const char *value = entry->pair->value;
        double fraction = parse_percentage(value);
        Error *reterr = entry->decoder->reterr;
        char text[EXCERPT_SIZE];

        if (!isfinite(fraction))
                return error_setf(reterr, EINVAL, "must be a percentage such as 10%%, not '%s'",
                                  excerpt(text, value));
        if (fraction < 0)
                return error_setf(reterr, EINVAL, "must be >= 0%%, not %s", excerpt(text, value));
        if (fraction > 1)
                return error_setf(reterr, EINVAL, "must be <= 100%%, not %s", excerpt(text, value));
        *ret = fraction;
        return 0;
}

static int parse_quantity(const EvictionSetting *entry, int64_t least, int64_t *ret) {
        cleanup_with(quantity_done) Quantity quantity = { 0 };
        int r = quantity_parse(entry->pair->value, &quantity, entry->decoder->reterr);

        if (r < 0)
                return r;
        if (quantity.value < least)
                return error_setf(entry->decoder->reterr, EINVAL,
                                  least > 0 ? "must be positive, not %s"
                                            : "must be greater than or equal to 0, not %s",
                                  quantity.text);
        *ret = quantity.value;
        return 0;
}

static bool is_percentage(const char *text) {
        return text[0] && text[strlen(text) - 1] == '%';
}

/* 1, or 0 for a disabled threshold. */
static int parse_threshold(const EvictionSetting *entry, EvictionAmount *ret) {
        EvictionAmount amount = { 0 };
        int r;

        if (!is_percentage(entry->pair->value))
                r = parse_quantity(entry, 1, &amount.quantity);
        else
                r = parse_eviction_percentage(entry, &amount.fraction);
        if (r < 0)
                return eviction_setting_error(entry, r);
        *ret = amount;
        return amount.quantity > 0 || (amount.fraction > 0 && amount.fraction < 1);
}

static int parse_reclaim(const EvictionSetting *entry, EvictionAmount *ret) {
        EvictionAmount amount = { 0 };
        int r;

        if (!is_percentage(entry->pair->value))
                r = parse_quantity(entry, 0, &amount.quantity);
        else
                r = parse_eviction_percentage(entry, &amount.fraction);
        if (r >= 0 && is_percentage(entry->pair->value) && amount.fraction <= 0)
                r = error_setf(entry->decoder->reterr, EINVAL, "must be positive, not %s",
                               entry->pair->value);
        if (r < 0)
                return eviction_setting_error(entry, r);
        *ret = amount;
        return 0;
}

static EvictionThreshold *find_eviction_threshold(EvictionPolicy *policy, EvictionSignal signal,
                                                  bool is_soft) {
        for (size_t i = 0; i < policy->n_thresholds; i++)
                if (policy->thresholds[i].signal == signal &&
                    (policy->thresholds[i].grace_usec > 0) == is_soft)
                        return &policy->thresholds[i];
        return NULL;
}

static void add_eviction_threshold(EvictionPolicy *policy, const EvictionThreshold *threshold) {
        if (policy->n_thresholds < EVICTION_THRESHOLDS_MAX)
                policy->thresholds[policy->n_thresholds++] = *threshold;
}

static int apply_hard_threshold(const EvictionSetting *entry, Config *config) {
        EvictionThreshold threshold = { .signal = entry->signal };
        int r = parse_threshold(entry, &threshold.value);

        if (r > 0)
                add_eviction_threshold(&config->eviction, &threshold);
        return r;
}

/* A disabled threshold needs no grace period. */
static int apply_soft_threshold(const EvictionSetting *entry, Config *config) {
        const char *grace = string_map_get(&config->eviction_soft_grace_period, entry->pair->key);
        EvictionThreshold threshold = { .signal = entry->signal };
        int r = parse_threshold(entry, &threshold.value);

        if (r <= 0)
                return r;
        if (!grace)
                return eviction_setting_error(entry,
                                              error_setf(entry->decoder->reterr, EINVAL,
                                                         "needs a grace period of its own in "
                                                         "evictionSoftGracePeriod"));
        if (duration_parse(grace, &threshold.grace_usec) >=
            0) /* an invalid one is reported below */
                add_eviction_threshold(&config->eviction, &threshold);
        return 0;
}

static int apply_soft_grace_period(const EvictionSetting *entry, Config *config) {
        char text[EXCERPT_SIZE];
        uint64_t usec;

        if (duration_parse(entry->pair->value, &usec) >= 0)
                return 0;
        return eviction_setting_error(entry,
                                      error_setf(entry->decoder->reterr, EINVAL,
                                                 "must be a duration such as 1m30s, not '%s'",
                                                 excerpt(text, entry->pair->value)));
}

static int apply_minimum_reclaim(const EvictionSetting *entry, Config *config) {
        EvictionAmount amount = { 0 };
        int r = parse_reclaim(entry, &amount);

        if (r < 0)
                return r;
        for (int is_soft = 0; is_soft < 2; is_soft++) {
                EvictionThreshold *threshold =
                        find_eviction_threshold(&config->eviction, entry->signal, is_soft);

                if (threshold)
                        threshold->min_reclaim = amount;
        }
        return 0;
}

static int read_eviction_map(const Decoder *d, const YamlNode *root, const char *key,
                             const StringMap *map,
                             int (*on_entry)(const EvictionSetting *entry, Config *config),
                             Config *config) {
        for (size_t i = 0; i < map->n; i++) {
                EvictionSetting entry = {
                        .decoder = d,
                        .map = key,
                        .node = yaml_node_get(root, key),
                        .pair = &map->items[i],
                        .signal = eviction_signal_by_name(map->items[i].key),
                };
                int r;

                if (entry.signal == N_EVICTION_SIGNALS)
                        return eviction_setting_error(
                                &entry,
                                error_setf(d->reterr, EINVAL, "unsupported eviction signal"));
                r = on_entry(&entry, config);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void add_default_thresholds(const YamlNode *root, Config *config) {
        const YamlNode *node = root ? yaml_node_get(root, "evictionHard") : NULL;
        bool is_said = node && node->kind != YAML_NODE_NULL;

        for (size_t i = 0; i < N_ELEMENTS(hard_defaults); i++) {
                const char *name = eviction_signals[hard_defaults[i].signal].name;

                if (is_said && (!config->merge_default_eviction_settings ||
                                string_map_get(&config->eviction_hard, name)))
                        continue;
                add_eviction_threshold(&config->eviction,
                                       &(EvictionThreshold){ .signal = hard_defaults[i].signal,
                                                             .value = hard_defaults[i].value });
        }
}

int config_read_eviction(const Decoder *d, const YamlNode *root, Config *config) {
        const struct {
                const char *key;
                const StringMap *map;
                int (*on_entry)(const EvictionSetting *entry, Config *config);
        } maps[] = {
                { "evictionHard", &config->eviction_hard, apply_hard_threshold },
                { "evictionSoft", &config->eviction_soft, apply_soft_threshold },
                { "evictionSoftGracePeriod", &config->eviction_soft_grace_period,
                  apply_soft_grace_period },
                { "evictionMinimumReclaim", &config->eviction_minimum_reclaim,
                  apply_minimum_reclaim },
        };
        EvictionPolicy *policy = &config->eviction;

        add_default_thresholds(root, config);
        for (size_t i = 0; i < N_ELEMENTS(maps); i++) {
                int r = read_eviction_map(d, root, maps[i].key, maps[i].map, maps[i].on_entry,
                                          config);

                if (r < 0)
                        return r;
        }
        if (config->eviction_pressure_transition_period)
                (void) duration_parse(config->eviction_pressure_transition_period,
                                      &policy->transition_usec);
        if (policy->transition_usec == 0) /* as in the kubelet, unset means the default */
                policy->transition_usec = TRANSITION_DEFAULT_USEC;
        policy->max_pod_grace_seconds = config->eviction_max_pod_grace_period.value;
        policy->has_memcg_notification = config->kernel_memcg_notification;
        return 0;
}
