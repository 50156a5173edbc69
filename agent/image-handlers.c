/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about images (list, pull, remove, prune) on the local socket, and the image store's
 * question whether an image is used. */

#include "agent/image-handlers.h"

#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <jansson.h>

#define cleanup_json cleanup_with(json_decrefp)

/* While there is no pod manager it is not known which pods there are. */
static bool is_image_used_by_pods(const char *reference, void *userdata) {
        PodManager *pod_manager = ((Agent *) userdata)->pod_manager;

        return !pod_manager || pod_manager_uses_image(pod_manager, reference);
}

static json_t *image_names_to_json(char *const *strv) {
        json_t *array = json_array();

        for (; array && strv && *strv; strv++)
                (void) json_array_append_new(array, json_string(*strv));
        return array;
}

static void add_image_json(const ImageInfo *info, void *userdata) {
        char time[RFC3339_SIZE];
        json_t *one =
                json_pack("{s:s, s:o, s:b, s:s*, s:s*}", "digest", info->digest, "names",
                          image_names_to_json(info->names), "inUse", info->is_in_use, "archive",
                          info->archive, "usedAt",
                          info->last_used_at ? format_rfc3339(time, info->last_used_at) : NULL);

        if (one && info->size_bytes > 0)
                (void) json_object_set_new(one, "sizeBytes",
                                           json_integer((json_int_t) info->size_bytes));
        (void) json_array_append_new(userdata, one);
}

static void add_pull_json(const ImagePull *pull, void *userdata) {
        (void) json_array_append_new(
                userdata, json_pack("{s:s, s:I, s:I, s:b, s:s*, s:s*}", "reference",
                                    pull->reference, "doneBytes", (json_int_t) pull->done,
                                    "totalBytes", (json_int_t) pull->total, "isEnded",
                                    pull->is_ended, "error", pull->error, "digest", pull->digest));
}

char *agent_list_images(void *userdata) {
        const Agent *agent = userdata;
        ImageStore *store = agent->images;
        cleanup_json json_t *images = json_array(), *pulls = json_array(), *all = NULL;

        if (!images || !pulls || image_store_foreach(store, add_image_json, images) < 0)
                return NULL;
        manual_pulls_foreach(&agent->manual_pulls, add_pull_json, pulls);
        image_store_foreach_pull(store, add_pull_json, pulls);
        all = json_pack("{s:s, s:s, s:O, s:O}", "preload", image_store_preload_path(store), "store",
                        image_store_path(store), "images", images, "pulls", pulls);
        return all ? json_dumps(all, JSON_COMPACT) : NULL;
}

int agent_pull_image(void *userdata, const char *image, Error *reterr) {
        Agent *agent = userdata;

        return manual_pulls_start(&agent->manual_pulls, agent->images, image, reterr);
}

int agent_remove_image(void *userdata, const char *image, Error *reterr) {
        return image_store_remove(((Agent *) userdata)->images, image, reterr);
}

int agent_prune_images(void *userdata, const char *image, Error *reterr) {
        return image_store_prune(((Agent *) userdata)->images);
}

int open_image_store(void *userdata, sd_event *event, const char *helper_path,
                     const char *state_dir, const Config *config, image_store_changed_t on_changed,
                     ImageStore **ret, Error *reterr) {
        return image_store_new(
                &(ImageStoreConfig){
                        .event = event,
                        .helper_path = helper_path,
                        .state_dir = state_dir,
                        .config = &config->mainstay,
                        .is_wanted = is_image_used_by_pods,
                        .gc_high_percent = config->image_gc_high_percent,
                        .gc_low_percent = config->image_gc_low_percent,
                        .gc_min_age_usec = config->image_gc_min_age_usec,
                },
                on_changed, userdata, ret, reterr);
}
