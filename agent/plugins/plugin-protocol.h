/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The protocol between the agent and mainstay-plugins: messages on a stream socket, each of which
 * consists of a length of four bytes (big-endian) and a Protocol Buffers message according to the
 * table of PluginMessage, some with a descriptor. Neither end waits for the other. */

#include "agent/model/csi-driver.h"
#include "agent/model/device.h"
#include "common/protobuf.h"

typedef enum PluginMessageKind {
        /* to mainstay-plugins */
        PLUGIN_LISTENER = 1, /* 'name' is "registration" or "pod-resources"; with the descriptor */
        PLUGIN_CONNECTED,    /* to the socket of 'connection'; with the descriptor, or 'error' */
        PLUGIN_PREFER,       /* 'call', 'connection', 'ids' available, 'included', 'size' */
        PLUGIN_ALLOCATE,     /* 'call', 'connection', 'ids' */
        PLUGIN_PREPARE,      /* likewise, for PreStartContainer */
        PLUGIN_LISTED,       /* 'call', 'error' or 'body', the encoded answer */
        PLUGIN_ASK_INFO,     /* 'call', chosen by the agent: GetInfo for the plugin behind the
                                socket with this descriptor */
        PLUGIN_ADOPT,        /* 'call', 'name' of the resource: this plugin is the device plugin
                                behind this descriptor */
        PLUGIN_NOTIFY,       /* 'call', 'error' or none: the result of its registration */
        PLUGIN_CLOSE,        /* 'call': closes its connections, including those of its device plugin
                              */
        /* to the agent */
        PLUGIN_CONNECT,  /* 'connection', chosen by mainstay-plugins; 'name' of the socket */
        PLUGIN_REGISTER, /* 'connection', 'name' of the resource, 'has_preferences',
                            'prepares_start'; 'call' for an adopted plugin */
        PLUGIN_DEVICES,  /* 'connection', 'devices' */
        PLUGIN_GONE,     /* 'connection' */
        PLUGIN_ANSWER,   /* 'call', 'error', 'ids', 'edits' */
        PLUGIN_LIST,     /* 'call', 'method', 'name' and 'namespace' of a pod */
        PLUGIN_INFO,     /* 'call', 'error' or 'type', 'name', 'endpoint', 'ids' its versions */
        PLUGIN_REFUSED,  /* 'call', 'error': it was not adopted; otherwise PLUGIN_REGISTER with its
                            'call' follows */
        PLUGIN_NOTIFIED, /* 'call', 'error' or none */
        /* added in a later version; during an upgrade, agent and mainstay-plugins may have
         * different versions */
        PLUGIN_CALL_CSI,   /* to mainstay-plugins: 'call', 'name' of a method of csi.v1.Node, 'body'
                              its request, 'size' its time limit in microseconds; with the
                              descriptor of a connection that is closed afterwards */
        PLUGIN_CSI_ANSWER, /* to the agent: 'call', gRPC status 'code' with 'error', or 'csi' */
        N_PLUGIN_MESSAGE_KINDS,
} PluginMessageKind;

/* The methods of PodResourcesLister. */
typedef enum PluginListMethod {
        PLUGIN_LIST_PODS,
        PLUGIN_LIST_ALLOCATABLE,
        PLUGIN_GET_POD,
} PluginListMethod;

typedef struct PluginMessage {
        int64_t kind;
        int64_t connection;
        int64_t call;
        char *name;
        char *namespace;
        char *error; /* NULL: none */
        char **ids;
        char **included;
        int64_t size;
        bool has_preferences, prepares_start;
        DeviceList devices;
        DeviceEdits edits;
        Buffer body;
        int64_t method;
        char *type, *endpoint; /* type and endpoint of a plugin that is registering */
        int64_t code;          /* gRPC status code; 0: success */
        CsiNodeAnswer csi;
} PluginMessage;

extern const ProtobufMessage plugin_message_table;

/* Parts that have the same encoding in the messages of plugins. */
extern const ProtobufMessage device_mount_table, device_file_table, csi_usage_table;

#define plugin_message_done(message) protobuf_done(&plugin_message_table, (message))

/* Normalises the edits: an absent text becomes empty, a map is sorted and has unique keys. 0 or
 * -ENOMEM. */
int device_edits_normalize(DeviceEdits *edits);

/* Whether the edits are valid: paths are absolute and do not contain "..", names of variables are
 * not empty, permissions are in "rwm". 0, or -EINVAL with a message. */
int device_edits_check(const DeviceEdits *edits, Error *reterr);

enum {
        PLUGIN_FRAME_MAX = 6 * 1024 * 1024,
        PLUGIN_QUEUE_MAX = 64 * 1024 * 1024, /* bytes queued for a peer that does not read */
        PLUGIN_FDS_MAX = 8,                  /* descriptors received, but not used yet */
};

typedef struct PluginFrame PluginFrame;

typedef struct PluginChannel {
        int fd; /* a non-blocking stream socket */
        Buffer input;
        int fds[PLUGIN_FDS_MAX];
        size_t n_fds;
        PluginFrame *output;
        size_t n_queued;
} PluginChannel;

/* Takes the descriptor. */
void plugin_channel_init(PluginChannel *channel, int fd);
void plugin_channel_done(PluginChannel *channel);

/* Queues a message, with a copy of the descriptor unless that is < 0, and sends what is possible.
 * 0; -EFBIG, -ENOBUFS, -ENOMEM: the message is not sent; another -errno: the channel is broken. */
int plugin_channel_send(PluginChannel *channel, const PluginMessage *message, int fd);

/* Sends queued data. 0, or -errno: the channel is broken. */
int plugin_channel_flush(PluginChannel *channel);
bool plugin_channel_has_output(const PluginChannel *channel);

/* The callback may modify the message, which is freed afterwards; the descriptor is closed
 * afterwards unless it is taken. It is -EBADF unless this kind of message has one. */
typedef void (*plugin_message_t)(PluginMessage *message, int *fd, void *userdata);

/* Reads the available data, and calls back for each message, but not after the callback has ended
 * the channel. 0, or -errno: the channel is broken, -ECONNRESET at its end. */
int plugin_channel_receive(PluginChannel *channel, plugin_message_t on_message, void *userdata);
