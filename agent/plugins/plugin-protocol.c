/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plugins/plugin-protocol.h"

#include "agent/model/values-message.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/list.h"
#include "common/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- tables ---- */

static const ProtobufRow device_mount_fields[] = {
        PROTOBUF_FIELD(1, TEXT, DeviceMount, container_path),
        PROTOBUF_FIELD(2, TEXT, DeviceMount, host_path),
        PROTOBUF_FIELD(3, FLAG, DeviceMount, is_read_only),
};
const ProtobufMessage device_mount_table = PROTOBUF_TABLE(DeviceMount, device_mount_fields);

static const ProtobufRow device_file_fields[] = {
        PROTOBUF_FIELD(1, TEXT, DeviceFile, container_path),
        PROTOBUF_FIELD(2, TEXT, DeviceFile, host_path),
        PROTOBUF_FIELD(3, TEXT, DeviceFile, permissions),
};
const ProtobufMessage device_file_table = PROTOBUF_TABLE(DeviceFile, device_file_fields);

static const ProtobufRow device_edits_fields[] = {
        PROTOBUF_FIELD(1, MESSAGES, DeviceEdits, env, .message = &key_value_table),
        PROTOBUF_FIELD(2, MESSAGES, DeviceEdits, mounts, .message = &device_mount_table),
        PROTOBUF_FIELD(3, MESSAGES, DeviceEdits, files, .message = &device_file_table),
        PROTOBUF_FIELD(4, MESSAGES, DeviceEdits, annotations, .message = &key_value_table),
        PROTOBUF_FIELD(5, TEXTS, DeviceEdits, cdi_devices),
};
static const ProtobufMessage device_edits_table = PROTOBUF_TABLE(DeviceEdits, device_edits_fields);

static const ProtobufRow device_fields[] = {
        PROTOBUF_FIELD(1, TEXT, Device, id),
        PROTOBUF_FIELD(2, FLAG, Device, is_healthy),
        PROTOBUF_FIELD(3, NUMBERS, Device, numa_nodes),
};
static const ProtobufMessage device_table = PROTOBUF_TABLE(Device, device_fields);

static const ProtobufRow csi_usage_fields[] = {
        PROTOBUF_FIELD(1, NUMBER, CsiUsage, available),
        PROTOBUF_FIELD(2, NUMBER, CsiUsage, total),
        PROTOBUF_FIELD(3, NUMBER, CsiUsage, used),
        PROTOBUF_FIELD(4, NUMBER, CsiUsage, unit),
};
const ProtobufMessage csi_usage_table = PROTOBUF_TABLE(CsiUsage, csi_usage_fields);

static const ProtobufRow csi_node_answer_fields[] = {
        PROTOBUF_FIELD(1, TEXT, CsiNodeAnswer, node_id),
        PROTOBUF_FIELD(2, NUMBER, CsiNodeAnswer, max_volumes),
        PROTOBUF_FIELD(3, MESSAGES, CsiNodeAnswer, segments, .message = &key_value_table),
        PROTOBUF_FIELD(4, NUMBERS, CsiNodeAnswer, capabilities),
        PROTOBUF_FIELD(5, MESSAGES, CsiNodeAnswer, usages, .message = &csi_usage_table),
        PROTOBUF_FIELD(6, FLAG, CsiNodeAnswer, is_abnormal),
};
static const ProtobufMessage csi_node_answer_table =
        PROTOBUF_TABLE(CsiNodeAnswer, csi_node_answer_fields);

static const ProtobufRow plugin_message_fields[] = {
        PROTOBUF_FIELD(1, NUMBER, PluginMessage, kind),
        PROTOBUF_FIELD(2, NUMBER, PluginMessage, connection),
        PROTOBUF_FIELD(3, NUMBER, PluginMessage, call),
        PROTOBUF_FIELD(4, TEXT, PluginMessage, name),
        PROTOBUF_FIELD(5, TEXT, PluginMessage, namespace),
        PROTOBUF_FIELD(6, TEXT, PluginMessage, error),
        PROTOBUF_FIELD(7, TEXTS, PluginMessage, ids),
        PROTOBUF_FIELD(8, TEXTS, PluginMessage, included),
        PROTOBUF_FIELD(9, NUMBER, PluginMessage, size),
        PROTOBUF_FIELD(10, FLAG, PluginMessage, has_preferences),
        PROTOBUF_FIELD(11, FLAG, PluginMessage, prepares_start),
        PROTOBUF_FIELD(12, MESSAGES, PluginMessage, devices, .message = &device_table),
        PROTOBUF_FIELD(13, MESSAGE, PluginMessage, edits, .message = &device_edits_table),
        PROTOBUF_FIELD(14, BYTES, PluginMessage, body),
        PROTOBUF_FIELD(15, NUMBER, PluginMessage, method),
        PROTOBUF_FIELD(16, TEXT, PluginMessage, type),
        PROTOBUF_FIELD(17, TEXT, PluginMessage, endpoint),
        PROTOBUF_FIELD(18, NUMBER, PluginMessage, code),
        PROTOBUF_FIELD(19, MESSAGE, PluginMessage, csi, .message = &csi_node_answer_table),
};
const ProtobufMessage plugin_message_table = PROTOBUF_TABLE(PluginMessage, plugin_message_fields);

/* ---- edits ---- */

static int make_present(char **text) {
        if (!*text)
                *text = strdup("");
        return *text ? 0 : -ENOMEM;
}

static int normalize_map(StringMap *map) {
        StringMap sorted = { 0 };
        int r = 0;

        for (size_t i = 0; i < map->n && r >= 0; i++)
                r = string_map_set(&sorted, strna(map->items[i].key), strna(map->items[i].value));
        string_map_done(map);
        *map = sorted;
        return r;
}

int device_edits_normalize(DeviceEdits *edits) {
        int r = normalize_map(&edits->env);

        if (r >= 0)
                r = normalize_map(&edits->annotations);
        for (size_t i = 0; i < edits->mounts.n && r >= 0; i++) {
                r = make_present(&edits->mounts.items[i].container_path);
                if (r >= 0)
                        r = make_present(&edits->mounts.items[i].host_path);
        }
        for (size_t i = 0; i < edits->files.n && r >= 0; i++) {
                r = make_present(&edits->files.items[i].container_path);
                if (r >= 0)
                        r = make_present(&edits->files.items[i].host_path);
                if (r >= 0)
                        r = make_present(&edits->files.items[i].permissions);
        }
        return r;
}

static bool is_plain_path(const char *path) {
        size_t n = strlen(path);

        return path[0] == '/' && n < 4096 && !strstr(path, "/../") &&
               (n < 3 || !streq(path + n - 3, "/.."));
}

int device_edits_check(const DeviceEdits *edits, Error *reterr) {
        for (size_t i = 0; i < edits->env.n; i++)
                if (!edits->env.items[i].key[0] || strchr(edits->env.items[i].key, '='))
                        return error_setf(reterr, EINVAL, "a variable has no valid name");
        for (size_t i = 0; i < edits->mounts.n; i++)
                if (!is_plain_path(edits->mounts.items[i].container_path) ||
                    !is_plain_path(edits->mounts.items[i].host_path))
                        return error_setf(reterr, EINVAL,
                                          "the path of a mount is not absolute, or ascends");
        for (size_t i = 0; i < edits->files.n; i++) {
                const DeviceFile *file = &edits->files.items[i];

                if (!is_plain_path(file->container_path) || !is_plain_path(file->host_path))
                        return error_setf(reterr, EINVAL,
                                          "the path of a device is not absolute, or ascends");
                if (file->permissions[strspn(file->permissions, "rwm")] != '\0')
                        return error_setf(reterr, EINVAL,
                                          "the permissions of a device are not of 'rwm'");
        }
        return 0;
}

/* ---- the channel ---- */

enum {
        LENGTH_SIZE = 4,
        READ_SIZE = 64 * 1024,
};

struct PluginFrame {
        PluginFrame *next;
        Buffer data;
        size_t sent;
        int fd;
};

void plugin_channel_init(PluginChannel *channel, int fd) {
        *channel = (PluginChannel){ .fd = fd };
}

static void frame_free(PluginFrame *frame) {
        buffer_done(&frame->data);
        close_fd(frame->fd);
        free(frame);
}

void plugin_channel_done(PluginChannel *channel) {
        list_foreach_safe(frame, channel->output)
                frame_free(frame);
        for (size_t i = 0; i < channel->n_fds; i++)
                close_fd(channel->fds[i]);
        buffer_done(&channel->input);
        close_fd(channel->fd);
        *channel = (PluginChannel){ .fd = -EBADF };
}

bool plugin_channel_has_output(const PluginChannel *channel) {
        return channel->output;
}

static ssize_t send_frame(const PluginChannel *channel, const PluginFrame *frame) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = { 0 };
        struct iovec data = { frame->data.data + frame->sent, frame->data.length - frame->sent };
        struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

        if (frame->sent == 0 && frame->fd >= 0) {
                message.msg_control = &control;
                message.msg_controllen = sizeof(control.space);
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(&control.header), &frame->fd, sizeof(int));
        }
        return sendmsg(channel->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int plugin_channel_flush(PluginChannel *channel) {
        while (channel->output) {
                PluginFrame *frame = channel->output;
                ssize_t n = send_frame(channel, frame);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                frame->sent += (size_t) n;
                if (frame->sent < frame->data.length)
                        continue;
                channel->output = frame->next;
                channel->n_queued -= frame->data.length;
                frame_free(frame);
        }
        return 0;
}

static int encode_frame(const PluginMessage *message, Buffer *buffer) {
        unsigned char length[LENGTH_SIZE] = { 0 };
        uint32_t n;
        int r = buffer_append(buffer, length, sizeof(length), PLUGIN_FRAME_MAX);

        if (r >= 0)
                r = protobuf_encode(&plugin_message_table, message, buffer, PLUGIN_FRAME_MAX);
        if (r < 0)
                return r;
        n = (uint32_t) (buffer->length - LENGTH_SIZE);
        for (size_t i = 0; i < LENGTH_SIZE; i++)
                buffer->data[i] = (char) (unsigned char) (n >> (8 * (LENGTH_SIZE - 1 - i)));
        return 0;
}

int plugin_channel_send(PluginChannel *channel, const PluginMessage *message, int fd) {
        PluginFrame *frame = calloc(1, sizeof(*frame));
        int r = frame ? encode_frame(message, &frame->data) : -ENOMEM;

        if (!frame)
                return r;
        frame->fd = fd >= 0 && r >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -EBADF;
        if (r >= 0 && fd >= 0 && frame->fd < 0)
                r = -errno;
        if (r >= 0 && channel->n_queued + frame->data.length > PLUGIN_QUEUE_MAX)
                r = -ENOBUFS;
        if (r < 0) {
                frame_free(frame);
                return r;
        }
        channel->n_queued += frame->data.length;
        LIST_APPEND(channel->output, frame);
        return plugin_channel_flush(channel);
}

static void keep_fd(PluginChannel *channel, int fd) {
        if (fd < 0)
                return;
        if (channel->n_fds < PLUGIN_FDS_MAX)
                channel->fds[channel->n_fds++] = fd;
        else
                close_fd(fd);
}

static int take_kept_fd(PluginChannel *channel) {
        int fd;

        if (channel->n_fds == 0)
                return -EBADF;
        fd = channel->fds[0];
        memmove(channel->fds, channel->fds + 1, --channel->n_fds * sizeof(int));
        return fd;
}

/* 1: data was read; 0: none is available. */
static int read_some(PluginChannel *channel) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control;
        char *room = buffer_reserve(&channel->input, READ_SIZE);
        struct iovec data = { room, READ_SIZE };
        struct msghdr message = { .msg_iov = &data,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control.space) };
        ssize_t n;

        if (!room)
                return -ENOMEM;
        n = recvmsg(channel->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        keep_fd(channel, message_take_fd(&message));
        if (n == 0)
                return -ECONNRESET;
        channel->input.length += (size_t) n;
        channel->input.data[channel->input.length] = '\0';
        return 1;
}

static size_t frame_length(const Buffer *input) {
        const unsigned char *bytes = (const unsigned char *) input->data;

        return (size_t) bytes[0] << 24 | (size_t) bytes[1] << 16 | (size_t) bytes[2] << 8 |
               bytes[3];
}

/* The message types that include a descriptor unless they report an error. */
static bool has_descriptor(const PluginMessage *message) {
        return message->kind == PLUGIN_LISTENER || message->kind == PLUGIN_ASK_INFO ||
               message->kind == PLUGIN_ADOPT || message->kind == PLUGIN_CALL_CSI ||
               (message->kind == PLUGIN_CONNECTED && !message->error);
}

static int handle_frame(PluginChannel *channel, size_t length, plugin_message_t on_message,
                        void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        PluginMessage message = { 0 };
        int fd = -EBADF;
        int r = protobuf_decode(&plugin_message_table, channel->input.data + LENGTH_SIZE, length,
                                &message, &error);

        if (r >= 0)
                r = device_edits_normalize(&message.edits);
        if (r >= 0)
                r = normalize_map(&message.csi.segments);
        if (r >= 0) {
                buffer_drop(&channel->input, LENGTH_SIZE + length);
                if (has_descriptor(&message))
                        fd = take_kept_fd(channel);
                on_message(&message, &fd, userdata);
        }
        close_fd(fd);
        plugin_message_done(&message);
        return r;
}

int plugin_channel_receive(PluginChannel *channel, plugin_message_t on_message, void *userdata) {
        int r;

        while ((r = read_some(channel)) > 0)
                while (channel->fd >= 0 && channel->input.length >= LENGTH_SIZE) {
                        size_t length = frame_length(&channel->input);

                        if (length > PLUGIN_FRAME_MAX)
                                return -EBADMSG;
                        if (channel->input.length < LENGTH_SIZE + length)
                                break;
                        r = handle_frame(channel, length, on_message, userdata);
                        if (r < 0 || channel->fd < 0)
                                return r;
                }
        return r;
}
