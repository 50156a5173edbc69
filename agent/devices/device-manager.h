/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The device manager (kubelet: cm/devicemanager): tracks the extended resources of the node, the
 * containers that have their devices, and what these add to the OCI configuration of a container.
 * Providers list devices and allocate them: device plugins, and the node's own list of devices.
 *
 * This module never waits: a provider answers at once, or later through device_manager_answer(). No
 * device is ever allocated to two pods: a chosen device is entered in the ledger before its
 * provider is requested to allocate it, and is on disk before the pod is admitted. */

#include "agent/model/device.h"
#include "agent/model/pod.h"
#include "common/error.h"

/* Resources for devices of the node, without a plugin: "mainstay.dev/<name>". */
#define NODE_DEVICE_PREFIX "mainstay.dev/"

typedef struct DeviceManager DeviceManager;

/* Each of these returns 0 with its result; -EINPROGRESS: device_manager_answer() follows for this
 * 'call'; or another -errno with a message. The functions must not call the manager. Strings are
 * borrowed. */
typedef struct DeviceProviderOps {
        /* Only if 'has_preferences': chooses the 'n' most suitable of the available devices,
         * including all that are required. Other devices in the result are ignored. */
        int (*prefer)(void *provider, uint64_t call, const char *resource, char *const *available,
                      char *const *must_include, size_t n, char ***ret_ids, Error *reterr);
        int (*allocate)(void *provider, uint64_t call, const char *resource, char *const *ids,
                        DeviceEdits *ret, Error *reterr);
        /* Only if 'prepares_start': called before each start of a container that has the
         * devices. */
        int (*prepare_start)(void *provider, uint64_t call, const char *resource, char *const *ids,
                             Error *reterr);
} DeviceProviderOps;

/* For a provider whose devices appear and disappear while containers have them. */
typedef struct LiveDeviceOps {
        /* The current additions of these devices to a container, instead of those of allocate(). 0
         * or -ENOMEM; the manager releases '*ret'. */
        int (*current_edits)(void *provider, const char *resource, char *const *ids,
                             DeviceEdits *ret);
        /* A message that explains why there are no more devices and how to get one, which the
         * caller frees; NULL: out of memory. */
        char *(*explain)(void *provider, const char *resource);
} LiveDeviceOps;

typedef struct DeviceProvider {
        const DeviceProviderOps *ops;
        const LiveDeviceOps *live; /* NULL: the devices of a running container do not change. No
                                    * other provider can take over from a live one */
        void *userdata; /* its identity, because another provider with the same name may have taken
                         * over */
        bool has_preferences;
        bool prepares_start;
} DeviceProvider;

typedef struct DeviceManagerConfig {
        const char *state_dir; /* directory of the checkpoint, "devices"; NULL: there is no
                                * checkpoint */
        const char *boot_id;   /* pods that were admitted in an earlier boot are checked again */
        /* The list of resources, or the number of devices of one, has changed. */
        void (*on_capacity_changed)(void *userdata);
        /* The event that the pod waited for has occurred, or the health of one of its devices has
         * changed. If 'uid' is NULL, pods that were rejected may be admitted now. */
        void (*on_pod_changed)(const char *uid, void *userdata);
        void *userdata;
} DeviceManagerConfig;

/* Reads the checkpoint; a damaged one is set aside, and logged. 0 or -ENOMEM. */
int device_manager_new(const DeviceManagerConfig *config, DeviceManager **ret);
DeviceManager *device_manager_free(DeviceManager *manager);
DEFINE_CLEANUP(DeviceManager *, device_manager_free)

/* ---- for providers ---- */

/* A provider has registered for a resource; it takes over from another one, whose devices stay
 * until the first list. 0 or -ENOMEM. */
int device_manager_register(DeviceManager *manager, const char *name,
                            const DeviceProvider *provider);

/* Replaces all devices of the resource, unless another provider has taken over. Takes ownership of
 * the list, even on failure. 0 or -ENOMEM. */
int device_manager_set_devices_take(DeviceManager *manager, const char *name, const void *provider,
                                    DeviceList *devices);

/* The devices of the resource that are allocated to containers. The caller frees the list with
 * strv_free(). 0 or -ENOMEM. */
int device_manager_list_held(const DeviceManager *manager, const char *name, char ***ret_ids);

/* Replaces the device 'from' with 'to' in the containers that have it. 0 or -ENOMEM. */
int device_manager_rename_device(DeviceManager *manager, const char *name, const char *from,
                                 const char *to);

/* The devices of a live provider are the same, but their additions to containers have changed. */
void device_manager_refresh(const DeviceManager *manager, const char *name);

/* The provider is gone: none of its devices is allocatable. Its allocations stay, and its capacity
 * stays for five minutes, until device_manager_expire() removes it. */
void device_manager_unregister(DeviceManager *manager, const char *name, const void *provider,
                               uint64_t now_boottime_usec);

/* Forgets the providers that have been gone for too long. Returns the boot time at which it must be
 * called next; USEC_INFINITY: never. */
uint64_t device_manager_expire(DeviceManager *manager, uint64_t now_boottime_usec);

/* The result of a call that returned -EINPROGRESS. Results for which no allocation waits are
 * ignored. */
typedef struct DeviceAnswer {
        const char *error; /* NULL: it has succeeded */
        char **ids;        /* the result of prefer(); taken */
        DeviceEdits edits; /* the result of allocate(); taken */
} DeviceAnswer;

void device_manager_answer_take(DeviceManager *manager, uint64_t call, DeviceAnswer *answer);

/* ---- for pods ---- */

/* Allocates the devices of all containers of a pod, once. 0: the pod has all of its devices;
 * -EINPROGRESS: call again after on_pod_changed(); -ENODEV, only if 'must_exist': no provider has
 * registered for a resource (otherwise, as in the kubelet, the pod starts without it); another
 * -errno with the kubelet's message: the pod gets no devices (-ENOSPC: other pods have them). */
int device_manager_admit(DeviceManager *manager, const Pod *pod, bool must_exist, Error *reterr);

/* Whether there would be enough devices for the pod if all pods for which is_released() returns
 * true released theirs. Also false if no provider has registered for a resource. */
typedef bool (*device_released_t)(const char *uid, void *userdata);
bool device_manager_has_enough(const DeviceManager *manager, const Pod *pod,
                               device_released_t is_released, void *userdata);

/* To be called before each start of a container. 0, -EINPROGRESS as above, or -errno with the
 * kubelet's message.
 */
int device_manager_prepare_start(DeviceManager *manager, const char *uid, const char *container,
                                 Error *reterr);

/* The additions of the container's devices to its configuration. The caller releases it with
 * device_edits_done(). 0 or -ENOMEM. */
int device_manager_collect_edits(const DeviceManager *manager, const char *uid,
                                 const char *container, DeviceEdits *ret);

/* Whether the container has devices of a live provider. */
bool device_manager_has_live(const DeviceManager *manager, const char *uid, const char *container);

/* The devices of a container and their health, for its status. 0 or -ENOMEM; the caller releases it
 * with resource_status_list_done(). */
int device_manager_container_status(const DeviceManager *manager, const char *uid,
                                    const char *container, ResourceStatusList *ret);

/* The pod has terminated, so its devices are free. */
void device_manager_release(DeviceManager *manager, const char *uid);

/* Releases the devices of all pods that do not exist according to the callback: called once at the
 * start. */
void device_manager_sweep(DeviceManager *manager, bool (*is_there)(const char *uid, void *userdata),
                          void *userdata);

/* ---- for the node and the pod resources ---- */

/* Capacity and allocatable of all resources, sorted by name. 0 or -ENOMEM. */
int device_manager_list_resources(const DeviceManager *manager, NodeDevicesList *ret);

/* The devices of a resource, as its provider lists them; NULL: the resource is not known. */
const DeviceList *device_manager_devices(const DeviceManager *manager, const char *name);

/* Visits the devices of a container, in the order of resources. */
typedef void (*device_visit_t)(const char *resource, char *const *ids, void *userdata);
void device_manager_foreach_of(const DeviceManager *manager, const char *uid, const char *container,
                               device_visit_t visit, void *userdata);
