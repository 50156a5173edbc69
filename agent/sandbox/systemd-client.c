/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/systemd-client.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <assert.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

/* PID 1 may answer late, and a late answer does not mean that the request failed. So calls have no
 * timeout, and only the socket of a shim shows whether it runs: while it is being started, PID 1
 * (or the message in its queue) keeps the socket open; if the start fails, the socket is closed. */

#define NO_TIME_LIMIT UINT64_MAX
#define STATE_USEC    (3 * USEC_PER_SEC)

static const char systemd_private_socket[] = "unix:path=/run/systemd/private";
static const char systemd_destination[] = "org.freedesktop.systemd1";
static const char systemd_path[] = "/org/freedesktop/systemd1";
static const char systemd_interface[] = "org.freedesktop.systemd1.Manager";

struct SystemdClient {
        sd_event *event;
        sd_bus *bus;
        struct SystemdCall *calls; /* calls that have not been answered yet */
        void (*on_system_state)(bool is_stopping, void *userdata);
        void *state_userdata;
};

/* A pending call, with the data for a second attempt by other means. */
typedef struct SystemdCall {
        struct SystemdCall *next;
        SystemdClient *systemd;
        char *name; /* name of the unit */
        const char *refusal;
        SliceProperty properties[SLICE_PROPERTIES_MAX];
        size_t n_properties;
        bool is_obsolete; /* the unit should have been stopped by now, so there is no second attempt
                           */
} SystemdCall;

bool systemd_is_init(void) {
        return sd_booted() > 0;
}

int systemd_client_new(sd_event *event, SystemdClient **ret) {
        SystemdClient *systemd = calloc(1, sizeof(*systemd));

        if (!systemd)
                return -ENOMEM;
        systemd->event = sd_event_ref(event);
        *ret = systemd;
        return 0;
}

static void disconnect_from_systemd(SystemdClient *systemd) {
        if (systemd->bus)
                (void) sd_bus_detach_event(systemd->bus);
        systemd->bus = sd_bus_close_unref(systemd->bus);
}

SystemdClient *systemd_client_free(SystemdClient *systemd) {
        if (!systemd)
                return NULL;
        if (systemd->bus) /* the last units to stop */
                (void) sd_bus_flush(systemd->bus);
        disconnect_from_systemd(systemd);
        sd_event_unref(systemd->event);
        free(systemd);
        return NULL;
}

bool systemd_client_is_idle(const SystemdClient *systemd) {
        return !systemd->calls;
}

static int connect_to_systemd(SystemdClient *systemd) {
        cleanup_with(sd_bus_close_unrefp) sd_bus *bus = NULL;
        int r = sd_bus_new(&bus);

        if (r < 0)
                return r;
        r = sd_bus_set_address(bus, systemd_private_socket);
        if (r < 0)
                return r;
        r = sd_bus_set_trusted(bus, true); /* the peer is PID 1 */
        if (r < 0)
                return r;
        r = sd_bus_start(bus);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(bus, systemd->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        systemd->bus = TAKE_PTR(bus);
        return 0;
}

static int ensure_systemd_connection(SystemdClient *systemd) {
        if (systemd->bus && sd_bus_is_open(systemd->bus) <= 0)
                disconnect_from_systemd(
                        systemd); /* PID 1 closes connections when it re-executes itself */
        return systemd->bus ? 0 : connect_to_systemd(systemd);
}

static int new_systemd_method_call(SystemdClient *systemd, const char *method,
                                   sd_bus_message **ret) {
        int r = ensure_systemd_connection(systemd);

        return r < 0 ? r
                     : sd_bus_message_new_method_call(systemd->bus, ret, systemd_destination,
                                                      systemd_path, systemd_interface, method);
}

static void systemd_call_free(void *userdata) {
        SystemdCall *call = userdata, **link = &call->systemd->calls;

        while (*link != call)
                link = &(*link)->next;
        *link = call->next;
        free(call->name);
        free(call);
}

/* Takes over the call, even on failure. */
static int send_systemd_call_consume(sd_bus_message *message,
                                     sd_bus_message_handler_t on_systemd_call_reply,
                                     SystemdCall *call) {
        sd_bus_slot *slot = NULL;
        int r = sd_bus_call_async(call->systemd->bus, &slot, message, on_systemd_call_reply, call,
                                  NO_TIME_LIMIT);

        if (r < 0) {
                systemd_call_free(call);
                return r;
        }
        (void) sd_bus_slot_set_destroy_callback(slot, systemd_call_free);
        (void) sd_bus_slot_set_floating(slot, true);
        sd_bus_slot_unref(slot);
        return 0;
}

static SystemdCall *systemd_call_new(SystemdClient *systemd, const char *name,
                                     const char *refusal) {
        SystemdCall *call = calloc(1, sizeof(*call));

        if (!call)
                return NULL;
        call->systemd = systemd;
        call->refusal = refusal;
        call->name = strdup(name);
        if (!call->name) {
                free(call);
                return NULL;
        }
        call->next = systemd->calls;
        systemd->calls = call;
        return call;
}

static int on_systemd_call_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        const SystemdCall *call = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        if (error && !sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit")) {
                log_set_message_id(MESSAGE_SYSTEMD_REQUEST_FAILED);
                log_warning("%s '%s': %s", call->refusal, call->name, strna(error->message));
        }
        return 0;
}

static int send_unit_call(SystemdClient *systemd, sd_bus_message *message, const char *name,
                          const char *refusal) {
        SystemdCall *call = systemd_call_new(systemd, name, refusal);

        return call ? send_systemd_call_consume(message, on_systemd_call_reply, call) : -ENOMEM;
}

static int on_system_state_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        SystemdClient *systemd = userdata;
        const char *state = NULL;
        bool is_stopping = sd_bus_message_get_error(reply) == NULL &&
                           sd_bus_message_read(reply, "v", "s", &state) > 0 &&
                           streq(strna(state), "stopping");

        systemd->on_system_state(is_stopping, systemd->state_userdata);
        return 0;
}

static int send_state_query(SystemdClient *systemd) {
        cleanup_with(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = ensure_systemd_connection(systemd);

        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(systemd->bus, &message, systemd_destination,
                                           systemd_path, "org.freedesktop.DBus.Properties", "Get");
        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "ss", systemd_interface, "SystemState");
        if (r < 0)
                return r;
        return sd_bus_call_async(systemd->bus, NULL, message, on_system_state_reply, systemd,
                                 STATE_USEC);
}

int systemd_client_query_shutdown(SystemdClient *systemd,
                                  void (*answer)(bool is_stopping, void *userdata), void *userdata,
                                  Error *reterr) {
        int r;

        systemd->on_system_state = answer;
        systemd->state_userdata = userdata;
        r = send_state_query(systemd);
        return r < 0 ? error_prefixf(reterr, r, "cannot ask systemd for its state") : 0;
}

/* ---- services ---- */

static int append_exec_start(sd_bus_message *message, char *const *argv) {
        int r = sd_bus_message_open_container(message, 'r', "sv");

        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "s", "ExecStart");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'v', "a(sasb)");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'a', "(sasb)");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'r', "sasb");
        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "s", argv[0]);
        if (r < 0)
                return r;
        r = sd_bus_message_append_strv(message, (char **) (uintptr_t) argv);
        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "b", false);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < 4; i++) {
                r = sd_bus_message_close_container(message);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The shim is the parent of containers, which expect the same environment as under a daemon without
 * sandboxing. At shutdown it is stopped after the agent, because units that start before the agent
 * are stopped after it. Only the agent requires it, so it must be exempt from 'systemctl isolate',
 * like the scopes of containers. The shim and the runtime have values of Secrets in memory, so they
 * get no swap. */
static int append_service_properties(sd_bus_message *message, const TransientService *service) {
        int r = sd_bus_message_append(
                message, "(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)",
                "Description", "s", service->description, "Slice", "s", service->slice, "Before",
                "as", 1, "mainstay.service", "CollectMode", "s", "inactive-or-failed",
                "IgnoreOnIsolate", "b", true, "KillMode", "s", "process", "Delegate", "b", true,
                "TasksMax", "t", UINT64_MAX, "MemorySwapMax", "t", UINT64_C(0), "LimitNOFILE", "t",
                UINT64_C(1048576), "OOMScoreAdjust", "i", -998, "StandardInputFileDescriptor", "h",
                service->input_fd, "StandardOutput", "s", "journal", "StandardError", "s",
                "journal", "SyslogIdentifier", "s", "mainstay-shim");

        return r < 0 ? r : append_exec_start(message, service->argv);
}

static int send_service_start(SystemdClient *systemd, const TransientService *service) {
        cleanup_with(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = new_systemd_method_call(systemd, "StartTransientUnit", &message);

        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "ss", service->name, "fail");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'a', "(sv)");
        if (r < 0)
                return r;
        r = append_service_properties(message, service);
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(message);
        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "a(sa(sv))", 0);
        if (r < 0)
                return r;
        return send_unit_call(systemd, message, service->name, "systemd refuses to start the unit");
}

int systemd_client_start_service(SystemdClient *systemd, const TransientService *service,
                                 Error *reterr) {
        int r = send_service_start(systemd, service);

        return r < 0 ? error_prefixf(reterr, r, "cannot ask systemd for the unit %s", service->name)
                     : 0;
}

/* ---- slices ---- */

static int append_unit_properties(sd_bus_message *message, const SliceProperty *properties,
                                  size_t n) {
        int r;

        for (size_t i = 0; i < n; i++) {
                r = sd_bus_message_append(message, "(sv)", properties[i].name, "t",
                                          properties[i].value);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int send_unit_properties(SystemdClient *systemd, const char *name,
                                const SliceProperty *properties, size_t n_properties) {
        cleanup_with(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = new_systemd_method_call(systemd, "SetUnitProperties", &message);

        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "sb", name, /* runtime= */ true);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'a', "(sv)");
        if (r < 0)
                return r;
        r = append_unit_properties(message, properties, n_properties);
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(message);
        if (r < 0)
                return r;
        return send_unit_call(systemd, message, name, "systemd refuses to change the unit");
}

int systemd_client_set_properties(SystemdClient *systemd, const char *name,
                                  const SliceProperty *properties, size_t n_properties,
                                  Error *reterr) {
        int r = send_unit_properties(systemd, name, properties, n_properties);

        return r < 0 ? error_prefixf(reterr, r, "cannot ask systemd to change the unit %s", name)
                     : 0;
}

static int call_unit_method(SystemdClient *systemd, const char *method, const char *name,
                            const char *refusal) {
        cleanup_with(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = new_systemd_method_call(systemd, method, &message);

        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "ss", name, "replace");
        if (r < 0)
                return r;
        return send_unit_call(systemd, message, name, refusal);
}

/* The slice already exists: an earlier agent created it, a unit in it was started, or it is being
 * stopped. */
static int set_existing_slice(SystemdClient *systemd, const SystemdCall *previous) {
        int r = call_unit_method(systemd, "StartUnit", previous->name,
                                 "systemd refuses to start the unit");

        return r < 0 ? r
                     : systemd_client_set_properties(systemd, previous->name, previous->properties,
                                                     previous->n_properties, NULL);
}

static int on_set_slice_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        const SystemdCall *call = userdata;
        int r = 0;

        if (!sd_bus_message_is_method_error(reply, "org.freedesktop.systemd1.UnitExists"))
                return on_systemd_call_reply(reply, userdata, ret_error);
        if (call->is_obsolete)
                return 0;
        r = set_existing_slice(call->systemd, call);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot ask systemd to change unit '%s'", call->name);
        return 0;
}

/* The slice has no default dependencies, like the kubelet's slices. systemd 252 adds them to a
 * slice anyway, so a container's scope makes sure that it is stopped after the agent. */
static int append_slice_properties(sd_bus_message *message, const SliceProperty *properties,
                                   size_t n) {
        int r = sd_bus_message_append(message, "(sv)(sv)(sv)(sv)(sv)(sv)", "Description", "s",
                                      "Kubernetes pods run by Mainstay", "DefaultDependencies", "b",
                                      false, "CPUAccounting", "b", true, "MemoryAccounting", "b",
                                      true, "TasksAccounting", "b", true, "IOAccounting", "b",
                                      true);

        return r < 0 ? r : append_unit_properties(message, properties, n);
}

static int send_slice_start(SystemdClient *systemd, const char *name,
                            const SliceProperty *properties, size_t n_properties) {
        cleanup_with(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        SystemdCall *call;
        int r = new_systemd_method_call(systemd, "StartTransientUnit", &message);

        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "ss", name, "replace");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(message, 'a', "(sv)");
        if (r < 0)
                return r;
        r = append_slice_properties(message, properties, n_properties);
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(message);
        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "a(sa(sv))", 0);
        if (r < 0)
                return r;
        call = systemd_call_new(systemd, name, "systemd refuses to start the unit");
        if (!call)
                return -ENOMEM;
        assert(n_properties <= SLICE_PROPERTIES_MAX);
        memcpy(call->properties, properties, n_properties * sizeof(*properties));
        call->n_properties = n_properties;
        return send_systemd_call_consume(message, on_set_slice_reply, call);
}

int systemd_client_set_slice(SystemdClient *systemd, const char *name,
                             const SliceProperty *properties, size_t n_properties, Error *reterr) {
        int r = send_slice_start(systemd, name, properties, n_properties);

        return r < 0 ? error_prefixf(reterr, r, "cannot ask systemd for the unit %s", name) : 0;
}

int systemd_client_stop_unit(SystemdClient *systemd, const char *name, Error *reterr) {
        int r;

        for (SystemdCall *call = systemd->calls; call; call = call->next)
                call->is_obsolete = call->is_obsolete || streq(call->name, name);
        r = call_unit_method(systemd, "StopUnit", name, "systemd refuses to stop the unit");
        return r < 0 ? error_prefixf(reterr, r, "cannot ask systemd to stop the unit %s", name) : 0;
}

static int send_unit_signal(SystemdClient *systemd, const char *name, int signal) {
        cleanup_with(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = new_systemd_method_call(systemd, "KillUnit", &message);

        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "ssi", name, "main", (int32_t) signal);
        if (r < 0)
                return r;
        return send_unit_call(systemd, message, name, "systemd refuses to signal the unit");
}

int systemd_client_kill_unit(SystemdClient *systemd, const char *name, int signal, Error *reterr) {
        int r = send_unit_signal(systemd, name, signal);

        return r < 0 ? error_prefixf(reterr, r, "cannot ask systemd to signal the unit %s", name)
                     : 0;
}
