/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and caches the API objects to which pods refer. A node can only read claims and their
 * volumes, not watch them: they are fetched until they are bound, which is permanent, and again
 * while their volume may be expanded. A volume of a CSI driver needs further objects: its driver,
 * its secrets, and its attachment. */

#include "agent/apiserver/referenced-objects.h"

#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/request-back-off.h"
#include "agent/kubeclient/work-queue.h"
#include "agent/manifest/manifest.h"
#include "agent/model/csi-volume.h"
#include "agent/model/names.h"
#include "agent/model/references.h"
#include "agent/model/volume-expansion.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/file.h"
#include "common/log.h"
#include "common/text.h"

/* A volume should be attached within this time; afterwards it is queried less often. */
#define ATTACH_USEC (120 * USEC_PER_SEC)

enum {
        OBJECT_FILE_MAX_BYTES = 4 * 1024 * 1024,
        FETCHES_MAX = 4, /* at a time */
};

typedef struct ReferencedObject ReferencedObject;
struct ReferencedObject {
        ReferencedObject *next;
        ReferencedObjects *owner;
        char *key; /* see object_key_format() */
        char *namespace;
        char *name;
        ObjectKind kind;
        DataObject *object; /* NULL: it does not exist, or is not known yet */
        bool is_known;      /* it is known from the cache or the server whether it exists */
        bool was_absent;    /* it did not exist according to the cache, which is assumed if the
                             * server does not respond */
        bool is_unanswered; /* the server could not be queried */
        bool was_listed;    /* in the list that is being read */
        unsigned generation;
        KubeReflector *reflector;
        bool is_fetched;      /* of a kind that is not watched, and will not change any more */
        bool awaits_answer;   /* it is requested again for a new pod */
        uint64_t asked_since; /* boot time of the first request; 0: none yet */
};

struct ReferencedObjects {
        ReferencedObjectsSpec spec;
        KubeClient *client;      /* NULL: none yet */
        KubeWorkQueue *fetches;  /* by key; NULL while there is no client */
        ReferencedObject *first; /* sorted by key */
        unsigned generation;
};

static const struct {
        const char *group; /* NULL: not read */
        const char *plural;
        bool is_fetched; /* read by name instead of watched */
} watched_kinds[N_OBJECT_KINDS] = {
        [OBJECT_CONFIG_MAP] = { "/api/v1", "configmaps" },
        [OBJECT_SECRET] = { "/api/v1", "secrets" },
        [OBJECT_RUNTIME_CLASS] = { "/apis/node.k8s.io/v1", "runtimeclasses" },
        [OBJECT_VOLUME_CLAIM] = { "/api/v1", "persistentvolumeclaims", true },
        [OBJECT_PERSISTENT_VOLUME] = { "/api/v1", "persistentvolumes", true },
        [OBJECT_CSI_DRIVER] = { "/apis/storage.k8s.io/v1", "csidrivers" },
        [OBJECT_VOLUME_ATTACHMENT] = { "/apis/storage.k8s.io/v1", "volumeattachments", true },
};

/* ---- the cache ---- */

/* The text for an object that does not exist: a pod for which it is optional starts without it. */
static const char absent_object[] = "null\n";

static void cache_object(ReferencedObject *object, const char *json) {
        object->was_absent = false;
        apiserver_cache_write(object->owner->spec.cache, cached_objects_directory, object->key,
                              json);
}

static void cache_absence(ReferencedObject *object) {
        if (object->was_absent)
                return;
        cache_object(object, absent_object);
        object->was_absent = true;
}

static void uncache_object(const ReferencedObject *object) {
        apiserver_cache_write(object->owner->spec.cache, cached_objects_directory, object->key,
                              NULL);
}

static int parse_referenced_object(const ReferencedObject *object, const char *json, size_t length,
                                   DataObject **ret, Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        int r = manifest_parse_api(object->key, object_kind_names[object->kind], json, length,
                                   object->owner->spec.node_name, &objects, reterr);

        if (r < 0)
                return r;
        if (objects.data.n != 1 || objects.data.items[0]->kind != object->kind)
                return error_setf(reterr, EINVAL, "%s: is not a %s", object->key,
                                  object_kind_names[object->kind]);
        *ret = objects.data.items[0];
        objects.data.n = 0;
        return 0;
}

static void load_cached_object(ReferencedObject *object) {
        ApiServerCache *cache = object->owner->spec.cache;
        cleanup_free char *json = NULL;
        cleanup_error Error error = ERROR_NULL;
        DataObject *data = NULL;
        int r = apiserver_cache_read(cache, cached_objects_directory, object->key,
                                     OBJECT_FILE_MAX_BYTES, &json);

        if (r == -ENOENT || r == -EAGAIN)
                return;
        object->was_absent = r >= 0 && streq(json, absent_object);
        if (object->was_absent)
                return;
        if (r >= 0)
                r = parse_referenced_object(object, json, strlen(json), &data, &error);
        if (json)
                explicit_bzero(json, strlen(json));
        if (r < 0) {
                log_error("Cannot use the cached object %s: %s; pods that need it wait for the API "
                          "server",
                          object->key, error_message(&error, r));
                if (is_content_damage(json, r))
                        apiserver_cache_set_aside(cache, cached_objects_directory, object->key);
                return;
        }
        object->object = data;
        object->is_known = true;
}

/* ---- the watch ---- */

static void add_objects_of_driver(const ReferencedObject *driver);

/* Pods depend on these objects only through a claim. */
static void schedule_claims(const ReferencedObjects *objects) {
        for (const ReferencedObject *object = objects->first; object; object = object->next)
                if (object->kind == OBJECT_VOLUME_CLAIM)
                        object_updates_schedule(objects->spec.updates, object->key);
}

static void set_referenced_object(ReferencedObject *object, DataObject *data) {
        data_object_free(object->object);
        object->object = data;
        object->is_known = true;
        object_updates_schedule(object->owner->spec.updates, object->key);
        if (object->kind == OBJECT_CSI_DRIVER)
                add_objects_of_driver(object);
        if (object->kind == OBJECT_CSI_DRIVER || object->kind == OBJECT_VOLUME_ATTACHMENT)
                schedule_claims(object->owner);
}

static void on_referenced_object(KubeWatchEvent change, const char *json, size_t length,
                                 void *userdata) {
        ReferencedObject *object = userdata;
        cleanup_error Error error = ERROR_NULL;
        DataObject *data = NULL;
        int r;

        if (change == KUBE_DELETED) {
                cache_absence(object);
                set_referenced_object(object, NULL);
                return;
        }
        object->was_listed = true;
        r = parse_referenced_object(object, json, length, &data, &error);
        if (r < 0) {
                log_error("Cannot read an object of the API server: %s; the last valid version "
                          "stays in use",
                          error_message(&error, r));
                return;
        }
        cache_object(object, json);
        set_referenced_object(object, data);
}

static void on_referenced_list_begin(void *userdata) {
        ((ReferencedObject *) userdata)->was_listed = false;
}

static void on_referenced_list_end(bool is_complete, void *userdata) {
        ReferencedObject *object = userdata;

        if (!is_complete || object->was_listed)
                return;
        cache_absence(object);
        if (object->object || !object->is_known)
                set_referenced_object(object, NULL);
}

static void on_object_watch_error(const char *error, unsigned status, void *userdata) {
        ReferencedObject *object = userdata;

        bool is_unreachable =
                connection_status_is_unreachable(object->owner->spec.connection, error, status);

        object->is_unanswered = is_unreachable || status == 401 || status == 429 || status >= 500;
        if (!object->is_known && object->was_absent && object->is_unanswered)
                set_referenced_object(object, NULL);
        if (!is_unreachable && error)
                log_warning("Cannot watch %s at the API server: %s; %s", object->key, error,
                            kube_back_off_retry_hint(0));
}

static char *format_collection_path(ObjectKind kind, const char *namespace) {
        return text_format("%s%s%s/%s", watched_kinds[kind].group,
                           namespace[0] ? "/namespaces/" : "", namespace,
                           watched_kinds[kind].plural);
}

/* Immediately after a pod has been bound, the server may still refuse the node its objects. */
static int watch_referenced_object(ReferencedObject *object, const char *namespace,
                                   const char *name) {
        ReferencedObjects *owner = object->owner;
        cleanup_free char *path = NULL;

        if (!owner->client || object->reflector)
                return 0;
        path = format_collection_path(object->kind, namespace);
        if (!path)
                return -ENOMEM;
        return kube_reflector_new(owner->spec.event,
                                  &(KubeReflectorSpec){ .client = owner->client,
                                                        .path = path,
                                                        .field_selector = { "metadata.name", name },
                                                        .may_soon_be_allowed = true,
                                                        .on_object = on_referenced_object,
                                                        .on_list_begin = on_referenced_list_begin,
                                                        .on_list_end = on_referenced_list_end,
                                                        .on_error = on_object_watch_error,
                                                        .userdata = object },
                                  &object->reflector);
}

/* ---- the set of objects ---- */

static void referenced_object_free(ReferencedObject *object) {
        kube_reflector_free(object->reflector);
        data_object_free(object->object);
        free(object->key);
        free(object->namespace);
        free(object->name);
        free(object);
}

int referenced_objects_new(const ReferencedObjectsSpec *spec, ReferencedObjects **ret) {
        ReferencedObjects *objects = calloc(1, sizeof(*objects));

        if (!objects)
                return -ENOMEM;
        objects->spec = *spec;
        *ret = objects;
        return 0;
}

static void free_referenced_objects(ReferencedObjects *objects) {
        while (objects->first) {
                ReferencedObject *object = objects->first;

                objects->first = object->next;
                referenced_object_free(object);
        }
}

void referenced_objects_forget_cached(ReferencedObjects *objects) {
        free_referenced_objects(objects);
        apiserver_cache_empty(objects->spec.cache, cached_objects_directory);
}

ReferencedObjects *referenced_objects_free(ReferencedObjects *objects) {
        if (!objects)
                return NULL;
        kube_work_queue_free(objects->fetches);
        free_referenced_objects(objects);
        free(objects);
        return NULL;
}

/* The link to the object with this key, or to the place where it would be inserted. */
static ReferencedObject **find_object_link(ReferencedObjects *objects, const char *key) {
        ReferencedObject **link = &objects->first;

        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->next;
        return link;
}

static ReferencedObject *get_referenced_object(ReferencedObjects *objects, const ObjectKey *key) {
        cleanup_free char *text = NULL;
        ReferencedObject **link, *object;

        if (object_key_format(key, &text) < 0)
                return NULL;
        link = find_object_link(objects, text);
        if (*link && streq((*link)->key, text))
                return *link;
        object = calloc(1, sizeof(*object));
        if (!object)
                return NULL;
        object->owner = objects;
        object->kind = key->kind;
        object->key = TAKE_PTR(text);
        object->namespace = strdup(key->namespace);
        object->name = strdup(key->name);
        if (!object->namespace || !object->name) {
                referenced_object_free(object);
                return NULL;
        }
        object->next = *link;
        *link = object;
        load_cached_object(object);
        return object;
}

/* ---- objects that are not watched ---- */

static int add_referenced_object(const ObjectKey *key, void *userdata);

/* An unbound claim will still change. An object that was read from the cache may have changed while
 * no agent was running, so it is read once more. */
static bool is_object_settled(const ReferencedObject *object) {
        if (!object->object)
                return false;
        if (object->kind == OBJECT_VOLUME_ATTACHMENT)
                return object->object->attachment.is_attached;
        return object->kind != OBJECT_VOLUME_CLAIM || volume_claim_is_bound(&object->object->claim);
}

static ReferencedObject *find_object_by_key(const ReferencedObjects *objects, const char *key) {
        for (ReferencedObject *object = objects->first; object; object = object->next)
                if (streq(object->key, key))
                        return object;
        return NULL;
}

static ReferencedObject *find_referenced_object(const ReferencedObjects *objects,
                                                const ObjectKey *key) {
        cleanup_free char *text = NULL;

        if (key->source != OBJECT_SOURCE_APISERVER || !key->name ||
            !watched_kinds[key->kind].group || object_key_format(key, &text) < 0)
                return NULL;
        return find_object_by_key(objects, text);
}

/* NULL: the claim has none, or it was not requested yet. */
static ReferencedObject *find_volume_of_claim(const ReferencedObject *claim) {
        const char *name = claim->object ? claim->object->claim.spec.volume_name : NULL;

        return find_referenced_object(
                claim->owner,
                &(ObjectKey){ OBJECT_SOURCE_APISERVER, OBJECT_PERSISTENT_VOLUME, "", name });
}

/* The same for a volume of a CSI driver. */
static ReferencedObject *find_attachment_of_volume(const ReferencedObject *volume) {
        const CsiPersistentVolumeSource *csi = volume->object ? volume->object->volume.csi : NULL;
        char name[CSI_NAME_SIZE];

        if (!csi)
                return NULL;
        csi_attachment_name(csi->handle, csi->driver, volume->owner->spec.node_name, name);
        return find_referenced_object(
                volume->owner,
                &(ObjectKey){ OBJECT_SOURCE_APISERVER, OBJECT_VOLUME_ATTACHMENT, "", name });
}

static int add_secret_of_volume(ReferencedObjects *objects, const SecretReference *secret) {
        if (!secret || !secret->name || !secret->namespace)
                return 0;
        return add_referenced_object(&(ObjectKey){ OBJECT_SOURCE_APISERVER, OBJECT_SECRET,
                                                   secret->namespace, secret->name },
                                     objects);
}

/* Adds the objects that a node needs to mount a volume of a CSI driver. Its VolumeAttachment is
 * requested once it is known that the driver attaches volumes. 0 or -ENOMEM. */
static int add_objects_of_volume(const ReferencedObject *volume) {
        const CsiPersistentVolumeSource *csi = volume->object ? volume->object->volume.csi : NULL;
        ObjectKey key = { OBJECT_SOURCE_APISERVER, OBJECT_CSI_DRIVER, "",
                          csi ? csi->driver : NULL };
        ReferencedObjects *owner = volume->owner;
        char name[CSI_NAME_SIZE];
        const DataObject *driver;
        int r;

        if (!csi)
                return 0;
        r = add_secret_of_volume(owner, csi->stage_secret);
        if (r >= 0)
                r = add_secret_of_volume(owner, csi->publish_secret);
        if (r >= 0)
                r = add_secret_of_volume(owner, csi->expand_secret);
        if (r >= 0)
                r = add_referenced_object(&key, owner);
        driver = referenced_objects_find(owner, &key);
        if (r < 0 || referenced_objects_is_pending(owner, &key) ||
            (driver && !csi_driver_must_attach(&driver->csi_driver)))
                return r;
        csi_attachment_name(csi->handle, csi->driver, owner->spec.node_name, name);
        key = (ObjectKey){ OBJECT_SOURCE_APISERVER, OBJECT_VOLUME_ATTACHMENT, "", name };
        return add_referenced_object(&key, owner);
}

static void add_objects_of_driver(const ReferencedObject *driver) {
        int r = 0;

        for (const ReferencedObject *object = driver->owner->first; object; object = object->next)
                if (object->kind == OBJECT_PERSISTENT_VOLUME && object->object &&
                    object->object->volume.csi &&
                    streq(object->object->volume.csi->driver, driver->name) && r >= 0)
                        r = add_objects_of_volume(object);
        if (r < 0)
                log_error("Cannot read the attachments of volumes of the CSI driver %s: %s",
                          driver->name, strerror(-r));
}

/* The volume of a claim is read once the claim names it. 0 or -ENOMEM. */
static int add_volume_of_claim(const ReferencedObject *claim) {
        const char *name = claim->object ? claim->object->claim.spec.volume_name : NULL;

        if (claim->kind != OBJECT_VOLUME_CLAIM || !name)
                return 0;
        return add_referenced_object(
                &(ObjectKey){ OBJECT_SOURCE_APISERVER, OBJECT_PERSISTENT_VOLUME, "", name },
                claim->owner);
}

static int fetch_referenced_object(ReferencedObject *object) {
        ReferencedObjects *owner = object->owner;
        int r = add_volume_of_claim(object);

        if (r >= 0 && object->kind == OBJECT_PERSISTENT_VOLUME)
                r = add_objects_of_volume(object);
        if (r < 0 || object->is_fetched || !owner->fetches)
                return r;
        object->asked_since = now_boottime_usec();
        object->is_fetched = true;
        return kube_work_queue_add(owner->fetches, object->key);
}

/* A changed volume affects the pods of the claims that are bound to it. */
static void schedule_pods_of_volume(const ReferencedObject *volume) {
        for (const ReferencedObject *object = volume->owner->first; object; object = object->next)
                if (object->kind == OBJECT_VOLUME_CLAIM && object->object &&
                    streq_ptr(object->object->claim.spec.volume_name, volume->name))
                        object_updates_schedule(volume->owner->spec.updates, object->key);
}

static int build_object_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        const ReferencedObject *object = find_object_by_key(userdata, key);
        cleanup_free char *collection = NULL;
        char *path;

        if (!object)
                return 0;
        collection = format_collection_path(object->kind, object->namespace);
        path = collection ? text_format("%s/%s", collection, object->name) : NULL;
        if (!path)
                return -ENOMEM;
        *ret = (KubeRequestSpec){ .method = "GET", .path = path };
        return 1;
}

/* A controller attaches the volume within seconds. */
static KubeWorkResult retry_fetch(const ReferencedObject *object) {
        bool is_soon = object->kind == OBJECT_VOLUME_ATTACHMENT &&
                       now_boottime_usec() - object->asked_since < ATTACH_USEC;

        return is_soon ? KUBE_WORK_RETRY_SOON : KUBE_WORK_RETRY_LATER;
}

/* The controller changes the volume before the claim. */
static void refresh_volume_of_claim(const ReferencedObject *claim) {
        const ReferencedObject *volume = find_volume_of_claim(claim);

        if (volume && volume->object)
                (void) kube_work_queue_add(claim->owner->fetches, volume->key);
}

/* Takes 'data'. An unchanged object causes no update of pods. */
static void take_referenced_object(ReferencedObject *object, const char *json, DataObject *data) {
        bool is_known = object->object;
        bool is_same = is_known && schema_equal(object_schemas[object->kind], object->object, data);

        if (is_same)
                data_object_free(data);
        else {
                cache_object(object, json);
                set_referenced_object(object, data);
                if (object->kind == OBJECT_PERSISTENT_VOLUME)
                        schedule_pods_of_volume(object);
        }
        /* A volume that is already known belonged to another claim. */
        if (object->kind == OBJECT_VOLUME_CLAIM &&
            (!is_same || volume_claim_is_resizing(&object->object->claim)))
                refresh_volume_of_claim(object);
}

static void note_answer(ReferencedObject *object) {
        const ReferencedObjectsSpec *spec = &object->owner->spec;

        if (object->awaits_answer)
                spec->on_renewed(spec->userdata);
        object->awaits_answer = false;
}

static KubeWorkResult take_fetched_object(ReferencedObject *object, const KubeResponse *response) {
        cleanup_error Error error = ERROR_NULL;
        DataObject *data = NULL;
        int r = parse_referenced_object(object, response->body, response->length, &data, &error);

        if (r < 0) {
                log_error("Cannot read an object of the API server: %s; trying again within a "
                          "minute",
                          error_message(&error, r));
                return KUBE_WORK_RETRY_LATER;
        }
        take_referenced_object(object, response->body, data);
        note_answer(object);
        if (add_volume_of_claim(object) < 0 ||
            (object->kind == OBJECT_PERSISTENT_VOLUME && add_objects_of_volume(object) < 0))
                return KUBE_WORK_RETRY_LATER;
        return is_object_settled(object) ? KUBE_WORK_DONE : retry_fetch(object);
}

/* A node may not even request an attachment that does not exist. */
static bool is_absent(const ReferencedObject *object, unsigned status) {
        return status == 404 || (status == 403 && object->kind == OBJECT_VOLUME_ATTACHMENT);
}

static KubeWorkResult on_object_response(const char *key, const KubeResponse *response,
                                         void *userdata) {
        ReferencedObject *object = find_object_by_key(userdata, key);

        if (!object)
                return KUBE_WORK_DONE;
        if (response->error)
                return KUBE_WORK_RETRY_LATER;
        if (response->status == 200)
                return take_fetched_object(object, response);
        if (is_absent(object, response->status)) {
                uncache_object(object);
                if (object->object || !object->is_known)
                        set_referenced_object(object, NULL);
                note_answer(object);
                return retry_fetch(object);
        } else {
                cleanup_free char *error = kube_response_describe_error(response);

                on_object_watch_error(error, response->status, object);
        }
        return KUBE_WORK_RETRY_LATER;
}

/* The server does not check the names to which a pod refers. An object cannot have an invalid name,
 * and an invalid name must not become a part of a path. */
static bool may_exist(const ObjectKey *key) {
        return key->source == OBJECT_SOURCE_APISERVER && is_dns_subdomain(key->name) &&
               (!key->namespace[0] || is_dns_subdomain(key->namespace));
}

static int add_referenced_object(const ObjectKey *key, void *userdata) {
        ReferencedObjects *objects = userdata;
        ReferencedObject *object;

        if (!watched_kinds[key->kind].group || !may_exist(key))
                return 0;
        object = get_referenced_object(objects, key);
        if (!object)
                return -ENOMEM;
        object->generation = objects->generation;
        return watched_kinds[key->kind].is_fetched
                       ? fetch_referenced_object(object)
                       : watch_referenced_object(object, key->namespace, key->name);
}

/* ---- claims of new pods ---- */

/* Does nothing if the first response is still missing, because no pod starts before that. */
static void renew_object(ReferencedObject *object) {
        if (!object || !object->object)
                return;
        object->awaits_answer = true;
        object->is_fetched = false;
}

static int renew_claim(const ObjectKey *key, void *userdata) {
        ReferencedObject *claim, *volume;

        if (key->kind != OBJECT_VOLUME_CLAIM || !may_exist(key))
                return 0;
        claim = get_referenced_object(userdata, key);
        if (!claim)
                return -ENOMEM;
        renew_object(claim);
        volume = find_volume_of_claim(claim);
        renew_object(volume);
        renew_object(volume ? find_attachment_of_volume(volume) : NULL);
        return 0;
}

int referenced_objects_renew_claims(ReferencedObjects *objects, const Pod *pod) {
        return pod_foreach_reference(pod, renew_claim, objects);
}

static int check_claim_answer(const ObjectKey *key, void *userdata) {
        const ReferencedObject *claim =
                key->kind == OBJECT_VOLUME_CLAIM ? find_referenced_object(userdata, key) : NULL;
        const ReferencedObject *volume = claim ? find_volume_of_claim(claim) : NULL;
        const ReferencedObject *attachment = volume ? find_attachment_of_volume(volume) : NULL;
        bool is_awaited = (claim && claim->awaits_answer) || (volume && volume->awaits_answer) ||
                          (attachment && attachment->awaits_answer);

        return is_awaited ? -EAGAIN : 0;
}

bool referenced_objects_awaits_claims(ReferencedObjects *objects, const Pod *pod) {
        return pod_foreach_reference(pod, check_claim_answer, objects) == -EAGAIN;
}

int referenced_objects_set_client(ReferencedObjects *objects, KubeClient *client) {
        objects->client = client;
        return kube_work_queue_new(objects->spec.event,
                                   &(KubeWorkQueueSpec){ .client = client,
                                                         .max_parallel = FETCHES_MAX,
                                                         .build_request = build_object_request,
                                                         .free_request = kube_request_spec_free,
                                                         .on_response = on_object_response,
                                                         .userdata = objects },
                                   &objects->fetches);
}

int referenced_objects_begin(ReferencedObjects *objects) {
        const SharedObjects *shared = objects->spec.shared;
        int r = 0;

        objects->generation++;
        for (size_t i = 0; shared && i < shared->n && r >= 0; i++)
                r = add_referenced_object(
                        &(ObjectKey){ shared->items[i].from, shared->items[i].kind,
                                      strna(shared->items[i].namespace), shared->items[i].name },
                        objects);
        return r;
}

int referenced_objects_add(ReferencedObjects *objects, const Pod *pod) {
        return pod_foreach_reference(pod, add_referenced_object, objects);
}

void referenced_objects_end(ReferencedObjects *objects) {
        ReferencedObject **link = &objects->first;

        while (*link) {
                ReferencedObject *object = *link;

                if (object->generation == objects->generation) {
                        link = &object->next;
                        continue;
                }
                *link = object->next;
                uncache_object(object);
                if (objects->fetches)
                        kube_work_queue_forget(objects->fetches, object->key);
                referenced_object_free(object);
        }
}

void referenced_objects_reload_cached(ReferencedObjects *objects) {
        for (ReferencedObject *object = objects->first; object; object = object->next) {
                if (object->is_known || object->was_absent)
                        continue;
                load_cached_object(object);
                if (object->is_known)
                        object_updates_schedule(objects->spec.updates, object->key);
                else if (object->was_absent && object->is_unanswered)
                        set_referenced_object(object, NULL);
        }
}

void referenced_objects_refresh(ReferencedObjects *objects, const ObjectKey *key) {
        const ReferencedObject *object = find_referenced_object(objects, key);

        if (object && objects->fetches)
                (void) kube_work_queue_add(objects->fetches, object->key);
}

void referenced_objects_take(ReferencedObjects *objects, const ObjectKey *key, const char *json,
                             size_t length) {
        ReferencedObject *object = find_referenced_object(objects, key);
        DataObject *data;

        if (object && parse_referenced_object(object, json, length, &data, NULL) >= 0)
                take_referenced_object(object, json, data);
}

/* ---- lookups ---- */

const DataObject *referenced_objects_find(const ReferencedObjects *objects, const ObjectKey *key) {
        const ReferencedObject *object = find_referenced_object(objects, key);

        return object ? object->object : NULL;
}

bool referenced_objects_is_pending(const ReferencedObjects *objects, const ObjectKey *key) {
        const ReferencedObject *object = find_referenced_object(objects, key);

        return object && !object->is_known;
}

void referenced_objects_dump(const ReferencedObjects *objects, FILE *out) {
        for (const ReferencedObject *object = objects->first; object; object = object->next) {
                dump_line(out, 1, "object: %s, %s", object->key,
                          object->object     ? "present"
                          : object->is_known ? "does not exist"
                                             : "not known yet");
                if (object->reflector)
                        kube_reflector_dump(object->reflector, out);
        }
        if (objects->fetches)
                kube_work_queue_dump(objects->fetches, "objects that are not watched", out);
}
