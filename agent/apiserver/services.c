/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and caches the services, and computes their environment variables. */

#include "agent/apiserver/services.h"

#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/request-back-off.h"
#include "agent/model/names.h"
#include "agent/model/service.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/strv.h"

enum {
        SERVICES_MAX = 20000,
        SERVICE_PORTS_MAX = 100,
        SERVICES_FILE_MAX = 16 * 1024 * 1024,
};

#define SERVICES_STORE_DELAY_USEC USEC_PER_SEC

static const char services_file_name[] = "services";

typedef struct ApiServerServiceEntry {
        Service service;
        unsigned generation;
} ApiServerServiceEntry;

struct ApiServerServices {
        ApiServerServicesSpec spec;
        KubeReflector *reflector;
        sd_event_source *store_timer;
        LIST_OF(ApiServerServiceEntry) entries; /* sorted by namespace, then by name */
        unsigned generation;
        bool is_known; /* from the cache or the server */
        bool is_full;  /* logged */
};

/* ---- one service ---- */

static int copy_json_text(const json_t *object, const char *key, char **ret) {
        const char *text = json_text(object, key);

        *ret = text && text[0] ? strdup(text) : NULL;
        return text && text[0] && !*ret ? -ENOMEM : 0;
}

static int read_service_ports(const json_t *ports, Service *service) {
        size_t n = MIN(json_array_size(ports), (size_t) SERVICE_PORTS_MAX);

        service->ports.items = calloc(n + 1, sizeof(*service->ports.items));
        if (!service->ports.items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const json_t *port = json_array_get(ports, i);
                ServicePort *item = &service->ports.items[service->ports.n++];

                item->port = json_integer_value(json_object_get(port, "port"));
                if (copy_json_text(port, "name", &item->name) < 0 ||
                    copy_json_text(port, "protocol", &item->protocol) < 0)
                        return -ENOMEM;
                if (!item->protocol && !(item->protocol = strdup("TCP")))
                        return -ENOMEM;
        }
        return 0;
}

/* Reads a v1.Service, or the part of it that is in the cache. 1; 0 for a headless one, which yields
 * no variables. */
static int read_service(const json_t *object, Service *ret) {
        const json_t *metadata = json_object_get(object, "metadata");
        const json_t *spec = json_object_get(object, "spec");
        cleanup_with(service_done) Service service = { 0 };
        int r;

        if (copy_json_text(metadata, "name", &service.name) < 0 ||
            copy_json_text(metadata, "namespace", &service.namespace) < 0 ||
            copy_json_text(spec, "clusterIP", &service.cluster_ip) < 0)
                return -ENOMEM;
        if (!service.name || !service.namespace || check_dns_label(service.name, NULL) < 0 ||
            check_dns_label(service.namespace, NULL) < 0)
                return -EBADMSG;
        r = read_service_ports(json_object_get(spec, "ports"), &service);
        if (r < 0)
                return r;
        r = service.cluster_ip && !streq(service.cluster_ip, "None");
        *ret = service;
        service = (Service){ 0 };
        return r;
}

/* ---- all of them ---- */

typedef struct ServiceName {
        const char *namespace;
        const char *name;
} ServiceName;

static int compare_service_name(const ServiceName *name, const ApiServerServiceEntry *entry) {
        int r = strcmp(name->namespace, entry->service.namespace);

        return r != 0 ? r : strcmp(name->name, entry->service.name);
}

static void remove_service_at(ApiServerServices *services, size_t i) {
        service_done(&services->entries.items[i].service);
        ARRAY_REMOVE(services->entries.items, services->entries.n, i);
}

static int insert_service_at(ApiServerServices *services, size_t i) {
        if (services->entries.n >= SERVICES_MAX) {
                if (!services->is_full)
                        log_warning("The API server has more than %d services; containers get "
                                    "environment variables of only %d of them",
                                    SERVICES_MAX, SERVICES_MAX);
                services->is_full = true;
                return -E2BIG;
        }
        return ARRAY_INSERT(services->entries.items, services->entries.n, i) ? 0 : -ENOMEM;
}

/* 'is_there' is false for a deleted service. */
static int update_service(ApiServerServices *services, const json_t *object, bool is_there) {
        cleanup_with(service_done) Service service = { 0 };
        ServiceName name;
        size_t i;
        int r = read_service(object, &service);
        bool is_visible = r > 0 && is_there, is_same;

        if (r < 0)
                return r;
        name = (ServiceName){ service.namespace, service.name };
        i = ARRAY_FIND_PLACE(&name, services->entries.items, services->entries.n,
                             compare_service_name);
        is_same = i < services->entries.n &&
                  compare_service_name(&name, &services->entries.items[i]) == 0;
        if (!is_visible) {
                if (is_same)
                        remove_service_at(services, i);
                return 0;
        }
        r = is_same ? 0 : insert_service_at(services, i);
        if (r < 0)
                return r;
        service_done(&services->entries.items[i].service);
        services->entries.items[i] = (ApiServerServiceEntry){ service, services->generation };
        service = (Service){ 0 };
        return 0;
}

/* ---- the cache ---- */

static json_t *service_to_json(const Service *service) {
        json_t *ports = json_array();

        for (size_t i = 0; i < service->ports.n; i++) {
                const ServicePort *port = &service->ports.items[i];

                (void) json_array_append_new(
                        ports, json_pack("{s:s*, s:s, s:I}", "name", port->name, "protocol",
                                         port->protocol, "port", (json_int_t) port->port));
        }
        return json_pack("{s:{s:s, s:s}, s:{s:s, s:o}}", "metadata", "name", service->name,
                         "namespace", service->namespace, "spec", "clusterIP", service->cluster_ip,
                         "ports", ports);
}

static void store_services(const ApiServerServices *services) {
        cleanup_json json_t *list = json_array();
        cleanup_free char *text = NULL;

        for (size_t i = 0; i < services->entries.n; i++)
                (void) json_array_append_new(list,
                                             service_to_json(&services->entries.items[i].service));
        text = json_to_text(list, JSON_COMPACT);
        if (text)
                apiserver_cache_write(services->spec.cache, ".", services_file_name, text);
        else
                log_error("Cannot cache the services: out of memory; pods that start while the API "
                          "server is unreachable may not have the variables of new services");
}

static int on_service_store_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServerServices *services = userdata;

        store_services(services);
        return 0;
}

/* One write for services that change together, even if the changes continue for a long time. */
static void schedule_service_store(ApiServerServices *services) {
        int r;

        if (sd_event_source_get_enabled(services->store_timer, NULL) > 0)
                return;
        r = event_timer_arm(services->store_timer, SERVICES_STORE_DELAY_USEC);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer that stores the services");
}

static void load_cached_services(ApiServerServices *services) {
        cleanup_json json_t *list = NULL;
        cleanup_free char *text = NULL;
        size_t i;
        json_t *object;
        int r = apiserver_cache_read(services->spec.cache, ".", services_file_name,
                                     SERVICES_FILE_MAX, &text);

        if (r == -EBADMSG)
                log_error("The cached services are damaged and were set aside; pods wait until the "
                          "API server lists them");
        if (r < 0)
                return;
        list = json_loads(text, 0, NULL);
        json_array_foreach(list, i, object)
                (void) update_service(services, object, /* is_there= */ true);
        services->is_known = true;
}

/* ---- the watch ---- */

/* The first pods start when the first list has arrived. It is stored at once, because they need it
 * again after a power cut. */
static void on_services_changed(ApiServerServices *services) {
        if (services->is_known) {
                schedule_service_store(services);
                return;
        }
        store_services(services);
        services->is_known = true;
        object_updates_schedule(services->spec.updates, NULL);
}

static void on_service_object(KubeWatchEvent change, const char *json, size_t length,
                              void *userdata) {
        ApiServerServices *services = userdata;
        cleanup_json json_t *object = json_loadb(json, length, 0, NULL);
        int r = object ? update_service(services, object, change != KUBE_DELETED) : -EBADMSG;

        if (r == -EBADMSG)
                log_warning("Ignoring an invalid object in the API server's list of services");
        if (change != KUBE_LISTED)
                on_services_changed(services);
}

static void on_service_list_begin(void *userdata) {
        ((ApiServerServices *) userdata)->generation++;
}

static void on_service_list_end(bool is_complete, void *userdata) {
        ApiServerServices *services = userdata;

        if (!is_complete)
                return;
        for (size_t i = services->entries.n; i-- > 0;)
                if (services->entries.items[i].generation != services->generation)
                        remove_service_at(services, i);
        on_services_changed(services);
}

static void on_service_watch_error(const char *error, unsigned status, void *userdata) {
        const ApiServerServices *services = userdata;

        connection_status_set_permission(services->spec.connection, PERMISSION_SERVICES, error,
                                         status);
        if (!connection_status_is_unreachable(services->spec.connection, error, status) && error)
                log_warning("Cannot watch the services of the API server: %s; %s", error,
                            kube_back_off_retry_hint(status));
}

int apiserver_services_new(const ApiServerServicesSpec *spec, ApiServerServices **ret) {
        ApiServerServices *services = calloc(1, sizeof(*services));
        int r;

        if (!services)
                return -ENOMEM;
        services->spec = *spec;
        r = event_add_disabled_timer(spec->event, &services->store_timer, CLOCK_BOOTTIME, 0,
                                     on_service_store_timer, services);
        if (r < 0) {
                apiserver_services_free(services);
                return r;
        }
        load_cached_services(services);
        *ret = services;
        return 0;
}

void apiserver_services_forget_cached(ApiServerServices *services) {
        while (services->entries.n > 0)
                remove_service_at(services, services->entries.n - 1);
        services->is_known = false;
        apiserver_cache_write(services->spec.cache, ".", services_file_name, NULL);
}

int apiserver_services_watch(ApiServerServices *services, KubeClient *client) {
        return kube_reflector_new(
                services->spec.event,
                &(KubeReflectorSpec){ .client = client,
                                      .path = "/api/v1/services",
                                      .field_selector = { "spec.clusterIP", "None", true },
                                      .on_object = on_service_object,
                                      .on_list_begin = on_service_list_begin,
                                      .on_list_end = on_service_list_end,
                                      .on_error = on_service_watch_error,
                                      .userdata = services },
                &services->reflector);
}

ApiServerServices *apiserver_services_free(ApiServerServices *services) {
        if (!services)
                return NULL;
        kube_reflector_free(services->reflector);
        sd_event_source_disable_unref(services->store_timer);
        while (services->entries.n > 0)
                remove_service_at(services, services->entries.n - 1);
        free(services->entries.items);
        free(services);
        return NULL;
}

/* ---- variables ---- */

static bool is_service_visible(const Service *service, const Pod *pod) {
        bool wants_links =
                !pod->spec.enable_service_links.is_set || pod->spec.enable_service_links.value;

        if (streq(service->namespace, pod->metadata.namespace) && wants_links)
                return true;
        return streq(service->namespace, "default") && streq(service->name, "kubernetes");
}

/* Takes the strings. 'n' is the length of the array to which they are appended; counting it for
 * each service would take too long, because there may be thousands of them. */
static int append_strings(char ***strv, size_t *n, char ***strings) {
        size_t more = strv_length(*strings);

        if (!ARRAY_RESERVE(*strv, *n, more + 1))
                return -ENOMEM;
        for (size_t i = 0; i < more; i++)
                (*strv)[*n + i] = (*strings)[i];
        *n += more;
        (*strv)[*n] = NULL;
        free(TAKE_PTR(*strings));
        return 0;
}

static int append_service(const Service *service, char ***env, size_t *n) {
        cleanup_strv char **variables = NULL;
        int r = service_add_variables(service, &variables);

        return r < 0 ? r : append_strings(env, n, &variables);
}

int apiserver_services_add_variables(const ApiServerServices *services, const Pod *pod, char ***env,
                                     Error *reterr) {
        size_t n = strv_length(*env);

        if (!services->is_known)
                return error_setf(reterr, EAGAIN,
                                  "services have not yet been read at least once, cannot construct "
                                  "envvars");
        for (size_t i = 0; i < services->entries.n; i++) {
                const Service *service = &services->entries.items[i].service;
                int r = is_service_visible(service, pod) ? append_service(service, env, &n) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

void apiserver_services_dump(const ApiServerServices *services, FILE *out) {
        dump_line(out, 1, "services: %zu, %s", services->entries.n,
                  services->is_known ? "known" : "not known yet");
        if (services->reflector)
                kube_reflector_dump(services->reflector, out);
        dump_timer(out, 2, "services are written to the cache", services->store_timer);
}
