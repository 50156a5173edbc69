/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Container Device Interface: the device specifications that root or a driver writes below
 * /etc/cdi and /var/run/cdi, and the names by which pods refer to devices. Plain data; cdi/ finds
 * the specifications, manifest/ parses them, and bundle/ applies them. */

#include "agent/model/pod.h"
#include "agent/model/schema.h"

typedef struct CdiDeviceNode {
        char *path;      /* path in the container */
        char *host_path; /* NULL: as 'path' */
        char *type;      /* "b", "c", "u" or "p"; NULL: as on the node */
        OptionalInt major, minor;
        OptionalInt file_mode, uid, gid;
        char *permissions; /* for the device cgroup: "rwm", "none"; NULL: all */
} CdiDeviceNode;

typedef struct CdiNetDevice {
        char *host_interface_name;
        char *name; /* name in the container */
} CdiNetDevice;

typedef struct CdiMount {
        char *host_path;
        char *container_path;
        char *type; /* NULL: determined by the options */
        char **options;
} CdiMount;

typedef struct CdiHook {
        char *hook_name; /* "createContainer" */
        char *path;
        char **args;
        char **env;
        OptionalInt timeout; /* seconds */
} CdiHook;

typedef struct CdiIntelRdt {
        char *clos_id;
        char *l3_cache_schema;
        char *mem_bw_schema;
        char **schemata;
        bool enable_monitoring;
        bool enable_cmt, enable_mbm; /* only in versions before 1.1.0 */
} CdiIntelRdt;

/* containerEdits */
typedef struct CdiEdits {
        char **env;
        LIST_OF(CdiDeviceNode) device_nodes;
        LIST_OF(CdiNetDevice) net_devices;
        LIST_OF(CdiMount) mounts;
        LIST_OF(CdiHook) hooks;
        CdiIntelRdt *intel_rdt; /* NULL: none */
        IntList additional_gids;
} CdiEdits;

typedef struct CdiDevice {
        char *name;
        StringMap annotations;
        CdiEdits edits;

        unsigned line; /* line in the file */
        unsigned column;
} CdiDevice;

typedef struct CdiSpec {
        char *version; /* "0.6.0", possibly with a leading 'v' */
        char *kind;    /* "vendor.com/class" */
        StringMap annotations;
        LIST_OF(CdiDevice) devices;
        CdiEdits edits; /* for each container that has a device from this file */
} CdiSpec;

extern const Schema cdi_spec_schema;

CdiSpec *cdi_spec_free(CdiSpec *spec);
DEFINE_CLEANUP(CdiSpec *, cdi_spec_free)

/* Check functions with the signature of a Field's check: "vendor.com/class"; the name of a device
 * in a file; "vendor.com/class=name". */
int check_cdi_kind(const char *value, Error *reterr);
int check_cdi_device_name(const char *value, Error *reterr);
int check_cdi_qualified_name(const char *value, Error *reterr);

/* Annotations of a pod with this prefix name CDI devices for all of its containers: qualified
 * names, separated by commas. */
#define CDI_ANNOTATION_PREFIX "cdi.k8s.io/"

bool is_cdi_annotation(const char *key);

/* Whether the name of a resource is the name of a CDI device, as in podman:
 * "vendor.com/class=name". Such a name is not a resource of the node, and its amount has no
 * meaning. No API server accepts such a name. */
bool is_cdi_resource(const char *name);

/* The first such annotation, or NULL. */
const KeyValue *pod_cdi_annotation(const Pod *pod);

/* Whether the values of these annotations are equal in two pods. */
bool pod_cdi_annotations_equal(const Pod *a, const Pod *b);

/* Splits the value of an annotation, for strv_free(). -EINVAL with a message if a name is not
 * qualified. */
int cdi_annotation_split(const char *value, char ***ret, Error *reterr);

/* The qualified names of the CDI devices that the pod requests for this container, without
 * duplicates, for strv_free(); NULL: none. -EINVAL with a message. */
int container_cdi_names(const Pod *pod, const Container *container, char ***ret, Error *reterr);

/* A device that was found. Borrowed until the specifications change. */
typedef struct CdiMatch {
        const CdiSpec *spec;
        const CdiDevice *device;
} CdiMatch;

/* How bundle/ finds devices; 'find' is NULL if no specifications are read. -ENOENT with the
 * reason. */
typedef struct CdiLookup {
        int (*find)(const char *qualified_name, CdiMatch *ret, Error *reterr, void *userdata);
        void *userdata;
} CdiLookup;
